"""What the SQL tests share: one private server, one database per test, roles, sessions, overlap,
notifications.

The schema is installed by `installer`, which is no superuser: it owns its database, may create
roles and has pg_signal_backend and pg_read_all_stats, no more. Tests connect as app, relay, nobody
(members of nothing else) or installer.
"""
import atexit
import contextlib
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import unittest

import psycopg2
import psycopg2.extensions

ROOT = pathlib.Path(__file__).resolve().parents[2]
PG_SH = ROOT / 'test' / 'harness' / 'pg.sh'
MIGRATIONS = sorted((ROOT / 'schema' / 'migrations').glob('*.sql'))
FUNCTIONS = sorted((ROOT / 'schema' / 'functions').glob('*.sql'))
DEADLINE_S = 20
# What applications and followers may call (schema/functions/91_grants.sql).
APPLICATION = {'enqueue', 'enqueue_many', 'enqueue_signed', 'cancel', 'bump', 'retry', 'status',
               'counts', 'history', 'account_of',
               'follow_position'}
sys.path.append(str(ROOT / 'test'))  # the harness is for all tests

RC = psycopg2.extensions.ISOLATION_LEVEL_READ_COMMITTED
RR = psycopg2.extensions.ISOLATION_LEVEL_REPEATABLE_READ
SERIALIZABLE = psycopg2.extensions.ISOLATION_LEVEL_SERIALIZABLE


def h32(text):
    """A 32-byte hash that stands for `text`."""
    return hashlib.sha256(str(text).encode()).digest()


def wait_until(condition, what):
    deadline = time.monotonic() + DEADLINE_S
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f'not within {DEADLINE_S} s: {what}')
        pause.wait(0.005)


class Server:
    def __init__(self):
        self.dir = subprocess.run([PG_SH, 'folder'], stdout=subprocess.PIPE, text=True,
                                  check=True).stdout.strip()
        atexit.register(self.stop)
        self.dsn = self.sh('start', '--', '-c', 'max_connections=60').strip()

    def sh(self, command, *args):
        # The server inherits no pipe of ours: pg.sh gives it a log file.
        run = subprocess.run([PG_SH, command, self.dir, *args], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE,
                             text=True, timeout=60)
        if run.returncode:
            raise AssertionError(f'pg.sh {command} {args}: {run.stderr}')
        return run.stdout

    def stop(self):
        if self.dir:
            self.sh('stop', 'immediate')
            shutil.rmtree(self.dir)
            self.dir = None

    def connect(self, dbname='postgres', user='postgres', level=RC, autocommit=True):
        conn = psycopg2.connect(self.dsn, dbname=dbname, user=user)
        conn.set_session(isolation_level=level, autocommit=autocommit)
        return conn


def migrate(conn):
    """As txrelay migrate does it: every file as one multi-statement query, all in one
    transaction."""
    ours = conn.get_transaction_status() == psycopg2.extensions.TRANSACTION_STATUS_IDLE
    with conn.cursor() as cur:
        if ours:
            cur.execute('BEGIN')
        for n, path in enumerate(MIGRATIONS, 1):
            cur.execute(path.read_text())
            cur.execute('INSERT INTO txrelay.schema_version (version, name, checksum) '
                        'VALUES (%s, %s, %s)',
                        (n, path.name, hashlib.sha256(path.read_bytes()).hexdigest()))
        for path in FUNCTIONS:
            cur.execute(path.read_text())
        if ours:
            cur.execute('COMMIT')


_server = None


def server():
    """The shared server, with roles and a template database that has the schema."""
    global _server
    if _server is None:
        s = Server()
        root = s.connect()
        with root.cursor() as cur:
            cur.execute('CREATE ROLE installer LOGIN CREATEROLE')
            cur.execute('GRANT pg_signal_backend, pg_read_all_stats TO installer')
            cur.execute('CREATE DATABASE template_txr OWNER installer')
        owner = s.connect('template_txr', 'installer', autocommit=False)
        migrate(owner)
        owner.commit()
        owner.close()
        with root.cursor() as cur:
            cur.execute('CREATE ROLE app LOGIN IN ROLE txrelay_app')
            # txrelay_clock: tests tell the time (clock_of in schema/functions).
            cur.execute('CREATE ROLE txrelay_clock NOLOGIN')
            cur.execute('CREATE ROLE relay LOGIN IN ROLE txrelay_relay, txrelay_clock')
            cur.execute('CREATE ROLE follower LOGIN IN ROLE txrelay_follower')
            cur.execute('CREATE ROLE nobody LOGIN')
        root.close()
        _server = s
    return _server


