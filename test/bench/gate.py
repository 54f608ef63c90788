"""A server of Postgres whose answers wait at a gate: what the relay asks passes at once, what it
is answered passes when the caller says so. With it the order of things is the same on every
machine, however slow one of them is."""
import os
import selectors
import socket
import threading

from harness import proc


class Gate:
    """Listens in `directory` as Postgres does, before the server whose socket is in `server`."""

    def __init__(self, directory, server):
        self.server = os.path.join(server, '.s.PGSQL.5432')
        self.shut, self.others = False, {}
        self.kept = {}  # client: bytes for it
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(directory, '.s.PGSQL.5432'))
        self.listener.listen()
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.running = True
        self._start()
        proc.on_exit(self.close)

    def close(self):
        self.running = False
        self.thread.join(5)

    def hold(self, shut):
        """Shut: nothing moves but by pump() and release(), in the caller's thread, which so knows
        that nothing is under way."""
        if shut:
            self.close()
            self.shut = True
            return
        self.release()
        self.shut, self.running = False, True
        self._start()

    def waiting(self):
        return sum(map(len, self.kept.values()))

    def release(self):
        kept, self.kept = self.kept, {}
        for client, data in kept.items():
            self._send(client, data)

    def pump(self):
        """Take in and pass on what has come. Whether anything had."""
        found = self.selector.select(0)
        for key, _ in found:
            self._serve(key)
        return bool(found)

    def _start(self):
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while self.running:
            for key, _ in self.selector.select(0.1):
                self._serve(key)

    def _serve(self, key):
        if key.fileobj is self.listener:
            self._accept()
        else:
            self._pass(key.fileobj, key.data)

    def _accept(self):
        client, _ = self.listener.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(self.server)
        for one, other, answers in ((client, server, False), (server, client, True)):
            self.selector.register(one, selectors.EVENT_READ, answers)
            self.others[one] = other

    def _pass(self, source, answers):
        sink = self.others.get(source)
        try:
            data = source.recv(1 << 20)
        except OSError:
            data = b''
        if not data:
            for one in (source, sink):
                if self.others.pop(one, None):
                    self.selector.unregister(one)
                    one.close()
        elif answers and self.shut:
            self.kept[sink] = self.kept.get(sink, b'') + data
        else:
            self._send(sink, data)

    @staticmethod
    def _send(sink, data):
        try:
            sink.sendall(data)
        except OSError:
            pass  # it is gone; its end is read next
