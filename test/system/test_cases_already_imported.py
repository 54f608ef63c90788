"""Public reports: already imported, 1013 (test/cases.md). See also test_cases_bans_and_payment,
test_32_44_45."""
import unittest

from harness import proc
from harness.cases import CaseTest, chopsticks, load_tests, on_submit, refusal  # noqa: F401


class FamilyE(CaseTest):
    def test_44_135_another_node_was_faster(self):
        """The same bytes are in the pool by another way before ours arrive: 1013 is success, the
        transaction goes on."""
        world = self.world()
        world.script(on_submit(refusal(1016)))
        world.set(paused=True)
        tx = world.enqueue('by two ways')
        attempt = proc.wait_for('its bytes', lambda: world.attempts(0))[0]
        world.chain.rpc('author_submitExtrinsic', '0x' + attempt[6].hex())
        world.blocks(1, empty=True)
        proc.wait_for('1013', lambda: world.results().get('1013'))
        self.assertIsNone(world.row(tx)['outcome'])
        world.wait_state(tx, 'ready')
        world.set(paused=False)
        self.assert_once(world)
        self.assertEqual(world.results(), {'ok': 1, '1013': 1})
        self.assertEqual(len(world.attempts(0)), 1)

    def test_45_no_subscription_comes_of_it(self):
        """1013 for each of five, so none is watched: the blocks are read."""
        world = self.world()
        world.set(paused=True)
        rule, = world.script(on_submit('no_reply', times=5))
        world.enqueue_many([f'unwatched {i}' for i in range(5)])
        world.wait_pool(5)
        world.chain.rpc('dev_cutConnections')
        world.relays[0].wait_log('chain.down')
        world.set(paused=False)
        self.assert_once(world)
        self.assertEqual(world.script_fired(rule), 5)
        self.assert_one_hash_each(world)


FamilyEChopsticks = chopsticks(FamilyE)

if __name__ == '__main__':
    unittest.main()
