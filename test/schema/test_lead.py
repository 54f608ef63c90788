"""Leadership: the claim table, renewal, release, eviction, and the fence in front of every leader
function."""
import os
import signal
import subprocess
import sys
import threading
import unittest

from pgcase import Background, Case, h32, wait_until

# What leads to leadership or is conditional by itself: everything else named leader_* must raise
# TR001.
UNFENCED = {'leader_claim', 'leader_renew', 'leader_release', 'leader_evict', 'leader_scan',
            'leader_due', 'leader_obstacles',  # account by account: test_due.py, test_obstacles.py
            # reads the feeds of many accounts, and notes the relay's address: test_feeds.py
            'leader_feeds',
            # Deliveries of many accounts, of those that the holder leads; a URL may hear twice of
            # an end: test_webhooks.py
            'leader_webhooks', 'leader_webhooks_done'}
ARGUMENTS = {'bytea': "'\\x00'", 'integer': '1', 'bigint': '1', 'text': "'x'", 'boolean': 'true',
             'interval': "interval '1 day'",
             'bigint[]': "'{0}'", 'bytea[]': "ARRAY['\\x00']::bytea[]", 'numeric[]': "'{0}'",
             'text[]': "'{failed}'",
             'integer[]': "'{0}'", 'timestamp with time zone': 'clock_timestamp()'}
# A clock for what says how much later it is: no test depends on how fast the machine is.
STANDS = "timestamptz '2026-01-01 00:00Z'"


class Claim(Case):
    def test_free(self):
        ear = self.listen('leader_change')
        got = self.claim(self.relay)
        self.assertEqual((got['granted'], got['epoch'], got['holder'], got['holder_address'],
                          got['lock_held']),
                         (True, 1, 'relay-a', 'relay-a:1', False))
        self.assertEqual((got['expiry_1_left_ms'], got['expiry_2_left_ms'], got['mid_submission']),
                         (3000, 9000, False))
        (_, payload), = self.heard(ear)
        self.assertEqual(self.owner.value('SELECT %s::json::jsonb', payload),
                         {'account': self.alice, 'account_id': '0x' + h32('alice').hex(),
                          'holder': 'relay-a',
                          'address': 'relay-a:1', 'epoch': 1})

    def test_the_table(self):
        """Rows: how the claim was made, what is pending, when, with lock -> granted?
        (leader_claim)"""
        self.now = STANDS
        for made_with_lock, signed, after_ms, ask_with_lock, granted in (
                (False, False, 1500, False, False), (False, False, 1500, True, False),
                (False, False, 3100, False, True), (False, False, 3100, True, True),
                (False, True, 3100, False, False), (False, True, 3100, True, False),
                (False, True, 6000, False, False), (False, True, 9100, False, True),
                (False, True, 9100, True, True),
                (True, True, 0, False, False), (True, True, 0, True, True),
                (True, False, 1500, False, False), (True, False, 3100, False, True),
                (True, True, 3100, False, False),
                (True, True, 9100, False, True)):
            with self.subTest(made_with_lock=made_with_lock, signed=signed, after=after_ms,
                              lock=ask_with_lock):
                self.tearDown()
                self.setUp()
                old = self.session('relay')
                if made_with_lock:
                    self.assertTrue(old.value('SELECT pg_try_advisory_lock(42)'))
                epoch = self.claim(old, 'old', lock=made_with_lock)['epoch']
                if signed:
                    self.pending(epoch=epoch)
                if made_with_lock:
                    old.value('SELECT pg_advisory_unlock(42)') # as its death does
                if ask_with_lock:
                    self.assertTrue(self.relay.value('SELECT pg_try_advisory_lock(42)'))
                ear = self.listen('leader_change')
                got = self.claim(self.relay, 'new', lock=ask_with_lock, after_ms=after_ms)
                self.assertEqual(got['granted'], granted)
                self.assertEqual(got['epoch'], 2 if granted else 1)
                self.assertEqual(got['holder'], 'new' if granted else 'old')
                self.assertEqual(got['lock_held'], ask_with_lock if granted else made_with_lock)
                self.assertEqual(len(self.heard(ear)), int(granted))
                if not granted:
                    self.assertEqual(got['mid_submission'], signed and after_ms > 3000)
                    self.assertEqual(got['expiry_1_left_ms'], 3000 - after_ms)

    def test_without_the_lock_nobody_claims_what_is_locked(self):
        """Both or none: a look without the lock must not be granted beside a lock holder, free or
        expired."""
        other = self.session('relay')
        self.assertTrue(other.value('SELECT pg_try_advisory_lock(42)'))
        self.assertFalse(self.claim(self.relay)['granted'])
        self.assertTrue(self.claim(other, 'other', lock=True)['granted'])
        for after_ms in (0, 3100, 9100):
            self.assertFalse(self.claim(self.relay, after_ms=after_ms)['granted'])

    def test_the_same_holder_gets_a_new_epoch(self):
        self.assertEqual(self.lead('me'), 1)
        self.assertEqual(self.lead('me'), 2)
        self.assertEqual(self.lead('me', lock=True), 3)

    def test_have_lock_is_checked(self):
        other = self.session('relay')
        other.value('SELECT pg_advisory_lock(42)')
        self.refused('TR011', self.claim, self.relay, 'me', True,
                     text=('p_have_lock', 'another session', 'alice'))
        self.assertEqual(self.account()['epoch'], 0)

    def test_bad_arguments(self):
        self.refused('TR010', lambda: self.claim(self.relay, account=99), text='99')
        for kwargs, text in (({'e1': 0}, 'p_expiry_1_ms'),
                             ({'e1': 3000, 'e2': 2999}, 'p_expiry_2_ms'),
                             ({'e2': 86400001}, '86400001'), ({'holder': ''}, 'p_holder')):
            self.refused('TR011', lambda: self.claim(self.relay, **kwargs), text=text)
        self.refused('TR011', self.relay.rows,
                     "SELECT * FROM txrelay.leader_renew('a', '{1}', '{}', 3000, 9000)")

    def test_single_expiry(self):
        """expiry_2 = expiry_1."""
        epoch = self.lead('old', e1=3000, e2=3000)
        self.pending(epoch=epoch)
        self.assertTrue(self.claim(self.relay, 'new', after_ms=3100)['granted'])

    def test_unknown_outcome_is_mid_submission(self):
        """A status is stored, but whether the current attempt arrived is not known."""
        epoch, _ = self.pending()
        self.state(self.relay, epoch, (0, h32(0), 'ready'))
        self.assertFalse(self.owner.value('SELECT txrelay.mid_submission(%s)', self.alice))
        self.state(self.relay, epoch, (0, h32(0), 'unknown'))
        got = self.claim(self.relay, 'new', after_ms=3100)
        self.assertEqual((got['granted'], got['mid_submission']), (False, True))
        self.state(self.relay, epoch, (0, h32(0), 'ready'))
        self.assertTrue(self.claim(self.relay, 'new', after_ms=3100)['granted'])

    def test_eight_at_once_one_holder_epoch_plus_one(self):
        """On a free account and on an expired claim, for three accounts."""
        accounts = [self.alice, self.register(self.relay, 'bob', 43),
                    self.register(self.relay, 'carol', 44)]
        sessions = [self.session('relay') for _ in range(8)]
        for turn, after_ms in enumerate((0, 9100), 1):
            barrier = threading.Barrier(8)

            def run(s, name):
                barrier.wait()
                return [self.claim(s, name, after_ms=after_ms, account=a)['granted']
                        for a in accounts]
            calls = [Background(s, lambda s=s, n=n: run(s, f'relay-{turn}-{n}'))
                     for n, s in enumerate(sessions)]
            granted = [sum(column) for column in zip(*(c.join() for c in calls))]
            self.assertEqual(granted, [1, 1, 1])
            self.assertEqual(self.owner.rows('SELECT epoch, count(holder) FROM txrelay.leadership '
                                             'GROUP BY epoch'),
                             [(turn, 3)])

    def test_forced_overlap(self):
        """The second claim waits for the first one's row lock and decides again on what it left."""
        self.lead('old')
        one, two = self.session('relay'), self.session('relay')
        one.begin()
        self.assertTrue(self.claim(one, 'old')['granted'])  # renews itself with a new epoch
        call = Background(two, lambda: self.claim(two, 'new', after_ms=3100))
        wait_until(lambda: self.owner_sees_blocked(two.pid), 'the second claim waits')
        self.claim(one, 'old', e1=60000, e2=60000)
        one.commit()
        got = call.join()
        self.assertEqual((got['granted'], got['epoch'], got['holder']), (False, 3, 'old'))

    def test_a_lost_race_is_no_error_under_repeatable_read(self):
        for level in ('REPEATABLE READ', 'SERIALIZABLE'):
            with self.subTest(level):
                self.lead('old')
                s = self.session('relay')
                s.begin(level)
                s.rows('SELECT count(*) FROM txrelay.leaders')
                self.assertTrue(self.claim(self.relay, 'first', after_ms=9100, e1=60000,
                                           e2=60000)['granted'])
                self.assertFalse(self.claim(s, 'second', after_ms=9100)['granted'])
                s.rollback()
                self.assertEqual(self.account()['holder'], 'first')
                self.relay.value("SELECT txrelay.leader_release(%s, %s, 'first')", self.alice,
                                 self.account()['epoch'])

    def test_the_clock_is_not_the_transactions(self):
        """now() stands still in a long transaction; the claim must not be born expired."""
        self.relay.begin()
        start = self.relay.value('SELECT now()')
        wait_until(lambda: self.relay.value("SELECT clock_timestamp() > now() + interval '20 ms'"),
                   'time to pass')
        self.lead('me', e1=20, e2=20)
        self.assertGreater(self.relay.value('SELECT heartbeat FROM txrelay.leaders'), start)
        before = self.relay.value('SELECT expiry_1 FROM txrelay.leaders')
        self.relay.rows("SELECT * FROM txrelay.leader_renew('me', '{1}', '{1}', 20, 20)")
        self.assertGreater(self.relay.value('SELECT expiry_1 FROM txrelay.leaders'), before)
        self.relay.commit()

    def test_epoch_moves_by_one_only(self):
        self.lead()
        for epoch in (0, 3):
            self.refused('TR003', self.owner.rows, 'UPDATE txrelay.leadership SET epoch = %s',
                         epoch, text='by one')
        self.refused('TR003', self.owner.rows, 'DELETE FROM txrelay.accounts', text='account_pause')
        self.refused('TR003', self.owner.rows, 'DELETE FROM txrelay.leadership',
                     text='subjects stay')


