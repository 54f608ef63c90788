"""Public reports: dispatch results, fees (test/cases.md). Payment: test_cases_bans_and_payment,
test_30_112_115."""
import unittest

from harness import proc
# noqa: F401
from harness.cases import SUBMIT, CaseTest, chopsticks, invalid, load_tests, on_submit, refusal
from harness.chain import put_compact, remark

BOB_ID = bytes.fromhex('8eaf04151687736326c9fea17e25fc5287613693c912909cb226aa4794f26a48')


def transfer(amount):
    return b'\x0a\x03\x00' + BOB_ID + put_compact(amount)


def calls(index, *items):
    return b'\x28' + bytes([index]) + put_compact(len(items)) + b''.join(items)


TOO_MUCH = 10 ** 30
PAYMENT = 'Inability to pay some fees (e.g. account balance too low)'
BAD_PROOF = 'Transaction has a bad signature'
FUTURE = 'Transaction will be valid in the future'


class FamilyL(CaseTest):
    def test_119_120_batch_that_stops(self):
        """The extrinsic succeeds, item 2 does not: recorded as a failure with the item and its
        error. The same for the other two kinds of batch, and for what sudo carries."""
        world = self.world()
        good = remark('item')
        expected = {
            calls(0, good, good, transfer(TOO_MUCH),
                  good): r'^Utility\.BatchInterrupted\[2\]: (Balances|Token)\.\w+$',
            calls(4, good, transfer(TOO_MUCH),
                  good): r'^Utility\.ItemFailed.*: (Balances|Token)\.\w+$',
            calls(2, good, transfer(TOO_MUCH)): r'^(Balances|Token)\.\w+$',
            b'\x32\x00' + transfer(TOO_MUCH): r'^Sudo\.Sudid.*: (Balances|Token)\.\w+$',
        }
        txs = {world.enqueue_raw(call): error for call, error in expected.items()}
        fine = world.enqueue_raw(calls(0, good, remark('item 2')))
        figures = world.settle()
        self.assertEqual((figures['finalized'], figures['failed']), (1, 4))
        for tx, pattern in txs.items():
            outcome, error = world.end(tx)
            self.assertEqual(outcome, 'dispatch_error')
            self.assertRegex(error, pattern)
        self.assertEqual(world.end(fine), ('ok', None))

    def test_67_122_failed_dispatch_is_an_end(self):
        """Finalized, failed, the nonce is used, never sent again."""
        world = self.world()
        tx = world.enqueue_raw(transfer(TOO_MUCH))
        after = world.enqueue('after it')
        world.settle()
        world.wait_blocks(8)
        figures = world.settle()
        self.assertEqual((figures['finalized'], figures['failed']), (1, 1))
        self.assertEqual(world.row(tx)['state'], 'finalized')
        self.assertEqual((world.row(tx)['nonce'], world.row(after)['nonce']), (0, 1))
        self.assertEqual(len(world.submits()), 2)

    def test_117_a_timeout_keeps_the_nonce(self):
        """Four submissions in a row time out (a higher tip is a policy: test_fees)."""
        world = self.world(call_timeout_ms=400)
        world.script({'match': {'method': SUBMIT, 'times': 4}, 'action': 'ignore'})
        tx = world.enqueue('slow node')
        self.assert_once(world)
        self.assertEqual(world.row(tx)['nonce'], 0)
        self.assert_one_hash_each(world)


    def test_123_five_errors_with_count_and_time(self):
        """The node refuses one transaction in five ways, each more than once; it gets in after
        all. Its history lists each error with its count, when it was signed and when that ended."""
        world = self.world()
        errors = {'temporarily banned': refusal(1012), 'limit': refusal(1016),
                  'pay some fees': invalid(PAYMENT),
                  'bad signature': invalid(BAD_PROOF), 'valid in the future': invalid(FUTURE)}
        counts = dict(zip(errors, (2, 3, 2, 2, 3)))
        rules = {e: world.script(on_submit(action, nonce=0, times=counts[e]))[0]
                 for e, action in errors.items()}
        tx, behind = world.enqueue_many(['refused in five ways', 'behind it'])
        self.assert_once(world)
        history = world.history(tx)
        for part, rule in rules.items():
            self.assertEqual(world.script_fired(rule), counts[part], part)
            rows = [h for h in history if h['error'] and part in h['error']]
            self.assertEqual(sum(h['error_count'] for h in rows), counts[part], (part, history))
            self.assertEqual({h['nonce'] for h in rows}, {0})
        self.assertTrue(all(h['created_at'] and h['ended_at'] >= h['created_at'] for h in history),
                        history)
        self.assertEqual([h['attempt'] for h in history], sorted(h['attempt'] for h in history))
        self.assertEqual([h['outcome'] for h in history if h['outcome'] == 'included'],
                         ['included'])
        self.assertEqual([(h['error'], h['outcome']) for h in world.history(behind)],
                         [(None, 'included')])


FamilyLChopsticks = chopsticks(FamilyL)

if __name__ == '__main__':
    unittest.main()
