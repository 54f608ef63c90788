"""The life of a nonce: admit, attempt, state, finish, fill, requeue, reject, snapshot; all or
nothing, in order."""
import unittest

from pgcase import Case, h32

BLOCK = h32('block')


class Outbox(Case):
    WIDE = True

    def fetch(self, epoch, limit=100):
        return self.relay.dicts('SELECT * FROM txrelay.leader_outbox(%s, %s, %s)', self.alice,
                                epoch, limit)

    def test_order_priority_then_id(self):
        epoch = self.lead()
        a, b, c, d = (self.enqueue(priority=p)[0] for p in (0, 5, -5, 5))
        self.assertEqual([r['id'] for r in self.fetch(epoch)], [b, d, a, c])
        self.assertEqual([r['id'] for r in self.fetch(epoch, 2)], [b, d])

    def test_not_before(self):
        epoch = self.lead()
        sql = ("SELECT txrelay.enqueue('alice', '\\x01', priority => %s, not_before => "
               "clock_timestamp() + %s * interval '1 h')")
        later, ripe, plain = self.app.value(sql, 9, 1), self.app.value(sql, 3,
                                                                       -1), self.enqueue()[0]
        first = self.enqueue(priority=4)[0]
        self.assertEqual([r['id'] for r in self.fetch(epoch)], [first, ripe, plain])
        self.assertEqual(self.status(later)['state'], 'queued')

    def test_by_presence_not_by_the_last_id(self):
        """Sequence order is not commit order: the lower id that commits late is not lost."""
        epoch = self.lead()
        slow = self.session('app')
        slow.begin()
        low = slow.value("SELECT txrelay.enqueue('alice', '\\x01')")
        high = self.enqueue()[0]
        self.assertEqual([r['id'] for r in self.fetch(epoch)], [high])
        self.admit(self.relay, epoch, [high], [0])
        slow.commit()
        self.assertEqual([r['id'] for r in self.fetch(epoch)], [low])

    def test_bytes_are_bounded_but_one_row_always_comes(self):
        epoch = self.lead()
        self.enqueue(18, call=b'\0' * (1 << 20))
        self.assertEqual(len(self.fetch(epoch)), 16)

    def test_only_ones_own_account(self):
        epoch = self.lead()
        self.register(self.relay, 'bob', 43)
        self.app.rows("SELECT txrelay.enqueue('bob', '\\x01')")
        self.assertEqual(self.fetch(epoch), [])


class Look(Case):
    """Deadlines, cancellations, not_before: what the database's clock says to the leader."""

    def over(self, table, tx):
        self.superuser().rows(f"UPDATE txrelay.{table} SET deadline = clock_timestamp() - interval "
                              "'1 s' WHERE id = %s", tx)

    def timed(self, **ms):
        names = ''.join(f", {k} => clock_timestamp() + {v} * interval '1 ms'"
                        for k, v in ms.items())
        return self.app.value(f"SELECT txrelay.enqueue('alice', '\\x0001'{names})")

    def test_nothing_to_say(self):
        epoch = self.lead()
        self.enqueue()
        got, = self.look(epoch)
        self.assertEqual((got['nonce'], got['has_rows'], got['next_ms']), (None, False, None))

    def test_the_next_time(self):
        epoch = self.lead()
        self.timed(not_before=50000)
        self.timed(deadline=90000)
        got, = self.look(epoch)
        self.assertTrue(0 < got['next_ms'] <= 50000, got)
        self.timed(deadline=20000)
        self.assertTrue(0 < self.look(epoch)[0]['next_ms'] <= 20000)

    def test_ripe_when_its_time_has_come_and_not_while_paused(self):
        epoch = self.lead()
        self.timed(not_before=-1)
        self.assertTrue(self.look(epoch)[0]['has_rows'])
        self.relay.rows("SELECT txrelay.account_pause('alice', 'x')")
        self.assertFalse(self.look(epoch)[0]['has_rows'])

    def test_the_outbox_expires(self):
        epoch = self.lead()
        late, good = self.timed(deadline=60000), self.enqueue()[0]
        self.over('outbox', late)
        self.assertEqual([r['id'] for r in self.relay.dicts('SELECT * FROM '
                                                            'txrelay.leader_outbox(%s, %s, 9)',
                                                            self.alice,
                                                             epoch)], [good])
        self.refused('TR002', self.admit, self.relay, epoch, [late], [0])
        self.look(epoch)
        got = self.status(late)
        self.assertEqual((got['stage'], got['outcome'], got['nonce']),
                         ('finished', 'expired', None))
        self.assertRegex(got['error'], 'deadline .* passed')
        self.assertEqual(self.status(good)['stage'], 'outbox')

    def test_pending_ones_are_named_until_they_end(self):
        epoch, (tx, other) = self.pending(2)
        late = self.timed(deadline=60000)
        self.admit(self.relay, epoch, [late], [2])
        self.over('pending_transactions', late)
        self.app.value('SELECT txrelay.cancel(%s)', tx)
        for _ in range(2):
            self.assertEqual([(r['nonce'], r['id'], r['outcome']) for r in self.look(epoch)],
                             [(0, tx, 'cancelled'), (2, late, 'expired')])
        self.app.value('SELECT txrelay.cancel(%s)', late)
        self.assertEqual([r['outcome'] for r in self.look(epoch)], ['cancelled', 'cancelled'])
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        self.assertEqual([r['nonce'] for r in self.look(epoch)], [2])
        self.assertEqual(self.owner.value('SELECT array_agg(id) FROM txrelay.cancellations'),
                         [late])
        self.assertTrue(other)

    def test_a_cancelled_one_that_lost_its_nonce(self):
        epoch, (tx,) = self.pending()
        self.app.value('SELECT txrelay.cancel(%s)', tx)
        self.requeue(self.relay, epoch, (0, 'usurped', 'lost'))
        self.look(epoch)
        self.assertEqual((self.status(tx)['stage'], self.status(tx)['outcome']),
                         ('finished', 'cancelled'))
        self.look(epoch)
        self.assertEqual(self.count('cancellations'), 0)

    def test_the_guard_goes_along(self):
        epoch = self.lead()
        tx, = self.enqueue(spec_version=900)
        self.assertEqual(self.relay.dict('SELECT * FROM txrelay.leader_outbox(%s, %s, 9)',
                                         self.alice, epoch)['guard'], 900)
        self.admit(self.relay, epoch, [tx], [0])
        self.assertEqual(self.relay.dict('SELECT * FROM txrelay.leader_snapshot(%s, %s, -1, 9)',
                                         self.alice,
                                         epoch)['guard'], 900)
        self.requeue(self.relay, epoch, (0, 'usurped', 'lost'))
        self.assertEqual(self.owner.value('SELECT guard FROM txrelay.outbox'), 900)
        self.refused('TR011', lambda: self.enqueue(spec_version=-1), text=('spec_version', '-1'))


