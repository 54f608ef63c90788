"""Client of txrelay for asyncio: connections of asyncpg, AsyncConnection of psycopg 3,
AsyncConnection and AsyncSession of SQLAlchemy. `wait` and `follow` need a connection of asyncpg."""
from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator, Iterable, Optional, Union

from . import statements
from .follower import LOOK_S, Follower
from .statements import Amount, Bytes, End, Gap, Transaction

__all__ = ['bump', 'cancel', 'enqueue', 'enqueue_many', 'enqueue_signed', 'follow', 'retry',
           'status', 'wait']


async def _rows(db: Any, statement: statements.Statement) -> list:
    text, values = statement
    if hasattr(db, 'fetch') and hasattr(db, 'add_listener'):
        return await db.fetch(statements.marked(text, values, 'numeric_dollar'), *values)
    if hasattr(db, 'sync_session'):
        db = await db.connection()  # SQLAlchemy's AsyncSession
    if hasattr(db, 'exec_driver_sql'):
        return (await db.exec_driver_sql(statements.marked(text, values, db.dialect.paramstyle),
                                         tuple(values))).fetchall()
    cursor = await db.execute(statements.marked(text, values), values)
    return await cursor.fetchall()


async def _value(db: Any, statement: statements.Statement) -> str:
    return (await _rows(db, statement))[0][0]


async def enqueue(db: Any, account: str, call: Bytes, **options: Any) -> int:
    """As txrelay.enqueue."""
    return int(await _value(db, statements.enqueue(account, call, options)))


async def enqueue_many(db: Any, account: str, calls: Iterable[Bytes],
                       keys: Optional[Iterable[Optional[str]]] = None,
                       **options: Any) -> list[int]:
    """As txrelay.enqueue_many."""
    return statements.ids(await _value(db, statements.enqueue_many(account, calls, keys, options)))


async def enqueue_signed(db: Any, extrinsic: Bytes, **options: Any) -> int:
    """As txrelay.enqueue_signed."""
    return int(await _value(db, statements.enqueue_signed(extrinsic, options)))


async def cancel(db: Any, id: int) -> str:
    """As txrelay.cancel."""
    return await _value(db, statements.cancel(id))


async def bump(db: Any, id: int, tip: Optional[Amount] = None) -> str:
    """As txrelay.bump."""
    return await _value(db, statements.bump(id, tip))


async def retry(db: Any, id: int, **options: Any) -> int:
    """As txrelay.retry."""
    return int(await _value(db, statements.retry(id, options)))


async def status(db: Any, id: Optional[int] = None, *,
                 hash: Optional[str] = None) -> Optional[Transaction]:
    """As txrelay.status."""
    rows = await _rows(db, statements.status(id, hash))
    return statements.transaction(rows[0][0]) if rows else None


class _Listener:
    """LISTEN on a connection of asyncpg. A notification is a hint that says "look"."""

    def __init__(self, db: Any, channel: str):
        if not hasattr(db, 'add_listener'):
            raise TypeError('this connection cannot listen: pass one of asyncpg, or use '
                            'txrelay.wait with psycopg')
        self.db, self.channel, self.bell = db, channel, asyncio.Event()

    def heard(self, *_: Any) -> None:
        self.bell.set()

    async def __aenter__(self) -> '_Listener':
        await self.db.add_listener(self.channel, self.heard)
        self.db.add_termination_listener(self.heard)
        return self

    async def __aexit__(self, *_: Any) -> None:
        if not self.db.is_closed():
            self.db.remove_termination_listener(self.heard)
            await self.db.remove_listener(self.channel, self.heard)

    async def wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self.bell.wait(), seconds)
        except asyncio.TimeoutError:
            pass
        self.bell.clear()
        if self.db.is_closed():
            raise ConnectionError('the connection to the database ended')


async def wait(db: Any, id: int) -> Transaction:
    """As txrelay.wait; `db`: a connection of asyncpg. asyncio.wait_for bounds the time."""
    async with _Listener(db, f'tx_ended_{int(id)}') as listener:
        while True:
            t = await status(db, id)
            if t is None:
                raise LookupError(f'transaction {id} is not known: it was not committed, or its '
                                  'record was removed')
            if t.outcome:
                return t
            await listener.wait(LOOK_S)


async def follow(db: Any, position: Optional[int] = None,
                 account: Optional[str] = None) -> AsyncIterator[Union[End, Gap]]:
    """As txrelay.follow; `db`: a connection of asyncpg."""
    follower = Follower(position, account)
    async with _Listener(db, 'pending_tx_removed') as listener:
        while True:
            for event in follower.place(*(await _rows(db, (statements.PLACE, [])))[0]):
                yield event
            while True:
                page = follower.page()
                if page is None:
                    break
                for event in follower.rows([r[0] for r in await _rows(db, page)]):
                    yield event
            await listener.wait(LOOK_S)
