"""Feeds: each number is taken once and in order, by whoever leads, and its calls are ordinary
transactions."""
import datetime
import unittest

import psycopg2

from pgcase import Background, Case, h32, wait_until

KEYS = [h32('one'), h32('two'), h32('three')]


class FeedCase(Case):
    """A feed `prices` of alice, and a leader of alice."""

    def setUp(self):
        super().setUp()
        self.epoch = self.lead()
        self.relay.rows("SELECT txrelay.feed_create('prices', 'alice', %s)", KEYS)

    def lead(self, holder='relay-a', account=None):
        row = self.relay.dict("SELECT * FROM txrelay.leader_claim(%s, %s, 'a:1', false, 60000, "
                              "60000)", account or self.alice, holder)
        self.assertTrue(row['granted'], row)
        return row['epoch']

    def take(self, number, calls=(b'\x01\x02',), session=None, epoch=None, feed='prices',
             publisher=KEYS[0], account=None, **options):
        n = len(calls)

        def array(name, default=None):
            value = options.get(name, default)
            return value if isinstance(value, list) else [value] * n
        row = (session or self.relay).one(
            'SELECT * FROM txrelay.leader_feed_take(%s, %s, %s, %s, %s, %s, %s::bytea[], '
            '%s::bigint[], %s::bigint[], %s::bigint[], '
            '%s::bigint[], %s::numeric[], %s::numeric[], %s::bigint[], %s::bigint[])',
            account or self.alice, self.epoch if epoch is None else epoch, feed, number, publisher,
            h32(number), list(calls),
            array('priority', 0), array('not_before'), array('deadline'), array('guard'),
            array('tip'), array('max_tip'),
            array('deadline_block'), array('retries', 0))
        return row

    def feeds(self, holder='relay-a', address='10.0.0.1:9944'):
        return self.relay.dict('SELECT * FROM txrelay.leader_feeds(ARRAY[%s], %s, %s)', self.alice,
                               holder, address)

    def cursor_of(self, feed='prices'):
        return self.owner.value('SELECT last_number FROM txrelay.feeds WHERE name = %s', feed)