class Renew(Case):
    def renew(self, s, holder, *pairs, after_ms=0):
        return s.rows("SELECT subject, renewed FROM txrelay.leader_renew(%s, %s::int[], "
                      f"%s::bigint[], 3000, 9000, {self.now} + "
                      "%s * interval '1 ms')", holder, [p[0] for p in pairs], [p[1] for p in pairs],
                      after_ms)

    def test_one_statement_for_all_accounts(self):
        bob, carol = self.register(self.relay, 'bob', 43), self.register(self.relay, 'carol', 44)
        self.lead('me')
        self.lead('me', account=bob)
        self.lead('other', account=carol)
        self.assertEqual(self.renew(self.relay, 'me', (carol, 1), (self.alice, 1), (bob, 2),
                                    (99, 1)),
                         [(carol, False), (self.alice, True), (bob, False), (99, False)])
        self.assertEqual(self.renew(self.relay, 'me'), [])

    def test_thousands_of_accounts(self):
        self.lead('me')
        self.renew(self.relay, 'me', (self.alice, 1))
        self.owner.rows("INSERT INTO txrelay.leadership (kind, lock_key) SELECT 'feed', 1000 + i "
                        "FROM generate_series(1, 3000) i")
        self.owner.rows("SELECT txrelay.leader_claim(subject, 'me', 'me:1', false, 3000, 9000) "
                        "FROM txrelay.leadership")
        pairs = [(a, e) for a, e in self.owner.rows(
            'SELECT subject, epoch FROM txrelay.leadership ORDER BY subject')]
        self.relay.rows("SET statement_timeout = '20s'")
        self.assertEqual(self.renew(self.relay, 'me', *pairs), [(a, True) for a, _ in pairs])

    def test_a_mark_stands_for_the_same_accounts(self):
        """As long as these, and no others, are leased to the holder; the lease is extended either
        way."""
        bob, carol = self.register(self.relay, 'bob', 43), self.register(self.relay, 'carol', 44)

        def ask(pairs, fingerprint, after_ms=0):
            rows = self.relay.rows(
                "SELECT * FROM txrelay.leader_renew('me', %s::int[], %s::bigint[], 3000, 9000, "
                "clock_timestamp() + %s * "
                "interval '1 ms', p_fingerprint => %s)", [p[0] for p in pairs],
                [p[1] for p in pairs], after_ms, fingerprint)
            fingerprints = {r[3] for r in rows}
            self.assertEqual(len(fingerprints), 1)
            if rows[0][2]:
                self.assertEqual(rows, [(None, None, True, fingerprint)])
                rows = []
            return [r[:2] for r in rows], fingerprints.pop()
        for account in (self.alice, bob):
            self.lead('me', account=account)
        both = [(self.alice, 1), (bob, 1)]
        rows, fingerprint = ask(both, '')
        self.assertEqual(rows, [(self.alice, True), (bob, True)])
        before = self.owner.value("SELECT expiry_1 FROM txrelay.relay_leases")
        self.assertEqual(ask(both, fingerprint, 1000), ([], fingerprint))
        self.assertGreater(self.owner.value("SELECT expiry_1 FROM txrelay.relay_leases"), before)
        self.lead('me', account=carol)
        self.assertEqual(ask(both, fingerprint), ([(self.alice, True), (bob, True)], fingerprint))
        # not named, so not leased any more: it is what it was
        self.assertEqual(ask(both, fingerprint), ([], fingerprint))
        self.lead('me', account=bob)
        rows, other = ask(both, fingerprint)
        self.assertEqual(rows, [(self.alice, True), (bob, False)])
        self.assertNotEqual(other, fingerprint)
        three = [(self.alice, 1), (bob, 2), (carol, 1)]
        rows, fingerprint = ask(three, '')
        self.assertEqual(rows, [(self.alice, True), (bob, True), (carol, True)])
        self.assertEqual(ask(three, fingerprint), ([], fingerprint))
        self.assertTrue(self.claim(self.relay, 'thief', account=carol, after_ms=9100)['granted'])
        self.assertEqual(ask(three, fingerprint)[0],
                         [(self.alice, True), (bob, True), (carol, False)])
        self.owner.rows("UPDATE txrelay.leadership SET timeline = timeline + 1")
        self.assertEqual(ask(three, fingerprint)[0], [(a, False) for a, _ in three])

    def test_a_subject_that_somebody_keeps_locked(self):
        """It is renewed, and nobody else claims it: nobody waits longer than the session's
        lock_timeout."""
        bob, carol = self.register(self.relay, 'bob', 43), self.register(self.relay, 'carol', 44)
        for account in (self.alice, bob):
            self.lead('me', account=account)
        other = self.session('installer')
        lock = 'SELECT FROM txrelay.leadership WHERE subject = %s FOR UPDATE'
        other.begin()
        other.rows(lock, bob)
        self.relay.rows("SET lock_timeout = '100ms'")
        mine = (self.alice, 1), (bob, 1)
        self.assertEqual(self.renew(self.relay, 'me', *mine), [(self.alice, True), (bob, True)])
        claims = [self.claim(self.relay, 'other', account=a, after_ms=9100) for a in (bob, carol)]
        self.assertEqual([(c['granted'], c['holder']) for c in claims],
                         [(False, 'me'), (True, 'other')])
        other.commit()
        self.assertEqual(self.renew(self.relay, 'me', *mine), [(self.alice, True), (bob, True)])

    def test_no_statement_of_a_leader_deposes_it(self):
        """Whatever came before, and with locks or without them: its own statement has the row
        locked, for longer than lock_timeout, and each renewal of what it leads succeeds. The
        others are renewed as well."""
        bob, writer = self.register(self.relay, 'bob', 43), self.session('installer')
        self.relay.rows("SET lock_timeout = '50ms'")
        before = {
            'nothing': lambda: None,
            'a renewal': lambda: self.renew(self.relay, 'me', (self.alice, self.epoch)),
            'a renewal that did not know of the claim': lambda: self.renew(self.relay, 'me',
                                                                           (bob, self.bobs)),
            'one of each': lambda: (self.renew(self.relay, 'me', (bob, self.bobs)),
                                    self.renew(self.relay, 'me', (bob, self.bobs),
                                               (self.alice, self.epoch))),
            'another claim of its own': lambda: setattr(self, 'epoch',
                                                        self.lead('me', lock=self.locks)),
        }
        for self.locks in (False, True):
            for name, happens in before.items():
                with self.subTest(name, locks=self.locks):
                    self.bobs = self.lead('me', account=bob)
                    self.renew(self.relay, 'me', (bob, self.bobs))
                    self.epoch = self.lead('me', lock=self.locks)
                    happens()
                    writer.begin()
                    # as fence
                    writer.rows('SELECT FROM txrelay.leadership '
                                'WHERE subject = %s FOR NO KEY UPDATE', self.alice)
                    for _ in range(2):
                        self.assertEqual(self.renew(self.relay, 'me', (bob, self.bobs),
                                                    (self.alice, self.epoch)),
                                         [(bob, True), (self.alice, True)])
                    writer.commit()

    def test_a_claim_extends_the_lease_that_it_joins(self):
        self.now = STANDS
        bob = self.register(self.relay, 'bob', 43)
        for after_ms in (0, 1000, 20000):  # the lease runs; it ended
            with self.subTest(after_ms):
                self.claim(self.relay, 'me', after_ms=after_ms)
                self.renew(self.relay, 'me', (self.alice, self.account()['epoch']),
                           after_ms=after_ms)
                claim = self.claim(self.relay, 'me', account=bob, after_ms=after_ms + 500)
                self.assertEqual(claim['expiry_1_left_ms'], 3000)
                self.assertFalse(self.claim(self.relay, 'other', account=bob,
                                            after_ms=after_ms + 3050)['granted'])
        self.assertTrue(self.claim(self.relay, 'other', account=bob, after_ms=23600)['granted'])

    def test_reads_of_a_load_wait_for_writers_and_keep_no_lock(self):
        """Their answers are long, and a transaction lasts until its client has taken nearly all of
        one."""
        epoch, _ = self.pending(2)
        reads = [f"SELECT * FROM txrelay.{f}" for f in (f'leader_account({self.alice}, {epoch})',
                                                        f'leader_snapshot({self.alice}, {epoch}, '
                                                        '-1, 10)')]
        writer, other = self.session('relay'), self.session('installer')
        for read in reads:
            with self.subTest(read):
                writer.begin()
                self.state(writer, epoch, (0, h32(0), 'ready'))
                late = self.waiting(lambda s: s.rows(read))
                writer.commit()
                self.assertEqual(len(late.join()), 1 if 'account' in read else 2)
                self.relay.begin()
                self.relay.rows(read)
                other.rows('SELECT FROM txrelay.leadership WHERE subject = %s FOR UPDATE NOWAIT',
                           self.alice)
                self.relay.commit()

    def test_an_operator_that_keeps_the_account_locked(self):
        """Its leader stays in office and records statuses; only what writes the account itself
        waits."""
        epoch, ids = self.pending(2)
        operator = self.session('relay')
        operator.begin()
        operator.value("SELECT txrelay.account_policy('alice', '{}')")
        self.relay.rows("SET lock_timeout = '100ms'")
        self.assertEqual(self.renew(self.relay, 'relay-a', (self.alice, epoch)),
                         [(self.alice, True)])
        self.state(self.relay, epoch, (0, h32(0), 'ready'))
        self.assertEqual(
            len(self.relay.rows('SELECT * FROM txrelay.leader_snapshot(%s, %s, -1, 10)', self.alice,
                                epoch)), 2)
        self.refused('55P03', self.finish, self.relay, epoch, (0, h32(0), h32('block'), 'ok'))
        self.assertTrue(self.claim(self.relay, 'relay-a')['granted'])
        self.assertTrue(self.relay.value("SELECT txrelay.leader_release(%s, %s, 'relay-a')",
                                         self.alice, epoch + 1))
        operator.commit()

    def test_moves_both_expiries_and_the_heartbeat(self):
        self.lead('me')
        before = self.account()
        self.renew(self.relay, 'me', (self.alice, 1), after_ms=1000)
        after = self.account()
        for column in ('heartbeat', 'expiry_1', 'expiry_2'):
            self.assertGreater(after[column], before[column])
        self.assertEqual(after['epoch'], before['epoch'])

    def test_a_deposed_holder_changes_nothing(self):
        """Neither under its own epoch nor by guessing the new one."""
        self.lead('old')
        self.claim(self.relay, 'new', after_ms=3100)
        before = self.account()
        self.assertEqual(self.renew(self.relay, 'old', (self.alice, 1)), [(self.alice, False)])
        self.assertEqual(self.renew(self.relay, 'old', (self.alice, 2)), [(self.alice, False)])
        self.assertFalse(self.relay.value("SELECT txrelay.leader_release(%s, 1, 'old')",
                                          self.alice))
        self.assertEqual(self.account(), before)

    def test_an_expired_claim_that_nobody_took_is_renewed(self):
        self.lead('me')
        self.assertEqual(self.renew(self.relay, 'me', (self.alice, 1), after_ms=60000),
                         [(self.alice, True)])

    def test_release(self):
        self.lead('me', lock=True)
        ear = self.listen('leader_change')
        self.assertTrue(self.relay.value("SELECT txrelay.leader_release(%s, 1, 'me')", self.alice))
        self.assertEqual(len(self.heard(ear)), 1)
        a = self.account()
        self.assertEqual((a['holder'], a['epoch'], a['lock_held'], a['expiry_1']),
                         (None, 1, False, None))
        self.assertEqual(self.renew(self.relay, 'me', (self.alice, 1)), [(self.alice, False)])
        self.refused('TR001', self.admit, self.relay, 1, [], [])
        self.assertEqual(self.lead('next'), 2)

    def test_a_renewal_writes_one_row(self):
        """However many accounts there are."""
        bob = self.register(self.relay, 'bob', 43)
        self.lead('me')
        self.claim(self.relay, 'me', account=bob)
        with self.work_on(self.relay, 'leadership', 'relay_leases') as work:
            for _ in range(4):
                self.assertEqual(self.renew(self.relay, 'me', (self.alice, 1), (bob, 1)),
                                 [(self.alice, True), (bob, True)])
        self.assertEqual([w[1:] for w in work], [(0, 0), (4, 4)])

    def test_a_lease_holds_only_what_its_holder_names(self):
        """An account that a relay gave up, and whose release did not get through, is free when the
        last renewal that named it has run out, however long that relay lives."""
        bob = self.register(self.relay, 'bob', 43)
        self.lead('me')
        self.claim(self.relay, 'me', account=bob)
        self.renew(self.relay, 'me', (self.alice, 1), (bob, 1), after_ms=1000)
        self.renew(self.relay, 'me', (bob, 1), after_ms=2000)
        self.renew(self.relay, 'me', (bob, 1), after_ms=3000)
        self.assertFalse(self.claim(self.relay, 'other', after_ms=3900)['granted'])
        self.assertTrue(self.claim(self.relay, 'other', after_ms=4100)['granted'],
                        '3 s after the renewal at 1 s')
        self.assertFalse(self.claim(self.relay, 'other', after_ms=5900, account=bob)['granted'])
        self.assertTrue(self.claim(self.relay, 'other', after_ms=6100, account=bob)['granted'])

    def waiting(self, call):
        """A call in a session of its own, once it waits for another one."""
        two = self.session('relay')
        started = Background(two, lambda: call(two))
        wait_until(lambda: self.owner_sees_blocked(two.pid), 'it waits')
        return started

    def not_leased(self):
        """As claims were before they joined the lease at once."""
        self.owner.rows('UPDATE txrelay.leadership SET leased = false')
        self.owner.rows('DELETE FROM txrelay.relay_leases')

    def claim_and_renewal(self, leased):
        """Whichever of the two comes first: the other one waits for it, and sees it."""
        one = self.session('relay')
        self.lead('me')
        if not leased:
            self.not_leased()
        one.begin()
        self.assertTrue(self.claim(one, 'other', after_ms=9100)['granted'])
        renewal = self.waiting(lambda s: self.renew(s, 'me', (self.alice, 1), after_ms=9100))
        one.commit()
        self.assertEqual(renewal.join(), [(self.alice, False)])
        if not leased:
            self.not_leased()
        one.begin()
        self.assertEqual(self.renew(one, 'other', (self.alice, 2), after_ms=20000),
                         [(self.alice, True)])
        claim = self.waiting(lambda s: self.claim(s, 'me', after_ms=20000))
        one.commit()
        self.assertFalse(claim.join()['granted'])

    def test_a_claim_by_time_and_a_renewal_do_not_both_win(self):
        """The lease decides."""
        self.claim_and_renewal(leased=True)

    def test_a_claim_by_time_and_a_renewal_that_leases_it_do_not_both_win(self):
        """There is no lease: the account's own row decides."""
        self.claim_and_renewal(leased=False)

    def test_leases_of_those_that_are_gone_leave(self):
        self.lead('gone')
        self.renew(self.relay, 'gone', (self.alice, 1))
        self.claim(self.relay, 'me', after_ms=9100)
        self.renew(self.relay, 'me', (self.alice, 2), after_ms=9100)
        self.assertEqual(self.owner.rows('SELECT holder FROM txrelay.relay_leases'), [('me',)])

    def test_the_block_that_a_lease_knew_stays_with_the_account(self):
        def seen():
            return self.owner.value('SELECT seen_block FROM txrelay.leadership WHERE subject = %s',
                                    self.alice)

        def renew(holder, account):
            self.relay.rows('SELECT * FROM txrelay.leader_renew(%s, ARRAY[%s], ARRAY[1], 3000, '
                            '9000, p_block => 40)', holder,
                            account)
        for holder, end in (('taken', lambda: self.claim(self.relay, 'other', after_ms=9100)),
                            ('left', lambda: self.relay.value(
                                "SELECT txrelay.leader_release(%s, 1, 'left')", self.alice)),
                            ('given up', lambda: renew('given up', 99))):
            with self.subTest(holder):
                self.alice = self.register(self.relay, holder.replace(' ', '-'), len(holder))
                self.lead(holder)
                renew(holder, self.alice)
                self.assertEqual((seen(), self.account()['seen_block']), (None, 40))
                end()
                self.assertEqual(seen(), 40)


