"""Public reports: stale, outdated, the wrong source of nonces (test/cases.md)."""
import unittest

from harness import proc
# noqa: F401
from harness.cases import CaseTest, chopsticks, load_tests, nonce_questions, on_submit, refusal
from harness.chain import remark

NO_METHOD = {'error': {'code': -32601, 'message': 'Method not found'}}


class FamilyB(CaseTest):
    def test_15_62_foreign_use_at_run_time(self):
        """Five nonces are used outside while the relay runs: found, told, and the next transaction
        is above them."""
        world = self.world()
        world.enqueue('before')
        self.assert_once(world)
        for nonce in range(1, 6):
            world.foreign_send(nonce, remark(f'outside {nonce}'))
        world.wait_alert('account nonce is 6')
        world.set(paused=True)
        start = world.best()
        tx = world.enqueue('after')
        world.wait_pool(1)
        world.blocks(1)
        world.set(paused=False)
        self.assert_once(world)
        took = world.pg.value(
            'SELECT block_number FROM txrelay.finished_transactions WHERE id = %s', (tx,)) - start
        self.assertEqual(world.row(tx)['nonce'], 6)
        self.assertEqual(world.results(), {'ok': 7})
        self.assertEqual(took, 1, 'the row wants it back within two blocks')

    def test_15_21_foreign_use_while_the_relay_is_down(self):
        """One transaction is consumed by its own bytes while nobody looks, one by a stranger's.
        The first ends by the chain's word without being sent again, the second as usurped; the
        next one is above both."""
        world = self.world()
        world.set(paused=True)
        first, second = world.enqueue_many(['own bytes', 'pushed out'])
        world.wait_pool(2)
        world.relays[0].kill()
        world.foreign_send(1, remark('outside'), tip=10 ** 6)
        world.set(paused=False)
        proc.wait_for('both nonces to be used', lambda: world.stranger.next_nonce() == 2)
        heir = world.relay('heir')
        world.wait_leader(heir)
        after = world.enqueue('after')
        figures = world.settle()
        self.assertEqual((figures['finalized'], figures['failed']), (2, 1))
        self.assertEqual(world.end(first)[0], 'ok')
        self.assertEqual(world.end(second)[0], 'usurped')
        self.assertEqual(world.row(after)['nonce'], 2)
        self.assertEqual([s['nonce'] for s in world.submits()], [0, 1, 1, 2])
        world.wait_alert('did not sign')

    def test_16_finality_lags_five_blocks(self):
        """Each is sent when the one before is in a block that is not final yet."""
        world = self.world('--finality-lag', '5')
        for i in range(3):
            world.wait_state(world.enqueue(f'sequence {i}'), 'in_block', 'finalized')
        self.assert_once(world)
        self.assertEqual(world.results(), {'ok': 3})

    def test_19_five_in_one_block(self):
        world = self.world()
        world.set(paused=True)
        txs = world.enqueue_many([f'together {i}' for i in range(5)])
        world.wait_pool(5)
        world.set(paused=False)
        self.assert_once(world)
        blocks = world.rows('SELECT DISTINCT block_number FROM txrelay.finished_transactions '
                            'WHERE id = ANY (%s)', txs)
        self.assertEqual(len(blocks), 1)
        self.assertEqual([world.row(t)['nonce'] for t in txs], [0, 1, 2, 3, 4])

    def nonce_source(self, *rules, question='pass', **options):
        """The relay takes nonces from its own rows and from the accounts in blocks. It never asks
        a node for the next one, so no answer to that question can matter. question: what the node
        would answer; the rules count how often."""
        world = self.world()
        world.set(**options)
        ids = world.script(*rules, *nonce_questions(question))
        world.enqueue_many([f'source {i}' for i in range(10)])
        self.assert_once(world)
        world.relays[0].kill()
        heir = world.relay('heir')
        world.wait_leader(heir)
        world.enqueue_many([f'later {i}' for i in range(10)])
        self.assert_once(world)
        self.assertEqual(world.results(), {'ok': 20})
        self.assert_one_hash_each(world)
        self.assertEqual([world.script_fired(rule) for rule in ids[-2:]], [0, 0],
                         'it asked the node for the next nonce')
        return world, ids

    def test_24_nonce_question_counts_the_pool(self):
        self.nonce_source(pool_blind_nonce=False)

    def test_24_nonce_question_ignores_the_pool(self):
        self.nonce_source(pool_blind_nonce=True)

    def test_25_26_no_nonce_question_at_all(self):
        """Nor does it need a call of the runtime, which the new JSON-RPC has in its place: a relay
        makes one at its start, is refused, and goes on."""
        world, ids = self.nonce_source({'match': {'method': 'state_call', 'times': 0},
                                        'action': NO_METHOD},
                                       question=NO_METHOD)
        self.assertGreaterEqual(world.script_fired(ids[0]), 1, 'the heir made none')

    def test_57_the_nodes_pending_nonce_is_a_phantom(self):
        world, _ = self.nonce_source(question={'result': 99})
        self.assertEqual(sorted({n for n, *_ in world.attempts()}), list(range(20)))

    def test_18_29_restart_with_four_in_the_pool(self):
        """No submission fails after the restart: the pool is asked before anything is sent."""
        world = self.world()
        world.set(paused=True)
        world.enqueue_many([f'pooled {i}' for i in range(4)])
        world.wait_pool(4)
        world.relays[0].kill()
        heir = world.relay('heir')
        world.wait_leader(heir)
        world.enqueue_many([f'new {i}' for i in range(2)])
        world.wait_pool(6)
        world.set(paused=False)
        self.assert_once(world)
        self.assertEqual(world.results(), {'ok': 6})

    def test_22_upgrade_with_three_pending(self):
        """At most one wrong submission each, no 1014."""
        world = self.world()
        world.set(paused=True)
        world.enqueue_many([f'pending {i}' for i in range(3)])
        world.wait_pool(3)
        world.chain.rpc('dev_upgrade', {})
        world.set(paused=False)
        self.assert_once(world)
        wrong = [s for s in world.submits() if s['code']]
        self.assertLessEqual(len(wrong), 3, wrong)
        self.assertNotIn('1014', world.results())
        self.assertEqual({n for n, *_ in world.attempts()}, {0, 1, 2})

    def test_23_each_1010_goes_its_own_way(self):
        """The same code for six causes. Nonces stay as they are; only what can never be included
        ends."""
        ends = {'BadProof': 'ok', 'Stale': 'ok', 'Payment': 'ok', 'AncientBirthBlock': 'ok',
                'Future': 'ok',
                'ExhaustsResources': 'failed'}
        world = self.world()
        for verdict, outcome in ends.items():
            world.script(on_submit({'verdict': verdict}))
            tx = world.enqueue(f'refused {verdict}')
            self.assertEqual(world.wait_end(tx)[0], outcome, verdict)
            if outcome == 'failed':
                self.assertRegex(world.end(tx)[1], '(?i)exhaust')
        last = world.enqueue('last')
        figures = world.settle()
        self.assertEqual((figures['finalized'], figures['failed']), (6, 1))
        self.assertEqual(world.row(last)['nonce'], 6)
        fillers = [tx for tx, in world.rows('SELECT id FROM txrelay.attempts '
                                            'WHERE filler IS NOT NULL')]
        self.assertEqual(len(fillers), 1, 'one filler, for the one that ended')
        self.assertEqual(world.end(fillers[0])[0], 'failed')

    def test_28_either_attempt_closes_the_transaction(self):
        """Two attempts of one transaction; the first one gets in although the second is the
        current one."""
        world = self.world()
        world.script(on_submit(refusal(1012)), on_submit(refusal(1016), times=0))
        tx = world.enqueue('two attempts')
        proc.wait_for('a second attempt', lambda: len(world.attempts(0)) == 2)
        first = world.attempts(0)[0]
        world.chain.rpc('author_submitExtrinsic', '0x' + first[6].hex())
        self.assertEqual(world.wait_end(tx)[0], 'ok')
        world.chain.rpc('dev_clearScript')
        self.assert_once(world)
        self.assertEqual([(a[3] == first[3], a[4]) for a in world.attempts(0)[:2]],
                         [(True, 'included'), (False, 'superseded')])

    def test_29_134_accepted_and_dropped_then_overtaken(self):
        """A lagging node takes our n and loses it; n is used by another. The row is closed and the
        next nonce is the chain's."""
        world = self.world()
        world.script(on_submit('accept_and_drop'),
                     {'match': {'status': '*', 'times': 0}, 'action': 'omit'})
        world.set(paused=True)
        tx = world.enqueue('lost')
        proc.wait_for('it to be sent', lambda: world.submits())
        world.foreign_send(0, remark('outside'))
        world.set(paused=False)
        self.assertEqual(world.wait_end(tx)[0], 'usurped')
        after = world.enqueue('next')
        figures = world.settle()
        self.assertEqual((figures['finalized'], figures['failed']), (1, 1))
        self.assertEqual(world.row(after)['nonce'], 1)


FamilyBChopsticks = chopsticks(FamilyB)

if __name__ == '__main__':
    unittest.main()
