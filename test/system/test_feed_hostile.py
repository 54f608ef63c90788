"""Whatever bytes come to the door of feeds: the publisher beside them goes on, the relay's memory
does not grow, and who has no token stays outside, without a secret in the log.
test/unit/net/h2_attack_test.c has each attack of HTTP/2 in virtual time; here they meet a relay,
from many connections, while it works."""
import os
import random
import re
import socket
import struct
import subprocess
import time
import unittest
import zlib

import grpc

from harness import proc
from harness.chain import remark
from harness.publishers import OPTIONS, PATH, Key, Publisher, Wire
from harness.relay import cli
from harness.world import World

TOKEN, WRONG = 'open-sesame-4711', 'let-me-in-0815'
# of the relay, whatever is done to it; each attack would take gigabytes or a hundred megabytes
GROWTH_KB = 32 << 10
PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS = 1, 4


def frame(kind, flags=0, stream=0, payload=b''):
    return len(payload).to_bytes(3, 'big') + bytes([kind, flags]) + stream.to_bytes(4,
                                                                                    'big') + payload


def field(name, value):
    """A header without an index."""
    return b'\x00' + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def call_headers(path=PATH, token=TOKEN, **more):
    fields = {':method': 'POST', ':scheme': 'http', ':authority': 'x', ':path': path,
              'te': 'trailers',
              'content-type': 'application/grpc', **more}
    if token:
        fields['authorization'] = f'Bearer {token}'
    return b''.join(field(n, v) for n, v in fields.items())


def message(data, flag=0):
    return struct.pack('>BI', flag, len(data)) + data


def in_frames(stream, data, last=END_STREAM):
    """DATA of 16 KB."""
    parts = [data[i:i + 16384] for i in range(0, len(data), 16384)] or [b'']
    return b''.join(frame(DATA, last if i == len(parts) - 1 else 0, stream, p)
                    for i, p in enumerate(parts))


class Raw:
    """A connection without a library."""

    def __init__(self, path, begin=True):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        proc.wait_for('a connection', lambda: self.connects(path))
        if begin:
            self.send(PREFACE + frame(SETTINGS))

    def connects(self, path):
        try:
            self.socket.connect(path)
        except BlockingIOError:  # too many wait to be accepted
            return False
        return True

    def send(self, data):
        """As far as the other side takes it: it may close first."""
        try:
            self.socket.sendall(data)
        except OSError:
            pass

    def until_closed(self):
        """All that came before the other side closed."""
        got = b''
        try:
            while more := self.socket.recv(65536):
                got += more
        except ConnectionError:
            pass
        return got

    def close(self):
        self.socket.close()


