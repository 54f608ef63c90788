"""Tokens of the HTTP interface are kept as hashes and do what their scopes say; each operation
leaves a record."""
import hashlib
import itertools

import psycopg2

from pgcase import ROOT, Case, h32


class Tokens(Case):
    def create(self, name='shop', secret='secret', scopes=('read',), accounts=None, expires=None):
        self.relay.rows('SELECT txrelay.token_create(%s, %s, %s, %s, %s::interval)', name,
                        h32(secret), list(scopes), accounts, expires)

    def use(self, scope, account=None, secret='secret'):
        return self.relay.rows('SELECT * FROM txrelay.token_use(%s, %s, %s)', h32(secret), scope,
                               account)

    def refused(self, text, *args, **named):
        with self.assertRaises(psycopg2.Error) as caught:
            self.create(*args, **named)
        self.assertEqual(caught.exception.pgcode, 'TR011')
        self.assertIn(text, caught.exception.diag.message_primary)

    def test_a_token_is_good_for_its_scopes(self):
        self.create(scopes=['read', 'read', 'enqueue'])
        self.assertEqual(self.use('read'), [('shop', True)])
        self.assertEqual(self.use('enqueue', 'alice'), [('shop', True)])
        self.assertEqual(self.use('operate'), [('shop', False)])
        self.assertEqual(self.use('read', secret='another'), [])
        self.assertEqual(self.use('', 'alice'), [('shop', False)])
        self.assertEqual(self.owner.value('SELECT scopes FROM txrelay.tokens'), ['enqueue', 'read'])

    def test_a_token_may_enqueue_for_its_accounts_alone(self):
        self.register(self.relay, 'bob', 43)
        self.create(scopes=['enqueue'], accounts=['alice'])
        self.assertEqual(self.use('enqueue', 'alice'), [('shop', True)])
        self.assertEqual(self.use('enqueue', '0x' + self.owner.value(
            "SELECT encode(account_id, 'hex') FROM txrelay.accounts WHERE alias = 'alice'")),
            [('shop', True)])
        self.assertEqual(self.use('enqueue', 'bob'), [('shop', False)])
        self.assertEqual(self.use('enqueue'), [('shop', True)])
        with self.assertRaises(psycopg2.Error) as caught:
            self.use('enqueue', 'nobody')
        self.assertEqual(caught.exception.pgcode, 'TR010')

    def test_a_token_ends_when_it_expires_or_is_revoked(self):
        self.create(expires='1 hour')
        self.assertEqual(self.use('read'), [('shop', True)])
        self.owner.rows(
            "UPDATE txrelay.tokens SET expires_at = clock_timestamp() - interval '1 ms'")
        self.assertEqual(self.use('read'), [])
        self.create('other', 'other')
        self.relay.rows("SELECT txrelay.token_revoke('other')")
        first = self.owner.rows('SELECT revoked_at, revoked_by FROM txrelay.tokens ORDER BY name')
        self.relay.rows("SELECT txrelay.token_revoke('other')")
        self.assertEqual(self.owner.rows('SELECT revoked_at, revoked_by FROM txrelay.tokens '
                                         'ORDER BY name'), first)
        self.assertEqual(self.use('read', secret='other'), [])
        with self.assertRaises(psycopg2.Error) as caught:
            self.relay.rows("SELECT txrelay.token_revoke('none')")
        self.assertEqual(caught.exception.pgcode, 'TR010')

    def test_bad_tokens_are_refused(self):
        self.refused('name is NULL', None)
        self.refused('name is "a b"', 'a b')
        self.refused('scopes has "root"', scopes=['read', 'root'])
        self.refused('scopes has none', scopes=[])
        self.refused('expires is', expires='-1 s')
        self.refused('accounts is given without the scope enqueue', accounts=['alice'])
        self.create()
        self.refused('there is a token of that name', secret='a second one')
        self.refused('there is a token of that name', 'second')
        with self.assertRaises(psycopg2.Error) as caught:
            self.relay.rows("SELECT txrelay.token_create('x', '\\x00', ARRAY['read'])")
        self.assertIn('has 1 bytes', caught.exception.diag.message_primary)


