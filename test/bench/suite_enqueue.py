"""enqueue: what an application's commit pays. Sessions of pgbench that each insert one row of 100
call bytes a commit:

  bare         a plain INSERT into a table of the outbox's columns and indexes: no trigger, no
  function, no rule checked      the same, with the rules that enqueue keeps (sizes, bounds, the
  account exists) as constraints of the table awake        txrelay.enqueue, the leader awake:
  nobody holds the doorbell asleep       txrelay.enqueue while a listening session holds the
  doorbell all the time, so that every commit rings. The
               worst case: a real leader gives it back at the first ring
  notify       bare with a trigger that notifies per row, and one listening session
  bare key     bare, and a row in a table of keys, in one statement
  awake key    txrelay.enqueue with an idempotency key, the leader awake
  graphile, pg-boss  the statement of a public queue, as its users enqueue in a transaction; it
  listens where its worker does

A round measures each of them in turn, and ratios are made within a round. The first second of each
is not counted (two above 16 sessions): a session's first calls plan and compile, an application's
sessions stay. Before it the counts of one enqueue (enqueue_counts.py), after it arrays: rows per
second of enqueue_many and of one INSERT of as many rows."""
import json
import os
import re
import select
import threading

from harness import proc

from . import enqueue_counts
from .stand import MARK, show, spread, table

CALL = "'\\x0000" + '9101' + '5a' * 100 + "'::bytea"
KEY = 'md5(random()::text)'
INSERT = 'INSERT INTO bench.{} (account, call, creator) VALUES (1, ' + CALL + ', session_user)'
KEYED = ('WITH k AS (INSERT INTO bench.keys (account, key, id, payload_sha256) VALUES (1, ' + KEY
         + ", nextval('txrelay.transaction_id'), sha256(" + CALL
         + ')) RETURNING account, key, id) INSERT INTO bench.bare '
         '(id, account, call, key, creator) SELECT id, account, ' + CALL
         + ', key, session_user FROM k')
ENQUEUE = "SELECT txrelay.enqueue('bench0', " + CALL + ')'
STATEMENTS = {
    'bare': INSERT.format('bare'), 'checked': INSERT.format('checked'), 'awake': ENQUEUE,
    'asleep': ENQUEUE,
    'notify': INSERT.format('notify'), 'bare key': KEYED,
    'awake key': "SELECT txrelay.enqueue('bench0', " + CALL + ', key => ' + KEY + ')',
}
BASE = {'awake key': 'bare key'}  # of the others: bare
SETUP = '''
CREATE SCHEMA bench;
CREATE TABLE bench.bare (LIKE txrelay.outbox INCLUDING ALL);
CREATE TABLE bench.notify (LIKE txrelay.outbox INCLUDING ALL);
CREATE TABLE bench.keys (LIKE txrelay.idempotency_keys INCLUDING ALL);
CREATE TABLE bench.accounts (account int PRIMARY KEY);
INSERT INTO bench.accounts VALUES (1);
CREATE TABLE bench.checked (LIKE txrelay.outbox INCLUDING ALL, FOREIGN KEY (account) REFERENCES
bench.accounts,
    CHECK (octet_length(call) BETWEEN 1 AND 1048576), CHECK (octet_length(key) BETWEEN 1 AND 200),
    CHECK (octet_length(creator) <= 200), CHECK (priority BETWEEN -1000
    AND 1000), CHECK (retries BETWEEN 0 AND 100));
CREATE FUNCTION bench.tell() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN PERFORM pg_notify('bench', NEW.id::text); RETURN NULL; END$$;
CREATE TRIGGER tell AFTER INSERT ON bench.notify FOR EACH ROW EXECUTE FUNCTION bench.tell();
SELECT txrelay.relay_register('bench0', decode(repeat('11', 32), 'hex'), 'sr25519',
decode(repeat('22', 32), 'hex'),
    'bench0', 4711);
DROP ROLE IF EXISTS bench_app;
CREATE ROLE bench_app LOGIN IN ROLE txrelay_app;
GRANT USAGE ON SCHEMA bench TO bench_app;
GRANT INSERT, SELECT ON ALL TABLES IN SCHEMA bench TO bench_app;
GRANT USAGE ON SEQUENCE txrelay.transaction_id TO bench_app;
'''
EMPTY = ('TRUNCATE bench.bare, bench.notify, bench.checked, bench.keys, txrelay.outbox, '
         'txrelay.idempotency_keys')
