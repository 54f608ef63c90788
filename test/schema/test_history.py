"""What happens on the way: fillers that stop a transaction, refusals, nonces that are used up for
nothing, the history."""
import json
import unittest

from pgcase import Case, h32

BLOCK = h32('block')


class Stop(Case):
    """A filler signed at the nonce of a transaction that is to be stopped, racing the
    transaction's own bytes."""
    WIDE = True

    def stop(self, epoch, nonce=0, outcome='cancelled', tag='filler', length=2, reason='by app',
             **how):
        return self.attempt(self.relay, epoch, [nonce], [h32(tag)], 'stop', filler=length,
                            outcome=outcome, stop=reason,
                            **how)

    def test_is_an_attempt_that_says_how_it_ends(self):
        epoch, ids = self.pending()
        self.assertEqual((self.row(0)['stop_outcome'], self.row(0)['stop_reason']), (None, None))
        self.stop(epoch, tip=7)
        p, (own, filler) = self.row(0), self.attempts(0)
        self.assertEqual((p['id'], p['call'], p['hash'], p['attempt'], p['stop_outcome'],
                          p['stop_reason']),
                         (ids[0], b'\0\1', h32('filler'), 2, 'cancelled', 'by app'))
        self.assertEqual((own['filler'], own['outcome'], filler['filler'], filler['outcome'],
                          filler['tip']),
                         (None, 'replaced', 2, 'live', 7))

    def test_signed_again_with_another_reason(self):
        epoch, _ = self.pending()
        self.stop(epoch)
        self.stop(epoch, outcome='expired', tag='second', reason='late')
        self.assertEqual((self.row(0)['stop_outcome'], self.row(0)['stop_reason']),
                         ('expired', 'late'))

    def test_which_of_the_two_got_in_decides(self):
        for stop, got_in, right, wrong in (
                ('cancelled', 'filler', 'cancelled', 'ok'),
                ('expired', 'filler', 'expired', 'dispatch_error'),
                ('failed', 'filler', 'failed', 'ok'), ('cancelled', 0, 'ok', 'cancelled'),
                ('expired', 0, 'dispatch_error', 'expired'), ('failed', 0, 'ok', 'failed')):
            with self.subTest(stop=stop, got_in=got_in):
                self.tearDown()
                self.setUp()
                epoch, (tx,) = self.pending()
                self.stop(epoch, outcome=stop)
                self.refused('TR003', self.finish, self.relay, epoch,
                             (0, h32(got_in), BLOCK, wrong),
                             text=('a filler' if got_in else "own call", f'cannot end as {wrong}',
                                   'nonce 0'))
                self.finish(self.relay, epoch, (0, h32(got_in), BLOCK, right, 'why'))
                f = self.finished(0)
                self.assertEqual((f['id'], f['outcome'], f['hash'], f['block_hash'],
                                  f['block_number'], f['fee'], f['error']),
                                 (tx, right, h32(got_in), BLOCK, 7, 125, 'why'))
                self.assertEqual([a['outcome'] for a in self.attempts(0)],
                                 ['replaced', 'included'] if got_in else ['included', 'superseded'])

    def test_without_a_block_any_end_will_do(self):
        epoch, _ = self.pending(2)
        self.stop(epoch)
        self.finish(self.relay, epoch, (0, None, None, 'usurped'), (1, None, None, 'expired'))
        self.assertEqual(self.finished(0)['outcome'], 'usurped')

    def test_refusals(self):
        epoch, _ = self.pending()
        for length, outcome in ((2, None), (2, 'ok'), (2, 'dispatch_error'), (2, 'usurped'),
                                (0, 'failed'), (-1, 'failed'),
                                (34, 'failed'), (None, 'failed')):
            with self.subTest(length=length, outcome=outcome):
                self.refused('TR003', self.stop, epoch, 0, outcome, 'filler', length,
                             text=('leader_attempt', 'nonce 0', str(outcome or 'NULL')))
        self.assertEqual(len(self.attempts(0)), 1)
        self.stop(epoch, length=33, outcome='failed')  # all of the extrinsic's 33 bytes
        self.assertEqual(self.attempts(0)[1]['filler'], 33)
        self.refused('TR011', self.relay.rows,
                     "SELECT txrelay.leader_attempt(%s, %s, '{0}', ARRAY[%s]::bytea[], %s, '{0}', "
                     "'{-1}', '{-1}', 1, 1, 1, '{x}', '{2,2}', '{failed}', '{x}')", self.alice,
                     epoch, h32('y'), [b'\1'],
                     text='1, 1, 1, 1, 1, 1, 1, 2, 1, 1')

    def test_the_usual_attempts_may_leave_the_arrays_out(self):
        epoch, _ = self.pending()
        self.stop(epoch)
        self.assertEqual(self.relay.value(
            "SELECT txrelay.leader_attempt(%s, %s, '{0}', ARRAY[%s]::bytea[], %s, '{0}', '{-1}', "
            "'{-1}', 1, 1, 1, '{x}')",
            self.alice, epoch, h32('own'), [b'\1']), 1)
        self.assertEqual([a['filler'] for a in self.attempts(0)], [None, 2, None])
        self.assertEqual(self.row(0)['stop_outcome'], 'cancelled', 'its filler may still get in')

    def test_the_snapshot_tells_them_apart(self):
        epoch, (plain, tx) = self.pending(2, tip=3, max_tip=90, deadline_block=500, retries=4)
        self.attempt(self.relay, epoch, [1], [h32('b')])
        self.stop(epoch, 1)
        self.stop(epoch, 1, tag='filler 2')
        first, second = self.snapshot(epoch)
        self.assertEqual({k: second[k] for k in ('id', 'hash', 'filler', 'stop_outcome',
                                                 'stop_reason', 'earlier_own')},
                         {'id': tx, 'hash': h32('filler 2'), 'filler': 2,
                          'stop_outcome': 'cancelled',
                          'stop_reason': 'by app', 'earlier_own': 2})
        self.assertEqual([bytes(h) for h in second['earlier']], [h32(1), h32('b'), h32('filler')])
        self.assertEqual({k: first[k] for k in ('id', 'tip', 'max_tip', 'deadline_block', 'retries',
                                                'filler', 'earlier',
                                                'stop_outcome', 'stop_reason', 'earlier_own')},
                         {'id': plain, 'tip': 0, 'max_tip': 90, 'deadline_block': 500, 'retries': 4,
                          'filler': None,
                          'earlier': [], 'stop_outcome': None, 'stop_reason': None,
                          'earlier_own': 0})

    def test_own_ones_come_first_whatever_their_number(self):
        epoch, _ = self.pending()
        self.stop(epoch)
        self.attempt(self.relay, epoch, [0], [h32('own')])
        self.attempt(self.relay, epoch, [0], [h32('newer')])
        got, = self.snapshot(epoch)
        self.assertEqual(([bytes(h) for h in got['earlier']], got['earlier_own']),
                         ([h32(0), h32('own'), h32('filler')], 2))

    def test_a_nonce_that_is_given_again_has_no_attempts_of_its_former_transaction(self):
        epoch, _ = self.pending()
        self.stop(epoch)
        self.finish(self.relay, epoch, (0, None, None, 'cancelled'))
        self.relay.rows('SELECT txrelay.leader_nonce(%s, %s, 0, true)', self.alice, epoch)
        self.admit(self.relay, epoch, self.enqueue(retries=1), [0], [h32('new')])
        self.attempt(self.relay, epoch, [0], [h32('newer')])
        got, = self.snapshot(epoch)
        self.assertEqual(([bytes(h) for h in got['earlier']], got['earlier_own']),
                         ([h32('new')], 1))
        self.refused('TR003', self.requeue, self.relay, epoch,
                     (0, 'dispatch_error', 'x', h32(0), BLOCK), text='has no attempt')
        for tag, outcome in ((0, 'ok'), ('filler', 'cancelled')):
            self.refused('TR003', self.finish, self.relay, epoch, (0, h32(tag), BLOCK, outcome),
                         text='has no attempt')
        self.assertEqual(self.finish(self.relay, epoch, (0, h32('new'), BLOCK, 'ok')), 1)

    def test_a_filler_that_took_the_nonce_is_none_of_these(self):
        epoch, _ = self.pending()
        self.stop(epoch)
        self.fill(self.relay, epoch, [0], 'cancelled')
        got, = self.snapshot(epoch)
        self.assertEqual((got['id'], got['filler'], got['stop_outcome'], got['earlier_own'],
                          len(got['earlier'])),
                         (None, None, None, 1, 2))
        self.finish(self.relay, epoch, (0, h32('fill0'), BLOCK, 'ok'))


