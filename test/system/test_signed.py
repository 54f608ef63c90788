"""Extrinsics that were signed elsewhere: sent as they are, followed to the end, never signed
again; a hole below is told and not filled (schema/functions/08_enqueue_signed.sql,
relay/core/tx/presigned.c)."""
import unittest

import psycopg2

from harness import proc
from harness.chain import put_compact, remark
from harness.foreign import Stranger, ss58
from harness.world import ALICE, World

FAST = {'heartbeat_ms': 400, 'expiry_1_ms': 2000, 'expiry_2_ms': 4000, 'margin_ms': 500}


def keyless(public):
    return {'accounts': (), 'extra': '  - alias: alice\n    scheme: sr25519\n    account: '
                                     f'{ss58(public)}\n'}


class Signed(unittest.TestCase):
    def start(self, *options, key=False, **kwargs):
        world = World(*options, leadership=FAST, **kwargs)
        self.addCleanup(world.close)
        world.signer = Stranger(world.chain)
        world.access = {'accounts': (ALICE,)} if key else keyless(world.signer.public)
        world.wait_leader(world.relay('one', **world.access))
        return world

    def enqueue(self, world, extrinsic, key=None):
        tx = world.pg.value('SELECT txrelay.enqueue_signed(%s, %s)', (extrinsic.raw, key))
        world.committed[extrinsic.call] = tx
        return tx

    def row(self, world, tx):
        return dict(zip(('stage', 'state', 'nonce', 'hash', 'outcome', 'error', 'attempts'),
                        world.pg.query(
            'SELECT stage, state, nonce, hash, outcome, error, attempts FROM txrelay.status(%s)',
            (tx,))[0]))

    def end(self, world, tx, seconds=60):
        proc.wait_for(f'the end of {tx}', lambda: self.row(world, tx)['outcome'], seconds)
        return self.row(world, tx)

    def pooled(self, world, extrinsic):
        proc.wait_for('the pool to have it',
                      lambda: '0x'
                      + extrinsic.raw.hex() in world.chain.rpc('author_pendingExtrinsics'))

    def attempts(self, world, tx):
        return [bytes(r[0]) for r in world.pg.query('SELECT extrinsic FROM txrelay.attempts '
                                                    'WHERE id = %s', (tx,))]

    def test_key_not_at_the_relay(self):
        world = self.start()
        signed = [world.signer.extrinsic(n, remark(f'elsewhere {n}'), period=64 if n % 2 else 0)
                  for n in range(4)]
        txs = [self.enqueue(world, x, f'key {n}') for n, x in enumerate(signed)]
        self.assertEqual([self.enqueue(world, signed[0], 'key 0'), self.enqueue(world, signed[0])],
                         [txs[0]] * 2)
        for tx, x in zip(txs, signed):
            row = self.end(world, tx)
            self.assertEqual((row['outcome'], row['error'], row['hash']),
                             ('ok', None, '0x' + x.hash.hex()))
            self.assertEqual(self.attempts(world, tx), [x.raw])
        with self.assertRaises(psycopg2.Error) as caught:
            world.enqueue('plain')
        self.assertEqual(caught.exception.pgcode, 'TR011')
        self.assertIn('enqueue_signed', str(caught.exception))
        self.assertEqual(world.settle()['finalized'], 4)

    def test_beside_calls_of_the_same_account(self):
        """It has its nonce when that is the next one or is free; what runs into it goes round
        it."""
        world = self.start(key=True)
        ahead = self.enqueue(world, world.signer.extrinsic(2, remark('third')))
        proc.wait_for('it waits', lambda: self.row(world, ahead)['error'])
        self.assertIn('not filled', self.row(world, ahead)['error'])
        calls = [world.enqueue(f'call {i}') for i in range(4)]
        self.assertEqual([self.end(world, tx)['nonce'] for tx in calls], [0, 1, 3, 4])
        self.assertEqual(self.end(world, ahead)['outcome'], 'ok')
        late = self.enqueue(world, world.signer.extrinsic(3, remark('too late')))
        row = self.end(world, late)
        self.assertEqual(row['outcome'], 'usurped')
        self.assertIn('nonce 3', row['error'])
        world.settle()

    def test_taken_by_a_pending_call(self):
        world = self.start('--block-ms', '0', key=True)
        call = world.enqueue('first')
        proc.wait_for('its nonce', lambda: self.row(world, call)['nonce'] == 0)
        row = self.end(world, self.enqueue(world, world.signer.extrinsic(0, remark('second'))))
        self.assertEqual(row['outcome'], 'failed')
        self.assertIn(f'taken by transaction {call}', row['error'])

    def test_leader_killed(self):
        """kill -9 with the bytes in the table and the pool: the successor sends the same ones."""
        world = self.start('--block-ms', '0')
        signed = world.signer.extrinsic(0, remark('survives'), period=64)
        tx = self.enqueue(world, signed)
        self.pooled(world, signed)
        world.relays[0].kill()
        world.chain.rpc('dev_dropPool', {})
        world.wait_leader(world.relay('two', **world.access))
        # a beat; it may have been sent before it
        world.chain.rpc('dev_newBlock', {'count': 1, 'empty': True})
        self.pooled(world, signed)
        world.chain.rpc('dev_set', {'block_ms': 100})
        self.assertEqual(self.end(world, tx)['outcome'], 'ok')
        self.assertEqual(self.attempts(world, tx), [signed.raw])
        world.settle()

    def test_sent_again_after_eviction(self):
        world = self.start('--block-ms', '0')
        signed = world.signer.extrinsic(0, remark('evicted'), period=64)
        tx = self.enqueue(world, signed)
        for _ in range(3):
            self.pooled(world, signed)
            world.chain.rpc('dev_dropPool', {'silent': False})
            world.chain.rpc('dev_newBlock', {'count': 1, 'empty': True})
        self.pooled(world, signed)
        world.chain.rpc('dev_set', {'block_ms': 100})
        self.assertEqual(self.end(world, tx)['outcome'], 'ok')
        self.assertEqual(self.attempts(world, tx), [signed.raw])
        self.assertGreaterEqual(len([s for s in world.chain.submits() if s['hash'] == '0x'
                                     + signed.hash.hex()]), 4)
        world.settle()

    def test_bytes_that_cannot_be_right(self):
        world = self.start()
        broken = bytearray(world.signer.extrinsic(0, remark('broken')).raw)
        broken[60] ^= 1
        other = world.signer.extrinsic(0, remark('other chain'), genesis=b'\x11' * 32)
        runtime = world.signer.extrinsic(0, remark('other runtime'), spec=99, period=64)
        cut = world.signer.extrinsic(0, b'\x00\x00\xff\xff')
        for raw, said in ((bytes(broken), 'signature'), (other.raw, 'genesis'),
                          (runtime.raw, 'spec version 100'),
                          (cut.raw, 'System')):
            row = self.end(world, world.pg.value('SELECT txrelay.enqueue_signed(%s)', (raw,)))
            self.assertEqual(row['outcome'], 'failed')
            self.assertIn(said, row['error'])
        self.assertEqual(world.chain.submits(), [])
        self.assertEqual(
            self.end(world, self.enqueue(world, world.signer.extrinsic(0, remark('right'))))[
                'outcome'], 'ok')
        world.settle()

    def test_era_over_before_it_came(self):
        world = self.start()
        signed = world.signer.extrinsic(0, remark('too old'), period=8)
        proc.wait_for('its era to end', lambda: world.chain.finalized_number() > 12)
        row = self.end(world, self.enqueue(world, signed))
        self.assertEqual(row['outcome'], 'expired')
        self.assertIn('era ended', row['error'])
        world.settle()

    def test_era_ends_while_it_waits(self):
        """Nobody includes it: it ends, its nonce is free again, and other bytes take it."""
        world = self.start()
        world.chain.rpc('dev_set', {'min_tip': 10})
        first = world.signer.extrinsic(0, remark('pays nothing'), period=16)
        row = self.end(world, self.enqueue(world, first))
        self.assertEqual((row['outcome'], row['nonce']), ('expired', 0))
        self.assertIn('its era ended', row['error'])
        second = self.enqueue(world, world.signer.extrinsic(0, remark('pays'), tip=20))
        self.assertEqual(self.end(world, second)['outcome'], 'ok')
        world.settle()

    def test_runtime_upgrade(self):
        """What was signed for the old runtime cannot get in any more: it ends when that is
        certain, and is not signed again."""
        world = self.start('--block-ms', '0')
        signed = world.signer.extrinsic(0, remark('old runtime'), period=16)
        tx = self.enqueue(world, signed)
        self.pooled(world, signed)
        world.chain.rpc('dev_upgrade', {})
        world.chain.rpc('dev_set', {'block_ms': 100})
        row = self.end(world, tx)
        self.assertEqual(row['outcome'], 'failed')  # before its era is over
        self.assertIn('it was signed elsewhere for runtime spec version', row['error'])
        self.assertEqual(self.attempts(world, tx), [signed.raw])
        after = self.enqueue(world, world.signer.extrinsic(0, remark('new runtime')))
        self.assertEqual(self.end(world, after)['outcome'], 'ok')
        world.settle()

    def test_nonce_used_by_other_bytes(self):
        world = self.start()
        world.foreign.add(world.signer.send(0, remark('by hand')))
        proc.wait_for('it is final', lambda: any(x.nonce == 0 for _, _, _, x in world.chain.walk()))
        row = self.end(world, self.enqueue(world, world.signer.extrinsic(0, remark('relayed'))))
        self.assertEqual(row['outcome'], 'usurped')
        self.assertIn('nonce 0 was used', row['error'])
        self.assertEqual(
            self.end(world, self.enqueue(world, world.signer.extrinsic(1, remark('next'))))[
                'outcome'], 'ok')
        world.settle()

    def test_sent_by_the_signer_as_well(self):
        """Before it was enqueued, and while it waits below a hole: its own bytes used the nonce,
        so it ends well."""
        world = self.start()
        first = world.signer.extrinsic(0, remark('twice'), period=64)
        world.chain.rpc('author_submitExtrinsic', '0x' + first.raw.hex())
        proc.wait_for('it is final', lambda: any(x.nonce == 0 for _, _, _, x in world.chain.walk()))
        self.assertEqual(self.end(world, self.enqueue(world, first))['outcome'], 'ok')
        third = world.signer.extrinsic(2, remark('above a hole'))
        tx = self.enqueue(world, third)
        proc.wait_for('it waits', lambda: self.row(world, tx)['error'])
        world.foreign.add(world.signer.send(1, remark('by hand')))
        world.chain.rpc('author_submitExtrinsic', '0x' + third.raw.hex())
        self.assertEqual(self.end(world, tx)['outcome'], 'ok')
        world.settle()

    def test_a_hole_is_told_and_closed_by_its_own_bytes(self):
        world = self.start()
        last = self.enqueue(world, world.signer.extrinsic(2, remark('two')))
        self.assertTrue(world.relays[0].wait_log('account.alert.*what is missing below it is not '
                                                 'filled'))
        account, nonce, tx, state = proc.wait_for('the row that says so', lambda: (
            world.pg.query('SELECT account, nonce, id, state '
                           "FROM txrelay.blocked_accounts WHERE reason LIKE '%next was 0%'")))[0]
        self.assertEqual((account, nonce, tx, state), ('alice', 2, last, 'queued'))
        row = self.row(world, last)
        self.assertEqual((row['stage'], row['nonce'], row['outcome']), ('outbox', 2, None))
        height = world.chain.finalized_number()
        first = self.enqueue(world, world.signer.extrinsic(0, remark('zero')))
        self.assertEqual(self.end(world, first)['outcome'], 'ok')
        proc.wait_for('some blocks', lambda: world.chain.finalized_number() > height + 15)
        self.assertEqual(world.signer.next_nonce(), 1, 'nothing filled the hole')
        middle = self.enqueue(world, world.signer.extrinsic(1, remark('one')))
        self.assertEqual([self.end(world, tx)['outcome'] for tx in (middle, last)], ['ok', 'ok'])
        world.settle()
        proc.wait_for('nothing to be blocked',
                      lambda: not world.pg.query('SELECT * FROM txrelay.blocked_accounts'))

    def test_cancel_and_bump(self):
        world = self.start('--block-ms', '0')
        waits = self.enqueue(world, world.signer.extrinsic(5, remark('waits')))
        proc.wait_for('it waits', lambda: self.row(world, waits)['error'])
        for sql, said in (('SELECT txrelay.bump(%s)', 'its tip is signed with it'),):
            with self.assertRaises(psycopg2.Error) as caught:
                world.pg.query(sql, (waits,))
            self.assertEqual(caught.exception.pgcode, 'TR011')
            self.assertIn(said, str(caught.exception))
        self.assertEqual(world.pg.value('SELECT txrelay.cancel(%s)', (waits,)), 'cancelled')
        self.assertEqual(self.row(world, waits)['outcome'], 'cancelled')
        signed = world.signer.extrinsic(0, remark('in the pool'))
        tx = self.enqueue(world, signed)
        self.pooled(world, signed)
        with self.assertRaises(psycopg2.Error) as caught:
            world.pg.query('SELECT txrelay.cancel(%s)', (tx,))
        self.assertIn('no relay has a key', str(caught.exception))
        world.chain.rpc('dev_set', {'block_ms': 100})
        self.assertEqual(self.end(world, tx)['outcome'], 'ok')
        world.settle()

    def test_cancelled_where_the_relay_has_the_key(self):
        """A filler with a higher tip takes the nonce; the bytes themselves are never signed
        again."""
        world = self.start('--block-ms', '0', key=True)
        signed = world.signer.extrinsic(0, remark('in the pool'))
        tx = self.enqueue(world, signed)
        self.pooled(world, signed)
        self.assertEqual(world.pg.value('SELECT txrelay.cancel(%s)', (tx,)), 'requested')
        proc.wait_for('the filler', lambda: len(self.attempts(world, tx)) == 2)
        world.chain.rpc('dev_set', {'block_ms': 100})
        self.assertEqual(self.end(world, tx)['outcome'], 'cancelled')
        world.settle()

    def test_relays_that_differ_about_the_key(self):
        world = self.start()
        relay = world.relay('two', accounts=(ALICE,))
        relay.wait_log('registered without a key')


if __name__ == '__main__':
    unittest.main()