class OtherKinds(Case):
    """A subject that is no account is led by the same functions."""
    def setUp(self):
        super().setUp()
        self.feed = self.owner.value("INSERT INTO txrelay.leadership (kind, lock_key) "
                                     "VALUES ('feed', 77) RETURNING subject")
        self.owner.rows('CREATE TABLE IF NOT EXISTS public.feed_items (feed int, item int)')
        self.owner.rows('TRUNCATE public.feed_items')
        self.owner.rows("CREATE OR REPLACE FUNCTION public.feed_write(p_feed int, p_epoch bigint, "
                        "p_item int) RETURNS void "
                        "LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp "
                        "AS $$ BEGIN "
                        "PERFORM txrelay.subject_fence(p_feed, p_epoch, 'update'); "
                        "INSERT INTO public.feed_items VALUES (p_feed, p_item); END $$")

    def write(self, s, epoch, item):
        return s.rows('SELECT public.feed_write(%s, %s, %s)', self.feed, epoch, item)

    def items(self):
        return [i for i, in self.owner.rows('SELECT item FROM public.feed_items ORDER BY item')]

    def test_claim_renew_scan_write_release(self):
        ear = self.listen('leader_change')
        self.assertEqual(self.lead('one', account=self.feed, e1=60000, e2=120000), 1)
        (_, payload), = self.heard(ear)
        self.assertEqual(self.owner.value('SELECT %s::json::jsonb', payload), {
            'kind': 'feed', 'subject': self.feed, 'holder': 'one', 'address': 'one:1', 'epoch': 1})
        self.write(self.relay, 1, 10)
        renewed = self.relay.rows("SELECT subject, renewed FROM txrelay.leader_renew('one', "
                                  "ARRAY[%s], ARRAY[1], 60000, 120000)",
                                  self.feed)
        self.assertEqual(renewed, [(self.feed, True)])
        seen = self.relay.rows('SELECT subject, holder, epoch FROM '
                               'txrelay.leader_scan(ARRAY[%s, %s])', self.alice, self.feed)
        self.assertEqual(seen, [(self.alice, None, 0), (self.feed, 'one', 1)])
        self.assertFalse(self.claim(self.relay, 'two', account=self.feed, after_ms=1000)['granted'])
        self.assertEqual(self.claim(self.relay, 'two', account=self.feed, after_ms=61000)['epoch'],
                         2)
        self.refused('TR001', self.write, self.relay, 1, 11,
                     text=(f'feed {self.feed}', 'epoch 2', 'held by two'))
        self.write(self.relay, 2, 12)
        self.assertTrue(self.relay.value("SELECT txrelay.leader_release(%s, 2, 'two')", self.feed))
        self.refused('TR001', self.write, self.relay, 2, 13, text='nobody')
        self.assertEqual(self.items(), [10, 12])
        self.assertEqual(self.app.rows('SELECT account FROM txrelay.leaders'), [(self.alice,)])

    def test_a_claim_waits_for_a_write_under_way(self):
        self.lead('one', account=self.feed)
        self.relay.begin()
        self.write(self.relay, 1, 10)
        other = self.session('relay')
        call = Background(other, lambda: self.claim(other, 'two', account=self.feed, after_ms=9100))
        wait_until(lambda: self.owner_sees_blocked(other.pid), 'the claim waits')
        self.relay.commit()
        self.assertEqual(call.join()['epoch'], 2)
        self.refused('TR001', self.write, self.relay, 1, 11)
        self.assertEqual(self.items(), [10])

    def test_another_timeline(self):
        """The claim ends with it, and the next one needs nothing of an account."""
        self.lead('one', account=self.feed)
        self.owner.rows('UPDATE txrelay.leadership SET timeline = timeline - 1')
        self.refused('TR001', self.write, self.relay, 1, 10, text='timeline')
        self.assertEqual(self.lead('one', account=self.feed), 2)
        self.write(self.relay, 2, 11)
        self.assertEqual(self.items(), [11])

    def test_evict(self):
        holder = self.session('relay')
        holder.value('SELECT pg_try_advisory_lock(77)')
        self.assertTrue(self.claim(holder, 'one', lock=True, e1=60000, e2=60000,
                                   account=self.feed)['granted'])
        self.assertFalse(self.relay.value('SELECT txrelay.leader_evict(77)'))
        self.relay.rows("SELECT * FROM txrelay.leader_renew('one', ARRAY[%s], ARRAY[1], 1, 1)",
                        self.feed)
        wait_until(lambda: self.relay.value('SELECT txrelay.leader_evict(77)'), 'the eviction')
        wait_until(lambda: self.relay.value('SELECT pg_try_advisory_lock(77)'), 'the lock')
        self.assertEqual(self.claim(self.relay, 'two', lock=True, account=self.feed)['epoch'], 2)

    def test_its_number_and_its_lock_are_no_accounts(self):
        self.lead('one', account=self.feed)
        self.refused('TR010', self.relay.rows, "SELECT txrelay.leader_pause(%s, 1, 'payment', 'x')",
                     self.feed,
                     text=str(self.feed))
        self.refused('TR011', self.register, self.relay, 'bob', 77,
                     text=('p_lock_key', 'bob', f'feed {self.feed}'))
        self.assertEqual(self.register(self.relay, 'bob', 78) > self.feed, True)


