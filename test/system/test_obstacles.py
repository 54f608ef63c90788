"""Nothing waits in silence: an account that makes no progress says why in `blocked`, in its transactions' status, in the log
and in the relay's status within ten seconds, and no longer when it is over. EACH_CODE says who makes each reason."""
import os
import pathlib
import re
import signal
import unittest

from harness import proc
from harness.cases import CaseWorld, on_submit, refusal
from system.test_start import database_proxy

TEST = pathlib.Path(__file__).parents[1]
HEADER = TEST.parent / 'relay/core/tx/include/relay/core/tx/obstacle.h'
CORE = ('unit/relay/manager_obstacle_test.c', 'expect_obstacle(s, OBSTACLE_{upper}, ')  # from there on all go one way: `node`
SQL = ('schema/test_obstacles.py', "'{code}'")  # in the two places that need no relay
LIAR = ('system/test_liar.py', "wait_blocked(world, '{code}'")
HERE = ('system/test_obstacles.py', "expect(tx, '{code}', ")
# Of what the leader or the database finds: file and words of the test that makes it. A leader calls the database's suspensions
# `suspended` where it speaks itself.
EACH_CODE = {
    'write': HERE, 'read': HERE, 'node': HERE, 'load': CORE, 'suspended': CORE, 'contradicted': LIAR, 'unconfirmed': LIAR,
    'lost_commits': CORE, 'behind': CORE, 'question': CORE, 'gate': CORE, 'no_blocks': CORE, 'finality': CORE, 'unread': CORE,
    'unseen': CORE, 'signature': CORE, 'gap': CORE, 'refused': HERE, 'head': CORE, 'pool': CORE, 'paused': HERE, 'row_held': HERE,
    'payment': SQL, 'signing': SQL, 'reaped': SQL, 'transaction_version': SQL, 'foreign_lock': SQL, 'no_leader': SQL,
    'presigned': SQL,
}


def listed(name):
    """The codes of a list of obstacle.h."""
    text = HEADER.read_text().replace('\\\n', ' ')
    return re.findall(r'"(\w+)"', re.search(rf'#define {name}\(X\)([^\n]*)', text).group(1))


class EachCode(unittest.TestCase):
    def test_somebody_makes_it(self):
        codes = listed('OBSTACLES') + listed('DATABASE_OBSTACLES')
        self.assertGreater(len(codes), 25)
        self.assertEqual(set(codes), set(EACH_CODE))
        for code, (file, words) in EACH_CODE.items():
            with self.subTest(code):
                self.assertIn(words.format(code=code, upper=code.upper()), (TEST / file).read_text())


WITHIN = 10 * float(os.environ.get('TXRELAY_SLOW', 1))  # seconds


