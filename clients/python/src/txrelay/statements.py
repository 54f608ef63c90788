"""The SQL of docs/sql.md, for every driver: a text with {} for each argument, and strings. Every
argument is cast in the statement, so no driver has to know a type, and none guesses one."""
from __future__ import annotations

import dataclasses
import datetime
import decimal
import json
from typing import Any, Iterable, Mapping, Optional, Tuple, Union

Bytes = Union[bytes, bytearray, memoryview, str]
Amount = Union[int, str, decimal.Decimal]
Statement = Tuple[str, list]

OPTIONS = {'priority': 'bigint', 'not_before': 'timestamptz', 'deadline': 'timestamptz',
           'creator': 'text', 'spec_version': 'bigint',
           'tip': 'numeric', 'max_tip': 'numeric', 'deadline_block': 'bigint', 'retries': 'bigint',
           'expires_in': 'interval',
           'delay': 'interval', 'traceparent': 'text'}
KEY = {'key': 'text'}


def marked(text: str, values: list, style: str = 'format') -> str:
    """The text with the driver's marks for the arguments."""
    if style == 'numeric_dollar':
        return text.format(*[f'${n}' for n in range(1, len(values) + 1)])
    if style in ('format', 'pyformat'):
        return text.format(*['%s'] * len(values))
    raise TypeError(f'a driver with the paramstyle {style!r} is not supported')


def digits(call: Bytes) -> str:
    """A call as hexadecimal digits: bytes, or such a text with or without 0x."""
    if isinstance(call, str):
        try:
            return bytes.fromhex(call[2:] if call.startswith('0x') else call).hex()
        except ValueError:
            raise ValueError(f'a call is bytes or hexadecimal text, not {call[:40]!r}') from None
    return bytes(call).hex()


