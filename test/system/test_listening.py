"""What a relay listens to, as the kernel has it: nothing that was not configured, and each
listener where it was told. What may be reached from other machines has to be said twice
(certificates), or is refused."""
import ipaddress
import os
import re
import socket
import struct
import unittest

from harness import proc
from harness.world import World

LISTEN = '0A'


def inodes(pid):
    """Sockets that the process has open."""
    found = set()
    for fd in os.listdir(f'/proc/{pid}/fd'):
        try:
            match = re.fullmatch(r'socket:\[(\d+)\]', os.readlink(f'/proc/{pid}/fd/{fd}'))
        except FileNotFoundError:  # closed meanwhile
            continue
        if match:
            found.add(match.group(1))
    return found


def host_of(text):
    """The address as /proc/net has it: words of 32 bits in the order of the machine."""
    words = [int(text[i:i + 8], 16) for i in range(0, len(text), 8)]
    return ipaddress.ip_address(struct.pack(f'={len(words)}I', *words))


def listeners(pid):
    """{('tcp', host, port), ('udp', ..), ('unix', path)} of the process."""
    mine, found = inodes(pid), set()
    for kind in ('tcp', 'tcp6', 'udp', 'udp6'):
        with open(f'/proc/{pid}/net/{kind}') as file:
            rows = [line.split() for line in file.readlines()[1:]]
        for row in rows:
            host, port = row[1].split(':')
            if row[9] in mine and (row[3] == LISTEN or kind.startswith('udp')):
                found.add((kind[:3], host_of(host), int(port, 16)))
    with open(f'/proc/{pid}/net/unix') as file:
        for line in file.readlines()[1:]:
            row = line.split()
            if row[6] in mine and int(row[3], 16) & 0x10000:  # __SO_ACCEPTCON
                found.add(('unix', row[7]))
    return found


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


class Listening(unittest.TestCase):
    def test_by_default_nothing_listens(self):
        with World() as world:
            relay = world.relay('one', start=False)
            with open(relay.config) as file:
                lines = [line for line in file if not line.startswith('control:')]
            with open(relay.config, 'w') as file:
                file.writelines(lines)
            relay.start()
            relay.wait_log('account.ready')
            world.enqueue('while somebody scans')
            world.settle()
            self.assertEqual(listeners(relay.process.pid), set())

    def test_each_listens_where_it_was_told(self):
        with World() as world:
            ports = {name: free_port() for name in ('metrics', 'http', 'feeds')}
            loopback = {name: ('tcp', ipaddress.ip_address('127.0.0.1'), port)
                        for name, port in ports.items()}
            relay = world.relay('one', extra=f'metrics: 127.0.0.1:{ports["metrics"]}\nhttp:\n  '
                                             f'listen: tcp:127.0.0.1:{ports["http"]}\n'
                                             f'feeds:\n  listen: tcp:127.0.0.1:{ports["feeds"]}\n')
            for event in ('metrics', 'http', 'feed'):
                relay.wait_log(rf'{event}\.listening ')
            relay.wait_log('relay.running')
            relay.wait_log('account.ready')
            self.assertEqual(listeners(relay.process.pid),
                             {('unix', relay.socket), *loopback.values()})
            self.assertEqual(os.stat(relay.socket).st_mode & 0o777, 0o600)
            unix = os.path.join(world.dir, 'http.sock')
            other = world.relay('two', extra=f'http:\n  listen: "unix:{unix}"\n')
            other.wait_log(r'http\.listening ')
            other.wait_log('relay.running')
            self.assertEqual(listeners(other.process.pid), {('unix', other.socket), ('unix', unix)})
            self.assertEqual(os.stat(unix).st_mode & 0o777, 0o600)

    def test_an_address_that_others_reach_is_refused_everywhere(self):
        for extra, words in (('metrics: 0.0.0.0:0\n', '0.0.0.0:0'),
                             ('http:\n  listen: tcp:0.0.0.0:0\n',
                              'tcp:0.0.0.0:0 can be reached from other'),
                             ('feeds:\n  listen: tcp:0.0.0.0:0\n',
                              'tcp:0.0.0.0:0 can be reached from other')):
            with self.subTest(extra), World() as world:
                relay = world.relay('one', extra=extra)
                proc.wait_for('its end', lambda r=relay: not r.alive(), 30)
                self.assertIn(words, relay.text())
