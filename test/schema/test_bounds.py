"""outbox_max bounds what waits, whichever way it comes in and whatever is rolled back
(docs/design.md, "How many may wait")."""
import itertools

import psycopg2

from pgcase import DEADLINE_S, ROOT, h32
from test_feeds import FeedCase
from test_signed import extrinsic

MOST = 16  # so low that a count leaves room for nothing above it
CALLS = 40


class Bounds(FeedCase):
    """Each way asks for one row, or three, and returns nothing."""
    FRESH = True

    def setUp(self):
        super().setUp()
        self.root = root = self.superuser()
        # As if the default were lower: accounts without a policy take the short way through
        # enqueue.
        root.rows("CREATE OR REPLACE FUNCTION txrelay.outbox_most(p_policy jsonb) RETURNS bigint "
                  "LANGUAGE sql STABLE AS "
                  f"'SELECT {MOST}::bigint'")
        # a thief who sees more than applications do
        root.rows('GRANT SELECT ON txrelay.outbox_room TO app, relay')
        if not root.value("SELECT count(*) FROM pg_roles WHERE rolname = 'desk'"):
            root.rows('CREATE ROLE desk; GRANT desk TO app; GRANT txrelay_app TO desk')
        root.rows('GRANT SELECT ON txrelay.outbox_room TO desk')
        self.relay.rows('SELECT txrelay.token_create(%s, %s, %s)', 'shop', h32('shop'), ['enqueue'])
        self.users = {user: [self.session(user) for _ in range(2)] for user in ('app', 'relay')}
        for s in self.users['relay']:
            s.rows('PREPARE enqueue AS ' + (ROOT / 'http' / 'sql' / 'enqueue.sql').read_text())
        for s in self.users['app'] + self.users['relay']:
            s.rows(f"SET statement_timeout = '{DEADLINE_S} s'")  # nobody waits for another one
        self.failed, self.numbers = [], itertools.count()

    # ---- the ways in ----

    def call(self, s, text, *args):
        s.rows(f'SELECT txrelay.{text}', *args)

    def enqueue_one(self, s):
        self.call(s, "enqueue('alice', '\\x01')")

    def keyed(self, s):
        self.call(s, "enqueue('alice', '\\x01', key => %s)", f'k{next(self.numbers)}')

    def searching(self, s):
        self.call(s, "enqueue('5alice', '\\x01')")

    def delayed(self, s):
        self.call(s, "enqueue('alice', '\\x01', delay => '1 h')")

    def created(self, s):
        self.call(s, "enqueue('alice', '\\x01', creator => %s)", f'c{next(self.numbers)}')

    def as_group(self, s):
        s.rows('SET LOCAL ROLE desk')
        self.enqueue_one(s)

    def many(self, s):
        self.call(s, "enqueue_many('alice', array_fill('\\x01'::bytea, ARRAY[3]))")

    def many_searching(self, s):
        self.call(s, "enqueue_many('5alice', ARRAY['\\x01'::bytea, '\\x01'], ARRAY[%s, NULL])",
                  f'm{next(self.numbers)}')

    def signed(self, s):
        self.call(s, 'enqueue_signed(%s)', extrinsic(f's{next(self.numbers)}'))

    def retried(self, s):
        self.call(s, 'retry(%s)', next(self.next_failed))

    def token(self, s):
        values = ['alice', '01', f't{next(self.numbers)}', *[None] * 12, h32('shop').hex()]
        self.assertIsNotNone(s.value(f"EXECUTE enqueue({', '.join(['%s'] * len(values))})",
                                     *values))

    def feed(self, s):
        number = s.value("SELECT last_number + 1 FROM txrelay.feed_cursors WHERE name = 'prices'")
        self.take(number, [b'\x01'] * 3, s)

    strict = enqueue_one

    WAYS = ('enqueue_one', 'keyed', 'searching', 'delayed', 'created', 'as_group', 'many',
            'many_searching', 'signed', 'retried', 'token',
            'strict', 'feed')
    ROLES = {'as_group': 'desk', 'token': 'token/shop', 'feed': 'feed/prices', 'retried': 'desk'}
    WHOLE = {'feed': 2}  # a batch is taken if there is room for one of its calls
    ALONE = ('strict', 'feed')  # two transactions wait for one another anyway

    def most(self, way):
        return MOST + self.WHOLE.get(way, 0)

    def begun(self, way):
        """Nothing waits; two sessions that use this way."""
        for s in itertools.chain(*self.users.values()):  # what failed may have left a transaction
            s.conn.rollback()
        self.root.rows('TRUNCATE txrelay.outbox, txrelay.outbox_presigned, txrelay.outbox_room, '
                       'txrelay.retries')
        self.policy(order='strict' if way == 'strict' else 'any')
        # of a role that the login is a member of, and does not enqueue as
        if way == 'retried' and not self.failed:
            self.app.rows('SET ROLE desk')
            for _ in range(CALLS // MOST + 1):
                ids = self.enqueue(MOST)
                for id in ids:
                    self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', id), 'cancelled')
                self.failed += ids
            self.app.rows('RESET ROLE')
            self.root.rows('TRUNCATE txrelay.outbox_room')
        self.next_failed = iter(self.failed)
        return self.users['relay' if way in ('token', 'feed') else 'app']

    def waiting(self, way):
        return self.owner.value('SELECT count(*) FROM (SELECT coalesce(role, creator) AS who '
                                'FROM txrelay.outbox UNION ALL '
                                'SELECT coalesce(role, creator) FROM txrelay.outbox_presigned) w '
                                'WHERE who = %s', self.ROLES.get(way, 'app'))

    def rooms(self, s):
        return s.rows('SELECT * FROM txrelay.outbox_room ORDER BY id')

    def tried(self, s, way, keep=lambda s, before: True, back='ROLLBACK TO s'):
        """One call; it is taken back if it was refused, or if `keep` does not want it. True: it
        was refused."""
        before = self.rooms(s)
        refused = False
        try:
            getattr(self, way)(s)
        except psycopg2.Error as e:
            self.assertEqual(e.pgcode, 'TR013', str(e))
            refused = True
        if refused or not keep(s, before):
            s.rows(back)
        return refused

    def patterns(self):
        """What is taken back, by name: keep(session, the rooms that it saw before)."""
        count = itertools.count()
        yield 'none', lambda s, before: True
        for n, phase in ((2, 0), (2, 1), (3, 1)):
            yield f'each {n}th from {phase} on', lambda s, before: next(count) % n != phase
        yield 'what was counted', lambda s, before: self.rooms(s) == before

    def test_no_rollback_evades_the_bound(self):
        for way in self.WAYS:
            for name, keep in self.patterns():
                with self.subTest(way, taken_back=name, by='savepoints'):
                    s = self.begun(way)[0]
                    s.begin()
                    refused = 0
                    for _ in range(CALLS):
                        s.rows('SAVEPOINT s')
                        refused += self.tried(s, way, keep)
                    s.commit()
                    self.ended(way, name, refused)
                with self.subTest(way, taken_back=name, by='transactions'):
                    s = self.begun(way)[0]
                    refused = 0
                    for _ in range(CALLS):
                        s.begin()
                        refused += self.tried(s, way, keep, 'ROLLBACK')
                        if (s.conn.get_transaction_status()
                                == psycopg2.extensions.TRANSACTION_STATUS_INTRANS):
                            s.commit()
                    self.ended(way, name, refused)

    def ended(self, way, name, refused):
        self.assertLessEqual(self.waiting(way), self.most(way))
        if name == 'what was counted':
            self.assertEqual(self.waiting(way), 0)
        else:
            self.assertGreater(refused, 0)
            self.assertGreater(self.waiting(way), MOST - 3)

    def test_two_sessions(self):
        """Each counts what is committed and its own: so many open transactions may hold so many
        times the bound."""
        for way, level in itertools.product(self.WAYS, ('READ COMMITTED', 'REPEATABLE READ')):
            with self.subTest(way, level=level):
                sessions = self.begun(way)
                alone = way in self.ALONE
                if not alone:
                    for s in sessions:
                        s.begin(level)
                for _ in range(CALLS // 2):
                    for s in sessions:
                        if alone:
                            s.begin(level)
                        s.rows('SAVEPOINT s')
                        self.tried(s, way)
                        if alone:
                            s.commit()
                for s in sessions if not alone else ():
                    s.commit()
                times = 1 if alone else 2
                self.assertLessEqual(self.waiting(way), times * self.most(way))
                self.assertGreater(self.waiting(way), times * (MOST - 3))

    def test_nobody_writes_past_the_functions(self):
        names = [r[0] for r in self.owner.rows(
            "SELECT rolname FROM pg_roles WHERE rolname IN ('app', 'relay', 'follower', 'nobody')")]
        self.assertEqual(len(names), 4)
        for name, table in itertools.product(names, ('outbox', 'outbox_presigned')):
            for right in ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE'):
                with self.subTest(name, table=table, right=right):
                    self.assertFalse(self.owner.value('SELECT has_table_privilege(%s, %s, %s)',
                                                      name, f'txrelay.{table}', right))
        self.assertFalse(self.owner.value("SELECT has_sequence_privilege('app', "
                                          "'txrelay.transaction_id', 'UPDATE')"))
