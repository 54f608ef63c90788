"""What a client of HTTP/2 may do and few of them do: frames of gRPC without a library, at the door
of feeds with a room that plays a part (test/unit/feed/fake_room.h). Each publishes one batch in
its own way, and is answered like any other."""
import socket
import unittest

from runtime.test_feed_clients import PATIENCE, Door

PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED, WITH_PRIORITY = 1, 4, 8, 32
ACK = 1  # of SETTINGS and PING
INITIAL_WINDOW = b'\0\4'


def frame(kind, flags=0, stream=0, payload=b''):
    return len(payload).to_bytes(3, 'big') + bytes([kind, flags]) + stream.to_bytes(4,
                                                                                    'big') + payload


def number(value, bits):
    """HPACK's integer, with `bits` of its first byte."""
    if value < (1 << bits) - 1:
        return bytes([value])
    out, value = [(1 << bits) - 1], value - (1 << bits) + 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + [value])


def field(name, value):
    """A header without an index."""
    return b'\0' + number(len(name), 7) + name.encode() + number(len(value), 7) + value.encode()


def headers(**more):
    fields = {':method': 'POST', ':scheme': 'http', ':authority': 'x',
              ':path': '/txrelay.feed.v1.Feed/Publish', 'te': 'trailers',
              'content-type': 'application/grpc', **more}
    return b''.join(field(n, v) for n, v in fields.items())


def nested(*path_and_bytes):
    """Bytes of protobuf inside fields: nested(1, 2, b'x') is field 1 with field 2 with x."""
    *path, data = path_and_bytes
    for place in reversed(path):
        data = bytes([place << 3 | 2]) + varint(len(data)) + data
    return data


def varint(n):
    out = b''
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def batch(feed=b'take', at=0, calls=3):
    """A PublishRequest: a whole batch."""
    header = nested(1, feed) + b'\x10' + varint(at) + nested(3, bytes(32))
    trailer = b'\x08' + varint(calls) + nested(2, bytes(32)) + nested(3, bytes(64))
    items = [nested(1, header)] + [nested(2, bytes(10))] * calls + [nested(3, trailer)]
    return nested(1, b''.join(nested(1, item) for item in items))


def message(data, flag=0):
    return bytes([flag]) + len(data).to_bytes(4, 'big') + data


class Connection:
    def __init__(self, door, settings=b''):
        host, port = door.target.rsplit(':', 1)
        self.socket = socket.create_connection((host, int(port)), PATIENCE)
        self.input, self.data, self.ended, self.reset, self.pongs = b'', {}, set(), {}, []
        self.away = None
        self.send(PREFACE + frame(SETTINGS, 0, 0, settings))

    def send(self, *frames):
        self.socket.sendall(b''.join(frames))

    def read(self):
        """The next frame of the relay."""
        while len(self.input) < 9 or len(self.input) < 9 + int.from_bytes(self.input[:3], 'big'):
            more = self.socket.recv(65536)
            if not more:
                raise EOFError
            self.input += more
        size, kind, flags = int.from_bytes(self.input[:3], 'big'), self.input[3], self.input[4]
        stream, payload = int.from_bytes(self.input[5:9], 'big'), self.input[9:9 + size]
        self.input = self.input[9 + size:]
        if kind == DATA:
            self.data[stream] = self.data.get(stream, b'') + payload
        if kind in (DATA, HEADERS) and flags & END_STREAM:
            self.ended.add(stream)
        if kind == RST:
            self.reset[stream] = int.from_bytes(payload, 'big')
        if kind == GOAWAY:
            self.away = int.from_bytes(payload[4:8], 'big')
        if kind == PING and flags & ACK:
            self.pongs.append(payload)
        if kind == SETTINGS and not flags & ACK:
            self.send(frame(SETTINGS, ACK))
        return kind

    def answers(self, stream):
        """What came so far: the numbers of the fields of PublishResponse."""
        data, out = self.data.get(stream, b''), []
        while len(data) >= 5 and len(data) >= 5 + int.from_bytes(data[1:5], 'big'):
            out.append(data[5] >> 3)
            data = data[5 + int.from_bytes(data[1:5], 'big'):]
        return out

    def until(self, condition):
        while not condition():
            self.read()

    def until_ended(self, stream=1):
        self.until(lambda: stream in self.ended)
        return self.answers(stream)


ANSWER, END = 1, 5  # Acknowledgement, EndOfStream
BATCH = message(batch())


