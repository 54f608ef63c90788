"""leader_due: one question for all accounts that a relay leads says exactly who has a reason to
look or to fetch."""
import random
import unittest

from pgcase import Case, h32

AHEAD_MS = 3000


class Due(Case):
    WIDE = True

    def setUp(self):
        super().setUp()
        self.epoch = self.lead()
        self.fingerprint = self.fingerprint_now()

    def fingerprint_now(self):
        return self.look(self.epoch)[0]['fingerprint']

    def due(self, accounts=None, epochs=None, fingerprints=None, ahead_ms=AHEAD_MS):
        return self.relay.dicts('SELECT * FROM txrelay.leader_due(%s::int[], %s::bigint[], '
                                '%s::bigint[], %s)',
                                accounts or [self.alice], epochs or [self.epoch],
                                fingerprints or [self.fingerprint], ahead_ms)

    def one(self, **kwargs):
        """What is said of alice: the names of what is true, and next_ms; None: she is left out."""
        rows = self.due(**kwargs)
        if not rows:
            return None
        self.assertEqual(len(rows), 1)
        row = rows[0]
        self.assertEqual(row.pop('account'), self.alice)
        next_ms = row.pop('next_ms')
        return {name for name, true in row.items() if true}, next_ms

    def test_nothing_is_left_out_of_the_answer(self):
        self.assertIsNone(self.one())
        self.pending(epoch=self.epoch)
        self.fingerprint = self.fingerprint_now()
        self.assertIsNone(self.one(), 'what is pending without a deadline is the chain\'s')

    def test_who_does_not_lead_is_told(self):
        """By epoch, by claimant, by timeline, and a number that nobody has; whatever else there is
        to say."""
        self.enqueue()
        for epoch in (self.epoch - 1, self.epoch + 1, 0, None):
            with self.subTest(epoch=epoch):
                self.assertEqual(self.one(epochs=[epoch]), ({'lost'}, None))
        self.assertEqual(self.due(accounts=[99])[0]['lost'], True)
        self.assertEqual(self.one(), ({'has_rows'}, None))
        self.owner.rows('UPDATE txrelay.leadership SET timeline = timeline + 1')
        self.assertEqual(self.one(), ({'lost'}, None))
        self.owner.rows('UPDATE txrelay.leadership SET timeline = timeline - 1')
        self.relay.value("SELECT txrelay.leader_release(%s, %s, 'relay-a')", self.alice, self.epoch)
        self.assertEqual(self.one(), ({'lost'}, None))

    def test_rows(self):
        self.enqueue()
        self.assertEqual(self.one(), ({'has_rows'}, None))
        self.relay.value("SELECT txrelay.account_pause('alice', 'x')")
        self.fingerprint = self.fingerprint_now()
        self.assertIsNone(self.one(), 'nothing is admitted while it stands still')

    def test_a_row_that_waits_for_its_time(self):
        tx, = self.enqueue(not_before='2099-01-01')
        self.assertIsNone(self.one())
        self.later(tx, 'not_before', 2.0)
        names, next_ms = self.one()
        self.assertEqual(names, set())
        self.assertTrue(1 <= next_ms <= 2000, next_ms)
        self.assertIsNone(self.one(ahead_ms=1))
        self.later(tx, 'not_before', -1.0)
        self.assertEqual(self.one(), ({'has_rows'}, None))
        self.assertEqual(self.look(self.epoch)[0]['has_rows'], True)

    def later(self, tx, column, seconds):
        self.owner.rows(f"UPDATE txrelay.outbox SET {column} = clock_timestamp() + %s * interval "
                        "'1 s' WHERE id = %s", seconds, tx)
        self.owner.rows("UPDATE txrelay.pending_transactions "
                        "SET deadline = clock_timestamp() + %s * interval '1 s' "
                        'WHERE id = %s', seconds, tx)

    def test_deadlines(self):
        tx, = self.enqueue(deadline='2099-01-01')
        self.assertEqual(self.one(), ({'has_rows'}, None))
        self.later(tx, 'deadline', 2.0)
        names, next_ms = self.one()
        self.assertEqual(names, {'has_rows'})
        self.assertTrue(1 <= next_ms <= 2000, next_ms)
        self.admit(self.relay, self.epoch, [tx], [0])
        self.fingerprint = self.fingerprint_now()
        names, next_ms = self.one()
        self.assertEqual(names, set())
        self.assertTrue(1 <= next_ms <= 2000, next_ms)
        self.later(tx, 'deadline', -1.0)
        self.assertEqual(self.one(), ({'has_requests'}, None))
        tx, = self.enqueue(deadline='2099-01-01')
        self.later(tx, 'deadline', -1.0)
        self.assertEqual(self.one(), ({'has_requests'}, None))

    def test_what_was_asked_for(self):
        _, (tx,) = self.pending(epoch=self.epoch)
        self.fingerprint = self.fingerprint_now()
        self.app.value('SELECT txrelay.cancel(%s)', tx)
        self.assertEqual(self.one(), ({'has_requests'}, None))

    def test_bumps(self):
        waits, = self.enqueue(not_before='2099-01-01')
        self.app.value('SELECT txrelay.bump(%s, 5)', waits)
        self.assertIsNone(self.one(), 'it is in the row, and the row waits')
        _, (tx,) = self.pending(epoch=self.epoch)
        self.fingerprint = self.fingerprint_now()
        self.app.value('SELECT txrelay.bump(%s, 5)', tx)
        self.assertEqual(self.one(), ({'has_requests'}, None))
        self.attempt(self.relay, self.epoch, [0], [h32('more')], tip=5)
        self.assertEqual(self.one(), ({'has_requests'}, None), 'to be forgotten')
        self.look(self.epoch)
        self.assertIsNone(self.one())

    def test_facts_that_changed(self):
        """Whatever the look says of the account is in its fingerprint; a fingerprint that nobody
        knows says nothing."""
        changes = ("account_policy('alice', '{\"tip_start\": 1, \"tip_cap\": 9}')",
                   "account_policy('alice', '{\"tip_start\": 2}')",
                   "account_pause('alice', 'x')", "account_resume('alice')",
                   f"leader_pause({self.alice}, {self.epoch}, 'payment', 'x')",
                   f"leader_pause({self.alice}, {self.epoch}, 'reaped', 'x')",
                   "account_resume('alice')")
        facts, fingerprints = set(), set()
        for change in changes:
            with self.subTest(change):
                self.relay.rows('SELECT txrelay.' + change)
                self.assertEqual(self.one(), ({'has_requests'}, None))
                self.assertIsNone(self.one(fingerprints=[None]))
                row, = self.look(self.epoch)
                self.fingerprint = row['fingerprint']
                self.assertGreaterEqual(self.fingerprint, 0)
                self.assertIsNone(self.one())
                fingerprints.add(self.fingerprint)
                facts.add(str({k: v for k, v in row.items()
                               if k not in ('fingerprint', 'next_ms')}))
        self.owner.rows('UPDATE txrelay.accounts SET transaction_version = 7')
        self.assertEqual(self.one(), ({'has_requests'}, None))
        self.assertEqual(len(facts), len(fingerprints))

    def test_the_shape_of_the_question(self):
        self.refused('TR011', self.due, [self.alice], [1, 2], text='leader_due')
        self.assertEqual(self.relay.rows("SELECT * FROM txrelay.leader_due('{}', '{}', '{}', 1)"),
                         [])

    def many(self, count):
        """`count` more accounts that one relay leads; their numbers, in a random order."""
        self.owner.rows('''WITH l AS (INSERT INTO txrelay.leadership (kind, lock_key, holder,
                epoch, heartbeat, expiry_1, expiry_2,
                timeline) SELECT 'account', 1000 + i, 'me', 1, now(), now(), now(),
                txrelay.timeline()
                FROM generate_series(1, %s) i RETURNING subject)
            INSERT INTO txrelay.accounts (account, alias, account_id, scheme, genesis, address)
            SELECT subject, 'm' || subject, sha256(subject::text::bytea), 'ed25519', sha256('g'),
            'x' || subject FROM l''', count)
        return [r[0] for r in self.owner.rows(
            "SELECT account FROM txrelay.accounts WHERE alias ~ '^m' ORDER BY random()")]

    def fingerprints(self, accounts):
        return [m for m, in self.owner.rows(
            'SELECT txrelay.account_fingerprint(t) FROM txrelay.accounts t JOIN unnest(%s) WITH '
                                            'ORDINALITY u (account, n) USING (account) ORDER BY n',
                                            accounts)]

    def test_agrees_with_what_is_asked_one_by_one(self):
        """Few with work, and so many that every account is probed: ripe is leader_outbox, look is
        leader_poll_requests."""
        rng = random.Random(4)
        accounts = self.many(60)
        for round in range(4):
            for account in rng.sample(accounts, 4 if round < 2 else 30):
                when = rng.choice(('NULL', "now() - interval '1 h'", "now() + interval '1 h'"))
                deadline = rng.choice(('NULL', "now() - interval '1 m'", "now() + interval '2 h'"))
                self.owner.rows("INSERT INTO txrelay.outbox (account, call, not_before, deadline) "
                                f"VALUES ({account}, '\\x00', "
                                f'{when}, {deadline})')
            for account in rng.sample(accounts, 3):
                self.owner.rows("UPDATE txrelay.accounts SET paused = true, paused_by = "
                                f"'operator' WHERE account = {account}")
            fingerprints = self.fingerprints(accounts)
            got = self.due(accounts, [1] * 60, fingerprints)
            self.assertEqual([r['account'] for r in got],
                             [a for a in accounts if a in {r['account'] for r in got}], 'its order')
            said = {r['account']: r for r in got}
            for account in accounts:
                row = said.get(account, {})
                ripe = self.relay.rows('SELECT 1 FROM txrelay.leader_outbox(%s, 1, 1)',
                                       account) != []
                self.assertEqual(row.get('has_rows', False), ripe)
                ended = self.count('finished_transactions')
                self.relay.rows('SELECT * FROM txrelay.leader_poll_requests(%s, 1)', account)
                self.assertEqual(row.get('has_requests', False),
                                 self.count('finished_transactions') > ended)

    def test_ten_thousand_accounts(self):
        """Idle ones cost one probe of the accounts each and a few of the rest; nothing is read as
        a whole."""
        accounts = self.many(10000)
        fingerprints = self.fingerprints(accounts)
        busy = sorted(accounts)[::100]
        self.owner.rows("INSERT INTO txrelay.outbox (account, call) SELECT unnest(%s), '\\x00' "
                        "FROM generate_series(1, 500)", busy)
        ask = ('SELECT account FROM txrelay.leader_due(%s::int[], %s::bigint[], %s::bigint[], '
               '3000)',
               accounts, [1] * 10000, fingerprints)
        owner = self.superuser()
        owner.begin()
        self.assertEqual(sorted(r[0] for r in owner.rows(*ask)), busy)
        used = {r[0]: r[1:] for r in owner.rows("SELECT relname, seq_scan, idx_scan, idx_tup_fetch "
                                                "FROM pg_stat_xact_user_tables "
                                                "WHERE schemaname = 'txrelay'")}
        owner.rollback()
        self.assertEqual({t: n for t, (n, _, _) in used.items() if n}, {}, 'sequential scans')
        self.assertEqual(used['accounts'][1], 10000)
        for table in ('outbox', 'pending_transactions', 'cancellations', 'bumps'):
            self.assertLessEqual(used[table][1], 8 * len(busy) + 10, table)
        self.assertLessEqual(used['outbox'][2], 8 * len(busy), 'rows of the outbox that were read')

    def test_it_writes_nothing(self):
        tx, = self.enqueue(deadline='2099-01-01')
        self.later(tx, 'deadline', -1.0)
        self.relay.begin()
        self.assertEqual(self.one(), ({'has_requests'}, None))
        self.assertIsNone(self.relay.value('SELECT pg_current_xact_id_if_assigned()'))
        self.relay.commit()