def text_of(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise ValueError(f'{value!r} has no time zone: use datetime.now(timezone.utc)')
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return f'{value.days} days {value.seconds} seconds {value.microseconds} microseconds'
    return str(value)


def function(name: str, first: list, values: list, options: Mapping[str, Any],
             known: Mapping[str, str]) -> Statement:
    named = []
    for option, value in options.items():
        if option not in known:
            raise TypeError(f'{name}() has no option {option!r}: {", ".join(known)}')
        if value is not None:
            named.append(f'{option} => CAST(CAST({{}} AS text) AS {known[option]})')
            values.append(text_of(value))
    return f'SELECT CAST(txrelay.{name}({", ".join(first + named)}) AS text)', values


TEXT, BYTES, ID = (
    'CAST({} AS text)', "decode(CAST({} AS text), 'hex')", 'CAST(CAST({} AS text) AS bigint)')


def enqueue(account: str, call: Bytes, options: Mapping[str, Any]) -> Statement:
    return function('enqueue', [TEXT, BYTES], [account, digits(call)], options, {**KEY, **OPTIONS})


def enqueue_many(account: str, calls: Iterable[Bytes], keys: Optional[Iterable[Optional[str]]],
                 options: Mapping[str, Any]) -> Statement:
    array = ('ARRAY(SELECT %s FROM jsonb_array_elements_text(CAST(CAST({} AS text) AS jsonb)) WITH '
             'ORDINALITY e (e, n) ORDER BY n)')
    first, values = [TEXT, array % "decode(e, 'hex')"], [account,
                                                         json.dumps([digits(c) for c in calls])]
    if keys is not None:
        first.append(array % 'e')
        values.append(json.dumps(list(keys)))
    return function('enqueue_many', first, values, options, OPTIONS)


def enqueue_signed(extrinsic: Bytes, options: Mapping[str, Any]) -> Statement:
    return function('enqueue_signed', [BYTES], [digits(extrinsic)], options,
                    {**KEY, 'creator': 'text', 'account': 'text', 'traceparent': 'text'})


def cancel(id: int) -> Statement:
    return function('cancel', [ID], [str(id)], {}, {})


def bump(id: int, tip: Optional[Amount]) -> Statement:
    return function('bump', [ID], [str(id)], {'tip': tip}, {'tip': 'numeric'})


def retry(id: int, options: Mapping[str, Any]) -> Statement:
    return function('retry', [ID], [str(id)], options,
                    {'deadline': 'timestamptz', 'deadline_block': 'bigint'})


def status(id: Optional[int], hash: Optional[str]) -> Statement:
    if (id is None) == (hash is None):
        raise TypeError('status() takes an id, or hash=')
    argument = ID if hash is None else 'hash => ' + TEXT
    return f'SELECT CAST(to_jsonb(t) AS text) FROM txrelay.status({argument}) t', [
        str(id) if hash is None else hash]


def ids(answer: str) -> list[int]:
    return [int(i) for i in answer.strip('{}').split(',') if i]


@dataclasses.dataclass(frozen=True)
class Transaction:
    """A row of txrelay.transactions (docs/sql.md). Amounts are planck."""
    id: Optional[int]
    account: str
    stage: str
    state: Optional[str]
    outcome: Optional[str]
    waits: Optional[str]
    nonce: Optional[int]
    hash: Optional[str]
    block_number: Optional[int]
    block_hash: Optional[str]
    tip: Optional[int]
    fee: Optional[int]
    error: Optional[str]
    key: Optional[str]
    creator: Optional[str]
    created_at: datetime.datetime
    updated_at: Optional[datetime.datetime]
    retry_of: Optional[int]
    retried_as: Optional[int]
    traceparent: Optional[str]


def time_of(text: str) -> datetime.datetime:
    """A time of to_jsonb: it may have fewer than six digits, which fromisoformat reads from Python
    3.11 on."""
    head, zone = text[:-6], text[-6:]
    seconds, _, fraction = head.partition('.')
    return datetime.datetime.fromisoformat(f'{seconds}.{fraction:0<6}{zone}').astimezone(
        datetime.timezone.utc)


def transaction(text: str) -> Transaction:
    row = json.loads(text)
    names = [f.name for f in dataclasses.fields(Transaction)]
    row = {name: row.get(name) for name in names}
    for name in ('created_at', 'updated_at'):
        row[name] = time_of(row[name]) if row[name] else None
    return Transaction(**row)


@dataclasses.dataclass(frozen=True)
class End:
    """A final outcome. Follow from its position to go on after it."""
    position: int
    id: int
    account: str
    outcome: str
    error: Optional[str]
    nonce: Optional[int]
    hash: Optional[str]
    block_number: Optional[int]
    block_hash: Optional[str]
    creator: Optional[str]
    traceparent: Optional[str]
    ended_at: datetime.datetime


@dataclasses.dataclass(frozen=True)
class Gap:
    """Records that ended before this time were removed: outcomes after your position may be
    missing."""
    position: int
    dropped_before: datetime.datetime


PLACE = """SELECT CAST(txrelay.follow_position() AS text),
    (SELECT CAST(CAST(extract(epoch FROM k.dropped_before) * 1000000 AS bigint) AS text)
    FROM txrelay.follow_kept k)"""
ROWS = 1000
ENDS = f"""SELECT CAST(to_jsonb(x) AS text) FROM (
    SELECT f.id, a.alias AS account, f.nonce, '0x' || encode(f.hash, 'hex') AS hash,
        '0x' || encode(f.block_hash, 'hex') AS block_hash, f.block_number, f.outcome, f.error,
        f.creator, f.traceparent,
        CAST(extract(epoch FROM f.finished_at) * 1000000 AS bigint) AS at
    FROM txrelay.follow_finished f JOIN txrelay.follow_accounts a ON a.account = f.account
    WHERE f.id IS NOT NULL
        AND (f.finished_at, f.id) > (timestamptz 'epoch'
            + CAST(CAST({{}} AS text) AS bigint) * interval '1 microsecond',
            CAST(CAST({{}} AS text) AS bigint))
        AND f.finished_at >= timestamptz 'epoch'
            + CAST(CAST({{}} AS text) AS bigint) * interval '1 microsecond'
    ORDER BY f.finished_at, f.id LIMIT {ROWS}) x ORDER BY x.at, x.id"""


def micros(at: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1,
                             tzinfo=datetime.timezone.utc) + datetime.timedelta(microseconds=at)
