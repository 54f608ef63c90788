"""Where others reach a relay (control, metrics, feeds, HTTP): one that cannot be opened, or cannot
accept, costs no lead."""
import os
import re
import resource
import socket
import unittest

from harness import proc
from harness.bouncer import free_port
from harness.certificates import Certificates
from harness.relay import cli
from harness.world import World

ENTRIES = 'control', 'metrics', 'feeds', 'http'


class Entries(unittest.TestCase):
    def relay(self, world, ports, more='', start=True):
        return world.relay('one', start=start, listen=f'tcp:127.0.0.1:{ports["control"]}',
                           extra=f'''metrics: 127.0.0.1:{ports["metrics"]}
feeds:
  listen: tcp:127.0.0.1:{ports["feeds"]}
http:
  listen: tcp:127.0.0.1:{ports["http"]}
{more}''')

    def leads(self, world):
        world.relays[0].wait_log(r'event=leader\.acquired account=alice')
        world.enqueue(f'led all the same: {len(world.committed)}')
        world.settle()

    def connect(self, port):
        s = socket.create_connection(('127.0.0.1', port), timeout=60)
        self.addCleanup(s.close)
        return s

    def answers(self, entry, s):
        """It speaks to this connection."""
        s.sendall({'control': b'{"cmd":"health"}\n',
                   'metrics': b'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n',
                   'feeds': b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
                   + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)),
                   'http': b'GET /v1/nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n'}[entry])
        return s.recv(1)

    def test_an_entry_that_is_taken_costs_no_lead_and_opens_later(self):
        with World() as world:
            taken = {e: socket.create_server(('127.0.0.1', 0)) for e in ENTRIES}
            ports = {e: s.getsockname()[1] for e, s in taken.items()}
            relay = self.relay(world, ports)
            for entry in ENTRIES:
                relay.wait_log(rf'event=entry\.closed entry={entry} text="cannot listen on '
                               rf'tcp:127\.0\.0\.1:{ports[entry]}: '
                               r'address already in use: stop the program that has it')
            self.leads(world)
            for s in taken.values():
                s.close()
            for entry in ENTRIES:
                proc.wait_for(f'{entry} to open', lambda port=ports[entry]: opens(port))
                self.assertTrue(self.answers(entry, self.connect(ports[entry])))

    def test_an_expired_certificate_costs_no_lead(self):
        files = Certificates()
        files.authority()
        files.certificate('old', 'relay.test', days='-1')
        more = f'  cert_file: {files.path("old.pem")}\n  key_file: {files.path("old.key")}'
        with World() as world:
            ports = {e: free_port() for e in ENTRIES}
            relay = self.relay(world, ports, start=False)
            with open(relay.config) as file:
                text = file.read()
            with open(relay.config, 'w') as file:
                file.write(re.sub(r'(  listen: tcp:.*)', rf'\1\n{more}', text))
            checked = cli('check', '--config', relay.config, check=False)
            self.assertEqual(checked.returncode, 1)
            relay.start()
            for entry in ('feeds', 'http'):
                found = re.search(rf'^  BAD +{entry} +(.*old\.pem expired at .*: renew it)$',
                                  checked.stdout, re.M)
                self.assertTrue(found, checked.stdout)
                relay.wait_log(rf'event=entry\.closed entry={entry} text="{re.escape(found[1])}"')
            self.leads(world)
            files.certificate('old', 'relay.test')
            relay.wait_log(r'event=feed\.listening')
            relay.wait_log(r'event=http\.listening')

    def test_without_descriptors_connections_wait_and_the_log_says_so(self):
        with World() as world:
            ports = {e: free_port() for e in ENTRIES}
            relay = self.relay(world, ports)
            self.leads(world)
            pid = relay.process.pid
            before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            free = next(fd for fd in range(before[0])
                        if not os.path.lexists(f'/proc/{pid}/fd/{fd}'))
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, before[1]))
            waiting = {e: self.connect(ports[e]) for e in ENTRIES}
            for entry in ENTRIES:
                relay.wait_log(rf'event=listener\.failed address=tcp:127\.0\.0\.1:{ports[entry]} '
                               r'.*too many open files')
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
            for entry, s in waiting.items():
                self.assertTrue(self.answers(entry, s), entry)
            self.assertLessEqual(relay.text().count('event=listener.failed'), 2 * len(ENTRIES))
            self.leads(world)


def opens(port):
    try:
        socket.create_connection(('127.0.0.1', port)).close()
    except OSError:
        return False
    return True


if __name__ == '__main__':
    unittest.main()
