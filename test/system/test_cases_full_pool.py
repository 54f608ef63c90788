"""Public reports: a full pool, 1016, accepted and never included (test/cases.md)."""
import time
import unittest

from harness import proc
from harness.cases import CaseTest, load_tests, on_submit, refusal  # noqa: F401
from harness.chain import remark


class FamilyD(CaseTest):
    def test_37_39_pool_full_for_twenty_blocks(self):
        """It waits, keeps the order of nonces and goes on when there is room."""
        world = self.world()
        rule, = world.script(on_submit(refusal(1016), times=0))
        start = world.best()
        world.enqueue_many([f'crowded {i}' for i in range(20)])
        world.wait_blocks(20)
        refused = world.script_fired(rule)
        self.assertLessEqual(refused, 20 + world.best() - start + 1,
                             'one a block after the first burst')
        self.assertEqual(world.submits(), [])
        world.chain.rpc('dev_clearScript')
        self.assert_once(world)
        self.assertEqual([s['nonce'] for s in world.submits()], list(range(20)))
        self.assert_one_hash_each(world)

    def through(self, pool, most, *options):
        """100 transactions through a pool of this size, `most` of them to a block: a block is made
        when the pool can fill it, or when the relay has not filled the pool within a while, so it
        needs a block. How many blocks, and what became of the submissions."""
        world = self.world('--pool-limit', str(pool), '--future-limit', str(pool), *options)
        world.set(paused=True)
        calls = [remark(f'narrow {i}') for i in range(100)]
        ids = world.pg.value("SELECT txrelay.enqueue_many('alice', %s)", (calls,))
        world.committed.update(zip(calls, ids))
        blocks, used = 0, 0
        while used < 100:
            deadline = time.monotonic() + 3
            while world.ready_count() < min(most, 100 - used) and time.monotonic() < deadline:
                time.sleep(0.02)
            world.blocks()
            blocks, used = blocks + 1, world.stranger.next_nonce()
        world.set(paused=False)
        self.assert_once(world)
        self.assertEqual({i for _, _, i, *_ in world.attempts()}, set(ids), 'no filler')
        results = world.results()
        print(f'\n  100 transactions through a pool of {pool}: {blocks} blocks, {results}')
        return blocks, results

    def test_40_hundred_transactions_pool_of_eight(self):
        """One too many costs the whole sequence, because the pool throws out the oldest with all
        that depend on it. The relay finds out how much goes in: 13 blocks are the fewest, and the
        first burst alone costs some more."""
        blocks, results = self.through(8, 8)
        self.assertLessEqual(blocks, 20)
        self.assertLessEqual(results['1016'], 3)
        self.assertLessEqual(sum(results.values()) - results['ok'], 30)
        self.assertLess(sum(results.values()), 150)

    def test_the_limit_is_remembered(self):
        """A pool of 20, blocks of 10, and 100 transactions: ten blocks, and at most two to find
        out what goes in."""
        blocks, results = self.through(20, 10, '--block-max-extrinsics', '10')
        self.assertLessEqual(blocks, 12)
        self.assertLessEqual(results['1016'], 3)
        self.assertLess(sum(results.values()), 200)

    def test_41_accepted_then_evicted_without_a_word(self):
        """The hash was answered, then the node forgot it: the same bytes again while their era
        lives."""
        world = self.world()
        world.script(on_submit('accept_and_drop'),
                     {'match': {'status': '*', 'times': 0}, 'action': 'omit'})
        world.enqueue('evicted')
        self.assert_once(world)
        submits = world.submits()
        self.assertEqual(len(submits), 2)
        self.assert_one_hash_each(world)


if __name__ == '__main__':
    unittest.main()