class Admit(Case):
    WIDE = True

    def test_moves_everything(self):
        epoch = self.lead()
        ids = self.enqueue(3, creator='shop', priority=2)
        self.assertEqual(self.admit(self.relay, epoch, ids, [5, 6, 7]), 8)
        p = self.row(6)
        self.assertEqual((p['id'], p['call'], p['hash'], p['attempt'], p['attempts'], p['state'],
                          p['epoch'], p['creator'],
                          p['priority'], p['account_id']),
                         (ids[1], b'\0\1', h32(6), 1, 1, 'signed', epoch, 'shop', 2, h32('alice')))
        self.assertGreaterEqual(p['admitted_at'], p['created_at'])
        (t,) = self.attempts(6)
        self.assertEqual((t['number'], t['id'], t['hash'], t['extrinsic'], t['tip'], t['era_birth'],
                          t['era_death'],
                          t['spec_version'], t['transaction_version'], t['block'], t['epoch'],
                          t['outcome']),
                         (1, ids[1], h32(6), b'\x84' + h32(6), 0, 64, 128, 100, 1, 10, epoch,
                          'live'))
        self.assertEqual((self.count('outbox'), self.account()['next_nonce']), (0, 8))

    def test_no_gap_and_no_reuse(self):
        epoch = self.lead()
        ids = self.enqueue(4)
        self.admit(self.relay, epoch, ids[:2], [5, 6])
        for nonces, text in (([8, 9], ('8', '7')), ([6, 7], ('6', '7')), ([7, 9], ('9', '8')),
                             ([8, 7], ('7', '9')),
                             ([7, 7], ('7', '8')), ([7, None], 'NULL'), ([None, 8], 'a number'),
                             ([0, 1], ('0', '7'))):
            with self.subTest(nonces):
                self.refused('TR003', self.admit, self.relay, epoch, ids[2:], nonces,
                             [h32(1), h32(2)], text=text)
        self.refused('TR003', self.admit, self.relay, epoch, [ids[2], ids[2]], [7, 8],
                     text='more than once')
        self.assertEqual((self.count('outbox'), self.account()['next_nonce']), (2, 7))

    def test_the_rows_decide_while_the_next_nonce_is_not_known(self):
        epoch, _ = self.pending(2, first=5)
        self.owner.rows('UPDATE txrelay.accounts SET next_nonce = NULL')
        ids = self.enqueue()
        self.refused('TR003', self.admit, self.relay, epoch, ids, [6], text=('6', '7'))
        self.assertEqual(self.admit(self.relay, epoch, ids, [7]), 8)

    def test_all_or_nothing(self):
        epoch, ids = self.lead(), self.enqueue(3)
        bob = self.register(self.relay, 'bob', 43)
        other = self.app.value("SELECT txrelay.enqueue('bob', '\\x01')")
        for batch in (ids + [99999], ids + [other]):
            self.refused('TR002', self.admit, self.relay, epoch, batch, [0, 1, 2, 3], text='3 of 4')
        self.assertEqual((self.count('outbox'), self.count('pending_transactions'),
                          self.count('attempts')), (4, 0, 0))
        self.assertIsNone(self.account()['next_nonce'])
        self.assertTrue(bob)

    def test_arrays_of_other_lengths(self):
        epoch, ids = self.lead(), self.enqueue(2)
        self.refused('TR011', self.admit, self.relay, epoch, ids, [0], text='2, 1, 1')
        self.refused('TR011', self.relay.rows,
                     "SELECT txrelay.leader_admit(%s, %s, '{}', '{}', '{}', '{}', '{}', '{}', "
                     "NULL, 1, 1, 1)", self.alice, epoch, text='NULL')
        self.assertIsNone(self.admit(self.relay, epoch, [], []))

    def test_immortal_is_null_or_minus_one(self):
        epoch, ids = self.lead(), self.enqueue()
        self.relay.rows("SELECT txrelay.leader_admit(%s, %s, %s::bigint[], '{0}', %s::bytea[], "
                        "%s::bytea[], '{7}', '{-1}', "
                        "'{NULL}', 4000000000, 1, 1)", self.alice, epoch, ids, [h32(0)], [b'\1'])
        (t,) = self.attempts(0)
        self.assertEqual((t['era_birth'], t['era_death'], t['tip'], t['spec_version']),
                         (None, None, 7, 4000000000))

    def test_hash_of_another_size_is_refused(self):
        epoch, ids = self.lead(), self.enqueue()
        self.refused('23514', self.admit, self.relay, epoch, ids, [0], [b'\1'])


