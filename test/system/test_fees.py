"""Tips and races for a nonce: the ladder, bumps, and a transaction that is stopped after it was
sent (test/cases.md rows 43, 59, 117; docs/sql.md)."""
import unittest

import psycopg2

from harness import proc
from harness.cases import CaseTest, load_tests, on_submit, refusal  # noqa: F401
from harness.chain import remark

FEE_BASE, FEE_BYTE = 10 ** 8, 10 ** 6  # of devchain
TOO_DEAR = 10 ** 9  # nothing tips as much: the author passes over everything


class Fees(CaseTest):
    def refused(self, world, call):
        """The text of a TR011."""
        with self.assertRaises(psycopg2.Error) as caught:
            call()
        self.assertEqual(caught.exception.pgcode, 'TR011', caught.exception)
        return str(caught.exception)

    def pooled_tip(self, world, nonce):
        return next((x.tip for x in world.pool() if x.nonce == nonce), None)

    def on_chain(self, world, nonce):
        world.wait_blocks(1)
        return next(x for _, _, _, x in world.chain.walk() if x.signed and x.nonce == nonce)

    def included(self, world, tx):
        """(hash, block, fee) of its record."""
        return world.rows('SELECT hash, block_number, fee FROM txrelay.finished_transactions '
                          'WHERE id = %s', tx)[0]

    # ---- tips that were asked for ----

    def test_tip_of_the_transaction_and_of_the_account(self):
        """Its own tip, or what the account's policy says a first attempt pays; neither above what
        it may cost."""
        world = self.world()
        own = world.put('own tip', tip=123)
        self.assertEqual(world.wait_end(own)[0], 'ok')
        self.assertEqual(world.policy(tip_start=40, tip_cap=50),
                         {'tip_start': '40', 'tip_cap': '50'})

        def first_tip(number):
            tx = world.put(f'of the policy {number}')
            world.wait_end(tx)
            return world.tips(tx)

        numbers = iter(range(1000))
        proc.wait_for('the policy to be known', lambda: first_tip(next(numbers)) == [40], 20)
        low, high = world.put('low limit', max_tip=7), world.put('high tip', tip=60)
        self.assert_once(world)
        self.assertEqual((world.tips(own), world.tips(low), world.tips(high)), ([123], [7], [50]))
        for tx, tip in ((own, 123), (low, 7), (high, 50)):
            size = world.pg.value('SELECT octet_length(extrinsic) FROM txrelay.attempts '
                                  'WHERE id = %s', (tx,))
            self.assertEqual(self.included(world, tx)[2], FEE_BASE + FEE_BYTE * size + tip)

    def test_options_that_make_no_sense_are_refused(self):
        world = self.world()
        text = self.refused(world, lambda: world.put('x', tip=11, max_tip=10))
        self.assertIn('11', text)
        self.assertIn('10', text)
        self.assertIn('-1', self.refused(world, lambda: world.put('x', tip=-1)))
        self.assertIn('101', self.refused(world, lambda: world.put('x', retries=101)))
        self.assertIn('deadline_block',
                      self.refused(world, lambda: world.put('x', deadline_block=0)))
        text = self.refused(world, lambda: world.policy(tip_stepp=1))
        self.assertIn('tip_stepp', text)
        self.assertIn('tip_step', text)
        self.assertIn('tip_cap', self.refused(world, lambda: world.policy(tip_after_blocks=3)))
        self.assertEqual(world.policy(), {}, 'nothing of it was kept')

    # ---- the ladder ----

    def test_43_59_117_ladder_raises_the_head_until_it_is_taken(self):
        """The author wants more than is paid. The head of the line keeps its nonce and pays more
        and more; those behind it follow, each when it is the head."""
        world = self.world()
        world.policy(tip_step=100, tip_after_blocks=2, tip_cap=1000)
        world.set(min_tip=350)
        txs = world.enqueue_many([f'dear {i}' for i in range(3)])
        self.assert_once(world)
        for nonce, tx in enumerate(txs):
            tips = world.tips(tx)
            self.assertEqual(world.row(tx)['nonce'], nonce)
            self.assertEqual(tips, list(range(0, tips[-1] + 1, 100)))
            self.assertIn(tips[-1], (400, 500))
            # one more rung may have been signed when the block came
            ends = [a[4] for a in world.attempts(nonce)][-2:]
            self.assertIn(ends, (['replaced', 'included'], ['included', 'superseded']))
        self.assertNotIn(None, [a[2] for a in world.attempts()], 'no filler')
        self.assertFalse([a for a in world.alerts() if 'did not sign' in a])

    def capped(self, *tips, **options):
        world = self.world()
        world.policy(tip_step=100, tip_after_blocks=1, tip_cap=250)
        world.set(min_tip=TOO_DEAR)
        tx = world.put('not at any price', **options)
        proc.wait_for('the cap', lambda: world.tips(tx) == list(tips))
        world.wait_blocks(8)
        self.assertEqual(world.tips(tx), list(tips))
        self.assertEqual(self.pooled_tip(world, 0), tips[-1])
        world.set(min_tip=0)
        self.assert_once(world)

    def test_cap_of_the_account_is_respected(self):
        self.capped(0, 100, 200, 250)

    def test_cap_of_the_transaction_is_respected(self):
        self.capped(20, 120, 150, tip=20, max_tip=150)

    def test_no_ladder_by_default(self):
        world = self.world()
        world.set(min_tip=1)
        tx = world.enqueue('waits')
        world.wait_pool(1)
        world.wait_blocks(10)
        self.assertEqual(world.tips(tx), [0])
        world.set(min_tip=0)
        self.assert_once(world)

    def test_ladder_goes_on_after_a_change_of_leader(self):
        world = self.world()
        world.policy(tip_step=10, tip_after_blocks=2, tip_cap=100000)
        world.set(min_tip=TOO_DEAR)
        tx = world.enqueue('two leaders')
        proc.wait_for('a raise', lambda: len(world.tips(tx)) >= 2)
        world.relays[0].kill()
        before = len(world.tips(tx))
        heir = world.relay('heir')
        world.wait_leader(heir)
        proc.wait_for('another raise', lambda: len(world.tips(tx)) >= before + 2)
        world.set(min_tip=0)
        self.assert_once(world)
        self.assertEqual(world.tips(tx), list(range(0, world.tips(tx)[-1] + 1, 10)))

    def test_59_foreign_transaction_at_our_nonce_is_outbid(self):
        """A stranger's transaction holds our nonce in the pool. With the ladder on, ours pays more
        and takes its place."""
        world = self.world()
        world.policy(tip_step=1000, tip_after_blocks=1, tip_cap=10 ** 7)
        world.set(min_tip=TOO_DEAR)
        foreign = world.foreign_send(0, remark('a stranger'), tip=2500)
        tx = world.enqueue('ours')
        proc.wait_for('ours in its place', lambda: [x.nonce for x in world.pool()] == [0]
                      and world.pool()[0].hash != foreign)
        world.set(min_tip=0)
        self.assert_once(world)
        self.assertEqual(world.row(tx)['nonce'], 0)
        self.assertGreater(world.tips(tx)[-1], 2500)

    # ---- bumps ----

    def test_43_bump_in_the_pool(self):
        """Said for one transaction: it is signed again with that tip at its nonce, the others stay
        as they are."""
        world = self.world()
        world.set(min_tip=TOO_DEAR)
        tx, behind = world.enqueue_many(['bumped', 'behind it'])
        world.wait_pool(2)
        text = self.refused(world, lambda: world.bump(tx, 0))
        self.assertIn('0', text)
        self.assertEqual(world.bump(tx, 500), 'requested')
        proc.wait_for('the new bytes', lambda: self.pooled_tip(world, 0) == 500)
        self.assertEqual((self.pooled_tip(world, 1), world.ready_count()), (0, 2))
        proc.wait_for('no request to be left',
                      lambda: not world.pg.value('SELECT count(*) FROM txrelay.bumps'))
        world.set(min_tip=0)
        self.assert_once(world)
        self.assertEqual((world.tips(tx), world.tips(behind)), ([0, 500], [0]))
        self.assertEqual([a[4] in ('replaced', 'superseded') for a in world.attempts(0)],
                         [True, False])
        self.assertEqual(world.attempts(0)[1][4], 'included')
        self.assertEqual(world.bump(tx, 900), 'finished')
        self.assertFalse([a for a in world.alerts() if 'did not sign' in a])

    def test_bump_without_a_tip_is_the_next_step(self):
        """The step is the larger of the two that the policy names; above the cap there is none."""
        world = self.world()
        world.policy(tip_step=70, tip_step_percent=10, tip_cap=1300)
        world.set(min_tip=TOO_DEAR)
        tx = world.put('step by step', tip=500)
        world.wait_pool(1)
        for tip in (570, 640, 710, 781, 859):
            self.assertEqual(world.bump(tx), 'requested')
            proc.wait_for(f'a tip of {tip}', lambda: self.pooled_tip(world, 0) == tip)
        text = self.refused(world, lambda: world.bump(tx, 1301))
        self.assertIn('tip_cap', text)
        self.assertIn('1300', text)
        world.set(min_tip=0)
        self.assert_once(world)

    def test_bump_above_the_limit_of_the_transaction(self):
        world = self.world()
        world.set(min_tip=TOO_DEAR)
        tx = world.put('limited', max_tip=100)
        world.wait_pool(1)
        text = self.refused(world, lambda: world.bump(tx, 101))
        self.assertIn('max_tip', text)
        self.assertIn('100', text)
        self.assertEqual(world.bump(tx, 100), 'requested')
        proc.wait_for('the limit', lambda: self.pooled_tip(world, 0) == 100)
        world.set(min_tip=0)
        self.assert_once(world)

    def test_bump_in_the_outbox(self):
        world = self.world()
        with world.collect():
            tx = world.enqueue('still queued')
            self.assertEqual(world.bump(tx, 333), 'queued')
        self.assert_once(world)
        self.assertEqual(world.tips(tx), [333])

    def test_bump_survives_the_leader(self):
        """Asked for while nobody leads: the next leader finds it."""
        world = self.world()
        world.set(min_tip=TOO_DEAR)
        tx = world.enqueue('asked of nobody')
        world.wait_pool(1)
        world.relays[0].kill()
        self.assertEqual(world.bump(tx, 77), 'requested')
        heir = world.relay('heir')
        world.wait_leader(heir)
        proc.wait_for('the new bytes', lambda: self.pooled_tip(world, 0) == 77)
        world.set(min_tip=0)
        self.assert_once(world)

    # ---- stopped after it was sent ----

    def assert_stopped(self, world, tx, outcome, error):
        """It ended so with a filler's block and fee, and is not on the chain itself."""
        got, text = world.wait_end(tx)
        self.assertEqual(got, outcome)
        self.assertRegex(text, error)
        hash_, block, fee = self.included(world, tx)
        self.assertIsNotNone(block)
        self.assertGreater(fee, 0)
        filler, = [h for h in world.history(tx) if h['filler'] and h['outcome'] == 'included']
        self.assertEqual(filler['hash'], '0x' + bytes(hash_).hex())
        self.assertGreater(filler['tip'], world.tips(tx)[-1])

    def test_43_cancel_in_the_pool_wins_at_once(self):
        """The author passes over it, it blocks those behind. Cancelled: a filler with a higher tip
        takes its nonce long before its era is over, and those behind go on."""
        world = self.world()
        world.set(min_tip=1)
        tx, behind = world.enqueue_many(['stuck', 'behind it'])
        world.wait_pool(2)
        self.assertEqual(world.cancel(tx), 'requested')
        self.assert_stopped(world, tx, 'cancelled', 'cancelled by ')
        death = world.pg.value('SELECT min(era_death) FROM txrelay.attempts WHERE id = %s', (tx,))
        self.assertLess(self.included(world, tx)[1], death - 30, 'long before its era was over')
        world.set(min_tip=0)
        figures = world.settle()
        self.assertEqual((figures['finalized'], figures['failed']), (1, 1))
        self.assertEqual(world.row(behind)['nonce'], 1)
        self.assertEqual(world.cancel(tx), 'finished')
        self.assertEqual(self.on_chain(world, 0).call[:2], b'\x00\x00')

    def test_cancel_is_too_late_when_a_block_has_it(self):
        """In a block that is not final yet: the record is what the chain says."""
        world = self.world()
        world.set(finality=False)
        tx = world.enqueue('too late')
        world.wait_state(tx, 'in_block')
        self.assertEqual(world.cancel(tx), 'requested')
        world.wait_blocks(5)
        self.assertIsNone(world.row(tx)['outcome'])
        world.set(finality=True)
        self.assert_once(world)
        self.assertEqual(world.cancel(tx), 'finished')

    def test_cancel_loses_the_race(self):
        """The filler never reaches the pool: the transaction gets in, and its record says so."""
        world = self.world()
        world.set(min_tip=TOO_DEAR)
        tx = world.enqueue('faster')
        world.wait_pool(1)
        rule, = world.script(on_submit(refusal(1014), nonce=0, times=0))
        self.assertEqual(world.cancel(tx), 'requested')
        proc.wait_for('a filler to be tried', lambda: world.script_fired(rule))
        world.set(min_tip=0)
        self.assert_once(world)
        self.assertEqual(world.tips(tx), [0])
        outcomes = {h['filler']: h['outcome'] for h in world.history(tx)}
        self.assertEqual(outcomes[False], 'included')
        self.assertNotEqual(outcomes[True], 'included')

    def test_cancel_survives_the_leader(self):
        """The filler is in the pool when its leader dies. The next one knows how the transaction
        is to end."""
        world = self.world()
        world.set(min_tip=TOO_DEAR)
        tx = world.enqueue('two leaders')
        first, = world.wait_pool(1)
        self.assertEqual(world.cancel(tx), 'requested')
        proc.wait_for('the filler', lambda: [x.hash for x in world.pool()] != [first.hash])
        self.assertEqual([x.nonce for x in world.pool()], [0])
        world.relays[0].kill()
        heir = world.relay('heir')
        world.wait_leader(heir)
        world.ready(heir)
        world.set(min_tip=0)
        self.assert_stopped(world, tx, 'cancelled', 'cancelled by ')
        world.enqueue('after it')
        figures = world.settle()
        self.assertEqual((figures['finalized'], figures['failed']), (1, 1))

    def test_cancel_where_no_tip_can_rise_waits_for_the_era(self):
        """Its limit is what it pays already: nothing can outbid it, so its era is waited for, and
        then a filler takes the nonce."""
        world = self.world(manager={'era_period': 16})
        rule, = world.script({'match': {'include': True, 'nonce': 0, 'times': 0}, 'action': 'skip'})
        tx, behind = world.put('at its limit', max_tip=0), world.enqueue('behind it')
        world.wait_pool(2)
        self.assertEqual(world.cancel(tx), 'requested')
        death = world.pg.value('SELECT era_death FROM txrelay.attempts WHERE id = %s', (tx,))
        self.assertEqual(world.wait_end(tx)[0], 'cancelled')
        self.assertGreaterEqual(world.best(), death)
        world.chain.rpc('dev_clearScript', {'id': rule})
        figures = world.settle()
        self.assertEqual((figures['finalized'], figures['failed']), (1, 1))
        self.assertEqual(world.row(behind)['nonce'], 1)
        self.assertEqual(world.tips(tx), [0])

    # ---- deadlines ----

    def test_deadline_in_the_pool(self):
        """It passes while the author passes over it: a filler takes the nonce at once."""
        world = self.world()
        world.set(min_tip=1)
        tx = world.put('too late', deadline=("clock_timestamp() + interval '700 ms'",))
        behind = world.enqueue('behind it')
        world.wait_pool(2)
        self.assert_stopped(world, tx, 'expired', 'deadline')
        world.set(min_tip=0)
        world.settle()
        self.assertEqual((world.end(behind)[0], world.row(behind)['nonce']), ('ok', 1))

    def test_deadline_block_ends_the_era(self):
        """Nothing that is signed for it can be in a later block; those behind it go on."""
        world = self.world()
        world.set(min_tip=1)
        deadline = world.best() + 30
        tx, behind = world.put('by block', deadline_block=deadline,
                               max_tip=0), world.enqueue('behind it')
        outcome, error = world.wait_end(tx)
        self.assertEqual(outcome, 'expired')
        self.assertIn(str(deadline), error)
        deaths = world.rows('SELECT era_death FROM txrelay.attempts WHERE id = %s '
                            'AND filler IS NULL', tx)
        self.assertTrue(deaths)
        self.assertTrue(all(death is not None and death <= deadline + 1 for death, in deaths),
                        deaths)
        world.set(min_tip=0)
        world.settle()
        self.assertEqual((world.end(behind)[0], world.row(behind)['nonce']), ('ok', 1))

    def test_deadline_block_in_time(self):
        world = self.world()
        tx = world.put('in time', deadline_block=world.best() + 40)
        self.assert_once(world)
        death = world.pg.value('SELECT era_death FROM txrelay.attempts WHERE id = %s', (tx,))
        block = self.included(world, tx)[1]
        self.assertLessEqual(block, death)

    def test_deadline_block_that_has_passed(self):
        """It never gets a nonce."""
        world = self.world()
        world.wait_blocks(4)
        tx = world.put('never', deadline_block=1)
        outcome, error = world.wait_end(tx)
        self.assertEqual(outcome, 'expired')
        self.assertIn('1', error)
        world.enqueue('goes on')
        world.settle()
        self.assertIsNone(world.row(tx)['nonce'])
        self.assertEqual(world.next_nonce(), 1)


if __name__ == '__main__':
    unittest.main()
