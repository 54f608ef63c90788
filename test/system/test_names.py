"""Endpoints by names: several addresses of which some are no good, addresses that change, a
resolver that fails or hangs. The names are the test's own (test/harness/names.c)."""
import os
import socket
import struct
import threading

from harness import proc
from harness.cases import CaseTest, load_tests  # noqa: F401
from harness.liar import UNAVAILABLE, Liar

NAMES = os.path.join(proc.BUILD, 'test', 'harness', 'libtest_names.so')
GOOD, REFUSES, HANGS, RESETS, BUSY, MOVED = (f'127.0.0.{i}' for i in range(1, 7))

# The addresses of a name in their order. Each connection finds the one that works.
SHAPES = {
    'the first refuses': [REFUSES, GOOD],
    'the first does not answer': [HANGS, GOOD],
    'the first resets': [RESETS, GOOD],
    'the first is too busy for it': [BUSY, GOOD],
    'IPv6 refuses': ['::1', GOOD],
    'no address of a family that there is': ['::1', 'fe80::1', '2001:db8::1', GOOD],
    'four of five are no good': [RESETS, REFUSES, BUSY, HANGS, GOOD],
    'the same one again and again': [GOOD, GOOD, GOOD],
}


class NamesTest(CaseTest):
    def setUp(self):
        super().setUp()
        self.dir = proc.make_dir('txn-')
        self.names = os.path.join(self.dir, 'names')
        self.env = {'LD_PRELOAD': NAMES, 'TEST_NAMES': self.names}

    def name(self, *addresses):
        """What node.test has from now on."""
        with open(self.names + '.new', 'w') as file:
            file.write(' '.join(('node.test', *addresses)) + '\n')
        os.rename(self.names + '.new', self.names)

    def listen(self, address, port):
        listener = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET)
        self.addCleanup(listener.close)
        listener.bind((address, port))
        listener.listen(0)
        return listener

    def hanging(self, port):
        """A connection that is not accepted fills its queue: the kernel drops each further SYN."""
        listener = self.listen(HANGS, port)
        for _ in range(2):
            other = socket.socket()
            self.addCleanup(other.close)
            other.setblocking(False)
            other.connect_ex(listener.getsockname())

    def resetting(self, port):
        listener = self.listen(RESETS, port)

        def reset():
            while True:
                try:
                    one, _ = listener.accept()
                except OSError:  # closed
                    return
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
                one.close()
        threading.Thread(target=reset, daemon=True).start()

    def proxy(self, world, *at):
        liar = Liar(world.chain.ws, at=at)
        self.addCleanup(liar.close)
        return liar

    def started(self, *addresses):
        world = self.world('--block-ms', '100', start=False)
        good = self.proxy(world, GOOD, 0)
        self.name(*addresses)
        relay = world.relay('one', endpoints=[f'ws://node.test:{good.port}'], env=self.env)
        return world, good, relay

    def sent(self, world, text):
        tx = world.enqueue(text)
        self.assertEqual(world.wait_end(tx)[0], 'ok')

    def again(self, relay, liar):
        ups = relay.text().count('chain.up')
        liar.cut()
        proc.wait_for('the next connection', lambda: relay.text().count('chain.up') > ups)

    def test_addresses(self):
        world, good, relay = self.started(REFUSES, GOOD)
        self.hanging(good.port)
        self.resetting(good.port)
        self.proxy(world, BUSY, good.port).greeting = UNAVAILABLE
        world.wait_leader(relay)
        for shape, addresses in SHAPES.items():
            with self.subTest(shape):
                self.name(*addresses)
                self.again(relay, good)
                self.sent(world, shape)
        self.assert_once(world)

    def test_ipv6_alone(self):
        world = self.world('--block-ms', '100', start=False)
        good = self.proxy(world, '::1', 0)
        self.name('::1')
        relay = world.relay('one', endpoints=[f'ws://node.test:{good.port}'], env=self.env)
        world.wait_leader(relay)
        self.sent(world, 'over IPv6')
        self.assert_once(world)

    def test_addresses_that_change(self):
        """A name that moved, to a machine that is not the old one: each connection asks anew."""
        world, good, relay = self.started(GOOD)
        world.wait_leader(relay)
        moved = self.proxy(world, MOVED, good.port)
        self.name(MOVED)
        self.again(relay, good)
        self.sent(world, 'at its new address')
        self.assertEqual((good.accepted, moved.accepted), (1, 1))
        self.assert_once(world)

    def test_a_name_that_fails_for_a_while(self):
        world, good, relay = self.started('!again')
        relay.wait_log('chain.down.*node.test:[0-9]+: name does not resolve')
        self.name(GOOD)
        world.wait_leader(relay)
        self.name('!none')
        good.cut()
        relay.wait_log('chain.down.*name does not resolve: unknown')
        tx = world.enqueue('when it resolves again')
        self.name(REFUSES)
        relay.wait_log('chain.down.*refused')
        self.name(GOOD)
        self.assertEqual(world.wait_end(tx)[0], 'ok')
        self.assert_once(world)

    def test_a_resolver_that_hangs(self):
        """It takes two questions at a time. What has an address does not wait behind them."""
        world = self.world('--block-ms', '100', start=False)
        good = self.proxy(world, GOOD, 0)
        pipe = os.path.join(self.dir, 'pipe')
        os.mkfifo(pipe)
        self.name('!hang', pipe)
        hanging = [f'ws://node.test:{port}' for port in range(1, 3)]
        relay = world.relay('one', endpoints=[*hanging, good.url], env=self.env)
        world.wait_leader(relay, seconds=60)
        self.sent(world, 'while it hangs')
        self.assert_once(world)
        self.name('!none')
        os.close(os.open(pipe, os.O_RDWR))
        relay.kill()
