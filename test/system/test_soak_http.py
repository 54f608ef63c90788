"""Thousands of bad requests, made from the document that the relay serves (harness/http_inputs.py)
and of bytes that are hardly HTTP (harness/http_raw.py): never a fault of the server, never a crash
or a leak, and each refusal names what is wrong.

./dev soak http: built with the sanitizers, and many more of them; the system lane: each once."""
import collections
import http.client
import json
import random
import re
import unittest

from harness import http_raw, proc
from harness.http_inputs import Inputs
from harness.soak import report, size
from harness.world import World
from system.test_http import Client, EXTRA, token

MIXED, MUTATED = size(20000, 300), size(20000, 300)
STREAM = '/v1/events'


class Hostile(unittest.TestCase):
    def setUp(self):
        self.world = World()
        self.addCleanup(self.world.close)
        self.relay = self.world.relay('one', extra=EXTRA + '  rate: 1000000\n')
        self.world.wait_leader(self.relay)
        self.world.pg.query("SELECT txrelay.relay_register('bob', %s, 'sr25519', %s, '5bob', 7)",
                            (b'\2' * 32, b'\1' * 32))
        self.world.pg.query("SELECT txrelay.webhook_create('hook', 'https://hook.example/x')")
        self.token = token(self.world, 'all', 'read', 'enqueue', 'operate')
        self.client = Client(self.relay, self.token)
        self.addCleanup(self.client.conn.close)
        self.address = self.client.address

    def stream(self, bad):
        """An answer of the route that streams: its head, and what it says if it refuses."""
        host, port = self.address.rsplit(':', 1)
        conn = http.client.HTTPConnection(host, int(port), timeout=30)
        conn.request(bad.method, bad.target,
                     headers={'Authorization': f'Bearer {self.token}', **bad.headers})
        answer = conn.getresponse()
        value = json.loads(answer.read()) if answer.status != 200 else None
        conn.close()
        return answer.status, value

    def ask(self, bad):
        if bad.path == STREAM and bad.method == 'GET':
            return self.stream(bad)
        return self.client.ask(bad.method, bad.target, bad.body,
                               **{k.replace('-', '_'): v for k, v in bad.headers.items()})

    def judge(self, bad, statuses):
        status, value = self.ask(bad)
        statuses[status] += 1
        text = (f'{bad.method} {bad.target[:200]} {bad.headers} {(bad.body or b"")[:200]}: '
                f'{status} {str(value)[:300]}')
        if status >= 500 or (bad.refused and status < 400):
            return text
        if status < 400:
            return None
        if not {'type', 'title', 'status', 'detail'} <= set(value) or value['status'] != status:
            return 'no problem: ' + text
        if bad.names and not any(n.lower() in value['detail'].lower() for n in bad.names):
            return f'names none of {bad.names}: {text}'
        return None

    def test_each_thing_that_can_be_wrong(self):
        status, document = self.client.ask('GET', '/openapi.json', token='')
        self.assertEqual(status, 200)
        inputs, statuses, wrong = Inputs(document), collections.Counter(), []
        rnd = random.Random(20001129)
        for bad in (*inputs.one_thing(), *inputs.methods(), *inputs.mixed(rnd, MIXED)):
            if (problem := self.judge(bad, statuses)) is not None:
                wrong.append(problem)
        report(f'{sum(statuses.values())} bad requests: {dict(sorted(statuses.items()))}')
        self.assertFalse(wrong, f'{len(wrong)} in all\n' + '\n'.join(wrong[:20]))
        self.assertGreater(sum(n for s, n in statuses.items() if s >= 400), 2000)
        self.after()

    def test_bytes_that_are_hardly_http(self):
        good = self.token.encode()
        for name, (data, expected) in http_raw.CASES.items():
            for pieces in (1, 7):
                with self.subTest(name, pieces=pieces):
                    got = http_raw.talk(self.address, data.replace(b'TOKEN', good), pieces,
                                        len(expected or ()))
                    found = http_raw.answers(got)
                    http_raw.check(found)
                    if expected:
                        self.assertEqual([status for status, _, _ in found], expected)
        rnd = random.Random(20001129)
        whole = [data.replace(b'TOKEN', good) for data, _ in http_raw.CASES.values()
                 if len(data) < 5000]
        for _ in range(MUTATED):
            data = bytearray(rnd.choice(whole))
            for _ in range(rnd.randrange(1, 6)):
                at = rnd.randrange(len(data) + 1)
                way = rnd.randrange(4)
                data[at:at + (way > 1)] = (bytes([rnd.randrange(256)]),
                                           rnd.choice(whole)[:rnd.randrange(80)], b'',
                                           bytes([rnd.randrange(128)]))[way]
            http_raw.check(http_raw.answers(http_raw.talk(self.address, bytes(data))))
        self.after()

    def after(self):
        """It goes on as before, holds no connection of theirs, and ends with nothing lost (the
        sanitizers would say so)."""
        self.assertEqual(self.client.ask('GET', '/v1/cluster')[0], 200)
        self.client.ask('POST', '/v1/accounts/alice/resume')
        self.world.enqueue('after all that')
        proc.wait_for('its end', lambda: not self.world.unfinished(), 60)
        self.client.conn.close()
        self.assertEqual(self.relay.stop(), 0)
        self.assertEqual(re.findall(r'http\.failed .*|ERROR: \w+Sanitizer.*|.*runtime error.*',
                                    self.relay.text()), [])
