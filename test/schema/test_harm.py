"""What applications cannot do: break a leader's statement, make one wait, lead, or act for one
another."""
import itertools
import random
import threading
import unittest

from pgcase import ROOT, Background, Case, h32, wait_until
from test_signed import extrinsic

MOST = str(2**128 - 1)
EXTREMES = {  # of each type that a parameter of an application's function has
    'text': ["''", "repeat('x', 100000)", r"E'\x01\x1b\x7f\n\r\t'", r"U&'\+01F600\FEFF\202E'",
             "'0x'", "'0xff'", "'1'", 'NULL'],
    'bytea': ["''", r"'\x00'", r"'\xff'", "decode(repeat('ff', 1048576), 'hex')",
              "decode(repeat('ff', 1048577), 'hex')", 'NULL'],
    'integer': ['-2147483648', '-1', '0', '1', '2147483647', 'NULL'],
    'bigint': ['-9223372036854775808', '-1', '0', '1', '9223372036854775807', 'NULL'],
    'integer[]': ["'{}'", "'{NULL}'", "'{-1,0,1,1}'", "'[-5:-4]={1,2147483647}'",
                  "'{{1},{-2147483648}}'", 'NULL'],
    'numeric': ["'NaN'", "'Infinity'", "'-Infinity'", '-1', '0', '0.1', '1e-16383', "('1e131071')",
                MOST, f'{MOST} + 1', 'NULL'],
    'timestamp with time zone': ["'infinity'", "'-infinity'", "'294276-12-31 23:59:59Z'",
                                 "'4713-01-01 00:00:00Z BC'",
                                 "'9999-12-31 23:59:59.999999Z'", "'10000-01-01Z'", "'epoch'",
                                 'NULL'],
    'interval': ["'178000000 years'", "'-178000000 years'", "'0'", "'1 microsecond'", "'-1 day'",
                 "'1000 years'", 'NULL'],
    'xid': ["'0'", "'2'", "'4294967295'", 'NULL'],
    'bytea[]': ["'{}'", "ARRAY[NULL]::bytea[]",
                r"ARRAY[['\x01', '\x02'], ['\x03', '\x04']]::bytea[]",
                r"'[-5:-4]={\\x01,\\x02}'::bytea[]", "array_fill('\\x01'::bytea, ARRAY[100001])",
                'NULL'],
    'text[]': ["'{}'", "ARRAY[NULL]::text[]", "ARRAY['']::text[]", "ARRAY[['k', 'l']]::text[]",
               "ARRAY[repeat('x', 201)]", 'NULL'],
}
GOOD = {'text': "'x'", 'bytea': r"'\x0001'", 'integer': '0', 'integer[]': "'{1}'", 'bigint': '1',
        'numeric': '5',
        'timestamp with time zone': "clock_timestamp() + interval '1 h'", 'interval': "'1 h'",
        'xid': "'3'", 'bytea[]': r"ARRAY['\x0001']::bytea[]",
        'text[]': "ARRAY['key']::text[]"}
REFUSED = ('TR010', 'TR011', 'TR012', '22')  # by us, or by Postgres while it reads the argument


class Harm(Case):
    WIDE = True

    def setUp(self):
        super().setUp()
        self.epoch = self.lead()

    def statement(self, name, types, *values):
        """A statement of the relay's as it is in store/sql."""
        self.relay.rows('DEALLOCATE ALL')
        self.relay.rows(f'PREPARE s ({types}) AS '
                        + (ROOT / 'store' / 'sql' / f'{name}.sql').read_text())
        return self.relay.rows(f"EXECUTE s ({', '.join(['%s'] * len(values))})", *values)

    def read(self):
        """The ids that may be admitted, and what is said of those that are passed over."""
        rows = self.statement('read_outbox', 'int, bigint, int, bigint, bigint', self.alice,
                              self.epoch, 1000, 0, 10)
        return [r[0] for r in rows if r[1] is not None], [(r[0], r[4]) for r in rows
                                                          if r[1] is None]

    def leader_pass(self):
        """Everything that a leader does while nothing is new. Returns what it may admit."""
        self.statement('poll_requests', 'int, bigint', self.alice, self.epoch)
        self.statement('find_due', 'int[], bigint[], bigint[], int', [self.alice], [self.epoch],
                       [None], 2**31 - 1)
        self.statement('read_snapshot', 'int, bigint, bigint, int', self.alice, self.epoch, -1,
                       1000)
        return self.read()[0]

    def end_all(self):
        """The rest of a leader's work: new bytes, statuses, and every pending transaction in a
        final block."""
        pending = self.owner.rows('SELECT nonce, id FROM txrelay.pending_transactions '
                                  'ORDER BY nonce')
        if not pending:
            return
        nonces, hashes = [p[0] for p in pending], [h32(f'again {p[0]}') for p in pending]
        self.attempt(self.relay, self.epoch, nonces, hashes)
        self.state(self.relay, self.epoch, *((n, h, 'ready') for n, h in zip(nonces, hashes)))
        for _, tx in pending:
            self.app.rows('SELECT * FROM txrelay.status(%s::bigint)', tx)
            self.app.rows('SELECT * FROM txrelay.history(%s)', tx)
        self.finish(self.relay, self.epoch,
                    *((n, h, h32('block'), 'ok') for n, h in zip(nonces, hashes)))

    def admit_all(self):
        ids = self.leader_pass()
        first = self.owner.value('SELECT coalesce(next_nonce, 0) FROM txrelay.accounts '
                                 'WHERE account = %s', self.alice)
        if ids:
            self.admit(self.relay, self.epoch, ids, list(range(first, first + len(ids))),
                       hashes=[h32(f'{first + n}') for n in range(len(ids))])
        return ids