class Fence(Case):
    def leader_functions(self):
        return self.owner.dicts("SELECT p.proname AS name, p.oid::regprocedure::text AS signature, "
                                "p.proargnames[1:pronargs] AS names, ARRAY(SELECT format_type(t, "
                                "NULL) FROM "
                                "unnest(p.proargtypes) t) AS types FROM pg_proc p "
                                "WHERE p.pronamespace = 'txrelay'::regnamespace AND p.proname ~ "
                                "'^leader_' "
                                "ORDER BY p.proname")

    def call(self, s, f, epoch):
        arguments = [str(epoch) if n == 'p_epoch' else str(self.alice) if n == 'p_account'
                     else ARGUMENTS[t]
                     for n, t in zip(f['names'], f['types'])]
        return s.rows(f"SELECT * FROM txrelay.{f['name']}({', '.join(arguments)})")

    def everything(self):
        tables = ('leadership', 'accounts', 'outbox', 'pending_transactions', 'attempts',
                  'refusals', 'cancellations', 'bumps',
                  'finished_transactions', 'idempotency_keys')
        return [self.owner.rows(f'SELECT t::text FROM txrelay.{t} t ORDER BY 1') for t in tables]

    def test_every_leader_function_refuses_a_stale_epoch(self):
        """I4. Enumerated from pg_proc: a new one without the check fails here."""
        functions = [f for f in self.leader_functions() if f['name'] not in UNFENCED]
        self.assertGreaterEqual(len(functions), 14)
        _, ids = self.pending()
        self.enqueue()
        self.claim(self.relay, 'new', after_ms=9100)
        before = self.everything()
        for f in functions:
            for epoch in (1, 0, 3, 'NULL'):
                with self.subTest(f['signature'], epoch=epoch):
                    self.assertIn('p_epoch', f['names'])
                    self.refused('TR001', self.call, self.relay, f, epoch,
                                 text=('epoch 2', 'held by new'))
        self.relay.value("SELECT txrelay.leader_release(%s, 2, 'new')", self.alice)
        before[0] = self.everything()[0]
        for f in functions:
            with self.subTest(f['signature'], holder='none'):
                self.refused('TR001', self.call, self.relay, f, 2, text='nobody')
        self.assertEqual(self.everything(), before)
        self.assertTrue(ids)

    def test_an_unknown_account_is_not_a_stale_epoch(self):
        self.refused('TR010', self.relay.rows, "SELECT txrelay.leader_pause(99, 1, 'payment', 'x')",
                     text='99')

    def test_late_writer_waits_for_the_claim_and_is_refused(self):
        """Every fenced write that meets a claim in progress waits for it and then ends with
        TR001."""
        self.pending()
        one = self.session('relay')
        writers = [f for f in self.leader_functions()
                   if f['name'] not in UNFENCED | {'leader_outbox', 'leader_presigned',
                                                   'leader_poll_requests', 'leader_site_rows',
                                                   'leader_site_match'}]
        sessions = [self.session('relay') for _ in writers]
        one.begin()
        self.assertTrue(self.claim(one, 'new', after_ms=9100)['granted'])
        calls = [Background(s, lambda s=s, f=f: self.call(s, f, 1))
                 for s, f in zip(sessions, writers)]
        for s in sessions:
            wait_until(lambda: self.owner_sees_blocked(s.pid), 'the late writer waits')
        one.commit()
        for f, c in zip(writers, calls):
            with self.subTest(f['signature']):
                self.refused('TR001', c.join)

    def test_the_claim_waits_for_a_write_under_way(self):
        epoch, _ = self.pending()
        other = self.session('relay')
        self.relay.begin()
        self.state(self.relay, epoch, (0, h32(0), 'ready'))
        call = Background(other, lambda: self.claim(other, 'new', after_ms=9100))
        wait_until(lambda: self.owner_sees_blocked(other.pid), 'the claim waits')
        self.assertEqual(self.account()['epoch'], 1)
        self.relay.commit()
        self.assertEqual((call.join()['epoch'], self.row(0)['state']), (2, 'ready'))
        self.refused('TR001', self.state, self.relay, epoch, (0, h32(0), 'broadcast'))

    def test_an_admission_makes_an_overlapping_claim_decide_again(self):
        """It began when nothing was mid-submission; when it may decide, something is."""
        epoch, ids = self.lead('old'), self.enqueue()
        other = self.session('relay')
        self.relay.begin()
        self.admit(self.relay, epoch, ids, [0])
        call = Background(other, lambda: self.claim(other, 'new', after_ms=3100))
        wait_until(lambda: self.owner_sees_blocked(other.pid), 'the claim waits')
        self.relay.commit()
        got = call.join()
        self.assertEqual((got['granted'], got['mid_submission']), (False, True))

    def test_what_is_polled_writes_nothing(self):
        epoch, _ = self.pending()
        self.relay.begin()
        self.relay.rows('SELECT * FROM txrelay.leader_outbox(%s, %s, 10)', self.alice, epoch)
        self.relay.rows('SELECT * FROM txrelay.leader_poll_requests(%s, %s)', self.alice, epoch)
        self.assertIsNone(self.relay.value('SELECT pg_current_xact_id_if_assigned()'))
        self.relay.commit()


