"""A TCP proxy of our own before Postgres or a node: what a network can do to a connection, on
command.

    pass     bytes go through, `delay_s` late
    hold     nothing goes through; what was kept back goes when it passes again (a partition that
    heals) hole     both sides' bytes are accepted and swallowed; an end on one side is not told to
    the other (a black hole) refuse   new connections are closed at once

cut() ends the connections that there are, half_open() ends one side of them and leaves the other
as it is: it will never hear of it. Both take `name`, which picks the sessions by what the relay
calls them: control, work, listen. One thread a proxy."""
import os
import queue
import selectors
import socket
import threading
import time

from . import proc

BACKLOG = 1 << 20  # bytes of one direction that may wait


class Pipe:
    """One direction of a link."""

    def __init__(self, source, sink):
        self.source, self.sink = source, sink
        self.waiting = []  # (when it is due, bytes)
        self.size = 0
        self.ended = False  # the source has no more
        self.told = False  # and the sink knows

    def put(self, data, due):
        self.waiting.append((due, data))
        self.size += len(data)


class Link:
    def __init__(self, client, server):
        self.client, self.server = client, server
        self.up, self.down = Pipe(client, server), Pipe(server, client)
        self.head = b''  # the client's first bytes: a Postgres session says its name there
        self.lost = False  # bytes were swallowed: it can never be whole again

    def called(self, name):
        return name is None or f' {name}\0'.encode() in self.head

    def pipes(self):
        return self.up, self.down


class Proxy:
    """target: path of a unix socket, or (host, port). directory: listen there as Postgres does on
    a unix socket; else on a port of 127.0.0.1. tap(bytes) is told what goes from client to server,
    in order, link by link."""

    def __init__(self, target, directory=None, tap=None):
        self.target, self.tap = target, tap
        self.mode, self.delay_s = 'pass', 0.0
        self.links, self.accepted = [], 0
        self._jobs = queue.SimpleQueue()
        self._selector = selectors.DefaultSelector()
        self._wake, wake = socket.socketpair()
        self._wake_end = wake
        self._listener, self.host, self.port = _listener(directory)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(wake, selectors.EVENT_READ)
        self._running = True
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        proc.on_exit(self.close)

    # ---- commands: carried out in the proxy's thread, done when they return ----

    def set(self, mode, delay_s=0.0):
        assert mode in ('pass', 'hold', 'hole', 'refuse'), mode
        self._do(lambda: self._set(mode, delay_s))

    def cut(self, name=None):
        """How many connections were ended, both sides at once."""
        return self._do(lambda: self._each(name, self._drop))

    def half_open(self, left, name=None):
        """The side named (client, server) keeps its end and hears nothing more; the other's is
        closed."""
        def leave(link):
            link.lost = True
            self._close_socket(link.server if left == 'client' else link.client)
            self._arm(link)
        return self._do(lambda: self._each(name, leave))

    def close(self):
        if self._running:
            self._running = False
            self._wake.send(b'x')
            self._thread.join(5)

    # ---- the thread ----

    def _do(self, job):
        done, box = threading.Event(), []

        def run():
            box.append(job())
            done.set()
        self._jobs.put(run)
        self._wake.send(b'x')
        assert done.wait(10), 'the proxy does not answer'
        return box[0]

    def _set(self, mode, delay_s):
        self.mode, self.delay_s = mode, delay_s
        for link in list(self.links):
            if mode == 'pass' and link.lost:
                self._drop(link)
            else:
                self._flush(link)

    def _each(self, name, action):
        found = [link for link in self.links if link.called(name)]
        for link in found:
            action(link)
        return len(found)

    def _run(self):
        while self._running:
            for key, _ in self._selector.select(self._next_due()):
                if key.fileobj is self._wake_end:
                    self._wake_end.recv(4096)
                elif key.fileobj is self._listener:
                    self._accept()
                elif key.data in self.links:
                    self._serve(key.data, key.fileobj)
            while not self._jobs.empty():
                self._jobs.get()()
            if self.delay_s:
                for link in list(self.links):
                    self._flush(link)
        for link in list(self.links):
            self._drop(link)
        self._selector.close()
        for one in (self._listener, self._wake, self._wake_end):
            one.close()

    def _next_due(self):
        dues = [p.waiting[0][0] for link in self.links for p in link.pipes() if p.waiting
                and self.mode == 'pass']
        return max(0, min(dues) - time.monotonic()) if dues and self.delay_s else None

    def _accept(self):
        client, _ = self._listener.accept()
        if self.mode == 'refuse':
            client.close()
            return
        server = None
        if self.mode != 'hole':
            try:
                server = _connect(self.target)
            except OSError:
                client.close()
                return
        self.accepted += 1
        link = Link(client, server)
        link.lost = server is None
        for one in (client, server):
            if one:
                one.setblocking(False)
                if one.family == socket.AF_INET:
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.links.append(link)
        self._arm(link)

    def _serve(self, link, which):
        pipe = link.up if which is link.client else link.down
        if pipe.size < BACKLOG and self.mode != 'hold' and not pipe.ended:
            self._read(link, pipe)
        if link in self.links:
            self._flush(link)

    def _read(self, link, pipe):
        try:
            data = pipe.source.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b''
        if self.mode == 'hole' or link.lost:
            link.lost = True
            if not data:
                self._close_socket(pipe.source)
            return
        if not data:
            pipe.ended = True
            return
        if pipe is link.up:
            if len(link.head) < 2048:
                link.head += data
            if self.tap:
                self.tap(link, data)
        pipe.put(data, time.monotonic() + self.delay_s)

    def _flush(self, link):
        now = time.monotonic()
        for pipe in link.pipes():
            while pipe.waiting and pipe.waiting[0][
                0] <= now and self.mode == 'pass' and not link.lost:
                due, data = pipe.waiting[0]
                try:
                    sent = pipe.sink.send(data)
                except BlockingIOError:
                    break
                except OSError:
                    if pipe is link.up or not link.up.ended:
                        self._drop(link)
                        return
                    sent = len(data)  # nobody hears the answers to what a client left behind
                pipe.size -= sent
                pipe.waiting[0] = (due, data[sent:])
                if sent < len(data):
                    break
                pipe.waiting.pop(0)
            if pipe.ended and not pipe.waiting and not link.lost and not pipe.told:
                if pipe is link.down or link.down.ended or not self._half_close(link.server):
                    self._drop(link)
                    return
                pipe.told = True
        self._arm(link)

    @staticmethod
    def _half_close(one):
        """The server works through all that came before the end, as it would behind a network."""
        try:
            one.shutdown(socket.SHUT_WR)
            return True
        except OSError:
            return False

    def _arm(self, link):
        """What the selector is to wait for at both sockets of a link."""
        for one, reads, writes in ((link.client, link.up, link.down),
                                   (link.server, link.down, link.up)):
            if one is None or one.fileno() < 0:
                continue
            events = 0
            if self.mode != 'hold' and reads.size < BACKLOG and not reads.ended:
                events |= selectors.EVENT_READ
            if writes.waiting and self.mode == 'pass' and writes.waiting[0][
                0] <= time.monotonic() and not link.lost:
                events |= selectors.EVENT_WRITE
            known = self._selector.get_map().get(one.fileno())
            if known and not events:
                self._selector.unregister(one)
            elif known and known.events != events:
                self._selector.modify(one, events, link)
            elif not known and events:
                self._selector.register(one, events, link)

    def _close_socket(self, one):
        if one is None or one.fileno() < 0:
            return
        if one.fileno() in self._selector.get_map():
            self._selector.unregister(one)
        one.close()

    def _drop(self, link):
        self._close_socket(link.client)
        self._close_socket(link.server)
        if link in self.links:
            self.links.remove(link)