class Told(Case):
    """F5 and F7: what the history has beside refusals."""

    def said(self, tx):
        return [(h['attempt'], h['error'], h['error_count']) for h in self.history(tx)]

    def tell(self, epoch, state, block=None, error=None, nonce=0):
        return self.state(self.relay, epoch,
                          (nonce, h32(nonce), state, block, None if block is None else 3, error))

    def test_tries_are_counted_and_block_nothing(self):
        epoch, (tx,) = self.pending()
        self.tell(epoch, 'ready')
        before = self.row(0)
        ear = self.listen('pending_tx_new', 'pending_tx_update', 'pending_tx_removed')
        for error in ('no answer: timeout', 'no answer: timeout', '1013: imported'):
            self.assertEqual(self.tell(epoch, 'tried', error=error), 0)
        self.assertEqual(self.row(0), before)
        self.assertEqual(self.heard(ear), [])
        self.assertEqual(self.attempts(0)[0]['error'], None)
        self.assertEqual(self.said(tx), [(1, 'no answer: timeout', 2), (1, '1013: imported', 1)])
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        self.assertEqual(self.said(tx), [(1, 'no answer: timeout', 2), (1, '1013: imported', 1)])

    def test_a_refusal_before_a_try_still_blocks(self):
        epoch, _ = self.pending()
        self.state(self.relay, epoch, (0, h32(0), 'refused', None, None, 'no'),
                   (0, h32(0), 'tried', None, None, 'nothing'))
        self.assertEqual((self.row(0)['error'], self.row(0)['blocked_since'] is None),
                         ('no', False))

    def test_tries_wait_for_the_disk(self):
        epoch, _ = self.pending()
        self.relay.begin()
        self.tell(epoch, 'tried', error='no answer')
        self.assertEqual(self.relay.value('SHOW synchronous_commit'), 'on')
        self.relay.rollback()

    def retracted(self, block):
        return (1, f'block 0x{block.hex()} was retracted', 1)

    def test_a_retracted_block_is_kept(self):
        epoch, (tx,) = self.pending()
        self.tell(epoch, 'in_block', h32('a'))
        self.tell(epoch, 'retracted', h32('a'))
        self.tell(epoch, 'retracted', h32('a'))
        self.tell(epoch, 'ready')
        self.tell(epoch, 'in_block', h32('b'))
        self.assertEqual(self.said(tx), [self.retracted(h32('a'))])
        self.finish(self.relay, epoch, (0, h32(0), h32('b'), 'ok'))
        self.assertEqual(self.said(tx), [self.retracted(h32('a'))])

    def test_one_that_nobody_calls_retracted(self):
        """A fork-aware pool goes on to the next block without a word; a final block may be another
        one again."""
        epoch, (tx,) = self.pending()
        self.tell(epoch, 'in_block', h32('a'))
        self.tell(epoch, 'in_block', h32('a'))
        self.tell(epoch, 'in_block', h32('b'))
        self.assertEqual(self.said(tx), [self.retracted(h32('a'))])
        self.finish(self.relay, epoch, (0, h32(0), h32('c'), 'ok'))
        self.assertEqual(self.said(tx), [self.retracted(h32('a')), self.retracted(h32('b'))])

    def test_nothing_was_retracted(self):
        epoch, (tx,) = self.pending()
        self.tell(epoch, 'in_block', h32('a'))
        self.tell(epoch, 'finality_timeout', h32('a'))
        self.finish(self.relay, epoch, (0, h32(0), h32('a'), 'ok'))
        self.assertEqual(self.said(tx), [(1, None, None)])

    def test_the_same_block_twice(self):
        epoch, (tx,) = self.pending()
        for _ in range(2):
            self.tell(epoch, 'in_block', h32('a'))
            self.tell(epoch, 'in_block', h32('b'))
        self.assertEqual(self.said(tx), [(1, f'block 0x{h32("a").hex()} was retracted', 2),
                                         self.retracted(h32('b'))])