class Extremes(Harm):
    """No argument of any type at any extreme makes a leader's statement fail."""

    def functions(self):
        """Those that an application may call, with their parameters' names, types and defaults."""
        return self.owner.rows("""SELECT p.proname, p.proargnames[1:p.pronargs], array(SELECT
            format_type(t, NULL)
            FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY u (t, n)
            ORDER BY n), p.pronargs - p.pronargdefaults
            FROM pg_proc p WHERE p.pronamespace = 'txrelay'::regnamespace
            AND has_function_privilege('app', p.oid, 'EXECUTE')
            ORDER BY 1""")

    def call(self, name, arguments):
        """True if it is accepted; a refusal must be one that names what is wrong."""
        try:
            self.app.rows("SELECT * FROM "
                        f"txrelay.{name}({', '.join(f'{k} => {v}' for k, v in arguments.items())})")
            return True
        except self.app.conn.Error as e:
            self.assertTrue(e.pgcode.startswith(REFUSED), f'{name} {arguments}: {e.pgcode} {e}')
            return False

    def arguments(self, names, types, required, queued, **extremes):
        """What a call is given: good values for what it needs, and these."""
        given = {n: GOOD[t] for n, t in list(zip(names, types))[:required]}
        given.update({'account': "'alice'"} if 'account' in names[:required] else {})
        given.update({'id': str(queued)} if 'id' in names else {})
        return {**given, **extremes}

    def round(self):
        """A leader's whole round: everything that there is is admitted, and ends."""
        while self.admit_all():
            pass
        self.leader_pass()
        self.end_all()
        self.assertEqual(self.count('pending_transactions'), 0)
        self.leader_pass()

    def test_every_parameter_of_every_function(self):
        tried = 0
        queued, = self.enqueue()
        for name, names, types, required in self.functions():
            names = names or []
            for at, (parameter, kind) in enumerate(zip(names, types)):
                for extreme in EXTREMES[kind]:
                    self.call(name, self.arguments(names, types, required, queued,
                                                   **{parameter: extreme}))
                    tried += 1
            self.leader_pass()
        self.assertGreater(tried, 200)
        self.enqueue()
        while self.admit_all():
            pass
        self.assertEqual(self.owner.rows("SELECT id FROM txrelay.outbox WHERE not_before IS NULL "
                                         "OR not_before < now()"), [])
        self.round()

    def test_pairs_of_parameters(self):
        """Of each two options of enqueue and enqueue_many each pair of values that are accepted
        alone, without the large ones, and some of the others; of the other functions some of
        all."""
        chosen, tried, accepted = random.Random(13), 0, 0
        queued, = self.enqueue()
        for name, names, types, required in self.functions():
            values = {n: EXTREMES[t] for n, t in zip(names or [], types)}
            many = name in ('enqueue', 'enqueue_many')
            alone = {n: [v for v in EXTREMES[t] if 'repeat(' not in v and 'array_fill(' not in v and
                         self.call(name, self.arguments(names, types, required, queued, **{n: v}))]
                         if many else []
                     for n, t in zip(names or [], types)}
            for a, b in itertools.combinations(values, 2):
                pairs = list(itertools.product(values[a], values[b]))
                pairs = set(itertools.product(alone[a], alone[b])) | set(
                    chosen.sample(pairs, min(len(pairs), 3 if many else 8)))
                for x, y in sorted(pairs):
                    accepted += self.call(name, self.arguments(names, types, required, queued,
                                                               **{a: x, b: y}))
                    tried += 1
            self.leader_pass()
        self.assertGreater(tried, 1000)
        self.assertGreater(accepted, 300)
        self.round()

    def test_times_that_are_no_times_are_refused(self):
        for argument in ('deadline', 'not_before'):
            for value in ('infinity', '10000-01-01Z') + (('-infinity',) if argument == 'not_before'
                                                         else ()):
                for call in (f"txrelay.enqueue('alice', '\\x01', {argument} => '{value}')",
                             f"txrelay.enqueue_many('alice', ARRAY['\\x01']::bytea[], {argument} "
                             f"=> '{value}')"):
                    self.refused('TR011', self.app.rows, f'SELECT {call}',
                                 text=(argument, 'before the year 10000', 'Leave it out'))
        self.assertEqual(self.count('outbox'), 0)

    def test_rows_that_are_there_already(self):
        """An older version let them in."""
        ids = self.enqueue(8)
        for tx, column, value in zip(ids, ['deadline'] * 3 + ['not_before'] * 3,
                                     ('infinity', '-infinity', '294276-12-31Z') * 2):
            self.owner.rows(f'UPDATE txrelay.outbox SET {column} = %s WHERE id = %s', value, tx)
        self.assertEqual(self.admit_all(), [ids[0], ids[2], ids[4], ids[6], ids[7]])
        self.assertEqual(self.status(ids[1])['outcome'], 'expired')
        self.owner.rows("UPDATE txrelay.pending_transactions SET deadline = 'infinity' "
                        "WHERE id = %s", ids[6])
        self.owner.rows("UPDATE txrelay.pending_transactions SET deadline = '-infinity' "
                        "WHERE id = %s", ids[7])
        self.leader_pass()
        self.owner.rows("UPDATE txrelay.pending_transactions SET deadline = 'infinity'")
        self.owner.rows("UPDATE txrelay.outbox SET not_before = 'infinity'")
        self.leader_pass()  # the nearest time is none


