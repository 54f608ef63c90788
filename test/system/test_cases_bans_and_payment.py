"""Public reports: bans, 1012 (test/cases.md)."""
import unittest

from harness import proc
from harness.cases import SUBMIT, CaseTest, chopsticks, load_tests, on_submit, refusal  # noqa: F401

ALICE = '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY'


class FamilyC(CaseTest):
    def test_30_112_115_cannot_pay_then_funded(self):
        """The account has nothing to pay with for a while. One submission a block at most, an
        alert, and it goes on by itself when it is funded although the first bytes are banned for
        half an hour: same nonce, new bytes."""
        world = self.world()
        world.chain.rpc('dev_setBalance', {'account': ALICE, 'free': 0})
        start = world.best()
        tx, after = world.enqueue_many(['unpaid', 'behind it'])
        world.wait_alert('cannot pay for nonce 0')
        world.wait_blocks(20)
        tried, passed = len(world.submits()), world.best() - start
        self.assertLessEqual(tried, passed + 2)
        self.assertGreaterEqual(tried, 3)
        self.assertIsNone(world.row(tx)['outcome'])
        world.chain.rpc('dev_setBalance', {'account': ALICE, 'free': 10 ** 18})
        self.assert_once(world)
        self.assertEqual((world.row(tx)['nonce'], world.row(after)['nonce']), (0, 1))

    def test_31_banned_after_it_left_the_pool(self):
        """Invalid at a block import, then 1012 for the same bytes: new bytes at the same nonce, no
        filler."""
        world = self.world()
        world.set(paused=True)
        tx = world.enqueue('thrown out')
        found, = world.wait_pool(1)
        world.chain.rpc('dev_invalidate', {'hash': '0x' + found.hash.hex()})
        world.set(paused=False)
        self.assert_once(world)
        attempts = world.attempts(0)
        self.assertEqual({a[2] for a in attempts}, {tx}, 'no filler')
        self.assertEqual(attempts[-1][4], 'included')
        self.assertNotEqual(attempts[-1][3], found.hash)

    def test_32_44_45_same_bytes_again(self):
        """The pool denies that it has it, so the relay sends the same bytes again and hears 1013,
        then 1012. Both mean: it is there. No watch comes of it; blocks tell the end."""
        world = self.world()
        world.set(paused=True)
        world.script({'match': {'method': 'author_pendingExtrinsics', 'times': 6},
                      'action': {'result': []}})
        world.script({'match': {'status': 'broadcast', 'times': 0}, 'action': 'omit'})
        tx = world.enqueue('there already')
        world.wait_pool(1)
        world.chain.rpc('dev_cutConnections')
        proc.wait_for('the same bytes again', lambda: world.results().get('1013', 0) >= 1)
        self.assertIsNone(world.row(tx)['outcome'])
        world.set(paused=False)
        self.assert_once(world)
        self.assertEqual(len(world.attempts(0)), 1)
        self.assert_one_hash_each(world)

    def test_35_banned_for_long(self):
        """Fifteen refusals with 1012, then it goes on by itself; never two submissions in one
        block."""
        world = self.world()
        rule, = world.script(on_submit(refusal(1012), times=15))
        start = world.best()
        world.enqueue('banned')
        proc.wait_for('the ban to end', lambda: world.script_fired(rule) == 15)
        passed = world.best() - start
        self.assertGreaterEqual(passed + 2, 15)
        self.assert_once(world)
        self.assertEqual({n for n, *_ in world.attempts()}, {0})


FamilyCChopsticks = chopsticks(FamilyC)

if __name__ == '__main__':
    unittest.main()