class Closed(Case):
    """R9: a managed server keeps the functions of the WAL for itself, as not supported or as not
    granted."""
    FRESH = True
    WAL = ('pg_walfile_name(pg_lsn)', 'pg_current_wal_lsn()')

    def close(self, how):
        root = self.superuser()
        for function in self.WAL:
            if how == '42501':
                root.rows(f'REVOKE EXECUTE ON FUNCTION pg_catalog.{function} FROM PUBLIC')
                continue
            (text,), = root.rows('SELECT pg_get_function_result(%s::regprocedure)', function)
            arguments = 'lsn pg_lsn' if 'pg_lsn' in function else ''
            # Under its own number the server would call its own code all the same.
            root.rows(f"ALTER FUNCTION pg_catalog.{function} RENAME TO "
                      f"{function.split('(')[0]}_closed")
            root.rows(f"CREATE FUNCTION pg_catalog.{function.split('(')[0]}({arguments}) RETURNS "
                      f"{text} LANGUAGE plpgsql AS "
                      "'BEGIN RAISE EXCEPTION USING ERRCODE = ''0A000'', MESSAGE = ''not "
                      "supported''; END'")
        # The plans of a session go on with what they were made for.
        self.relay, self.app, self.owner = self.session('relay'), self.session('app'), self.session(
            'installer')

    def test_leads_without_the_functions_of_the_wal(self):
        for how in ('42501', '0A000'):
            with self.subTest(how):
                self.setUp()
                self.close(how)
                self.assertFalse(self.relay.value('SELECT txrelay.timeline_known()'))
                # registered before
                self.owner.rows('UPDATE txrelay.leadership SET timeline = (txrelay.timelines())[1]')
                epoch, (tx,) = self.pending()
                self.assertLess(self.account()['timeline'], -1)
                self.assertEqual(self.relay.rows("SELECT renewed FROM "
                                                 "txrelay.leader_renew('relay-a', ARRAY[%s], "
                                                 "ARRAY[%s::bigint], 3000, "
                                                 "9000)", self.alice, epoch), [(True,)])
                self.assertEqual(self.relay.rows('SELECT lost FROM txrelay.leader_due(ARRAY[%s], '
                                                 'ARRAY[%s::bigint], ARRAY[NULL::bigint], '
                                                 '0)', self.alice, epoch), [])
                self.assertIsNone(self.facts(epoch)['reconcile_from'])
                self.assertEqual(self.relay.value("SELECT txrelay.leader_obstacles(ARRAY[%s], "
                                                  "ARRAY[%s::bigint], '{node}', '{none answers}', "
                                                  "'{6000}')", self.alice, epoch), 1)
                self.assertEqual(self.app.rows('SELECT code, reason FROM txrelay.blocked_accounts'),
                                 [('node', 'none answers')])
                self.finish(self.relay, epoch, (0, h32(0), h32('block'), 'ok'))
                self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', self.enqueue()[0]),
                                 'cancelled')

    def test_one_function_asks_for_the_wal(self):
        """And two call it: one that catches the refusal, and the fence, for claims that were made
        with it."""
        def use(what):
            return {n for n, in self.owner.rows(
                "SELECT proname FROM pg_proc WHERE pronamespace = 'txrelay'::regnamespace AND "
                                                "regexp_replace(prosrc, '--[^\n]*', '', 'g') ~ %s",
                                                what)}
        self.assertEqual(use(r'\mpg_\w*(wal|lsn|recovery)\w*\('), {'timeline'})
        self.assertEqual(use(r'\mtimeline\('), {'timelines', 'subject_fence'})

    def test_another_start_of_the_server_is_a_failover(self):
        self.close('0A000')
        epoch = self.lead()
        # another start; the timeline of a server that opened them; account_reconcile
        for other in (-5, 1, 0):
            self.owner.rows('UPDATE txrelay.leadership SET timeline = %s; UPDATE txrelay.accounts '
                            'SET reconcile_from = NULL', other)
            self.refused('TR001' if other <= 0 else '0A000', self.facts, epoch)
            epoch = self.lead()
            self.assertIsNotNone(self.owner.value('SELECT reconcile_from FROM txrelay.accounts'))

    def test_open_again(self):
        """The claim goes on, and the next one is compared by the timeline."""
        epoch = self.lead()
        self.owner.rows('UPDATE txrelay.leadership SET timeline = txrelay.start_sign()')
        self.facts(epoch)
        self.lead()
        self.assertGreater(self.account()['timeline'], 0)


