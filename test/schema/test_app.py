"""Applications: enqueue, enqueue_many, cancel, status, idempotency, the doorbell."""
import hashlib
import threading
import unittest

from pgcase import RR, SERIALIZABLE, Background, Case, h32, wait_until
from harness.foreign import ss58, ss58_head

MIB = 1 << 20


class Enqueue(Case):
    WIDE = True

    def test_account_by_alias_hex_and_address(self):
        names = ('alice', '0x' + h32('alice').hex(), '0x' + h32('alice').hex().upper(), '5alice')
        ids = [self.app.value('SELECT txrelay.enqueue(%s, %s)', name, b'\1') for name in names]
        self.assertEqual(ids, sorted(set(ids)))
        self.assertEqual(self.owner.rows('SELECT DISTINCT account FROM txrelay.outbox'),
                         [(self.alice,)])
        many = self.app.value('SELECT txrelay.enqueue_many(%s, %s::bytea[])', names[1], [b'\1'])
        self.assertEqual(self.status(many[0])['account'], 'alice')

    def test_unknown_account_lists_the_nearest(self):
        self.refused('TR010', self.app.rows, "SELECT txrelay.enqueue('alcie', '\\x01')",
                     text=('"alcie"', 'alice'))
        self.refused('TR010', self.app.rows, "SELECT txrelay.enqueue(NULL, '\\x01')", text='NULL')
        for n, name in enumerate(('payouts-main', 'payouts-test', 'oracle', 'bridge', 'treasury')):
            self.register(self.relay, name, 100 + n)
        said = self.refused('TR010', self.app.rows,
                            "SELECT txrelay.enqueue('payout-mian', '\\x01')")
        self.assertRegex(said, r'Nearest: payouts-main, payouts-test(, \w+)?\.')
        self.refused('TR010', self.app.rows, "SELECT txrelay.enqueue('%%%%', '\\x01')",
                     text='txrelay.leaders')
        self.refused('TR010', self.app.rows, "SELECT txrelay.enqueue_many('nowhere', '{}')")

    def test_an_address_with_any_prefix(self):
        """Found by its 32 bytes, whatever chain it is written for; the two-byte form of a prefix,
        and zeros in front, too."""
        names = ('alice', 'zero', 'ones')
        ids = {'alice': h32('alice'), 'zero': bytes(32), 'ones': b'\xff' * 32}
        numbers = {'alice': self.alice,
                   **{n: self.register(self.relay, n, 50 + i, account_id=ids[n],
                                       address=ss58(ids[n]))
                                           for i, n in enumerate(names) if n != 'alice'}}
        for prefix in (0, 1, 2, 42, 63, 64, 255, 256, 1284, 16383):
            for name in names:
                with self.subTest(prefix=prefix, name=name):
                    self.assertEqual(self.owner.value('SELECT txrelay.account_of(%s)',
                                                      ss58(ids[name], prefix)), numbers[name])
        tx = self.app.value('SELECT txrelay.enqueue(%s, %s)', ss58(h32('alice'), 16383), b'\1')
        self.assertEqual(self.status(tx)['account'], 'alice')
        # Every prefix of both forms gives its own two bytes and the same 32.
        for prefix in list(range(0, 64)) + list(range(64, 16384, 97)):
            head = bytes([0, prefix]) if prefix < 64 else ss58_head(prefix)
            self.assertEqual(self.owner.value('SELECT txrelay.ss58_bytes(%s)',
                                              ss58(h32('x'), prefix)), head + h32('x'))

    def test_what_is_no_address_of_32_bytes(self):
        good = ss58(h32('alice'))
        short = ss58(b'\7' * 20)
        for text in (good[:-1], good + '1', '1' + good, good.replace(good[9], '0'), short, '',
                     '1' * 47, 'z' * 50, 'z' * 80, good + 'é'):
            self.assertIsNone(self.owner.value('SELECT txrelay.ss58_bytes(%s)', text), text)
        self.assertIsNone(self.owner.value('SELECT txrelay.ss58_bytes(NULL)'))

    def test_a_mistyped_address_names_the_one_that_was_meant(self):
        for n, name in enumerate(('payouts', 'oracle', 'bridge', 'treasury')):
            self.register(self.relay, name, 100 + n, address=ss58(h32(name)))
        at_42, at_0 = ss58(h32('payouts')), ss58(h32('payouts'), 0)
        for address in (at_42, at_0):
            swap = 'K' if address[20] != 'K' else 'L'
            wrong = address[:20] + swap + address[21:]
            said = self.refused('TR010', self.app.rows, 'SELECT txrelay.enqueue(%s, %s)', wrong,
                                b'\1',
                                text=(f'"{wrong}"',
                                      'the address of account id 0x' + h32('payouts').hex()[:16]))
            self.assertRegex(said, r'Nearest: payouts\.$')
        for wrong in (at_42[:-1], at_42.replace(at_42[5], '0'), at_42[:10] + at_42[11:]):
            said = self.refused('TR010', self.app.rows, 'SELECT txrelay.enqueue(%s, %s)', wrong,
                                b'\1',
                                text='no SS58 address of 32 bytes')
            self.assertRegex(said, r'Nearest: payouts\.$')
        said = self.refused('TR010', self.app.rows, 'SELECT txrelay.enqueue(%s, %s)',
                            ss58(h32('somebody else')), b'\1',
                            text=h32('somebody else').hex())
        self.assertNotIn('Nearest', said)
        wrong = '0x' + h32('bridge').hex()[:-2] + '00'
        self.assertRegex(self.refused('TR010', self.app.rows, 'SELECT txrelay.enqueue(%s, %s)',
                                      wrong, b'\1'), r'Nearest: bridge\.$')

    def test_one_key_on_two_chains_needs_the_alias(self):
        self.register(self.relay, 'alice-two', 43, genesis=b'\2' * 32, account_id=h32('alice'),
                      address='5alice')
        for name in ('5alice', '0x' + h32('alice').hex(), ss58(h32('alice'))):
            self.refused('TR011', self.app.rows, 'SELECT txrelay.enqueue(%s, %s)', name, b'\1',
                         text=('more than one account', 'alice, alice-two', 'use the alias'))

    def test_bad_arguments_name_the_argument_the_value_and_the_bound(self):
        for options, text in (
                ('NULL', ('call', 'NULL', '1 to 1048576')), ("''", ('call', '0 bytes')),
                (f"decode(repeat('00', {MIB + 1}), 'hex')", ('call', '1048577', 'Split')),
                ("'\\x01', key => ''", ('key', '0 bytes')),
                ("'\\x01', key => repeat('k', 201)", ('key', '201', '200')),
                ("'\\x01', priority => 1001", ('priority', '1001', '-1000 to 1000')),
                ("'\\x01', priority => NULL", ('priority', 'NULL')),
                ("'\\x01', creator => repeat('c', 201)", ('creator', '201', '200')),
                ("'\\x01', deadline => now() - interval '1 s'", ('deadline', 'later than now')),
               ("'\\x01', deadline => now() + interval '1 h', not_before => now() + interval '2 h'",
                 ('deadline', 'not_before'))):
            with self.subTest(options):
                self.refused('TR011', self.app.rows, f"SELECT txrelay.enqueue('alice', {options})",
                             text=text)
        for options, text in (
                ('NULL', ('calls', 'NULL')),
                ("array_fill('\\x01'::bytea, ARRAY[100001])", ('calls', '100001', '100000')),
                ("ARRAY['\\x01', NULL]::bytea[]", ('calls[2]', 'NULL')),
                ("ARRAY['']::bytea[]", ('calls[1]', '0 bytes')),
                ("ARRAY['\\x01']::bytea[], ARRAY['a', 'b']", ('keys', '2', '1')),
                ("ARRAY['\\x01']::bytea[], ARRAY['']", ('keys[1]', '0 bytes')),
                ("ARRAY['\\x01']::bytea[], priority => -1001", ('priority', '-1001')),
                ("ARRAY['\\x01']::bytea[], creator => repeat('c', 201)", ('creator', '201'))):
            with self.subTest(options):
                self.refused('TR011', self.app.rows,
                             f"SELECT txrelay.enqueue_many('alice', {options})", text=text)
        self.assertEqual(self.count('outbox'), 0)

    def test_tips_and_retries_name_the_argument_the_value_and_the_bound(self):
        most = 2**128 - 1
        wrong = (('tip => -1', ('tip is -1', f'0 to {most}')),
                 ('tip => 0.5', ('tip is 0.5', 'whole number')),
                 ("tip => 'NaN'", ('tip is NaN',)),
                 ("max_tip => 'Infinity'", ('max_tip is Infinity',)),
                 (f'tip => {most + 1}', (f'tip is {most + 1}', f'0 to {most}')),
                 ('max_tip => -3', ('max_tip is -3',)),
                 ('tip => 6, max_tip => 5', ('tip is 6', 'not be above max_tip (5)')),
                 ('deadline_block => 0', ('deadline_block is 0', 'above 0')),
                 ('deadline_block => -5', ('deadline_block is -5', 'above 0')),
                 ('retries => -1', ('retries is -1', '0 to 100')),
                 ('retries => 101', ('retries is 101', '0 to 100')),
                 ('retries => NULL', ('retries is NULL', '0 to 100')),
                 ('spec_version => -1', ('spec_version is -1',)),
                 ("deadline => now() - interval '1 s'", ('deadline is', 'later than now')),
                 ("deadline => now() + interval '1 h', not_before => now() + interval '2 h'",
                  ('deadline is', 'not_before')))
        for options, text in wrong:
            for function, call in (('enqueue', "'\\x01'"),
                                   ('enqueue_many', "ARRAY['\\x01']::bytea[]")):
                if 'Infinity' in options and self.app.conn.server_version < 140000:
                    continue  # no value of numeric there
                with self.subTest(options, function=function):
                    self.refused('TR011', self.app.rows,
                                 f"SELECT txrelay.{function}('alice', {call}, {options})",
                                 text=(f'{function}: ',) + text)
        self.assertEqual(self.count('outbox'), 0)

    def test_a_deadline_alone_is_compared_with_now_alone(self):
        said = self.refused('TR011', self.app.value,
                            "SELECT txrelay.enqueue('alice', '\\x01', deadline => '2001-01-01')",
                            text='2001-01-01')
        self.assertNotIn('not_before', said)

    def test_options_are_kept_whichever_way_it_comes(self):
        most = 2**128 - 1
        options = (('tip', most), ('max_tip', most), ('deadline_block', 2**40), ('retries', 100))
        names = ''.join(f', {k} => {v}' for k, v in options)
        times = ", not_before => '2100-01-01Z', deadline => '2100-01-02Z', spec_version => 7"
        self.app.rows(f"SELECT txrelay.enqueue('alice', '\\x01'{names}{times})")
        self.app.rows(f"SELECT txrelay.enqueue('5alice', '\\x01'{names}{times})")
        self.app.rows(f"SELECT txrelay.enqueue('alice', '\\x01', key => 'k'{names}{times})")
        self.app.rows("SELECT txrelay.enqueue_many('alice', ARRAY['\\x01', "
                      f"'\\x02']::bytea[]{names}{times})")
        rows = self.owner.dicts("SELECT tip, max_tip, deadline_block, retries, guard, not_before = "
                                "'2100-01-01Z' AS after, "
                                "deadline = '2100-01-02Z' AS until FROM txrelay.outbox")
        self.assertEqual(rows, [{**dict(options), 'guard': 7, 'after': True, 'until': True}] * 5)

    def test_options_that_are_left_out(self):
        self.app.rows("SELECT txrelay.enqueue('alice', '\\x01'), txrelay.enqueue_many('alice', "
                      "ARRAY['\\x01']::bytea[])")
        rows = self.owner.dicts('SELECT tip, max_tip, deadline_block, retries, guard, not_before, '
                                'deadline '
                                'FROM txrelay.outbox')
        self.assertEqual(rows, [{'tip': None, 'max_tip': None, 'deadline_block': None, 'retries': 0,
                                 'guard': None,
                                 'not_before': None, 'deadline': None}] * 2)

    def test_zero_and_equal_tips_will_do(self):
        for options in ('tip => 0', 'max_tip => 0, tip => 0', 'tip => 5, max_tip => 5',
                        'retries => 0',
                        'deadline_block => 1', 'max_tip => 9'):
            self.app.rows(f"SELECT txrelay.enqueue('alice', '\\x01', {options})")
        self.assertEqual(self.count('outbox'), 6)

    def test_they_go_along_to_the_leader_and_to_the_nonce(self):
        epoch, options = self.lead(), {'tip': 3, 'max_tip': 90, 'deadline_block': 500, 'retries': 4}
        tx, = self.enqueue(**options)
        got = self.relay.dict('SELECT * FROM txrelay.leader_outbox(%s, %s, 9)', self.alice, epoch)
        self.assertEqual({k: got[k] for k in options}, options)
        self.admit(self.relay, epoch, [tx], [0])
        self.assertEqual({k: self.row(0)[k] for k in options}, options)
        other, = self.enqueue()
        self.admit(self.relay, epoch, [other], [1])
        self.assertEqual([self.row(1)[k] for k in options], [None, None, None, 0])

    def test_bounds_are_inclusive(self):
        self.app.value("SELECT txrelay.enqueue('alice', decode(repeat('00', 1048576), 'hex'), "
                       "repeat('k', 200), -1000, "
                       "creator => repeat('c', 200))")
        self.app.value("SELECT txrelay.enqueue('alice', '\\x00', priority => 1000)")

    def test_ids_follow_the_order_of_the_calls(self):
        calls = [bytes([i]) for i in range(1, 100)]
        ids = self.app.value("SELECT txrelay.enqueue_many('alice', %s::bytea[])", calls)
        self.assertEqual(ids, sorted(ids))
        self.assertEqual([bytes(r[0]) for r in self.owner.rows('SELECT call FROM txrelay.outbox '
                                                               'ORDER BY id')], calls)
        self.assertEqual(self.app.value("SELECT txrelay.enqueue_many('alice', '{}')"), [])

    def test_rolled_back_enqueue_leaves_nothing(self):
        self.app.begin()
        self.enqueue(2, key='k')
        self.app.rollback()
        self.assertEqual((self.count('outbox'), self.count('idempotency_keys')), (0, 0))

    def test_later_enqueue_has_the_higher_id(self):
        """B's enqueue began after A's commit: also from other sessions, with nothing cached in
        between."""
        sessions = [self.session('app') for _ in range(3)]
        ids = [s.value("SELECT txrelay.enqueue('alice', '\\x01')") for s in sessions * 3]
        self.assertEqual(ids, sorted(ids))

    def test_creator_defaults_to_the_sessions_user(self):
        tx, other = self.enqueue()[0], self.enqueue(creator='shop')[0]
        self.assertEqual((self.status(tx)['creator'], self.status(other)['creator']),
                         ('app', 'shop'))

    def test_every_isolation_level(self):
        for level in (RR, SERIALIZABLE):
            s = self.session('app')
            s.conn.set_session(isolation_level=level)
            self.assertGreater(s.value("SELECT txrelay.enqueue('alice', '\\x01', key => %s)",
                                       f'k{level}'), 0)


