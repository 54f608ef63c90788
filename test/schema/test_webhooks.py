"""Webhooks: which ends become deliveries, in which order, for whom, and what becomes of them."""
import json

import psycopg2

from pgcase import Case


class Webhooks(Case):
    def setUp(self):
        super().setUp()
        self.bob = self.register(self.relay, 'bob', 43)
        for account in (self.alice, self.bob):
            self.relay.rows("SELECT * FROM txrelay.leader_claim(%s, 'one', NULL, false, 5000, "
                            "20000)", account)

    def create(self, name='hook', url='https://hook.example/x', accounts=None, outcomes=None):
        self.relay.rows('SELECT txrelay.webhook_create(%s, %s, %s, %s)', name, url, accounts,
                        outcomes)

    def ends(self, account='alice', n=1):
        """Enqueued and cancelled: they end."""
        ids = [self.app.value('SELECT txrelay.enqueue(%s, %s)', account, bytes([0, i]))
               for i in range(n)]
        for id in ids:
            self.app.value('SELECT txrelay.cancel(%s)', id)
        return ids

    def due(self, holder='one', each=10, accounts=8):
        rows = self.relay.dicts('SELECT * FROM txrelay.leader_webhooks(%s, %s, %s)', holder, each,
                                accounts)
        self.last = rows.pop()
        self.assertIsNone(self.last['webhook'])
        return rows

    def done(self, taken=(), failed=None, error=None, delay=0, dead=False):
        return self.relay.value('SELECT txrelay.leader_webhooks_done(%s::bigint[], %s, %s, %s, %s)',
                                list(taken), failed, error, delay, dead)

    def test_what_ends_after_its_creation_is_delivered_in_order_and_once(self):
        self.ends()
        self.create()
        ids = self.ends(n=5) + self.ends('bob', 2)
        rows = self.due()
        self.assertEqual(sorted(r['id'] for r in rows), ids)
        self.assertEqual([r['id'] for r in rows if r['account'] == self.alice], ids[:5])
        body = json.loads(rows[0]['body'])
        self.assertEqual((body['type'], body['data']['outcome'], body['data']['account']),
                         ('transaction.ended', 'cancelled',
                                            'alice' if rows[0]['account'] == self.alice else 'bob'))
        self.assertEqual(sorted(r['id'] for r in self.due()), ids)  # again, until it is reported
        self.assertEqual(self.done([r['number'] for r in rows]), 7)
        self.assertEqual(self.due(), [])
        self.assertEqual((self.last['due_ms'], self.last['live']), (None, 1))

    def test_it_has_its_accounts_and_outcomes(self):
        self.create('bobs', accounts=['bob'])
        self.create('well', outcomes=['ok'])
        self.create('both', accounts=['alice'], outcomes=['ok', 'cancelled'])
        a, = self.ends()
        b, = self.ends('bob')
        self.assertEqual(sorted((r['webhook'], r['id']) for r in self.due()),
                         [('bobs', b), ('both', a)])

    def test_a_leader_delivers_for_its_accounts(self):
        self.create()
        self.owner.rows("UPDATE txrelay.leadership SET holder = 'two' WHERE subject = %s", self.bob)
        a, = self.ends()
        b, = self.ends('bob')
        self.assertEqual([r['id'] for r in self.due('one')], [a])
        self.assertEqual([r['id'] for r in self.due('two')], [b])
        self.assertEqual(self.due('three'), [])

    def test_a_failure_keeps_its_account_waiting(self):
        self.create()
        first, second = self.ends(n=2)
        b, = self.ends('bob')
        rows = {r['id']: r for r in self.due()}
        self.done(failed=rows[first]['number'], error='it answered 500', delay=60000)
        self.assertEqual([r['id'] for r in self.due()], [b])
        self.assertTrue(50000 < self.last['due_ms'] <= 60000)
        self.owner.rows('UPDATE txrelay.webhook_deliveries SET due_at = clock_timestamp()')
        row = [r for r in self.due() if r['id'] == first][0]
        self.assertEqual(row['attempts'], 1)
        self.done(failed=row['number'], error='it answered 500', dead=True)
        self.assertEqual(sorted(r['id'] for r in self.due()), sorted([second, b]))
        # Given up, listed, and sent again before what is newer.
        self.assertEqual(self.relay.rows('SELECT id, error, attempts '
                                       'FROM txrelay.webhook_deliveries WHERE dead_at IS NOT NULL'),
                         [(first, 'it answered 500', 2)])
        with self.assertRaises(psycopg2.Error) as caught:
            self.relay.rows("SELECT txrelay.webhook_again('hook', 999)")
        self.assertEqual(caught.exception.pgcode, 'TR011')
        self.assertEqual(self.relay.value("SELECT txrelay.webhook_again('hook')"), 1)
        self.assertEqual([(r['id'], r['attempts']) for r in self.due()
                          if r['account'] == self.alice], [(first, 0), (second, 0)])

    def test_limits_and_no_account_is_kept_waiting_by_others(self):
        self.create()
        self.ends(n=5)
        self.ends('bob', 5)
        self.assertEqual(len(self.due(each=3)), 6)
        seen = set()
        for _ in range(200):
            rows = self.due(each=1, accounts=1)
            self.assertEqual(len(rows), 1)
            seen.add(rows[0]['account'])
        self.assertEqual(seen, {self.alice, self.bob})

    def test_what_is_not_committed_yet_is_not_passed_over(self):
        self.create()
        early, late = (self.app.value('SELECT txrelay.enqueue(%s, %s)', 'alice', bytes([0, i]))
                       for i in range(2))
        slow = self.session('app')
        slow.rows('BEGIN')
        slow.rows('SELECT txrelay.cancel(%s)', early)
        self.app.rows('SELECT txrelay.cancel(%s)', late)
        self.assertEqual(self.due(), [])  # its time is behind that of the open transaction
        slow.rows('COMMIT')
        self.assertEqual([r['id'] for r in self.due()], [early, late])

    def test_many_ends_take_several_looks_and_none_is_lost(self):
        self.create()
        self.owner.rows("INSERT INTO txrelay.finished_transactions (id, account, outcome, "
                        "created_at, finished_at) SELECT 1000000 + i, %s, 'ok', "
                        "clock_timestamp(), clock_timestamp() - interval '1 ms' FROM "
                        "generate_series(1, 1500) i", self.alice)
        self.owner.rows("INSERT INTO txrelay.finished_transactions (id, account, outcome, "
                        "created_at, finished_at) SELECT 2000000 + i, %s, 'ok', "
                        "clock_timestamp(), clock_timestamp() + i * interval '1 us' FROM "
                        "generate_series(1, 1500) i", self.alice)
        self.owner.rows("UPDATE txrelay.webhooks SET created_at = '2020-01-01'; UPDATE "
                        "txrelay.webhook_position SET read_to = now() - interval '2 days'")
        count = -1
        while count != (
            count := self.owner.value(
                'SELECT count(*) FROM txrelay.webhook_deliveries')) or count < 3000:
            self.due()
        self.assertEqual(self.owner.rows('SELECT count(*), count(DISTINCT id) '
                                         'FROM txrelay.webhook_deliveries'), [(3000, 3000)])

    def test_a_pause_keeps_what_ends(self):
        self.create()
        self.relay.rows("SELECT txrelay.webhook_pause('hook')")
        a, = self.ends()
        self.assertEqual(self.due(), [])
        self.relay.rows("SELECT txrelay.webhook_resume('hook')")
        self.assertEqual([r['id'] for r in self.due()], [a])
        self.assertEqual(self.relay.value("SELECT txrelay.webhook_remove('hook')"), 1)
        self.assertEqual(self.due(), [])
        self.assertEqual(self.last['live'], 0)

    def test_a_rotation_signs_with_both_for_a_day(self):
        self.create()
        self.ends()
        before = self.due()[0]
        self.relay.rows("SELECT txrelay.webhook_rotate('hook')")
        after = self.due()[0]
        self.assertEqual((before['salt_before'], bytes(after['salt_before'])),
                         (None, bytes(before['salt'])))
        self.assertNotEqual(bytes(after['salt']), bytes(before['salt']))
        self.owner.rows("UPDATE txrelay.webhooks SET rotated_at = rotated_at - interval '1 day'")
        self.assertIsNone(self.due()[0]['salt_before'])

    def test_bad_arguments_are_refused(self):
        self.create()
        for text, args in (('name is "a b"', ('a b', 'https://x/')),
                           ('a webhook of that name', ('hook', 'https://x/')),
                           ('url is "ftp://x"', ('x', 'ftp://x')),
                           ('url is "https://x/ y"', ('x', 'https://x/ y')),
                           ('has a user', ('x', 'https://u:p@x/')), ('url is NULL', ('x', None)),
                           ('url is', ('x', 'https://x/#a')),
                           ('outcomes has "fine"', ('x', 'https://x/', None, ['fine'])),
                           ('outcomes is empty', ('x', 'https://x/', None, [])),
                           ('accounts is empty', ('x', 'https://x/', []))):
            with self.assertRaises(psycopg2.Error, msg=text) as caught:
                self.create(*args)
            self.assertEqual(caught.exception.pgcode, 'TR011')
            self.assertIn(text, caught.exception.diag.message_primary)
            self.assertNotIn('u:p', caught.exception.diag.message_primary)
        for function in ('remove', 'pause', 'resume', 'rotate', 'again'):
            with self.assertRaises(psycopg2.Error) as caught:
                self.relay.rows(f"SELECT txrelay.webhook_{function}('none')")
            self.assertEqual(caught.exception.pgcode, 'TR010')