class Attempt(Case):
    def test_replaces_the_former_one(self):
        epoch, ids = self.pending(2)
        self.state(self.relay, epoch, (0, h32(0), 'in_block', BLOCK, 3))
        self.assertEqual(self.attempt(self.relay, epoch, [0], [h32('0b')], 'era dead'), 1)
        p, (old, new) = self.row(0), self.attempts(0)
        self.assertEqual((p['state'], p['hash'], p['attempt'], p['attempts'], p['block_hash'],
                          p['id']),
                         ('signed', h32('0b'), 2, 2, None, ids[0]))
        self.assertEqual((old['outcome'], old['reason'], old['state'], old['block_hash'],
                          bool(old['ended_at'])),
                         ('replaced', 'era dead', 'in_block', BLOCK, True))
        self.assertEqual((new['outcome'], new['number'], new['id'], new['era_death']),
                         ('live', 2, ids[0], None))
        self.assertEqual(self.row(1)['attempt'], 1)
        self.assertEqual(self.status(ids[0])['attempts'], 2)

    def test_what_a_status_ended_keeps_its_outcome(self):
        epoch, _ = self.pending()
        self.state(self.relay, epoch, (0, h32(0), 'invalid', None, None, '1010'))
        self.attempt(self.relay, epoch, [0], [h32('0b')], 'runtime')
        old = self.attempts(0)[0]
        self.assertEqual((old['outcome'], old['reason'], old['error']),
                         ('invalid', 'runtime', '1010'))

    def test_refusals(self):
        epoch, _ = self.pending()
        self.refused('TR002', self.attempt, self.relay, epoch, [0, 1], [h32('a'), h32('b')],
                     text='1 of 2')
        self.assertEqual(len(self.attempts(0)), 1)
        self.refused('TR003', self.attempt, self.relay, epoch, [0], [h32(0)],
                     text=('nonce 0', 'attempt 1'))
        self.refused('TR003', self.attempt, self.relay, epoch, [0, 0], [h32('a'), h32('b')],
                     text='more than once')
        self.state(self.relay, epoch, (0, h32(0), 'finalized', BLOCK))
        self.refused('TR003', self.attempt, self.relay, epoch, [0], [h32('a')],
                     text='finalized stays')