class Feeds(FeedCase):
    # ---- a batch ----

    def test_a_batch_and_the_cursor_are_one(self):
        self.assertEqual(self.take(0, [b'\x01\x01', b'\x01\x02', b'\x01\x03'], priority=[0, 3, 0],
                                   retries=2), ('taken', 0))
        self.assertEqual(self.cursor_of(), 0)
        rows = self.owner.rows('SELECT id, call, creator, role, key, priority, retries '
                               'FROM txrelay.outbox ORDER BY id')
        self.assertEqual([(bytes(r[1]),) + r[2:] for r in rows], [
            (b'\x01\x01', 'feed/prices/0', 'feed/prices', 'feed/prices/0/0', 0, 2),
            (b'\x01\x02', 'feed/prices/0', 'feed/prices', 'feed/prices/0/1', 3, 2),
            (b'\x01\x03', 'feed/prices/0', 'feed/prices', 'feed/prices/0/2', 0, 2)])
        batch = self.owner.dict('SELECT * FROM txrelay.feed_batches')
        self.assertEqual((batch['number'], batch['publisher'], batch['digest'], batch['calls'],
                          batch['first_id'], batch['last_id']),
                         (0, KEYS[0], h32(0), 3, rows[0][0], rows[2][0]))
        self.assertEqual(self.app.value("SELECT count(*) FROM txrelay.transactions "
                                        "WHERE creator = 'feed/prices/0'"), 3)

    def test_all_options_arrive(self):
        self.relay.rows("SELECT txrelay.account_policy('alice', '{\"tip_cap\": 100}')")
        self.take(0, not_before=1900000000000, deadline=1900000001500, guard=7, tip=5, max_tip=9,
                  deadline_block=5000000)
        row = self.owner.one('SELECT not_before, deadline, guard, tip, max_tip, deadline_block '
                             'FROM txrelay.outbox')
        utc = datetime.timezone.utc
        self.assertEqual(row[2:], (7, 5, 9, 5000000))
        self.assertEqual(row[0], datetime.datetime.fromtimestamp(1900000000, utc))
        self.assertEqual(row[1] - row[0], datetime.timedelta(milliseconds=1500))

    def test_the_cursor_decides(self):
        self.take(0)
        for number in (0, 2, -1, 5):
            self.assertEqual(self.take(number), ('elsewhere', 0))
        self.assertEqual((self.count('outbox'), self.count('feed_batches'), self.cursor_of()),
                         (1, 1, 0))
        self.assertEqual(self.take(1), ('taken', 1))

    def test_a_batch_without_calls_moves_the_cursor(self):
        self.assertEqual(self.take(0, []), ('taken', 0))
        self.assertEqual((self.count('outbox'), self.cursor_of()), (0, 0))

    def test_of_three_racers_one_wins(self):
        racers = [self.session('relay') for _ in range(3)]
        for number in range(20):
            calls = [Background(r, lambda r=r, i=i: self.take(number, [bytes([1, i])], session=r))
                     for i, r in enumerate(racers)]
            results = []
            for c in calls:
                try:
                    results.append(c.join())
                except psycopg2.errors.LockNotAvailable:
                    results.append('busy')  # it did not wait for the winner, and tries again
            self.assertEqual(results.count(('taken', number)), 1, results)
            for other in results:
                self.assertIn(other, (('taken', number), ('elsewhere', number), 'busy'))
        self.assertEqual((self.count('outbox'), self.cursor_of()), (20, 19))

    def test_issue16_5_the_cursor_decides_between_two_leaders(self):
        """The second leader claims in the middle of the first one's statement: the claim waits,
        and its take finds the number taken."""
        first, second = self.session('relay'), self.session('relay')
        first.begin()
        self.assertEqual(self.take(0, session=first), ('taken', 0))
        claim = Background(second, lambda: second.dict(
            "SELECT * FROM txrelay.leader_claim(%s, 'relay-a', 'a:1', false, 60000, 60000)",
            self.alice))
        wait_until(lambda: self.superuser().value('SELECT cardinality(pg_blocking_pids(%s)) > 0',
                                                  second.pid), 'the claim waits')
        first.commit()
        epoch = claim.join()['epoch']
        self.assertGreater(epoch, self.epoch)
        self.assertEqual(self.take(0, session=second, epoch=epoch), ('elsewhere', 0))
        self.refused('TR001', lambda: self.take(1, session=first))
        self.assertEqual(self.take(1, session=second, epoch=epoch), ('taken', 1))

    def test_a_stale_epoch_takes_nothing(self):
        stale = self.epoch
        self.epoch = self.lead()
        self.refused('TR001', lambda: self.take(0, epoch=stale))
        self.assertEqual((self.count('outbox'), self.cursor_of()), (0, -1))

    def test_a_crash_in_between_leaves_nothing_or_all(self):
        broken = self.session('relay')
        broken.begin()
        self.take(0, session=broken)
        self.superuser().rows('SELECT pg_terminate_backend(%s)', broken.pid)
        wait_until(lambda: self.superuser().value(
            'SELECT count(*) FROM pg_stat_activity WHERE pid = %s', broken.pid) == 0, 'it is gone')
        self.assertEqual((self.count('outbox'), self.count('idempotency_keys'), self.cursor_of()),
                         (0, 0, -1))
        self.assertEqual(self.take(0), ('taken', 0))

    # ---- calls and batches that are refused ----

    def test_one_bad_call_refuses_all(self):
        for what, kwargs in (('call 1 of the batch: its bytes has 0 bytes',
                              {'calls': [b'\x01', b'']}),
                             ('call 1 of the batch: its bytes is the text',
                              {'calls': [b'\x01', b'0xab']}),
                             ('call 0 of the batch: priority is 2000', {'priority': 2000}),
                             ('for feeds account alice allows at most 100', {'priority': 101}),
                             ('call 0 of the batch: retries is 101', {'retries': 101}),
                             ('call 0 of the batch: deadline_block is 0', {'deadline_block': 0}),
                             ('call 0 of the batch: spec_version is -1', {'guard': -1}),
                             ('tip or max_tip is given, and account alice has no tip_cap',
                              {'tip': 1}),
                             ('tip or max_tip is given, and account alice has no tip_cap',
                              {'max_tip': 1}),
                             ('not_before or deadline', {'deadline': 253402300800000})):
            with self.subTest(what):
                self.assertIn(what, str(self.refused('TR011', lambda: self.take(0, **kwargs))))
        self.relay.rows("SELECT txrelay.account_policy('alice', '{\"tip_cap\": 100}')")
        self.assertIn('tip is 6',
                      str(self.refused('TR011', lambda: self.take(0, tip=6, max_tip=5))))
        self.assertEqual((self.count('outbox'), self.count('idempotency_keys'), self.cursor_of()),
                         (0, 0, -1))

    def test_a_heartbeat_meanwhile_makes_no_id_an_old_one(self):
        self.addCleanup(self.drop_beat)
        self.owner.rows('''CREATE FUNCTION public.beat() RETURNS trigger LANGUAGE plpgsql SECURITY
                           DEFINER AS $$
                           BEGIN PERFORM txrelay.note_high_water(); RETURN NEW; END $$;
                           CREATE TRIGGER beat BEFORE INSERT ON txrelay.feed_batches FOR EACH ROW
                           EXECUTE FUNCTION public.beat()''')
        self.assertEqual(self.take(0), ('taken', 0))
        # One that is old is refused, and the cursor stays.
        self.owner.rows('UPDATE txrelay.high_water SET highest_id = highest_id + 1000000')
        with self.assertRaisesRegex(psycopg2.Error, 'leader_feed_take: id [0-9]+ was given before'):
            self.take(1)
        self.assertEqual(self.cursor_of(), 0)

    def drop_beat(self):
        db = self.server.connect(self.db, 'installer')
        with db.cursor() as cur:
            cur.execute('DROP FUNCTION public.beat() CASCADE')
        db.close()

    def test_a_batch_that_came_late_is_taken(self):
        """Its calls end as expired: otherwise no copy of it could ever be taken."""
        self.assertEqual(self.take(0, deadline=1000), ('taken', 0))

    def test_strict_order_holds_for_feeds(self):
        self.relay.rows("SELECT txrelay.account_policy('alice', '{\"order\": \"strict\"}')")
        self.app.begin()
        self.app.value("SELECT txrelay.enqueue('alice', '\\x01')")
        self.refused('55P03', self.take, 0)
        self.app.commit()
        self.assertIn('priority', str(self.refused('TR011', lambda: self.take(0, priority=1))))
        self.assertEqual(self.take(0), ('taken', 0))

    def test_a_feed_is_bounded_by_outbox_max(self):
        self.relay.rows("SELECT txrelay.account_policy('alice', '{\"outbox_max\": 4}')")
        self.assertEqual(self.take(0, [b'\x01'] * 5), ('taken', 0))
        self.assertIn('4 transactions of feed/prices wait',
                      str(self.refused('TR013', self.take, 1)))
        # applications are not held up
        self.assertIsNotNone(self.app.value("SELECT txrelay.enqueue('alice', '\\x01')"))
        self.owner.rows("DELETE FROM txrelay.outbox WHERE role = 'feed/prices'")
        self.assertEqual(self.take(1), ('taken', 1))

    def test_an_operator_who_holds_the_row_does_not_hold_the_leader(self):
        operator = self.session('relay')
        operator.begin()
        operator.rows("SELECT txrelay.feed_pause('prices', 'x')")
        self.refused('55P03', self.take, 0)
        operator.rollback()
        self.assertEqual(self.take(0), ('taken', 0))

    # ---- operators ----

    def test_create_checks_what_it_is_given(self):
        def create(name="'f'", account="'alice'", publishers=None, options="'{}'", last='-1'):
            return self.relay.rows(f'SELECT txrelay.feed_create({name}, {account}, %s, {options}, '
                                   f'{last})',
                                   KEYS if publishers is None else publishers)
        for what, kwargs in (('name is "a b"', {'name': "'a b'"}),
                             ('name is NULL', {'name': 'NULL'}),
                             ('name is "prices", and there is a feed', {'name': "'prices'"}),
                             ('last is -2', {'last': '-2'}),
                             ('publishers has 0 elements', {'publishers': []}),
                             ('an element of 3 bytes', {'publishers': [KEYS[0], b'abc']}),
                             ('the same key twice', {'publishers': [KEYS[0], KEYS[0]]}),
                             ('"x" is not an option', {'options': "'{\"x\": 1}'"}),
                             ('stale_winner_ms is 1;', {'options': "'{\"stale_winner_ms\": 1}'"}),
                             ('behind_stays_open is 2',
                              {'options': "'{\"behind_stays_open\": 2}'"}),
                             ('options is []', {'options': "'[]'"})):
            with self.subTest(what):
                self.assertIn(what, str(self.refused('TR011', lambda: create(**kwargs))))
        self.refused('TR010', lambda: create(account="'nobody'"))
        create(options="'{\"stale_winner_ms\": 5000, \"duplicate_skip_window\": 5}'", last='41')
        self.assertEqual(self.take(42, feed='f'), ('taken', 42))

    def test_pause_resume_publishers_remove(self):
        self.relay.rows("SELECT txrelay.feed_pause('prices', 'maintenance')")
        self.assertEqual(self.take(0), ('paused', -1))
        self.assertEqual(self.feeds()['paused'], 'maintenance')
        self.relay.rows("SELECT txrelay.feed_resume('prices')")
        self.assertEqual(self.take(0), ('taken', 0))
        self.relay.rows("SELECT txrelay.feed_publishers('prices', %s)", KEYS[1:])
        row = self.feeds()
        self.assertEqual((row['name'], row['account'], row['last_number'], row['publishers'],
                          row['paused']),
                         ('prices', self.alice, 0, KEYS[1] + KEYS[2], None))
        self.assertEqual(self.relay.value("SELECT txrelay.feed_remove('prices')"), 0)
        self.assertEqual(self.take(1), ('removed', None))
        self.assertEqual((self.count('feed_batches'), self.count('outbox')), (0, 1))
        for call in ("feed_pause('prices', 'x')", "feed_resume('prices')", "feed_remove('prices')"):
            self.refused('TR010', self.relay.rows, 'SELECT txrelay.' + call)
        self.refused('TR010', self.relay.rows, "SELECT txrelay.feed_publishers('prices', %s)", KEYS)

    def test_a_feed_that_is_created_again_takes_no_call_twice(self):
        self.take(0, [b'\x01\x02', b'\x01\x03'])
        self.relay.rows("SELECT txrelay.feed_remove('prices')")
        self.relay.rows("SELECT txrelay.feed_create('prices', 'alice', %s)", KEYS)
        self.refused('TR012', self.take, 0, [b'\x01\x02', b'\x01\x04'])
        self.assertEqual(self.cursor_of(), -1)
        self.assertEqual(self.take(0, [b'\x01\x02', b'\x01\x03', b'\x01\x05']), ('taken', 0))
        self.assertEqual(self.count('outbox'), 3)

    def test_the_view_shows_cursor_lag_and_publishers(self):
        self.take(0, [b'\x01'] * 3)
        self.enqueue()  # of an application
        self.feeds()
        row = self.session('follower').dict('SELECT * FROM txrelay.feed_cursors')
        self.assertEqual((row['name'], row['account'], row['last_number'], row['waiting'],
                          row['publishers'], row['paused'],
                          row['leader_address']),
                          ('prices', 'alice', 0, 3, ['0x' + k.hex() for k in KEYS], None,
                           '10.0.0.1:9944'))
        self.assertLessEqual(row['taken_at'], row['oldest'] + datetime.timedelta(minutes=1))

    def test_issue16_5_a_relay_names_the_one_that_leads(self):
        # the leader takes no feeds yet
        self.assertIsNone(self.feeds('relay-b', '10.0.0.2:9944')['leader'])
        self.assertEqual(self.feeds()['leader'], '10.0.0.1:9944')
        self.assertEqual(self.feeds('relay-b', '10.0.0.2:9944')['leader'], '10.0.0.1:9944')
        self.feeds(address='10.0.0.1:9945')
        self.assertEqual(self.feeds('relay-b', '10.0.0.2:9944')['leader'], '10.0.0.1:9945')
        self.lead()
        self.owner.rows("UPDATE txrelay.feed_servers SET seen_at = now() - interval '2 hours'")
        self.feeds()
        self.assertEqual(self.owner.rows('SELECT holder FROM txrelay.feed_servers'), [('relay-a',)])

    def test_only_operators_and_relays_may(self):
        for call in ("feed_create('x', 'alice', '{}')", "feed_publishers('prices', '{}')",
                     "feed_pause('prices', 'x')",
                     "feed_resume('prices')", "feed_remove('prices')",
                     "leader_feeds('{1}', 'h', 'a')",
                     "leader_feed_take(1, 1, 'prices', 0, '', '', '{}', '{}', '{}', '{}', '{}', "
                     "'{}', '{}', '{}', '{}')"):
            for session in (self.app, self.session('follower'), self.session('nobody')):
                with self.subTest(call):
                    self.refused('42501', session.rows, 'SELECT txrelay.' + call)
        self.take(0)
        tx = self.owner.value('SELECT id FROM txrelay.outbox')
        self.refused('42501', self.app.rows, 'SELECT txrelay.cancel(%s)', tx)
        self.assertEqual(self.relay.value('SELECT txrelay.cancel(%s)', tx), 'cancelled')

    def test_retention_removes_old_batches(self):
        for number in range(4):
            self.take(number)
        self.owner.rows("UPDATE txrelay.feed_batches SET taken_at = now() - interval '9 days' "
                        "WHERE number < 2")
        self.relay.value("SELECT txrelay.leader_cleanup(%s, %s, '8 days')", self.alice, self.epoch)
        self.assertEqual(self.owner.rows('SELECT number FROM txrelay.feed_batches ORDER BY 1'),
                         [(2,), (3,)])
        self.assertEqual(self.cursor_of(), 3)


if __name__ == '__main__':
    unittest.main()
