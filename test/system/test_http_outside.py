"""What comes from outside at each route: headers that come twice, and a database that is away,
silent or read-only. Every answer comes in time and says what is wrong."""
import glob
import http.client
import json
import os
import re
import signal
import threading
import unittest

from harness import proc
from harness.events import Events
from harness.world import World
from system.test_http import DOCUMENT, EXTRA, STREAM, Client, token

BODIES = {'/v1/transactions': {'account': 'alice', 'call': '0x0000'},
          '/v1/accounts/{account}/pause': {'reason': 'x'},
          '/v1/accounts/{account}/policy': {'tip_start': 1},
          '/v1/transactions/{id}/bump': {'tip': 1}, '/v1/transactions/cancel': {'ids': [1]},
          '/v1/transactions/bump': {'ids': [1], 'tip': 1}, '/v1/transactions/retry': {'ids': [1]},
          '/v1/accounts': {'alias': 'bob',
                           'account': '5FHneW46xGXgs5mUiveU4sbTyGBzmstUspZC92UhjJM694ty'}}
VALUES = {'id': '1', 'account': 'alice', 'webhook': 'hook', 'pallet': 'System', 'call': 'remark',
          'name': 'hook', 'file': 'app.js'}
IN_TIME_S = 40  # a statement may take 5 s, and a session that is silent is given up after 15


def routes():
    for pattern, item in DOCUMENT['paths'].items():
        for method in item:
            if (method, pattern) != ('post', '/v1/relay/drain'):  # it ends the relay
                target = re.sub(r'\{(\w+)\}', lambda m: VALUES[m.group(1)], pattern)
                yield method.upper(), pattern, target, BODIES.get(pattern,
                                                                  {}) if method != 'get' else None


