"""Errors that are answered for bytes that were passed on (docs/answers.md): what is then stopped
ends as the chain says, and so does what is refused as invalid."""
import unittest

from harness import proc
from harness.cases import CaseTest, invalid, load_tests, on_submit, refusal  # noqa: F401


def error(code, message):
    return {'error': {'code': code, 'message': message}}


TIMEOUT = error(-32000, '504 Gateway Timeout')
INTERNAL = error(-32603, 'Internal error')
# What a node answers for bytes that it takes to be invalid for good.
INVALID = {'lookup': error(1011, 'Unknown Transaction Validity: CannotLookup'),
           'call': invalid('Transaction call is not expected')}


class Answers(CaseTest):
    def passed_on(self, answer, **options):
        """A world whose node has the transaction's bytes in its pool, while the relay is answered
        this for all that it submits. No block comes before a filler is signed."""
        world = self.world('--finality-lag', '12')
        world.script(on_submit(answer, times=0))
        world.set(paused=True)
        tx = world.put('taken', **options)
        proc.wait_for('a refusal', lambda: any(r['error'] for r in world.history(tx)))
        world.chain.rpc('author_submitExtrinsic', '0x' + world.attempts(0)[0][6].hex())
        return world, tx

    def assert_chain_decides(self, world, tx):
        proc.wait_for('a filler', lambda: len(world.attempts(0)) > 1)
        world.set(paused=False)
        self.assertEqual(world.wait_end(tx), ('ok', None))
        world.chain.rpc('dev_clearScript')
        self.assertEqual(world.settle()['finalized'], 1)

    def test_cancelled_after_a_gateways_timeout(self):
        world, tx = self.passed_on(TIMEOUT)
        self.assertEqual(world.cancel(tx), 'requested')
        self.assert_chain_decides(world, tx)

    def test_deadline_after_an_internal_error(self):
        world, tx = self.passed_on(INTERNAL, deadline=("clock_timestamp() + interval '1500 ms'",))
        self.assert_chain_decides(world, tx)

    def test_skipped_after_a_full_pool(self):
        """A pool announces bytes to its peers before it drops them for its limit (1016)."""
        world = self.world('--finality-lag', '12')
        world.policy(skip_after_blocks=3)
        world.script(on_submit(refusal(1016), times=0))
        tx = world.enqueue('taken')
        raw = proc.wait_for('its bytes', lambda: world.attempts(0))[0][6]
        proc.wait_for('a filler', lambda: len(world.attempts(0)) > 1)
        world.chain.rpc('author_submitExtrinsic', '0x' + raw.hex())
        self.assert_chain_decides(world, tx)

    def test_refused_as_invalid_and_taken(self):
        """The record of a refusal waits for the chain, where the bytes win or the filler does."""
        for name, answer in INVALID.items():
            with self.subTest(name):
                world, tx = self.passed_on(answer)
                self.assert_chain_decides(world, tx)

    def test_refused_as_invalid_and_not_taken(self):
        world = self.world()
        world.script(on_submit(INVALID['lookup'], nonce=0))
        tx, behind = world.enqueue_many(['refused', 'behind it'])
        outcome, error = world.wait_end(tx)
        self.assertEqual(outcome, 'failed')
        self.assertRegex(error, 'Unknown Transaction Validity')
        self.assertEqual([h['filler'] for h in world.history(tx)], [False, True])
        self.assertIsNotNone(world.pg.value('SELECT block_number FROM '
                                            'txrelay.finished_transactions WHERE id = %s', (tx,)))
        world.settle()
        self.assertEqual((world.end(behind)[0], world.row(behind)['nonce']), ('ok', 1))

    def test_a_filler_wins_the_race(self):
        """The node took nothing: the filler that is signed against the bytes gets in, and the
        record says so."""
        world = self.world()
        rule, = world.script(on_submit(TIMEOUT, times=0))
        tx, behind = world.enqueue_many(['not taken', 'behind it'])
        proc.wait_for('a refusal', lambda: any(r['error'] for r in world.history(tx)))
        self.assertEqual(world.cancel(tx), 'requested')
        proc.wait_for('a filler', lambda: any(r['filler'] for r in world.history(tx)))
        self.assertIsNone(world.row(tx)['outcome'])
        world.chain.rpc('dev_clearScript', {'id': rule})
        self.assertEqual(world.wait_end(tx)[0], 'cancelled')
        world.settle()
        self.assertEqual((world.end(behind)[0], world.row(behind)['nonce']), ('ok', 1))


if __name__ == '__main__':
    unittest.main()