class Posts(Case):
    def setUp(self):
        super().setUp()
        self.relay.rows('PREPARE enqueue AS ' + (ROOT / 'http' / 'sql' / 'enqueue.sql').read_text())
        for name in ('shop', 'bank'):
            self.relay.rows('SELECT txrelay.token_create(%s, %s, %s)', name, h32(name), ['enqueue'])

    def post(self, name, call=b'\1', account='alice', key='order-1', tip=None, priority=None):
        values = [account, call.hex(), key, None, None, tip, *[None] * 5, priority, None, None,
                  None, h32(name).hex()]
        return self.relay.value(f"EXECUTE enqueue({', '.join(['%s'] * len(values))})",
                                *values)['id']


class Keys(Posts):
    def test_each_token_has_keys_of_its_own(self):
        ids = [self.post('shop'), self.post('bank')]
        relays = "SELECT txrelay.enqueue('alice', '\\x01', key => 'order-1')"
        ids.append(self.relay.value(relays))  # the setting ends with the statement
        ids.append(self.app.value(relays))
        self.assertEqual(len(set(ids)), 4)
        self.assertEqual([self.post('shop'), self.post('bank'), self.relay.value(relays),
                          self.app.value(relays)], ids)
        with self.assertRaises(psycopg2.Error) as caught:
            self.post('bank', b'\2')
        self.assertEqual(caught.exception.pgcode, 'TR012')
        self.assertIn(f'for transaction {ids[1]}', caught.exception.diag.message_primary)

    def test_an_application_does_not_get_at_them(self):
        id = self.post('shop')
        self.app.rows("SET txrelay.token = 'shop'")
        self.assertNotEqual(self.app.value("SELECT txrelay.enqueue('alice', '\\x01', key => "
                                           "'order-1')"), id)


