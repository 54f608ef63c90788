"""Long proofs, each in two sizes: the full one is a command of its own (./dev soak NAME), the
small one runs in the system lane."""
import os

FULL = os.environ.get('TXRELAY_SOAK') == 'full'

# A chain that is never what limits a run.
WIDE_CHAIN = ('--max-subscriptions', '1000000', '--pool-limit', '1000000', '--pool-bytes',
              '1000000000',
              '--future-limit', '100000', '--block-max-extrinsics', '100000', '--max-block-bytes',
              '268435456')


def size(full, small):
    return full if FULL else small


def report(text):
    """A line of figures, kept by the lane's report of what was measured."""
    print(f'\n  {text}', flush=True)