class Scan(Case):
    now = STANDS

    def scan(self, accounts, epochs=None, after_ms=0):
        rows = self.relay.rows("SELECT * FROM txrelay.leader_scan(%s::int[], %s::bigint[], "
                               f"{self.now} + %s * interval '1 ms')",
                               accounts, epochs, after_ms)
        return [(r[0], r[1], r[2], r[4], r[5]) for r in rows], rows

    def test_what_followers_bid_by(self):
        bob, carol = self.register(self.relay, 'bob', -7), self.register(self.relay, 'carol',
                                                                         2 ** 62)
        everybody = [self.alice, bob, carol]
        self.assertEqual(self.scan(everybody)[0], [(a, False, None, 0, False) for a in everybody])
        one, two = self.session('relay'), self.session('relay')
        for session, key in ((one, 42), (one, -7), (two, 2 ** 62)):
            self.assertTrue(session.value('SELECT pg_try_advisory_lock(%s)', key))
        two.value('SELECT pg_try_advisory_lock(0, 42)')  # two integers: another key space
        self.claim(one, 'one', lock=True, e1=3000, e2=9000)
        self.claim(two, 'two', lock=True, e1=3000, e2=9000, account=carol)
        seen, rows = self.scan(everybody[::-1])
        self.assertEqual(seen, [(carol, True, 'two', 1, True), (bob, True, None, 0, False),
                                (self.alice, True, 'one', 1, True)])
        self.assertEqual(rows[2][3], 'one:1')
        self.assertEqual(rows[2][6:8], (3000, 9000))
        self.assertIsNone(rows[1][6])

    def test_what_is_known_and_in_force_is_left_out(self):
        """By epoch, account by account; the answer names a lapsed claim, a lock that is gone and a
        newer epoch."""
        holder = self.session('relay')
        holder.value('SELECT pg_try_advisory_lock(42)')
        self.claim(holder, 'one', lock=True, e1=3000, e2=9000)
        self.assertEqual(self.scan([self.alice], [1])[0], [])
        self.assertEqual(len(self.scan([self.alice], [0])[0]), 1)
        self.assertEqual(len(self.scan([self.alice], [None])[0]), 1)
        self.assertEqual(len(self.scan([self.alice], [1], after_ms=3100)[0]), 1)
        holder.value('SELECT pg_advisory_unlock(42)')
        self.assertEqual(self.scan([self.alice], [1])[0], [(self.alice, False, 'one', 1, True)])
        self.claim(holder, 'one', e1=3000, e2=9000)
        self.assertEqual(self.scan([self.alice], [2])[0], [])  # it stands without the lock

    def ask(self, accounts, epochs, fingerprint='', after_ms=0):
        """What is told, and the fingerprint."""
        rows = self.relay.rows("SELECT * FROM txrelay.leader_scan(%s::int[], %s::bigint[], "
                               f"{self.now} + %s * "
                               "interval '1 ms', %s)", accounts, epochs, after_ms, fingerprint)
        fingerprints = {r[8] for r in rows}
        self.assertEqual(len(fingerprints), 1)
        if rows[0][0] is None:
            self.assertEqual(rows, [(None,) * 8 + (rows[0][8],)])
            rows = []
        return [r[0] for r in rows], fingerprints.pop()

    def test_the_mark_is_another_one_after_whatever_is_told(self):
        """A question with the fingerprint of the last answer tells nothing as long as nothing has
        changed, and all that a question without it would tell as soon as something has."""
        bob = self.register(self.relay, 'bob', -7)
        both, fingerprints = [self.alice, bob], []

        def changed(told, epochs, after_ms=0):
            new, fingerprint = self.ask(both, epochs, fingerprints[-1] if fingerprints else '',
                                        after_ms)
            self.assertEqual(new, told)
            self.assertNotIn(fingerprint, fingerprints)
            fingerprints.append(fingerprint)
            self.assertEqual(self.ask(both, epochs, fingerprint, after_ms), ([], fingerprint))
            self.assertEqual(self.ask(both, epochs, '', after_ms), (told, fingerprint))
        changed(both, [0, 0])
        holder = self.session('relay')
        holder.value('SELECT pg_try_advisory_lock(42)')
        self.claim(holder, 'one', lock=True, e1=300000, e2=900000)
        changed(both, [0, 0])
        self.claim(holder, 'three', e1=600000, e2=900000, account=bob)
        changed([], [1, 1])
        changed([self.alice], [1, 1], after_ms=310000)  # lapsed, by its own time
        # epochs counted twice / which accounts have lapsed
        self.assertEqual(fingerprints.pop(), '4/1')
        self.assertEqual(self.ask(both, [1, 1])[1], fingerprints[-1])  # now none has, as before
        holder.rows("SELECT * FROM txrelay.leader_renew('one', ARRAY[%s], ARRAY[1], 200000, "
                    f"300000, {self.now})", self.alice)
        changed([self.alice], [1, 1], after_ms=210000)  # and by its holder's lease
        self.assertEqual(self.ask(both, [1, 1], fingerprints[2])[0], [])
        holder.value('SELECT pg_advisory_unlock(42)')
        fingerprint = self.ask(both, [1, 1])[1]
        # the one thing that a fingerprint does not tell
        self.assertEqual(self.ask(both, [1, 1])[0], [self.alice])
        self.assertEqual(self.ask(both, [1, 1], fingerprint)[0], [])
        other = self.session('relay')
        other.value('SELECT pg_try_advisory_lock(42)')
        self.claim(other, 'two', lock=True, e1=300000, e2=900000)
        changed([], [2, 1])
        other.conn.close()
        wait_until(lambda: self.ask(both, [2, 1], fingerprints[-1])[0] == [self.alice],
                   'its session to end')
        changed([self.alice], [2, 1])
        self.assertTrue(self.relay.value("SELECT txrelay.leader_release(%s, 1, 'three')", bob))
        changed([self.alice, bob], [2, 1])

    def test_it_writes_nothing_and_says_what_is_wrong(self):
        self.lead()
        before = self.owner.rows('SELECT xmin, l.* FROM txrelay.leadership l')
        self.assertEqual(self.scan([4711])[0], [])
        self.assertEqual(len(self.scan([self.alice])[0]), 1)
        self.assertEqual(self.owner.rows('SELECT xmin, l.* FROM txrelay.leadership l'), before)
        self.refused('TR011', lambda: self.scan([1, 2], [1]), text=('p_epochs', '1 elements', '2'))
        self.refused('TR011', lambda: self.scan(None), text=('leader_scan',))