class State(Case):
    def test_follows_the_current_attempt(self):
        epoch, ids = self.pending()
        for state, block in (('future', None), ('ready', None), ('broadcast', None),
                             ('in_block', BLOCK),
                             ('retracted', BLOCK), ('ready', None), ('in_block', h32('b2')),
                             ('finality_timeout', BLOCK),
                             ('dropped', None), ('usurped', None), ('invalid', None),
                             ('finalized', BLOCK)):
            self.assertEqual(self.state(self.relay, epoch,
                                        (0, h32(0), state, block, 9 if block else None)), 1, state)
            p = self.row(0)
            self.assertEqual((p['state'], p['block_hash'], p['block_number']),
                             (state, block, 9 if block else None))
            self.assertEqual(self.status(ids[0])['state'], state)

    def test_first_time_in_a_block_is_kept(self):
        epoch, _ = self.pending()
        self.state(self.relay, epoch, (0, h32(0), 'in_block', BLOCK))
        first = self.row(0)['in_block_at']
        self.state(self.relay, epoch, (0, h32(0), 'retracted', BLOCK))
        self.state(self.relay, epoch, (0, h32(0), 'in_block', h32('b2')))
        self.assertEqual(self.row(0)['in_block_at'], first)
        self.assertIsNotNone(first)

    def test_an_older_attempt_changes_only_its_own_record(self):
        epoch, _ = self.pending()
        self.attempt(self.relay, epoch, [0], [h32('0b')])
        self.state(self.relay, epoch, (0, h32('0b'), 'ready'))
        before = self.row(0)
        self.assertEqual(self.state(self.relay, epoch, (0, h32(0), 'in_block', BLOCK, 3)), 0)
        self.assertEqual(self.row(0), before)
        old, new = self.attempts(0)
        self.assertEqual((old['state'], old['block_hash'], old['block_number'], old['outcome']),
                         ('in_block', BLOCK, 3, 'replaced'))
        self.assertEqual((new['state'], new['outcome']), (None, 'live'))

    def test_finalized_is_the_end(self):
        epoch, _ = self.pending()
        self.state(self.relay, epoch, (0, h32(0), 'finalized', BLOCK))
        self.assertEqual(self.state(self.relay, epoch, (0, h32(0), 'finalized', BLOCK)), 0)
        for state, block in (('ready', None), ('retracted', BLOCK), ('finalized', h32('other'))):
            self.refused('TR003', self.state, self.relay, epoch, (0, h32(0), state, block),
                         text='finalized stays')
        self.refused('TR003', self.owner.rows,
                     "UPDATE txrelay.pending_transactions SET state = 'ready'")

    def test_refusals(self):
        epoch, _ = self.pending()
        self.refused('TR003', self.state, self.relay, epoch, (0, h32(0), 'signed'), text='signed')
        self.refused('TR003', self.state, self.relay, epoch, (0, h32('never'), 'ready'),
                     text=h32('never').hex())
        self.refused('22P02', self.state, self.relay, epoch, (0, h32(0), 'nonsense'),
                     text='nonsense')
        for state in ('in_block', 'retracted', 'finality_timeout', 'finalized'):
            self.refused('TR011', self.state, self.relay, epoch, (0, h32(0), state),
                         text=(state, 'p_block_hashes'))
        self.refused('TR011', self.state, self.relay, epoch, (0, h32(0), None))

    def test_late_events_of_an_ended_nonce_change_nothing(self):
        epoch, _ = self.pending()
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        before = self.attempts(0)
        self.assertEqual(self.state(self.relay, epoch, (0, h32(0), 'retracted', BLOCK),
                                    (77, h32(7), 'ready')), 0)
        self.assertEqual(self.attempts(0), before)

    def test_the_last_of_several_counts(self):
        epoch, _ = self.pending(2)
        self.assertEqual(self.state(self.relay, epoch, (0, h32(0), 'ready'), (1, h32(1), 'ready'),
                                    (0, h32(0), 'broadcast'), (0, h32(0), 'in_block', BLOCK),
                                    (1, h32(1), 'future')), 2)
        self.assertEqual((self.row(0)['state'], self.row(1)['state']), ('in_block', 'future'))

    def test_ends_and_revives_the_attempt(self):
        """Same bytes again after a drop: the attempt lives again."""
        epoch, _ = self.pending()
        for state, outcome in (('dropped', 'dropped'), ('ready', 'live'), ('unknown', 'unknown'),
                               ('ready', 'live'),
                               ('invalid', 'invalid'), ('usurped', 'usurped'),
                               ('broadcast', 'live')):
            self.state(self.relay, epoch, (0, h32(0), state, None, None, state))
            (t,) = self.attempts(0)
            self.assertEqual((t['outcome'], t['ended_at'] is not None),
                             (outcome, outcome in ('dropped', 'invalid', 'usurped')), state)
            self.assertEqual((self.row(0)['unknown'], self.row(0)['error']),
                             (state == 'unknown', state))
        self.state(self.relay, epoch, (0, h32(0), 'in_block', BLOCK))
        self.state(self.relay, epoch, (0, h32(0), 'unknown'))
        self.assertEqual((self.row(0)['state'], self.row(0)['block_hash']), ('in_block', BLOCK))

    def test_what_the_chain_says_again_does_not_wait_for_the_disk(self):
        epoch, _ = self.pending(2)
        for rows, expected in (([(0, h32(0), 'ready')], 'off'),
                               ([(0, h32(0), 'in_block', BLOCK, 3)], 'off'),
                               ([(0, h32(0), 'unknown'), (1, h32(1), 'ready')], 'on'),
                               ([(1, h32(1), 'refused', None, None, 'no')], 'on')):
            self.relay.begin()
            self.state(self.relay, epoch, *rows)
            self.assertEqual(self.relay.value('SHOW synchronous_commit'), expected, rows)
            self.relay.rows('COMMIT')
            self.assertEqual(self.relay.value('SHOW synchronous_commit'), 'on')

    def test_nothing_new_writes_nothing(self):
        epoch, _ = self.pending()
        self.state(self.relay, epoch, (0, h32(0), 'ready'))
        before = self.row(0)
        self.assertEqual(self.state(self.relay, epoch, (0, h32(0), 'ready')), 0)
        self.assertEqual(self.row(0), before)