class Refused(Case):
    WIDE = True

    def refuse(self, epoch, nonce=0, tag=None, error='1010: no'):
        return self.state(self.relay, epoch,
                          (nonce, h32(nonce if tag is None else tag), 'refused', None, None, error))

    def counted(self):
        return self.owner.rows('SELECT nonce, number, error, count FROM txrelay.refusals '
                               'ORDER BY nonce, number, error')

    def test_the_state_stays_and_the_row_is_blocked(self):
        epoch, (tx,) = self.pending()
        self.state(self.relay, epoch, (0, h32(0), 'in_block', BLOCK, 3))
        self.state(self.relay, epoch, (0, h32(0), 'retracted', BLOCK, 3))
        before = self.row(0)
        self.assertEqual(self.refuse(epoch), 1)
        after = self.row(0)
        changed = {k for k in after if after[k] != before[k]}
        self.assertEqual(changed, {'error', 'blocked_since', 'updated_at'})
        self.assertEqual((after['error'], after['state']), ('1010: no', 'retracted'))
        a, = self.attempts(0)
        self.assertEqual((a['error'], a['outcome'], a['state'], a['ended_at']),
                         ('1010: no', 'live', None, None))
        self.assertEqual(a['error_at'], after['blocked_since'])
        self.assertEqual((self.status(tx)['state'], self.status(tx)['error']),
                         ('retracted', '1010: no'))

    def test_nobody_is_told_of_a_state_that_stays(self):
        epoch, _ = self.pending()
        ear = self.listen('pending_tx_new', 'pending_tx_update', 'pending_tx_removed')
        self.refuse(epoch)
        self.assertEqual(self.heard(ear), [])

    def test_whether_the_bytes_arrived_is_as_unknown_as_before(self):
        epoch, _ = self.pending()
        self.state(self.relay, epoch, (0, h32(0), 'unknown'))
        self.refuse(epoch)
        self.assertTrue(self.row(0)['unknown'])
        self.assertEqual(self.attempts(0)[0]['outcome'], 'unknown')

    def test_every_one_is_counted(self):
        epoch, _ = self.pending(2)
        for error, times in (('1010: no', 3), ('1014: low', 1)):
            for _ in range(times):
                self.refuse(epoch, error=error)
        self.refuse(epoch, 1)
        self.assertEqual(self.counted(),
                         [(0, 1, '1010: no', 3), (0, 1, '1014: low', 1), (1, 1, '1010: no', 1)])
        first, last = self.owner.one("SELECT first_at, last_at FROM txrelay.refusals "
                                     "WHERE nonce = 0 AND count = 3")
        self.assertLess(first, last)
        self.assertEqual(first, self.row(0)['blocked_since'])

    def test_several_of_one_batch(self):
        epoch, _ = self.pending(2)
        r = lambda error: (0, h32(0), 'refused', None, None, error)
        self.assertEqual(self.state(self.relay, epoch, r('a'), (1, h32(1), 'ready'), r('b'),
                                    r('a')), 2)
        self.assertEqual(self.counted(), [(0, 1, 'a', 2), (0, 1, 'b', 1)])
        self.assertEqual((self.row(0)['error'], self.row(1)['state'], self.row(1)['blocked_since']),
                         ('a', 'ready', None))

    def test_what_a_batch_says_last_counts(self):
        epoch, _ = self.pending(2)
        self.assertEqual(self.state(self.relay, epoch, (0, h32(0), 'refused', None, None, 'no'),
                                    (0, h32(0), 'ready'),
                                    (1, h32(1), 'ready'), (1, h32(1), 'refused', None, None, 'no')),
                                    3)
        one, two = self.row(0), self.row(1)
        self.assertEqual((one['state'], one['error'], one['blocked_since']), ('ready', None, None))
        self.assertEqual((two['state'], two['error'], two['blocked_since'] is None),
                         ('ready', 'no', False))
        self.assertEqual([c for *_, c in self.counted()], [1, 1])

    def test_since_the_first_and_until_something_better_is_heard(self):
        epoch, _ = self.pending()
        for state, block, stays in (('future', None, True), ('dropped', None, True),
                                    ('invalid', None, True),
                                    ('usurped', None, True), ('retracted', BLOCK, True),
                                    ('unknown', None, True),
                                    ('finality_timeout', BLOCK, True), ('ready', None, False),
                                    ('broadcast', None, False),
                                    ('in_block', BLOCK, False), ('finalized', BLOCK, False)):
            with self.subTest(state):
                self.refuse(epoch)
                since = self.row(0)['blocked_since']
                self.assertIsNotNone(since)
                self.refuse(epoch, error='another')
                self.assertEqual(self.row(0)['blocked_since'], since)
                self.state(self.relay, epoch, (0, h32(0), state, block))
                self.assertEqual(self.row(0)['blocked_since'], since if stays else None)
        before = self.row(0)
        self.assertEqual(self.refuse(epoch), 0, 'what is finalized is not blocked')
        self.assertEqual(self.row(0), before)

    def test_new_bytes_are_no_better_news(self):
        epoch, _ = self.pending()
        self.refuse(epoch)
        since = self.row(0)['blocked_since']
        self.attempt(self.relay, epoch, [0], [h32('b')])
        self.assertEqual((self.row(0)['blocked_since'], self.row(0)['error']), (since, None))
        self.assertEqual(self.attempts(0)[0]['error'], '1010: no')

    def test_an_older_attempt_changes_only_its_own_record(self):
        epoch, _ = self.pending()
        self.attempt(self.relay, epoch, [0], [h32('b')])
        before = self.row(0)
        self.assertEqual(self.refuse(epoch), 0)
        self.assertEqual(self.row(0), before)
        old, new = self.attempts(0)
        self.assertEqual((old['error'], old['outcome'], new['error']),
                         ('1010: no', 'replaced', None))
        self.assertEqual(self.counted(), [(0, 1, '1010: no', 1)])

    def test_an_error_outlives_what_is_said_after_it(self):
        epoch, _ = self.pending()
        self.refuse(epoch)
        self.state(self.relay, epoch, (0, h32(0), 'ready'))
        self.attempt(self.relay, epoch, [0], [h32('b')])
        self.assertEqual(self.attempts(0)[0]['error'], '1010: no')

    def test_bytes_that_were_never_recorded_and_a_nonce_that_has_ended(self):
        epoch, _ = self.pending()
        self.refused('TR003', self.refuse, epoch, 0, 'never', text=h32('never').hex())
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        before = self.attempts(0)
        self.assertEqual(self.refuse(epoch), 0)
        self.assertEqual((self.attempts(0), self.counted()), (before, []))

    def test_a_long_text_and_none(self):
        epoch, _ = self.pending()
        self.refuse(epoch, error='\U0001f4a9' * 3000)
        self.refuse(epoch, error='\U0001f4a9' * 2000)
        self.refuse(epoch, error=None)
        self.assertEqual(self.counted(), [(0, 1, 'refused', 1), (0, 1, '\U0001f4a9' * 500, 2)])
        self.assertEqual(self.row(0)['error'], 'refused')

    def test_updates_are_hot(self):
        """All but the first refusal of a transaction, which puts it into the index of what is
        refused (05_blocked.sql)."""
        n = 200
        epoch, _ = self.pending(n)
        for hot in (0, n, n):
            self.owner.rows('VACUUM txrelay.pending_transactions')
            with self.work_on(self.relay, 'pending_transactions') as work:
                self.state(self.relay, epoch,
                           *[(x, h32(x), 'refused', None, None, f'no {hot}') for x in range(n)])
            self.assertEqual(work[0][1:], (n, hot))

    def test_thousands_of_rows_a_call(self):
        """With the plans of a session that began with single rows."""
        epoch = self.lead(e1=3600000, e2=3600000)

        def life(first, n):
            nonces = range(first, first + n)
            ids = self.app.value("SELECT txrelay.enqueue_many('alice', "
                                 "array_fill('\\x0102'::bytea, ARRAY[%s]), "
                                 "retries => 1)", n)
            self.admit(self.relay, epoch, ids, list(nonces))
            self.state(self.relay, epoch,
                       *[(x, h32(x), 'refused', None, None, 'no') for x in nonces])
            self.assertEqual(self.attempt(self.relay, epoch, list(nonces),
                                          [h32(f'f{x}') for x in nonces], filler=2,
                                          outcome='failed'), n)
            self.assertEqual(self.requeue(self.relay, epoch,
                                          *[(x, 'dispatch_error', 'no', h32(x), BLOCK)
                                            for x in nonces]), n)
            for tx in ids[:3]:
                self.assertEqual(len(self.history(tx)), 2)
                self.assertEqual(self.app.value('SELECT txrelay.bump(%s)', tx), 'queued')
            self.relay.value('SELECT txrelay.leader_reject(%s, %s, %s::bigint[], %s::text[], '
                             '%s::text[])', self.alice,
                             epoch, ids, ['failed'] * n, ['x'] * n)
            self.look(epoch)
            self.assertEqual(self.count('bumps'), 0)
        for i in range(0, 16, 2):
            life(i, 2)
        for s in (self.relay, self.app):
            s.rows("SET statement_timeout = '10s'")
        life(16, 4000)