class Ended(Case):
    """What ended without a nonce, and not by a leader's write, is in the next answer of
    leader_poll_requests, once."""
    TRACE = f'00-{7:032x}-{7:016x}-01'

    def ended(self, epoch):
        return [(r['id'], r['outcome'], r['error'], r['traceparent']) for r in self.look(epoch)
                if r['id'] and r['nonce'] is None]

    def test_by_an_application(self):
        one, two = self.enqueue(2, traceparent=self.TRACE)  # while nobody leads
        for tx in (one, two):
            self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', tx), 'cancelled')
        epoch = self.lead()
        self.assertEqual(self.ended(epoch),
                         [(tx, 'cancelled', 'cancelled by app', self.TRACE) for tx in (one, two)])
        self.assertEqual(self.ended(epoch), [])
        self.assertEqual(self.owner.value('SELECT count(*) FROM txrelay.cancellations'), 0)
        self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', one), 'finished')
        self.assertEqual(self.owner.value('SELECT count(*) FROM txrelay.cancellations'), 0)

    def test_rolled_back_it_is_none(self):
        tx, = self.enqueue()
        epoch = self.lead()
        self.app.begin()
        self.app.value('SELECT txrelay.cancel(%s)', tx)
        self.assertEqual(self.ended(epoch), [])
        self.app.rollback()
        self.assertEqual(self.ended(epoch), [])

    def test_by_the_clock_and_what_came_back(self):
        epoch, (back,) = self.pending(1)
        self.app.value('SELECT txrelay.cancel(%s)', back)
        self.requeue(self.relay, epoch, (0, 'usurped'))
        late, = self.enqueue(traceparent=self.TRACE)
        self.owner.rows("UPDATE txrelay.outbox SET deadline = clock_timestamp() - interval '1 s' "
                        "WHERE id = %s", late)
        (a, b) = self.ended(epoch)
        self.assertEqual(a[:3], (back, 'cancelled', 'cancelled by app'))
        self.assertEqual((b[0], b[1], b[3]), (late, 'expired', self.TRACE))
        self.assertEqual(self.ended(epoch), [])

    def test_what_a_leader_ended_is_left_out(self):
        """It has written that line: a reject, also of what was to be cancelled."""
        epoch = self.lead()
        tx, = self.enqueue()
        self.relay.value("SELECT txrelay.leader_reject(%s, %s, ARRAY[%s]::bigint[], "
                         "ARRAY['failed'], ARRAY['x'])", self.alice, epoch, tx)
        self.assertEqual(self.ended(epoch), [])

    def test_many_come_in_parts(self):
        ids = self.enqueue(10010)
        self.app.rows('SELECT txrelay.cancel(u) FROM unnest(%s) u', ids)
        epoch = self.lead()
        found = [self.ended(epoch) for _ in range(3)]
        self.assertEqual([len(f) for f in found], [10000, 10, 0])
        self.assertEqual(sorted(r[0] for f in found for r in f), sorted(ids))


if __name__ == '__main__':
    unittest.main()
