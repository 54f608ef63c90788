"""What a network cannot do to TLS, but a relay that is killed, restarted or slow does to its
messages: single frames between two sites are lost, sent twice, late and out of order. A proxy with
the certificates of the sites before each relay of a site: it ends the stream of the caller's TLS,
whose certificate says which site calls, and opens one to the relay as that site. Frames are bytes
here; only the Hello, which begins a stream, is always left as it is.

A pair of sites has one Fault for both directions, which a test changes while frames go through."""
import heapq
import itertools
import random
import threading
import time
from collections import Counter
from concurrent import futures

import grpc

from . import proc

PATH = '/txrelay.site.v1.Sites/Exchange'
HELLO = 0x0a  # the tag of Frame.hello
STREAMS = 64
KEEPALIVE = (('grpc.keepalive_time_ms', 10000), ('grpc.keepalive_timeout_ms', 5000),
             ('grpc.http2.max_pings_without_data', 0),
             ('grpc.http2.max_ping_strikes', 0))  # relays ping more often than grpcio likes


class Fault:
    """What happens between two sites. drop, double: the chance of a frame; delay_s: at most, at
    random, so frames overtake each other; hole: every frame is swallowed, and the streams stay;
    cut: no streams."""

    def __init__(self, seed=1):
        self.dice, self.counts = random.Random(seed), Counter()
        self.streams, self.lock = set(), threading.Lock()
        self.set()

    def set(self, drop=0.0, double=0.0, delay_s=0.0, hole=False, cut=False):
        self.drop, self.double, self.delay_s, self.hole, self.is_cut = (
            drop, double, delay_s, hole, cut)
        if cut:
            with self.lock:
                streams = list(self.streams)
            for call in streams:
                self.counts['cut'] += 1
                call.cancel()

    def dues(self, frame):
        """When this frame is let through: never, once or twice."""
        now, hello = time.monotonic(), frame[:1] == bytes([HELLO])
        self.counts['frames'] += not hello
        if hello:
            return [now]
        for name, lost in (('swallowed', self.hole), ('dropped', self.dice.random() < self.drop)):
            if lost:
                self.counts[name] += 1
                return []
        times = 2 if self.dice.random() < self.double else 1
        self.counts['doubled'] += times - 1
        self.counts['delayed'] += bool(self.delay_s)
        return [now + self.dice.uniform(0, self.delay_s) for _ in range(times)]


class Pipe:
    """Frames of one direction of a stream, in the order in which they are due."""

    def __init__(self, source, fault):
        self.source, self.fault = source, fault
        self.waiting, self.serial, self.ended, self.error = [], itertools.count(), False, None
        self.changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            for frame in self.source:
                with self.changed:
                    for due in self.fault.dues(frame):
                        heapq.heappush(self.waiting, (due, next(self.serial), frame))
                    self.changed.notify()
        except Exception as error:  # the stream is gone: the other side hears of it
            self.error = error
        with self.changed:
            self.ended = True
            self.changed.notify()

    def __iter__(self):
        while True:
            with self.changed:
                while not self.ended and not (self.waiting
                                              and self.waiting[0][0] <= time.monotonic()):
                    self.changed.wait(self.waiting[0][0] - time.monotonic() if self.waiting
                                      else None)
                if self.error or not self.waiting:
                    break
                # it has ended: what is on its way still arrives
                wait_s = self.waiting[0][0] - time.monotonic()
                if wait_s > 0:
                    self.changed.wait(wait_s)
                    continue
                frame = heapq.heappop(self.waiting)[2]
            yield frame
        if self.error:
            raise self.error


class FrameProxy:
    """Before the relay of `site` at 127.0.0.1:port. fault(caller, site): that pair's Fault."""

    def __init__(self, files, site, port, fault):
        self.files, self.site, self.target, self.fault = files, site, f'127.0.0.1:{port}', fault
        handler = grpc.method_handlers_generic_handler('txrelay.site.v1.Sites',
                                                 {'Exchange': grpc.stream_stream_rpc_method_handler(
            self._exchange)})
        self.pool = futures.ThreadPoolExecutor(STREAMS)
        self.server = grpc.server(self.pool, (handler,),
                                  options=(('grpc.so_reuseport', 0), *KEEPALIVE))
        self.port = self.server.add_secure_port('127.0.0.1:0', grpc.ssl_server_credentials(
            [(self._read(f'{site}.key'), self._read(f'{site}.pem'))], self._read('ca.pem'), True))
        self.server.start()
        proc.on_exit(self.close)

    def _read(self, name):
        with open(self.files.path(name), 'rb') as file:
            return file.read()

    def _exchange(self, requests, context):
        caller = context.auth_context()['x509_subject_alternative_name'][0].decode()
        fault = self.fault(caller, self.site)
        if fault.is_cut:
            fault.counts['cut'] += 1
            context.abort(grpc.StatusCode.UNAVAILABLE, 'cut')
        credentials = grpc.ssl_channel_credentials(self._read('ca.pem'),
                                                   self._read(f'{caller}.key'),
                                                   self._read(f'{caller}.pem'))
        options = (('grpc.use_local_subchannel_pool', 1),
                   ('grpc.ssl_target_name_override', self.site), *KEEPALIVE)
        with grpc.secure_channel(self.target, credentials, options) as channel:
            call = channel.stream_stream(PATH)(iter(Pipe(requests, fault)))
            context.add_callback(call.cancel)
            with fault.lock:
                fault.streams.add(call)
            try:
                yield from Pipe(call, fault)
            except grpc.RpcError:
                context.abort(grpc.StatusCode.UNAVAILABLE,
                              'the relay is gone, or the way to it is cut')
            finally:
                with fault.lock:
                    fault.streams.discard(call)

    def close(self):
        self.server.stop(None)
        self.pool.shutdown(wait=False)