class Locks(Harm):
    """A leader never waits for what an application may lock."""

    def setUp(self):
        super().setUp()
        self.other = self.session('app')
        self.relay.rows("SET lock_timeout = '100ms'")  # whoever waits fails with 55P03

    def holds(self, sql, *args):
        self.other.begin()
        self.other.rows(sql, *args)

    def test_a_held_row_is_passed_over_and_named(self):
        for sql in ('SELECT txrelay.cancel(%s)', 'SELECT txrelay.bump(%s, 5)'):
            ids = self.enqueue(3)
            self.other.rows("SET application_name = 'batch job'")
            self.holds(sql, ids[1])
            free, held = self.read()
            self.assertEqual(free, [ids[0], ids[2]])
            self.assertEqual([h[0] for h in held], [ids[1]])
            for part in (f'backend {self.other.pid}', 'user app', 'batch job',
                         'idle in transaction'):
                self.assertIn(part, held[0][1])
            self.assertIn('blocked by backend', self.status(ids[1])['error'])
            first = self.account()['next_nonce'] or 0
            self.refused('TR002', self.admit, self.relay, self.epoch, ids,
                         [first, first + 1, first + 2],
                         text=('2 of 3', f'transaction {ids[1]} is blocked by backend '
                                         f'{self.other.pid}', 'user app'))
            self.refused('TR002', self.relay.rows,
                         'SELECT txrelay.leader_reject(%s, %s, %s, %s, %s)', self.alice, self.epoch,
                         [ids[1]], ['failed'], ['x'], text=f'transaction {ids[1]} is blocked by')
            self.assertEqual(self.status(ids[0])['error'], None)
            self.other.rollback()
            # not forgotten, though the lock has left its trace in the row
            self.assertEqual(self.read(), (ids, []))
            self.assertIsNone(self.status(ids[1])['error'])
            self.admit_all()
            self.assertEqual(self.count('outbox'), 0)

    def test_a_row_held_by_a_savepoint(self):
        ids = self.enqueue(2)
        self.other.begin()
        self.other.rows('SAVEPOINT a')
        self.other.rows('SELECT txrelay.cancel(%s)', ids[0])
        self.assertEqual(self.read()[0], [ids[1]])
        self.other.rows('ROLLBACK TO a')
        self.assertEqual(self.read(), (ids, []))

    def test_what_is_held_for_long_is_shown(self):
        ids = self.enqueue(2)
        self.holds('SELECT txrelay.bump(%s, 5)', ids[0])
        sql = ("SELECT id, since IS NOT NULL, reason FROM txrelay.blocked_accounts "
               "WHERE account = 'alice'")
        wait_until(lambda: self.app.rows(sql), 'it has been held for 3 s')
        tx, since, reason = self.app.one(sql)
        self.assertEqual((tx, since), (ids[0], True))
        self.assertIn(f'blocked by backend {self.other.pid} (user app', reason)
        self.other.rollback()
        self.assertEqual(self.app.rows(sql), [])

    def test_a_held_row_of_each_kind_is_named_everywhere(self):
        """In the log (what is read as passed over), in blocked_accounts, and in waits of its
        transaction."""
        plain, later = self.enqueue(2)
        signed = [self.app.value('SELECT txrelay.enqueue_signed(%s)', extrinsic(text))
                  for text in ('new', 'its turn')]
        self.owner.rows("UPDATE txrelay.outbox SET not_before = clock_timestamp() - interval '1 s' "
                        "WHERE id = %s", later)
        self.owner.rows('UPDATE txrelay.outbox_presigned SET nonce = 0 WHERE id = %s', signed[1])
        sql = "SELECT id, code, reason FROM txrelay.blocked_accounts WHERE account = 'alice'"
        self.epoch = self.lead(e1=3600000, e2=3600000)
        self.holds('SELECT 1')
        for tx in (plain, later, *signed):
            with self.subTest(tx=tx):
                self.other.rows('SAVEPOINT a')
                self.other.rows('SELECT txrelay.cancel(%s)', tx)
                free, held = self.read()
                self.assertNotIn(tx, free)
                self.assertEqual([h[0] for h in held], [tx])
                wait_until(lambda: self.app.rows(sql), 'the transaction has lasted for 3 s')
                of, code, reason = self.app.one(sql)
                self.assertEqual((of, code), (tx, 'row_held'))
                waits = self.status(tx)['waits']
                self.assertEqual(waits[:10], 'row_held: ')
                for text in (held[0][1], reason, waits):
                    self.assertIn(f'blocked by backend {self.other.pid} (user app', text)
                self.other.rows('ROLLBACK TO a')
                self.assertEqual(self.app.rows(sql), [])
                self.assertNotIn('row_held', self.status(tx)['waits'])
                self.assertEqual(self.read(), ([plain, later, signed[1], signed[0]], []))

    def test_deadlines_of_held_rows_wait_without_a_hot_loop(self):
        held, other = self.enqueue(2)
        self.owner.rows("UPDATE txrelay.outbox SET deadline = clock_timestamp() - interval '1 s'")
        self.holds('SELECT txrelay.cancel(%s)', held)
        looked = self.look(self.epoch)
        self.assertEqual((self.status(other)['outcome'], self.status(held)['stage']),
                         ('expired', 'outbox'))
        self.assertEqual([r['next_ms'] for r in looked], [None])
        self.other.rollback()
        self.look(self.epoch)
        self.assertEqual(self.status(held)['outcome'], 'expired')

    def test_a_held_bump_is_left_for_later(self):
        _, ids = self.pending(2, epoch=self.epoch)
        for tx in ids:
            self.app.rows('SELECT txrelay.bump(%s, 5)', tx)
        self.holds('SELECT txrelay.bump(%s, 9)', ids[0])
        self.attempt(self.relay, self.epoch, [0, 1], [h32('a'), h32('b')], tip=5)
        self.look(self.epoch)
        self.assertEqual(self.owner.rows('SELECT id, tip FROM txrelay.bumps'), [(ids[0], 5)])
        self.other.commit()
        self.assertEqual([(r['nonce'], r['tip']) for r in self.look(self.epoch)], [(0, 9)])

    def test_what_must_not_be_passed_over_fails_and_names_the_holder(self):
        """A lost commit's transaction: passed over, it would be sent again if the application
        rolls back."""
        ids = self.enqueue(1, call=b'\7\7')
        self.holds('SELECT txrelay.cancel(%s)', ids[0])
        self.owner.rows('UPDATE txrelay.accounts SET reconcile_from = 1, lost_heard = 5, '
                        'era_longest = 0')
        adopt = ('SELECT txrelay.leader_adopt(%s, %s, %s::bigint[], %s::bytea[], %s::bytea[], '
                 '%s::int[], %s::numeric[], %s::bigint[], '
                 '%s::bigint[], %s::bigint[], 1, 1, 5, true, 5)', self.alice, self.epoch, [0],
                 [h32('x')], [b'\x84\7\7'], [2], [0], [-1],
                 [-1], [None])
        self.refused('55P03', self.relay.rows, *adopt,
                     text=(f'transaction {ids[0]} is blocked by backend {self.other.pid}',))
        self.assertEqual(self.account()['reconcile_from'], 1)
        self.other.rollback()
        self.assertEqual(self.relay.value(*adopt), 1)

    # ---- every statement of a leader beside every lock ----

    def locks(self, queued, signed, pending, bumped):
        """What an application can lock, by the statements that it may call."""
        key = self.owner.value('SELECT lock_key FROM txrelay.leadership WHERE subject = %s',
                               self.alice)
        views = [r[0] for r in self.owner.rows("""SELECT c.oid::regclass::text FROM pg_class c
            WHERE c.relnamespace =
            'txrelay'::regnamespace AND c.relkind IN ('r', 'v', 'p')
            AND has_table_privilege('app', c.oid, 'SELECT')""")]
        return ([f'LOCK TABLE {v} IN ACCESS SHARE MODE' for v in views]
                + [f'SELECT txrelay.cancel({x})' for x in (queued, signed, pending)]
                + [f'SELECT txrelay.bump({x}, 50)' for x in (queued, pending, bumped)]
                + [f'SAVEPOINT a; SELECT txrelay.cancel({x})' for x in (queued, signed)]
                + ["SELECT txrelay.enqueue('alice', '\\x0102', key => 'k')",
                   f"SELECT pg_advisory_lock({key})",
                   f"SELECT pg_advisory_lock(9001, {self.alice})",
                   f"SELECT pg_advisory_lock_shared(9001, {self.alice})",
                   'SELECT pg_advisory_lock(9002, 0)',
                   f'SELECT pg_advisory_lock(9003, {self.alice})',
                   'SELECT count(*) FROM txrelay.transactions',
                   "SELECT count(*) FROM txrelay.history(1)"])

    def statements(self, queued, signed, pending, bumped):
        """Each function of the leader's, with arguments that reach the rows. NULL: no batch."""
        a, e = self.alice, self.epoch
        one = 'ARRAY[%s]'
        return {
            'leader_account': f'({a}, {e})', 'leader_snapshot': f'({a}, {e}, -1, 9)',
            'leader_outbox': f'({a}, {e}, 9)',
            'leader_presigned': f'({a}, {e}, 9, 2, 10)', 'leader_poll_requests': f'({a}, {e})',
            'leader_due': f"('{{{a}}}', '{{{e}}}', '{{NULL}}', 10)",
            'leader_admit': f"({a}, {e}, '{{{queued}}}', '{{2}}', ARRAY[sha256('a')], "
                            f"ARRAY['\\x84'::bytea], '{{0}}', '{{-1}}', '{{-1}}', 1, 1, 10)",
            'leader_admit_presigned': f"({a}, {e}, '{{{signed}}}', '{{2}}', ARRAY[sha256('b')], "
                                      f"'{{1}}', '{{0}}', '{{-1}}', '{{-1}}', '{{1}}', 1, 1, 2)",
            'leader_note': f"({a}, {e}, '{{{signed}}}', '{{7}}', ARRAY[sha256('b')], '{{-1}}', "
                           f"'{{-1}}', '{{waits}}')",
            'leader_reject': f"({a}, {e}, '{{{queued}}}', '{{failed}}', '{{x}}')",
            'leader_attempt': f"({a}, {e}, '{{0}}', ARRAY[sha256('n')], ARRAY['\\x84'::bytea], "
                              f"'{{99}}', '{{-1}}', '{{-1}}', 1, 1, 10, '{{x}}')",
            'leader_record_status': f"({a}, {e}, '{{0}}', ARRAY[(SELECT hash "
                                    "FROM txrelay.pending_transactions WHERE nonce = 0)], "
                                    f"'{{ready}}', '{{NULL}}', '{{NULL}}', '{{NULL}}')",
            'leader_fill': f"({a}, {e}, '{{0}}', ARRAY['\\x00'::bytea], ARRAY[sha256('f')], "
                           f"ARRAY['\\x84'::bytea], '{{0}}', '{{-1}}', '{{-1}}', 1, 1, 10, "
                           f"'{{expired}}', '{{x}}')",
            'leader_finish': f"({a}, {e}, '{{0}}', ARRAY[sha256('q')], '{{NULL}}', '{{1}}', "
                             f"'{{NULL}}', '{{usurped}}', '{{x}}', '{{NULL}}')",
            'leader_requeue': f"({a}, {e}, '{{0}}', '{{NULL}}', '{{NULL}}', '{{NULL}}', "
                              f"'{{NULL}}', '{{usurped}}', '{{x}}', '{{NULL}}')",
            'leader_nonce': f'({a}, {e}, 9)', 'leader_pause': f"({a}, {e}, 'payment', 'x')",
            'leader_adopt': f"({a}, {e}, '{{5}}', ARRAY[sha256('z')], ARRAY['\\x8455'::bytea], "
                            f"'{{1}}', '{{0}}', '{{-1}}', '{{-1}}', '{{NULL}}', 1, 1, 5, true, 5)",
            'leader_heard': f'({a}, {e}, 7)', 'leader_feeds': f"('{{{a}}}', 'relay-a', 'a:1')",
            'leader_feed_take': f"({a}, {e}, 'prices', 0, sha256('p'), sha256('d'), "
                                f"ARRAY['\\x0103'::bytea], '{{0}}', '{{NULL}}', '{{NULL}}', "
                                f"'{{NULL}}', '{{NULL}}', '{{NULL}}', '{{NULL}}', '{{0}}')",
            'leader_obstacles': f"('{{{a}}}', '{{{e}}}', '{{node}}', '{{x}}', '{{0}}')",
            'leader_cleanup': f"({a}, {e}, interval '1 day', 100)",
            'leader_claim': f"({a}, 'relay-a', 'a:1', false, 3000, 9000)",
            'leader_renew': f"('relay-a', '{{{a}}}', '{{{e}}}', 3000, 9000)",
            'leader_scan': f"('{{{a}}}', '{{0}}')", 'leader_release': f"({a}, {e}, 'relay-a')",
            'leader_evict': '(4242)',
            'leader_webhooks': "('relay-a', 9, 9)",
            'leader_webhooks_done': "('{1}', 2, 'x', 1000, false)",
        }

    def test_each_statement_beside_each_lock(self):
        names = [r[0] for r in self.owner.rows("""SELECT p.proname FROM pg_proc p
            WHERE p.pronamespace = 'txrelay'::regnamespace
            AND p.proname LIKE 'leader\\_%%' AND has_function_privilege('relay', p.oid, 'EXECUTE')
            ORDER BY 1""")]
        _, (pending, bumped) = self.pending(2, epoch=self.epoch)
        self.app.rows('SELECT txrelay.bump(%s, 5)', bumped)
        queued, = self.enqueue()
        body = b'\x84\0' + h32('alice') + b'\1' + bytes(68)
        signed = self.app.value('SELECT txrelay.enqueue_signed(%s)',
                                bytes([len(body) << 2 & 255 | 1, len(body) >> 6]) + body)
        self.owner.rows("SELECT txrelay.feed_create('prices', 'alice', ARRAY[sha256('p')])")
        self.owner.rows("SELECT txrelay.webhook_create('hook', 'https://hook.example/')")
        statements = self.statements(queued, signed, pending, bumped)
        sited = self.sited_statements()
        self.assertEqual(sorted({**statements, **sited}), names,
                         'a new statement of the leader needs its place here')
        self.beside_locks(self.locks(queued, signed, pending, bumped), statements)
        _, granted, waiting = self.sited
        self.beside_locks([f'SELECT txrelay.cancel({x})' for x in (granted, waiting)]
                          + [f'SELECT txrelay.bump({x}, 50)' for x in (granted, waiting)]
                          + [f'LOCK TABLE txrelay.{v} IN ACCESS SHARE MODE'
                             for v in ('transactions', 'sites', 'site_members', 'follow_pending')]
                          + ["SELECT txrelay.enqueue('south', '\\x0102', key => 'k')"], sited)

    def sited_statements(self):
        """An account that has sites, with a granted and a waiting transaction."""
        south = self.register(self.relay, 'south', 44)
        epoch = self.claim(self.relay, account=south)['epoch']
        self.relay.rows('''SELECT txrelay.account_policy('south', '{"tip_cap": 100}')''')
        setup = (f"({south}, {epoch}, '{{s,t}}', '{{x,y}}', ARRAY[sha256('south'), "
                 f"sha256('south')], 0, false, false, false, 9, 64, 0, 10, '{{5,5}}')")
        self.relay.rows(f'SELECT txrelay.leader_site_setup{setup}')
        granted, waiting = [self.app.value("SELECT txrelay.enqueue('south', '\\x0001')")
                            for _ in range(2)]

        def store(tx, nonce):
            return (f"({south}, {epoch}, '{{grant}}', '{{1}}', '{{{tx}}}', "
                    f"ARRAY[sha256('s{nonce}')], '{{0}}', '{{{nonce}}}', '{{NULL}}', '{{40}}', "
                    "ARRAY['\\x84'::bytea], '{0}', '{1}', '{1}', '{NULL}', '{NULL}', "
                    "ARRAY[NULL]::bytea[], '{NULL}', '{NULL}', '{NULL}', '{}')")
        self.relay.rows(f'SELECT txrelay.leader_site_store{store(granted, 5)}')
        self.sited = south, granted, waiting
        return {'leader_site_setup': setup, 'leader_site_load': f'({south}, {epoch})',
                'leader_site_rows': f"({south}, {epoch}, 9, '{{}}')",
                'leader_site_match': f"({south}, {epoch}, ARRAY['\\x0001'::bytea], '{{NULL}}')",
                'leader_site_store': store(waiting, 6),
                'leader_site_note': f"({south}, {epoch}, 'ACTIVE', 0, 1, 'x', 0)"}

    def beside_locks(self, locks, statements):
        for lock in locks:
            for name, arguments in statements.items():
                with self.subTest(lock=lock, statement=name):
                    self.holds(lock)
                    self.owner.rows('UPDATE txrelay.accounts SET reconcile_from = %s',
                                    1 if name == 'leader_heard' else None)
                    self.relay.begin()
                    try:
                        self.relay.rows(f'SELECT txrelay.{name}{arguments}')
                    except self.relay.conn.Error as e:
                        # the row is passed over: read again
                        self.assertEqual(e.pgcode, 'TR002', f'{e}')
                        self.assertIn('blocked by', str(e))
                    self.relay.rollback()
                    self.other.rollback()
                    self.other.rows('SELECT pg_advisory_unlock_all()')
                    self.owner.rows('UPDATE txrelay.accounts SET reconcile_from = NULL '
                                    'WHERE reconcile_from IS NOT NULL')

    def test_waits_have_a_bound(self):
        """An application may lock a row after it was found free: whoever takes rows of an outbox
        bounds its waits."""
        _, (pending, bumped) = self.pending(2, epoch=self.epoch)
        queued, = self.enqueue()
        body = b'\x84\0' + h32('alice') + b'\1' + bytes(68)
        signed = self.app.value('SELECT txrelay.enqueue_signed(%s)',
                                bytes([len(body) << 2 & 255 | 1, len(body) >> 6]) + body)
        self.owner.rows("SELECT txrelay.feed_create('prices', 'alice', ARRAY[sha256('p')])")
        statements = {**self.statements(queued, signed, pending, bumped), **self.sited_statements()}
        late, = self.enqueue()
        self.owner.rows("UPDATE txrelay.outbox SET deadline = clock_timestamp() - interval '1 s' "
                        "WHERE id = %s", late)
        reborn = self.register(self.relay, 'reborn', 46)
        self.owner.rows('UPDATE txrelay.accounts SET reborn = true WHERE account = %s', reborn)
        statements['leader_nonce'] = (
            f"({reborn}, {self.claim(self.relay, account=reborn)['epoch']}, 0, true, true)")
        names = [r[0] for r in self.owner.rows("""SELECT p.proname FROM pg_proc p
            WHERE p.pronamespace = 'txrelay'::regnamespace AND p.proname LIKE 'leader\\_%%'
            AND p.prosrc ~ 'outbox_end|DELETE FROM outbox|UPDATE outbox|take_room' ORDER BY 1""")]
        self.assertGreater(len(names), 6)
        self.other.rows('SELECT pg_advisory_lock(77)')
        for name in names:
            with self.subTest(statement=name):
                self.relay.rows("SET lock_timeout = 0; SET statement_timeout = '20s'")
                self.relay.begin()
                try:
                    self.relay.rows(f'SELECT txrelay.{name}{statements[name]}')
                    self.refused('55P03', self.relay.rows, 'SELECT pg_advisory_xact_lock(77)')
                finally:
                    self.relay.rollback()

    def test_no_application_locks_a_row_by_itself(self):
        self.enqueue()
        for mode in ('FOR UPDATE', 'FOR KEY SHARE'):
            for table in ('outbox', 'transactions', 'accounts', 'leadership', 'follow_accounts'):
                self.refused('42501', self.app.rows, f'SELECT * FROM txrelay.{table} {mode}')
        for mode in ('ROW SHARE', 'ROW EXCLUSIVE', 'SHARE', 'ACCESS EXCLUSIVE'):
            for table in ('outbox', 'transactions', 'follow_finished'):
                self.refused('42501', self.app.rows,
                             f'BEGIN; LOCK TABLE txrelay.{table} IN {mode} MODE')
                self.app.rollback()

    def test_a_relay_that_enqueues_does_not_wait_for_a_turn(self):
        self.policy(order='strict')
        self.other.begin()
        self.other.rows("SELECT txrelay.enqueue('alice', '\\x01')")
        self.relay.rows("SET lock_timeout = '20s'")
        began = self.owner.value('SELECT clock_timestamp()')
        self.refused('55P03', self.relay.rows, "SELECT txrelay.enqueue('alice', '\\x01')",
                     text='still open')
        self.assertTrue(self.owner.value("SELECT clock_timestamp() - %s < interval '10 s'", began))


