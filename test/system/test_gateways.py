"""What gateways, load balancers and providers do to a connection that is none of the node's doing.
Each shape is in the table of its kind; a transaction ends well through it, or the relay says what
is wrong."""
import json
import os
import struct
import subprocess
import time
import unittest
import zlib

from harness import faketime, proc
from harness.cases import CaseTest, load_tests  # noqa: F401
from harness.liar import Liar, frame

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


def changed(change):
    """Of each message."""
    return lambda payload: frame(json.dumps(change(json.loads(payload))).encode())


def answers(change):
    """Of each message that is an answer."""
    return changed(lambda message: change(message) if 'id' in message else message)


def fragments(payload, between=b''):
    parts = [payload[i:i + 61] for i in range(0, len(payload),
                                              61)] if len(payload) < 5000 else [payload[:100],
                                                                                payload[100:]]
    return b''.join((between if i else b'') + frame(part, CONTINUATION if i else TEXT,
                                                    i == len(parts) - 1)
                    for i, part in enumerate(parts))


class Together:
    """Several messages come as one array, in the reverse order."""

    def __init__(self):
        self.kept = []

    def __call__(self, payload):
        self.kept.append(json.loads(payload))
        # answers come at once, with the notifications before them
        if 'method' not in self.kept[-1]:
            message, self.kept = self.kept[::-1], []
            return frame(json.dumps(message).encode())
        return b''


def numbers():
    """Ids of subscriptions are numbers, and were strings."""
    ids = {}

    def change(message):
        name = (message.get('params') or {}).get('subscription')
        if name:
            message['params']['subscription'] = ids.setdefault(name, len(ids) + 1)
        # as devchain names them
        elif isinstance(message.get('result'), str) and len(message['result']) == 16:
            message['result'] = ids.setdefault(message['result'], len(ids) + 1)
        return message
    return changed(change)


STRANGER = {'jsonrpc': '2.0', 'method': 'chain_newHead',
            'params': {'subscription': 'nobody\'s', 'result': {'number': '0x1'}}}
LATE = {'jsonrpc': '2.0', 'id': 4 << 40, 'result': None}
NEWS = frame(json.dumps(STRANGER).encode()) + frame(json.dumps(LATE).encode())

# What comes in place of the frame with this text.
WIRE = {
    'fragments': fragments,
    'fragments, and pings between them': lambda payload: fragments(payload,
                                                                   frame(b'are you there', PING)),
    'a ping before each message': lambda payload: frame(b'', PING) + frame(payload),
    'pongs that nobody asked for': lambda payload: frame(b'unasked', PONG) + frame(payload),
    'binary frames': lambda payload: frame(payload, BINARY),
    'white space around the text': lambda payload: frame(b'\r\n\t ' + payload + b'\n\n'),
    'escapes in every text': lambda payload: frame(payload.replace(b'0x', b'\\u0030x')),
    'ids as texts': answers(lambda m: {**m, 'id': str(m['id'])}),
    'jsonrpc is null': changed(lambda m: {**m, 'jsonrpc': None}),
    'no jsonrpc': changed(lambda m: {k: v for k, v in m.items() if k != 'jsonrpc'}),
    'error is null beside a result': answers(lambda m: {'error': None, **m}),
    'more members than there should be': changed(lambda m: {**m, 'usage': {'left': 1e9},
                                                            'x': [[], {}, '']}),
    'several messages in one array': Together(),
    'an array of one': changed(lambda m: [m]),
    'each message twice': lambda payload: 2 * frame(payload),
    'notifications and answers of others': lambda payload: NEWS + frame(payload),
    'what is no JSON between them': lambda payload: frame(b'{"id":') + frame(b'"hello"')
    + frame(b'') + frame(payload),
    'numbers as ids of subscriptions': numbers(),
}

DEFLATE = b'Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n'


def deflated(payload):
    """A whole message with RSV1, as RFC 7692 compresses it."""
    deflate = zlib.compressobj(wbits=-15)
    data = frame((deflate.compress(payload) + deflate.flush(zlib.Z_SYNC_FLUSH))[:-4])
    return bytes([data[0] | 0x40]) + data[1:]


def insists(head):
    return head.replace(b'\r\n\r\n', b'\r\n' + DEFLATE + b'\r\n')


