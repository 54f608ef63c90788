"""A load balancer over nodes of different heights: a block that one has and the other does not,
heights, nonces and pools that go back and forth. The relay sends nothing twice, ends nothing
wrongly, and asks the nodes no more often than its pace allows."""
import unittest

from harness import proc
from harness.balancer import Balancer
from harness.cases import CaseTest, load_tests  # noqa: F401
from harness.liar import Liar

COUNT = 40


class BalancerTest(CaseTest):
    def balanced(self, *behind, seed=1, options=()):
        """`COUNT` transactions by way of the balancer, one after another and together."""
        world = self.world('--block-ms', '200', *options, start=False)
        balancer = Balancer(world.chain, behind, seed)
        liar = Liar(world.chain.ws, balancer.lie)
        liar.reply = balancer.reply
        self.addCleanup(liar.close)
        relay = world.relay('one', endpoints=[liar.url])
        world.wait_leader(relay)
        start = world.best()
        for i in range(COUNT // 2):
            best = world.best()
            world.enqueue(f'one after another {i}')
            proc.wait_for('a block', lambda best=best: world.best() > best)
        world.enqueue_many([f'together {i}' for i in range(COUNT // 2)])
        self.assert_once(world)
        self.assertIsNone(liar.error)
        self.assertEqual(liar.accepted, 1, 'one connection')
        # 5 to 7 of a transaction and its blocks.
        self.assertLess(sum(liar.asked.values()), 10 * (COUNT + world.best() - start),
                        liar.asked.most_common())

    def test_one_of_three_is_behind(self):
        self.balanced(0, 0, 2)

    def test_all_are_behind_each_other(self):
        self.balanced(0, 1, 3)


if __name__ == '__main__':
    unittest.main()