class Members(Case):
    now = STANDS

    def rows(self, holder, serves=1, ttl=3000, leave=False, after_ms=0, best=None):
        return self.relay.rows("SELECT * FROM txrelay.member_heartbeat(%s, %s, %s, %s, false, "
                               "%s, %s, "
                               f"{self.now} + %s * interval '1 ms')",
                               holder, holder + ':1', serves, ttl, leave, best, after_ms)

    def beat(self, holder, **more):
        return [r[0] for r in self.rows(holder, **more)]

    def test_who_lives(self):
        self.assertEqual(self.beat('b'), ['b'])
        self.assertEqual(self.beat('a'), ['a', 'b'])
        self.assertEqual(self.beat('other accounts', serves=2), ['other accounts'])
        self.assertEqual(self.beat('a', after_ms=2000), ['a', 'b'])
        self.assertEqual(self.beat('a', after_ms=3500), ['a'])
        self.assertEqual(self.owner.value('SELECT count(*) FROM txrelay.members'), 3)
        # and rows of those long gone are removed
        self.assertEqual(self.beat('a', after_ms=65000), ['a'])
        self.assertEqual(self.owner.rows('SELECT holder, address FROM txrelay.members'),
                         [('a', 'a:1')])
        self.assertEqual(self.beat('a', leave=True), [])
        self.assertEqual(self.beat('b'), ['b'])
        self.assertEqual(self.beat('a'), ['a', 'b'])  # it is back

    def test_heights_outlive_their_relays_by_a_minute(self):
        self.beat('dead', best=40)
        self.beat('left', best=50)
        self.beat('other accounts', serves=2, best=99)
        self.beat('left', leave=True)
        self.assertEqual([(r[0], r[2]) for r in self.rows('new', best=7, after_ms=4000)],
                         [('new', 50)])
        self.assertEqual([(r[0], r[2]) for r in self.rows('new', best=8, after_ms=59000)],
                         [('new', 50)])
        self.assertEqual([(r[0], r[2]) for r in self.rows('new', best=9, after_ms=61000)],
                         [('new', 9)])

    def test_a_member_ends_with_its_session(self):
        """Also one that was killed: its time need not pass."""
        other = self.session('relay')
        other.rows("SELECT * FROM txrelay.member_heartbeat('dies', 'x', 1, 60000, true, "
                   f"p_now => {self.now})")
        self.assertEqual(self.beat('a', ttl=60000), ['a', 'dies'])
        other.conn.close()
        wait_until(lambda: self.beat('a', ttl=60000) == ['a'], 'its session to end')

    def test_nobody_waits_for_the_removal(self):
        self.beat('old')
        other = self.session('relay')
        other.conn.autocommit = False
        other.rows("SELECT * FROM txrelay.member_heartbeat('x', 'x', 1, 3000, false, false, NULL, "
                   f"{self.now} + interval '10 s')")
        self.relay.value("SET statement_timeout = '20s'; SELECT 1")
        # the other one's removal is not committed
        self.assertEqual(self.beat('a', after_ms=10000), ['a'])
        other.conn.rollback()

    def test_bad_arguments(self):
        self.refused('TR011', lambda: self.beat('a', ttl=0),
                     text=('member_heartbeat', 'p_expiry_1_ms'))
        self.refused('TR011', lambda: self.relay.rows(
            "SELECT txrelay.member_heartbeat(NULL, '', 1, 1)"), text=('p_holder',))
        self.refused('TR011', lambda: self.beat('a', serves=None), text=('p_serves',))