class Cost(Case):
    """What makes an enqueue cheap, in counts (docs/speed.md, "Where its instructions go")."""

    def called(self, sql, *args):
        """The functions of ours that a statement enters."""
        s = self.superuser()
        # the first one of a role counts what waits
        s.rows("SELECT txrelay.enqueue('alice', '\\x01')")
        s.rows("SET track_functions = 'all'")
        s.begin()
        s.rows(sql, *args)
        found = s.rows('SELECT funcname, calls FROM pg_stat_xact_user_functions ORDER BY funcname')
        s.rollback()
        return found

    def test_the_usual_call_enters_no_other_function(self):
        for options in ('', ", key => 'k'", ', priority => 3', ", creator => 'shop', key => 'k'",
                        ', spec_version => 7',
                      ", deadline => now() + interval '1 h', not_before => now() + interval '1 s'"):
            with self.subTest(options):
                self.assertEqual(self.called(f"SELECT txrelay.enqueue('alice', '\\x01'{options})"),
                                 [('enqueue', 1)])
        for keys, more in (('', []), (", ARRAY['a', 'b']", [('store_keys', 1)])):
            with self.subTest(keys):
                self.assertEqual(self.called("SELECT txrelay.enqueue_many('alice', ARRAY['\\x01', "
                                             f"'\\x02']::bytea[]{keys})"),
                                 [('enqueue_many', 1), ('ring', 1)] + more)

    def test_what_is_written_by_functions_alone_has_no_check(self):
        """The expression of a CHECK is read from its text in every statement; enqueue looks at its
        arguments itself."""
        self.assertEqual(self.owner.rows("SELECT conname FROM pg_constraint WHERE contype = 'c' "
                                         "AND conrelid IN "
                                         "('txrelay.outbox'::regclass, "
                                         "'txrelay.idempotency_keys'::regclass)"), [])
        self.assertEqual(self.owner.value("SELECT count(*) FROM pg_trigger "
                                          "WHERE tgrelid = 'txrelay.outbox'::regclass"), 0)

    def test_an_account_is_found_by_an_index_whatever_its_name(self):
        self.owner.rows("SELECT txrelay.relay_register('x' || n, sha256(n::text::bytea), "
                        "'sr25519', sha256('g'), '5x' || n, n) "
                        'FROM generate_series(100, 1099) n')
        self.owner.rows('ANALYZE txrelay.accounts')
        for where in ("alias = 'x500'", "account_id = sha256('500')", "address = '5x500'"):
            with self.subTest(where):
                plan = '\n'.join(r[0] for r in self.owner.rows('EXPLAIN SELECT FROM '
                                                               f'txrelay.accounts WHERE {where}'))
                self.assertIn('Index', plan)


