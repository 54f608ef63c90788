"""Nothing waits in silence: an account that makes no progress says why in `blocked`, in its
transactions' status, in the log and in the relay's status within ten seconds, and no longer when
it is over. EACH_CODE says who makes each reason in each place."""
import os
import pathlib
import re
import signal
import threading
import unittest

from harness import proc
from harness.cases import CaseWorld, on_submit, refusal
from harness.chain import remark
from system.test_start import database_proxy

TEST = pathlib.Path(__file__).parents[1]
HEADER = TEST.parent / 'relay/core/tx/include/relay/core/tx/obstacle.h'
FUNCTIONS = TEST.parent / 'schema/functions'
# structure: the status of the relay and its metrics
PLACES = ('blocked', 'status', 'log', 'structure')

# Who looks for a code there: a file, and words of it.
SEEN_BY_ACCOUNT = ('system/test_obstacles.py', "expect(tx, '{code}', ")  # all four places
# all but a transaction's status
SEEN_BY_RELAY = ('system/test_obstacles.py', "of_relay(two, '{code}', ")
LIAR = ('system/test_liar.py', "wait_blocked(world, '{code}'")
# A leader's manager finds it, and from there all codes go one way, which `node`, `write`, ... show
# in all places.
CORE = ('unit/relay/manager_obstacle_test.c', 'expect_obstacle(s, OBSTACLE_{upper}, ')
METRICS = ('unit/relay/metrics_test.c', 'OBSTACLES(X)')  # each code of the list
# each code of the list, in the two places of the database
TOLD = ('schema/test_obstacles.py', "for code in reasons('OBSTACLES')")
VIEW = ('schema/test_obstacles.py', "'{code}'")
# and that each was made
EACH_WAIT = ('schema/test_obstacles.py', "reasons('TRANSACTION_OBSTACLES')")
OWN = ('schema/test_obstacles.py', "for code in [r for r in reasons('RELAY_OBSTACLES')")
CLOCK = ('schema/test_obstacles.py', "(None, '{code}')")
MOVES = ('system/test_moves.py', 'relay.blocked .*code={code} ')
QUEUE = ('system/test_soak_queue.py', 'relay.blocked .*code={code} ')
DATABASE = ('system/test_obstacles.py', 'relay.blocked .*code={code} ')
NOT = 'it cannot be there: '

ALL = dict.fromkeys(PLACES, SEEN_BY_ACCOUNT)
LEADERS = {'blocked': TOLD, 'status': TOLD, 'log': CORE, 'structure': METRICS}
LIARS = {**LEADERS, 'log': LIAR}
OF_RELAY = {'blocked': OWN, 'status': NOT + 'it is of no transaction', 'log': SEEN_BY_RELAY,
            'structure': SEEN_BY_RELAY}
OF_DATABASE = {**OF_RELAY, 'blocked': CLOCK, 'structure': METRICS}
STORED = {'blocked': VIEW, 'status': VIEW,
          'log': NOT + 'the leader that stored it calls it `suspended`',
          'structure': NOT + 'the leader that stored it calls it `suspended`'}
WAITS = {'blocked': NOT + 'the account goes on', 'status': EACH_WAIT,
         'log': NOT + 'the account goes on', 'structure': NOT + 'the account goes on'}
EACH_CODE = {
    **dict.fromkeys(('write', 'read', 'node', 'refused', 'paused', 'row_held', 'presigned',
                     'foreign_lock', 'no_leader'), ALL),
    **dict.fromkeys(('load', 'suspended', 'lost_commits', 'behind', 'question', 'gate', 'no_blocks',
                     'finality', 'unread', 'unseen',
                     'signature', 'gap', 'head', 'pool'), LEADERS),
    **dict.fromkeys(('contradicted', 'unconfirmed'), LIARS),
    **dict.fromkeys(('payment', 'signing', 'reaped', 'transaction_version'), STORED),
    **dict.fromkeys(('listener', 'control'), OF_RELAY),
    'database': {'blocked': NOT + 'a relay without its database writes nothing there',
                 'status': NOT + 'it is of no transaction',
                 'log': DATABASE, 'structure': DATABASE},
    'queue': {**OF_DATABASE, 'log': QUEUE},
    'clock': {**OF_DATABASE, 'log': MOVES},
    **dict.fromkeys(('not_before', 'site', 'turn', 'sent', 'block', 'final', 'search'), WAITS),
}
# The account's row says these two to the views, so what the leader tells of them is not shown.
EACH_CODE['suspended'] = {**LEADERS, 'blocked': NOT + 'there it has the code of its cause',
                          'status': NOT + 'there it has the code of its cause'}
