"""After a failover that lost commits (17_reconcile.sql): another timeline ends every epoch,
nothing is admitted before what the chain knows was adopted, and what is adopted is what was lost:
by its call, once, and not what came later."""
import time
import unittest

from pgcase import Case, h32

CALL = b'\x05\x01' + b'pay'


class Reconcile(Case):
    def renew(self, epoch, block=None):
        return self.relay.value("SELECT renewed FROM txrelay.leader_renew('relay-a', ARRAY[%s], "
                                "ARRAY[%s::bigint], 3000, 9000, "
                                'p_block => %s)', self.alice, epoch, block)

    def failover(self):
        """The row as a standby has it that is promoted: claimed on the timeline before."""
        self.owner.rows('UPDATE txrelay.leadership SET timeline = timeline - 1')

    def adopt(self, epoch, *found, block=40, done=True, read=None):
        """found: (nonce, call[, seconds since now of its block; None: in a pool[, what its hash
        has beside the nonce]])"""
        found = [tuple(f) + (None, '')[len(f) - 2:] for f in found]
        n = len(found)
        times = [None if f[2] is None else int((time.time() + f[2]) * 1000) for f in found]
        return self.relay.value(
            'SELECT txrelay.leader_adopt(%s, %s, %s::bigint[], %s::bytea[], %s::bytea[], '
            '%s::int[], %s::numeric[], '
            '%s::bigint[], %s::bigint[], %s::bigint[], 100, 1, %s, %s, %s)', self.alice, epoch,
            [f[0] for f in found],
            [h32(f'found {f[0]}' + f[3]) for f in found], [b'\x84sig' + f[1] for f in found],
            [len(f[1]) for f in found], [9] * n,
            [64] * n, [128] * n, times, block, done, read)

    def doubtful(self, *calls):
        """An account that was led up to block 40, then a failover; these calls wait in the
        outbox."""
        epoch = self.lead()
        self.assertTrue(self.renew(epoch, 40))
        ids = [self.enqueue(call=call)[0] for call in calls]
        self.failover()
        return self.lead(), ids

    def test_a_renewal_notes_the_block_and_it_never_goes_down(self):
        epoch = self.lead()
        for given, kept in ((None, None), (40, 40), (39, 40), (None, 40), (41, 41)):
            self.assertTrue(self.renew(epoch, given))
            self.assertEqual(self.account()['seen_block'], kept)

    def test_another_timeline_ends_every_epoch(self):
        epoch, _ = self.pending(2)
        self.failover()
        self.assertFalse(self.renew(epoch, 50))
        self.assertEqual(self.account()['seen_block'], 10, 'of the admission')
        self.refused('TR001', self.admit, self.relay, epoch, self.enqueue(), [2],
                     text=('timeline', 'Claim again'))
        self.refused('TR001', self.state, self.relay, epoch, (0, h32(0), 'ready'), text='timeline')
        self.refused('TR001', self.relay.rows, 'SELECT * FROM txrelay.leader_outbox(%s, %s, 10)',
                     self.alice, epoch)
        self.assertEqual(self.lead(), epoch + 1)

    def test_the_claim_notes_from_where(self):
        epoch, _ = self.doubtful()
        self.assertEqual(self.account()['reconcile_from'], 40)
        facts = self.relay.dict('SELECT * FROM txrelay.leader_account(%s, %s)', self.alice, epoch)
        self.assertEqual((facts['seen_block'], facts['reconcile_from']), (40, 40))
        self.assertTrue(self.renew(epoch, 90))
        self.failover()
        self.lead()
        self.assertEqual(self.account()['reconcile_from'], 40,
                         'a second failover does not forget the first one')

    def test_no_failover_no_doubt(self):
        epoch = self.lead()
        self.renew(epoch, 40)
        self.lead('relay-a')
        self.assertIsNone(self.account()['reconcile_from'])

    def test_nothing_is_admitted_before(self):
        epoch, ids = self.doubtful(CALL)
        self.refused('TR003', self.admit, self.relay, epoch, ids, [0],
                     text=('not reconciled', 'block 40', 'leader_adopt'))
        self.assertEqual(self.adopt(epoch), 0)
        self.assertEqual(self.admit(self.relay, epoch, ids, [0]), 1)

    def test_adopted_by_the_call(self):
        epoch, ids = self.doubtful(b'a', b'b', b'c')
        self.assertEqual(self.adopt(epoch, (7, b'c', 0), (5, b'a', 0), (6, b'x', 0)), 2)
        got = self.owner.rows('SELECT nonce, id, call, hash, state::text, attempt, attempts '
                              'FROM txrelay.pending_transactions '
                              'ORDER BY nonce')
        self.assertEqual([tuple(map(lambda v: bytes(v) if isinstance(v, memoryview) else v, r))
                          for r in got],
                         [(5, ids[0], b'a', h32('found 5'), 'signed', 1, 1),
                          (7, ids[2], b'c', h32('found 7'), 'signed', 1, 1)])
        self.assertEqual(self.owner.rows('SELECT nonce, tip, era_birth, era_death, block '
                                         'FROM txrelay.attempts ORDER BY nonce'),
                         [(5, 9, 64, 128, 64), (7, 9, 64, 128, 64)])
        self.assertEqual(self.account()['next_nonce'], 8)
        self.assertEqual(self.account()['reconcile_from'], 40,
                         'one of them may fail, and its next try is sought')
        self.assertEqual(self.adopt(epoch, (7, b'c', 0), (5, b'a', 0), (6, b'x', 0)), 0)
        self.assertIsNone(self.account()['reconcile_from'])
        self.assertEqual(self.owner.rows('SELECT id FROM txrelay.outbox'), [(ids[1],)])
        self.assertEqual(self.finish(self.relay, epoch, (5, h32('found 5'), h32('block'), 'ok')), 1)

    def test_the_retry_of_what_failed(self):
        """The lost commits had sent it twice: the first one failed in its block, and the second
        one is its retry."""
        epoch = self.lead()
        self.renew(epoch, 40)
        ids = self.enqueue(call=CALL, retries=1)
        self.failover()
        epoch = self.lead()
        self.lost(epoch)
        both = ((3, CALL, 0), (4, CALL, 0))
        self.assertEqual(self.adopt(epoch, *both, read=60 + 4096), 1)
        self.refused('TR003', self.admit, self.relay, epoch, self.enqueue(call=b'other'), [4],
                     text='not reconciled')
        self.assertEqual(self.requeue(self.relay, epoch,
                                      (3, 'dispatch_error', 'x', h32('found 3'), h32('b'))), 1)
        self.assertEqual(self.adopt(epoch, *both, read=60 + 4096), 1)
        self.assertEqual(self.owner.rows('SELECT nonce, id FROM txrelay.pending_transactions'),
                         [(4, ids[0])])
        self.assertEqual(self.adopt(epoch, *both, read=60 + 4096), 0)
        self.assertEqual([self.account()[k] for k in ('reconcile_from', 'lost_since',
                                                      'lost_heard')], [None] * 3)

    def test_rows_of_a_server_whose_clock_was_ahead(self):
        """Such a row looks as if it had come after the block that has its extrinsic. By how much
        the clock was ahead is known."""
        epoch, ids = self.doubtful(CALL)
        self.owner.rows("UPDATE txrelay.outbox SET created_at = clock_timestamp() + interval "
                        "'590 s'")
        self.assertEqual(self.adopt(epoch, (3, CALL, 0), done=True), 0, 'it came later')
        self.owner.rows('UPDATE txrelay.accounts SET reconcile_from = 40')
        self.owner.rows("UPDATE txrelay.high_water SET reached = clock_timestamp() + interval "
                        "'600 s'")
        self.assertEqual(self.adopt(epoch, (3, CALL, -120), done=True), 0,
                         'it came later all the same')
        self.owner.rows('UPDATE txrelay.accounts SET reconcile_from = 40')
        self.assertEqual(self.adopt(epoch, (3, CALL, 0), done=True), 1)
        self.assertEqual(self.owner.rows('SELECT nonce, id FROM txrelay.pending_transactions'),
                         [(3, ids[0])])

    def test_one_extrinsic_one_transaction(self):
        """Two wait with the same call: the first in line is the one that was sent first."""
        epoch, ids = self.doubtful(CALL, CALL)
        self.assertEqual(self.adopt(epoch, (0, CALL, 0)), 1)
        self.assertEqual(self.owner.rows('SELECT id FROM txrelay.outbox'), [(ids[1],)])

    def test_what_came_later_asks_for_another_one(self):
        epoch, ids = self.doubtful(CALL)
        self.assertEqual(self.adopt(epoch, (0, CALL, -120)), 0)
        self.assertEqual(self.owner.rows('SELECT id FROM txrelay.outbox'), [(ids[0],)])

    def test_in_a_pool(self):
        epoch, _ = self.doubtful(CALL)
        self.assertEqual(self.adopt(epoch, (0, CALL)), 1)

    def test_a_later_attempt_of_a_pending_one(self):
        epoch, ids = self.pending(2, call=CALL)
        self.assertEqual(self.adopt(epoch, (0, CALL, 0), (1, b'other', 0), block=15, done=False), 1)
        self.assertEqual(self.owner.rows('SELECT number, outcome::text, block, reason '
                                         'FROM txrelay.attempts WHERE nonce = 0 '
                                         'ORDER BY number'),
                         [(1, 'replaced', 10,
                           'a later attempt was found, which the database had lost'),
                           (2, 'live', 15, None)])
        self.assertEqual(self.adopt(epoch, (0, CALL, 0), done=False), 0, 'it is on record now')
        self.assertEqual(self.finish(self.relay, epoch, (0, h32('found 0'), h32('block'), 'ok')), 1)

    def test_a_new_life_that_was_lost(self):
        """Its nonces were used in the former life, and these extrinsics are not on record."""
        epoch, ids = self.pending(1, call=CALL)
        self.finish(self.relay, epoch, (0, h32(0), h32('block'), 'ok'))
        waiting = self.enqueue(call=CALL)
        self.assertEqual(self.adopt(epoch, (0, CALL, 0)), 1)
        self.assertEqual(self.owner.rows('SELECT nonce, id FROM txrelay.pending_transactions'),
                         [(0, waiting[0])])
        self.assertEqual(self.account()['next_nonce'], 1)
        self.assertEqual(self.finish(self.relay, epoch, (0, h32('found 0'), h32('block'), 'ok')), 1)

    def test_a_block_of_the_former_life_ends_nothing_of_this_one(self):
        """Blocks are read again from where commits may be lost, and the nonce has attempts of two
        lives."""
        epoch, _ = self.pending(1, call=CALL)
        self.finish(self.relay, epoch, (0, h32(0), h32('block'), 'ok'))
        waiting = self.enqueue(call=b'later', retries=1)
        self.assertEqual(self.adopt(epoch, (0, b'later', 0)), 1)
        row, = self.snapshot(epoch)
        self.assertEqual((row['id'], row['attempt'], row['earlier'], row['earlier_own'],
                          row['earlier_death']),
                         (waiting[0], 2, [], 0, 0))
        self.assertEqual(row['block'], 64, 'no block up to the birth of its era holds it')
        self.refused('TR003', self.finish, self.relay, epoch, (0, h32(0), h32('block'), 'ok'),
                     text='has no attempt')
        self.refused('TR003', self.requeue, self.relay, epoch,
                     (0, 'dispatch_error', 'x', h32(0), h32('block')), text='no attempt')
        self.assertEqual(self.finish(self.relay, epoch,
                                     (0, h32('found 0'), h32('later block'), 'ok')), 1)

    def reborn(self, epoch):
        self.relay.rows("SELECT txrelay.leader_pause(%s, %s, 'reaped', 'reaped')", self.alice,
                        epoch)
        self.relay.rows("SELECT txrelay.account_resume('alice')")
        self.relay.rows('SELECT txrelay.leader_nonce(%s, %s, 0, true, true)', self.alice, epoch)

    def test_nor_does_one_that_held_its_own_former_attempt(self):
        """It failed in its block and went back to the outbox; the account was reaped, and gives it
        the same nonce again."""
        epoch, ids = self.pending(1, call=CALL, retries=3)
        self.requeue(self.relay, epoch, (0, 'dispatch_error', 'x', h32(0), h32('block')))
        self.reborn(epoch)
        self.admit(self.relay, epoch, ids, [0], [h32('new')])
        row, = self.snapshot(epoch)
        self.assertEqual((row['id'], row['attempt'], row['earlier']), (ids[0], 2, []))
        for end in ((self.requeue, (0, 'dispatch_error', 'x', h32(0), h32('block'))),
                    (self.finish, (0, h32(0), h32('block'), 'dispatch_error'))):
            self.refused('TR003', end[0], self.relay, epoch, end[1], text='has no attempt')
        self.assertEqual(self.finish(self.relay, epoch, (0, h32('new'), h32('later block'), 'ok')),
                         1)

    def test_nor_a_filler_at_its_nonce(self):
        epoch, _ = self.pending(1, call=CALL)
        self.finish(self.relay, epoch, (0, h32(0), h32('block'), 'ok'))
        self.reborn(epoch)
        self.fill(self.relay, epoch, [0])
        row, = self.snapshot(epoch)
        self.assertEqual((row['id'], row['attempt'], row['earlier']), (None, 2, []))
        self.refused('TR003', self.finish, self.relay, epoch, (0, h32(0), h32('block'), 'ok'),
                     text='has no attempt')

    def test_sent_again_in_a_new_life_that_was_lost(self):
        """The lost commits had sent it back to the outbox, and given it another nonce in the new
        life."""
        epoch, ids = self.pending(1, call=CALL)
        self.renew(epoch, 40)
        self.failover()
        epoch = self.lead()
        self.lost(epoch)
        found = (3, CALL, 0)
        self.assertEqual(self.requeue(self.relay, epoch, (0, 'failed', 'of a former life')), 1)
        self.refused('TR003', self.admit, self.relay, epoch, ids, [1], text='not reconciled')
        self.assertEqual(self.adopt(epoch, found, read=60 + 4096), 1)
        self.assertEqual(self.owner.rows('SELECT nonce, id FROM txrelay.pending_transactions'),
                         [(3, ids[0])])

    def test_one_nonce_in_several_lives(self):
        """The first that is ours is adopted: by the block, and what a pool has comes last."""
        epoch, ids = self.doubtful(b'a', b'b', b'c')
        self.assertEqual(self.adopt(epoch, (0, b'c'), (0, b'b', 2, ' later'),
                                    (0, b'x', 0, ' foreign'), (0, b'a', 1, ' early')), 1)
        self.assertEqual(self.owner.rows('SELECT nonce, id FROM txrelay.pending_transactions'),
                         [(0, ids[0])])

    def test_what_is_on_record_is_not_lost(self):
        """Of a life of the account that is over: its nonces are used again, its attempts are still
        there."""
        epoch = self.lead()
        self.admit(self.relay, epoch, self.enqueue(call=CALL), [0], hashes=[h32('found 0')])
        self.finish(self.relay, epoch, (0, h32('found 0'), h32('block'), 'ok'))
        waiting = self.enqueue(call=CALL)
        self.assertEqual(self.adopt(epoch, (0, CALL, 0)), 0)
        self.assertEqual(self.owner.rows('SELECT id FROM txrelay.outbox'), [(waiting[0],)])

    def test_an_operator_who_restored_a_copy(self):
        epoch = self.lead()
        self.renew(epoch, 40)
        self.assertEqual(self.relay.value("SELECT txrelay.account_reconcile('alice')"), 40)
        self.assertFalse(self.renew(epoch, 50), 'whoever leads claims again')
        self.lead()
        self.assertEqual(self.account()['reconcile_from'], 40)
        self.assertEqual(self.relay.value("SELECT txrelay.account_reconcile('alice', 30)"), 30)
        self.refused('TR011', self.relay.value, "SELECT txrelay.account_reconcile('alice', -1)")
        self.refused('TR010', self.relay.value, "SELECT txrelay.account_reconcile('alicia')",
                     text='alice')

    def test_the_account_that_was_usurped_knows_the_block(self):
        epoch, _ = self.pending(1)
        self.finish(self.relay, epoch, (0, h32(0), None, 'usurped'))
        self.assertEqual((self.account()['used_nonce'], self.account()['used_block']), (1, 7))
        self.assertEqual(self.owner.rows('SELECT block_number, block_hash '
                                         'FROM txrelay.finished_transactions'), [(None, None)])

    # ---- the wait ----

    def blocked(self):
        return self.app.dicts('SELECT * FROM txrelay.blocked_accounts')

    def lost(self, epoch, block=60):
        return self.relay.value('SELECT txrelay.leader_heard(%s, %s, %s)', self.alice, epoch, block)

    def bound(self, era, immortal=False):
        self.owner.rows('UPDATE txrelay.accounts SET era_longest = 0, era_immortal = false')
        return self.relay.value("SELECT txrelay.relay_register('alice', %s, 'sr25519', %s, "
                                "'5alice', 42, false, %s, %s)",
                                h32('alice'), b'\1' * 32, era, immortal)

    def test_a_successor_goes_on_with_the_wait(self):
        self.bound(64)
        epoch, ids = self.doubtful(CALL)
        self.refused('TR003', lambda: self.adopt(epoch, (0, CALL, 0), read=10 ** 9),
                     text='not reconciled')
        self.assertEqual(self.lost(epoch), 124)
        epoch = self.lead('relay-b', after_ms=10000)
        self.assertEqual(self.lost(epoch, 900), 124)
        facts = self.facts(epoch)
        self.assertEqual((facts['lost_until'], facts['era_immortal']), (124, False))
        self.assertLess(abs(facts['lost_since_ms'] / 1000 - time.time()), 60)
        self.refused('TR003', lambda: self.adopt(epoch, (0, CALL, 0), read=123),
                     text=('not reconciled', 'block 40', 'block 124'))
        self.refused('TR003', lambda: self.adopt(epoch, (0, CALL, 0), read=124, done=False),
                     text='not reconciled')
        self.assertEqual(self.adopt(epoch, (0, CALL, 0), read=124), 1)
        self.assertEqual(self.facts(epoch)['lost_until'], 124)
        self.assertEqual(self.adopt(epoch, (0, CALL, 0), read=124), 0)
        self.assertEqual([self.account()[k] for k in ('reconcile_from', 'lost_since',
                                                      'lost_heard')], [None] * 3)
        self.refused('TR003', self.lost, epoch, text='is reconciled')

    def test_another_failover_begins_the_wait_anew(self):
        epoch, _ = self.doubtful()
        self.lost(epoch)
        self.failover()
        epoch = self.lead()
        self.assertIsNone(self.facts(epoch)['lost_until'])
        self.assertEqual(self.lost(epoch, 70), 70 + 4096)

    def test_a_longer_era_makes_it_longer(self):
        self.bound(64)
        epoch, _ = self.doubtful()
        self.assertEqual(self.lost(epoch), 124)
        for era, until in ((128, 188), (64, 188)):
            self.relay.value("SELECT txrelay.relay_register('alice', %s, 'sr25519', %s, '5alice', "
                             "42, false, %s, false)",
                             h32('alice'), b'\1' * 32, era)
            self.assertEqual(self.facts(epoch)['lost_until'], until)

    def test_the_first_claim_may_be_lost(self):
        ids = self.enqueue(call=CALL)
        self.failover()
        epoch = self.lead()
        self.assertEqual(self.account()['reconcile_from'], 0)
        self.refused('TR003', self.admit, self.relay, epoch, ids, [0], text='not reconciled')

    def test_nothing_is_admitted_signed_or_ended(self):
        epoch, ids = self.pending(4)
        waits = self.enqueue(call=CALL)
        self.renew(epoch, 40)
        self.failover()
        epoch = self.lead()
        self.lost(epoch)
        before = [self.owner.rows(f'SELECT * FROM txrelay.{t} ORDER BY 1, 2') for t in
                  ('outbox', 'pending_transactions', 'attempts', 'finished_transactions')]
        for call, *args in ((self.admit, self.relay, epoch, waits, [4]),
                            (self.attempt, self.relay, epoch, [0], [h32('new')]),
                            (self.attempt, self.relay, epoch, [0], [h32('new')], 'stop', 0, 1,
                             'cancelled', 'why'),
                            (self.fill, self.relay, epoch, [0]),
                            (self.fill, self.relay, epoch, [4]),
                            (self.finish, self.relay, epoch, (0, h32(0), None, 'expired')),
                            (self.finish, self.relay, epoch, (0, h32(0), h32('b'), 'ok'),
                             (1, h32(1), None, 'cancelled')),
                            (self.relay.value, "SELECT txrelay.leader_reject(%s, %s, %s::bigint[], "
                                               "'{failed}', '{why}')",
                             self.alice, epoch, waits),
                            (self.relay.value, 'SELECT txrelay.leader_nonce(%s, %s, 9)', self.alice,
                             epoch),
                            (self.relay.value, "SELECT txrelay.leader_admit_presigned(%s, %s, "
                                               "'{9}', '{4}', %s::bytea[], '{4}', "
                             "'{0}', '{64}', '{128}', '{10}', 100, 1, 4)", self.alice, epoch,
                             [h32('x')])):
            with self.subTest(call=call.__name__, args=args):
                self.refused('TR003', call, *args,
                             text=('not reconciled', 'block 40', 'block 4156'))
        self.assertEqual(before,
                         [self.owner.rows(f'SELECT * FROM txrelay.{t} ORDER BY 1, 2') for t in
                                  ('outbox', 'pending_transactions', 'attempts',
                                   'finished_transactions')])

    def test_what_a_block_shows_is_stored(self):
        epoch, ids = self.pending(3, retries=1)
        self.failover()
        epoch = self.lead()
        self.assertEqual(self.state(self.relay, epoch, (0, h32(0), 'in_block', h32('b'), 7)), 1)
        self.assertEqual(self.finish(self.relay, epoch, (0, h32(0), h32('b'), 'ok')), 1)
        self.assertEqual(self.requeue(self.relay, epoch,
                                      (1, 'dispatch_error', 'x', h32(1), h32('b')), (2, 'usurped')),
                                      2)
        self.assertEqual(self.owner.rows('SELECT id FROM txrelay.outbox ORDER BY id'),
                         [(i,) for i in ids[1:]])

    def test_an_ended_nonce_is_adopted_by_what_took_it(self):
        """The lost commits had ended the first and given its nonce to the second. The nonce must
        be free before that one can be adopted; a leader that dies in between leaves the account as
        it is, not reconciled."""
        epoch, ids = self.pending(1)
        self.renew(epoch, 40)
        ids += self.enqueue(call=CALL)
        self.failover()
        epoch = self.lead()
        self.assertEqual(self.lost(epoch), 60 + 4096)
        self.assertEqual(self.finish(self.relay, epoch,
                                     (0, h32(0), None, 'usurped', 'used by another')), 1)
        self.assertEqual(self.account()['reconcile_from'], 40)
        epoch = self.lead('relay-b', after_ms=10000)
        self.refused('TR003', self.admit, self.relay, epoch, ids[1:], [1], text='not reconciled')
        self.assertEqual(self.adopt(epoch, (0, CALL, 0), read=60 + 4096), 1)
        self.assertEqual(self.owner.rows('SELECT nonce, id FROM txrelay.pending_transactions'),
                         [(0, ids[1])])
        self.assertEqual(self.owner.rows('SELECT number, id FROM txrelay.attempts ORDER BY number'),
                         [(1, ids[0]), (2, ids[1])])
        self.assertEqual(self.finish(self.relay, epoch, (0, h32('found 0'), h32('block'), 'ok')), 1)
        self.assertEqual(self.owner.rows('SELECT id, outcome::text FROM '
                                         'txrelay.finished_transactions ORDER BY id'),
                         [(ids[0], 'usurped'), (ids[1], 'ok')])

    def test_cancel_and_deadline_are_kept_for_later(self):
        epoch = self.lead()
        ids = self.enqueue(2, call=CALL) + self.enqueue(call=CALL, deadline='2999-01-01')
        self.failover()
        cancel = 'SELECT txrelay.cancel(%s)'
        self.assertEqual(self.app.value(cancel, ids[0]), 'requested', 'no leader has claimed yet')
        epoch = self.lead()
        ear = self.listen('outbox_wake')
        self.assertEqual([self.app.value(cancel, i) for i in ids[:2]], ['requested'] * 2)
        self.assertEqual(self.heard(ear), [],
                         'the leader cannot do anything before it is reconciled')
        self.owner.rows("UPDATE txrelay.outbox SET deadline = clock_timestamp() "
                        "WHERE deadline IS NOT NULL")
        got = self.look(epoch)
        self.assertEqual([r['nonce'] for r in got], [None])
        self.assertGreater(got[0]['next_ms'], 500, 'and it is not asked at once again')
        self.assertEqual(self.count('finished_transactions'), 0)
        self.assertEqual([self.adopt(epoch, (0, CALL, 0)), self.adopt(epoch)], [1, 0])
        self.assertEqual([r['outcome'] for r in self.look(epoch) if r['nonce'] is not None],
                         ['cancelled'], 'the one that was sent has a nonce')
        self.assertEqual(self.owner.rows('SELECT id, outcome::text FROM '
                                         'txrelay.finished_transactions ORDER BY id'),
                         [(ids[1], 'cancelled'), (ids[2], 'expired')])

    def test_what_was_signed_elsewhere_cannot_be_cancelled_meanwhile(self):
        self.lead()
        body = b'\x84\0' + h32('alice') + b'\1' + b's' * 64 + b'call'
        tx = self.app.value('SELECT txrelay.enqueue_signed(%s)',
                            bytes([len(body) << 2 & 255 | 1, len(body) >> 6]) + body)
        self.failover()
        self.refused('TR011', self.app.value, 'SELECT txrelay.cancel(%s)', tx,
                     text=('failover lost', 'blocked_accounts'))
        self.adopt(self.lead())
        self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', tx), 'cancelled')

    def test_operators_see_the_wait(self):
        self.bound(64)
        epoch, _ = self.doubtful()
        self.assertIn('before it is known how far eras may reach', self.blocked()[0]['reason'])
        self.lost(epoch)
        self.renew(epoch, 100)
        row = self.blocked()[0]
        self.assertIn('before block 124 is final and read; 24 blocks are left', row['reason'])
        self.assertEqual((row['account'], row['paused'], row['since']),
                         ('alice', False, self.account()['lost_since']))
        self.adopt(epoch, read=124)
        self.assertEqual(self.blocked(), [])

    def test_no_era_is_longer_than_the_wait(self):
        self.bound(64)
        epoch, ids = self.pending(1)
        for era, immortal, signs in ((32, False, False), (63, True, False), (64, False, True)):
            self.bound(era, immortal)
            more = self.enqueue()
            admit = (self.admit, self.relay, epoch, more, [1])
            with self.subTest(era=era):
                if signs:
                    self.assertEqual(admit[0](*admit[1:]), 2)
                else:
                    self.refused('TR003', *admit,
                                 text=(f'longer than {era} blocks', 'relay_register'))
        self.refused('TR003', self.attempt, self.relay, epoch, [0], [h32('immortal')],
                     text='or there is none')
        self.refused('TR003', self.fill, self.relay, epoch, [0], text='or there is none')
        self.bound(4, True)
        self.assertEqual(self.attempt(self.relay, epoch, [0], [h32('immortal')]), 1)
        for era in (None, 3, 4097):
            self.refused('TR011', self.bound, era, text='4 to 4096')

    def test_an_account_that_is_reconciled_waits_for_nothing(self):
        self.refused('TR011', self.lost, self.lead(), -1)
        self.refused('TR003', self.lost, self.lead(), text='is reconciled')

    def test_bad_arguments(self):
        epoch, _ = self.doubtful()
        self.refused('TR011', self.relay.rows, "SELECT txrelay.leader_adopt(%s, %s, '{1}', '{}', "
                                               "'{}', '{}', '{}', '{}', '{}', "
                     "'{}', 1, 1, 1, true, NULL)", self.alice, epoch)
        self.refused('TR003', self.relay.rows, "SELECT txrelay.leader_adopt(%s, %s, '{NULL}', "
                                               "ARRAY[sha256('z')], ARRAY['\\x8455'::bytea], "
                     "'{1}', '{0}', '{-1}', '{-1}', '{NULL}', 1, 1, 1, true, NULL)", self.alice,
                     epoch)
        self.assertEqual(self.account()['reconcile_from'], 40)


if __name__ == '__main__':
    unittest.main()