class Outside(unittest.TestCase):
    def test_headers_that_come_twice_are_refused(self):
        """A key that is ignored because it came twice enqueues the transaction again."""
        read = set()
        for path in glob.glob(os.path.join(proc.ROOT, 'http', '*.c')):
            with open(path) as file:
                read |= set(re.findall(r'http_header\([^;]*?"([a-z-]+)"\)', file.read()))
        self.assertGreater(len(read), 5)
        with World() as world:
            relay = world.relay('one', extra=EXTRA)
            world.wait_leader(relay)
            client = Client(relay, token(world, 'all', 'read', 'enqueue'))
            self.addCleanup(client.conn.close)
            good = {'host': client.address, 'authorization': f'Bearer {client.token}',
                    'content-type': 'application/json',
                    'idempotency-key': 'k', 'last-event-id': '1',
                    'origin': f'http://{client.address}'}
            self.assertEqual(read, set(good))
            host, port = client.address.rsplit(':', 1)
            for name in sorted(read):
                for method, target, body in (('GET', '/v1/cluster', None), ('GET', STREAM, None),
                                             ('POST', '/v1/transactions',
                                              b'{"account": "alice", "call": "0x0000"}')):
                    with self.subTest(name, target=target):
                        conn = http.client.HTTPConnection(host, int(port), timeout=30)
                        conn.putrequest(method, target, skip_host=True)
                        for header, value in [*good.items(), (name.title(), good[name])]:
                            conn.putheader(header, value)
                        if body:
                            conn.putheader('Content-Length', str(len(body)))
                        conn.endheaders(body)
                        answer = conn.getresponse()
                        self.assertEqual(answer.status, 400)
                        self.assertIn(name, json.loads(answer.read())['detail'].lower())
                        conn.close()
            self.assertEqual(world.pg.value("SELECT (SELECT count(*) FROM txrelay.outbox) + "
                                            "(SELECT count(*) FROM txrelay.pending_transactions)"),
                                            0)

    def test_positions_that_nobody_gave_lose_nothing(self):
        """Last-Event-ID of another ring, of events that are yet to come, of a time to come, of
        long ago, and of another filter."""
        with World() as world:
            relay = world.relay('one', extra=EXTRA + '  rate: 100000\n')
            world.wait_leader(relay)
            client = Client(relay, token(world, 'reads', 'read'))
            self.addCleanup(client.conn.close)
            first = world.enqueue('first')
            world.settle()
            streams = {}

            def read(name, last, query=''):
                streams[name] = Events(client.address, client.token, query, last=last)
                self.addCleanup(streams[name].close)
                self.assertEqual(streams[name].status, 200, (name, last))
                proc.wait_for(f'{name} to be live', streams[name].is_live, 30)
                return streams[name].of('live')[0]['_id']
            at, ring, number = read('now', None).split('-')
            later = int(at) + 10 ** 15  # thirty years
            for name, last in (('another ring', f'{at}-{int(ring, 16) ^ 1:08x}-{number}'),
                               ('events to come', f'{at}-{ring}-{10 ** 15}'),
                               ('a time to come', f'{later}-{int(ring, 16) ^ 1:08x}-1'),
                               ('a time to come of this ring', f'{later}-{ring}-{number}'),
                               ('long ago', f'1-{int(ring, 16) ^ 1:08x}-1'),
                               ('a position alone', streams['now'].of('live')[0]['position']),
                               ('the first of all', '1')):
                read(name, last)
            read('another filter', f'{at}-{ring}-{number}', f'?id={first}')
            second = world.enqueue('second')
            world.settle()
            for name, stream in streams.items():
                with self.subTest(name):
                    want = [first] if name in ('long ago', 'the first of all') else []
                    want += [second] if name != 'another filter' else []
                    proc.wait_for('its ends', lambda s=stream, w=want: set(s.ends()) >= set(w), 30)
                    # an end may come again to who resumes by a position
                    self.assertLessEqual(set(stream.ends()) - set(want), {first})
                    self.assertEqual(len(stream.ends()), len(set(stream.ends())))
            self.assertEqual([s.status for s in streams.values()], [200] * len(streams))

    def every_route(self, relay, secret, may_work):
        """All at once, each on a connection of its own. What came of each."""
        found, threads = {}, []

        def ask(key, method, target, body):
            client = Client(relay)
            client.conn.timeout = IN_TIME_S
            try:
                found[key] = client.ask(method, target, body, token=secret)
            except Exception as e:  # the test shows which route it was
                found[key] = (None, repr(e))
            client.conn.close()
        for method, pattern, target, body in routes():
            if pattern != STREAM or not may_work:
                threads.append(threading.Thread(target=ask,
                                                args=((method, pattern), method, target, body),
                                                daemon=True))
        for t in threads:
            t.start()
        for t in threads:
            t.join(2 * IN_TIME_S)
        self.assertEqual(len(found), len(threads))
        for key, (status, value) in found.items():
            with self.subTest(key):
                self.assertIsNotNone(status, value)
                self.assertTrue(status < 500 or status in (503, 504), (status, value))
                if status >= 400:
                    self.assertGreater(len(value['detail']), 10)
        return {key: status for key, (status, _) in found.items()}

    def test_whatever_the_database_does_each_route_answers(self):
        with World(own_postgres=True) as world:
            relay = world.relay('one', extra=EXTRA + '  rate: 100000\n')
            world.wait_leader(relay)
            secret = token(world, 'all', 'read', 'enqueue', 'operate')
            client = Client(relay, secret)
            self.addCleanup(client.conn.close)
            works = lambda: client.ask('GET', '/v1/transactions')[0] == 200
            needs = {(m, p) for m, p, _, _ in routes()
                     if DOCUMENT['paths'][p][m.lower()].get('security')}
            # Read-only: reads go on, or the session waits for a server that takes writes.
            world.pg.query("ALTER SYSTEM SET default_transaction_read_only = on")
            world.pg.query('SELECT pg_reload_conf()')
            proc.wait_for('a server that is read-only',
                          lambda: client.ask('POST', '/v1/accounts/alice/pause', {})[0] == 503, 30)
            statuses = self.every_route(relay, secret, True)
            self.assertEqual({s for k, s in statuses.items() if k[0] == 'POST' and s < 400}, set())
            self.assertEqual(statuses['POST', '/v1/transactions'], 503)
            writer = world.pg.connect()
            writer.cursor().execute('SET default_transaction_read_only = off')
            writer.cursor().execute('ALTER SYSTEM RESET default_transaction_read_only')
            writer.cursor().execute('SELECT pg_reload_conf()')
            writer.close()
            proc.wait_for('all to work again', works, 60)
            # Silent: its sessions of HTTP do not answer.
            pids = [pid for pid, in world.pg.query(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'txrelay http'")]
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            try:
                statuses = self.every_route(relay, secret, False)
            finally:
                for pid in pids:
                    os.kill(pid, signal.SIGCONT)
            self.assertEqual({statuses[k] for k in needs}, {503})
            proc.wait_for('all to work again', works, 60)
            world.pg.stop()
            proc.wait_for('the end of its sessions',
                          lambda: client.ask('GET', '/v1/cluster')[0] == 503, 30)
            statuses = self.every_route(relay, secret, False)
            self.assertEqual({statuses[k] for k in needs}, {503})
            self.assertEqual(relay.stop(), 0)