class Bounds(Posts):
    """A token without the scope operate meets each bound that an application meets. One with it is
    an operator, as a relay's login."""

    def setUp(self):
        super().setUp()
        self.relay.rows('SELECT txrelay.token_create(%s, %s, %s)', 'boss', h32('boss'),
                        ['enqueue', 'operate'])
        self.relay.rows('SELECT txrelay.token_create(%s, %s, %s, %s)', 'made', h32('made'),
                        ['enqueue'], ['alice'])

    def application(self, options):
        given = ''.join(f', {k} => {v}' for k, v in options.items())
        return lambda: self.app.rows(f"SELECT txrelay.enqueue('alice', '\\x01'{given})")

    def test_each_bound_of_an_application_is_one_of_a_token(self):
        bounds = {'priority_max': ('TR011', {'priority': 101}, 'at most 100'),
                  'tip_cap': ('TR011', {'tip': 1}, 'no tip_cap')}
        for name, (code, options, text) in bounds.items():
            with self.subTest(name):
                self.refused(code, self.application(options), text=text)
                self.refused(code, lambda: self.post('shop', key=None, **options), text=text)
                self.refused(code, lambda: self.post('made', key='k', **options), text=text)
                self.post('boss', key=None, **options)
                self.policy(**{name: 200})
                self.post('shop', key=None, **options)

    def test_what_waits_is_counted_for_each_token(self):
        self.policy(outbox_max=20)
        for key in [None] * 10 + list('abcdefghij'):
            self.post('shop', key=key)
        for key in (None, 'k'):
            self.refused('TR013', lambda: self.post('shop', key=key),
                         text='20 transactions of token/shop wait at account alice already')
        for _ in range(21):
            self.post('boss', key=None)
        self.post('bank', key=None)
        self.application({})()
        self.assertEqual(self.owner.rows("SELECT DISTINCT coalesce(role, creator) "
                                         "FROM txrelay.outbox ORDER BY 1"),
                         [('app',), ('relay',), ('token/bank',), ('token/shop',)])
        self.superuser().rows('DELETE FROM txrelay.outbox')
        self.post('shop', key=None)

    def test_an_account_that_was_granted_is_for_tokens_that_were_made_for_it(self):
        self.relay.rows("SELECT txrelay.account_grant('alice', 'txrelay_follower')")
        self.refused('42501', self.application({}), text='used by txrelay_follower')
        self.assertEqual([self.may(name) for name in ('shop', 'bank', 'made', 'boss')],
                         [False, False, True, True])
        self.relay.begin()  # nor without what token_use says
        self.relay.rows("SET LOCAL txrelay.token = 'shop'")
        self.refused('42501', lambda: self.relay.rows(
            "SELECT txrelay.enqueue('alice', '\\x01', creator => 'shop')"),
                     text=('used by txrelay_follower, and token/shop was not made for it',
                           '--for alice'))
        self.relay.rollback()
        self.relay.rows("SELECT txrelay.account_grant('alice', 'txrelay_app')")
        self.assertEqual([self.may(name) for name in ('shop', 'bank', 'made', 'boss')], [True] * 4)

    def may(self, name):
        values = ['alice', '01', None] + [None] * 12 + [h32(name).hex()]
        return self.relay.value(f"EXECUTE enqueue({', '.join(['%s'] * len(values))})",
                                *values) is not None

    def test_no_application_cancels_what_a_token_enqueued(self):
        id = self.post('shop')
        self.refused('42501', self.app.rows, 'SELECT txrelay.cancel(%s)', id,
                     text='belongs to token/shop')
        self.assertEqual(self.relay.value('SELECT txrelay.cancel(%s)', id), 'cancelled')

    def test_a_key_of_a_token_is_checked(self):
        self.refused('TR011', lambda: self.post('shop', key=''), text='key has 0 bytes')


