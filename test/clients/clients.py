"""What an application in Python does, with each driver: clients.py STEP, one JSON line for each
result. DB: a connection string of an application's login; URL, TOKEN: the relay's HTTP interface.
PYTHONPATH has the wheel."""
import asyncio
import contextlib
import datetime
import json
import os
import sys

import asyncpg
import psycopg
import psycopg2
import sqlalchemy
import sqlalchemy.ext.asyncio
import sqlalchemy.orm

import txrelay
import txrelay.aio

DB = os.environ['DB']
HOUR = datetime.timedelta(hours=1)
TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
ORDER = "INSERT INTO orders (note) VALUES ('{}')"


def tell(**what):
    print(json.dumps(what, default=str), flush=True)


def remark(text):
    """System.remark with these bytes; below 64 of them the length is one byte."""
    return bytes([0, 0, len(text) << 2]) + text.encode()


class Undone(Exception):
    pass


# ---- name -> (what runs in a transaction, what does not): context managers over what the client
# takes ----

def dbapi(module):
    @contextlib.contextmanager
    def begin():
        db = module.connect(DB)
        try:
            with db:
                yield db
        finally:
            db.close()
    return begin


def cursor(module):
    @contextlib.contextmanager
    def begin():
        with dbapi(module)() as db, db.cursor() as cur:
            yield cur
    return begin


def engine():
    return sqlalchemy.create_engine('postgresql+psycopg2://', creator=lambda: psycopg2.connect(DB))


@contextlib.contextmanager
def session():
    with sqlalchemy.orm.Session(engine()) as s, s.begin():
        yield s


def order(db, note):
    text = ORDER.format(note)
    if isinstance(db, sqlalchemy.orm.Session):
        db.execute(sqlalchemy.text(text))
    elif hasattr(db, 'exec_driver_sql'):
        db.exec_driver_sql(text)
    elif hasattr(db, 'cursor'):
        with db.cursor() as cur:
            cur.execute(text)
    else:
        db.execute(text)


BEGIN = {'psycopg2': dbapi(psycopg2), 'psycopg2-cursor': cursor(psycopg2),
         'psycopg': dbapi(psycopg), 'psycopg-cursor': cursor(psycopg),
         'sqlalchemy': lambda: engine().begin(), 'sqlalchemy-session': session}


def refused(begin, code, part, call):
    try:
        with begin() as db:
            call(db)
    except Exception as e:  # each driver has its own
        assert txrelay.error_code(e) == code and part in str(e), repr(e)
    else:
        raise AssertionError(f'{code} was expected')


