"""After a failover that lost commits (17_reconcile.sql): another timeline ends every epoch, nothing is admitted before what the chain
knows was adopted, and what is adopted is what was lost: by its call, once, and not what came later."""
import time
import unittest

from pgcase import Case, h32

CALL = b'\x05\x01' + b'pay'


class Reconcile(Case):
    def renew(self, epoch, block=None):
        return self.relay.value("SELECT renewed FROM txrelay.leader_renew('relay-a', ARRAY[%s], ARRAY[%s::bigint], 3000, 9000, "
                                'p_block => %s)', self.alice, epoch, block)

    def failover(self):
        """The row as a standby has it that is promoted: claimed on the timeline before."""
        self.owner.rows('UPDATE txrelay.leadership SET timeline = timeline - 1')

    def adopt(self, epoch, *found, block=40, done=True):
        """found: (nonce, call[, seconds since now of its block; None: in a pool])"""
        found = [tuple(f) + (None,) * (3 - len(f)) for f in found]
        n = len(found)
        times = [None if f[2] is None else int((time.time() + f[2]) * 1000) for f in found]
        return self.relay.value(
            'SELECT txrelay.leader_adopt(%s, %s, %s::bigint[], %s::bytea[], %s::bytea[], %s::int[], %s::numeric[], '
            '%s::bigint[], %s::bigint[], %s::bigint[], 100, 1, %s, %s)', self.alice, epoch, [f[0] for f in found],
            [h32(f'found {f[0]}') for f in found], [b'\x84sig' + f[1] for f in found], [len(f[1]) for f in found], [9] * n,
            [64] * n, [128] * n, times, block, done)

    def doubtful(self, *calls):
        """An account that was led up to block 40, then a failover; these calls wait in the outbox."""
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
        self.refused('TR001', self.admit, self.relay, epoch, self.enqueue(), [2], text=('timeline', 'Claim again'))
        self.refused('TR001', self.state, self.relay, epoch, (0, h32(0), 'ready'), text='timeline')
        self.refused('TR001', self.relay.rows, 'SELECT * FROM txrelay.leader_outbox(%s, %s, 10)', self.alice, epoch)
        self.assertEqual(self.lead(), epoch + 1)

    def test_the_claim_notes_from_where(self):
        epoch, _ = self.doubtful()
        self.assertEqual(self.account()['reconcile_from'], 40)
        facts = self.relay.dict('SELECT * FROM txrelay.leader_account(%s, %s)', self.alice, epoch)
        self.assertEqual((facts['seen_block'], facts['reconcile_from']), (40, 40))
        self.assertTrue(self.renew(epoch, 90))
        self.failover()
        self.lead()
        self.assertEqual(self.account()['reconcile_from'], 40, 'a second failover does not forget the first one')

    def test_no_failover_no_doubt(self):
        epoch = self.lead()
        self.renew(epoch, 40)
        self.lead('relay-a')
        self.assertIsNone(self.account()['reconcile_from'])

    def test_nothing_is_admitted_before(self):
        epoch, ids = self.doubtful(CALL)
        self.refused('TR003', self.admit, self.relay, epoch, ids, [0], text=('not reconciled', 'block 40', 'leader_adopt'))
        self.assertEqual(self.adopt(epoch), 0)
        self.assertEqual(self.admit(self.relay, epoch, ids, [0]), 1)

    def test_adopted_by_the_call(self):
        epoch, ids = self.doubtful(b'a', b'b', b'c')
        self.assertEqual(self.adopt(epoch, (7, b'c', 0), (5, b'a', 0), (6, b'x', 0)), 2)
        got = self.owner.rows('SELECT nonce, id, call, hash, state::text, attempt, attempts FROM txrelay.pending_transactions '
                              'ORDER BY nonce')
        self.assertEqual([tuple(map(lambda v: bytes(v) if isinstance(v, memoryview) else v, r)) for r in got],
                         [(5, ids[0], b'a', h32('found 5'), 'signed', 1, 1), (7, ids[2], b'c', h32('found 7'), 'signed', 1, 1)])
        self.assertEqual(self.owner.rows('SELECT nonce, tip, era_birth, era_death, block FROM txrelay.attempts ORDER BY nonce'),
                         [(5, 9, 64, 128, 40), (7, 9, 64, 128, 40)])
        self.assertEqual(self.account()['next_nonce'], 8)
        self.assertIsNone(self.account()['reconcile_from'])
        self.assertEqual(self.owner.rows('SELECT id FROM txrelay.outbox'), [(ids[1],)])
        self.assertEqual(self.finish(self.relay, epoch, (5, h32('found 5'), h32('block'), 'ok')), 1)

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
        self.assertEqual(self.owner.rows('SELECT number, outcome::text, block, reason FROM txrelay.attempts WHERE nonce = 0 '
                                         'ORDER BY number'),
                         [(1, 'replaced', 10, 'a later attempt was found, which the database had lost'), (2, 'live', 15, None)])
        self.assertEqual(self.adopt(epoch, (0, CALL, 0), done=False), 0, 'it is on record now')
        self.assertEqual(self.finish(self.relay, epoch, (0, h32('found 0'), h32('block'), 'ok')), 1)

    def test_what_has_ended_is_left_alone(self):
        epoch, ids = self.pending(1, call=CALL)
        self.finish(self.relay, epoch, (0, h32(0), h32('block'), 'ok'))
        waiting = self.enqueue(call=CALL)
        self.assertEqual(self.adopt(epoch, (0, CALL, 0)), 0)
        self.assertEqual(self.owner.rows('SELECT id FROM txrelay.outbox'), [(waiting[0],)])

    def test_what_is_on_record_is_not_lost(self):
        """Of a life of the account that is over: its nonces are used again, its attempts are still there."""
        epoch = self.lead()
        self.admit(self.relay, epoch, self.enqueue(call=CALL), [0], hashes=[h32('found 0')])
        self.finish(self.relay, epoch, (0, h32('found 0'), h32('block'), 'ok'))
        self.owner.rows('UPDATE txrelay.accounts SET used_nonce = NULL, used_block = NULL')
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
        self.refused('TR010', self.relay.value, "SELECT txrelay.account_reconcile('alicia')", text='alice')

    def test_the_account_that_was_usurped_knows_the_block(self):
        epoch, _ = self.pending(1)
        self.finish(self.relay, epoch, (0, h32(0), None, 'usurped'))
        self.assertEqual((self.account()['used_nonce'], self.account()['used_block']), (1, 7))
        self.assertEqual(self.owner.rows('SELECT block_number, block_hash FROM txrelay.finished_transactions'), [(None, None)])

    def test_bad_arguments(self):
        epoch, _ = self.doubtful()
        self.refused('TR011', self.relay.rows, "SELECT txrelay.leader_adopt(%s, %s, '{1}', '{}', '{}', '{}', '{}', '{}', '{}', "
                     "'{}', 1, 1, 1, true)", self.alice, epoch)
        self.refused('TR003', self.adopt, epoch, (0, CALL), (0, CALL))
        self.assertEqual(self.account()['reconcile_from'], 40)


if __name__ == '__main__':
    unittest.main()