class Finish(Case):
    def test_ok_and_dispatch_error(self):
        epoch, ids = self.pending(2, creator='shop', call=b'\5\6')
        self.state(self.relay, epoch, (0, h32(0), 'in_block', BLOCK))
        seen = self.row(0)
        self.assertEqual(self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'),
                                     (1, h32(1), BLOCK, 'dispatch_error',
                                      'Balances.InsufficientBalance')), 2)
        f = self.finished(0)
        self.assertEqual({k: f[k] for k in ('id', 'hash', 'block_hash', 'block_number',
                                            'extrinsic_index', 'state',
                                            'outcome', 'error', 'fee', 'attempts', 'epoch',
                                            'creator', 'call')},
                         {'id': ids[0], 'hash': h32(0), 'block_hash': BLOCK, 'block_number': 7,
                          'extrinsic_index': 2,
                          'state': 'finalized', 'outcome': 'ok', 'error': None, 'fee': 125,
                          'attempts': 1,
                          'epoch': epoch, 'creator': 'shop', 'call': None})
        self.assertEqual((f['created_at'], f['admitted_at'], f['in_block_at']),
                         (seen['created_at'], seen['admitted_at'], seen['in_block_at']))
        self.assertGreaterEqual(f['finished_at'], f['in_block_at'])
        g = self.finished(1)
        self.assertEqual((g['outcome'], g['error'], g['call']),
                         ('dispatch_error', 'Balances.InsufficientBalance', b'\5\6'))
        self.assertIsNotNone(g['in_block_at'])
        self.assertEqual(self.attempts(0)[0]['outcome'], 'included')
        self.assertEqual((self.count('pending_transactions'), self.account()['next_nonce']), (0, 2))
        self.assertEqual((self.status(ids[0])['stage'], self.status(ids[0])['outcome']),
                         ('finished', 'ok'))

    def test_unknown(self):
        """With the block whose events nobody has, and without one where nobody has the block."""
        epoch, ids = self.pending(2)
        self.assertEqual(self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'unknown', 'no events'),
                                     (1, h32(1), None, 'unknown', 'no block')), 2)
        self.assertEqual([self.finished(n)['outcome'] for n in (0, 1)], ['unknown', 'unknown'])
        self.assertEqual([self.attempts(n)[0]['outcome'] for n in (0, 1)], ['included', 'unknown'])
        self.assertEqual((self.finished(0)['state'], self.account()['used_nonce']),
                         ('finalized', 2))
        self.assertEqual((self.status(ids[1])['stage'], self.status(ids[1])['outcome']),
                         ('finished', 'unknown'))

    def test_an_earlier_attempt_may_be_the_one(self):
        epoch, ids = self.pending()
        self.attempt(self.relay, epoch, [0], [h32('0b')])
        self.state(self.relay, epoch, (0, h32('0b'), 'broadcast'))
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        self.assertEqual((self.finished(0)['hash'], self.finished(0)['attempts']), (h32(0), 2))
        one, two = self.attempts(0)
        self.assertEqual((one['outcome'], one['block_hash'], one['state']),
                         ('included', BLOCK, 'finalized'))
        self.assertEqual((two['outcome'], two['block_hash'], two['state']),
                         ('superseded', None, 'broadcast'))

    def test_without_a_block(self):
        epoch, _ = self.pending(2)
        self.finish(self.relay, epoch, (0, None, None, 'usurped', 'foreign'),
                    (1, h32(1), None, 'failed', 'given back'))
        self.assertEqual((self.finished(0)['state'], self.finished(0)['hash'],
                          self.finished(0)['error']),
                         ('usurped', h32(0), 'foreign'))
        self.assertEqual((self.finished(1)['state'], self.finished(1)['outcome']),
                         ('signed', 'failed'))
        self.assertEqual([self.attempts(n)[0]['outcome'] for n in (0, 1)], ['usurped', 'dropped'])

    def test_cancelled_by_a_filler_signed_as_an_attempt(self):
        epoch, _ = self.pending()
        self.attempt(self.relay, epoch, [0], [h32('filler')], 'cancelled', filler=2,
                     outcome='cancelled', stop='by app')
        self.finish(self.relay, epoch, (0, h32('filler'), BLOCK, 'cancelled'))
        f = self.finished(0)
        self.assertEqual((f['outcome'], f['hash'], f['state'], f['block_hash']),
                         ('cancelled', h32('filler'), 'finalized', BLOCK))

    def test_refusals(self):
        epoch, _ = self.pending(2)
        self.refused('TR003', self.finish, self.relay, epoch, (0, h32('never'), BLOCK, 'ok'),
                     text=h32('never').hex())
        self.refused('TR002', self.finish, self.relay, epoch, (0, h32(0), BLOCK, 'ok'),
                     (5, h32(5), BLOCK, 'ok'),
                     text='1 of 2')
        self.refused('TR003', self.finish, self.relay, epoch, (0, h32(0), BLOCK, 'ok'),
                     (0, h32(0), BLOCK, 'ok'))
        for outcome in ('ok', 'dispatch_error', None):
            self.refused('TR011', self.finish, self.relay, epoch, (0, h32(0), None, outcome))
        self.assertEqual((self.count('pending_transactions'), self.count('finished_transactions')),
                         (2, 0))
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        self.refused('TR003', self.finish, self.relay, epoch, (0, h32(0), BLOCK, 'ok'),
                     (1, h32(1), BLOCK, 'ok'),
                     text=('nonce 0', 'ended before, as ok'))

    def test_after_the_state_was_finalized(self):
        epoch, _ = self.pending()
        self.state(self.relay, epoch, (0, h32(0), 'finalized', BLOCK, 7))
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        self.assertEqual(self.finished(0)['outcome'], 'ok')

    def test_what_is_finalized_cannot_end_otherwise(self):
        epoch, _ = self.pending(2)
        self.attempt(self.relay, epoch, [0], [h32('0b')])
        self.state(self.relay, epoch, (0, h32('0b'), 'finalized', BLOCK, 7),
                   (1, h32(1), 'finalized', BLOCK, 7))
        for end in ((0, h32(0), BLOCK, 'ok'), (0, h32('0b'), h32('other'), 'ok'),
                    (0, h32('0b'), None, 'usurped')):
            self.refused('TR003', self.finish, self.relay, epoch, (1, h32(1), BLOCK, 'ok'), end,
                         text=('nonce 0', 'finalized', end[3]))
        self.assertEqual((self.row(0)['state'], self.row(1)['state']), ('finalized', 'finalized'))

    def test_terminal_records_never_change(self):
        """I7, for the owner and for a superuser as well."""
        epoch, _ = self.pending()
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        for s in (self.owner, self.superuser()):
            for sql in ("UPDATE txrelay.finished_transactions SET outcome = 'failed'",
                        'DELETE FROM txrelay.finished_transactions',
                        'TRUNCATE txrelay.finished_transactions'):
                self.refused('TR003', s.rows, sql, text='never changes')
        self.assertEqual(self.finished(0)['outcome'], 'ok')