class Idempotency(Case):
    WIDE = True

    def test_same_key_same_call_gives_the_first_id(self):
        """Cases 8, 129: the retry gets the first record; another call under the key is refused."""
        first = self.enqueue(key='k', call=b'\1')
        self.assertEqual(self.enqueue(2, key='k', call=b'\1', priority=5), first * 2)
        self.refused('TR012', self.app.rows, "SELECT txrelay.enqueue('alice', '\\x02', key => 'k')",
                     text=('"k"', str(first[0]), 'new key'))
        self.register(self.relay, 'bob', 43)
        self.assertNotEqual(self.app.value("SELECT txrelay.enqueue('bob', '\\x02', key => 'k')"),
                            first[0])

    def test_same_key_by_another_name_of_the_account(self):
        first, = self.enqueue(key='k', call=b'\1')
        for name in ('0x' + h32('alice').hex(), '5alice'):
            sql = 'SELECT txrelay.enqueue(%s, %s, key => %s, priority => 7)'
            self.assertEqual(self.app.value(sql, name, b'\1', 'k'), first)
            self.refused('TR012', self.app.rows, sql, name, b'\2', 'k', text=('"k"', str(first)))
            other = self.app.value(sql, name, b'\2', name)
            self.assertEqual(self.enqueue(key=name, call=b'\2'), [other])
        self.assertEqual(self.count('outbox'), 3)
        self.assertEqual(self.owner.rows('SELECT DISTINCT priority, key IS NULL '
                                         'FROM txrelay.outbox WHERE id <> %s', first),
                         [(7, False)])

    def test_the_key_stays_when_the_transaction_has_ended(self):
        tx = self.enqueue(key='k')[0]
        self.app.value('SELECT txrelay.cancel(%s)', tx)
        self.assertEqual(self.enqueue(key='k'), [tx])
        self.assertEqual(self.status(tx)['outcome'], 'cancelled')

    def test_concurrent_callers_get_one_id(self):
        one, two = self.session('app'), self.session('app')
        sql = "SELECT txrelay.enqueue('alice', '\\x01', key => 'k')"
        one.begin()
        first = one.value(sql)
        second = self.background(two, sql)
        one.commit()
        self.assertEqual(second.join(), [(first,)])
        self.assertEqual(self.count('outbox'), 1)

    def test_the_second_caller_goes_on_when_the_first_rolls_back(self):
        one, two = self.session('app'), self.session('app')
        sql = "SELECT txrelay.enqueue('alice', '\\x01', key => 'k')"
        one.begin()
        first = one.value(sql)
        second = self.background(two, sql)
        one.rollback()
        got = second.join()[0][0]
        self.assertNotEqual(got, first)
        self.assertEqual(self.owner.rows('SELECT o.id, k.id FROM txrelay.outbox o, '
                                         'txrelay.idempotency_keys k'),
                         [(got, got)])

    def test_killed_between_key_and_transaction_leaves_no_key(self):
        """Case 130: the key and the row are one transaction."""
        one = self.session('app')
        one.begin()
        one.value("SELECT txrelay.enqueue('alice', '\\x01', key => 'k')")
        self.superuser().rows('SELECT pg_terminate_backend(%s)', one.pid)
        wait_until(lambda: self.owner.value('SELECT count(*) FROM pg_stat_activity WHERE pid = %s',
                                            one.pid) == 0, 'end')
        self.assertEqual((self.count('outbox'), self.count('idempotency_keys')), (0, 0))
        self.enqueue(key='k')
        self.assertEqual((self.count('outbox'), self.count('idempotency_keys')), (1, 1))

    def test_older_snapshot_gets_40001_not_a_second_row(self):
        for level in ('REPEATABLE READ', 'SERIALIZABLE'):
            with self.subTest(level):
                s, key = self.session('app'), level[0]
                s.begin(level)
                s.rows('SELECT count(*) FROM txrelay.transactions')
                first = self.enqueue(key=key)[0]
                self.refused('40001', s.rows,
                             "SELECT txrelay.enqueue('alice', '\\x0001', key => %s)", key)
                s.rollback()
                s.begin(level)
                self.assertEqual(s.value("SELECT txrelay.enqueue('alice', '\\x0001', key => %s)",
                                         key), first)
                s.commit()

    def test_many_with_keys(self):
        sql = "SELECT txrelay.enqueue_many('alice', %s::bytea[], %s)"
        first = self.app.value(sql, [b'\1', b'\2', b'\2', b'\3'], ['a', 'b', 'b', None])
        self.assertEqual(first[1], first[2])
        self.assertEqual(len(set(first)), 3)
        again = self.app.value(sql, [b'\4', b'\1', b'\2'], [None, 'a', 'b'])
        self.assertEqual(again[1:], first[:2])
        self.assertEqual(self.count('outbox'), 4)
        self.refused('TR012', self.app.rows, sql, [b'\5', b'\1'], ['new', 'b'], text='"b"')
        self.refused('TR012', self.app.rows, sql, [b'\5', b'\6'], ['c', 'c'], text='"c"')
        self.assertEqual(self.count('outbox'), 4)

    def test_many_with_the_same_keys_in_other_orders_do_not_deadlock(self):
        keys = [f'k{i:03}' for i in range(200)]
        sessions = [self.session('app') for _ in range(4)]
        barrier = threading.Barrier(4)
        orders = [keys, keys[::-1], keys[100:] + keys[:100], keys[::2] + keys[1::2]]

        def call(s, order):
            barrier.wait()
            got = s.value("SELECT txrelay.enqueue_many('alice', %s::bytea[], %s)",
                          [k.encode() for k in order], order)
            return dict(zip(order, got))
        calls = [Background(s, lambda s=s, o=o: call(s, o)) for s, o in zip(sessions, orders)]
        results = [c.join() for c in calls]
        self.assertEqual(results[1:], results[:1] * 3)
        self.assertEqual(self.count('outbox'), 200)

    def test_the_payload_is_the_call(self):
        self.enqueue(key='k', call=b'\7')
        self.assertEqual(self.owner.value('SELECT payload_sha256 FROM txrelay.idempotency_keys'),
                         hashlib.sha256(b'\7').digest())