class Leadership(Harm):
    """The lock of an account is anybody's to take."""

    def setUp(self):
        super().setUp()
        self.relay.rows('SELECT txrelay.leader_release(%s, %s, %s)', self.alice, self.epoch,
                        'relay-a')

    def evict(self):
        return self.relay.value('SELECT txrelay.leader_evict(42)')

    def test_a_session_that_is_no_relays_is_ended_whatever_it_does(self):
        for what in ('idle', 'idle in transaction', 'active'):
            for user, mode in (('app', ''), ('nobody', ''), ('app', '_shared')):
                with self.subTest(what=what, user=user, mode=mode):
                    s = self.session(user)
                    if what == 'idle in transaction':
                        s.begin()
                    s.rows(f'SELECT pg_advisory_lock{mode}(42)')
                    call = Background(
                        s, lambda: s.rows('SELECT pg_sleep(600)')) if what == 'active' else None
                    state = 'SELECT state FROM pg_stat_activity WHERE pid = %s'
                    wait_until(lambda: self.owner.value(state, s.pid) == what, what)
                    self.assertIn(f'backend {s.pid} (user {user}',
                                  self.relay.value('SELECT txrelay.lock_holder(42)'))
                    self.assertTrue(self.evict())
                    wait_until(lambda: not self.owner.rows(state, s.pid), 'its session ends')
                    if call:
                        call.thread.join(10)
                    self.assertIsNone(self.relay.value('SELECT txrelay.lock_holder(42)'))

    def test_those_that_wait_for_the_lock_are_ended_too(self):
        """Or each of them would have it in turn, and no relay."""
        first, *others = [self.session('app') for _ in range(4)]
        first.rows('SELECT pg_advisory_lock(42)')
        calls = [Background(s, lambda s=s: s.rows('SELECT pg_advisory_lock(42)')) for s in others]
        waiting = ("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 42 "
                   "AND NOT granted")
        wait_until(lambda: self.owner.value(waiting) == 3, 'they wait')
        self.assertTrue(self.evict())
        wait_until(lambda: self.relay.value('SELECT pg_try_advisory_lock(42)'), 'the lock')
        for call in calls:
            call.thread.join(10)

    def test_without_locks_it_keeps_nobody_from_leading(self):
        """Nobody ends the session then, and its owner may lack the right to."""
        for user, granted in (('app', True), ('nobody', True), ('relay', False)):
            with self.subTest(user):
                s = self.session(user)
                s.rows('SELECT pg_advisory_lock(42)')
                claim = self.claim(self.relay, 'relay-b', lock=False)
                self.assertEqual(claim['granted'], granted)
                if granted:
                    self.relay.rows('SELECT txrelay.leader_release(%s, %s, %s)', self.alice,
                                    claim['epoch'], 'relay-b')
                s.rows('SELECT pg_advisory_unlock(42)')

    def test_a_relays_session_has_its_time(self):
        s = self.session('relay')
        s.rows('SELECT pg_advisory_lock(42)')
        self.assertFalse(self.evict())

    def test_it_is_shown_who_keeps_an_account_without_a_leader(self):
        s = self.session('app')
        s.rows('SELECT pg_advisory_lock_shared(42)')
        self.assertEqual(self.relay.rows('SELECT taken FROM txrelay.leader_scan(%s)', [self.alice]),
                         [(True,)])
        row = self.app.dict("SELECT reason, since IS NOT NULL AS since "
                            "FROM txrelay.blocked_accounts WHERE account = 'alice'")
        self.assertIn(f'nobody leads it: its lock is held by backend {s.pid} (user app',
                      row['reason'])
        self.assertTrue(row['since'])
        s.rows('SELECT pg_advisory_unlock_shared(42)')
        self.assertEqual(self.app.rows('SELECT * FROM txrelay.blocked_accounts'), [])

    def test_without_the_right_the_error_names_the_session(self):
        superuser = self.superuser()
        s = self.session('app')
        s.rows('SELECT pg_advisory_lock(42)')
        superuser.rows('REVOKE pg_signal_backend FROM installer')
        try:
            self.refused('42501', self.evict, text=('account alice', f'backend {s.pid} (user app',
                                                    'GRANT pg_signal_backend'))
        finally:
            superuser.rows('GRANT pg_signal_backend TO installer')