QUEUES = {'graphile': ('graphile_worker._private_jobs', 'jobs:insert'),
          'pg-boss': ('pgboss.job_common', None)}


class Sleeper:
    """A session that listens, drains what it hears, and may hold the doorbell."""

    def __init__(self, pg, channel, doorbell):
        self.db = pg.connect()
        self.heard, self.over = 0, False
        with self.db.cursor() as cur:
            cur.execute(f'LISTEN "{channel}"')
            if doorbell:
                cur.execute('SELECT pg_advisory_lock(9001, 1)')
        self.thread = threading.Thread(target=self._drain, daemon=True)
        self.thread.start()

    def _drain(self):
        while not self.over:
            if select.select([self.db], [], [], 0.05)[0]:
                self.db.poll()
                self.heard += len(self.db.notifies)
                self.db.notifies.clear()

    def close(self):
        self.over = True
        self.thread.join()
        self.db.close()


def pgbench(pg, user, script, writers, seconds):
    """Commits a second, once its sessions are warm."""
    warm = 1 if writers <= 16 else 2
    args = [os.path.join(os.path.dirname(os.environ.get('PG_BIN', '/usr/lib/postgresql/15/bin/')),
                         'pgbench'), '-n',
            '-M', 'prepared', '-c', str(writers), '-j', str(min(writers, 2)), '-T',
            str(warm + seconds), '-P', '1',
            '-f', script, pg.dsn_of(pg.database, user)]
    done = proc.run(args)
    rates = [float(r) for r in re.findall(r'progress: [0-9.]+ s, ([0-9.]+) tps',
                                          done.stderr)][warm:]
    if not rates or not re.search(r'number of failed transactions: 0 ', done.stdout):
        raise RuntimeError(done.stdout + done.stderr)
    return sum(rates) / len(rates)


def queues(pg):
    """{name: (version, statement)} of the peers; installed where npm reaches a registry."""
    out = proc.run([os.path.join(proc.ROOT, 'test', 'bench', 'peers', 'setup.sh')], check=False,
                   seconds=900).stdout.split('\n')
    if len(out) < 2:
        print('\nthe public queues are not here (npm): those lines are left out')
        return {}
    database = json.dumps({'host': pg.dir, 'port': 5432, 'user': 'postgres',
                           'database': pg.database})
    got = json.loads(proc.run([out[1], os.path.join(out[0], 'enqueue.mjs'), database,
                               '0x00009101' + '5a' * 100],
                              seconds=120).stdout.splitlines()[-1])
    found = {}
    for name, q in got.items():
        sql = q['sql']
        for n, value in reversed(list(enumerate(q['values'], 1))):
            # A space after each colon: to pgbench :null is a variable.
            sql = sql.replace(f'${n}', "'" + value.replace("'", "''").replace('":', '": ') + "'")
        found[name] = (q['version'], sql)
    return found


class Stand:
    def __init__(self, server):
        self.pg = server.fresh()
        self.pg.query(SETUP)
        self.directory = proc.make_dir('txbench-')
        self.queues = queues(self.pg)
        self.statements = {**STATEMENTS, **{k: q[1] for k, q in self.queues.items()}}
        self.empty = EMPTY + ''.join(f', {QUEUES[k][0]}' for k in self.queues) + ' CASCADE'
        for name, text in self.statements.items():
            with open(self.script(name), 'w') as file:
                file.write(text + ';\n')

    def script(self, name):
        return os.path.join(self.directory, name.replace(' ', '-') + '.sql')

    def user(self, name):
        return 'postgres' if name in self.queues else 'bench_app'

    def channel(self, name):
        if name in self.queues:
            return QUEUES[name][1]
        return {'asleep': 'outbox_wake', 'notify': 'bench'}.get(name)

    def measure(self, name, writers, seconds):
        self.pg.query(MARK + self.empty)
        self.pg.query('CHECKPOINT')
        sleeper = Sleeper(self.pg, self.channel(name),
                          name == 'asleep') if self.channel(name) else None
        try:
            rate = pgbench(self.pg, self.user(name), self.script(name), writers, seconds)
        finally:
            if sleeper:
                sleeper.close()
        assert not sleeper or sleeper.heard > 0, f'{name}: nobody heard anything'
        return rate

    def round(self, names, writers, seconds, turn):
        """{name: rate}; each time another one begins."""
        at = turn % len(names)
        return {n: self.measure(n, writers, seconds) for n in names[at:] + names[:at]}


