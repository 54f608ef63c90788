"""Public reports: one nonce twice, 1014 (test/cases.md)."""
import threading
import unittest

from harness import proc
# noqa: F401
from harness.cases import CaseTest, chopsticks, load_tests, nonce_questions, on_submit, refusal
from harness.chain import remark


class FamilyA(CaseTest):
    def test_1_6_next_while_the_pool_holds_the_first(self):
        """The node's nonce stays at n while our n waits in its pool: the next one gets n+1, no
        1014."""
        world = self.world()
        world.set(paused=True, pool_blind_nonce=True)
        world.enqueue('first')
        world.wait_pool(1)
        self.assertEqual(world.chain.rpc('system_accountNextIndex', world.address()), 0,
                         'the node is blind')
        asked = world.script(*nonce_questions('pass'))
        world.enqueue('second')
        self.assertEqual([x.nonce for x in world.wait_pool(2)], [0, 1])
        world.set(paused=False)
        self.assert_once(world)
        self.assertEqual(world.results(), {'ok': 2})
        self.assert_one_hash_each(world)
        self.assertEqual([world.script_fired(rule) for rule in asked], [0, 0],
                         'it asked the node for the next nonce')

    def test_3_two_hundred_at_once_from_twenty_sessions(self):
        world = self.world()
        gate, lock = threading.Barrier(20), threading.Lock()

        def session(number):
            db = world.pg.connect(autocommit=False)
            with db.cursor() as cur:
                calls = [remark(f'session {number} {i}') for i in range(10)]
                got = []
                for call in calls:
                    cur.execute("SELECT txrelay.enqueue('alice', %s)", (call,))
                    got.append(cur.fetchone()[0])
                gate.wait()
                db.commit()
            db.close()
            with lock:
                world.committed.update(zip(calls, got))

        threads = [threading.Thread(target=session, args=(n,)) for n in range(20)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(world.committed), 200)
        self.assert_once(world)
        self.assertEqual(world.results(), {'ok': 200})
        self.assertEqual(world.next_nonce(), 200)
        self.assert_one_hash_each(world)

    def test_4_11_refused_for_priority_the_third_of_ten(self):
        """Nobody is in its place: it is sent again by itself, the others go on."""
        world = self.world()
        rule, = world.script(on_submit(refusal(1014), nonce=2))
        world.enqueue_many([f'loop {i}' for i in range(10)])
        self.assert_once(world)
        self.assertEqual((world.script_fired(rule), world.results()), (1, {'ok': 10}))
        self.assert_one_hash_each(world)

    def test_4_refused_for_priority_a_foreign_one_is_there(self):
        """A stranger holds the third nonce in the pool. The chain decides; the other nine go on
        and the third ends with a reason (another nonce for it is a policy: test_policy)."""
        world = self.world()
        world.set(paused=True)
        foreign = world.foreign_send(2, remark('a stranger'), tip=1000)
        txs = world.enqueue_many([f'loop {i}' for i in range(10)])
        world.wait_alert('the pool holds another transaction with our nonce 2')
        world.set(paused=False)
        figures = world.settle()
        self.assertEqual((figures['finalized'], figures['failed']), (9, 1))
        outcome, error = world.end(txs[2])
        self.assertEqual(outcome, 'usurped')
        self.assertIn(foreign.hex(), error)
        self.assertLessEqual(world.results()['1014'], 2 + world.best())

    def test_5_refused_for_priority_our_own_is_there(self):
        """Not an end: the transaction goes on, and its history shows the new attempt and why."""
        world = self.world()
        world.script(on_submit(refusal(1012)), on_submit(refusal(1014)))
        tx = world.enqueue('twice signed')
        proc.wait_for('a second attempt', lambda: len(world.attempts(0)) == 2)
        self.assertIsNone(world.row(tx)['outcome'])
        self.assert_once(world)
        (_, _, _, _, outcome, reason, _), (_, _, _, _, last, _, _) = world.attempts(0)
        self.assertIn(outcome, ('replaced', 'superseded'))
        self.assertIn('banned', reason)
        self.assertEqual(last, 'included')

    def test_7_12_two_relays_one_key(self):
        """Both start at once, and two applications send through one of them each: one relay signs,
        the other one names it, and its application goes there. So nothing is lost and nobody
        collides."""
        world = self.world(start=False)
        relays = [world.relay('one'), world.relay('two')]
        leader = proc.wait_for('a leader',
                               lambda: next((r for r in relays if r.leads('alice')), None))
        follower = relays[1 - relays.index(leader)]
        account = proc.wait_for('the follower to know the leader', lambda: next(
            (a for a in (follower.status() or {'accounts': []})['accounts']
             if a['leader_address'] == leader.address), None))
        self.assertEqual(account['role'], 'follower')
        refused = []

        def application(relay, number):
            for i in range(50):
                call = remark(f'replica {number} {i}')
                answer = relay.control({'cmd': 'send', 'account': 'alice',
                                        'call': '0x' + call.hex()})
                if answer.get('error') == 'NOT_LEADER':
                    refused.append(answer['address'])
                    answer = leader.control({'cmd': 'send', 'account': 'alice',
                                             'call': '0x' + call.hex()})
                world.committed[call] = answer['id']

        threads = [threading.Thread(target=application, args=(r, n)) for n, r in enumerate(relays)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(world.committed), 100)
        self.assertEqual(refused, [leader.address] * 50)
        self.assert_once(world)
        self.assertEqual(world.results(), {'ok': 100})
        self.assertEqual(world.rows('SELECT DISTINCT epoch FROM txrelay.attempts'), [(1,)])
        self.assertNotIn('leader.acquired', follower.text())
        self.assert_one_hash_each(world)

    def test_10_disconnects_and_1014_in_a_long_loop(self):
        """500 transactions over a connection that is cut again and again, every tenth submission
        refused with 1014."""
        world = self.world('--max-subscriptions', '4096', manager={'window': 64})
        rule, = world.script(on_submit(refusal(1014), percent=10, times=0))
        world.enqueue_many([f'loop {i}' for i in range(500)])
        for at in range(75, 500, 75):
            proc.wait_for(f'{at} ended',
                          lambda: world.pg.value(
                              'SELECT count(*) FROM txrelay.finished_transactions') >= at)
            world.chain.rpc('dev_cutConnections')
        self.assert_once(world)
        self.assert_one_hash_each(world)
        refused, again = world.script_fired(rule), len(world.submits()) - 500
        self.assertLess(refused, 500)
        self.assertLess(again, 500)
        self.assertIn('chain.down', world.relays[0].text())


FamilyAChopsticks = chopsticks(FamilyA)
FamilyAChopsticks.test_10_disconnects_and_1014_in_a_long_loop = None  # its shapes are in the others

if __name__ == '__main__':
    unittest.main()
