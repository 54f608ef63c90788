"""The control endpoint's door: who may ask for what, and what ends the connection."""
import json
import os
import socket
import unittest

from harness import proc
from harness.chain import remark
from harness.relay import cli
from harness.world import World


def talk(address, data, seconds=20):
    """Everything that the endpoint answers until it closes or a line is complete for each line
    that was sent."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as s:
        s.settimeout(seconds)
        s.connect(address)
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        got = b''
        while True:
            more = s.recv(65536)
            if not more:
                return got.decode()
            got += more


def set_control(relay, address):
    with open(relay.config) as file:
        lines = file.read().splitlines()
    with open(relay.config, 'w') as file:
        file.write('\n'.join(f'control: "{address}"' if x.startswith('control:') else x
                             for x in lines) + '\n')


class Door(unittest.TestCase):
    def test_tcp_answers_status_alone(self):
        """And metrics and health, which read alone."""
        with World() as world:
            with socket.socket() as s:
                s.bind(('127.0.0.1', 0))
                port = s.getsockname()[1]
            relay = world.relay('one', start=False)
            set_control(relay, f'tcp:127.0.0.1:{port}')
            relay.start()
            relay.wait_log('account.ready')
            call = '0x' + remark('from anybody').hex()
            arguments = {'send': {'account': 'alice', 'call': call}, 'cancel': {'id': 1},
                         'bump': {'id': 1, 'tip': '1'},
                         'resume': {'account': 'alice'}, 'retry': {'id': 1}, 'drain': {}}
            # Each command that there is: a socket of its own says which.
            open_to_us = world.relay('two')
            open_to_us.wait_log('relay.running')
            commands = open_to_us.control({'cmd': 'no such'})['text'].split(': ', 1)[1].split(', ')
            self.assertEqual(set(commands), set(arguments) | {'status', 'metrics', 'health'})
            for command in set(arguments) | {'no such'}:
                request = {'cmd': command, **arguments.get(command, {})}
                with self.subTest(cmd=command):
                    answer = json.loads(talk(('127.0.0.1', port),
                                             json.dumps(request).encode() + b'\n'))
                    self.assertEqual(answer['error'], 'ARGUMENT')
                    self.assertIn('status, metrics and health only', answer['text'])
            status = json.loads(talk(('127.0.0.1', port), b'{"cmd":"status"}\n'))
            self.assertEqual(status['relay'], 'one')
            self.assertTrue(relay.alive())
            self.assertEqual(world.pg.value('SELECT count(*) FROM txrelay.outbox'), 0)
            # A web page: the headers are no JSON, so the body is not read.
            page = (b'POST / HTTP/1.1\r\nHost: x\r\nOrigin: https://evil.example\r\nContent-Type: '
                    b'text/plain\r\n\r\n'
                    b'{"cmd":"status"}\n')
            answers = talk(('127.0.0.1', port), page).splitlines()
            self.assertEqual(len(answers), 1)
            self.assertIn('error', json.loads(answers[0]))
            answers = talk(open_to_us.socket, page.replace(b'status', b'drain')).splitlines()
            self.assertEqual(len(answers), 1)
            self.assertIn('error', json.loads(answers[0]))
            self.assertEqual(open_to_us.status()['phase'], 'running')

    def test_a_drain_is_on_record_and_needs_no_record(self):
        with World(own_postgres=True) as world:
            relay, other = world.relay('one'), world.relay('two')
            for each in (relay, other):
                each.wait_log('relay.running')
            members = "SELECT holder FROM txrelay.members WHERE holder LIKE 'txrelay-one-%'"
            holder = proc.wait_for('its heartbeat', lambda: world.pg.query(members), 30)[0][0]
            cli('drain', '--to', relay.address)
            proc.wait_for('its end', lambda: not relay.alive(), 30)
            self.assertEqual(world.pg.query("SELECT who, action, subject, answer "
                                            "FROM txrelay.operations WHERE action = 'drain'"),
                             [(f'uid:{os.getuid()}', 'drain', holder, 'draining')])
            self.assertNotIn('relay.drain_unrecorded', relay.text())
            world.pg.stop()
            cli('drain', '--to', other.address)
            proc.wait_for('its end', lambda: not other.alive(), 30)
            self.assertRegex(other.text(), r'relay\.drain_unrecorded relay=two text=')

    def test_addresses_that_others_reach_are_refused(self):
        with World() as world:
            relay = world.relay('one', start=False)
            for address in ('tcp:0.0.0.0:0', 'tcp:10.1.2.3:9', 'tcp::::0'):
                with self.subTest(address=address):
                    set_control(relay, address)
                    done = cli('run', '--config', relay.config, check=False)
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn(address, done.stderr)
                    self.assertIn('can be reached from other machines', done.stderr)

    def test_the_creator_is_the_peer(self):
        with World() as world:
            relay = world.relay('one')
            world.wait_leader(relay)
            for creator in (None, 'payouts'):
                call = remark(f'by {creator}')
                request = {'cmd': 'send', 'account': 'alice', 'call': '0x' + call.hex()}
                answer = relay.control(request | ({'creator': creator} if creator else {}))
                world.committed[call] = answer['id']
                shown = world.pg.value('SELECT creator FROM txrelay.status(%s)', (answer['id'],))
                self.assertEqual(shown, creator or f'uid:{os.getuid()}')
            world.settle()

    def test_each_order_says_who_asked(self):
        """In the record of operations, in what they leave in the tables, and in the log."""
        me = f'uid:{os.getuid()}'
        with World() as world:
            relay = world.relay('one')
            world.wait_leader(relay)
            other = world.relay('two')
            other.wait_log('relay.running')
            world.pg.query("SELECT txrelay.account_pause('alice', 'to have something that waits')")
            again, sent = remark('stopped and sent again'), remark('for the payouts')
            id = world.pg.value("SELECT txrelay.enqueue('alice', %s)", (again,))
            orders = {'send': (relay, {'account': 'alice', 'call': '0x' + sent.hex(),
                                       'creator': 'payouts'}),
                      'bump': (relay, {'id': id, 'tip': '7'}), 'cancel': (relay, {'id': id}),
                      'retry': (relay, {'id': id}),
                      'resume': (relay, {'account': 'alice'}), 'drain': (other, {})}
            commands = relay.control({'cmd': 'no such'})['text'].split(': ', 1)[1].split(', ')
            self.assertEqual(set(commands) - {'status', 'metrics', 'health'}, set(orders))
            for command, (to, request) in orders.items():
                with self.subTest(cmd=command):
                    answer = to.control({'cmd': command, **request})
                    self.assertNotIn('error', answer)
                    if command in ('send', 'retry'):
                        world.committed[sent if command == 'send' else again] = answer['id']
                    to.wait_log(rf'control\.order.* cmd={command} who={me} .*code=OK')
                    self.assertEqual(world.pg.query('SELECT who, action FROM txrelay.operations '
                                                    'ORDER BY id DESC LIMIT 1'), [(me, command)])
            self.assertEqual(world.pg.value('SELECT asked_by FROM txrelay.retries WHERE id = %s',
                                            (id,)), me)
            self.assertEqual(world.pg.value('SELECT error FROM txrelay.status(%s)', (id,)),
                             f'cancelled by {me}')
            world.settle()


if __name__ == '__main__':
    unittest.main()
