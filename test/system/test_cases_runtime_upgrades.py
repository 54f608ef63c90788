"""Public reports: runtime upgrades (test/cases.md)."""
import unittest

from harness import proc
from harness.cases import CaseTest, chopsticks, load_tests  # noqa: F401


class FamilyI(CaseTest):
    def upgrade(self, told=True, **options):
        """Five wait in the pool, the runtime changes, five more come. No restart, the same nonces,
        at most one wrong submission for each."""
        world = self.world()
        world.set(paused=True)
        txs = world.enqueue_many([f'pooled {i}' for i in range(5)])
        world.wait_pool(5)
        pid = world.relays[0].process.pid
        txs += [world.enqueue(f'unsent {i}') for i in range(5)] if options.pop('race',
                                                                               False) else []
        world.chain.rpc('dev_upgrade', {'silent': not told, **options})
        txs += world.enqueue_many([f'after {i}' for i in range(5)])
        world.set(paused=False)
        self.assert_once(world)
        self.assertEqual([world.row(t)['nonce'] for t in txs], list(range(len(txs))))
        self.assertEqual(world.relays[0].process.pid, pid)
        wrong = [s for s in world.submits() if s['code']]
        self.assertLessEqual(len(wrong), len(txs) * (1 if told else 3), wrong)
        self.assertNotIn(None, [a[2] for a in world.attempts()], 'no filler')
        spec = world.rows("SELECT DISTINCT spec_version FROM txrelay.attempts "
                          "WHERE outcome = 'included'")
        self.assertEqual(spec, [(101,)])
        return world

    def test_98_99_100_103_104_spec_version(self):
        world = self.upgrade()
        self.assertIn('chain.runtime', world.relays[0].text())

    def test_98_104_in_the_middle_of_a_burst(self):
        self.upgrade(race=True)

    def test_101_the_node_does_not_tell(self):
        """No notification: asked for after each bad proof. What was signed before the answer is
        wrong once more."""
        self.upgrade(told=False)

    def test_102_transaction_version(self):
        """The encoding of calls may have changed, so nobody knows what those that wait mean: said
        loudly, and nothing is signed, sent or given a nonce until an operator resumes; then all of
        them go on under the new version."""
        world = self.world()
        world.set(paused=True)
        txs = world.enqueue_many([f'pooled {i}' for i in range(3)])
        world.wait_pool(3)
        world.chain.rpc('dev_upgrade', {'tx': 2})
        world.wait_alert('transaction_version is 2 at block .* and calls were accepted for 1')
        txs += world.enqueue_many([f'after {i}' for i in range(3)])
        sent, attempts = len(world.submits()), len(world.attempts())
        world.set(paused=False)
        world.wait_suspension('transaction_version')
        world.wait_blocks(10)
        self.assertEqual((len(world.submits()), len(world.attempts())), (sent, attempts))
        self.assertEqual([world.row(t)['nonce'] for t in txs[3:]], [None] * 3)
        self.assertEqual(proc.wait_for('the account to be shown', world.blocked)['suspension'],
                         'transaction_version')
        world.resume()
        self.assert_once(world)
        self.assertIsNone(world.suspension())
        self.assertEqual([world.row(t)['nonce'] for t in txs], list(range(6)))
        self.assertEqual(world.rows("SELECT DISTINCT transaction_version FROM txrelay.attempts "
                                    "WHERE outcome = 'included'"), [(2,)])

    def test_102_transaction_version_while_it_is_down(self):
        """Found at the start: the account was used under another version."""
        world = self.world()
        world.enqueue('before')
        self.assert_once(world)
        world.relays[0].kill()
        world.chain.rpc('dev_upgrade', {'tx': 2})
        world.wait_blocks(3)
        world.wait_leader(world.relay('heir'))
        tx = world.enqueue('after')
        world.wait_suspension('transaction_version')
        world.wait_blocks(5)
        self.assertEqual((world.row(tx)['nonce'], len(world.submits())), (None, 1))
        world.resume()
        self.assert_once(world)
        self.assertEqual(world.row(tx)['nonce'], 1)

    def test_22_98_three_upgrades_in_a_row(self):
        world = self.world()
        for round_ in range(3):
            world.enqueue_many([f'round {round_} {i}' for i in range(5)])
            world.chain.rpc('dev_upgrade', {'silent': round_ == 1})
        self.assert_once(world)
        self.assertNotIn(None, [a[2] for a in world.attempts()], 'no filler')


FamilyIChopsticks = chopsticks(FamilyI)

if __name__ == '__main__':
    unittest.main()