class Requeue(Case):
    WIDE = True

    def outbox(self, epoch):
        return self.relay.dicts('SELECT * FROM txrelay.leader_outbox(%s, %s, 10)', self.alice,
                                epoch)

    def options(self):
        return {'tip': 3, 'max_tip': 90, 'deadline_block': 500, 'retries': 2, 'spec_version': 9,
                'priority': 5,
                'creator': 'shop', 'key': 'k'}

    def test_a_dispatch_error_takes_a_retry_and_leaves_all_else(self):
        epoch, (tx,) = self.pending(1, **self.options())
        later = self.enqueue(priority=5)[0]
        self.state(self.relay, epoch, (0, h32(0), 'finalized', BLOCK, 7))
        seen = self.row(0)
        self.assertEqual(self.requeue(self.relay, epoch,
                                      (0, 'dispatch_error', 'Balances.Low', h32(0), BLOCK)), 1)
        got = self.outbox(epoch)
        self.assertEqual([r['id'] for r in got], [tx, later])
        self.assertEqual({k: got[0][k] for k in ('tip', 'max_tip', 'deadline_block', 'retries',
                                                 'guard', 'creator',
                                                 'attempts', 'call', 'created_at')},
                         {'tip': 3, 'max_tip': 90, 'deadline_block': 500, 'retries': 1, 'guard': 9,
                          'creator': 'shop',
                          'attempts': 1, 'call': b'\0\1', 'created_at': seen['created_at']})
        self.assertEqual((self.status(tx)['stage'], self.status(tx)['key']), ('outbox', 'k'))
        f = self.finished(0)
        self.assertEqual({k: f[k] for k in ('id', 'requeued', 'hash', 'block_hash', 'block_number',
                                            'extrinsic_index',
                                            'state', 'outcome', 'error', 'fee', 'attempts', 'epoch',
                                            'key', 'call')},
                         {'id': None, 'requeued': tx, 'hash': h32(0), 'block_hash': BLOCK,
                          'block_number': 7,
                          'extrinsic_index': 2, 'state': 'finalized', 'outcome': 'dispatch_error',
                          'error': 'Balances.Low',
                          'fee': 125, 'attempts': 1, 'epoch': epoch, 'key': None, 'call': None})
        self.assertEqual((f['created_at'], f['admitted_at'], f['in_block_at']),
                         (seen['created_at'], seen['admitted_at'], seen['in_block_at']))
        a, = self.attempts(0)
        self.assertEqual((a['outcome'], a['state'], a['block_hash'], a['block_number'], a['error'],
                          a['reason'],
                          a['ended_at'] is None),
                          ('included', 'finalized', BLOCK, 7, 'Balances.Low', None, False))

    def test_retries_are_used_up(self):
        epoch, (tx,) = self.pending(1, retries=2)
        for nonce in (0, 1):
            self.requeue(self.relay, epoch, (nonce, 'dispatch_error', 'no', h32(nonce), BLOCK))
            self.admit(self.relay, epoch, [tx], [nonce + 1])
        self.assertEqual(self.row(2)['retries'], 0)
        self.refused('TR003', self.requeue, self.relay, epoch,
                     (2, 'dispatch_error', 'no', h32(2), BLOCK),
                     text=('nonce 2', 'no retries left', 'leader_finish'))
        self.assertEqual(self.requeue(self.relay, epoch, (2, 'usurped', 'foreign')), 1)
        self.assertEqual((self.outbox(epoch)[0]['retries'], self.outbox(epoch)[0]['attempts']),
                         (0, 3))
        self.admit(self.relay, epoch, [tx], [3])
        self.finish(self.relay, epoch, (3, h32(3), BLOCK, 'dispatch_error', 'no'))
        self.assertEqual((self.status(tx)['outcome'], self.status(tx)['attempts']),
                         ('dispatch_error', 4))

    def test_usurped_and_failed_take_no_retry(self):
        epoch, ids = self.pending(2, retries=1)
        self.requeue(self.relay, epoch, (0, 'usurped', 'foreign'), (1, 'failed', 'a former life'))
        self.assertEqual([(r['id'], r['retries']) for r in self.outbox(epoch)],
                         [(ids[0], 1), (ids[1], 1)])
        for nonce, outcome, state, error in ((0, 'usurped', 'usurped', 'foreign'),
                                             (1, 'failed', 'signed', 'a former life')):
            f = self.finished(nonce)
            self.assertEqual((f['id'], f['requeued'], f['outcome'], f['state'], f['error'],
                              f['hash'], f['block_hash'],
                              f['block_number'], f['fee'], f['in_block_at']),
                             (None, ids[nonce], outcome, state, error, h32(nonce), None, None, None,
                              None))
            a, = self.attempts(nonce)
            self.assertEqual((a['outcome'], a['reason'], a['error'], a['ended_at'] is None),
                             ('usurped' if outcome == 'usurped' else 'dropped', error, None, False))

    def test_the_foreign_block_is_on_record_when_it_is_known(self):
        epoch, _ = self.pending()
        self.requeue(self.relay, epoch, (0, 'usurped', 'foreign', None, BLOCK))
        f = self.finished(0)
        self.assertEqual((f['block_hash'], f['block_number'], f['hash'], f['in_block_at']),
                         (BLOCK, 7, h32(0), None))
        self.assertEqual((self.attempts(0)[0]['outcome'], self.attempts(0)[0]['block_hash']),
                         ('usurped', None))

    def test_which_attempt_it_was(self):
        epoch, _ = self.pending(2, retries=1)
        for nonce in (0, 1):
            self.attempt(self.relay, epoch, [nonce], [h32(f'{nonce}b')])
            self.state(self.relay, epoch, (nonce, h32(f'{nonce}b'), 'ready', None, None, 'a note'))
        self.requeue(self.relay, epoch, (0, 'dispatch_error', 'no', h32(0), BLOCK),
                     (1, 'dispatch_error', 'no', h32('1b'), BLOCK))
        said = [[(a['outcome'], a['state'], a['error'], a['block_number'])
                 for a in self.attempts(n)] for n in (0, 1)]
        self.assertEqual(said, [[('included', 'finalized', 'no', 7),
                                 ('superseded', 'ready', 'a note', None)],
                                [('replaced', 'signed', None, None),
                                 ('included', 'finalized', 'no', 7)]])

    def test_followers_hear_that_it_left_without_an_end(self):
        epoch, (tx,) = self.pending(1, retries=1)
        ear = self.listen('pending_tx_new', 'pending_tx_update', 'pending_tx_removed')
        self.requeue(self.relay, epoch, (0, 'dispatch_error', 'no', h32(0), BLOCK))
        (channel, payload), = self.heard(ear)
        told = json.loads(payload)
        self.assertEqual((channel, told['id'], told['nonce']), ('pending_tx_removed', tx, 0))
        self.assertNotIn('outcome', told)

    def test_all_or_nothing_and_what_cannot_be(self):
        epoch, _ = self.pending(4, retries=1)
        plain, = self.enqueue()
        self.admit(self.relay, epoch, [plain], [4])
        self.fill(self.relay, epoch, [5], None)
        self.attempt(self.relay, epoch, [2], [h32('stop')], filler=2, outcome='failed')
        self.state(self.relay, epoch, (3, h32(3), 'finalized', BLOCK, 7))
        good = (0, 'dispatch_error', 'no', h32(0), BLOCK)
        for row, code, text in (
                ((9, 'usurped'), 'TR002', '1 of 2'), ((5, 'usurped'), 'TR002', '1 of 2'),
                ((0, 'usurped'), 'TR003', 'more than once'),
                ((4, 'dispatch_error', 'no', h32(4), BLOCK), 'TR003',
                 ('nonce 4', 'no retries left')),
                ((1, 'dispatch_error', 'no', h32('never'), BLOCK), 'TR003',
                 ('nonce 1', 'no attempt with this hash')),
                ((1, 'dispatch_error', 'no', None, BLOCK), 'TR003',
                 ('nonce 1', 'no attempt with this hash')),
                ((2, 'dispatch_error', 'no', h32('stop'), BLOCK), 'TR003',
                 ('nonce 2', 'a filler', 'attempt 2')),
                ((3, 'usurped', 'x'), 'TR003', ('nonce 3', 'finalized block')),
                ((3, 'failed', 'x'), 'TR003', ('nonce 3', 'finalized block')),
                ((1, 'dispatch_error', 'no', h32(1)), 'TR011',
                 ('p_block_hashes', 'NULL', 'nonce 1')),
                ((1, 'failed', 'no', None, BLOCK), 'TR011', ('p_block_hashes', 'given', 'nonce 1')),
                *(((1, o), 'TR003', ('nonce 1', str(o or 'NULL')))
                  for o in ('ok', 'expired', 'cancelled', 'nonsense', None))):
            with self.subTest(row):
                self.refused(code, self.requeue, self.relay, epoch, good, row, text=text)
        self.assertEqual((self.count('pending_transactions'), self.count('outbox'),
                          self.count('finished_transactions')),
                         (6, 0, 0))
        self.refused('TR011', self.relay.rows,
                     "SELECT txrelay.leader_requeue(%s, %s, '{0}', '{}', '{}', '{}', '{}', '{}', "
                     "'{}', '{}')", self.alice, epoch, text='1, 0, 0')
        self.assertEqual(self.requeue(self.relay, epoch, good), 1)

    def test_a_cancelled_one_ends_and_one_past_its_deadline_too(self):
        epoch, (one, two) = self.pending(2, retries=1)
        self.app.value('SELECT txrelay.cancel(%s)', one)
        self.owner.rows("UPDATE txrelay.pending_transactions "
                        "SET deadline = clock_timestamp() - interval '1 s' WHERE id = %s",
                        two)
        self.requeue(self.relay, epoch, (0, 'dispatch_error', 'no', h32(0), BLOCK), (1, 'usurped'))
        self.look(epoch)
        self.assertEqual([self.status(x)['outcome'] for x in (one, two)], ['cancelled', 'expired'])

    def test_the_record_is_found_by_its_transaction(self):
        epoch, ids = self.pending(3)
        self.requeue(self.relay, epoch, *[(n, 'usurped') for n in range(3)])
        self.owner.rows('SET enable_seqscan = off')
        plan = '\n'.join(r[0] for r in self.owner.rows(
            'EXPLAIN SELECT * FROM txrelay.finished_transactions WHERE requeued = %s', ids[1]))
        self.assertIn('requeued_idx', plan)
        self.assertNotIn('Seq Scan', plan)