class Frames(unittest.TestCase):
    def setUp(self):
        self.door = Door()
        self.addCleanup(self.end_door)
        self.taken = 1

    def end_door(self):
        """The batches were taken, and no session is left."""
        self.assertEqual(self.door.end(), 0)
        self.assertEqual(self.door.report['trailers'], self.taken)
        self.assertEqual(self.door.report['opened'], self.door.report['gone'])

    def connect(self, settings=b''):
        c = Connection(self.door, settings)
        self.addCleanup(c.socket.close)
        return c

    def open(self, c, stream=1, **more):
        c.send(frame(HEADERS, END_HEADERS, stream, headers(**more)))

    def done(self, c, stream=1):
        self.assertEqual(c.until_ended(stream), [ANSWER, END])
        self.assertEqual(c.reset.get(stream, 0), 0)
        self.assertIsNone(c.away)

    def test_headers_in_many_continuations(self):
        c, block = self.connect(), headers()
        parts = [block[i:i + 16] for i in range(0, len(block), 16)]
        c.send(frame(HEADERS, 0, 1, parts[0]), *[frame(CONTINUATION, 0, 1, p) for p in parts[1:]],
               frame(CONTINUATION, END_HEADERS, 1), frame(DATA, END_STREAM, 1, BATCH))
        self.done(c)

    def test_padding_everywhere(self):
        c = self.connect()
        c.send(frame(HEADERS, END_HEADERS | PADDED | WITH_PRIORITY, 1,
                     b'\xff' + bytes(4) + b'\x0f' + headers() + bytes(255)))
        for i in range(len(BATCH)):
            c.send(frame(DATA, PADDED, 1, b'\xff' + BATCH[i:i + 1] + bytes(255)))
        c.send(frame(DATA, PADDED | END_STREAM, 1, b'\x00'))
        self.done(c)

    def test_a_byte_in_a_frame(self):
        c = self.connect()
        self.open(c)
        for i in range(len(BATCH)):
            c.send(frame(DATA, 0, 1, BATCH[i:i + 1]))
        c.send(frame(DATA, END_STREAM, 1))
        self.done(c)

    def test_trailers_of_the_client(self):
        c = self.connect()
        self.open(c)
        c.send(frame(DATA, 0, 1, BATCH),
               frame(HEADERS, END_HEADERS | END_STREAM, 1, field('x-checksum', '17')))
        self.done(c)

    def test_nothing_but_headers(self):
        self.taken = 0
        c = self.connect()
        c.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, headers()))
        self.assertEqual(c.until_ended(), [END])

    def test_a_window_of_nothing_and_then_bytes(self):
        c = self.connect(INITIAL_WINDOW + bytes(4))
        self.open(c)
        c.send(frame(DATA, END_STREAM, 1, BATCH), frame(PING, 0, 0, b'is taken'))
        c.until(lambda: c.pongs)
        self.assertEqual(c.data, {})
        for n in range(12):
            c.send(frame(WINDOW, 0, 1, (1).to_bytes(4, 'big')))
            c.until(lambda: len(c.data.get(1, b'')) > n)
            self.assertEqual(len(c.data[1]), n + 1)
        c.send(frame(SETTINGS, 0, 0, INITIAL_WINDOW + (1000).to_bytes(4, 'big')))
        self.done(c)

    def test_a_client_that_goes_away_ends_its_stream_first(self):
        c = self.connect()
        self.open(c)
        c.send(frame(GOAWAY, 0, 0, bytes(8) + b'going down'), frame(DATA, 0, 1, BATCH))
        c.until(lambda: c.answers(1) == [ANSWER])
        c.send(frame(DATA, END_STREAM, 1))
        c.until(lambda: 1 in c.ended)
        self.assertEqual(c.answers(1), [ANSWER, END])

    def test_large_metadata(self):
        c = self.connect()
        self.open(c, **{'x-large': 'a' * 6000, 'trace-bin': 'AAECAwQ'})
        c.send(frame(DATA, END_STREAM, 1, BATCH))
        self.done(c)
        c.send(frame(HEADERS, END_HEADERS, 3, headers(**{'x-large': 'a' * 9000})),
               frame(DATA, END_STREAM, 3, BATCH))
        c.until(lambda: 3 in c.ended or 3 in c.reset)
        self.assertEqual(c.answers(3), [])
        self.open(c, 5)  # the connection is good for the next one
        c.send(frame(DATA, END_STREAM, 5, message(batch(at=1))))
        self.taken = 2
        self.done(c, 5)

    def test_a_reset_in_the_middle_of_a_batch(self):
        c = self.connect()
        self.open(c)
        c.send(frame(DATA, 0, 1, BATCH[:100]), frame(RST, 0, 1, (8).to_bytes(4, 'big')))
        self.open(c, 3)
        c.send(frame(DATA, END_STREAM, 3, BATCH))
        self.done(c, 3)
        self.assertEqual(c.answers(1), [])

    def test_a_message_that_is_flagged_compressed(self):
        self.taken = 1
        c = self.connect()
        self.open(c)
        c.send(frame(DATA, END_STREAM, 1, message(batch(), flag=1)))
        c.until(lambda: 1 in c.ended)
        self.assertEqual(c.answers(1), [])
        self.open(c, 3, **{'grpc-encoding': 'identity', 'grpc-accept-encoding': 'gzip'})
        c.send(frame(DATA, END_STREAM, 3, BATCH))
        self.done(c, 3)

    def test_frames_and_settings_that_nobody_knows(self):
        c = self.connect(b'\x0a\x0a' + bytes(4))
        c.send(frame(0xfa, 0xff, 0, b'grease'), frame(PRIORITY, 0, 7, bytes(4) + b'\x10'))
        self.open(c)
        c.send(frame(0xfb, 0xff, 1, b'grease'), frame(DATA, 0, 1, BATCH[:7]),
               frame(PING, 0, 0, b'are you?'),
               frame(DATA, END_STREAM, 1, BATCH[7:]))
        self.done(c)
        self.assertEqual(c.pongs, [b'are you?'])

    def test_many_streams_of_one_connection(self):
        self.taken = 50
        c = self.connect()
        for i in range(self.taken):
            self.open(c, 2 * i + 1)
        for i in range(self.taken):  # all of them have begun
            c.send(frame(DATA, END_STREAM, 2 * i + 1, message(batch(at=i))))
        for i in range(self.taken):
            self.done(c, 2 * i + 1)


if __name__ == '__main__':
    unittest.main()
