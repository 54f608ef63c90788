"""Public reports: re-organisations and finality (test/cases.md)."""
import unittest

from harness import proc
from harness.cases import CaseTest, chopsticks, load_tests  # noqa: F401


class FamilyJ(CaseTest):
    def test_108_finalized_is_told_before_in_block(self):
        world = self.world()
        world.script({'match': {'status': 'inBlock', 'times': 0}, 'action': {'delay_ms': 700}})
        world.enqueue_many([f'swapped {i}' for i in range(5)])
        self.assert_once(world)
        self.assertEqual(len(world.submits()), 5)

    def deep(self, **options):
        """In a block, then the last three blocks are replaced. 'In block' may be withdrawn; after
        'finalized' comes nothing else."""
        world = self.world('--finality-lag', '6')
        world.wait_blocks(7)
        # Blocks go on, because a relay that loads the account again learns of a block with the next
        # one.
        world.set(finality=False)
        start = world.best()
        txs = world.enqueue_many([f'moved {i}' for i in range(3)])
        for tx in txs:
            world.wait_state(tx, 'in_block')
        world.set(paused=True)
        world.chain.rpc('dev_reorg', {'depth': max(3, world.best() - start), **options})
        world.set(finality=True)
        world.set(paused=False)
        self.assert_once(world)
        for tx in txs:
            told = world.told(tx)
            self.assertEqual(set(told[told.index('finalized'):]), {'finalized'}, told)
            self.assertIsNone(world.row(tx)['error'])
        self.assertFalse([a for a in world.alerts() if 'used' in a])
        return world, txs

    def test_109_reorg_of_three_with_the_same_transactions(self):
        self.deep()

    def test_109_110_reorg_of_three_that_takes_them_back(self):
        """Retracted, pending again, in another block: never an error."""
        world, txs = self.deep(keep=False)
        self.assertEqual(world.results(), {'ok': 3})

    def test_109_reorg_of_three_that_loses_them(self):
        world, _ = self.deep(keep=False, resubmit=False)
        self.assertEqual({a[2] for a in world.attempts()} - {None}, set(world.committed.values()))


FamilyJChopsticks = chopsticks(FamilyJ)

if __name__ == '__main__':
    unittest.main()
