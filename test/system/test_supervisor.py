"""A relay under systemd: what it tells its supervisor, and a reload that keeps every lead."""
import os
import signal
import socket
import unittest

from harness import proc
from harness.world import World


class Supervisor:
    """The socket of NOTIFY_SOCKET."""

    def __init__(self, directory):
        self.path = os.path.join(directory, 'notify')
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setblocking(False)
        self.got = []

    def lines(self):
        while True:
            try:
                self.got += self.socket.recv(4096).decode().splitlines()
            except BlockingIOError:
                return self.got

    def wait(self, what, count=1):
        proc.wait_for(f'{what} {count} times',
                      lambda: sum(x.startswith(what) for x in self.lines()) >= count, 30)


class TestSupervisor(unittest.TestCase):
    def test_reload_keeps_the_lead(self):
        with World() as world:
            supervisor = Supervisor(world.dir)
            self.addCleanup(supervisor.socket.close)
            relay = world.relay('one',
                                env={'NOTIFY_SOCKET': supervisor.path, 'WATCHDOG_USEC': '300000'})
            supervisor.wait('READY=1')
            world.wait_leader(relay)
            epoch = relay.status()['accounts'][0]['epoch']
            supervisor.wait('STATUS=running: leads 1 of 1 accounts; database up, chain up')
            supervisor.wait('WATCHDOG=1', 3)
            for i in range(5):
                world.enqueue(f'reload {i}')

            with open(relay.config) as f:
                text = f.read()
            with open(relay.config, 'w') as f:
                f.write(text.replace('name: one', 'name: other\nlog_level: debug'))
            relay.process.child.send_signal(signal.SIGHUP)
            supervisor.wait('READY=1', 2)
            relay.wait_log('config.reloaded .*log_level=debug')
            relay.wait_log('config.restart_needed key=name ')
            relay.wait_log(r'level=debug ')  # the level is in use
            self.assertLess(supervisor.got.index('RELOADING=1'),
                            len(supervisor.got) - supervisor.got[::-1].index('READY=1'))
            self.assertTrue(any(x.startswith('MONOTONIC_USEC=') for x in supervisor.got))

            with open(relay.config, 'w') as f:
                f.write('nonsense: 1\n')
            relay.process.child.send_signal(signal.SIGHUP)
            supervisor.wait('READY=1', 3)
            relay.wait_log('config.reload_failed code=CONFIG .*nonsense')
            world.settle()
            self.assertEqual(relay.status()['accounts'][0]['epoch'], epoch)
            self.assertNotIn('STOPPING=1', supervisor.lines())
            self.assertEqual(relay.stop(), 0)
            self.assertIn('STOPPING=1', supervisor.lines())
            self.assertEqual(len([x for x in relay.text().splitlines() if 'leader.acquired' in x]),
                             1)
