"""Publishers of a feed by python3-grpcio. Each computes the same batches, keeps the protocol, and
at random does what a broken copy of a producer does: it dies in the middle of a batch, stalls,
sends a bad proof, another number or another order."""
import ctypes
import ctypes.util
import hashlib
import os
import queue
import subprocess
import threading
import time
import traceback
from collections import Counter

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from . import proc

PROTO = os.path.join(proc.ROOT, 'feed/wire/feed.proto')
PATH = '/txrelay.feed.v1.Feed/Publish'
# A connection of its own for each channel, which notices within seconds that a relay is gone.
OPTIONS = (('grpc.use_local_subchannel_pool', 1), ('grpc.keepalive_time_ms', 10000),
           ('grpc.keepalive_timeout_ms', 5000))
# a stream is opened anew after this, so a publisher that waits in vain tries another relay
STREAM_S = 60

_sodium = ctypes.CDLL(ctypes.util.find_library('sodium'))


def messages(folder, *names):
    """The classes of feed.proto: protoc-c reads it, and writes what the Python library wants."""
    path = os.path.join(folder, 'feed.desc')
    subprocess.run(['protoc-c', f'--descriptor_set_out={path}',
                    f'--proto_path={os.path.dirname(PROTO)}', PROTO], check=True)
    with open(path, 'rb') as f:
        files = descriptor_pb2.FileDescriptorSet.FromString(f.read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return [factory.GetPrototype(pool.FindMessageTypeByName(f'txrelay.feed.v1.{n}')) for n in names]


class Key:
    """An ed25519 key pair."""

    def __init__(self, seed):
        self.public, self._secret = (ctypes.create_string_buffer(n) for n in (32, 64))
        _sodium.crypto_sign_seed_keypair(self.public, self._secret, seed)
        self.public = self.public.raw

    def sign(self, message):
        out = ctypes.create_string_buffer(64)
        _sodium.crypto_sign_detached(out, None, message, ctypes.c_ulonglong(len(message)),
                                     self._secret)
        return out.raw


class Wire:
    """Batches of a feed as items. `calls`: SCALE bytes."""

    def __init__(self, folder, feed):
        self.Request, self.Response, self.Call = messages(folder, 'PublishRequest',
                                                          'PublishResponse', 'Call')
        self.feed = feed

    def header(self, number, key):
        return {'header': {'feed': self.feed, 'number': number, 'publisher': key.public}}

    def calls(self, calls):
        return [{'call': self.Call(call=c).SerializeToString()} for c in calls]

    def trailer(self, number, key, items, count=None, spoil=''):
        count = len(items) if count is None else count
        digest = hashlib.sha256(b''.join(len(i['call']).to_bytes(4, 'big') + i['call']
                                         for i in items)).digest()
        if spoil == 'digest':
            digest = digest[::-1]
        name = self.feed.encode()
        signed = b'txrelay-feed-v1\0' + len(name).to_bytes(4, 'big') + name + number.to_bytes(
            8, 'big', signed=True)
        signature = key.sign(signed + count.to_bytes(4, 'big') + digest)
        if spoil == 'signature':
            signature = signature[::-1]
        return {'trailer': {'count': count, 'digest': digest, 'signature': signature}}

    def batch(self, number, key, calls):
        items = self.calls(calls)
        return [self.header(number, key), *items, self.trailer(number, key, items)]


class Publisher(threading.Thread):
    """One copy of a producer, until everything up to `last` is acknowledged to it. content(n): the
    calls of batch n, once it is produced (it may wait). faults: {name: chance of it at each
    batch}."""

    def __init__(self, wire, key, targets, content, last, dice, faults=None, token=None,
                 stream_s=STREAM_S):
        super().__init__(daemon=True)
        self.wire, self.key, self.targets, self.content, self.last, self.dice = (
            wire, key, targets, content, last, dice)
        self.faults = dict(faults or {})
        self.stream_s, self.metadata = stream_s, [('authorization',
                                                   f'Bearer {token}')] if token else None
        self.acked, self.offered, self.faulty, self.target = -1, -1, False, None
        self.counts, self.broken, self.over = Counter(), [], threading.Event()

    def run(self):
        try:
            while self.acked < self.last and not self.over.is_set():
                self.session(self.target or self.dice.choice(self.targets))
                if self.acked < self.last:
                    time.sleep(self.dice.uniform(0, 0.1))
        except Exception:  # it is told by the test
            self.broken.append(traceback.format_exc())

    def session(self, target):
        self.out, self.faulty, self.target = queue.SimpleQueue(), False, None
        self.counts['sessions'] += 1
        with grpc.insecure_channel(target, OPTIONS) as channel:
            publish = channel.stream_stream(PATH, self.wire.Request.SerializeToString,
                                            self.wire.Response.FromString)
            self.call = publish(iter(self.out.get, None), timeout=self.stream_s,
                                metadata=self.metadata)
            try:
                self.offer(self.acked + 1)
                for answer in self.call:
                    if self.react(answer):
                        break
            except grpc.RpcError as error:
                self.counts[error.code().name] += 1
            finally:
                self.out.put(None)

    def send(self, items):
        """In one request or in several."""
        while items:
            n = self.dice.randint(1, len(items))
            self.out.put(self.wire.Request(block_items={'items': items[:n]}))
            items = items[n:]

    def offer(self, number):
        if number > self.last:
            self.out.put(self.wire.Request(end_stream={'code': 'RESET', 'earliest': 0,
                                                       'latest_acked': self.acked}))
            return
        self.offered = number
        calls = self.content(number)
        fault = next((name for name, chance in self.faults.items() if self.dice.random() < chance),
                     None)
        if not fault:
            self.send(self.wire.batch(number, self.key, calls))
            return
        self.counts[fault] += 1
        self.faulty = True
        getattr(self, 'do_' + fault)(number, self.wire.calls(calls))

    # ---- faults ----

    def do_death(self, number, items):
        self.send([self.wire.header(number, self.key), *items[:self.dice.randint(0, len(items))]])
        time.sleep(self.dice.uniform(0, 0.02))
        self.call.cancel()

    def do_stall(self, number, items):
        self.send([self.wire.header(number, self.key), *items[:-1]])

    def do_digest(self, number, items):
        self.send([self.wire.header(number, self.key), *items,
                   self.wire.trailer(number, self.key, items, spoil='digest')])

    def do_signature(self, number, items):
        self.send([self.wire.header(number, self.key), *items,
                   self.wire.trailer(number, self.key, items, spoil='signature')])

    def do_count(self, number, items):
        self.send([self.wire.header(number, self.key), *items,
                   self.wire.trailer(number, self.key, items, len(items) + 1)])

    def do_call(self, number, items):
        """It is signed, and its last call is none of this chain."""
        items = [*items[:-1], *self.wire.calls([b'\xff\xff'])]
        self.send([self.wire.header(number, self.key), *items,
                   self.wire.trailer(number, self.key, items)])

    def do_order(self, number, items):
        """The parts of a batch in a wrong order; a second header begins the batch again, and is no
        fault of the protocol."""
        header, trailer = self.wire.header(number, self.key), self.wire.trailer(number, self.key,
                                                                                items)
        self.send(self.dice.choice([
            [trailer, *items, header], [*items, header, trailer],
            [header, *items[:1], header, *items, trailer],
            [header, *items, self.wire.header(number + 1, self.key), trailer]]))

    def do_duplicate(self, number, items):
        if number:
            low = self.dice.choice((number - 1, self.dice.randrange(number)))
            self.send(self.wire.batch(low, self.key, self.content(low)))
        else:
            self.send(self.wire.batch(-1, self.key, [b'\0\0\0']))

    def do_ahead(self, number, items):
        high = number + self.dice.choice((1, 2, 1000, 2 ** 40))
        # The cursor may get there before it is read, and these are another number's calls.
        self.send([self.wire.header(high, self.key), *items,
                   self.wire.trailer(high, self.key, items, spoil='signature')])

    def do_empty(self, number, items):
        self.out.put(self.wire.Request(block_items={'items': []}))

    def do_pipelined(self, number, items):
        """The same number again and again, whatever the relay says: a loser's are dropped in
        silence (BP1)."""
        for _ in range(5):
            self.send([self.wire.header(number, self.key), *items,
                       self.wire.trailer(number, self.key, items)])

    # ---- answers ----

    def react(self, answer):
        """True: the stream is over."""
        kind = answer.WhichOneof('response')
        value = getattr(answer, kind)
        self.counts[kind] += 1
        if kind == 'acknowledgement':
            self.acked = max(self.acked, value.number)
            if self.offered <= self.acked:
                self.offer(self.acked + 1)
        elif kind == 'resend_block':
            if value.number <= self.acked:
                self.broken.append(f'BP10: {value.number} is to be sent again, and {self.acked} '
                                   'was acknowledged')
            self.offer(value.number)
        elif kind == 'node_behind':
            self.offer(value.last + 1)
        elif kind == 'end_of_stream':
            self.ended(value)
            return True
        return False

    def ended(self, value):
        status = value.DESCRIPTOR.fields_by_name['status'].enum_type.values_by_number[
            value.status].name
        self.counts[status] += 1
        self.acked = max(self.acked, value.last)
        if status in ('BAD_BLOCK_PROOF', 'INVALID_REQUEST') and not self.faulty:
            self.broken.append(f'BP16: {status} to a publisher that did nothing wrong: '
                               f'{value.detail}')
        if status == 'NOT_LEADER':
            self.target = value.leader or None
