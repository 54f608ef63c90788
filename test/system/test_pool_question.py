"""A node tells its whole pool at a time: accounts that want to know what it holds of them share
the question."""
import os
import signal
import unittest

from bench.stand import fund_options, many_accounts
from harness import proc
from harness.world import World

ACCOUNTS, EACH = 60, 3


class PoolQuestion(unittest.TestCase):
    def test_many_accounts_ask_together(self):
        """A relay that takes over sixty accounts, all with transactions in the pool: each of them
        finds its own, by a few questions for all, and sends none again."""
        accounts = many_accounts(ACCOUNTS)
        funds = fund_options(proc.make_dir('txpool-'), accounts)
        with World('--block-ms', '0', *funds, accounts=accounts) as world:
            first = world.relay('first')
            proc.wait_for('all to be led',
                          lambda: all(first.leads(alias) for alias, _, _ in accounts), 30)
            for n in range(ACCOUNTS * EACH):
                world.enqueue(b'pool %d' % n, alias=f'bench{n % ACCOUNTS}')
            stats = lambda: world.chain.rpc('dev_stats', {})
            proc.wait_for('all to be in the pool', lambda: stats()['ready'] == ACCOUNTS * EACH, 30)
            proc.wait_for('all to be known as sent', lambda: not world.pg.value(
                "SELECT count(*) FROM txrelay.pending_transactions WHERE state = 'signed'"), 30)
            before = stats()
            first.kill()
            second = world.relay('second')
            second.wait_log('chain.up')
            # while it does not answer they all come to want to know
            os.kill(world.chain.process.pid, signal.SIGSTOP)
            proc.wait_for('all to be led',
                          lambda: all(second.leads(alias) for alias, _, _ in accounts), 30)
            os.kill(world.chain.process.pid, signal.SIGCONT)
            proc.wait_for('all to be ready',
                          lambda: second.text().count('=account.ready ') == ACCOUNTS, 30)
            asked = stats()['pool_asked'] - before['pool_asked']
            self.assertGreaterEqual(asked, 1)
            self.assertLessEqual(asked, ACCOUNTS // 4, 'a question for each')
            world.chain.rpc('dev_set', {'block_ms': 50})
            print(f'{asked} questions for {ACCOUNTS} accounts, {world.settle()}')


if __name__ == '__main__':
    unittest.main()