class Fill(Case):
    def test_takes_the_nonce_of_a_transaction(self):
        epoch, ids = self.pending(2)
        self.assertEqual(self.fill(self.relay, epoch, [0], 'expired', 'deadline'), 2)
        p = self.row(0)
        self.assertEqual((p['id'], p['hash'], p['attempt'], p['attempts'], p['state'], p['call'],
                          p['creator']),
                         (None, h32('fill0'), 2, 1, 'signed', b'\0\0', None))
        got = self.status(ids[0])
        self.assertEqual((got['stage'], got['outcome'], got['error'], got['nonce'],
                          got['block_hash']),
                         ('finished', 'expired', 'deadline', 0, None))
        old, new = self.attempts(0)
        self.assertEqual((old['outcome'], old['id'], new['outcome'], new['id']),
                         ('replaced', ids[0], 'live', None))
        self.assertIn('filler', old['reason'])
        self.finish(self.relay, epoch, (0, h32('fill0'), BLOCK, 'ok'))
        self.assertEqual(self.owner.rows('SELECT id, outcome FROM txrelay.finished_transactions '
                                         'ORDER BY finished_at'),
                         [(ids[0], 'expired'), (None, 'ok')])

    def test_a_nonce_without_a_row(self):
        epoch, _ = self.pending(2)
        self.relay.rows('SELECT txrelay.leader_nonce(%s, %s, 5)', self.alice, epoch)
        self.assertEqual(self.fill(self.relay, epoch, [2, 3, 4], None), 5)
        self.assertEqual(self.fill(self.relay, epoch, [6, 5], None), 7)
        self.assertEqual(self.account()['next_nonce'], 7)
        self.refused('TR003', self.fill, self.relay, epoch, [8], None, text=('8', '7'))
        self.refused('TR003', self.fill, self.relay, epoch, [7, 9], None, text='gap')
        self.assertEqual(self.owner.value('SELECT count(*) FROM txrelay.pending_transactions '
                                          'WHERE id IS NULL'), 5)

    def test_14_admission_and_filler_want_one_nonce_at_once(self):
        """Two loops of one leader, in two sessions. Whoever comes second waits for the other one's
        commit and is refused, and its bytes are not on record: they are never sent."""
        epoch, _ = self.pending(2)
        other = self.session('relay')
        tx, = self.enqueue()
        self.relay.begin()
        self.admit(self.relay, epoch, [tx], [2], [h32('admitted')])
        filler = self.overlap(other, lambda: self.fill(other, epoch, [2], None))
        self.relay.commit()
        self.refused('TR003', filler.join, text=('nonce 2', 'NULL'))
        self.assertEqual([t['hash'] for t in self.attempts(2)], [h32('admitted')])

        tx, = self.enqueue()
        self.relay.begin()
        self.fill(self.relay, epoch, [3], None)
        admission = self.overlap(other, lambda: self.admit(other, epoch, [tx], [3], [h32('late')]))
        self.relay.commit()
        self.refused('TR003', admission.join, text=('3', '4'))
        self.assertEqual([t['hash'] for t in self.attempts(3)], [h32('fill3')])
        self.assertEqual(self.status(tx)['stage'], 'outbox')

    def test_while_no_nonce_is_known(self):
        epoch = self.lead()
        self.assertEqual(self.fill(self.relay, epoch, [3], None), 4)

    def test_refusals(self):
        epoch, _ = self.pending()
        for outcome in (None, 'ok', 'dispatch_error'):
            self.refused('TR003', self.fill, self.relay, epoch, [0], outcome)
        self.state(self.relay, epoch, (0, h32(0), 'finalized', BLOCK))
        self.refused('TR003', self.fill, self.relay, epoch, [0], 'failed', text='finalized')
        self.assertEqual(self.row(0)['state'], 'finalized')

    def test_an_effect_of_the_ended_transaction_leaves_a_trace(self):
        """It must not happen; if it does, the record of the nonce says which transaction took
        effect (I2)."""
        epoch, ids = self.pending()
        self.fill(self.relay, epoch, [0], 'cancelled')
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        got = self.owner.dict('SELECT * FROM txrelay.finished_transactions WHERE id IS NULL')
        self.assertEqual(got['hash'], h32(0))
        self.assertIn(f'belongs to transaction {ids[0]}, which had ended before', got['error'])


