"""Feeds: each argument has its bounds, and nothing reaches a feed that is not the caller's to
change."""
import datetime
import json
import unittest

from pgcase import h32
from test_feeds import KEYS, FeedCase

LAST_MS = 253402300799999  # of the year 9999
AMOUNT_MAX = 2**128 - 1
NUMBER_MAX = 2**53 - 1


class Guards(FeedCase):
    def create(self, name='f', account='alice', publishers=KEYS, options='{}', last=-1):
        return self.relay.rows('SELECT txrelay.feed_create(%s, %s, %s::bytea[], %s::jsonb, %s)',
                               name, account, publishers, options, last)

    def row(self, feed):
        return self.owner.dict('SELECT * FROM txrelay.feeds WHERE name = %s', feed)

    def nothing_stored(self, cursor=-1):
        self.assertEqual((self.count('outbox'), self.count('idempotency_keys'),
                          self.count('feed_batches'), self.cursor_of()),
                         (0, 0, 0, cursor))

    # ---- operators ----

    def test_a_feed_has_1_to_32_keys(self):
        before = self.row('prices')
        for what, keys in (('has 0 elements', None), ('has 0 elements', []),
                           ('has 33 elements', [h32(i) for i in range(33)]),
                           ('an element of 0 bytes', [KEYS[0], None]),
                           ('an element of 31 bytes', [b'x' * 31]),
                           ('an element of 33 bytes', [b'x' * 33]),
                           ('the same key twice', [KEYS[0], KEYS[1], KEYS[0]])):
            for function, call in (('feed_create', lambda: self.create(publishers=keys)),
                                   ('feed_publishers', lambda: self.relay.rows(
                    "SELECT txrelay.feed_publishers('prices', %s::bytea[])", keys))):
                with self.subTest(what, function=function):
                    self.refused('TR011', call, text=(f'{function}: publishers', what))
        self.assertEqual(self.row('prices'), before)
        self.create(publishers=[h32(i) for i in range(32)])
        self.assertEqual(len(self.row('f')['publishers']), 32)

    def test_each_option_has_its_bounds(self):
        for name, least, most in (('persistence_ack_ms', 100, 3600000),
                                  ('stale_winner_ms', 100, 3600000),
                                  ('resend_ms', 100, 3600000), ('duplicate_skip_window', 0, 10),
                                  ('behind_stays_open', 0, 1),
                                  ('batch_calls_max', 1, 10000), ('batch_bytes_max', 1, 67108864)):
            for value in (least - 1, most + 1, least + 0.5, str(least), True, None, [least]):
                with self.subTest(name, value=value):
                    self.refused('TR011', lambda: self.create(options=json.dumps({name: value})),
                                 text=f'feed_create: {name} is {json.dumps(value)}; it must be a '
                                      f'whole number from {least} to {most}')
            for value in (least, most):
                self.create(name=f'{name}-{value}', options=json.dumps({name: value}))
                self.assertEqual(self.row(f'{name}-{value}')['options'], {name: value})

    def test_options_are_an_object(self):
        for options in ('[]', '"stale_winner_ms"', '7', 'null', None):
            with self.subTest(options):
                self.refused('TR011', lambda: self.create(options=options),
                             text='feed_create: options is '
                                  f'{"NULL" if options is None else options}; it must be a JSON '
                                  'object')

    def test_a_name_has_1_to_64_characters(self):
        for name in ('', '-a', '.a', 'a/b', 'a b', 'a\n', 'ä', 'x' * 65):
            with self.subTest(name):
                self.refused('TR011', lambda: self.create(name=name),
                             text=f'feed_create: name is "{name}"; it must have 1 to 64')
        for name in ('0', 'A.b-c_9', 'x' * 64):
            self.create(name=name)

    def test_the_first_number(self):
        for last in (None, -2, NUMBER_MAX + 1):
            self.refused('TR011', lambda: self.create(last=last),
                         text=f'feed_create: last is {"NULL" if last is None else last}; it must '
                              f'be -1 to {NUMBER_MAX}')
        self.create(last=NUMBER_MAX)
        self.assertEqual(self.row('f')['last_number'], NUMBER_MAX)

    def test_an_account_that_no_relay_signs_for_has_no_feed(self):
        self.owner.rows('UPDATE txrelay.accounts SET watch_only = true')
        self.refused('TR011', self.create,
                     text='feed_create: account is "alice", whose key no relay has')

    def test_a_pause_has_a_reason(self):
        for given, stored in ((None, 'by relay'), ('x' * 201, 'x' * 200), ('', '')):
            self.relay.rows("SELECT txrelay.feed_pause('prices', %s)", given)
            self.assertEqual(self.row('prices')['paused_reason'], stored)

    def test_what_is_done_to_one_feed_leaves_the_others(self):
        self.create('rates')
        self.take(0)
        self.take(0, feed='rates')
        before = self.row('rates')
        for call in ("feed_publishers('prices', ARRAY[sha256('other')])",
                     "feed_pause('prices', 'x')", "feed_resume('prices')",
                     "feed_remove('prices')"):
            with self.subTest(call):
                self.relay.rows('SELECT txrelay.' + call)
                self.assertEqual(self.row('rates'), before)
        self.assertEqual(self.owner.rows('SELECT feed FROM txrelay.feed_batches'), [('rates',)])
        self.relay.rows("SELECT txrelay.feed_pause('rates', 'y')")
        self.create('prices')
        self.relay.rows("SELECT txrelay.feed_resume('prices')")
        self.assertEqual(self.row('rates')['paused_reason'], 'y')

    def test_keys_keep_their_order(self):
        for keys in (KEYS, KEYS[::-1]):
            self.relay.rows("SELECT txrelay.feed_publishers('prices', %s)", keys)
            self.assertEqual(self.feeds()['publishers'], b''.join(keys))
            self.assertEqual(self.owner.value('SELECT publishers FROM txrelay.feed_cursors'),
                             ['0x' + k.hex() for k in keys])

    def test_the_record_has_what_another_operator_did_before(self):
        first, second = self.session('relay'), self.session('relay')
        first.begin()
        first.rows("SELECT txrelay.feed_pause('prices', 'lunch')")
        waiting = self.background(second, "SELECT txrelay.feed_resume('prices')")
        first.commit()
        waiting.join()
        before = self.owner.value("SELECT before FROM txrelay.operations "
                                  "WHERE action = 'feed_resume'")
        self.assertEqual(before['paused_reason'], 'lunch')

    # ---- relays ----

    def test_a_relay_names_itself(self):
        for holder, address in (('', 'a'), ('h', ''), (None, 'a'), ('h', None), ('h' * 501, 'a'),
                                ('h', 'a' * 301)):
            with self.subTest(holder=holder, address=address):
                self.refused('TR011', lambda: self.feeds(holder, address),
                             text='leader_feeds: p_holder or p_address is empty or too long')
        self.assertEqual(self.count('feed_servers'), 0)
        self.feeds('h' * 500, 'a' * 300)

    def test_a_relay_hears_of_the_feeds_of_its_accounts(self):
        bob, carol = self.register(self.relay, 'bob', 43), self.register(self.relay, 'carol', 44)
        self.lead('relay-b', bob)
        self.create('of-bob', 'bob')
        self.create('of-carol', 'carol')
        self.feeds('relay-b', 'b:1')
        rows = self.relay.rows("SELECT name, account, leader FROM txrelay.leader_feeds(ARRAY[%s, "
                               "%s], 'relay-a', 'a:1')", self.alice, bob)
        self.assertEqual(rows, [('of-bob', bob, 'b:1'), ('prices', self.alice, 'a:1')])
        self.assertEqual(self.relay.rows("SELECT name, leader FROM txrelay.leader_feeds(ARRAY[%s], "
                                         "'relay-a', 'a:1')", carol),
                         [('of-carol', None)])

    def test_a_relay_that_is_there_stays_named(self):
        self.feeds()
        self.owner.rows("UPDATE txrelay.feed_servers SET seen_at = now() - interval '11 min'")
        self.assertEqual(self.feeds()['leader'], '10.0.0.1:9944')
        self.assertTrue(self.owner.value("SELECT seen_at > now() - interval '1 min' "
                                         "FROM txrelay.feed_servers"))
        seen = self.owner.value('SELECT seen_at FROM txrelay.feed_servers')
        self.feeds()  # it writes nothing each time
        self.assertEqual(self.owner.value('SELECT seen_at FROM txrelay.feed_servers'), seen)

    def test_another_accounts_feed_takes_nothing(self):
        bob = self.register(self.relay, 'bob', 43)
        epoch = self.lead('relay-a', bob)
        self.assertEqual(self.take(0, account=bob, epoch=epoch), ('removed', None))
        self.assertEqual(self.take(0, [b''], account=bob, epoch=epoch), ('removed', None))
        self.nothing_stored()
        self.assertEqual(self.take(0), ('taken', 0))
        self.assertEqual(self.take(1, [b''], feed='nothing'), ('removed', None))

    def test_who_comes_late_is_not_blamed(self):
        """The calls of a batch that is not taken are not looked at: what they are does not
        matter."""
        self.assertEqual(self.take(5, [b'']), ('elsewhere', -1))
        self.relay.rows("SELECT txrelay.feed_pause('prices', 'x')")
        self.assertEqual(self.take(0, [b'']), ('paused', -1))
        self.assertEqual(self.take(5), ('elsewhere', -1))
        self.nothing_stored()

    def test_every_array_has_an_element_for_each_call(self):
        arrays = [('bytea', [b'\x01']), ('bigint', [0]), ('bigint', [None]), ('bigint', [None]),
                  ('bigint', [None]), ('numeric', [None]),
                  ('numeric', [None]), ('bigint', [None]), ('bigint', [0])]
        sql = ('SELECT * FROM txrelay.leader_feed_take(%s, %s, %s, 0, %s, %s, '
               + ', '.join(f'%s::{kind}[]' for kind, _ in arrays) + ')')
        for at in range(len(arrays)):
            for wrong in ([], arrays[at][1] * 2, None):
                with self.subTest(array=at, wrong=wrong):
                    values = [wrong if i == at else value for i, (_, value) in enumerate(arrays)]
                    self.refused('TR011', lambda: self.relay.rows(sql, self.alice, self.epoch,
                                                                  'prices', KEYS[0], h32(0),
                                                                  *values),
                                 text='leader_feed_take: arrays have the lengths')
        self.nothing_stored()

    # ---- calls ----

    def refused_call(self, what, **kwargs):
        """The second call of three; the error names its place, and nothing is stored."""
        good = {'calls': b'\x01', 'priority': 0, 'retries': 0}
        with self.subTest(what, **kwargs):
            arrays = {name: [good.get(name), value, good.get(name)]
                      for name, value in kwargs.items()}
            calls = arrays.pop('calls', [b'\x01'] * 3)
            self.refused('TR011', lambda: self.take(0, calls, **arrays),
                         text='call 1 of the batch: ' + what)

    def test_each_part_of_a_call_has_its_bounds(self):
        megabyte = 1 << 20
        self.refused_call('its bytes is NULL', calls=None)
        self.refused_call('its bytes has 0 bytes', calls=b'')
        self.refused_call(f'its bytes has {megabyte + 1} bytes', calls=b'\x01' * (megabyte + 1))
        self.refused_call('its bytes is the text', calls=b'0xab')
        for priority in (-1001, 1001, None):
            self.refused_call('priority is ', priority=priority)
        self.refused_call('priority is 101; for feeds account alice allows at most 100',
                          priority=101)
        for retries in (-1, 101, None):
            self.refused_call('retries is ', retries=retries)
        for guard in (-1, 2**32):
            self.refused_call('spec_version is ', guard=guard)
        for block in (0, -1):
            self.refused_call('deadline_block is ', deadline_block=block)
        for name in ('not_before', 'deadline'):
            for value in (-1, LAST_MS + 1):
                self.refused_call('not_before or deadline is not between the years 1970 and 9999',
                                  **{name: value})
        for name in ('tip', 'max_tip'):
            self.refused_call('tip or max_tip is given, and account alice has no tip_cap',
                              **{name: 0})
        self.policy(tip_cap='100')
        for name in ('tip', 'max_tip'):
            for value in (-1, 1.5, AMOUNT_MAX + 1):
                self.refused_call(f'{name} is ', **{name: value})
        self.refused_call('tip is 6; it must not be above max_tip (5)', tip=6, max_tip=5)
        self.nothing_stored()

    def test_the_bounds_themselves_are_allowed(self):
        self.policy(tip_cap='100', priority_max=7)
        self.refused_call('priority is 8; for feeds account alice allows at most 7', priority=8)
        edges = [{'priority': -1000}, {'priority': 7}, {'retries': 100}, {'guard': 0},
                 {'guard': 2**32 - 1}, {'deadline_block': 1},
                 {'not_before': 0}, {'not_before': LAST_MS}, {'deadline': 0}, {'deadline': LAST_MS},
                 {'tip': 0}, {'tip': AMOUNT_MAX},
                 {'max_tip': 0}, {'max_tip': AMOUNT_MAX}, {'tip': 5, 'max_tip': 5}]
        names = {name for edge in edges for name in edge}
        arrays = {name: [edge.get(name, 0 if name in ('priority', 'retries') else None)
                         for edge in edges] for name in names}
        calls = [b'\x01' * (1 << 20)] + [b'\x01'] * (len(edges) - 1)
        self.assertEqual(self.take(0, calls, **arrays), ('taken', 0))
        self.assertEqual(self.count('outbox'), len(edges))
        latest = self.owner.value("SELECT date_trunc('milliseconds', max(not_before)) "
                                  "FROM txrelay.outbox")
        self.assertEqual(latest, datetime.datetime(9999, 12, 31, 23, 59, 59, 999000,
                                                   datetime.timezone.utc))

    def test_strict_order_has_no_other_places(self):
        self.policy(order='strict')
        self.refused('TR011', lambda: self.take(0, [b'\x01'] * 2, priority=[0, -1]),
                     text='leader_feed_take: priority is -1')
        self.refused('TR011', lambda: self.take(0, [b'\x01'] * 2, not_before=[None, 1900000000000]),
                     text='leader_feed_take: not_before is 2030-')
        self.nothing_stored()

    def test_a_full_feed_holds_up_no_other(self):
        self.policy(outbox_max=4)
        self.create('rates')
        self.take(0, [b'\x01'] * 4)
        self.refused('TR013', self.take, 1,
                     text='4 transactions of feed/prices wait at account alice already')
        self.refused('TR013', lambda: self.take(1, [b'\x01'] * 2),
                     text='4 transactions of feed/prices wait at account alice already')
        self.assertEqual(self.take(0, feed='rates'), ('taken', 0))
        self.owner.rows("DELETE FROM txrelay.outbox WHERE key = 'feed/prices/0/0'")
        self.assertEqual(self.take(1, []), ('taken', 1))
        # three wait: whole batches are taken
        self.assertEqual(self.take(2, [b'\x01'] * 3), ('taken', 2))
        self.refused('TR013', self.take, 3, text='4 transactions')

    def test_a_key_that_was_removed_stores_nothing_more(self):
        """Its header and its signature were good when the relay read the keys."""
        self.assertEqual(self.take(0, publisher=KEYS[1]), ('taken', 0))
        self.relay.rows("SELECT txrelay.feed_publishers('prices', %s)", KEYS[:1])
        for key in (KEYS[1], b'', KEYS[0][:31], KEYS[0] + b'\0', None):
            self.refused('TR011', lambda k=key: self.take(1, publisher=k),
                         text='none of the publishers of feed prices')
            self.assertEqual((self.cursor_of(), self.count('outbox'), self.count('feed_batches')),
                             (0, 1, 1))
        self.assertEqual(self.take(3, publisher=KEYS[1]), ('elsewhere', 0))
        self.assertEqual(self.take(1, publisher=KEYS[0]), ('taken', 1))

    def test_a_batch_rings_no_doorbell(self):
        """Its caller leads the account. A notification would take the lock of all commits that
        notify."""
        leader, ear = self.session('relay'), self.listen('outbox_wake')
        self.assertTrue(leader.value('SELECT pg_try_advisory_lock(9001, %s)', self.alice))
        self.take(0)
        self.assertEqual(self.heard(ear), [])


if __name__ == '__main__':
    unittest.main()
