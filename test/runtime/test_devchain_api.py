"""devchain, checked by an independent client: @polkadot/api and its keyring (devchain.mjs) check
most lines of test/devchain/behaviour.md against a node with either pool."""
import unittest

from harness import proc
from harness.chain import Devchain, NodeTools

# Blocks and finality on command only. The byte limits are small enough for devchain_pool.mjs to
# reach them; the buffer of a subscription is a real node's.
OPTIONS = ['--block-ms', '0', '--finality-lag', '1000000', '--deny-unsafe', '--pool-bytes',
           '1000000',
           '--future-bytes', '60000', '--subscription-buffer', '16']
# a block made behind the pool's back; pings, which the api does not show, and a restart
NOT_REACHED = {30, 44}
ONLY = {14: 'single-state', 15: 'fork-aware', 27: 'single-state', 28: 'fork-aware'}


class PolkadotApi(unittest.TestCase):
    def setUp(self):
        proc.install_signals()
        self.addCleanup(proc.cleanup)

    def play(self, pool):
        chain = Devchain(proc.make_dir('txdc-'), *OPTIONS, '--pool-type', pool)
        report = NodeTools.get().run('devchain.mjs', chain.ws, pool, seconds=120)
        lines = sorted(int(line) for line in report['lines'] if line != 'api')
        print(f'\n  {pool}, @polkadot/api {report["api"]}, metadata V{report["metadata"]}: '
              f'{sum(report["lines"].values())} '
              f'assertions in {report["seconds"]:.1f} s; lines checked: '
              f'{", ".join(map(str, lines))}')
        self.assertEqual(report['problems'], [])
        self.assertEqual(lines, [n for n in range(1, 48) if n not in NOT_REACHED
                                 and ONLY.get(n, pool) == pool])

    def test_single_state_pool(self):
        self.play('single-state')

    def test_fork_aware_pool(self):
        self.play('fork-aware')


if __name__ == '__main__':
    unittest.main()