class Others(Case):
    def test_requeue_keeps_id_place_and_history(self):
        epoch, ids = self.pending(2, key=None, creator='shop')
        later = self.enqueue()
        self.assertEqual(self.requeue(self.relay, epoch, (0, 'usurped', 'foreign')), 1)
        got = self.relay.dicts('SELECT * FROM txrelay.leader_outbox(%s, %s, 10)', self.alice, epoch)
        self.assertEqual([(r['id'], r['creator'], r['attempts']) for r in got],
                         [(ids[0], 'shop', 1), (later[0], 'app', 0)])
        self.assertEqual((self.attempts(0)[0]['outcome'], self.attempts(0)[0]['reason']),
                         ('usurped', 'foreign'))
        self.admit(self.relay, epoch, [ids[0]], [2])
        self.assertEqual(self.status(ids[0])['attempts'], 2)
        self.refused('TR002', self.requeue, self.relay, epoch, (0, 'usurped', 'x'), text='0 of 1')

    def test_the_number_goes_on_when_a_nonce_is_used_again(self):
        epoch, _ = self.pending(2)
        self.finish(self.relay, epoch, (1, None, None, 'expired'))
        self.relay.rows('SELECT txrelay.leader_nonce(%s, %s, 1, p_lower => true)', self.alice,
                        epoch)
        self.admit(self.relay, epoch, self.enqueue(), [1], [h32('second life')])
        self.assertEqual([t['number'] for t in self.attempts(1)], [1, 2])
        got = self.relay.dicts('SELECT * FROM txrelay.leader_snapshot(%s, %s, 0, 10)', self.alice,
                               epoch)
        self.assertEqual(got[0]['earlier'], [], 'those of another transaction are not its own')

    def test_reject(self):
        epoch, ids = self.lead(), self.enqueue(2)
        sql = 'SELECT txrelay.leader_reject(%s, %s, %s::bigint[], %s::text[], %s::text[])'
        self.assertEqual(self.relay.value(sql, self.alice, epoch, ids[:1], ['failed'],
                                          ['does not decode']), 1)
        self.assertEqual((self.status(ids[0])['outcome'], self.status(ids[0])['error']),
                         ('failed', 'does not decode'))
        self.refused('TR002', self.relay.rows, sql, self.alice, epoch, ids, ['failed'] * 2,
                     ['x'] * 2, text='1 of 2')
        for outcome in ('ok', 'dispatch_error'):
            self.refused('TR003', self.relay.rows, sql, self.alice, epoch, ids[1:], [outcome],
                         ['x'])
        self.assertEqual(self.status(ids[1])['stage'], 'outbox')

    def test_nonce(self):
        epoch, _ = self.pending(2, first=5)
        sql = 'SELECT txrelay.leader_nonce(%s, %s, %s)'
        self.relay.rows(sql, self.alice, epoch, 9)
        self.assertEqual(self.account()['next_nonce'], 9)
        self.refused('TR003', self.relay.rows, sql, self.alice, epoch, 8,
                     text=('8', '9', 'p_lower'))
        for nonce in (6, 5, -1, None):
            self.refused('TR003', self.relay.rows, 'SELECT txrelay.leader_nonce(%s, %s, %s, true)',
                         self.alice, epoch, nonce)
        self.relay.rows('SELECT txrelay.leader_nonce(%s, %s, 7, true)', self.alice, epoch)
        self.assertEqual(self.account()['next_nonce'], 7)

    def test_nonce_does_not_go_below_what_a_block_used(self):
        """A relay whose node lags finds a lower nonce and nothing pending (txsim)."""
        epoch, _ = self.pending(3)
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'), (1, None, None, 'usurped'),
                    (2, None, None, 'expired'))
        sql = 'SELECT txrelay.leader_nonce(%s, %s, %s, p_lower => true)'
        for nonce in (0, 1):
            self.refused('TR002', self.relay.rows, sql, self.alice, epoch, nonce, text='lags')
        self.relay.rows(sql, self.alice, epoch, 2)
        self.assertEqual(self.account()['next_nonce'], 2)

    def test_snapshot_in_chunks_with_every_state(self):
        """Rows without any status are in it."""
        epoch, ids = self.pending(7, call=b'\7\7')
        self.state(self.relay, epoch, (1, h32(1), 'in_block', BLOCK, 3), (2, h32(2), 'unknown'))
        self.attempt(self.relay, epoch, [3], [h32('3b')])
        self.attempt(self.relay, epoch, [3], [h32('3c')])
        sql = 'SELECT * FROM txrelay.leader_snapshot(%s, %s, %s, 3)'
        got, after = [], -1
        while rows := self.relay.dicts(sql, self.alice, epoch, after):
            got, after = got + rows, rows[-1]['nonce']
        self.assertEqual([r['nonce'] for r in got], list(range(7)))
        self.assertEqual([r['id'] for r in got], ids)
        self.assertEqual([r['state'] for r in got], ['signed', 'in_block'] + ['signed'] * 5)
        self.assertEqual((got[1]['block_hash'], got[1]['block_number'], got[2]['unknown']),
                         (BLOCK, 3, True))
        self.assertEqual((got[3]['hash'], got[3]['attempt'], [bytes(h) for h in got[3]['earlier']],
                          got[3]['era_death'],
                          got[3]['block'], got[3]['extrinsic']),
                         (h32('3c'), 3, [h32(3), h32('3b')], None, 20, b'\x84' + h32('3c')))
        self.assertEqual((got[0]['earlier'], got[0]['call'], got[0]['tip'], got[0]['era_death']),
                         ([], b'\7\7', 0, 128))

    def test_one_row_an_id_in_the_view(self):
        epoch, ids = self.pending(3)
        ids += self.enqueue(2, key='k')[:1]
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        rows = self.app.rows('SELECT id, stage FROM txrelay.transactions ORDER BY id')
        self.assertEqual(rows, list(zip(ids, ('finished', 'pending', 'pending', 'outbox'))))
        self.assertEqual(self.status(ids[3])['key'], 'k')
        self.assertEqual(self.app.rows('SELECT * FROM txrelay.status(12345)'), [])

    def test_thousands_of_rows_a_call(self):
        """The plans of a session were made for single rows in empty tables: they must fit a large
        batch (plain joins took 44 s here)."""
        def life(first, n):
            nonces = list(range(first, first + n))
            ids = self.app.value("SELECT txrelay.enqueue_many('alice', "
                                 "array_fill('\\x0102'::bytea, ARRAY[%s]), %s)", n,
                                 [f'key {x}' for x in nonces])
            self.assertEqual(self.admit(self.relay, epoch, ids, nonces), first + n)
            self.assertEqual(self.state(self.relay, epoch,
                                        *[(x, h32(x), 'in_block', BLOCK) for x in nonces]), n)
            self.assertEqual(self.state(self.relay, epoch,
                                        *[(x, h32(x), 'dropped') for x in nonces]), n)
            self.assertEqual(self.attempt(self.relay, epoch, nonces,
                                          [h32(f'b{x}') for x in nonces]), n)
            half = n // 2
            self.fill(self.relay, epoch, nonces[:half])
            self.requeue(self.relay, epoch, *[(x, 'usurped', 'foreign') for x in nonces[half:]])
            self.relay.value('SELECT txrelay.leader_reject(%s, %s, %s::bigint[], %s::text[], '
                             '%s::text[])', self.alice,
                             epoch, ids[half:], ['failed'] * (n - half), ['x'] * (n - half))
            self.finish(self.relay, epoch,
                        *[(x, h32(f'fill{x}'), BLOCK, 'ok') for x in nonces[:half]])
            self.assertEqual((self.count('pending_transactions'), self.count('outbox')), (0, 0))
        epoch = self.lead(e1=3600000, e2=3600000)
        for i in range(0, 16, 2):
            life(i, 2)
        for s in (self.relay, self.app):
            s.rows("SET statement_timeout = '10s'")
        life(16, 4000)


if __name__ == '__main__':
    unittest.main()
