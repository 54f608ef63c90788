"""Webhooks on real parts: what a receiver gets, whatever it does, whoever leads; and where nothing
may be sent to."""
import json
import os
import re
import socket
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import proc
from harness.relay import cli
from harness.world import World

KEY = 'k' * 40


def verify_of_the_page():
    """The example of docs/webhooks.md, as it stands there."""
    with open(os.path.join(proc.ROOT, 'docs', 'webhooks.md')) as page:
        code, = re.findall(r'```python\n(.*?)```', page.read(), re.S)
    names = {}
    exec(code, names)  # noqa: S102
    return names['verify']


class Receiver:
    """Answers as `answer` says: a status, or a function of the socket."""

    def __init__(self):
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length']))
                answer = receiver.answer
                receiver.heard.append((dict((k.lower(), v) for k, v in self.headers.items()), body,
                                       json.loads(body)['data']))
                if callable(answer):
                    answer(self)
                    return
                self.send_response(answer)
                self.send_header('Location', receiver.url)
                self.send_header('Content-Length', '0')
                self.end_headers()

            def log_message(self, *_):
                pass

        self.answer, self.heard = 200, []
        self.server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.url = f'http://127.0.0.1:{self.server.server_address[1]}/hook'
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def ids(self):
        return [data['id'] for _, _, data in self.heard]