def driver(name):
    if name in ASYNC:
        return asyncio.run(async_driver(name))
    begin = BEGIN[name]
    with begin() as db:
        order(db, f'{name} kept')
        tx = txrelay.enqueue(db, 'alice', remark(f'{name} kept'), key=f'{name}-1')
    with contextlib.suppress(Undone), begin() as db:
        order(db, f'{name} lost')
        txrelay.enqueue(db, 'alice', remark(f'{name} lost'))
        raise Undone
    with begin() as db:
        assert txrelay.enqueue(db, 'alice', '0x' + remark(f'{name} kept').hex(),
                               key=f'{name}-1') == tx
        careful = txrelay.enqueue(db, 'alice', bytearray(remark(f'{name} options')), key=None,
                                  priority=-1, delay=HOUR,
                                  expires_in='2 hours', creator=name, spec_version=1, tip=5,
                                  max_tip='10', deadline_block=4 * 10**9,
                                  retries=2, traceparent=TRACE)
        t = txrelay.status(db, careful)
        assert (t.id, t.account, t.stage, t.outcome, t.creator,
                t.traceparent) == (careful, 'alice', 'outbox', None, name, TRACE), t
        assert abs(datetime.datetime.now(datetime.timezone.utc) - t.created_at) < HOUR
        assert txrelay.bump(db, careful, 7) == 'queued'
        assert txrelay.cancel(db, careful) == 'cancelled'
        assert txrelay.cancel(db, careful) == 'finished'
        again = txrelay.retry(db, careful, deadline=datetime.datetime.now(datetime.timezone.utc)
                              + 2 * HOUR)
        assert txrelay.status(db, again).retry_of == careful
        assert txrelay.cancel(db, again) == 'cancelled'
        many = txrelay.enqueue_many(db, 'alice', [remark(f'{name} a'), remark(f'{name} b')],
                                    [f'{name}-a', None])
        assert len(many) == 2 and txrelay.enqueue_many(db, 'alice', []) == []
        assert txrelay.status(db, 999999999) is None and txrelay.status(db, hash='0x'
                                                                        + '00' * 32) is None
    refused(begin, 'TR010', 'no such account: "alise"',
            lambda db: txrelay.enqueue(db, 'alise', b'x'))
    refused(begin, 'TR011', 'priority is 5000',
            lambda db: txrelay.enqueue(db, 'alice', b'x', priority=5000))
    refused(begin, 'TR012', 'was used before',
            lambda db: txrelay.enqueue(db, 'alice', b'x', key=f'{name}-1'))
    refused(begin, 'TR011', 'does not begin with its length',
            lambda db: txrelay.enqueue_signed(db, b'x', key='k'))
    with begin() as db:
        for wrong, text in ((lambda: txrelay.enqueue(db, 'alice', 'remark'),
                             'bytes or hexadecimal text'),
                            (lambda: txrelay.enqueue(db, 'alice', b'x', wish=1),
                             "no option 'wish': key, priority"),
                            (lambda: txrelay.enqueue(db, 'alice', b'x',
                                                     deadline=datetime.datetime(2099, 1, 1)),
                                                     'no time zone')):
            try:
                wrong()
            except (TypeError, ValueError) as e:
                assert text in str(e), e
            else:
                raise AssertionError(text)
    tell(driver=name, ids=[tx, *many], ended=[careful, again])


# ---- asyncio ----

@contextlib.asynccontextmanager
async def begin_asyncpg():
    db = await asyncpg.connect(dsn=os.environ['DB_URL'])
    try:
        async with db.transaction():
            yield db
    finally:
        await db.close()


@contextlib.asynccontextmanager
async def begin_psycopg():
    async with await psycopg.AsyncConnection.connect(DB) as db:
        yield db


@contextlib.asynccontextmanager
async def begin_sqlalchemy():
    made = sqlalchemy.ext.asyncio.create_async_engine('postgresql+asyncpg://',
                                                      connect_args={'dsn': os.environ['DB_URL']})
    try:
        async with sqlalchemy.ext.asyncio.AsyncSession(made) as s, s.begin():
            yield s
    finally:
        await made.dispose()


ASYNC = {'asyncpg': begin_asyncpg, 'psycopg-async': begin_psycopg,
         'sqlalchemy-async': begin_sqlalchemy}


async def async_order(db, note):
    text = ORDER.format(note)
    await db.execute(sqlalchemy.text(text) if hasattr(db, 'sync_session') else text)


async def async_driver(name):
    begin, aio = ASYNC[name], txrelay.aio
    async with begin() as db:
        await async_order(db, f'{name} kept')
        tx = await aio.enqueue(db, 'alice', remark(f'{name} kept'), key=f'{name}-1')
    with contextlib.suppress(Undone):
        async with begin() as db:
            await async_order(db, f'{name} lost')
            await aio.enqueue(db, 'alice', remark(f'{name} lost'))
            raise Undone
    async with begin() as db:
        careful = await aio.enqueue(db, 'alice', remark(f'{name} options'), delay=HOUR,
                                    creator=name, tip=5, traceparent=TRACE)
        t = await aio.status(db, careful)
        assert (t.id, t.creator, t.traceparent) == (careful, name, TRACE), t
        assert await aio.bump(db, careful, 7) == 'queued'
        assert await aio.cancel(db, careful) == 'cancelled'
        again = await aio.retry(db, careful)
        assert await aio.cancel(db, again) == 'cancelled'
        many = await aio.enqueue_many(db, 'alice', [remark(f'{name} a'), remark(f'{name} b')],
                                      [f'{name}-a', None])
    for code, call in (('TR012', lambda db: aio.enqueue(db, 'alice', b'x', key=f'{name}-1')),
                       ('TR011', lambda db: aio.enqueue_signed(db, b'x'))):
        try:
            async with begin() as db:
                await call(db)
        except Exception as e:  # each driver has its own
            assert txrelay.error_code(e) == code, repr(e)
        else:
            raise AssertionError(code)
    tell(driver=name, ids=[tx, *many], ended=[careful, again])