# Servers that compress without being asked to: how they answer an upgrade, what they make of
# a message, what the relay says.
COMPRESSION = {
    'it compresses unasked': (None, deflated, 'permessage-deflate'),
    'it insists': (insists, None, 'an extension that was not offered'),
    'it insists and compresses': (insists, deflated, 'an extension that was not offered'),
}

# How an upgrade is answered before it succeeds, and what the relay says of it; NULL: nothing in
# particular.
GREETINGS = {
    '429': (b'HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n',
            'HTTP status 429'),
    '429 until a date': (b'HTTP/1.1 429 Too Many Requests\r\nDate: Tue, 03 Mar 2026 10:00:00 '
                         b'GMT\r\n'
                         b'Retry-After: Tue, 03 Mar 2026 10:00:02 GMT\r\nContent-Length: 0\r\n\r\n',
                         'HTTP status 429'),
    '502 with a page': (b'HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: '
                        b'6000\r\n\r\n' + b'<p>no</p>' * 666
                        + b'.' * 6, 'HTTP status 502'),
    '503 in chunks': (b'HTTP/1.1 503 Service Unavailable\r\nTransfer-Encoding: '
                      b'chunked\r\n\r\n3\r\nno\n\r\n0\r\n\r\n', 'HTTP status 503'),
    '401': (b'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm="x"\r\nContent-Length: '
            b'0\r\n\r\n', 'HTTP status 401'),
    'another key': (b'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: '
                    b'Upgrade\r\n'
                    b'Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n', ''),
    'nothing': (b'\r\n', ''),
}

# The last bytes of a connection.
GOODBYES = {
    'going away': frame(struct.pack('!H', 1001) + b'deploy', CLOSE),
    'policy': frame(struct.pack('!H', 1008) + b'idle for too long', CLOSE),
    'restart': frame(struct.pack('!H', 1012), CLOSE),
    'a code of its own': frame(struct.pack('!H', 4429) + 'zu viele \u00e4'.encode(), CLOSE),
    'a code that must not be sent': frame(struct.pack('!H', 1006), CLOSE),
    'no code': frame(b'', CLOSE),
    'half a code': frame(b'\x03', CLOSE),
    'half a frame': b'\x81\x7e\x10',
    'a frame with a reserved bit': b'\xc1\x02{}',
    'no word': b'',
}


def certificate(directory, name, *options, days_ago=0):
    paths = os.path.join(directory, f'{name}.crt'), os.path.join(directory, f'{name}.key')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt',
                    'ec_paramgen_curve:prime256v1', '-nodes', '-subj',
                    f'/CN={name}', '-days', '2', *options, '-out', paths[0], '-keyout', paths[1]],
                    check=True, capture_output=True,
                   env={**os.environ, **faketime.environment(FAKETIME=f'-{days_ago}d')} if days_ago
                   else None)
    return paths