class Session:
    """One connection with short-hands. Every call is its own transaction unless begin() was
    called."""

    def __init__(self, conn):
        self.conn = conn
        self.pid = conn.get_backend_pid()
        self.lasts = False

    def rows(self, sql, *args):
        with self.conn.cursor() as cur:
            cur.execute(sql, args or None)
            return cur.fetchall() if cur.description else []

    def one(self, sql, *args):
        rows = self.rows(sql, *args)
        assert len(rows) == 1, f'{len(rows)} rows from {sql}'
        return rows[0]

    def value(self, sql, *args):
        return plain(self.one(sql, *args)[0])

    def dicts(self, sql, *args):
        with self.conn.cursor() as cur:
            cur.execute(sql, args or None)
            return [{c.name: plain(v) for c, v in zip(cur.description, row)}
                    for row in cur.fetchall()]

    def dict(self, sql, *args):
        rows = self.dicts(sql, *args)
        assert len(rows) == 1, f'{len(rows)} rows from {sql}'
        return rows[0]

    def begin(self, level='READ COMMITTED'):
        self.rows('BEGIN ISOLATION LEVEL ' + level)

    def commit(self):
        self.rows('COMMIT')

    def rollback(self):
        self.rows('ROLLBACK')

    def renew(self):
        """As a new session, but for what it has compiled. False: it has ended, or cannot."""
        try:
            self.conn.notices.clear()
            self.conn.notifies.clear()
            if self.conn.get_transaction_status() != psycopg2.extensions.TRANSACTION_STATUS_IDLE:
                return False
            self.conn.set_session(isolation_level=RC, autocommit=True)
            self.rows('RESET SESSION AUTHORIZATION; UNLISTEN *; '
                      'SELECT pg_advisory_unlock_all(); CLOSE ALL; RESET ALL; '
                      'DISCARD TEMP; DEALLOCATE ALL; SELECT 1')
            return True
        except psycopg2.Error:
            return False


def plain(value):
    return bytes(value) if isinstance(value, memoryview) else value


# What the last test left. As replica no trigger fires: records that never change can be emptied. A
# table without a page has no rows: most tests touch few tables, and emptying all of them costs more
# than a test.
EMPTY = """
SET session_replication_role = replica;
DO $$
DECLARE
    v_tables text;
BEGIN
    SELECT string_agg(c.oid::regclass::text, ', ') INTO v_tables FROM pg_class c
        WHERE c.relnamespace = 'txrelay'::regnamespace AND c.relkind = 'r'
        AND pg_relation_size(c.oid) > 0
        AND c.relname NOT IN ('schema_version', 'schema_functions', 'high_water', 'notify_queue',
        'retention', 'webhook_position');
    IF v_tables IS NOT NULL THEN
        EXECUTE 'TRUNCATE ' || v_tables || ' RESTART IDENTITY CASCADE';
    END IF;
END
$$;
UPDATE txrelay.high_water SET reached = 'epoch', clock_offset = '0'"""

_lasting = {}


class Background:
    """A call in a thread, for what must wait for another session."""

    def __init__(self, session, call):
        self.session, self.result, self.error = session, None, None

        def run():
            try:
                self.result = call()
            except psycopg2.Error as e:
                self.error = e
        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def join(self):
        self.thread.join(DEADLINE_S)
        assert not self.thread.is_alive(), 'the call still waits'
        if self.error:
            raise self.error
        return self.result