class Evict(Case):
    CHILD = '''
import psycopg2, sys
c = psycopg2.connect(sys.argv[1]); c.autocommit = True
k = c.cursor()
k.execute("SELECT pg_advisory_lock(42)")
k.execute("SELECT granted FROM txrelay.leader_claim(1, 'hung', 'h:1', true, 200, %s)" % sys.argv[2])
print(k.fetchone()[0], flush=True)
sys.stdin.readline()
try:
    k.execute("SELECT * FROM txrelay.leader_renew('hung', '{1}', '{1}', 200, 200)")
    print('renewed', k.fetchall(), flush=True)
except psycopg2.Error as e:
    print('session ended', flush=True)
'''

    def evict(self, s=None):
        return (s or self.relay).value('SELECT txrelay.leader_evict(42)')

    def locked(self):
        return self.owner.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' "
                                "AND objid = 42")

    def test_hung_lock_holder(self):
        """SIGSTOP of the holder: never before its expiry; then its session ends, the next one
        leads, and the thawed one finds neither session nor claim."""
        child = subprocess.Popen([sys.executable, '-B', '-c', self.CHILD,
                                  f'{self.server.dsn} dbname={self.db} '
                                  'user=relay', '200'], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual(child.stdout.readline(), 'True\n')
            os.kill(child.pid, signal.SIGSTOP)
            early = self.evict()
            left = self.owner.value('SELECT expiry_1 > clock_timestamp() FROM txrelay.leaders')
            self.assertFalse(early and left)
            if not early:  # on a slow machine its time may be over
                self.assertFalse(self.relay.value('SELECT pg_try_advisory_lock(42)'))
            wait_until(lambda: early or self.evict(), 'the eviction')
            wait_until(lambda: self.relay.value('SELECT pg_try_advisory_lock(42)'), 'the lock')
            self.assertEqual(self.claim(self.relay, 'next', lock=True)['epoch'], 2)
            os.kill(child.pid, signal.SIGCONT)
            child.stdin.write('\n')
            child.stdin.flush()
            self.assertEqual(child.stdout.readline(), 'session ended\n')
        finally:
            child.kill()
            child.wait()
            child.stdin.close()
            child.stdout.close()

    def hold(self, e1, e2):
        s = self.session('relay')
        s.value('SELECT pg_try_advisory_lock(42)')
        self.assertTrue(self.claim(s, 'holder', lock=True, e1=e1, e2=e2)['granted'])
        return s

    def test_never_in_force_never_mid_submission_never_itself(self):
        holder = self.hold(60000, 60000)
        self.assertFalse(self.evict())
        self.assertEqual(self.locked(), 1)
        self.relay.value("SELECT renewed FROM txrelay.leader_renew('holder', '{1}', '{1}', 1, "
                         "60000)")
        self.pending(epoch=1)
        wait_until(lambda: self.owner.value(
            'SELECT expiry_1 < clock_timestamp() FROM txrelay.leaders'), 'expiry 1')
        self.assertFalse(self.evict(), 'something is mid-submission')
        self.state(self.relay, 1, (0, h32(0), 'ready'))
        self.assertFalse(self.evict(holder), 'its own session')
        self.assertTrue(self.evict())
        wait_until(lambda: self.locked() == 0, 'the lock')

    def test_a_lock_holder_that_just_came_is_left_alone(self):
        """The old claim has expired, the lock belongs to a successor that is about to claim."""
        self.lead('crashed', lock=True, e1=1, e2=1)
        other = self.session('relay')
        self.assertTrue(other.value('SELECT pg_try_advisory_lock(42)'))
        self.assertFalse(self.evict())
        self.assertTrue(self.claim(other, 'other', lock=True)['granted'])

    def test_neither_where_the_old_claim_had_no_lock(self):
        self.lead('crashed', e1=1, e2=1)
        other = self.session('relay')
        self.assertTrue(other.value('SELECT pg_try_advisory_lock(42)'))
        self.assertFalse(self.evict())
        self.assertEqual(self.locked(), 1)

    def test_one_that_hung_before_it_claimed(self):
        """Idle for five seconds with the lock and without a claim: nobody else could lead. The
        clock of pg_stat_activity cannot be moved, so this waits for it."""
        other = self.session('relay')
        other.value('SELECT pg_try_advisory_lock(42)')
        self.assertFalse(self.evict())
        wait_until(self.evict, 'five idle seconds')
        wait_until(lambda: self.locked() == 0, 'the lock')

    def test_whose_activity_is_hidden_is_said(self):
        root, other = self.superuser(), self.session('relay')
        other.value('SELECT pg_try_advisory_lock(42)')
        root.rows('REVOKE pg_read_all_stats FROM installer')
        try:
            self.refused('42501', self.evict,
                         text=('installer', 'GRANT pg_signal_backend, pg_read_all_stats TO'))
        finally:
            root.rows('GRANT pg_read_all_stats TO installer')

    def test_nothing_to_evict(self):
        self.assertFalse(self.evict())
        self.assertFalse(self.relay.value('SELECT txrelay.leader_evict(4711)'))
        self.lead(e1=1, e2=1)
        self.assertFalse(self.evict())

    def test_negative_keys_and_the_other_key_space(self):
        bob = self.register(self.relay, 'bob', -7)
        other, look_alike = self.session('relay'), self.session('relay')
        look_alike.value('SELECT pg_try_advisory_lock(0, 42)')  # two integers: not the key 42
        other.value('SELECT pg_try_advisory_lock(-7)')
        self.claim(other, 'o', lock=True, e1=1, e2=1, account=bob)
        self.assertTrue(self.relay.value('SELECT txrelay.leader_evict(-7)'))
        self.lead(e1=1, e2=1)
        self.assertFalse(self.evict())
        self.assertEqual(look_alike.value('SELECT 1'), 1)

    def test_without_the_right_the_error_says_what_to_run(self):
        holder = self.superuser()
        holder.value('SELECT pg_try_advisory_lock(42)')
        self.claim(holder, 'holder', lock=True, e1=1, e2=1)
        wait_until(lambda: self.owner.value(
            'SELECT expiry_2 < clock_timestamp() FROM txrelay.leaders'), 'expiry')
        self.refused('42501', self.evict,
                     text=('installer', 'GRANT pg_signal_backend, pg_read_all_stats TO installer'))


class Register(Case):
    def test_what_a_row_may_hold_whoever_writes_it(self):
        """accounts_check, which is no CHECK: those would be made ready at each admission."""
        self.lead()
        self.owner.rows("UPDATE txrelay.accounts SET alias = 'Alice.1-b_c', account_id = %s, "
                        "scheme = 'ethereum', address = 'x', "
                        "paused = true, paused_by = 'leader', suspension = 'reaped'", b'\1' * 20)
        for column, change in (('alias', "alias = ''"), ('alias', "alias = '0x12'"),
                               ('alias', "alias = 'a b'"),
                               ('account_id', "account_id = '\\x00'"), ('scheme', "scheme = 'rsa'"),
                               ('genesis', "genesis = '\\x00'"), ('address', "address = ''"),
                               ('address', "address = repeat('x', 129)"),
                               ('paused_by', "paused_by = 'me'"), ('paused_by', 'paused_by = NULL'),
                               ('paused_by', 'paused = false'),
                               ('suspension', "suspension = 'rain'"),
                               ('suspension', 'suspension = NULL'),
                               ('suspension', 'paused = false, paused_by = NULL')):
            with self.subTest(change):
                self.refused('23514', self.owner.rows, f'UPDATE txrelay.accounts SET {change}',
                             text=column)
        self.refused('23514', self.owner.rows, 'UPDATE txrelay.accounts SET next_nonce = -1')
        for change in ('expiry_1 = NULL', "expiry_2 = expiry_1 - interval '1 ms'",
                       'heartbeat = NULL'):
            with self.subTest(change):
                self.refused('23514', self.owner.rows, f'UPDATE txrelay.leadership SET {change}',
                             text='leadership_claim')
        self.refused('23514', self.owner.rows, "WITH l AS (INSERT INTO txrelay.leadership (kind, "
                                               "lock_key) VALUES ('account', 7) "
                     "RETURNING subject) INSERT INTO txrelay.accounts (account, alias, account_id, "
                     "scheme, genesis, address) "
                     "SELECT subject, '0x', %s, 'sr25519', %s, 'x' FROM l", h32('x'), h32('g'),
                     text='alias')

    def test_again_is_the_same_number(self):
        self.assertEqual(self.register(self.relay, 'alice', 42), self.alice)
        self.assertEqual(self.register(self.relay, 'alice', 42, address='other prefix'), self.alice)
        self.assertEqual(self.account()['address'], 'other prefix')

    def test_two_relays_at_once(self):
        one, two = self.session('relay'), self.session('relay')
        one.begin()
        first = self.register(one, 'bob', 43)
        second = Background(two, lambda: self.register(two, 'bob', 43))
        wait_until(lambda: self.owner_sees_blocked(two.pid), 'two waits')
        one.commit()
        self.assertEqual(second.join(), first)

    def test_contradictions_name_both(self):
        sql = 'SELECT txrelay.relay_register(%s, %s, %s, %s, %s, %s)'
        good = ['alice', h32('alice'), 'sr25519', b'\1' * 32, '5alice', 42]
        for change, text in (({1: h32('bob')}, (h32('alice').hex(), h32('bob').hex())),
                             ({2: 'ed25519'}, ('sr25519', 'ed25519')),
                             ({5: 77}, ('p_lock_key', '42', '77', 'stop all relays')),
                             ({0: 'other'}, ('"other"', '"alice"')),
                             ({0: 'bob', 1: h32('bob')}, ('p_lock_key', 'bob', 'alice')),
                             ({0: 'bad alias'}, ('p_alias', 'bad alias')),
                             ({0: '0xabc'}, ('p_alias', '0xabc')),
                             ({1: b'\1' * 31}, ('p_account_id', '31')),
                             ({2: 'rsa'}, ('p_scheme', 'rsa')),
                             ({3: b''}, ('p_genesis', '0 bytes')), ({4: ''}, ('p_address', '0')),
                             ({5: None}, ('p_lock_key', 'NULL'))):
            with self.subTest(change):
                values = [change.get(i, v) for i, v in enumerate(good)]
                self.refused('TR011', self.relay.rows, sql, *values, text=text)
        self.refused('TR015', self.relay.rows, sql, *good[:3], b'\2' * 32, *good[4:],
                     text=('01' * 32, '02' * 32))
        self.assertEqual((self.count('accounts'), self.count('leadership')), (1, 1))

    def test_a_new_one_beside_one_of_another_chain(self):
        """The accounts of a relay are of one chain: the endpoint that it asked is of another
        one."""
        sql = 'SELECT txrelay.relay_register(%s, %s, %s, %s, %s, %s, false, 64, false, %s)'
        new = ['bob', h32('bob'), 'sr25519', b'\2' * 32, '5bob', 43]
        self.refused('TR015', self.relay.rows, sql, *new, ['bob', 'alice'],
                     text=('bob', 'alice', '01' * 32, '02' * 32))
        self.assertEqual(self.count('accounts'), 1)
        new[3] = b'\1' * 32
        self.assertEqual(self.relay.value(sql, *new, ['bob', 'alice', 'nobody']), self.alice + 1)
        carol = ['carol', h32('carol'), 'sr25519', b'\2' * 32, '5carol', 44]
        self.assertEqual(self.relay.value(sql, *carol, ['carol']), self.alice + 2)
        self.refused('TR011', self.relay.rows, sql, *carol, None, text=('p_beside',))

    def test_an_account_of_20_bytes(self):
        self.assertEqual(self.register(self.relay, 'eth', 44, account_id=b'\5' * 20),
                         self.alice + 1)


class Pause(Case):
    def paused(self):
        return self.owner.one('SELECT paused, paused_by, paused_reason FROM txrelay.leaders')

    def test_leader_and_operator(self):
        epoch = self.lead()
        self.relay.rows("SELECT txrelay.leader_pause(%s, %s, 'payment', %s)", self.alice, epoch,
                        'no balance')
        self.assertEqual(self.paused(), (True, 'leader', 'no balance'))
        self.relay.rows('SELECT txrelay.leader_pause(%s, %s, NULL, NULL)', self.alice, epoch)
        self.assertEqual(self.paused(), (False, None, None))
        self.relay.rows("SELECT txrelay.account_pause('alice', 'maintenance')")
        self.relay.rows('SELECT txrelay.leader_pause(%s, %s, NULL, NULL)', self.alice, epoch)
        self.relay.rows("SELECT txrelay.leader_pause(%s, %s, 'payment', %s)", self.alice, epoch,
                        'no balance')
        self.assertEqual(self.paused(), (True, 'operator', 'maintenance'))
        self.refused('TR010', self.relay.rows, "SELECT txrelay.account_pause('alic', 'x')",
                     text='alice')

    def test_nothing_gets_a_nonce(self):
        epoch, ids = self.lead(), self.enqueue()
        self.relay.rows("SELECT txrelay.account_pause('alice', NULL)")
        self.assertEqual(self.relay.rows('SELECT * FROM txrelay.leader_outbox(%s, %s, 10)',
                                         self.alice, epoch), [])
        self.refused('TR002', self.admit, self.relay, epoch, ids, [0], text='paused')
        self.relay.rows("SELECT txrelay.account_resume('alice')")
        self.assertEqual(self.admit(self.relay, epoch, ids, [0]), 1)


class LeaderState(Case):
    def test_view(self):
        self.lead('me')
        got = self.app.dict('SELECT * FROM txrelay.leaders')
        self.assertEqual({k: got[k] for k in ('alias', 'account_id', 'epoch', 'holder', 'address',
                                              'lock_held',
                                              'next_nonce', 'paused', 'account',
                                              'account_address')},
                         {'alias': 'alice', 'account_id': '0x' + h32('alice').hex(), 'epoch': 1,
                          'holder': 'me',
                          'address': 'me:1', 'lock_held': False, 'next_nonce': None,
                          'paused': False,
                          'account': self.alice, 'account_address': '5alice'})
        self.assertGreaterEqual(got['heartbeat_age'].total_seconds(), 0)
        self.assertLess(got['heartbeat'], got['expiry_1'])


if __name__ == '__main__':
    unittest.main()