# ---- reading ----

def told(t):
    tell(id=t.id, outcome=t.outcome, fee=t.fee, blockNumber=t.block_number)


async def wait_async(ids):
    db = await asyncpg.connect(dsn=os.environ['DB_URL'])
    for tx in ids:
        told(await txrelay.aio.wait(db, tx))
    sleeper = await txrelay.aio.enqueue(db, 'alice', remark('sleeper'), delay=HOUR)
    try:
        await asyncio.wait_for(txrelay.aio.wait(db, sleeper), 0.05)
    except asyncio.TimeoutError:
        pass
    assert await db.fetchval('SELECT count(*) FROM pg_listening_channels()') == 0
    await txrelay.aio.cancel(db, sleeper)
    await db.close()


def wait(*ids):
    ids = [int(i) for i in ids]
    drivers = [psycopg2.connect(DB), psycopg.connect(DB)]
    for n, db in enumerate(drivers):
        db.autocommit = True
        for tx in ids[n::3]:
            told(txrelay.wait(db, tx))
        try:
            txrelay.wait(db, 999999999)
        except LookupError as e:
            assert 'transaction 999999999 is not known' in str(e)
        sleeper = txrelay.enqueue(db, 'alice', remark(f'sleeper {n}'), delay=HOUR)
        try:
            txrelay.wait(db, sleeper, timeout=0.05)
            raise AssertionError('it sleeps')
        except TimeoutError as e:
            assert f'transaction {sleeper} has not ended' in str(e), e
        assert txrelay.cancel(db, sleeper) == 'cancelled'
        with db.cursor() as cur:
            cur.execute('SELECT count(*) FROM pg_listening_channels()')
            assert cur.fetchone() == (0,)
        db.close()
    asyncio.run(wait_async(ids[2::3]))


def follow(position, name='psycopg'):
    """Until it is stopped; a connection that ends is opened again, from the last position."""
    at = None if position == 'now' else int(position)
    while True:
        db = {'psycopg': psycopg,
              'psycopg2': psycopg2}[name].connect(DB, application_name='clients follow')
        db.autocommit = True
        tell(event='connected')
        try:
            for event in txrelay.follow(db, at, account='alice'):
                tell(type=type(event).__name__.lower(), **vars(event))
                at = event.position
        except (psycopg.OperationalError, psycopg2.OperationalError, psycopg2.InterfaceError) as e:
            tell(event='lost', error=str(e), position=at)


async def follow_async(position):
    at = None if position == 'now' else int(position)
    while True:
        db = await asyncpg.connect(dsn=os.environ['DB_URL'],
                                   server_settings={'application_name': 'clients follow'})
        tell(event='connected')
        try:
            async for event in txrelay.aio.follow(db, at, account='alice'):
                tell(type=type(event).__name__.lower(), **vars(event))
                at = event.position
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as e:
            tell(event='lost', error=str(e), position=at)


def encode():
    url, token = os.environ['URL'], os.environ['TOKEN']
    for given in (['by position'], {'remark': 'by name'}):
        assert txrelay.encode(url, token, 'alice', 'System', 'remark',
                              given) == remark(list(given if isinstance(given, list)
                                                                            else given.values())[0])
    for name, use, status in (('Sistem', token, 422), ('System', 'txr_x', 401)):
        try:
            txrelay.encode(url, use, 'alice', name, 'remark', ['x'])
            raise AssertionError(status)
        except txrelay.HttpError as e:
            assert e.status == status, (e.status, str(e))
    tell(encoded=True)


STEPS = {'drivers': lambda *names: [driver(name) for name in names], 'wait': wait, 'follow': follow,
         'encode': encode,
         'follow_async': lambda position: asyncio.run(follow_async(position))}
STEPS[sys.argv[1]](*sys.argv[2:])