class Hostile(unittest.TestCase):
    def setUp(self):
        self.world = World()
        self.addCleanup(self.world.close)
        self.path = f'{self.world.dir}/door'
        token_file = f'{self.world.dir}/token'
        with open(token_file, 'w') as f:
            f.write(TOKEN + '\n')
        self.relay = self.world.relay('one', extra=f'feeds:\n  listen: unix:{self.path}\n  '
                                                   f'token_file: {token_file}\n')
        self.world.wait_leader(self.relay)
        self.wire, key = Wire(self.world.dir, 'payouts'), Key(bytes(32))
        cli('feed', 'create', 'payouts', 'alice', key.public.hex(), '--database', self.world.pg.dsn)
        self.honest = Publisher(self.wire, key, [f'unix:{self.path}'], self.content, 10 ** 9,
                                random.Random(1), token=TOKEN,
                                stream_s=3600)
        self.honest.start()
        self.addCleanup(self.honest.join)
        self.addCleanup(self.honest.over.set)
        self.goes_on(5)
        self.base_kb = self.most_kb()

    def content(self, number):
        time.sleep(0.02)
        if self.honest.over.is_set():
            self.honest.call.cancel()
        return [remark(f'batch {number}')]

    def most_kb(self):
        """The most that it ever had, also for a moment."""
        with open(f'/proc/{self.relay.process.pid}/status') as f:
            return int(re.search(r'VmHWM:\s+(\d+)', f.read()).group(1))

    def goes_on(self, batches=3):
        """The publisher's stream was not touched."""
        before = self.honest.acked
        proc.wait_for('the publisher to go on', lambda: self.honest.acked >= before + batches, 60)

    def unharmed(self, what):
        self.goes_on()
        self.assertTrue(self.relay.alive(), what)
        self.assertEqual(self.honest.broken, [], what)
        self.assertEqual(self.honest.counts['sessions'], 1,
                         f'{what}: the publisher had to connect again')
        self.assertLess(self.most_kb() - self.base_kb, GROWTH_KB, what)

    def closed_by(self, data, count=1, code=None):
        """Each of `count` connections that sends this is closed, with this GOAWAY."""
        all_of_them = [Raw(self.path) for _ in range(count)]
        for raw in all_of_them:
            raw.send(data)
        for raw in all_of_them:
            got = raw.until_closed()
            if code is not None:
                self.assertIn(frame(GOAWAY)[3:4], got)
                codes = [int.from_bytes(m, 'big')
                         for m in re.findall(rb'\x07\x00\x00\x00\x00\x00....(....)', got, re.S)]
                self.assertIn(code, codes)
            raw.close()

    def answer(self, data, token=TOKEN):
        """What a client sees that sends these bytes as its only message: (status, answers)."""
        with grpc.insecure_channel(f'unix:{self.path}', OPTIONS) as channel:
            call = channel.stream_stream(PATH, lambda b: b, self.wire.Response.FromString)(
                iter([data]), timeout=60, metadata=[('authorization', f'Bearer {token}')] if token
                else None)
            answers = []
            try:
                answers += call
            except grpc.RpcError:
                pass
            return call.code().name, [a.WhichOneof('response') for a in answers]

    # ---- the attacks ----

    def test_hostile_bytes(self):
        stay = self.those_that_stay()
        for what, attack in sorted((n[3:], getattr(self, n)) for n in dir(self)
                                   if n.startswith('do_')):
            with self.subTest(what):
                attack()
                self.unharmed(what)
        # No clock but ours ends these: 5 s to the first SETTINGS, 10 s for a block of headers.
        for raw in stay['closed']:
            raw.until_closed()
        self.unharmed('slow connections')
        for raws in stay.values():
            for raw in raws:
                raw.close()
        self.unharmed('connections that are closed without a word')
        self.assertNotIn(TOKEN, self.relay.text())
        self.assertNotIn(WRONG, self.relay.text())

    def those_that_stay(self):
        """Slow and silent ones, beside everything else: nothing yet, half a preface, half a block
        of headers, a window of 0, a reader that never reads, messages that are promised and do not
        come."""
        headers = call_headers()
        closed = [Raw(self.path, False) for _ in range(40)]
        for raw in closed[20:]:
            raw.send(PREFACE[:10])
        slow = [Raw(self.path) for _ in range(20)]
        for raw in slow:
            raw.send(frame(HEADERS, 0, 1, headers[:20]))
        shut = [Raw(self.path, False) for _ in range(20)]
        item = self.wire.Request(
            block_items={'items': [self.wire.header(10 ** 12, Key(bytes(32)))]}).SerializeToString()
        for raw in shut:
            raw.send(PREFACE + frame(SETTINGS, payload=struct.pack('>HI', 4, 0)))
            for stream in range(1, 100, 2):
                raw.send(frame(HEADERS, END_HEADERS, stream, headers)
                         + in_frames(stream, message(item)))
        promised = [Raw(self.path) for _ in range(10)]
        for raw in promised:
            for stream in range(1, 199, 2):
                raw.send(frame(HEADERS, END_HEADERS, stream, headers)
                         + frame(DATA, 0, stream, struct.pack('>BI', 0, 1 << 20) + b'x'))
        return {'closed': closed + slow, 'open': shut + promised}

    def do_h2load(self):
        body = os.path.join(self.world.dir, 'body')
        with open(body, 'wb') as f:
            f.write(message(b'\x0a\x00'))
        for path, count in ((PATH, 2000), ('/', 500)):
            for with_token in (True, False):
                headers = ['-H', 'te: trailers', '-H', 'content-type: application/grpc']
                headers += ['-H', f'authorization: Bearer {TOKEN}'] if with_token else []
                done = subprocess.run(['h2load', '-n', str(count), '-c', '10', '-m', '20', '-d',
                                       body, *headers, '-B',
                                       f'unix:{self.path}', f'http://x{path}'], capture_output=True,
                                       text=True, timeout=120)
                self.assertIn(f'{count} total, {count} started, {count} done', done.stdout,
                              done.stdout + done.stderr)

    def do_rapid_resets(self):
        """CVE-2023-44487"""
        pairs = b''.join(frame(HEADERS, END_HEADERS, s, call_headers())
                         + frame(RST, 0, s, struct.pack('>I', 8))
                         for s in range(1, 10001, 2))
        self.closed_by(pairs, 3)

    def do_continuations(self):
        """CVE-2024-28182, and endless headers that are within that limit"""
        self.closed_by(frame(HEADERS, 0, 1, call_headers())
                       + b''.join(frame(CONTINUATION, 0, 1, field('a' * 100, 'b' * 100) * 70)
                                                                      for _ in range(1000)), 3)

    def do_a_bomb_of_headers(self):
        """Thousands of references to one long entry of the table."""
        entry = b'\x40' + bytes([1]) + b'a' + b'\x7f\x81\x1e' + b'v' * 4000
        raw = Raw(self.path)
        for stream in range(1, 41, 2):
            block = call_headers() + (entry if stream == 1 else b'') + b'\xbe' * 8000
            raw.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, block))
        self.goes_on()
        raw.close()

    def do_windows(self):
        self.closed_by(frame(WINDOW, 0, 0, struct.pack('>I', 0x7fffffff)) * 2, 3, 3)
        self.closed_by(frame(SETTINGS, payload=struct.pack('>HI', 4, 0x80000000)), 3, 3)
        flips = b''.join(frame(SETTINGS, payload=struct.pack('>HI', 4, i % 2 * 65535))
                         for i in range(2000))
        self.closed_by(flips, 3, 11)

    def do_floods(self):
        self.closed_by(frame(PING, 0, 0, bytes(8)) * 5000, 3)
        self.closed_by(frame(HEADERS, END_HEADERS, 1, call_headers()) + frame(DATA, 0, 1) * 20000,
                       3)
        self.closed_by(frame(11, 0, 0, bytes(16000)) * 2000, 1)

    def do_compressed_bombs(self):
        bomb = zlib.compress(bytes(64 << 20), 9)
        raw = Raw(self.path)
        for stream in range(1, 41, 2):
            raw.send(frame(HEADERS, END_HEADERS, stream, call_headers(**{'grpc-encoding': 'gzip'}))
                     +
                     in_frames(stream, message(bomb, 1)))
        self.goes_on()
        raw.close()

    def do_other_protocols(self):
        for text in (b'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
                     b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' + bytes(500), os.urandom(500)):
            raw = Raw(self.path, False)
            raw.send(text)
            raw.until_closed()
            raw.close()

    def do_protobuf_of_any_shape(self):
        dice = random.Random(7)
        fields = [b'\x0a\x00' * 250000, b'\x0a\x80\x80\x40' + b'\x0a\x00' * 250000,
                  b'\x80\x01' * 250000, b'\x0b' * 100000,
                  b'\x0a\x81\x80' + b'\x0a' * 16384, b'\x0a' + b'\xff' * 9 + b'\x01', b'']
        item = self.wire.Request(block_items={'items': self.wire.batch(10 ** 12, Key(bytes(32)),
                                                                  [b'\0\0\0'])}).SerializeToString()
        for _ in range(30):  # broken in some places
            broken = bytearray(item)
            for _ in range(dice.randint(1, 4)):
                broken[dice.randrange(len(broken))] = dice.randrange(256)
            fields.append(bytes(broken))
        for data in fields:
            self.assertEqual(self.answer(data), ('OK', ['end_of_stream']), data[:40])

    def do_strangers(self):
        for token in (None, WRONG, TOKEN[:-1]):
            self.assertEqual(self.answer(b'\x0a\x00', token=token), ('UNAUTHENTICATED', []))
        self.assertIn('reason=token', self.relay.wait_log('feed.refused.*').group(0))


if __name__ == '__main__':
    unittest.main()