class Case(unittest.TestCase):
    """A database with the schema, no rows but the account alice (number 1, lock key 42)."""
    FRESH = False  # a test that changes the schema asks for a database of its own
    WIDE = False  # alice's policy lets applications pay any tip and take any priority
    # what claims and scans take for the time; a test may set one that stands
    now = 'clock_timestamp()'

    def setUp(self):
        self.server = server()
        self.opened = []
        self.db = 'txr_fresh' if self.FRESH else 'txr_shared'
        root = Session(self.server.connect())
        if self.FRESH:
            root.rows(f'DROP DATABASE IF EXISTS {self.db} WITH (FORCE)')
        if root.value('SELECT count(*) FROM pg_database WHERE datname = %s', self.db) == 0:
            root.rows(f'CREATE DATABASE {self.db} TEMPLATE template_txr OWNER installer')
        root.conn.close()
        self.superuser().rows(EMPTY)
        self.owner = self.lasting('installer')
        self.app = self.lasting('app')
        self.relay = self.lasting('relay')
        self.relay.rows('SET jit = off')  # as a relay's sessions do (store/sql/set_session.sql)
        self.alice = self.register(self.relay, 'alice', 42)
        if self.WIDE:
            self.policy(tip_cap=str(2**128 - 1), priority_max=1000)

    def tearDown(self):
        """Every session ends or is as a new one, and gives up its locks, before the next test
        begins."""
        ended = []
        for s in self.opened:
            if not (s.lasts and s.renew()):
                s.conn.close()
                ended.append(s.pid)
        root = Session(self.server.connect())
        wait_until(lambda: root.value('SELECT count(*) FROM pg_stat_activity WHERE pid = ANY (%s)',
                                      ended) == 0, 'end')
        root.conn.close()

    def session(self, user):
        s = Session(self.server.connect(self.db, user))
        self.opened.append(s)
        return s

    def lasting(self, user):
        """The session of this user that tests pass on to one another: what it has compiled is half
        the time of a test."""
        if self.FRESH:
            return self.session(user)
        s = _lasting.get(user)
        if s is None or s.conn.closed:
            s = _lasting[user] = Session(self.server.connect(self.db, user))
            s.lasts = True
        self.opened.append(s)
        return s

    def superuser(self):
        return self.session('postgres')

    # ---- errors ----

    def refused(self, sqlstate, call, *args, text=()):
        """call(*args) ends with the SQLSTATE; message and hint have every part of `text`."""
        with self.assertRaises(psycopg2.Error) as caught:
            call(*args)
        error = caught.exception
        self.assertEqual(error.pgcode, sqlstate, str(error))
        said = f'{error.diag.message_primary} | {error.diag.message_hint}'
        for part in [text] if isinstance(text, str) else text:
            self.assertIn(part, said)
        self.one_line(error, ' '.join(a for a in args if isinstance(a, str)))
        return said

    def one_line(self, error, sql):
        """An error of ours names in its context the function that an application called, and no
        other one."""
        called = set(re.findall(r'txrelay\.(\w+)\(', sql))
        if called and called <= APPLICATION and (error.pgcode.startswith('TR')
                                                 or error.pgcode == '42501'):
            self.assertRegex(error.diag.context or '', r'\A(PL/pgSQL function '
                                                       r'(txrelay\.)?(%s)\([^\n]*\) line \d+ at '
                                                       r'RAISE)?\Z'
                             % '|'.join(called))

    # ---- overlap ----

    def background(self, session, sql, *args):
        """Start a statement that must come to wait for another session; returns once it does."""
        return self.overlap(session, lambda: session.rows(sql, *args))

    def overlap(self, session, call):
        """The same for a call that uses this session."""
        call = Background(session, call)
        wait_until(lambda: self.owner_sees_blocked(session.pid) or not call.thread.is_alive(),
                   'a session waits')
        self.assertTrue(call.thread.is_alive(), f'nothing made it wait: {call.result} {call.error}')
        return call

    def owner_sees_blocked(self, pid):
        return self.owner.value('SELECT cardinality(pg_blocking_pids(%s)) > 0', pid)

    # ---- notifications ----

    def listen(self, *channels):
        s = self.session('nobody')
        for channel in channels + ('sentinel',):
            s.rows(f'LISTEN {channel}')
        return s

    def heard(self, listener):
        """All notifications committed until now, as (channel, payload): a sentinel of ours ends
        them. Every listener gets every sentinel, so one of an earlier call must not end them."""
        self.sentinels = getattr(self, 'sentinels', 0) + 1
        self.owner.rows("SELECT pg_notify('sentinel', %s)", str(self.sentinels))
        self.wait_heard(listener, lambda n: (n.channel, n.payload) == ('sentinel',
                                                                       str(self.sentinels)),
                                                                       'the sentinel')
        got = [(n.channel, n.payload) for n in listener.conn.notifies if n.channel != 'sentinel']
        listener.conn.notifies.clear()
        return got

    def wait_notified(self, listener, channel):
        self.wait_heard(listener, lambda n: n.channel == channel, f'a notification on {channel}')

    def wait_heard(self, listener, wanted, what):
        def arrived():
            listener.conn.poll()
            return any(wanted(n) for n in listener.conn.notifies)
        wait_until(arrived, what)

    # ---- the ways of a relay ----

    def register(self, s, alias, lock_key, genesis=b'\1' * 32, account_id=None, address=None):
        return s.value('SELECT txrelay.relay_register(%s, %s, %s, %s, %s, %s)', alias,
                       account_id or h32(alias), 'sr25519', genesis, address or '5' + alias,
                       lock_key)

    def claim(self, s, holder='relay-a', lock=False, e1=3000, e2=9000, after_ms=0, account=None):
        return s.dict("SELECT * FROM txrelay.leader_claim(%s, %s, %s, %s, %s, %s, "
                      f"{self.now} + %s * interval '1 ms')",
                      account or self.alice, holder, holder + ':1', lock, e1, e2, after_ms)

    def lead(self, holder='relay-a', **kwargs):
        got = self.claim(self.relay, holder, **kwargs)
        self.assertTrue(got['granted'])
        return got['epoch']

    def enqueue(self, count=1, call=b'\0\1', **options):
        names = ''.join(f', {k} => %s' for k in options)
        return [self.app.value(f"SELECT txrelay.enqueue('alice', %s{names})", call,
                               *options.values())
                for _ in range(count)]

    def admit(self, s, epoch, ids, nonces, hashes=None, tips=None, version=1):
        n = len(ids)
        return s.value('SELECT txrelay.leader_admit(%s, %s, %s::bigint[], %s::bigint[], '
                       '%s::bytea[], %s::bytea[], '
                       '%s::numeric[], %s::bigint[], %s::bigint[], 100, %s, 10)', self.alice, epoch,
                       ids, nonces,
                       hashes or [h32(x) for x in nonces], [b'\x84' + h32(x) for x in nonces],
                       tips or [0] * n,
                       [64] * n, [128] * n, version)

    def pending(self, count=1, first=0, epoch=None, **options):
        """Enqueue and admit `count` transactions under an epoch (default: a new claim)."""
        epoch = epoch or self.lead()
        ids = self.enqueue(count, **options)
        self.admit(self.relay, epoch, ids, list(range(first, first + count)))
        return epoch, ids

    def attempt(self, s, epoch, nonces, hashes, reason='era', tip=0, filler=None, outcome=None,
                stop=None, version=1):
        n = len(nonces)
        return s.value('SELECT txrelay.leader_attempt(%s, %s, %s::bigint[], %s::bytea[], '
                       '%s::bytea[], %s::numeric[], '
                       '%s::bigint[], %s::bigint[], 100, %s, 20, %s::text[], %s::int[], '
                       '%s::text[], %s::text[])',
                       self.alice, epoch, nonces, hashes, [b'\x84' + x for x in hashes], [tip] * n,
                       [None] * n,
                       [None] * n, version, [reason] * n, [filler] * n, [outcome] * n, [stop] * n)

    def state(self, s, epoch, *rows):
        """rows: (nonce, hash, state[, block_hash[, block_number[, error]]])"""
        rows = [tuple(r) + (None,) * (6 - len(r)) for r in rows]
        columns = [list(c) for c in zip(*rows)]
        return s.value('SELECT txrelay.leader_record_status(%s, %s, %s::bigint[], %s::bytea[], '
                       '%s::text[], %s::bytea[], '
                       '%s::bigint[], %s::text[])', self.alice, epoch, *columns)

    def finish(self, s, epoch, *rows):
        """rows: (nonce, hash, block_hash, outcome[, error]); as of block 7, unless the nonce is
        given back."""
        rows = [tuple(r) + (None,) * (5 - len(r)) for r in rows]
        nonces, hashes, blocks, outcomes, errors = [list(c) for c in zip(*rows)]
        return s.value('SELECT txrelay.leader_finish(%s, %s, %s::bigint[], %s::bytea[], '
                       '%s::bytea[], %s::bigint[], '
                       '%s::int[], %s::text[], %s::text[], %s::numeric[])', self.alice, epoch,
                       nonces, hashes, blocks,
                       [7 if b or o in ('usurped', 'unknown') else None
                        for b, o in zip(blocks, outcomes)],
                       [2] * len(rows), outcomes, errors, [125] * len(rows))

    def requeue(self, s, epoch, *rows):
        """rows: (nonce, outcome[, error[, hash[, block_hash]]]), as the chain says it; of block
        7."""
        rows = [tuple(r) + (None,) * (5 - len(r)) for r in rows]
        nonces, outcomes, errors, hashes, blocks = [list(c) for c in zip(*rows)]
        return s.value('SELECT txrelay.leader_requeue(%s, %s, %s::bigint[], %s::bytea[], '
                       '%s::bytea[], %s::bigint[], '
                       '%s::int[], %s::text[], %s::text[], %s::numeric[])', self.alice, epoch,
                       nonces, hashes, blocks,
                       [b and 7 for b in blocks], [b and 2 for b in blocks], outcomes, errors,
                       [b and 125 for b in blocks])

    def fill(self, s, epoch, nonces, outcome='expired', error=None, tag='fill'):
        n = len(nonces)
        return s.value('SELECT txrelay.leader_fill(%s, %s, %s::bigint[], %s::bytea[], %s::bytea[], '
                       '%s::bytea[], '
                       '%s::numeric[], %s::bigint[], %s::bigint[], 100, 1, 20, %s::text[], '
                       '%s::text[])', self.alice,
                       epoch, nonces, [b'\0\0'] * n, [h32(f'{tag}{x}') for x in nonces],
                       [b'\x84'] * n, [0] * n,
                       [None] * n, [None] * n, [outcome] * n, [error] * n)

    def row(self, nonce):
        return self.owner.dict('SELECT * FROM txrelay.pending_transactions WHERE account = %s '
                               'AND nonce = %s',
                               self.alice, nonce)

    def attempts(self, nonce):
        return self.owner.dicts('SELECT * FROM txrelay.attempts WHERE account = %s AND nonce = %s '
                                'ORDER BY number',
                                self.alice, nonce)

    def status(self, tx):
        return self.app.dict('SELECT * FROM txrelay.status(%s)', tx)

    def account(self):
        """The row, with its leadership and the lease that it has part in."""
        return self.owner.dict('''SELECT l.*, a.*, coalesce(r.heartbeat, l.heartbeat) AS heartbeat,
            coalesce(r.expiry_1, l.expiry_1)
            AS expiry_1, coalesce(r.expiry_2, l.expiry_2) AS expiry_2,
            greatest(a.seen_block, l.seen_block, r.seen_block) AS seen_block
            FROM txrelay.accounts a JOIN txrelay.leadership l ON l.subject = a.account
            LEFT JOIN txrelay.relay_leases r ON l.leased AND r.holder = l.holder
            WHERE a.account = %s''', self.alice)

    def facts(self, epoch):
        return self.relay.dict('SELECT * FROM txrelay.leader_account(%s, %s)', self.alice, epoch)

    def look(self, epoch):
        return self.relay.dicts('SELECT * FROM txrelay.leader_poll_requests(%s, %s)', self.alice,
                                epoch)

    def snapshot(self, epoch):
        return self.relay.dicts('SELECT * FROM txrelay.leader_snapshot(%s, %s, -1, 100)',
                                self.alice, epoch)

    def finished(self, nonce):
        return self.owner.dict('SELECT * FROM txrelay.finished_transactions WHERE account = %s '
                               'AND nonce = %s',
                               self.alice, nonce)

    def history(self, tx):
        return self.app.dicts('SELECT * FROM txrelay.history(%s)', tx)

    def policy(self, **values):
        return self.relay.value("SELECT txrelay.account_policy('alice', %s::jsonb)",
                                json.dumps(values))

    @contextlib.contextmanager
    def work_on(self, session, *tables):
        """A transaction of the session. When it ends, the list holds for each table (rows read,
        rows updated, of these HOT). The server's counters still hold earlier transactions of a
        session that has not reported them (it does so once a second at most), so these are
        differences."""
        def counters():
            return [session.one("""
                SELECT pg_stat_get_xact_tuples_returned(o) + coalesce((SELECT
                sum(pg_stat_get_xact_tuples_fetched(indexrelid))
                                                                       FROM pg_index WHERE indrelid
                                                                       = o), 0)::int8,
                       pg_stat_get_xact_tuples_updated(o), pg_stat_get_xact_tuples_hot_updated(o)
                FROM CAST(%s AS regclass) o""", f'txrelay.{table}') for table in tables]
        work = []
        session.begin()
        before = counters()
        yield work
        work += [tuple(b - a for a, b in zip(*pair)) for pair in zip(before, counters())]
        session.commit()

    def count(self, table):
        return self.owner.value(f'SELECT count(*) FROM txrelay.{table}')