class Border(Harm):
    """Applications do not act for one another."""

    def setUp(self):
        super().setUp()
        superuser = self.superuser()
        superuser.rows("""DO $$ BEGIN CREATE ROLE shop; CREATE ROLE bank LOGIN IN ROLE txrelay_app;
            GRANT shop TO app;
            CREATE ROLE shop_two LOGIN IN ROLE txrelay_app, shop; EXCEPTION WHEN duplicate_object
            THEN NULL; END $$""")
        self.bank, self.shop_two = self.session('bank'), self.session('shop_two')

    def test_cancel_and_bump_belong_to_who_enqueued(self):
        for creator in (None, 'bank'):
            queued, pending, free = self.enqueue(3, creator=creator)
            self.admit(self.relay, self.epoch, [pending], [self.account()['next_nonce'] or 0])
            for tx in (queued, pending):
                for sql in ('SELECT txrelay.cancel(%s)', 'SELECT txrelay.bump(%s, 5)'):
                    self.refused('42501', self.bank.rows, sql, tx,
                                 text=(f'transaction {tx} belongs to app', 'user bank'))
            self.app.rows('SELECT txrelay.bump(%s, 5)', queued)
            self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', pending), 'requested')
            self.assertEqual(self.relay.value('SELECT txrelay.cancel(%s)', queued), 'cancelled')
            self.assertEqual(self.owner.value('SELECT txrelay.cancel(%s)', free), 'cancelled')
        body = b'\x84\0' + h32('alice') + b'\1' + bytes(68)
        signed = self.app.value('SELECT txrelay.enqueue_signed(%s)',
                                bytes([len(body) << 2 & 255 | 1, len(body) >> 6]) + body)
        self.refused('42501', self.bank.rows, 'SELECT txrelay.cancel(%s)', signed,
                     text='belongs to app')
        self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', signed), 'cancelled')

    def test_the_role_goes_along_to_the_nonce_and_back(self):
        tx, = self.enqueue(creator='somebody')
        self.admit(self.relay, self.epoch, [tx], [0])
        self.refused('42501', self.bank.rows, 'SELECT txrelay.cancel(%s)', tx)
        self.requeue(self.relay, self.epoch, (0, 'usurped'))
        self.refused('42501', self.bank.rows, 'SELECT txrelay.cancel(%s)', tx)
        self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', tx), 'cancelled')

    def test_members_of_one_role_are_one_application(self):
        for s in (self.app, self.shop_two):
            s.rows('SET ROLE shop')
        superuser = self.superuser()
        superuser.rows('GRANT txrelay_app TO shop')
        sql = "SELECT txrelay.enqueue('alice', '\\x01', key => 'order')"
        tx = self.app.value(sql)
        self.assertEqual(self.shop_two.value(sql), tx)
        self.refused('42501', self.bank.rows, 'SELECT txrelay.cancel(%s)', tx,
                     text='belongs to shop')
        self.shop_two.rows('RESET ROLE')
        self.assertNotEqual(self.shop_two.value(sql), tx)  # its own name space
        # and a member of the role
        self.assertEqual(self.shop_two.value('SELECT txrelay.cancel(%s)', tx), 'cancelled')
        superuser.rows('REVOKE txrelay_app FROM shop')

    def test_each_role_has_keys_of_its_own(self):
        for sql in ("SELECT txrelay.enqueue('alice', %s, key => 'k')",
                    "SELECT (txrelay.enqueue_many('alice', ARRAY[%s], ARRAY['m']))[1]"):
            ids = [s.value(sql, call) for s, call in ((self.bank, b'junk'), (self.app, b'pay'),
                                                      (self.relay, b'other'))]
            self.assertEqual(len(set(ids)), 3)
            self.assertEqual(self.app.value(sql, b'pay'), ids[1])
            self.refused('TR012', self.app.rows, sql, b'else')
            # relays and operators share theirs
            self.assertEqual(self.owner.value(sql, b'other'), ids[2])

    def test_keys_from_before_hold_for_every_role(self):
        self.owner.rows("INSERT INTO txrelay.idempotency_keys (account, key, id, payload_sha256) "
                        "VALUES (%s, 'old', 77, sha256('\\x01'))", self.alice)
        self.owner.rows('SELECT txrelay.note_careful(%s)', self.alice)
        for s in (self.app, self.bank):
            self.assertEqual(s.value("SELECT txrelay.enqueue('alice', '\\x01', key => 'old')"), 77)
            self.assertEqual(s.value("SELECT txrelay.enqueue_many('alice', ARRAY['\\x01'::bytea], "
                                     "ARRAY['old'])"), [77])
            self.refused('TR012', s.rows, "SELECT txrelay.enqueue('alice', '\\x02', key => 'old')")

    def test_the_same_bytes_are_one_transaction_for_all(self):
        body = b'\x84\0' + h32('alice') + b'\1' + bytes(68)
        bytes_ = bytes([len(body) << 2 & 255 | 1, len(body) >> 6]) + body
        self.assertEqual(self.app.value('SELECT txrelay.enqueue_signed(%s)', bytes_),
                         self.bank.value('SELECT txrelay.enqueue_signed(%s)', bytes_))

    def test_use_is_granted(self):
        calls = ("SELECT txrelay.enqueue('alice', '\\x01')",
                 "SELECT txrelay.enqueue('alice', '\\x01', key => 'k1')",
                 "SELECT txrelay.enqueue_many('alice', ARRAY['\\x01']::bytea[])",
                 "SELECT txrelay.enqueue('0x' || encode(sha256('alice'), 'hex'), '\\x01')")
        for call in calls:
            self.bank.rows(call)  # by default every application
        self.assertEqual(self.relay.value("SELECT txrelay.account_grant('alice', 'shop')"),
                         ['shop'])
        for call in calls:
            self.app.rows(call)  # a member
            self.relay.rows(call)
            self.refused('42501', self.bank.rows, call,
                         text=('account alice is used by shop', 'user bank', 'account_grant'))
        body = b'\x84\0' + h32('alice') + b'\1' + bytes(68)
        self.refused('42501', self.bank.rows, 'SELECT txrelay.enqueue_signed(%s)',
                     bytes([len(body) << 2 & 255 | 1, len(body) >> 6]) + body)
        self.assertEqual(self.relay.value("SELECT txrelay.account_revoke('alice', 'shop')"), [])
        for s in (self.app, self.bank):
            self.refused('42501', s.rows, calls[0], text='used by no application')
        self.relay.rows("SELECT txrelay.account_grant('alice', 'txrelay_app')")
        self.bank.rows(calls[0])
        self.refused('TR011', self.relay.rows,
                     "SELECT txrelay.account_grant('alice', 'nobody at all')", text='no such role')
        self.refused('TR011', self.relay.rows, "SELECT txrelay.account_revoke('alice', 'shop')",
                     text='granted to: txrelay_app')
        for call in ("account_grant('alice', 'bank')", "account_revoke('alice', 'txrelay_app')"):
            self.refused('42501', self.bank.rows, f'SELECT txrelay.{call}')

    def test_tips_and_priorities_have_bounds(self):
        self.register(self.relay, 'fresh', 77)
        for options, text in (('priority => 101', ('priority is 101', 'at most 100',
                                                   'priority_max')),
                                                   ('tip => 1', ('tip is 1', 'no tip_cap'))):
            self.refused('TR011', self.app.rows,
                         f"SELECT txrelay.enqueue('fresh', '\\x01', {options})", text=text)
            self.refused('TR011', self.app.rows,
                         "SELECT txrelay.enqueue_many('fresh', ARRAY['\\x01']::bytea[], "
                         f"{options})",
                         text=text)
            self.relay.rows(f"SELECT txrelay.enqueue('fresh', '\\x01', {options})")
        tx = self.app.value("SELECT txrelay.enqueue('fresh', '\\x01', priority => 100, tip => 0, "
                            "max_tip => 9)")
        for bump in ('%s', '%s, 5'):
            self.refused('TR011', self.app.rows, f'SELECT txrelay.bump({bump})', tx,
                         text='no tip_cap')
        self.relay.rows("""SELECT txrelay.account_policy('fresh',
                           '{"priority_max": 7, "tip_cap": 10}')""")
        self.app.rows("SELECT txrelay.enqueue('fresh', '\\x01', priority => 7, tip => 10)")
        self.refused('TR011', self.app.rows,
                     "SELECT txrelay.enqueue('fresh', '\\x01', priority => 8)", text='at most 7')
        self.app.rows('SELECT txrelay.bump(%s, 5)', tx)

    def test_waiting_rows_have_a_bound(self):
        self.policy(outbox_max=1000)
        self.enqueue()
        self.policy(outbox_max=20)  # what was counted for another bound goes for nothing
        self.enqueue(19)
        call = "SELECT txrelay.enqueue('alice', '\\x01')"
        for c in (call, "SELECT txrelay.enqueue_many('alice', ARRAY['\\x01']::bytea[])"):
            self.refused('TR013', self.app.rows, c,
                         text=('20 transactions of app wait at account alice', 'outbox_max'))
        self.app.begin()  # nor by catching the error
        self.app.rows('SAVEPOINT a')
        for _ in range(3):
            self.refused('TR013', self.app.rows, call)
            self.app.rows('ROLLBACK TO a')
        self.app.rollback()
        self.bank.rows(call)  # the bound is each role's
        self.relay.rows(call)
        self.admit_all()
        self.app.rows(call)

    def test_the_default_bound_holds_without_a_policy(self):
        self.app.rows("SELECT txrelay.enqueue_many('alice', array_fill('\\x01'::bytea, "
                      "ARRAY[100000]))")
        for _ in range(1023):  # what a count leaves at least
            self.app.rows("SELECT txrelay.enqueue('alice', '\\x01')")
        for call in ("enqueue('alice', '\\x01')", "enqueue_many('alice', ARRAY['\\x01']::bytea[])"):
            self.refused('TR013', self.app.rows, f'SELECT txrelay.{call}',
                         text='100000 transactions of app')
        self.assertEqual(self.count('outbox'), 101023)


