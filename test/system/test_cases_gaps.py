"""Public reports: gaps, the future queue, sequences that are stuck (test/cases.md)."""
import re
import unittest

from harness import proc
from harness.cases import CaseTest, chopsticks, load_tests, on_submit  # noqa: F401
from harness.chain import remark

SILENT = {'match': {'status': '*', 'times': 0}, 'action': 'omit'}


def fillers(world):
    return [a for a in world.attempts() if a[2] is None]


class FamilyF(CaseTest):
    def reorg_takes_the_first(self, *rules):
        """n is in a block, n+1 and n+2 in the pool; the block is lost and n is nowhere."""
        world = self.world('--finality-lag', '4')
        world.wait_blocks(5)
        world.script(*rules)
        world.set(paused=True)
        first, second = world.enqueue_many(['lost side', 'waits 1'])
        world.wait_pool(2)
        world.script({'match': {'include': True, 'nonce': 1, 'times': 2}, 'action': 'skip'})
        world.blocks(2)
        world.wait_state(first, 'in_block')
        world.enqueue('waits 2')
        world.wait_pool(2)
        world.chain.rpc('dev_reorg', {'depth': 2, 'keep': False, 'resubmit': False})
        start = world.best()
        world.set(paused=False)
        world.wait_state(second, 'in_block', 'finalized')
        took = world.best() - start
        self.assert_once(world)
        self.assertLessEqual(took, 30, 'blocks to heal')
        self.assertEqual(fillers(world), [])

    def test_46_75_two_block_fork_loses_the_first(self):
        self.reorg_takes_the_first()

    def test_46_48_the_same_without_a_word(self):
        self.reorg_takes_the_first(*({'match': {'status': s, 'times': 0}, 'action': 'omit'}
                                     for s in ('retracted', 'future', 'ready', 'broadcast')))

    def test_49_four_blocks_worth_at_once(self):
        """The author leaves out one in twenty; all of them are finalized, each once."""
        world = self.world('--block-max-extrinsics', '10')
        world.script({'match': {'include': True, 'percent': 5, 'times': 0}, 'action': 'skip'})
        world.enqueue_many([f'wide {i}' for i in range(40)])
        self.assert_once(world)
        self.assert_one_hash_each(world)

    def test_50_65_68_114_one_invalid_among_fifty(self):
        """n can never be included: it ends with the node's reason, one filler takes its nonce, the
        rest proceeds."""
        world = self.world()
        world.script(on_submit({'verdict': 'Call'}, nonce=25))
        txs = world.enqueue_many([f'wide {i}' for i in range(50)])
        figures = world.settle()
        self.assertEqual((figures['finalized'], figures['failed']), (49, 1))
        outcome, error = world.end(txs[25])
        self.assertEqual(outcome, 'failed')
        self.assertRegex(error, '(?i)call')
        self.assertEqual(fillers(world), [])
        self.assertEqual([h['filler'] for h in world.history(txs[25])], [False, True])
        self.assertEqual(world.next_nonce(), 50)

    def test_51_58_63_twenty_four_dropped(self):
        """The node loses 24 that it had taken, without a word; a new one comes at +24."""
        world = self.world()
        world.set(paused=True)
        world.enqueue_many([f'dropped {i}' for i in range(24)])
        world.wait_pool(24)
        world.chain.rpc('dev_dropPool', {})
        tx = world.enqueue('on top')
        world.set(paused=False)
        self.assert_once(world)
        self.assertEqual(world.row(tx)['nonce'], 24)
        self.assertEqual(fillers(world), [])
        self.assert_one_hash_each(world)

    def test_58_59_63_two_of_ten_lost_after_ok(self):
        world = self.world()
        world.script(*(on_submit('accept_and_drop', nonce=n) for n in (3, 7)))
        world.script(*({'match': {'status': '*', 'nonce': n, 'times': 0}, 'action': 'omit'}
                       for n in (3, 7)))
        world.set(paused=True)
        world.enqueue_many([f'confirmed {i}' for i in range(10)])
        self.wait_owned(world, 10, 10)
        world.set(paused=False)
        self.assert_once(world)
        self.assert_one_hash_each(world)
        self.wait_owned(world, 10, 0)

    def wait_owned(self, world, next_nonce, unused):
        """The relay's status: its next nonce, and how many below it no block has used."""
        def shown():
            account = world.relays[0].status()['accounts'][0]
            return account['next_nonce'], account['open']
        proc.wait_for(f'the status {next_nonce}, {unused}', lambda: shown() == (next_nonce, unused))

        def measured():
            text = world.relays[0].control({'cmd': 'metrics'})['text']
            return tuple(int(re.search(rf'^txrelay_{name}{{account="alice"}} (\d+)$', text,
                                       re.M)[1])
                         for name in ('next_nonce', 'in_flight'))
        proc.wait_for(f'the metrics {next_nonce}, {unused}',
                      lambda: measured() == (next_nonce, unused))

    def test_53_54_counter_raised_while_it_runs(self):
        """Seven above with nothing behind it: noticed at the next admission, taken back, no hole
        and no filler."""
        world = self.world()
        world.enqueue('before')
        self.assert_once(world)
        world.rows("UPDATE txrelay.accounts SET next_nonce = next_nonce + 7")
        tx = world.enqueue('after')
        self.assert_once(world)
        self.assertEqual(world.row(tx)['nonce'], 1)
        self.assertEqual(fillers(world), [])
        self.assertEqual(world.next_nonce(), 2)

    def test_53_54_counter_raised_while_it_is_down(self):
        world = self.world()
        world.enqueue('before')
        self.assert_once(world)
        world.relays[0].kill()
        world.rows("UPDATE txrelay.accounts SET next_nonce = next_nonce + 7")
        heir = world.relay('heir')
        world.wait_leader(heir)
        tx = world.enqueue('after')
        self.assert_once(world)
        self.assertEqual(world.row(tx)['nonce'], 1)
        self.assertEqual(fillers(world), [])
        world.wait_alert('going back')

    def test_54_64_twenty_fail_before_they_are_sent(self):
        """Twenty calls that cannot be signed take no nonce; twenty that the connection did not
        take keep theirs."""
        world = self.world()
        bad = [world.enqueue_raw(b'\xfe' + bytes([i])) for i in range(20)]
        for tx in bad:
            self.assertEqual(world.wait_end(tx)[0], 'failed')
        world.script(on_submit('cut_before', times=3))
        good = world.enqueue_many([f'cut {i}' for i in range(20)])
        figures = world.settle()
        self.assertEqual((figures['finalized'], figures['failed']), (20, 20))
        self.assertEqual([world.row(t)['nonce'] for t in good], list(range(20)))
        self.assertEqual(world.next_nonce(), 20)
        self.assert_one_hash_each(world)

    def test_56_the_lowest_is_lost(self):
        """Exactly the head of the line is lost and nobody says so, not the node and no wake-up;
        those behind it wait in the future queue. The look at the chain begins at the lowest open
        nonce."""
        world = self.world()
        world.script(on_submit('accept_and_drop', nonce=0),
                     {'match': {'status': '*', 'nonce': 0, 'times': 0}, 'action': 'end'})
        world.enqueue_many([f'line {i}' for i in range(20)])
        self.assert_once(world)
        seen, again = set(), []
        for s in world.submits():
            again += [s['nonce']] if s['nonce'] in seen else []
            seen.add(s['nonce'])
        self.assertEqual(again[:1], [0])
        self.assert_one_hash_each(world)

    def test_70_always_in_the_future(self):
        """A node that answers 'future' to everything: one submission a block at most, an alert,
        and no end."""
        world = self.world()
        rule, = world.script(on_submit({'verdict': 'Future'}, times=0))
        start = world.best()
        tx = world.enqueue('too high')
        world.wait_blocks(15)
        tried, passed = world.script_fired(rule), world.best() - start
        self.assertLessEqual(tried, passed + 2)
        self.assertIsNone(world.row(tx)['outcome'])
        world.wait_alert('nonce 0')
        world.chain.rpc('dev_clearScript')
        self.assert_once(world)


FamilyFChopsticks = chopsticks(FamilyF)

if __name__ == '__main__':
    unittest.main()