class Pages(Case):
    """What the page asks again and again reads as much in a table of many rows as in one of few."""
    FRESH = True
    ROWS, MOST = 30000, 1500

    def setUp(self):
        super().setUp()
        self.prepared = set()

    def fill(self, many, few, queued, rows):
        """`many` has most ends; `few` has the ids from 101 to 110, and 5 of what waits among
        many."""
        self.owner.rows('''INSERT INTO txrelay.finished_transactions (id, account, nonce, outcome,
            state, hash, created_at, finished_at, creator, key)
            SELECT n, CASE WHEN n BETWEEN 101 AND 110 THEN %s ELSE %s END, n, CASE WHEN n = 105
            THEN 'unknown' WHEN n %% 100 = 0 THEN 'failed'
                ELSE 'ok' END::txrelay.tx_outcome, 'finalized', sha256(n::text::bytea), at, at,
                CASE WHEN n IN (107, 9000) THEN 'rare' ELSE 'app' END, 'key-' || n
            FROM generate_series(1, %s) n, LATERAL (SELECT clock_timestamp() - (%s - n) * interval
            '30 ms' AS at) t''', few, many, rows, rows)
        self.owner.rows('''INSERT INTO txrelay.outbox (id, account, call, created_at, creator,
            not_before)
            SELECT %s + n, CASE WHEN n <= 5 THEN %s
            ELSE %s END, '\\x01', clock_timestamp(), 'app', CASE WHEN n %% 2 = 0
            THEN clock_timestamp() END
            FROM generate_series(1, %s) n''', rows, few, many, queued)
        self.owner.rows('VACUUM ANALYZE txrelay.finished_transactions, txrelay.outbox')

    def test_every_pair_of_filters_reads_a_bounded_part(self):
        """Whatever is asked for, a page reads no more than 20,000 rows by id, and 20,000 to learn
        that an account is large. What pages have together is what a plain comparison finds."""
        rows, queued, page = 50000, 500, 100
        for name, number in (('many', 43), ('few', 44)):
            self.register(self.relay, name, number)
        many, few = (self.owner.value('SELECT account FROM txrelay.accounts WHERE alias = %s', name)
                     for name in ('many', 'few'))
        self.fill(many, few, queued, rows)
        middle = self.owner.value('SELECT created_at::text FROM txrelay.finished_transactions '
                                  'WHERE id = %s', rows // 2)
        filters = {'p1': ('few', 'many'), 'p2': ('finalized', 'queued', 'finished'),
                   'p3': ('unknown', 'ok'), 'p4': ('key-107', 'none'),
                   'p5': ('rare', 'nobody'), 'p6': ('0x' + hashlib.sha256(b'107').hexdigest(),),
                   'p7': (107, 20000),
                   'p8': (middle, '2100-01-01T00:00:00Z'), 'p9': (middle, '2000-01-01T00:00:00Z'),
                   'p11': (rows // 2, 108)}
        self.owner.rows("INSERT INTO txrelay.attempts (account, nonce, number, id, hash, "
                        "extrinsic, tip, spec_version, transaction_version, block, epoch) "
                        "SELECT account, nonce, 1, id, hash, '\\x01', 0, 1, 1, 1, 1 "
                        "FROM txrelay.finished_transactions WHERE id = 107")
        plain = self.owner.rows("""SELECT id, account, 'finished', state::text, outcome::text, key,
            creator, nonce, created_at
            FROM txrelay.finished_transactions UNION ALL
            SELECT id, account, 'outbox', 'queued', NULL, key, creator, NULL, created_at
            FROM txrelay.outbox ORDER BY id DESC""")
        when = {text: self.owner.value('SELECT %s::timestamptz', text)
                for text in (*filters['p8'], *filters['p9'])}
        fits = {'p1': lambda r, v: r[1] == {'few': few, 'many': many}[v], 'p2': lambda r,
                v: v in r[2:4], 'p3': lambda r, v: r[4] == v,
                'p4': lambda r, v: r[5] == v, 'p5': lambda r, v: r[6] == v, 'p6': lambda r,
                v: r[0] == 107, 'p7': lambda r, v: r[7] == v,
                'p8': lambda r, v: r[8] >= when[v], 'p9': lambda r, v: r[8] < when[v],
                'p11': lambda r, v: r[0] < v}
        for one, two in itertools.combinations(filters, 2):
            for given in ({one: a, two: b} for a in filters[one] for b in filters[two]):
                with self.subTest(given):
                    found, cursor, pages = [], {}, 0
                    while pages < 6 and len(found) < page:
                        answer, read = self.ask('transactions.sql', 11,
                                                **{**given, 'p10': page, **cursor})
                        self.assertLess(read, 45000)
                        found += [t['id'] for t in answer['transactions']]
                        pages += 1
                        if answer['next'] is None:
                            break
                        cursor = {'p11': int(answer['next'])}
                    want = (r[0] for r in plain if fits[one](r, given[one])
                            and fits[two](r, given[two]))
                    self.assertEqual(found, list(itertools.islice(want, max(page, len(found)))))
                    if given.get('p1') == 'few':
                        # an account with few of many rows is looked at whole
                        self.assertEqual(pages, 1)

    def ask(self, file, count, **given):
        """The statement's answer, and how many rows it read."""
        name = file.replace('.', '_')
        if name not in self.prepared:
            self.relay.rows('SET plan_cache_mode = force_generic_plan')  # as http/api.c
            # so few rows a planner would read whole; a million it does not
            self.relay.rows('SET enable_seqscan = off')
            self.relay.rows(f'PREPARE {name} AS ' + (ROOT / 'http' / 'sql' / file).read_text())
            self.prepared.add(name)
        self.relay.begin()
        read = '''SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int
                  FROM pg_stat_xact_user_tables
                  WHERE schemaname = 'txrelay' AND relname LIKE 'finished%%' '''
        before = self.relay.value(read)
        places = f'({", ".join(["%s"] * count)})' if count else ''
        answer = self.relay.value(f'EXECUTE {name}{places}',
                                  *[given.get(f'p{i}') for i in range(1, count + 1)])
        after = self.relay.value(read)
        self.relay.commit()
        return answer, after - before

    def test_they_read_no_more_of_many_rows(self):
        self.register(self.relay, 'many', 43)
        number = self.owner.value("SELECT account FROM txrelay.accounts WHERE alias = 'many'")
        self.owner.rows('''INSERT INTO txrelay.finished_transactions (id, account, nonce, outcome,
            state, hash, created_at, finished_at, creator, key)
            SELECT n, %s, n, CASE WHEN n = 5 THEN 'unknown' WHEN n %% 100 = 0 THEN 'failed'
            ELSE 'ok' END::txrelay.tx_outcome, 'finalized',
                sha256(n::text::bytea), at, at, CASE WHEN n %% 9000 = 0 THEN 'rare'
                ELSE 'app' END, 'key-' || n
            FROM generate_series(1, %s) n, LATERAL (SELECT clock_timestamp() - (%s - n) * interval
            '30 ms' AS at) t''', number, self.ROWS, self.ROWS)
        self.owner.rows('VACUUM ANALYZE txrelay.finished_transactions')
        last = self.ROWS
        for given, ids in (({}, range(last, last - 50, -1)),
                           ({'p11': 15000}, range(14999, 14949, -1)),
                           ({'p1': 'many'}, range(last, last - 50, -1)),
                           ({'p2': 'finalized', 'p10': 3}, [last, last - 1, last - 2]),
                           ({'p2': 'finished', 'p10': 1}, [last]),
                           ({'p3': 'failed', 'p10': 2}, [last, last - 100]),
                           ({'p5': 'app', 'p10': 1}, [last]), ({'p2': 'queued'}, []),
                           ({'p6': '0x' + '77' * 32}, []),
                           ({'p8': '2020-01-01T00:00:00Z', 'p10': 1}, [last])):
            with self.subTest(given):
                answer, read = self.ask('transactions.sql', 11, **given)
                self.assertEqual([t['id'] for t in answer['transactions']], list(ids))
                self.assertLess(read, self.MOST)
        # What few rows fit: an index has it, or a page ends after 20,000 rows and says where the
        # next one begins.
        for given, ids in (({'p4': 'key-9', 'p9': '2100-01-01T00:00:00Z'}, [9]),
                           ({'p3': 'unknown'}, [5]), ({'p1': 'many', 'p7': 9}, [9]),
                           ({'p4': 'none'}, [])):
            with self.subTest(given):
                answer, read = self.ask('transactions.sql', 11, **given)
                self.assertEqual(([t['id'] for t in answer['transactions']], answer['next']),
                                 (ids, None))
                self.assertLess(read, self.MOST)
        pages = [self.ask('transactions.sql', 11, p5='rare')]
        pages.append(self.ask('transactions.sql', 11, p5='rare', p11=int(pages[0][0]['next'])))
        self.assertEqual([([t['id'] for t in a['transactions']], a['next']) for a, _ in pages],
                         [([27000, 18000], '10001'), ([9000], None)])
        self.assertLess(pages[0][1], 3 * 20000)
        answer, read = self.ask('overview.sql', 0)
        self.assertEqual([e['id'] for e in answer['ended_badly']],
                         list(range(last, last - 500, -100)))
        # the last minute's ends, and the ranges of the index at its borders
        self.assertLess(read, 6 * self.MOST)
        for file, count, given in (('account.sql', 1, {'p1': 'many'}),
                                   ('nonces.sql', 3, {'p1': 'many'})):
            with self.subTest(file):
                # counts end at ten thousand
                self.assertLess(self.ask(file, count, **given)[1], 22000)