class History(Case):
    WIDE = True

    def short(self, tx, *columns):
        return [tuple(r[c] for c in columns) for r in self.history(tx)]

    def test_one_that_waits_and_one_that_never_was(self):
        tx, = self.enqueue()
        self.assertEqual((self.history(tx), self.history(12345)), ([], []))

    def test_a_plain_life(self):
        epoch, (tx,) = self.pending()
        row = {'nonce': 0, 'attempt': 1, 'hash': '0x' + h32(0).hex(), 'tip': 0, 'filler': False,
               'outcome': 'live',
               'state': 'signed', 'reason': None, 'error': None, 'error_count': None,
               'spec_version': 100, 'era_death': 128,
               'created_at': self.attempts(0)[0]['created_at'], 'ended_at': None}
        self.assertEqual(self.history(tx), [row])
        self.state(self.relay, epoch, (0, h32(0), 'in_block', BLOCK))
        self.assertEqual(self.history(tx), [{**row, 'state': 'in_block'}])
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        self.assertEqual(self.history(tx), [{**row, 'state': 'finalized', 'outcome': 'included',
                                             'ended_at': self.attempts(0)[0]['ended_at']}])
        self.assertEqual(self.relay.dicts('SELECT * FROM txrelay.history(%s)', tx),
                         self.history(tx))

    def test_every_different_error_of_every_attempt(self):
        epoch, (tx, other) = self.pending(2)
        for error in ('1010: a', '1014: b', '1010: a'):
            self.state(self.relay, epoch, (0, h32(0), 'refused', None, None, error))
        self.attempt(self.relay, epoch, [0], [h32('b')], 'too cheap', tip=5)
        self.state(self.relay, epoch, (0, h32('b'), 'invalid', None, None, 'not possible'))
        self.attempt(self.relay, epoch, [0], [h32('c')], 'stop', tip=9, filler=2, outcome='failed')
        self.assertEqual(self.short(tx, 'attempt', 'tip', 'filler', 'outcome', 'state', 'reason',
                                    'error', 'error_count'), [
            (1, 0, False, 'replaced', 'signed', 'too cheap', '1010: a', 2),
            (1, 0, False, 'replaced', 'signed', 'too cheap', '1014: b', 1),
            (2, 5, False, 'invalid', 'invalid', 'stop', 'not possible', 1),
            (3, 9, True, 'live', 'signed', None, None, None)])
        self.assertEqual(len(self.history(other)), 1)

    def test_the_current_attempts_error_is_not_told_twice(self):
        epoch, (tx,) = self.pending()
        self.state(self.relay, epoch, (0, h32(0), 'refused', None, None, 'x' * 900))
        self.assertEqual(self.short(tx, 'error', 'error_count'), [('x' * 500, 1)])
        self.state(self.relay, epoch, (0, h32(0), 'dropped', None, None, 'full'))
        self.assertEqual(self.short(tx, 'error', 'error_count'), [('x' * 500, 1), ('full', 1)])

    def test_over_every_nonce_it_had(self):
        epoch, (tx,) = self.pending(1, retries=1)
        self.requeue(self.relay, epoch, (0, 'dispatch_error', 'Balances.Low', h32(0), BLOCK))
        self.admit(self.relay, epoch, [tx], [1])
        self.requeue(self.relay, epoch, (1, 'usurped', 'foreign'))
        self.admit(self.relay, epoch, [tx], [2])
        told = [(0, 1, 'included', 'Balances.Low', None), (1, 1, 'usurped', None, 'foreign')]
        columns = ('nonce', 'attempt', 'outcome', 'error', 'reason')
        self.assertEqual(self.short(tx, *columns), told + [(2, 1, 'live', None, None)])
        self.finish(self.relay, epoch, (2, h32(2), BLOCK, 'dispatch_error', 'again'))
        self.assertEqual(self.short(tx, *columns), told + [(2, 1, 'included', 'again', None)])

    def test_between_two_nonces(self):
        epoch, (tx,) = self.pending()
        self.requeue(self.relay, epoch, (0, 'usurped', 'foreign'))
        self.assertEqual(self.short(tx, 'nonce', 'outcome'), [(0, 'usurped')])

    def test_the_same_nonce_in_two_lives_is_told_once_each(self):
        epoch, (tx,) = self.pending()
        self.requeue(self.relay, epoch, (0, 'failed', 'a former life'))
        self.relay.rows("SELECT txrelay.leader_pause(%s, %s, 'reaped', 'x')", self.alice, epoch)
        self.relay.rows("SELECT txrelay.account_resume('alice')")
        self.relay.rows('SELECT txrelay.leader_nonce(%s, %s, 0, false, true)', self.alice, epoch)
        self.admit(self.relay, epoch, [tx], [0], [h32('second')])
        self.assertEqual(self.short(tx, 'nonce', 'attempt', 'outcome', 'state'),
                         [(0, 1, 'dropped', 'signed'), (0, 2, 'live', 'signed')])

    def test_what_a_filler_ended_keeps_its_own_attempts_only(self):
        epoch, (tx,) = self.pending()
        self.fill(self.relay, epoch, [0], 'expired')
        self.assertEqual(self.short(tx, 'attempt', 'outcome'), [(1, 'replaced')])

    def test_leaves_with_the_retention(self):
        epoch, (tx, other) = self.pending(2)
        for nonce in (0, 1):
            self.state(self.relay, epoch, (nonce, h32(nonce), 'refused', None, None, 'no'))
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        self.owner.rows("UPDATE txrelay.attempts SET ended_at = clock_timestamp() - interval '31 "
                        "days' WHERE nonce = 0")
        self.assertEqual(self.relay.value("SELECT txrelay.leader_cleanup(%s, %s, interval '30 "
                                          "days')", self.alice, epoch), 1)
        self.assertEqual(self.owner.rows('SELECT nonce FROM txrelay.refusals'), [(1,)])
        self.assertEqual((self.history(tx), len(self.history(other))), ([], 1))

    def test_the_view_tells_the_tip(self):
        epoch, (asked, plain) = self.lead(), self.enqueue(1, tip=5) + self.enqueue()
        tips = lambda: [self.status(x)['tip'] for x in (asked, plain)]
        self.assertEqual(tips(), [5, None])
        self.admit(self.relay, epoch, [asked, plain], [0, 1], tips=[5, 0])
        self.attempt(self.relay, epoch, [0], [h32('b')], tip=8)
        self.assertEqual(tips(), [8, 0])
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'), (1, None, None, 'failed'))
        self.assertEqual(tips(), [5, 0], 'of the attempt that got in')