class Clock(Harm):
    """The time is the database's, but in tests."""

    def test_no_role_sets_it(self):
        relay = self.session('relay_two') if self.owner.rows(
            "SELECT FROM pg_roles WHERE rolname = 'relay_two'") else None
        if relay is None:
            self.superuser().rows('CREATE ROLE relay_two LOGIN IN ROLE txrelay_relay')
            relay = self.session('relay_two')
        functions = self.owner.rows("""SELECT p.proname FROM pg_proc p
            WHERE p.pronamespace = 'txrelay'::regnamespace
            AND 'p_now' = ANY (p.proargnames) AND has_function_privilege('relay', p.oid, 'EXECUTE')
            ORDER BY 1""")
        calls = {'drop_partitions': "interval '1 day'", 'ensure_partitions': '2',
                 'leader_claim': f"{self.alice}, 'x', 'x', false, 1, 1",
                 'leader_renew': f"'x', '{{{self.alice}}}', '{{1}}', 1, 1",
                 'leader_scan': f"'{{{self.alice}}}'",
                 'member_heartbeat': "'x', 'x', 1, 1000"}
        self.assertEqual([f[0] for f in functions], sorted(calls))
        for s in (relay, self.owner):
            for name, arguments in calls.items():
                self.refused('42501', s.rows, f"SELECT txrelay.{name}({arguments}, p_now => now() "
                                              "+ interval '100 years')",
                             text=(name, 'p_now'))
        relay.rows(f"SELECT txrelay.leader_scan({calls['leader_scan']})")
        self.assertEqual(
            self.owner.rows("SELECT holder FROM txrelay.leadership WHERE holder = 'x'"), [])


if __name__ == '__main__':
    unittest.main()