class Cancel(Case):
    def test_in_the_outbox(self):
        heard = self.listen('pending_tx_removed')
        tx = self.enqueue()[0]
        self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', tx), 'cancelled')
        got = self.status(tx)
        self.assertEqual((got['stage'], got['outcome'], got['nonce'], got['error']),
                         ('finished', 'cancelled', None, 'cancelled by app'))
        self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', tx), 'finished')
        self.assertEqual(len(self.heard(heard)), 1)
        self.assertEqual(self.owner.value('SELECT call FROM txrelay.finished_transactions'),
                         b'\0\1')

    def test_with_a_nonce_and_unknown(self):
        _, ids = self.pending()
        heard = self.listen('outbox_wake')
        self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', ids[0]), 'requested')
        self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', ids[0]), 'requested')
        self.assertEqual(self.count('cancellations'), 1)
        self.assertGreaterEqual(len(self.heard(heard)), 1)
        self.refused('TR011', self.app.rows, 'SELECT txrelay.cancel(99999)',
                     text=('id', '99999', 'enqueue'))
        self.refused('TR011', self.app.rows, 'SELECT txrelay.cancel(NULL)', text='NULL')

    def test_meets_an_admission_that_is_under_way(self):
        epoch, ids = self.lead(), self.enqueue(2)
        for commit, answer in ((False, 'cancelled'), (True, 'requested')):
            self.relay.begin()
            self.admit(self.relay, epoch, ids[:1], [0])
            call = self.background(self.app, 'SELECT txrelay.cancel(%s)', ids[0])
            self.relay.commit() if commit else self.relay.rollback()
            self.assertEqual(call.join(), [(answer,)])
            ids = ids[1:]

    def test_admission_that_meets_a_cancel_builds_again(self):
        epoch, ids = self.lead(), self.enqueue(3)
        self.app.begin()
        self.app.value('SELECT txrelay.cancel(%s)', ids[1])
        self.refused('TR002', self.admit, self.relay, epoch, ids, [0, 1, 2],
                     text=('2 of 3', 'outbox', 'blocked by'))
        self.app.commit()
        self.refused('TR002', self.admit, self.relay, epoch, ids, [0, 1, 2],
                     text=('2 of 3', 'outbox'))
        self.assertEqual((self.count('outbox'), self.count('pending_transactions'),
                          self.count('attempts')), (2, 0, 0))
        self.assertIsNone(self.account()['next_nonce'])
        self.assertEqual(self.admit(self.relay, epoch, [ids[0], ids[2]], [0, 1]), 2)