class GatewaysTest(CaseTest):
    def liar(self, world, tls=None):
        liar = Liar(world.chain.ws, tls=tls)
        self.addCleanup(liar.close)
        return liar

    def through(self, shape):
        """A world whose relay leads through a proxy that is ordinary until now."""
        world = self.world('--block-ms', '100', *shape, start=False)
        liar = self.liar(world)
        relay = world.relay('one', endpoints=[liar.url], chain={'call_timeout_ms': 3000})
        world.wait_leader(relay)
        return world, liar, relay

    def again(self, relay, liar, end=None):
        """The connection ends; returns when there is another one."""
        ups = relay.text().count('chain.up')
        (end or liar.cut)()
        proc.wait_for('the next connection', lambda: relay.text().count('chain.up') > ups)

    def sent(self, world, text):
        tx = world.enqueue(text)
        proc.wait_for(text, lambda: world.pg.query(
            "SELECT 1 FROM txrelay.finished_transactions WHERE id = %s AND outcome = 'ok'",
                                                   (tx,)), 30)

    def test_messages(self):
        world, liar, relay = self.through(())
        for shape, wire in WIRE.items():
            with self.subTest(shape):
                liar.wire = wire
                self.again(relay, liar)
                accepted = liar.accepted
                self.sent(world, shape)
                self.assertEqual(liar.accepted, accepted, 'the connection is the same')
                self.assertIsNone(liar.error)
        self.assertGreater(liar.control[PONG], 10, 'pings were answered')
        self.assert_once(world)

    def test_messages_of_the_newer_rpc(self):
        world, liar, relay = self.through(('--newer-rpc',))
        liar.reply = lambda method, params: None
        for shape in ('fragments', 'ids as texts', 'several messages in one array',
                      'each message twice'):
            with self.subTest(shape):
                liar.wire = WIRE[shape]
                self.again(relay, liar)
                self.sent(world, shape)
        self.assert_once(world)

    def test_upgrades(self):
        world, liar, relay = self.through(())
        for shape, (greeting, said) in GREETINGS.items():
            with self.subTest(shape):
                liar.greeting = greeting
                before, tries = len(relay.text()), liar.accepted
                liar.cut()
                proc.wait_for('tries', lambda: liar.accepted > tries + 1)
                liar.greeting = None
                self.sent(world, shape)
                self.assertIn(said, relay.text()[before:])
        self.assert_once(world)

    def test_a_time_that_an_upgrade_names(self):
        """As seconds and as a date: nobody knocks before."""
        world, liar, relay = self.through(())
        for shape in ('429', '429 until a date'):
            with self.subTest(shape):
                liar.greeting = GREETINGS[shape][0].replace(b'After: 1\r', b'After: 2\r')
                refused = relay.text().count('HTTP status 429')
                liar.cut()
                proc.wait_for('a refusal', lambda: relay.text().count('HTTP status 429') > refused)
                told, tries = time.monotonic(), liar.accepted
                liar.greeting = None
                proc.wait_for('another try', lambda: liar.accepted > tries)
                self.assertGreater(time.monotonic() - told, 1.5)
                self.sent(world, shape)
        self.assert_once(world)

    def test_compression(self):
        """None is offered. A server that compresses all the same is left with the reason, and used
        again when it stops."""
        world, liar, relay = self.through(())
        self.assertNotIn(b'extensions', liar.heads[-1].lower())
        for shape, (upgrade, wire, said) in COMPRESSION.items():
            with self.subTest(shape):
                before = len(relay.text())
                liar.upgrade, liar.wire = upgrade, wire
                liar.cut()
                proc.wait_for('the reason', lambda before=before,
                              said=said: said in relay.text()[before:], 20)
                liar.upgrade = liar.wire = None
                self.sent(world, shape)
        self.assert_once(world)

    def test_ends(self):
        world, liar, relay = self.through(())
        for shape, last in GOODBYES.items():
            with self.subTest(shape):
                self.again(relay, liar, lambda last=last: liar.say_goodbye(last))
                self.sent(world, shape)
        self.assertIn('code 1008 idle for too long', relay.text())
        self.assert_once(world)

    def test_connections_that_never_last(self):
        """A load balancer ends each after some blocks, whatever goes over it."""
        world, liar, relay = self.through(())
        ids = [world.enqueue(f'number {i}') for i in range(20)]
        for _ in range(5):
            best = world.best()
            proc.wait_for('blocks', lambda best=best: world.best() > best + 8)
            self.again(relay, liar)
        self.assertEqual(len(ids), 20)
        self.assert_once(world)

    @unittest.skipUnless(faketime.AVAILABLE, faketime.MISSING)
    def test_certificates(self):
        """The name is told to the server (SNI), which may have many; a certificate that is not its
        own, or not any more, is said to be so."""
        world = self.world('--block-ms', '100', start=False)
        named = ('-addext', 'subjectAltName=DNS:localhost')
        good = certificate(world.dir, 'localhost', *named)
        shapes = {
            'another name': (certificate(world.dir, 'elsewhere', '-addext',
                                         'subjectAltName=DNS:elsewhere.example'),
                             'certificate is refused: hostname mismatch'),
            'expired': (certificate(world.dir, 'old', *named, days_ago=9),
                        'certificate is refused: certificate has expired'),
        }
        for shape, (paths, said) in shapes.items():
            with self.subTest(shape):
                bad = self.liar(world, paths)
                fine = self.liar(world, good)
                trusted = os.path.join(world.dir, f'{shape.replace(" ", "-")}.pem')
                with open(trusted, 'w') as file:
                    file.write(open(paths[0]).read() + open(good[0]).read())
                relay = world.relay(shape.replace(' ', '-'),
                                    endpoints=[u.url.replace('127.0.0.1', 'localhost')
                                               for u in (bad, fine)],
                                    chain={'ca_file': trusted})
                relay.wait_log(said)
                world.wait_leader(relay)
                self.sent(world, shape)
                self.assertIn('localhost', fine.names)
                relay.kill()
        self.assert_once(world)
