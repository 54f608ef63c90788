"""An application that lives through the loss of its database, as one should be written:
idempotency keys, no guesses."""
import contextlib
import os
import socket
import threading
import time

import psycopg2

from .chain import remark

PATIENCE_S = 3  # with one statement
PACE_S = 0.02


@contextlib.contextmanager
def impatient(db, seconds):
    """Ends the session when the block takes longer: a server that is stopped answers never, and
    libpq waits for ever."""
    wire = socket.socket(fileno=os.dup(db.fileno()))
    timer = threading.Timer(seconds, wire.shutdown, (socket.SHUT_RDWR,))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        wire.close()


class Application(threading.Thread):
    """One enqueue after the other. When a commit's outcome is not known it asks again with the
    same key, until it knows."""

    def __init__(self, world, dsn):
        super().__init__(daemon=True)
        self.world, self.dsn, self.enough, self.failed = world, dsn, threading.Event(), None
        self.db, self.errors, self.commits = None, [], []
        self.give_up, self.patience = None, PATIENCE_S

    def run(self):
        try:
            i = 0
            while not self.enough.wait(PACE_S):
                i += 1
                call = remark(f'load {i}')
                self.world.committed[call] = self.enqueue(call, f'key {i}')
                self.commits.append(time.time())
        except Exception as error:  # told by the test
            self.failed = error

    def enqueue(self, call, key):
        while True:
            try:
                return self.once(call, key)
            except psycopg2.Error as error:
                self.errors.append(str(error).split('\n', maxsplit=1)[0])
                if self.db:
                    self.db.close()
                self.db = None
                if self.give_up and time.monotonic() > self.give_up:
                    raise

    def once(self, call, key):
        if not self.db:
            self.db = psycopg2.connect(self.dsn)
            self.db.autocommit = True
        with impatient(self.db, self.patience), self.db.cursor() as cur:
            cur.execute('SELECT txrelay.enqueue(%s, %s, key => %s)', ('alice', call, key))
            return cur.fetchone()[0]

    def stop(self):
        self.give_up = time.monotonic() + 60
        self.enough.set()
        self.join()
        if self.db:
            self.db.close()

    def longest_wait(self):
        return max(b - a for a, b in zip(self.commits, self.commits[1:]))