class Webhooks(unittest.TestCase):
    def setUp(self):
        self.receiver = Receiver()
        self.addCleanup(self.receiver.close)
        self.world = World()
        self.world.__enter__()
        self.addCleanup(lambda: self.world.__exit__(None, None, None))
        self.key_file = os.path.join(self.world.dir, 'webhooks.key')
        with open(os.open(self.key_file, os.O_WRONLY | os.O_CREAT, 0o600), 'w') as file:
            file.write(KEY + '\n')

    def relay(self, name, private=True, timeout_ms=2000):
        relay = self.world.relay(name, extra=f'webhooks:\n  key_file: {self.key_file}\n  '
                                             f'timeout_ms: {timeout_ms}\n'
                                             + ('  allow_private: true\n' if private else ''))
        return relay

    def hook(self, *words, check=True):
        return cli('webhook', *words, '--database', self.world.pg.dsn, check=check)

    def test_the_role_of_relays_is_enough_for_each_command(self):
        """And no more than that role: what the commands ask for is granted."""
        relay = self.relay('one')
        self.world.wait_leader(relay)
        self.world.pg.query('CREATE ROLE lone LOGIN IN ROLE txrelay_relay')
        dsn = self.world.pg.dsn_of(self.world.pg.database, 'lone')
        for words in (('create', 'shop', 'https://hook.example/x'), ('list',), ('dead', 'shop'),
                      ('again', 'shop'), ('pause', 'shop'),
                      ('resume', 'shop'), ('rotate', 'shop'),
                      ('secret', 'shop', '--config', relay.config), ('remove', 'shop')):
            with self.subTest(words[0]):
                cli('webhook', *words, '--database', dsn)

    def ends(self, n, text='end'):
        """So many that end well."""
        return [self.world.enqueue(f'{text} {i}') for i in range(n)]

    def hurry(self):
        """What failed is due now."""
        self.world.pg.query("UPDATE txrelay.webhook_deliveries SET due_at = clock_timestamp() "
                            "WHERE dead_at IS NULL AND due_at > clock_timestamp()")

    def failed(self, text):
        proc.wait_for(text, lambda: self.world.pg.value(
            "SELECT count(*) FROM txrelay.webhook_deliveries WHERE error LIKE %s", (f'%{text}%',)),
            30)

    def waiting(self):
        return self.world.pg.value('SELECT count(*) FROM txrelay.webhook_deliveries')

    def test_ends_arrive_in_order_with_a_signature_that_the_page_checks(self):
        verify = verify_of_the_page()
        relay = self.relay('one')
        self.world.wait_leader(relay)
        self.hook('create', 'shop', self.receiver.url, '--for', 'alice', '--outcome',
                  'ok,cancelled')
        secret = self.hook_secret(relay)
        ids = self.ends(30)
        self.world.settle()
        proc.wait_for('all of them', lambda: len(self.receiver.heard) >= 30 and not self.waiting(),
                      30)
        self.assertEqual(self.receiver.ids(), ids)
        for headers, body, data in self.receiver.heard:
            self.assertTrue(verify(secret, headers, body))
            self.assertFalse(verify(secret, headers, body + b' '))
            self.assertFalse(verify(secret, headers, body,
                                    now=int(headers['webhook-timestamp']) + 301))
            self.assertFalse(verify('whsec_' + 'A' * 44, headers, body))
            self.assertEqual((headers['webhook-id'], headers['content-type']),
                             (f'tx_{data["id"]}', 'application/json'))
        data = self.receiver.heard[0][2]
        row, = self.world.pg.query('SELECT outcome::text, nonce, block_number, fee::text, \'0x\' '
                                   '|| encode(hash, \'hex\') '
                                'FROM txrelay.finished_transactions WHERE id = %s', (ids[0],))
        self.assertEqual((data['outcome'], data['nonce'], data['block_number'], data['fee'],
                          data['hash']), tuple(row))

        # After a rotation the former secret is good for a day.
        self.hook('rotate', 'shop')
        self.receiver.heard.clear()
        self.ends(1, 'rotated')
        proc.wait_for('it', lambda: self.receiver.heard, 30)
        headers, body, _ = self.receiver.heard[0]
        after = self.hook_secret(relay)
        self.assertNotEqual(after, secret)
        self.assertTrue(verify(secret, headers, body) and verify(after, headers, body))
        for hidden in (secret[6:], after[6:], KEY):
            self.assertNotIn(hidden, relay.text())
            self.assertEqual(self.world.pg.value('SELECT count(*) FROM txrelay.webhooks w '
                                                 'WHERE w::text LIKE %s', (f'%{hidden}%',)), 0)
        # the relay counts an answer when it has read it
        metrics = proc.wait_for('all to be counted', lambda: (
            lambda text: 'txrelay_webhook_deliveries_total{result="taken"} 31\n' in text and text)(
                cli('metrics', '--config', relay.config).stdout))
        with open(os.path.join(proc.ROOT, 'docs', 'webhooks.md')) as page:
            text = page.read()
        for name, kind, words in re.findall(r'# HELP (txrelay_webhook\w*) (.*)\n# TYPE \1 (\w+)',
                                            metrics):
            self.assertRegex(text, rf'\| `{name}` \| {words} \| .* \| {re.escape(kind)} \|')
        self.hook('remove', 'shop')

    def hook_secret(self, relay):
        secret = cli('webhook', 'secret', 'shop', '--config', relay.config).stdout.strip()
        self.assertRegex(secret, r'^whsec_[A-Za-z0-9+/]{43}=$')
        return secret

    def test_whatever_a_receiver_does_it_gets_all_in_order(self):
        relay = self.relay('one', timeout_ms=500)
        self.world.wait_leader(relay)
        self.hook('create', 'shop', self.receiver.url)

        def hangs(handler):
            handler.connection.settimeout(20)
            handler.rfile.read(1)  # until the relay gives up

        def floods(handler):
            try:
                handler.wfile.write(b'HTTP/1.1 200 OK\r\n')
                while True:
                    handler.wfile.write(b'X: ' + b'a' * 4000 + b'\r\n')
            except OSError:
                pass

        def nonsense(handler):
            handler.wfile.write(b'\0\1\2\3\r\n\r\n')
            handler.close_connection = True

        ids = self.ends(3)
        self.receiver.answer = 500
        self.failed('it answered 500')
        for answer, text in ((hangs, 'no answer in time'),
                             (302, 'it answered 302, and redirects are not followed'),
                             (floods, 'too long'),
                             (nonsense, 'not HTTP/1'),
                             (lambda h: h.connection.shutdown(socket.SHUT_RDWR),
                              'ended before an answer')):
            self.receiver.answer = answer
            self.hurry()
            self.failed(text)
        self.assertEqual(set(self.receiver.ids()), {ids[0]})  # the others wait behind it
        self.receiver.answer = 204
        self.receiver.heard.clear()
        self.hurry()
        self.world.settle()
        proc.wait_for('all of them', lambda: not self.waiting(), 30)
        self.assertEqual(self.receiver.ids(), ids)

        # Given up after the last attempt: the next one goes; listed, and sent again.
        self.receiver.answer = 500
        first, = self.ends(1, 'dead')
        self.failed('it answered 500')
        self.world.pg.query('UPDATE txrelay.webhook_deliveries SET attempts = 19')
        self.hurry()
        relay.wait_log('webhook.given_up .*it answered 500')
        dead = proc.wait_for('its row to say so',
                             lambda: self.hook('dead', 'shop', '--json').stdout)
        listed = json.loads(dead)
        self.assertEqual((listed['id'], listed['attempts'], listed['error']),
                         (first, 20, 'it answered 500'))
        self.assertRegex(self.hook('dead', 'shop').stdout, r'(?m)^number +account +id .*\n\d+ '
                                                           rf'+alice +{first} +20 .* it '
                                                           r'answered 500$')
        self.assertRegex(self.hook('list').stdout,
                         r'(?m)^webhook +url .*\nshop +http\S+ +- +- +active +\d+ +1$')
        self.receiver.answer = 200
        self.receiver.heard.clear()
        next_, = self.ends(1, 'next')
        proc.wait_for('the next one', lambda: self.receiver.ids() == [next_], 30)
        self.assertIn('1 deliveries', self.hook('again', 'shop').stdout)
        proc.wait_for('the dead one', lambda: self.receiver.ids() == [next_, first], 30)
        # No program listens at the URL.
        self.receiver.close()
        self.ends(1, 'alone')
        proc.wait_for('a failure', lambda: self.world.pg.value("SELECT count(*) "
                                                               "FROM txrelay.webhook_deliveries "
                                                               "WHERE attempts > 0"), 30)
        self.assertEqual(json.loads(self.hook('list', '--json').stdout)['waiting'], 1)
        self.world.settle()

    def test_a_leader_that_is_killed_loses_none(self):
        relays = [self.relay('one')]
        self.world.wait_leader(relays[0])  # of two that start together either may lead
        relays.append(self.relay('two'))
        self.hook('create', 'shop', self.receiver.url)
        slow = threading.Event()

        def answer(handler):
            if len(self.receiver.heard) > 15:
                slow.wait(60)  # so that the leader is killed before it has sent all
            handler.send_response(200)
            handler.send_header('Content-Length', '0')
            handler.end_headers()

        self.receiver.answer = answer
        ids = self.ends(60)
        for relay in relays:
            if relay.leads('alice'):
                break
        proc.wait_for('some', lambda: len(self.receiver.heard) > 15, 60)
        relay.kill()
        self.assertLess(len(set(self.receiver.ids())), 60)
        slow.set()
        other = relays[1 - relays.index(relay)]
        self.world.wait_leader(other)
        self.world.settle()
        proc.wait_for('all of them', lambda: not self.waiting(), 60)
        heard, first = self.receiver.ids(), []
        for id in heard:
            if id not in first:
                first.append(id)
        self.assertEqual(first, ids)  # each once or more, and their first arrivals in order
        self.assertLessEqual(len(heard) - len(ids), 10)

    def test_private_networks_are_no_receivers_unless_allowed(self):
        relay = self.relay('one', private=False)
        self.world.wait_leader(relay)
        port = self.receiver.server.server_address[1]
        urls = [self.receiver.url, f'http://localhost:{port}/', f'http://[::1]:{port}/',
                'https://169.254.169.254/', 'http://10.0.0.1/', 'https://[fd00::1]/',
                f'http://0x7f.1:{port}/', f'http://2130706433:{port}/',
                f'http://[::ffff:127.0.0.1]:{port}/', 'http://0.0.0.0/']
        for i, url in enumerate(urls):
            self.hook('create', f'hook-{i}', url)
        self.ends(1)
        proc.wait_for('an attempt of each', lambda: self.world.pg.value(
            'SELECT count(*) FROM txrelay.webhook_deliveries WHERE attempts > 0') == len(urls), 60)
        errors = [e for (e,) in self.world.pg.query('SELECT error FROM txrelay.webhook_deliveries')]
        for error in errors:
            self.assertRegex(error, r'is an address of a private network|the host is not known')
        self.assertGreaterEqual(len([e for e in errors if 'private network' in e]), 6)
        self.assertEqual(self.receiver.heard, [])
        self.assertIn('user',
                      self.hook('create', 'x', 'https://u:p@x.example/', check=False).stderr)
        self.world.settle()

    def test_what_cannot_work_is_refused_by_check_and_run_alike(self):
        open_file = os.path.join(self.world.dir, 'open.key')
        with open(open_file, 'w') as file:
            file.write(KEY)
        os.chmod(open_file, 0o644)
        for extra, words in ((f'webhooks:\n  key_file: {open_file}\n', 'chmod 600'),
                             ('webhooks:\n  key_file: /none\n', 'No such file'),
                             (f'webhooks:\n  key_file: {self.key_file}\n  ca_file: /none\n',
                              '/none'),
                             ('http:\n  listen: tcp:0.0.0.0:0\n',
                              'can be reached from other machines'),
                             ('http:\n  listen: tcp:127.0.0.1:0\n  cert_file: /none\n  key_file: '
                              '/none\n', '/none')):
            relay = self.world.relay('bad', start=False, extra=extra)
            checked = cli('check', '--config', relay.config, check=False)
            self.assertIn('not ready', checked.stdout)
            self.assertRegex(checked.stdout, f'BAD .*{words}')
            if 'webhooks' in extra:
                ran = cli('run', '--config', relay.config, check=False)
                self.assertEqual(ran.returncode, 2)
                self.assertIn(words, ran.stderr)