def commits(stand, args):
    names = list(stand.statements)
    cells, rows = [], []
    for writers in [int(w) for w in args.writers.split(',')]:
        rounds = [stand.round(names, writers, args.seconds, r) for r in range(args.rounds)]
        for n in names:
            base = BASE.get(n, 'bare')
            ratio, rate = spread([r[n] / r[base] for r in rounds]), spread([r[n] for r in rounds])
            to_checked = spread([r[n] / r['checked'] for r in rounds])
            cells.append({'writers': writers, 'variant': n, 'commits_per_s': rate, 'base': base,
                          'ratio_to_base': ratio,
                          'ratio_to_checked': to_checked})
            rows.append([f'{writers} writers, {n}', show(rate, 0), '' if n == base else show(ratio),
                         show(to_checked) if n in ('awake', 'asleep', 'notify', *stand.queues)
                         else ''])
    table(f'enqueue: commits per second, {args.rounds} rounds of {args.seconds} s; ratios within a '
          'round, median '
          '(min..max); with a key: of bare key', ['', 'commits/s', 'of bare', 'of checked'], rows)
    return cells


def arrays(stand, args):
    """Rows per second of one session."""
    found, rows = [], []
    for size in (10, 100, 1000):
        calls = f'array_fill({CALL}, ARRAY[{size}])'
        keys = f"(SELECT array_agg(md5(random()::text || n)) FROM generate_series(1, {size}) n)"
        texts = {
            'bare': 'INSERT INTO bench.bare (account, call, creator) SELECT 1, c, session_user '
                    f'FROM unnest({calls}) c',
            'enqueue_many': f"SELECT cardinality(txrelay.enqueue_many('bench0', {calls}))",
            'bare key': 'WITH k AS (INSERT INTO bench.keys (account, key, id, payload_sha256) '
                        'SELECT 1, u.key, '
                        f"nextval('txrelay.transaction_id'), sha256({CALL}) FROM unnest({keys}) u "
                        "(key) RETURNING account, key, "
                        'id) INSERT INTO bench.bare (id, account, call, key, creator) '
                        f'SELECT id, account, {CALL}, key, '
                        'session_user FROM k',
            'enqueue_many key': f"SELECT cardinality(txrelay.enqueue_many('bench0', {calls}, "
                                f"{keys}))",
        }
        for name, text in texts.items():
            with open(stand.script(name), 'w') as file:
                file.write(text + ';\n')
        names = list(texts)
        rounds = [stand.round(names, 1, args.seconds, r) for r in range(args.rounds)]
        for n in names:
            base = 'bare key' if n.endswith('key') else 'bare'
            ratio, rate = spread([r[n] / r[base] for r in rounds]), spread([r[n] * size
                                                                            for r in rounds])
            found.append({'rows': size, 'variant': n, 'rows_per_s': rate, 'ratio_to_base': ratio})
            rows.append([f'{size} rows, {n}', show(rate, 0), '' if n == base else show(ratio)])
    table('enqueue_many: rows per second of one session, a commit an array',
          ['', 'rows/s', 'of bare'], rows)
    return found


def run(server, args):
    stand = Stand(server)
    for name, (version, _) in stand.queues.items():
        print(f'{name}: version {version}')
    counts = enqueue_counts.run(stand, args)
    return {'rounds': args.rounds, 'seconds': args.seconds,
            'queues': {k: q[0] for k, q in stand.queues.items()},
            'cells': commits(stand, args), 'counts': counts, 'arrays': arrays(stand, args)}
