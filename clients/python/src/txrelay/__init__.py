"""Client of txrelay for psycopg (2 and 3) and SQLAlchemy. `txrelay.aio` has the same for asyncpg
and other asyncio drivers.

`db` is a connection or cursor of psycopg, or a Connection or Session of SQLAlchemy: the
transaction that it is in."""
from __future__ import annotations

import select
import time
from typing import Any, Iterable, Iterator, Optional, Union

from . import statements
from .follower import LOOK_S, Follower
from .http import HttpError, encode
from .statements import Amount, Bytes, End, Gap, Transaction

__all__ = ['Amount', 'Bytes', 'End', 'Gap', 'HttpError', 'Transaction', 'bump', 'cancel', 'encode',
           'enqueue', 'enqueue_many',
           'enqueue_signed', 'error_code', 'follow', 'retry', 'status', 'wait']


def _rows(db: Any, statement: statements.Statement) -> list:
    text, values = statement
    if hasattr(db, 'get_bind') and hasattr(db, 'connection'):
        db = db.connection()  # SQLAlchemy's Session
    if hasattr(db, 'exec_driver_sql'):
        return db.exec_driver_sql(statements.marked(text, values, db.dialect.paramstyle),
                                  tuple(values)).fetchall()
    if hasattr(db, 'cursor'):
        with db.cursor() as cur:
            return _rows(cur, statement)
    db.execute(statements.marked(text, values), values)
    return db.fetchall()


def _value(db: Any, statement: statements.Statement) -> str:
    return _rows(db, statement)[0][0]


def enqueue(db: Any, account: str, call: Bytes, **options: Any) -> int:
    """Stores a transaction in the transaction of `db`, and returns its id. The same key and call
    give the same id.

    Options: key, priority, not_before, deadline, creator, spec_version, tip, max_tip,
    deadline_block, retries, expires_in, delay, traceparent (docs/sql.md)."""
    return int(_value(db, statements.enqueue(account, call, options)))


def enqueue_many(db: Any, account: str, calls: Iterable[Bytes],
                 keys: Optional[Iterable[Optional[str]]] = None,
                 **options: Any) -> list[int]:
    """Stores several; the options hold for each of them. keys: one for each call, None for none."""
    return statements.ids(_value(db, statements.enqueue_many(account, calls, keys, options)))


def enqueue_signed(db: Any, extrinsic: Bytes, **options: Any) -> int:
    """Stores an extrinsic that was signed elsewhere. Options: key, creator, account,
    traceparent."""
    return int(_value(db, statements.enqueue_signed(extrinsic, options)))


def cancel(db: Any, id: int) -> str:
    """'cancelled', 'requested' or 'finished'."""
    return _value(db, statements.cancel(id))


def bump(db: Any, id: int, tip: Optional[Amount] = None) -> str:
    """Raises the tip: 'queued', 'requested' or 'finished'. Without a tip: the next step of the
    account's policy."""
    return _value(db, statements.bump(id, tip))


def retry(db: Any, id: int, **options: Any) -> int:
    """Enqueues a transaction that ended without effect once more; the new id. Options: deadline,
    deadline_block."""
    return int(_value(db, statements.retry(id, options)))


def status(db: Any, id: Optional[int] = None, *,
           hash: Optional[str] = None) -> Optional[Transaction]:
    """A transaction by its id, or by the hash of an extrinsic that was signed for it. None: it is
    not known."""
    rows = _rows(db, statements.status(id, hash))
    return statements.transaction(rows[0][0]) if rows else None


class _Listener:
    """LISTEN on a connection of psycopg 2 or 3 that is in no transaction. A notification is a hint
    that says "look"."""

    def __init__(self, db: Any, channel: str):
        self.db, self.channel = db, channel
        self.three = hasattr(db, 'pgconn') and hasattr(db.pgconn, 'consume_input')
        if not db.autocommit:
            raise ValueError('a connection that listens must have autocommit: a transaction holds '
                             'notifications back')
        if not self.three and not hasattr(db, 'poll'):
            raise TypeError('this connection cannot listen: pass one of psycopg')

    def __enter__(self) -> '_Listener':
        self.execute(f'LISTEN {self.channel}')
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if not self.db.closed:
            self.execute(f'UNLISTEN {self.channel}')

    def execute(self, text: str) -> None:
        with self.db.cursor() as cur:
            cur.execute(text)

    def heard(self) -> bool:
        found = False
        if self.three:
            self.db.pgconn.consume_input()
            while True:
                n = self.db.pgconn.notifies()
                if n is None:
                    return found
                found |= n.relname == self.channel.encode()
        self.db.poll()
        found = any(n.channel == self.channel for n in self.db.notifies)
        self.db.notifies.clear()
        return found

    def wait(self, seconds: float) -> None:
        """Until the next notification on the channel, or the time is over. Raises once the
        connection has ended."""
        until = time.monotonic() + seconds
        while not self.heard():
            left = until - time.monotonic()
            if left <= 0:
                return
            select.select([self.db], [], [], left)


def wait(db: Any, id: int, timeout: Optional[float] = None) -> Transaction:
    """The transaction once it has ended. `db`: a connection of psycopg with autocommit, not behind
    a transaction pooler. TimeoutError after `timeout` seconds; LookupError if it is not known."""
    until = None if timeout is None else time.monotonic() + timeout
    with _Listener(db, f'tx_ended_{int(id)}') as listener:
        while True:
            t = status(db, id)
            if t is None:
                raise LookupError(f'transaction {id} is not known: it was not committed, or its '
                                  'record was removed')
            if t.outcome:
                return t
            left = LOOK_S if until is None else until - time.monotonic()
            if left <= 0:
                raise TimeoutError(f'transaction {id} has not ended after {timeout} s: '
                                   f'{t.waits or t.state}')
            listener.wait(min(left, LOOK_S))


def follow(db: Any, position: Optional[int] = None,
           account: Optional[str] = None) -> Iterator[Union[End, Gap]]:
    """Every final outcome from a position on, at least once: the position of the last event that
    you have dealt with, 0 for all records that there are, None for now. `db` as for wait. It ends
    with the connection's error: connect and go on."""
    follower = Follower(position, account)
    with _Listener(db, 'pending_tx_removed') as listener:
        while True:
            yield from follower.place(*_rows(db, (statements.PLACE, []))[0])
            while True:
                page = follower.page()
                if page is None:
                    break
                yield from follower.rows([r[0] for r in _rows(db, page)])
            listener.wait(LOOK_S)


def error_code(error: Optional[BaseException]) -> Optional[str]:
    """The SQLSTATE of an error, also of one that SQLAlchemy has wrapped. TR010 .. TR014 are
    txrelay's."""
    while error is not None:
        code = getattr(error, 'sqlstate', None) or getattr(error, 'pgcode', None)
        if code:
            return code
        error = getattr(error, 'orig', None) or error.__cause__
    return None