EACH_CODE['lost_commits'] = {**LEADERS, 'blocked': VIEW, 'status': VIEW}


def listed(name):
    """The codes of a list of obstacle.h."""
    text = HEADER.read_text().replace('\\\n', ' ')
    return re.findall(r'"(\w+)"', re.search(rf'#define {name}\(X\)([^\n]*)', text).group(1))


class EachCode(unittest.TestCase):
    def test_each_has_its_places(self):
        codes = [code for name in re.findall(r'#define (\w*OBSTACLES)\(X\)', HEADER.read_text())
                 for code in listed(name)]
        self.assertGreater(len(set(codes)), 40)
        self.assertEqual(set(codes), set(EACH_CODE))
        for code, places in EACH_CODE.items():
            self.assertEqual(set(places), set(PLACES), code)
            for place, seen in places.items():
                with self.subTest(code, place=place):
                    if isinstance(seen, str):
                        self.assertTrue(seen.startswith(NOT) and len(seen) > len(NOT), seen)
                    else:
                        self.assertIn(seen[1].format(code=code, upper=code.upper()),
                                      (TEST / seen[0]).read_text())

    def test_the_views_have_no_other(self):
        """Codes that they make themselves: THEN 'code', or 'code: ' before a reason."""
        text = '\n'.join(path.read_text() for path in FUNCTIONS.glob('05_*.sql'))
        column = re.search(r"CASE WHEN a\.paused THEN coalesce\(a\.suspension, 'paused'\).*?ELSE "
                           r"w.code END", text, re.S).group(0)
        made = set(re.findall(r"(?:THEN|ELSE) '(\w+)'", column)) | set(re.findall(r"'(\w+): (?!%)",
                                                                                  text))
        self.assertGreater(made, {'no_leader', 'foreign_lock', 'row_held', 'presigned', 'refused',
                                  'turn', 'site'})
        self.assertEqual(made - set(EACH_CODE), set())


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
        """In each place, within the promised time of its beginning. told: by the relay, if it has
        other words."""
        def said():
            row = self.world.pg.query('SELECT code, reason FROM txrelay.blocked_accounts')
            return row and row[0][0] == code and row[0]
        reason = proc.wait_for(f'{code} in blocked', said, WITHIN, 0.1)[1]
        self.assertIn(text, reason)
        # noqa: E731
        waits = lambda: self.world.pg.value('SELECT waits FROM txrelay.status(%s)', [tx])
        proc.wait_for(f'{code} in status', lambda: waits().startswith(f'{code}: '), WITHIN, 0.1)
        status = lambda: self.relay.control({'cmd': 'status'})['accounts'][0]  # noqa: E731
        proc.wait_for(f'{code} in the status', lambda: status()['obstacle'] == code, WITHIN, 0.1)
        self.relay.wait_log(f'account.blocked account=alice .*code={code} ')
        self.assertIn(told or text, status()['obstacle_text'])
        self.assertGreaterEqual(status()['obstacle_ms'], 5000)
        self.assertRegex(self.metrics(self.relay),
                         f'txrelay_blocked_seconds{{account="alice",reason="{code}"}} '
                         '([5-9]|[1-9][0-9])')
        self.assertIn('txrelay_blocked{account="alice"} 1\n', self.metrics(self.relay))

    def metrics(self, relay):
        return relay.control({'cmd': 'metrics'})['text']

    def over(self, tx, code):
        proc.wait_for('it to be over', lambda: not self.world.pg.query('SELECT 1 FROM '
                                                                       'txrelay.blocked_accounts'),
                                                                       WITHIN, 0.1)
        proc.wait_for('the log to say so',
                      lambda: 'account.goes_on account=alice' in self.relay.text()
                      and f'was={code}' in self.relay.text(), WITHIN, 0.1)
        status = lambda: self.relay.control({'cmd': 'status'})['accounts'][0]  # noqa: E731
        proc.wait_for('the status to say so', lambda: status()['obstacle'] == '', WITHIN, 0.1)
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
            CREATE TRIGGER zz_refuse BEFORE INSERT ON txrelay.pending_transactions FOR EACH ROW
            EXECUTE FUNCTION refuse()""")
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
        self.assertEqual(self.world.pg.query('SELECT 1 FROM txrelay.obstacles'), [],
                         'the view knows it sooner')
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
        self.assertEqual(self.world.pg.query('SELECT 1 FROM txrelay.obstacles'), [],
                         'the view knows it sooner')
        db.rollback()
        self.over(tx, 'row_held')

    def test_one_signed_elsewhere_waits_for_a_lower_nonce(self):
        extrinsic = self.world.stranger.extrinsic(1, remark('the second'))
        tx = self.world.pg.value('SELECT txrelay.enqueue_signed(%s)', [extrinsic.raw])
        self.world.committed[extrinsic.call] = tx
        self.expect(tx, 'presigned', 'its nonce is 1 ')
        self.assertEqual(self.world.pg.query('SELECT 1 FROM txrelay.obstacles'), [],
                         'the view knows it sooner')
        self.world.put('the first')
        self.over(tx, 'presigned')

    def test_no_relay_can_claim_it(self):
        """A follower tells it: there is no leader who could."""
        db = self.world.pg.connect(autocommit=False)
        self.addCleanup(db.close)
        db.cursor().execute('SELECT FROM txrelay.leadership FOR UPDATE')
        self.lose_the_lead()
        tx = self.world.put('waits')
        self.expect(tx, 'no_leader', 'nobody leads it: ',
                    'nobody leads it, and this relay has not got it')
        db.rollback()
        self.over(tx, 'no_leader')

    def test_a_session_has_its_lock(self):
        """One that is not ended: it may be a relay's that is about to claim."""
        db = self.world.pg.connect()
        self.addCleanup(db.close)
        enough = threading.Event()

        def hold():
            cursor = db.cursor()
            cursor.execute('SELECT pg_advisory_lock(lock_key) FROM txrelay.leadership')
            while not enough.wait(0.5):
                cursor.execute('SELECT 1')
            cursor.execute('SELECT pg_advisory_unlock_all()')
        holds = threading.Thread(target=hold, daemon=True)
        holds.start()
        self.addCleanup(enough.set)
        waits = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        proc.wait_for('it to wait for the lock', lambda: self.world.pg.query(waits))
        self.lose_the_lead()
        tx = self.world.put('waits')
        self.expect(tx, 'foreign_lock', 'its lock is held by backend')
        enough.set()
        holds.join()
        self.over(tx, 'foreign_lock')

    def lose_the_lead(self):
        self.sql('SELECT pg_terminate_backend(lock_pid) FROM txrelay.leadership')
        self.relay.wait_log('leader.lost')
        over = 'SELECT 1 FROM txrelay.leaders WHERE expiry_2 < clock_timestamp()'
        proc.wait_for('its claim to run out', lambda: self.world.pg.query(over))

    def of_relay(self, relay, code, text):
        """In each place, as of an account. A follower asks its node for little, so it notices
        later that it is silent."""
        def said():
            rows = self.world.pg.query('SELECT code, reason FROM txrelay.blocked_relays '
                                       'WHERE relay LIKE %s', [f'%-{relay.name}-%'])
            return rows and rows[0][0] == code and rows[0]
        reason = proc.wait_for(f'{code} in blocked', said, 6 * WITHIN, 0.1)[1]
        self.assertIn(text, reason)
        relay.wait_log(f'relay.blocked .*code={code} ')
        status = relay.control({'cmd': 'status'})
        self.assertEqual(status['obstacle'], code)
        self.assertIn(text, status['obstacle_text'])
        self.assertGreaterEqual(status['obstacle_ms'], 5000)
        self.assertIn(f'txrelay_relay_blocked_seconds{{reason="{code}"}} ', self.metrics(relay))

    def relay_over(self, relay, code):
        proc.wait_for('it to be over', lambda: not self.world.pg.query('SELECT 1 FROM '
                                                                       'txrelay.blocked_relays'),
                                                                       6 * WITHIN, 0.1)
        relay.wait_log(f'relay.goes_on .*was={code}')
        proc.wait_for('the status to say so',
                      lambda: relay.control({'cmd': 'status'})['obstacle'] == '')

    def test_a_follower_whose_stream_is_refused_and_whose_node_is_gone(self):
        pg = self.world.pg
        self.sql('CREATE ROLE deaf NOLOGIN IN ROLE txrelay_relay')
        two = self.world.relay('two', start=False).configure('database',
                                           listen_url=f"'{pg.dsn_of(pg.database, 'deaf')}'").start()
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
        two = self.world.relay('two', dsn=dsn, start=False).configure('database',
                                                                  work_url=f'"{self.world.pg.dsn}"',
                                                        listen_url=f'"{self.world.pg.dsn}"').start()
        two.wait_log('relay.running')
        proxy.set('pass', 0.8)  # each way: more than a third of the 4 s that a lead lasts
        self.of_relay(two, 'control', 'the session database.url answers after 1')
        proxy.set('pass')
        # A server that is slow too gives no answer in time, and is given up for a moment.
        self.relay_over(two, '(control|database)')

    def test_relays_without_their_database(self):
        """Each for another cause. Who has no database writes no line there: it is told in the
        other places."""
        pg = self.world.pg
        proxy, through = database_proxy(self, pg)
        causes = {'full': 'too many connections', 'shut': 'not permitted to log in',
                  'gone': 'does not exist', 'away': ''}
        relays = {}
        for cause in causes:
            self.sql(f'CREATE ROLE "{cause}" LOGIN IN ROLE txrelay_relay')
            dsn = through if cause == 'away' else pg.dsn_of(pg.database, cause)
            relays[cause] = self.world.relay(cause, dsn=dsn)
        for relay in relays.values():
            relay.wait_log('relay.running')
        self.sql('ALTER ROLE "full" CONNECTION LIMIT 0; ALTER ROLE shut NOLOGIN; ALTER ROLE gone '
                 'RENAME TO renamed')
        proxy.set('refuse')
        proxy.cut()
        self.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                 "WHERE usename IN ('full', 'shut', 'renamed')")
        for cause, two in relays.items():
            with self.subTest(cause):
                two.wait_log(f'relay.blocked .*code=database .*{causes[cause]}')
                text = 'it has no database: .*' + causes[cause]
                proc.wait_for('the status to say so', lambda: re.search(text, two.control(
                    {'cmd': 'status'})['obstacle_text']))
                self.assertEqual(two.control({'cmd': 'status'})['obstacle'], 'database')
                self.assertIn('txrelay_relay_blocked_seconds{reason="database"} ',
                              self.metrics(two))
                text = 'the database is not reachable: .+' + causes[cause]
                proc.wait_for('its health to say so', lambda: re.search(text, two.control(
                    {'cmd': 'health'})['text']))
        self.sql('ALTER ROLE "full" CONNECTION LIMIT -1; ALTER ROLE shut LOGIN; ALTER ROLE renamed '
                 'RENAME TO gone')
        proxy.set('pass')
        for cause, two in relays.items():
            with self.subTest(cause):
                # whose session may come back last
                two.wait_log('relay.goes_on .*was=(database|listener)')
                proc.wait_for('its status to be free of it', lambda: (
                    two.control({'cmd': 'status'})['obstacle'] == ''
                    and '_relay_blocked_' not in self.metrics(two)))


if __name__ == '__main__':
    unittest.main()
