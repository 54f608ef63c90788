"""Publish batches to a feed with grpcio: each line of standard input is a batch, a JSON array of
calls in hexadecimal.

    protoc --python_out=. --proto_path=../wire feed.proto         # makes feed_pb2.py
    python3 publish.py FEED RELAY[,RELAY...] KEY_FILE [FIRST] < batches

A relay is HOST:PORT or unix:/path. KEY_FILE is one that `txrelay keys new --scheme ed25519` made.
FIRST is the number of the first batch (0). TLS: CA, CERT and CERT_KEY in the environment name PEM
files; TOKEN is the relays' token. It prints each number that is acknowledged, and ends when all
are: another publisher may push the same batches at the same time."""
import hashlib
import json
import os
import queue
import random
import sys
import threading
import time

import feed_pb2 as pb
import grpc
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

PIECE = 256 * 1024  # bytes of calls in one request; a relay takes at most 1 MiB
ANSWER_S = 60  # for the answer to a whole batch
SKIPPED_S = 120  # while another publisher's copy is taken: its own time and that of the database
Status = pb.EndOfStream.Status


def be(number, size):
    return number.to_bytes(size, 'big')


def read(path):
    with open(path, 'rb') as file:
        return file.read()


class Publisher:
    def __init__(self, feed, relays, key_file, batches, first=0):
        self.feed, self.relays, self.leader = feed, relays.split(','), ''
        self.key = Ed25519PrivateKey.from_private_bytes(
            bytes.fromhex(read(key_file).split()[0].decode().removeprefix('0x')))
        self.public = self.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        # until they are acknowledged
        self.kept = {first + i: batch for i, batch in enumerate(batches)}
        self.attempt = self.refused = 0

    def channel(self, relay):
        if not os.environ.get('CA'):
            return grpc.insecure_channel(relay)
        own = (read(os.environ['CERT_KEY']),
               read(os.environ['CERT'])) if os.environ.get('CERT') else (None, None)
        return grpc.secure_channel(relay,
                                   grpc.ssl_channel_credentials(read(os.environ['CA']), *own))

    def items(self, number):
        """The header, the calls and the trailer of a batch."""
        calls = [pb.Call(call=bytes.fromhex(c.removeprefix('0x'))).SerializeToString()
                 for c in self.kept[number]]
        digest = hashlib.sha256(b''.join(be(len(c), 4) + c for c in calls)).digest()
        name = self.feed.encode()
        signed = b'txrelay-feed-v1\0' + be(len(name), 4) + name + be(number, 8) + be(len(calls),
                                                                                     4) + digest
        yield pb.BlockItem(header=pb.BlockHeader(feed=self.feed, number=number,
                                                 publisher=self.public))
        for call in calls:
            yield pb.BlockItem(call=call)
        yield pb.BlockItem(trailer=pb.BlockTrailer(count=len(calls), digest=digest,
                                                   signature=self.key.sign(signed)))

    def offer(self, out, number):
        """Sends a batch. One that is not kept any more: the stream is closed with the reason."""
        if number not in self.kept:
            acked = min(self.kept, default=number) - 1
            out.put(pb.PublishRequest(end_stream=pb.EndStream(code='TOO_FAR_BEHIND',
                                                              earliest=acked + 1,
                                                              latest_acked=acked)))
            return
        items, size = [], 0
        for item in self.items(number):
            if size + len(item.call) > PIECE:
                out.put(pb.PublishRequest(block_items=pb.BlockItems(items=items)))
                items, size = [], 0
            items.append(item)
            size += len(item.call)
        out.put(pb.PublishRequest(block_items=pb.BlockItems(items=items)))

    def go_on(self, out):
        """The next batch, or the end of the stream."""
        if self.kept:
            self.offer(out, min(self.kept))
        else:
            out.put(pb.PublishRequest(end_stream=pb.EndStream(code='RESET')))

    def acknowledged(self, number):
        done = [n for n in self.kept if n <= number]
        for n in done:
            del self.kept[n]
        if done:
            self.attempt = self.refused = 0
            print('acknowledged', number, flush=True)

    def ended(self, end):
        """What the end of a stream says about the next one."""
        name = Status.Name(end.status)
        print('the relay ended the stream:', name, end.detail, flush=True)
        self.leader = end.leader
        if name in ('DUPLICATE_BLOCK', 'BEHIND'):
            self.acknowledged(end.last)
        if name in ('BAD_BLOCK_PROOF', 'INVALID_REQUEST'):
            self.refused += 1
            if self.refused == 3:
                raise SystemExit(f'refused three times: {end.detail}')

    def session(self, relay):
        """One stream, to its end."""
        out = queue.Queue()
        metadata = [('authorization',
                     'Bearer ' + os.environ['TOKEN'])] if os.environ.get('TOKEN') else None
        with self.channel(relay) as channel:
            publish = channel.stream_stream('/txrelay.feed.v1.Feed/Publish',
                                            pb.PublishRequest.SerializeToString,
                                            pb.PublishResponse.FromString)
            stream = publish(iter(out.get, None), metadata=metadata)
            self.go_on(out)
            limit = threading.Timer(ANSWER_S, stream.cancel)
            limit.start()
            try:
                for answer in stream:
                    kind = answer.WhichOneof('response')
                    limit.cancel()
                    limit = threading.Timer(SKIPPED_S if kind == 'skip_block' else ANSWER_S,
                                            stream.cancel)
                    limit.start()
                    if kind == 'acknowledgement':
                        self.acknowledged(answer.acknowledgement.number)
                        self.go_on(out)
                    elif kind == 'resend_block':
                        self.offer(out, answer.resend_block.number)
                    elif kind == 'node_behind':
                        self.offer(out, answer.node_behind.last + 1)
                    elif kind == 'end_of_stream':
                        self.ended(answer.end_of_stream)
            finally:
                limit.cancel()
                out.put(None)  # ends the thread that reads it

    def run(self):
        turn = 0
        while self.kept:
            relay, self.leader = self.leader or self.relays[turn % len(self.relays)], ''
            turn += 1
            try:
                self.session(relay)
            except grpc.RpcError as error:
                print('no stream:', error.code().name, error.details(), flush=True)
                if error.code() in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.UNIMPLEMENTED):
                    raise SystemExit(error.details()) from None
            # with jitter, so that publishers do not come back all at once
            if self.kept and not self.leader:
                time.sleep(min(30, 2 ** self.attempt) * random.uniform(0.5, 1))
                self.attempt = min(self.attempt + 1, 5)


if __name__ == '__main__':
    Publisher(*sys.argv[1:4], [json.loads(line) for line in sys.stdin],
              *map(int, sys.argv[4:])).run()
