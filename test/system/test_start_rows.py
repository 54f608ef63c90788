"""A leader that reads many pending transactions over slow sessions: it says how far it is, and no
slow session deposes it, whichever of the two is slow. (All latencies in all orders:
elector_latency_test, and the simulator's slow-work.)"""
import os
import unittest

from bench.stand import chain, many_accounts
from bench.suite_start import fill
from harness import proc
from harness.chain import remark
from harness.leadership import Server
from harness.relay import Relay
from system.test_start import database_proxy

ROWS = 12001


class Rows(unittest.TestCase):
    def setUp(self):
        self.pg = Server()
        self.addCleanup(self.pg.stop)
        directory, accounts = proc.make_dir('txstart-'), many_accounts(1)
        node = chain(directory, '--block-ms', '0', '--trust-signatures', accounts=accounts)
        self.addCleanup(node.process.kill)
        node.rpc('dev_newBlock', {'count': 4})
        self.control, control_dsn = database_proxy(self, self.pg)
        self.work, work_dsn = database_proxy(self, self.pg, self.sent)
        self.second_chunk = self.first_chunk = None
        self.relay = Relay(directory, 'rows', control_dsn, [node.ws], accounts,
                           manager={'window': ROWS})
        self.relay.configure('database', work_url=f'"{work_dsn}"', listen_url=f'"{self.pg.dsn}"')
        self.addCleanup(self.relay.kill)
        self.relay.start()
        self.relay.wait_log('account.ready')
        self.assertEqual(self.relay.stop(), 0)
        fill(self.pg, ROWS)
        os.truncate(self.relay.log, 0)

    def sent(self, _, data):  # a chunk is asked for after the last nonce of the one before
        if self.first_chunk and b'read_snapshot' in data:
            self.first_chunk()
        if self.second_chunk and (4999).to_bytes(8, 'big') in data:
            self.second_chunk()

    def loads_once(self, seconds=60):
        self.relay.wait_log(
            rf'account.ready account=bench0 epoch=\d+ next_nonce={ROWS} open={ROWS}', seconds)
        self.assertEqual(self.relay.text().count('event=leader.acquired '), 1, self.relay.text())
        self.assertNotIn('event=leader.lost ', self.relay.text())

    def test_how_far_it_is(self):
        def hold():
            self.work.mode = 'hold'
        self.second_chunk = hold
        waiting = self.pg.value("SELECT txrelay.enqueue('bench0', %s)", (remark('behind them'),))
        self.relay.start()
        self.relay.wait_log(r'event=account.starting account=bench0 epoch=\d+ step=rows ', 60)

        def reads():
            progress = (self.relay.status() or {'accounts': [{}]})['accounts'][0].get('progress')
            return progress and progress['of'] == ROWS and progress
        progress = proc.wait_for('a chunk of them', reads, 60)
        self.assertEqual(progress['done'], 5000)
        self.assertIn(f'5000 of {ROWS}', progress['text'])
        self.assertEqual(self.pg.value('SELECT stage FROM txrelay.status(%s)', (waiting,)),
                         'outbox')
        self.work.set('pass')
        self.loads_once()

    def test_slow_sessions(self):
        """The work session from the first chunk on: to connect takes five round trips, and five
        seconds at most."""
        def slow():
            self.work.delay_s = 0.8
        self.first_chunk = slow
        for control_s in (0, 0.3):  # each way
            with self.subTest(control=control_s):
                self.control.set('pass', control_s)
                self.work.set('pass')
                self.relay.start()
                self.loads_once(90)
                self.relay.kill()
                os.truncate(self.relay.log, 0)


if __name__ == '__main__':
    unittest.main()