class Obstacles(unittest.TestCase):
    def setUp(self):
        self.world = CaseWorld(call_timeout_ms=1000)
        self.addCleanup(self.world.close)
        self.relay = self.world.relays[0]

    def sql(self, text):
        with self.world.pg.connect() as db:
            db.cursor().execute(text)

    def expect(self, tx, code, text, told=None):
        """In each place, within the promised time of its beginning. told: by the relay, if it has other words."""
        def said():
            row = self.world.pg.query('SELECT code, reason FROM txrelay.blocked_accounts')
            return row and row[0][0] == code and row[0]
        reason = proc.wait_for(f'{code} in blocked', said, WITHIN, 0.1)[1]
        self.assertIn(text, reason)
        waits = self.world.pg.value('SELECT waits FROM txrelay.status(%s)', [tx])
        self.assertTrue(waits.startswith(f'{code}: '), waits)
        status = lambda: self.relay.control({'cmd': 'status'})['accounts'][0]  # noqa: E731
        proc.wait_for(f'{code} in the status', lambda: status()['obstacle'] == code, WITHIN, 0.1)
        self.assertRegex(self.relay.text(), f'account.blocked account=alice .*code={code} ')
        self.assertIn(told or text, status()['obstacle_text'])
        self.assertGreaterEqual(status()['obstacle_ms'], 5000)

    def over(self, tx, code):
        proc.wait_for('it to be over', lambda: not self.world.pg.query('SELECT FROM txrelay.blocked_accounts'), WITHIN, 0.1)
        proc.wait_for('the log to say so', lambda: 'account.goes_on account=alice' in self.relay.text()
                      and f'was={code}' in self.relay.text(), WITHIN, 0.1)
        self.assertEqual(self.relay.control({'cmd': 'status'})['accounts'][0]['obstacle'], '')
        self.world.wait_end(tx)
        self.world.settle()

    def test_the_only_node_is_gone(self):
        os.kill(self.world.chain.process.pid, signal.SIGSTOP)
        tx = self.world.put('waits')
        try:
            self.expect(tx, 'node', 'no endpoint is usable')
        finally:
            os.kill(self.world.chain.process.pid, signal.SIGCONT)
        self.over(tx, 'node')

    def test_the_database_refuses_a_write(self):
        self.sql("""CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'not today'; END $$;
            CREATE TRIGGER zz_refuse BEFORE INSERT ON txrelay.pending_transactions FOR EACH ROW EXECUTE FUNCTION refuse()""")
        tx = self.world.put('waits')
        self.expect(tx, 'write', 'refuses to store what the leader decided (admit)')
        self.sql('DROP TRIGGER zz_refuse ON txrelay.pending_transactions')
        self.over(tx, 'write')

    def test_the_database_refuses_a_read(self):
        good = self.world.pg.value("SELECT pg_get_functiondef('txrelay.leader_outbox'::regproc)")
        self.sql(good.replace('BEGIN', "BEGIN RAISE EXCEPTION 'not today';", 1))
        tx = self.world.put('waits')
        self.expect(tx, 'read', 'outbox: ')
        self.sql(good)
        self.over(tx, 'read')

    def test_an_operator_paused_it(self):
        self.sql("SELECT txrelay.account_pause('alice', 'for the audit')")
        tx = self.world.put('waits')
        self.expect(tx, 'paused', 'for the audit', 'an operator paused it')
        self.assertEqual(self.world.pg.query('SELECT FROM txrelay.obstacles'), [], 'the view knows it sooner')
        self.world.resume()
        self.over(tx, 'paused')

    def test_nodes_refuse_the_first(self):
        """For longer than gap_blocks, after which it is the head."""
        rule, = self.world.script(on_submit(refusal(1018), times=0))
        tx = self.world.put('waits')
        self.expect(tx, 'refused', 'Unactionable')
        self.world.chain.rpc('dev_clearScript', {'id': rule})
        self.over(tx, 'refused')

    def test_an_application_holds_a_row(self):
        self.sql("SELECT txrelay.account_pause('alice', 'until it is held')")
        tx = self.world.put('waits')
        db = self.world.pg.connect(autocommit=False)
        self.addCleanup(db.close)
        db.cursor().execute('SELECT txrelay.cancel(%s)', [tx])
        self.world.resume()
        self.expect(tx, 'row_held', 'blocked by backend', f'transaction {tx} is passed over: ')
        self.assertEqual(self.world.pg.query('SELECT FROM txrelay.obstacles'), [], 'the view knows it sooner')
        db.rollback()
        self.over(tx, 'row_held')

    def of_relay(self, relay, code, text):
        """In each place, as of an account. A follower asks its node for little, so it notices later that it is silent."""
        def said():
            rows = self.world.pg.query('SELECT code, reason FROM txrelay.blocked_relays WHERE relay LIKE %s', [f'%-{relay.name}-%'])
            return rows and rows[0][0] == code and rows[0]
        reason = proc.wait_for(f'{code} in blocked', said, 6 * WITHIN, 0.1)[1]
        self.assertIn(text, reason)
        relay.wait_log(f'relay.blocked .*code={code} ')
        status = relay.control({'cmd': 'status'})
        self.assertEqual(status['obstacle'], code)
        self.assertIn(text, status['obstacle_text'])
        self.assertGreaterEqual(status['obstacle_ms'], 5000)

    def relay_over(self, relay, code):
        proc.wait_for('it to be over', lambda: not self.world.pg.query('SELECT FROM txrelay.blocked_relays'), 6 * WITHIN, 0.1)
        relay.wait_log(f'relay.goes_on .*was={code}')
        self.assertEqual(relay.control({'cmd': 'status'})['obstacle'], '')

    def test_a_follower_whose_stream_is_refused_and_whose_node_is_gone(self):
        pg = self.world.pg
        self.sql('CREATE ROLE deaf NOLOGIN IN ROLE txrelay_relay')
        two = self.world.relay('two', start=False).configure('database', listen_url=f"'{pg.dsn_of(pg.database, 'deaf')}'").start()
        two.wait_log('relay.running')
        self.of_relay(two, 'listener', 'deaf')
        self.sql('ALTER ROLE deaf LOGIN')
        self.relay_over(two, 'listener')
        os.kill(self.world.chain.process.pid, signal.SIGSTOP)
        try:
            self.of_relay(two, 'node', 'no endpoint is usable, so it cannot take over')
        finally:
            os.kill(self.world.chain.process.pid, signal.SIGCONT)
        self.relay_over(two, 'node')

    def test_a_control_session_that_answers_late(self):
        """While it takes the quick ones of a leader, it could lose what it leads."""
        proxy, dsn = database_proxy(self, self.world.pg)
        two = self.world.relay('two', dsn=dsn, start=False).configure('database', work_url=f'"{self.world.pg.dsn}"',
                                                                      listen_url=f'"{self.world.pg.dsn}"').start()
        two.wait_log('relay.running')
        proxy.set('pass', 0.8)  # each way: more than a third of the 4 s that a lead lasts
        self.of_relay(two, 'control', 'the session database.url answers after 1')
        proxy.set('pass')
        self.relay_over(two, 'control')


if __name__ == '__main__':
    unittest.main()
