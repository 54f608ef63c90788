"""The main job on a real Substrate runtime (Asset Hub under chopsticks) at an endpoint that has
nothing but the newer JSON-RPC: a proxy closes every method that chopsticks has of the older one,
and archive_v1_*. Chopsticks has chainHead_v1 and transaction_v1, and not transactionWatch_v1."""
import json
import os
import unittest

from harness import invariants, proc
from harness.chain import Chopsticks
from harness.liar import Liar, closed_families
from harness.postgres import Postgres
from harness.relay import Relay, cli

ACCOUNTS = [('alice', 'sr25519', '//Alice')]
BOB = '5FHneW46xGXgs5mUiveU4sbTyGBzmstUspZC92UhjJM694ty'
TRANSACTIONS = 12
DEADLINE_S = 400
# system_version stays: it says that the roots of blocks are made up.
OLDER = ('chain_', 'state_', 'author_', 'payment_', 'childstate_', 'system_account', 'rpc_',
         'archive_')


class NewerRpc(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        proc.install_signals()
        cls.dir = proc.make_dir('txnr-')
        cls.chain = Chopsticks(cls.dir)
        cls.pg = Postgres(os.path.join(cls.dir, 'pg'))
        cli('migrate', '--database', cls.pg.dsn)
        cls.pg.query('CREATE ROLE relay LOGIN IN ROLE txrelay_relay')

    @classmethod
    def tearDownClass(cls):
        proc.cleanup()

    def relay(self, name):
        liar = Liar(self.chain.ws)
        liar.reply = closed_families(*OLDER)
        self.addCleanup(liar.close)
        relay = Relay(self.dir, name, self.pg.dsn_of(self.pg.database, user='relay'), [liar.url],
                      ACCOUNTS,
                      manager={'unanswered': 1})
        return relay, liar

    def ended(self):
        return self.pg.value('SELECT count(*) FROM txrelay.finished_transactions '
                             'WHERE id IS NOT NULL')

    def wait_ended(self, count, *relays):
        try:
            proc.wait_for(f'{count} to end', lambda: self.ended() >= count, DEADLINE_S, every=0.1)
        except TimeoutError as error:
            logs = '\n'.join(f'--- {r.name}\n' + '\n'.join(r.text().splitlines()[-25:])
                             for r in relays)
            raise TimeoutError(f'{error}; {self.ended()} have\n{logs}') from None

    def test_main_job(self):
        (one, liar), (two, other) = self.relay('one'), self.relay('two')
        check = cli('check', '--config', one.config)
        self.assertIn('statemine/900', check.stdout)
        self.assertIn('chainHead_v1_body in place of chain_getBlock', check.stdout)
        wanted = [['system', 'remark', f'0x{i:064x}'] if i % 2
                  else ['balances', 'transferKeepAlive', BOB, str(10 ** 12 + i)]
                  for i in range(TRANSACTIONS)]
        calls = [bytes.fromhex(c[2:]) for c in self.chain.tools.run('calls.mjs', self.chain.ws,
                                                                    stdin=json.dumps(wanted))]
        one.start()
        proc.wait_for('one to lead', lambda: one.leads('alice'), DEADLINE_S)
        two.start()
        self.chain.mine()
        committed = {}
        for call in calls[:TRANSACTIONS // 2]:
            committed[call] = self.pg.value(
                "SELECT txrelay.enqueue(account => 'alice', call => %s)", (call,))
        self.wait_ended(TRANSACTIONS // 2, one, two)
        one.kill()
        for call in calls[TRANSACTIONS // 2:]:
            committed[call] = self.pg.value(
                "SELECT txrelay.enqueue(account => 'alice', call => %s)", (call,))
        self.wait_ended(TRANSACTIONS, two)
        ids = self.pg.query("SELECT '0x' || encode(account_id, 'hex') FROM txrelay.accounts")
        report = self.chain.judge(self.dir, [row[0] for row in ids], committed, seconds=DEADLINE_S)
        self.assertEqual(report['problems'], [])
        self.assertEqual(len(report['extrinsics']), TRANSACTIONS)
        figures = invariants.check(self.pg, self.chain, committed, [])
        self.assertEqual(self.pg.query("SELECT outcome, count(*) FROM "
                                       "txrelay.finished_transactions GROUP BY 1"),
                         [('ok', TRANSACTIONS)])
        for proxy in (liar, other):
            self.assertGreater(proxy.asked['chainHead_v1_body'], 0)
            self.assertGreater(proxy.asked['transaction_v1_broadcast'], 0)
        print(f'\n  {TRANSACTIONS} through chainHead_v1 and transaction_v1_broadcast, with a '
              f'failover; {figures}; '
              f'{dict(liar.asked + other.asked)}')
