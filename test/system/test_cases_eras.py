"""Public reports: eras (test/cases.md)."""
import time
import unittest

from harness import proc
from harness.cases import CaseTest, chopsticks, load_tests, nonce_questions, on_submit  # noqa: F401
from harness.chain import remark

ALICE = '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY'


class FamilyH(CaseTest):
    def expires(self, **options):
        """The author passes over the head of the line until its era has ended. It is signed again
        at its nonce; those behind it follow."""
        world = self.world(manager={'era_period': 16})
        world.set(**options)
        skip, *asked = world.script({'match': {'include': True, 'nonce': 0, 'times': 0},
                                     'action': 'skip'},
                                    *nonce_questions('pass'))
        txs = world.enqueue_many(['expires', 'behind 1', 'behind 2'])
        proc.wait_for('a second attempt', lambda: len(world.attempts(0)) >= 2)
        world.chain.rpc('dev_clearScript', {'id': skip})
        self.assert_once(world)
        self.assertEqual([world.script_fired(rule) for rule in asked], [0, 0],
                         'it asked the node for the next nonce')
        self.assertEqual([world.row(t)['nonce'] for t in txs], [0, 1, 2])
        first = world.attempts(0)[0]
        self.assertRegex(first[5], 'era')
        self.assertNotIn(None, [a[2] for a in world.attempts()], 'no filler')

    def test_86_96_era_ends_in_the_pool(self):
        self.expires()

    def test_87_the_same_with_a_pool_blind_node(self):
        self.expires(pool_blind_nonce=True)

    def test_86_no_blocks_for_a_while(self):
        """Blocks come back in one burst, past the era of everything that was signed."""
        world = self.world(manager={'era_period': 4})
        world.set(paused=True)
        world.enqueue_many([f'waits {i}' for i in range(3)])
        world.wait_pool(3)
        world.blocks(12, empty=True)
        world.set(paused=False)
        self.assert_once(world)
        self.assertEqual({n for n, *_ in world.attempts()}, {0, 1, 2})

    def test_90_91_anchor_is_a_final_block(self):
        """The chain is re-organised three deep again and again; no signature is ever over a block
        that is gone."""
        world = self.world('--finality-lag', '4')
        world.wait_blocks(6)
        for i in range(6):
            tx = world.enqueue(f'anchored {i}')
            proc.wait_for('it to be sent',
                          lambda: world.row(tx)['state'] not in ('queued', 'signed'))
            world.chain.rpc('dev_reorg', {'depth': 3})
        self.assert_once(world)
        self.assertNotIn('1010', world.results())
        self.assertEqual({a[1] for a in world.attempts()}, {1}, 'nothing was signed twice')

    def test_92_94_mortal_by_default(self):
        """What was executed once cannot be replayed after the account was reaped and funded again,
        once its era is over."""
        world = self.world(manager={'era_period': 8})
        world.enqueue('once only')
        self.assert_once(world)
        world.relays[0].stop()
        raw = world.attempts(0)[0][6]
        self.assertEqual(
            world.rows('SELECT count(*) FROM txrelay.attempts WHERE era_death IS NULL'), [(0,)])
        world.chain.rpc('dev_setBalance', {'account': ALICE, 'free': 0})
        world.chain.rpc('dev_setBalance', {'account': ALICE, 'free': 10 ** 18, 'nonce': 0})
        world.blocks(10)
        world.chain.rpc('dev_clearBans')
        self.assertEqual(world.stranger.next_nonce(), 0)
        with self.assertRaisesRegex(Exception, '1010'):
            world.chain.rpc('author_submitExtrinsic', '0x' + raw.hex())
        world.blocks(3)
        self.assert_once(world)

    def reaped(self, down=False, **policy):
        """One nonce is used, three wait in the pool; the account dies and is funded again: its
        nonce starts at 0. Said loudly, and nothing of the old life is sent to the new one, whether
        somebody looked or not."""
        world = self.world(manager={'era_period': 16})
        world.policy(**policy)
        world.enqueue('its life before')
        self.assert_once(world)
        world.set(paused=True)
        txs = world.enqueue_many([f'pending {i}' for i in range(3)])
        world.wait_pool(3)
        if down:
            world.relays[0].kill()
        world.reap()
        world.set(paused=False)
        if down:
            world.wait_blocks(3)
            world.wait_leader(world.relay('heir'))
        world.wait_suspension('reaped')
        world.wait_alert('(?i)reaped')
        sent, attempts = len(world.submits()), len(world.attempts())
        txs.append(world.enqueue('asked for in between'))
        world.wait_blocks(20)
        self.assertEqual((len(world.submits()), len(world.attempts())), (sent, attempts),
                         'nothing signed, nothing sent')
        self.assertEqual(world.stranger.next_nonce(), 0, 'nothing was executed in the new life')
        self.assertIsNone(world.row(txs[3])['nonce'])
        row = proc.wait_for('the account to be shown', world.blocked)
        self.assertEqual((row['suspension'], row['paused_by']), ('reaped', 'leader'))
        return world, txs

    def begin_again(self, world, txs, given_up):
        """The operator's order: the account goes on at the chain's nonce."""
        world.resume()
        figures = world.settle()
        self.assertEqual((figures['finalized'], figures['failed']), (5 - given_up, given_up))
        self.assertEqual(sorted(world.row(t)['nonce'] for t in txs[given_up:]),
                         list(range(4 - given_up)))
        self.assertIsNone(world.suspension())
        after = world.enqueue('the new life goes on')
        world.settle()
        self.assertEqual((world.end(after)[0], world.row(after)['nonce']), ('ok', 4 - given_up))
        world.relays[-1].kill()
        world.wait_leader(world.relay('later'))
        last = world.enqueue('and is nobody\'s riddle at the next start')
        world.settle()
        self.assertEqual((world.end(last)[0], world.row(last)['nonce']), ('ok', 5 - given_up))

    def test_93_reaped_with_three_pending(self):
        """What waited ends with a reason; what is asked for later begins the new life."""
        world, txs = self.reaped()
        self.begin_again(world, txs, given_up=3)
        for tx in txs[:3]:
            self.assertEqual(world.end(tx)[0], 'failed')
            self.assertRegex(world.end(tx)[1], '(?i)reaped')

    def test_93_reaped_while_it_is_down(self):
        """Found at the start by the nonces that are on record. By the account's policy, what
        waited is signed again."""
        world, txs = self.reaped(down=True, usurped='requeue')
        self.begin_again(world, txs, given_up=0)
        for tx in txs[:3]:
            self.assertEqual(len(world.given_up(tx)), 1)

    def test_97_ten_thousand_rows_at_the_start(self):
        """10,000 nonces are in use when the leader is killed. The successor sends new ones soon
        and loses none."""
        world = self.world('--max-subscriptions', '20000', '--pool-limit', '20000',
                           '--block-max-extrinsics', '2000',
                           '--block-ms', '200', manager={'window': 12000, 'unanswered': 256})
        world.set(paused=True)
        calls = [remark(f'backlog {i}') for i in range(10000)]
        with world.pg.connect() as db, db.cursor() as cur:
            cur.execute("SELECT txrelay.enqueue_many('alice', %s)", (calls,))
            world.committed.update(zip(calls, cur.fetchone()[0]))
        db.close()
        proc.wait_for('all of them in the pool', lambda: world.ready_count() == 10000, 120)
        world.relays[0].kill()
        start = time.monotonic()
        heir = world.relay('heir')
        world.wait_leader(heir, seconds=30)
        tx = world.enqueue('after the restart')
        proc.wait_for('the new one to be sent', lambda: world.ready_count() == 10001, 60)
        print('\n  97: with 10,000 open rows the new leader sent the next one after '
              f'{time.monotonic() - start:.1f} s')
        self.assertLess(time.monotonic() - start, 30)
        world.set(paused=False)
        figures = world.settle(seconds=150)
        self.assertEqual(figures['finalized'], 10001)
        self.assertEqual(world.row(tx)['nonce'], 10000)
        self.assertEqual(len(world.submits()), 10001)


class FamilyHChopsticks(CaseTest):
    shapes = ('--chopsticks-shapes',)
    expires = FamilyH.expires
    test_86_96_era_ends_in_the_pool = FamilyH.test_86_96_era_ends_in_the_pool


if __name__ == '__main__':
    unittest.main()