class DeadSession(Case):
    """A write of a session that is gone may still commit: what is read at a load is read after
    it."""

    def test_a_load_waits_for_it(self):
        epoch, ids = self.lead(), self.enqueue()
        for sql, answer in (('SELECT next_nonce FROM txrelay.leader_account(%s, %s)', [(1,)]),
                            ('SELECT nonce FROM txrelay.leader_snapshot(%s, %s, -1, 9)',
                             [(0,), (1,)])):
            with self.subTest(sql):
                other = self.session('relay')
                self.relay.begin()
                nonce = self.account()['next_nonce'] or 0
                self.admit(self.relay, epoch, ids, [nonce])
                call = self.background(other, sql, self.alice, epoch)
                self.relay.commit()
                self.assertEqual(call.join(), answer)
                ids = self.enqueue()


class ByHash(Case):
    """A transaction by the hash of any extrinsic that was signed for it."""

    def by(self, value, s=None):
        return (s or self.app).dicts('SELECT * FROM txrelay.status(hash => %s)',
                                     '0x' + value.hex() if isinstance(value, bytes) else value)

    def test_every_attempt_names_its_transaction(self):
        epoch, ids = self.pending(3)
        self.attempt(self.relay, epoch, [1], [h32('second')])
        self.attempt(self.relay, epoch, [1], [h32('third')], 'stop', filler=2, outcome='cancelled',
                     stop='by app')
        for ended in (False, True):
            for value, tx, state in ((h32(0), ids[0], 'signed'), (h32(1), ids[1], 'signed'),
                                     (h32('second'), ids[1], 'signed'),
                                     (h32('third'), ids[1], 'signed'), (h32(2), ids[2], 'signed')):
                got, = self.by(value)
                self.assertEqual((got['id'], got['state'], got['stage']),
                                 (tx, 'finalized', 'finished') if ended else (tx, state, 'pending'))
            if not ended:
                self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'),
                            (1, h32('second'), BLOCK, 'ok'),
                            (2, h32(2), BLOCK, 'dispatch_error'))
        # of what was included
        self.assertEqual(self.by(h32('third'))[0]['hash'], '0x' + h32('second').hex())

    def test_a_nonce_that_was_lost(self):
        """The extrinsic names the transaction, not the record of the nonce."""
        epoch, (tx,) = self.pending()
        self.requeue(self.relay, epoch, (0, 'usurped', 'foreign'))
        self.assertEqual([(r['id'], r['stage']) for r in self.by(h32(0))], [(tx, 'outbox')])

    def test_a_filler_of_no_transaction(self):
        epoch, _ = self.pending()
        self.fill(self.relay, epoch, [1])
        got, = self.by(h32('fill1'))
        self.assertEqual((got['id'], got['nonce'], got['account']), (None, 1, 'alice'))

    def test_nothing_known(self):
        epoch, _ = self.pending()
        self.assertEqual(self.by(h32('unknown')), [])
        self.assertEqual(self.by(None), [])
        for bad in ('', '0x', h32(0).hex(), '0x' + h32(0).hex()[:-1], '0x' + h32(0).hex() + '0',
                    '0x' + 'g' * 64, '-1', '17',
                    "'; --"):
            with self.subTest(bad):
                self.refused('TR011', self.by, bad,
                             text=('status: hash is', '64 hexadecimal digits', 'id is a number'))

    def test_a_parameter_without_a_type_is_an_id(self):
        """Many drivers leave the type to Postgres, and some ask for it and send what it says."""
        _, (tx,) = self.pending()
        self.app.rows('PREPARE of_unknown AS SELECT id FROM txrelay.status($1)')
        self.assertEqual(self.app.value("SELECT parameter_types::text FROM pg_prepared_statements "
                                        "WHERE name = 'of_unknown'"), '{bigint}')
        self.assertEqual(self.app.rows(f"EXECUTE of_unknown ('{tx}')"), [(tx,)])

    def test_capitals_and_both(self):
        _, (tx,) = self.pending()
        self.assertEqual(self.by('0X' + h32(0).hex().upper())[0]['id'], tx)
        self.refused('TR011', self.app.rows, 'SELECT * FROM txrelay.status(%s, %s)', tx,
                     '0x' + h32(0).hex(), text='Give one')

    def test_rights(self):
        """Whoever may ask by id may ask by hash; the answer is the same row."""
        epoch, (tx,) = self.pending()
        for role in ('app', 'relay'):
            self.assertEqual(self.by(h32(0), getattr(self, role)),
                             self.app.dicts('SELECT * FROM txrelay.status(%s)', tx))


if __name__ == '__main__':
    unittest.main()