def _listener(directory):
    if directory:
        path = os.path.join(directory, '.s.PGSQL.5432')
        listener, host, port = socket.socket(socket.AF_UNIX), directory, 5432
        listener.bind(path)
        os.chmod(path, 0o777)
    else:
        listener = socket.socket()
        listener.bind(('127.0.0.1', 0))
        host, port = listener.getsockname()
    listener.listen(128)
    return listener, host, port


def _connect(target):
    if isinstance(target, tuple):
        return socket.create_connection(target, 10)
    one = socket.socket(socket.AF_UNIX)
    one.connect(target)
    return one


class Submissions:
    """A tap on a relay's way to its node: which extrinsics it sent, and when. Client frames of
    WebSocket are masked, and ours are never fragmented."""

    METHOD = b'"author_submit'

    def __init__(self):
        self.sent = []  # (monotonic time, bytes of the extrinsic)
        self._streams = {}

    def __call__(self, link, data):
        stream = self._streams.setdefault(link, bytearray())
        stream += data
        if stream.startswith(b'GET '):
            end = stream.find(b'\r\n\r\n')
            if end < 0:
                return
            del stream[:end + 4]
        for payload in self._frames(stream):
            if self.METHOD in payload:
                text = payload.split(b'"params":["0x', 1)[1].split(b'"', 1)[0]
                self.sent.append((time.monotonic(), bytes.fromhex(text.decode())))

    @staticmethod
    def _frames(stream):
        while len(stream) >= 6:
            size, at = stream[1] & 127, 2
            if size == 126:
                size, at = int.from_bytes(stream[2:4], 'big'), 4
            elif size == 127:
                size, at = int.from_bytes(stream[2:10], 'big'), 10
            if len(stream) < at + 4 + size:
                return
            mask = bytes(stream[at:at + 4]) * (size // 4 + 1)
            body = bytes(stream[at + 4:at + 4 + size])
            del stream[:at + 4 + size]
            yield (int.from_bytes(body, 'big') ^ int.from_bytes(mask[:size], 'big')).to_bytes(size,
                                                                                              'big')
