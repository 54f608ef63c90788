"""A session keeps its plans for hours. Those that were made while the tables were empty, and known
as empty (VACUUM found nothing: then each index costs the planner the same), must not read whole
tables once there are rows."""
import re
import unittest

from pgcase import Case, h32
from test_signed import extrinsic

BLOCK = h32('block')
ROWS = 3000  # of each of two accounts, in each table
READ = 300   # what a call about two rows may read


class Notices:
    """psycopg2 keeps the last fifty of a list."""

    def __init__(self):
        self.kept = []

    def append(self, text):
        self.kept.append(text)


class Plans(Case):
    WIDE = True

    FRESH = True

    def setUp(self):
        super().setUp()
        self.full = False
        # as store/sql/set_relay_session.sql does
        self.relay.rows('SET plan_cache_mode = force_generic_plan')
        self.bob = self.register(self.relay, 'bob', 43)
        self.epoch = self.lead(e1=3600000, e2=3600000)
        self.next = 0

    @staticmethod
    def read_by(session):
        return session.value("SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, "
                             "0))::int "
                             "FROM pg_stat_xact_user_tables WHERE schemaname = 'txrelay'")

    def ask(self, name, session, call, *args, **options):
        """One call, and how many rows it read."""
        session.begin()
        before = self.read_by(session)
        got = call(*args, **options)
        read = self.read_by(session) - before
        session.commit()
        if self.full:
            with self.subTest(name):
                self.assertLess(read, READ)
        return got

    def sql(self, name, sql, *args, session=None):
        s = session or self.relay
        return self.ask(name, s, s.rows, sql, *args)

    def new(self, count, **options):
        """Rows in the outbox, and then at nonces."""
        ids = self.ask('enqueue', self.app, self.enqueue, count, **options)
        self.sql('leader_outbox', 'SELECT * FROM txrelay.leader_outbox(%s, %s, 100)', self.alice,
                 self.epoch)
        nonces = list(range(self.next, self.next + count))
        self.ask('leader_admit', self.relay, self.admit, self.relay, self.epoch, ids, nonces)
        self.next += count
        return ids, nonces

    def relay_does(self, name, call, *rows):
        return self.ask(name, self.relay, call, self.relay, self.epoch, *rows)

    def look_around(self):
        self.ask('leader_poll_requests', self.relay, self.look, self.epoch)
        self.sql('leader_due', 'SELECT * FROM txrelay.leader_due(%s, %s::bigint[], %s::bigint[], '
                               '10000)',
                 [self.alice, self.bob], [self.epoch, 1], [None, 5])

    def ends(self):
        """Sent, asked to stop and to pay more, signed again, ended."""
        ids, nonces = self.new(2, deadline='2099-01-01', tip=1)
        self.look_around()
        self.assertEqual(self.sql('cancel', 'SELECT txrelay.cancel(%s)', ids[0], session=self.app),
                         [('requested',)])
        self.sql('bump', 'SELECT txrelay.bump(%s, 5)', ids[1], session=self.app)
        self.look_around()
        self.relay_does('leader_record_status', self.state, *[(n, h32(n), 'ready') for n in nonces])
        self.relay_does('leader_record_status', self.state,
                        *[(n, h32(n), 'refused', None, None, 'no') for n in nonces],
                        (nonces[0], h32(nonces[0]), 'dropped'))
        self.relay_does('leader_attempt', self.attempt, nonces, [h32(f'b{n}') for n in nonces])
        self.sql('leader_snapshot', 'SELECT * FROM txrelay.leader_snapshot(%s, %s, %s, 50)',
                 self.alice, self.epoch,
                 nonces[0] - 1)
        for sql in ('SELECT * FROM txrelay.status(%s)', 'SELECT * FROM txrelay.history(%s)'):
            self.sql(sql[22:29], sql, ids[0], session=self.app)
        for of in (h32(nonces[0]), h32(f'b{nonces[1]}'), h32('unknown')):
            self.sql('status by hash', 'SELECT * FROM txrelay.status(hash => %s)', '0x' + of.hex(),
                     session=self.app)
        self.relay_does('leader_finish', self.finish,
                        *[(n, h32(f'b{n}'), BLOCK, 'ok') for n in nonces])
        self.look_around()

    def comes_back(self):
        """Used up by somebody else, back in the outbox, asked to pay more, rejected; a hole,
        filled."""
        ids, nonces = self.new(2, retries=1)
        self.relay_does('leader_requeue', self.requeue,
                        *[(n, 'usurped', 'foreign') for n in nonces])
        self.sql('bump', 'SELECT txrelay.bump(%s, 5)', ids[1], session=self.app)
        self.assertEqual(self.sql('cancel', 'SELECT txrelay.cancel(%s)', ids[0], session=self.app),
                         [('cancelled',)])
        self.sql('leader_reject', 'SELECT txrelay.leader_reject(%s, %s, %s::bigint[], %s::text[], '
                                  '%s::text[])', self.alice,
                 self.epoch, ids[1:], ['failed'], ['x'])
        self.look_around()
        self.relay_does('leader_fill', self.fill, [self.next])
        self.relay_does('leader_finish', self.finish,
                        (self.next, h32(f'fill{self.next}'), BLOCK, 'ok'))
        self.next += 1

    def around(self):
        self.superuser().rows("UPDATE txrelay.idempotency_keys "
                              "SET created_at = created_at - interval '2 days' "
                              "WHERE account = %s AND key IN (SELECT key "
                              "FROM txrelay.idempotency_keys WHERE account = %s "
                              "ORDER BY id LIMIT 2)", self.alice, self.alice)
        self.sql('leader_account', 'SELECT * FROM txrelay.leader_account(%s, %s)', self.alice,
                 self.epoch)
        self.sql('leader_nonce', 'SELECT txrelay.leader_nonce(%s, %s, %s)', self.alice, self.epoch,
                 self.next)
        self.sql('leader_cleanup', "SELECT txrelay.leader_cleanup(%s, %s, '1 day', 10)", self.alice,
                 self.epoch)
        self.sql('enqueue_many', "SELECT txrelay.enqueue_many('alice', ARRAY['\\x01']::bytea[], "
                                 "ARRAY[%s])", f'k{self.next}',
                 session=self.app)
        tx = self.sql('by key', "SELECT txrelay.enqueue('alice', '\\x01', key => %s)",
                      f'k{self.next}', session=self.app)[0][0]
        self.sql('cancel', 'SELECT txrelay.cancel(%s)', tx, session=self.app)
        self.sql('blocked', 'SELECT * FROM txrelay.blocked_accounts', session=self.app)
        self.sql('blocked relays', 'SELECT * FROM txrelay.blocked_relays', session=self.app)
        self.sql('mid_submission', "SELECT * FROM txrelay.leader_claim(%s, 'other', 'other:1', "
                                   "false, 1000, 1000)", self.alice)

    def life(self):
        self.ends()
        self.comes_back()
        self.around()

    def fill_tables(self):
        self.app.rows("SELECT txrelay.enqueue_many('alice', array_fill('\\x0102'::bytea, "
                      "ARRAY[%s]), %s, 5)", 2 * ROWS,
                      [f'filled {n}' for n in range(2 * ROWS)])
        ids = [r[0] for r in self.owner.rows('SELECT id FROM txrelay.outbox ORDER BY id LIMIT %s',
                                             ROWS)]
        nonces = list(range(self.next, self.next + ROWS))
        self.admit(self.relay, self.epoch, ids, nonces)
        self.state(self.relay, self.epoch, *[(n, h32(n), 'ready') for n in nonces])
        self.next += ROWS
        self.superuser().rows('''SET session_replication_role = replica;
            INSERT INTO txrelay.pending_transactions (account, nonce, account_id, id, call, hash,
            attempt, attempts, state, epoch, created_at)
                SELECT 2, nonce, account_id, id + 1000000, call, hash, attempt, attempts, state,
                epoch, created_at
                FROM txrelay.pending_transactions;
            INSERT INTO txrelay.attempts (account, nonce, number, id, hash, extrinsic, tip,
            spec_version, transaction_version, block, epoch)
                SELECT 2, nonce, number, id + 1000000, hash, extrinsic, tip, spec_version,
                transaction_version, block, epoch
                FROM txrelay.attempts;
            INSERT INTO txrelay.idempotency_keys (account, key, id, payload_sha256)
            SELECT 2, key, id, payload_sha256
                FROM txrelay.idempotency_keys;
            INSERT INTO txrelay.outbox (account, call) SELECT 2, call FROM txrelay.outbox;
            INSERT INTO txrelay.finished_transactions (id, account, nonce, outcome, created_at,
            finished_at)
                SELECT a * 10000000 + n, a, n + 10000000, 'ok', now(), now()
                FROM generate_series(1, 2) a, generate_series(1, %s) n''' % ROWS)
        # ids go on behind those of the records, so what waits is counted again
        self.epoch = self.lead(e1=3600000, e2=3600000)
        self.enqueue()

    def know_as_empty(self):
        root = self.superuser()
        for (table,) in root.rows("SELECT oid::regclass::text FROM pg_class "
                                  "WHERE relnamespace = 'txrelay'::regnamespace "
                                  "AND relkind = 'r' AND relname <> 'accounts'"):
            root.rows(f'ALTER TABLE {table} SET (autovacuum_enabled = off)')
            root.rows(f'VACUUM ANALYZE {table}')

    def test_of_empty_tables_fit_full_ones(self):
        self.know_as_empty()
        for _ in range(7):  # five plans of their own, then the one that is kept
            self.life()
        self.fill_tables()
        self.full = True
        for _ in range(2):
            self.life()

    def test_status_plans_one_place_and_says_what_the_view_says(self):
        """Of each place that a transaction can be at, by id and by hash; while tables grow."""
        self.app.conn.notices = planned = Notices()
        self.app.rows('SET client_min_messages = log')
        self.know_as_empty()
        for full in (False, True):
            if full:
                self.fill_tables()
            ids, nonces = self.new(8)
            self.relay_does('leader_finish', self.finish,
                            *[(n, h32(n), BLOCK, 'ok') for n in nonces[:2]])
            self.relay_does('leader_requeue', self.requeue, (nonces[2], 'usurped', 'foreign'))
            self.relay_does('leader_record_status', self.state,
                            (nonces[3], h32(nonces[3]), 'refused', None, None, 'no'))
            self.relay_does('leader_fill', self.fill, [self.next])
            ids += self.enqueue(2) + self.enqueue(1, not_before='2099-01-01')
            ids.append(self.app.value('SELECT txrelay.enqueue_signed(%s)',
                                      extrinsic(f'at {self.next}')))
            self.app.rows('SELECT txrelay.cancel(%s)', ids[-3])
            for way, given in [('id', i) for i in ids
                               + [max(ids) + 1000]] + [('hash', '0x' + h32(n).hex())
                                                       for n in nonces]:
                self.assertEqual(*self.both(way, given), f'{way} {given}')
            filler, = self.app.dicts('SELECT * FROM txrelay.status(hash => %s)',
                                     '0x' + h32(f'fill{self.next}').hex())
            self.assertEqual((filler['id'], filler['nonce'], filler['stage']),
                             (None, self.next, 'pending'))
            self.next += 1
        self.app.rows('SET debug_print_plan = on')
        for tx in ids:
            planned.kept.clear()
            self.app.rows('SELECT * FROM txrelay.status(%s)', tx)
            self.assertLessEqual(len([p for p in planned.kept if 'plan:' in p]), 2,
                                 'the call itself, and the place where it is')
        self.app.rows('RESET debug_print_plan')

    def both(self, way, given):
        """What status says, and what the view says, which keeps no plan."""
        got = self.app.dicts(f'SELECT * FROM txrelay.status({way} => %s)', given)
        tx = given if way == 'id' else self.owner.value(
            'SELECT id FROM txrelay.attempts WHERE hash = decode(substr(%s, 3), %s)', given, 'hex')
        return got, self.owner.dicts('SELECT * FROM txrelay.transactions WHERE id = %s', tx)

    def test_nothing_is_compiled(self):
        """A pooler keeps our jit = off from the server. Where a function turns sequential scans
        off and a plan has one all the same, its cost is above ten thousand millions and the server
        compiles it: seconds, at each call, on a busy machine."""
        root = self.superuser()
        for name, value in (('session_preload_libraries', 'auto_explain'),
                            ('auto_explain.log_min_duration', '0'),
                            ('auto_explain.log_nested_statements', 'on')):
            root.rows(f"ALTER DATABASE {self.db} SET {name} = '{value}'")
        plans = Notices()
        self.relay, self.app = self.session('relay'), self.session('app')
        for session in (self.relay, self.app):
            session.conn.notices = plans
            session.rows('SET client_min_messages = log')
        self.life()
        for fingerprint in (None, '', 'x'):
            self.relay.rows('SELECT * FROM txrelay.leader_scan(%s, %s::bigint[], p_fingerprint '
                            '=> %s)', [self.alice, self.bob],
                            [-1, -1], fingerprint)
            self.relay.rows("SELECT * FROM txrelay.leader_renew('relay-a', %s, %s::bigint[], "
                            "3600000, 3600000, p_fingerprint => %s)",
                            [self.alice], [self.epoch], fingerprint)
        self.relay.rows("SELECT * FROM txrelay.member_heartbeat('relay-a', 'a', 1, 5000)")
        self.relay.rows("SELECT * FROM txrelay.leader_evict(%s)", 7)
        self.app.rows('SELECT * FROM txrelay.leaders')
        text = [p for p in plans.kept if 'cost=' in p]
        self.assertGreater(len(text), 100)
        for plan in text:
            most = max(float(c) for c in re.findall(r'cost=[\d.]+?\.\.([\d.]+) ', plan))
            self.assertLess(most, 100000, plan)


if __name__ == '__main__':
    unittest.main()