class Doorbell(Case):
    """The leader sleeps with (9001, account) held exclusively on its control session."""

    def setUp(self):
        super().setUp()
        self.leader = self.session('relay')
        self.ear = self.listen('outbox_wake')

    def sleep(self):
        return self.leader.value('SELECT pg_try_advisory_lock(9001, %s)', self.alice)

    def test_asleep_one_notify_awake_none(self):
        self.enqueue(3)
        self.assertEqual(self.heard(self.ear), [])
        self.assertTrue(self.sleep())
        self.app.begin()
        self.enqueue(3)
        self.app.value("SELECT txrelay.enqueue_many('alice', ARRAY['\\x01', '\\x02']::bytea[])")
        self.app.commit()
        self.assertEqual(self.heard(self.ear), [('outbox_wake', str(self.alice))])

    def test_silence_by_order(self):
        """SET txrelay.notify = off: rows and questions as ever, and no NOTIFY."""
        self.assertTrue(self.sleep())
        self.app.begin()
        self.app.rows('SET LOCAL txrelay.notify = off')
        self.enqueue(2)
        self.app.value("SELECT txrelay.enqueue_many('alice', ARRAY['\\x01', '\\x02']::bytea[])")
        self.app.commit()
        self.assertEqual(self.heard(self.ear), [])
        self.enqueue()
        self.assertEqual(len(self.heard(self.ear)), 1, 'the order was the transaction\'s')
        self.app.rows('SET txrelay.notify = on')
        self.enqueue()
        self.assertEqual(len(self.heard(self.ear)), 1)

    def test_every_isolation_level_with_an_old_snapshot(self):
        """A flag in a table fails here: the producer's snapshot is older than the leader's falling
        asleep."""
        for level in ('REPEATABLE READ', 'SERIALIZABLE'):
            with self.subTest(level):
                self.app.begin(level)
                self.app.rows('SELECT count(*) FROM txrelay.transactions')
                self.assertTrue(self.sleep())
                self.enqueue()
                self.app.commit()
                self.assertEqual(self.heard(self.ear), [('outbox_wake', str(self.alice))])
                self.leader.value('SELECT pg_advisory_unlock(9001, %s)', self.alice)

    def test_the_leader_cannot_fall_asleep_over_an_open_enqueue(self):
        self.app.begin()
        self.enqueue()
        self.assertFalse(self.sleep())
        self.app.commit()
        self.assertTrue(self.sleep())
        self.assertEqual(self.heard(self.ear), [])
        # Commit is visible before its locks are gone: who got the lock sees the row.
        self.assertEqual(self.leader.value('SELECT count(*) FROM txrelay.outbox'), 1)

    def test_a_rolled_back_savepoint_keeps_no_promise(self):
        """The lock goes with the savepoint, so does the row; a later enqueue rings again."""
        self.app.begin()
        self.app.rows('SAVEPOINT s')
        self.enqueue()
        self.app.rows('ROLLBACK TO s')
        self.assertTrue(self.sleep())
        self.enqueue()
        self.app.commit()
        self.assertEqual(len(self.heard(self.ear)), 1)

    def test_one_lock_per_account_and_transaction(self):
        self.app.begin()
        self.enqueue(50)
        self.assertEqual(self.owner.value("SELECT count(*) FROM pg_locks "
                                          "WHERE locktype = 'advisory' AND pid = %s",
                                          self.app.pid), 1)
        self.app.rollback()

    def test_another_accounts_leader_is_left_alone(self):
        bob = self.register(self.relay, 'bob', 43)
        self.assertTrue(self.sleep())
        self.app.value("SELECT txrelay.enqueue('bob', '\\x01')")
        self.assertEqual(self.heard(self.ear), [])
        self.assertNotEqual(bob, self.alice)

    def test_a_repeated_key_rings_nobody(self):
        self.enqueue(key='k')
        self.assertTrue(self.sleep())
        self.enqueue(key='k')
        self.assertEqual(self.heard(self.ear), [])

    def test_resume_rings_in_any_case(self):
        self.relay.rows("SELECT txrelay.account_pause('alice', 'maintenance')")
        self.relay.rows("SELECT txrelay.account_resume('alice')")
        self.assertEqual(self.heard(self.ear), [('outbox_wake', str(self.alice))])

    def test_hammered_no_wake_up_is_lost(self):
        """Writers against a leader that sleeps whenever it may: every row is seen awake or rung
        for."""
        total, writers, seen = 200, 4, set()
        sessions = [self.session('app') for _ in range(writers)]

        def write(s):
            for n in range(total // writers):
                s.begin('REPEATABLE READ' if n % 2 else 'READ COMMITTED')
                s.value("SELECT txrelay.enqueue('alice', '\\x01')")
                s.commit()
        calls = [Background(s, lambda s=s: write(s)) for s in sessions]
        self.leader.rows('LISTEN outbox_wake')

        def look():
            seen.update(r[0] for r in self.leader.rows('SELECT id FROM txrelay.outbox'))
        while len(seen) < total:
            look()
            if self.sleep():
                look()
                if len(seen) < total:
                    self.wait_notified(self.leader, 'outbox_wake')
                    self.leader.conn.notifies.clear()
                self.leader.value('SELECT pg_advisory_unlock(9001, %s)', self.alice)
        for c in calls:
            c.join()
        self.assertEqual(len(seen), total)


if __name__ == '__main__':
    unittest.main()
