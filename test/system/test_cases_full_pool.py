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
        self.assertLessEqual(refused, 20 + world.best() - start + 1, 'one a block after the first burst')
        self.assertEqual(world.submits(), [])
        world.chain.rpc('dev_clearScript')
        self.assert_once(world)
        self.assertEqual([s['nonce'] for s in world.submits()], list(range(20)))
        self.assert_one_hash_each(world)

    def test_40_hundred_transactions_pool_of_eight(self):
        """One too many costs the whole sequence, because the pool throws out the oldest with all that depend on it. The
        relay finds out how much goes in: nothing is lost, and what was sent in vain stays within bounds."""
        # Blocks come by the clock: slow ones, so that a busy machine does not count as a slow relay.
        world = self.world('--pool-limit', '8', '--future-limit', '8', '--block-ms', '300')
        calls = [remark(f'narrow {i}') for i in range(100)]
        ids = world.pg.value("SELECT txrelay.enqueue_many('alice', %s)", (calls,))
        world.committed.update(zip(calls, ids))
        start = world.best()
        self.assert_once(world)
        took = world.pg.value('SELECT max(block_number) FROM txrelay.finished_transactions') - start
        print(f'\n  40: 100 transactions through a pool of 8: {took} blocks, {world.results()}')
        self.assertLess(len(world.submits()), 1000)
        self.assertLess(took, 100, 'slower than one by one')
        self.assertEqual({i for _, _, i, *_ in world.attempts()}, set(ids), 'no filler')

    def test_f6_the_limit_is_remembered(self):
        """A pool of 20, blocks of 10, and 100 transactions: ten blocks, and at most two to find out what goes in. A block is
        made when the pool can fill it, or when the relay has not filled the pool within a while, so it needs a block."""
        world = self.world('--pool-limit', '20', '--future-limit', '20', '--block-max-extrinsics', '10')
        world.set(paused=True)
        calls = [remark(f'narrow {i}') for i in range(100)]
        ids = world.pg.value("SELECT txrelay.enqueue_many('alice', %s)", (calls,))
        world.committed.update(zip(calls, ids))
        blocks, used = 0, 0
        while used < 100:
            deadline = time.monotonic() + 3
            while world.ready_count() < min(10, 100 - used) and time.monotonic() < deadline:
                time.sleep(0.02)
            world.blocks()
            blocks, used = blocks + 1, world.stranger.next_nonce()
        world.set(paused=False)
        self.assert_once(world)
        results = world.results()
        print(f'\n  F6: 100 transactions through a pool of 20: {blocks} blocks, {results}')
        self.assertLessEqual(blocks, 12)
        self.assertLessEqual(results['1016'], 3)
        self.assertLess(len(world.submits()), 200)

    def test_41_accepted_then_evicted_without_a_word(self):
        """The hash was answered, then the node forgot it: the same bytes again while their era lives."""
        world = self.world()
        world.script(on_submit('accept_and_drop'), {'match': {'status': '*', 'times': 0}, 'action': 'omit'})
        world.enqueue('evicted')
        self.assert_once(world)
        submits = world.submits()
        self.assertEqual(len(submits), 2)
        self.assert_one_hash_each(world)


if __name__ == '__main__':
    unittest.main()
