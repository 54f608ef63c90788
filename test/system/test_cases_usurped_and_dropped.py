"""Public reports: usurped, dropped, lost statuses, reconnects (test/cases.md)."""
import unittest

from harness import proc
from harness.cases import CaseTest, chopsticks, load_tests, on_submit  # noqa: F401
from harness.chain import remark


class FamilyG(CaseTest):
    def test_72_usurped_by_a_user_of_the_key(self):
        """A command-line user sends the same nonce with a higher tip. Found, told, on record; ours
        is not on the chain (another nonce for it is a policy: test_policy)."""
        world = self.world()
        world.set(paused=True)
        first, second = world.enqueue_many(['ours', 'behind it'])
        world.wait_pool(2)
        foreign = world.foreign_send(0, remark('command line'), tip=10 ** 6)
        world.set(paused=False)
        figures = world.settle()
        self.assertEqual((figures['finalized'], figures['failed']), (1, 1))
        outcome, error = world.end(first)
        self.assertEqual(outcome, 'usurped')
        self.assertIn(foreign.hex(), error)
        self.assertEqual(world.end(second)[0], 'ok')
        self.assertEqual(world.attempts(0)[0][4], 'usurped')
        world.wait_alert('did not sign')

    def silent(self, *rules):
        world = self.world()
        world.script(*rules)
        world.enqueue_many([f'unheard {i}' for i in range(5)])
        self.assert_once(world)
        self.assert_one_hash_each(world)
        self.assertEqual(len(world.submits()), 5)

    def test_73_the_subscription_stops_without_an_end(self):
        self.silent({'match': {'status': '*', 'nth': 2, 'times': 0}, 'action': 'end'})

    def test_80_finalized_never_comes(self):
        self.silent({'match': {'status': 'finalized', 'times': 0}, 'action': 'omit'})

    def test_81_nothing_after_in_block(self):
        self.silent({'match': {'status': 'inBlock', 'times': 0}, 'action': 'end'})

    def test_73_81_nothing_at_all(self):
        self.silent({'match': {'status': '*', 'times': 0}, 'action': 'end'})

    def test_76_connection_lost(self):
        """The watch is lost with the connection; nothing is sent again, the end is found."""
        world = self.world()
        world.set(paused=True)
        world.enqueue_many([f'watched {i}' for i in range(5)])
        world.wait_pool(5)
        world.chain.rpc('dev_cutConnections')
        world.relays[0].wait_log('chain.down')
        world.set(paused=False)
        self.assert_once(world)
        self.assertEqual(len(world.submits()), 5)

    def test_77_invalid_is_not_the_end(self):
        """The pool says invalid; then the same bytes are in a block after all."""
        world = self.world()
        world.set(paused=True)
        tx = world.enqueue('declared dead')
        found, = world.wait_pool(1)
        world.chain.rpc('dev_invalidate', {'hash': '0x' + found.hash.hex()})
        world.chain.rpc('dev_clearBans')
        proc.wait_for('the follower to be told', lambda: 'invalid' in world.told(tx))
        if not world.ready_count():
            world.chain.rpc('author_submitExtrinsic', '0x' + found.raw.hex())
        world.set(paused=False)
        self.assert_once(world)
        self.assertEqual(world.attempts(0)[0][4], 'included')
        self.assert_one_hash_each(world)

    def test_82_finalized_heads_are_skipped(self):
        """Six blocks are finalized in one round: only the last header is told, and no status. The
        heights between are read."""
        world = self.world()
        world.script({'match': {'status': '*', 'times': 0}, 'action': 'end'})
        world.set(finality=False)
        for i in range(6):
            tx = world.enqueue(f'height {i}')
            proc.wait_for('its block', lambda: world.stranger.next_nonce() == i + 1
                          and not world.ready_count())
        world.set(finality=True)
        self.assert_once(world)
        self.assertEqual(len(world.submits()), 6)
        self.assertEqual(world.end(tx)[0], 'ok')

    def test_83_85_one_call_is_never_answered(self):
        """Traffic flows, one submission is never answered, accepted or not: its own deadline, then
        the pool is asked."""
        world = self.world(call_timeout_ms=700)
        world.script(on_submit('no_reply', nonce=1), on_submit('ignore', nonce=3))
        world.enqueue_many([f'mute {i}' for i in range(6)])
        self.assert_once(world)
        self.assert_one_hash_each(world)

    def test_85_connection_goes_dead_after_a_submission(self):
        world = self.world(call_timeout_ms=700)
        world.script(on_submit('freeze', nonce=1))
        world.enqueue_many([f'frozen {i}' for i in range(4)])
        self.assert_once(world)
        self.assert_one_hash_each(world)


FamilyGChopsticks = chopsticks(FamilyG)

if __name__ == '__main__':
    unittest.main()
