"""A stored next nonce above the chain's: what the relay corrects by itself, and what takes an
operator's order (the README's table "A next nonce that is too high")."""
import unittest

from harness import proc
from harness.cases import CaseTest, load_tests  # noqa: F401

FAR, WINDOW, ERA = 500, 8, 16


class WrongNonce(CaseTest):
    def start(self, **policy):
        """Nonce 0 is used."""
        world = self.world('--block-ms', '50', manager={'era_period': ERA, 'window': WINDOW})
        world.policy(**policy)
        world.enqueue('before')
        world.settle()
        return world

    def heir(self, world, name='heir'):
        """The leader is gone. Gives the start of the next one, so that something may happen before
        it."""
        world.relays[-1].kill()
        return lambda: world.wait_leader(world.relay(name))

    def lie(self, world, nonce, final):
        """The node's word for the account's nonce at the best block; with `final` at finalized
        blocks too."""
        key = world.account_key()
        data = nonce.to_bytes(4, 'little') + bytes.fromhex(world.chain.rpc('state_getStorage',
                                                                           key)[2:])[4:]
        told = {'state_getStorage': '0x' + data.hex()}
        if final:
            told['state_queryStorageAt'] = [{'block': '0x' + '00' * 32,
                                             'changes': [[key, '0x' + data.hex()]]}]
        return world.script(*({'match': {'method': m, 'times': 0}, 'action': {'result': r}}
                              for m, r in told.items()))

    def truth(self, world, rules):
        for rule in rules:
            world.chain.rpc('dev_clearScript', {'id': rule})

    def table(self, world, **columns):
        """As the schema's owner may do it."""
        world.rows(f'UPDATE txrelay.accounts SET {", ".join(f"{c} = %s" for c in columns)} '
                   'RETURNING 1', *columns.values())

    def goes_on(self, world, nonce=1):
        tx = world.enqueue(f'after it, at {nonce}')
        self.assertEqual(world.wait_end(tx)[0], 'ok')
        self.assertEqual(world.row(tx)['nonce'], nonce)
        return world.settle()

    def rewind(self, world):
        world.pg.value("SELECT txrelay.account_rewind('alice')")

    # ---- by itself ----

    def test_nothing_pending(self):
        world = self.start()
        self.table(world, next_nonce=FAR)
        self.goes_on(world)
        begin = self.heir(world)
        self.table(world, next_nonce=FAR)
        begin()
        self.goes_on(world, nonce=2)

    def test_a_few_nonces_too_high(self):
        """A transaction is pending behind them: fillers take them."""
        world = self.start()
        begin = self.heir(world)
        rules = self.lie(world, WINDOW - 2, False)
        begin()
        tx = world.enqueue('behind the gap')
        proc.wait_for('it to have a nonce', lambda: world.row(tx)['nonce'] is not None)
        self.truth(world, rules)
        self.goes_on(world, nonce=WINDOW - 1)
        self.assertEqual((world.end(tx)[0], world.row(tx)['nonce']), ('ok', WINDOW - 2))

    # ---- by account_resume ----

    def test_taken_back_by_the_same_node(self):
        """The leader takes it for an account that was reaped."""
        world = self.start()
        rules = self.lie(world, FAR, True)
        proc.wait_for('it to be stored', lambda: world.next_nonce() == FAR)
        pending = world.enqueue('at a false nonce')
        proc.wait_for('it to have a nonce', lambda: world.row(pending)['nonce'] == FAR)
        self.truth(world, rules)
        world.wait_suspension('reaped')
        world.resume()
        self.assertEqual(world.wait_end(pending)[0], 'failed')
        self.goes_on(world)

    def test_used_nonces_on_record(self):
        world = self.start()
        begin = self.heir(world)
        self.table(world, next_nonce=FAR, used_nonce=FAR)
        begin()
        world.wait_suspension('reaped')
        world.resume()
        self.goes_on(world)

    # ---- by account_rewind ----

    def stands_still(self, **policy):
        """A transaction is pending far above the chain's nonce, and the leader that believed it is
        gone."""
        world = self.start(**policy)
        rules = self.lie(world, FAR, True)
        proc.wait_for('it to be stored', lambda: world.next_nonce() == FAR)
        pending = world.enqueue('at a false nonce')
        proc.wait_for('it to have a nonce', lambda: world.row(pending)['nonce'] == FAR)
        begin = self.heir(world)
        self.truth(world, rules)
        begin()
        world.wait_alert('have no pending row.*account_rewind')
        waits = world.enqueue('waits behind it')
        world.resume()
        world.wait_blocks(ERA + 4)
        self.assertEqual((world.row(pending)['nonce'], world.row(pending)['outcome']), (FAR, None))
        self.assertEqual((world.row(waits)['stage'], world.suspension()), ('outbox', None))
        return world, pending, waits

    def test_pending_far_above(self):
        world, pending, waits = self.stands_still()
        self.rewind(world)
        self.assertEqual(world.wait_end(pending)[0], 'failed')
        self.assertIn('rewound', world.end(pending)[1])
        self.assertEqual(world.wait_end(waits)[0], 'ok')
        self.assertEqual(world.row(waits)['nonce'], 1)
        figures = self.goes_on(world, nonce=2)
        self.assertEqual((figures['finalized'], figures['failed']), (3, 1))

    def test_pending_far_above_and_requeued(self):
        world, pending, waits = self.stands_still(usurped='requeue')
        self.rewind(world)
        self.heir(world, 'second')()  # an order outlives the leader that has it
        self.assertEqual([world.wait_end(t)[0] for t in (pending, waits)], ['ok', 'ok'])
        self.assertEqual(sorted(world.row(t)['nonce'] for t in (pending, waits)), [1, 2])
        self.assertEqual([n for n, *_ in world.given_up(pending)], [FAR])
        self.goes_on(world, nonce=3)

    def test_used_block_above_the_chain(self):
        """The leader waits for a node that has this block."""
        world = self.start()
        begin = self.heir(world)
        self.table(world, next_nonce=FAR, used_nonce=FAR, used_block=10 ** 6)
        begin()
        world.wait_alert('is behind block 1000000')
        self.rewind(world)
        # or a minute: only then is the block that nobody repeats dropped
        self.heir(world, 'second')()
        self.goes_on(world)

    def test_ordered_by_mistake(self):
        """What is in the pool gets in, and ends as the chain says; nothing is signed twice."""
        world = self.start()
        world.set(paused=True)
        txs = world.enqueue_many([f'in the pool {i}' for i in range(4)])
        world.wait_pool(4)
        self.rewind(world)
        world.set(paused=False)
        self.assertEqual([world.wait_end(t)[0] for t in txs], ['ok'] * 4)
        self.goes_on(world, nonce=5)
        self.assert_one_hash_each(world)

    # ---- by account_reconcile ----

    def test_seen_block_above_the_chain(self):
        """A failover looks for lost commits from that block on, until an operator names a lower
        one."""
        world = self.start()
        begin = self.heir(world)
        self.table(world, seen_block=10 ** 6)
        world.rows('UPDATE txrelay.leadership SET timeline = 77 RETURNING 1')
        begin()
        world.wait_alert('is behind block 1000000')
        self.assertEqual(world.pg.value("SELECT txrelay.account_reconcile('alice', 1)"), 1)
        self.heir(world, 'second')()
        self.goes_on(world)

    def test_signed_at_a_block_above_the_chain(self):
        """A node had invented the final block at which a pending transaction was signed."""
        world = self.start()
        world.set(paused=True)
        pending = world.enqueue('at a false block')
        world.wait_pool(1)
        begin = self.heir(world)
        world.rows('UPDATE txrelay.attempts SET block = 1000000 WHERE nonce = 1 RETURNING 1')
        world.set(paused=False)
        begin()
        world.wait_alert('is behind block 1000000 of a pending row')
        self.assertEqual(world.pg.value("SELECT txrelay.account_reconcile('alice', 1)"), 1)
        self.heir(world, 'second')()
        self.assertEqual(world.wait_end(pending)[0], 'ok')
        self.goes_on(world, nonce=2)


if __name__ == '__main__':
    unittest.main()
