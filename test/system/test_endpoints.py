"""Endpoints that are no good for everything: of another chain, with limits, with closed methods, with pruned blocks. The next
one is asked, the service goes on, and nothing waits without a word."""
from harness import proc
from harness.cases import CaseTest, load_tests  # noqa: F401
from harness.liar import Liar, Limit, of_another_chain
from harness.relay import cli


class EndpointsTest(CaseTest):
    def liar(self, world, reply=None):
        liar = Liar(world.chain.ws)
        liar.reply = reply
        self.addCleanup(liar.close)
        return liar

    # ---- R5: one endpoint of another chain ----

    def test_r5_the_other_chain_while_the_right_endpoint_is_away(self):
        world = self.world('--block-ms', '100', start=False)
        right, wrong = self.liar(world), self.liar(world, of_another_chain)
        relays = [world.relay(name, endpoints=[right.url, wrong.url]) for name in ('one', 'two')]
        proc.wait_for('a leader', lambda: any(r.leads('alice') for r in relays))
        right.greeting = b'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n'
        right.cut()
        for relay in relays:
            relay.wait_log('chain.down.*another chain')
        right.greeting = None
        world.enqueue('it is back')
        self.assert_once(world)
        self.assertTrue(all(r.alive() for r in relays))

    def test_r5_the_other_chain_first(self):
        world = self.world('--block-ms', '100', start=False)
        wrong = self.liar(world, of_another_chain)
        genesis = {'genesis': f'"{world.chain.rpc("chain_getBlockHash", 0)}"'}
        relay = world.relay('one', endpoints=[wrong.url, world.chain.ws], chain=genesis)
        world.wait_leader(relay)
        world.enqueue('over the second')
        self.assert_once(world)

    def test_r5_only_the_other_chain(self):
        """It says so and keeps trying."""
        world = self.world('--block-ms', '100', start=False)
        wrong = self.liar(world, of_another_chain)
        genesis = {'genesis': f'"{world.chain.rpc("chain_getBlockHash", 0)}"'}
        relay = world.relay('one', endpoints=[wrong.url], chain=genesis)
        relay.wait_log('chain.none.*every endpoint is of another chain')
        done = cli('check', '--config', relay.config, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn('another chain', done.stdout)
        tries = wrong.accepted
        proc.wait_for('another try', lambda: wrong.accepted > tries)
        wrong.reply = None
        world.wait_leader(relay)
        world.enqueue('it is the right one now')
        self.assert_once(world)
        self.assertTrue(relay.alive())

    # ---- R6: limits ----

    def limited(self, per_second, burst, count):
        """This many transactions through a limit, to their ends, over one connection."""
        world = self.world('--block-ms', '1000', start=False)
        limit = Limit(per_second, burst)
        liar = self.liar(world, limit)
        relay = world.relay('one', endpoints=[liar.url])
        world.wait_leader(relay)
        world.enqueue_many([f'limited {i}' for i in range(count)])
        self.assert_once(world)
        self.assertEqual(liar.accepted, 1)
        self.assertNotIn('chain.down', relay.text())
        self.assertLess(limit.refused, limit.asked / 2)
        relay.wait_log('node.limit.*method=.*Too many requests')

    def test_r6_ten_a_second(self):
        self.limited(10, 10, 30)

    def test_r6_five_a_second(self):
        """Not even a handshake fits into the burst."""
        self.limited(5, 5, 5)
