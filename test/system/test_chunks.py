"""A promotion that reads more pending rows than one chunk holds (5,000): the next chunk is asked
for while one is taken in, and a session that is lost in between begins anew."""
import time
import unittest

from bench.stand import chain, many_accounts
from bench.suite_start import fill
from harness import proc
from harness.leadership import Server
from harness.relay import Relay

ROWS = 12001


class Chunks(unittest.TestCase):
    def setUp(self):
        self.pg = Server()
        self.addCleanup(self.pg.stop)
        directory = proc.make_dir('txchunks-')
        accounts = many_accounts(1)
        self.node = chain(directory, '--block-ms', '0', '--trust-signatures', accounts=accounts)
        self.addCleanup(self.node.process.kill)
        self.node.rpc('dev_newBlock', {'count': 4})
        self.relay = Relay(directory, 'chunks', self.pg.dsn, [self.node.ws], accounts,
                           manager={'window': ROWS})
        self.addCleanup(self.relay.kill)
        self.relay.start()
        self.relay.wait_log('account.ready')
        self.assertEqual(self.relay.stop(), 0)

    def load(self):
        fill(self.pg, ROWS)
        self.relay.start()

    def complete(self):
        self.relay.wait_log(
            rf'account.ready account=bench0 epoch=\d+ next_nonce={ROWS} open={ROWS}')
        proc.wait_for('the first send', lambda: self.node.rpc('dev_stats', {})['submit_count'], 60)

    def test_all_of_them_in_order(self):
        self.load()
        self.complete()

    def test_a_session_that_is_lost_on_the_way(self):
        """Terminated again and again while it loads."""
        self.load()
        ended, until = 0, time.monotonic() + 2

        def cut():
            nonlocal ended
            ended += self.pg.value("SELECT count(*) FROM (SELECT pg_terminate_backend(pid) "
                                   "FROM pg_stat_activity "
                                   "WHERE application_name LIKE '% work' AND query LIKE '%after "
                                   "this nonce%') s")
            return time.monotonic() > until
        proc.wait_for('two seconds of it', cut, 10)
        self.assertGreater(ended, 0)
        self.complete()


if __name__ == '__main__':
    unittest.main()
