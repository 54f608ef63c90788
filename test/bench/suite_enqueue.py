"""enqueue: what an application's commit pays. Commits per second of pgbench sessions that each insert one row of 100
call bytes, in interleaved rounds:

  bare     a plain INSERT into a table of the outbox's shape, no trigger, no function
  awake    txrelay.enqueue, the leader awake: nobody holds the doorbell
  asleep   txrelay.enqueue while a listening session holds the doorbell all the time, so that every commit rings. The
           worst case: a real leader gives it back at the first ring
  notify   the plain INSERT with a trigger that notifies per row, and one listening session
"""
import os
import re
import select
import threading

from harness import proc

from .stand import MARK, show, spread, table

CALL = "'\\x0000" + '9101' + '5a' * 100 + "'::bytea"
INSERT = 'INSERT INTO bench.{} (account, call, creator) VALUES (1, ' + CALL + ', session_user);\n'
ENQUEUE = "SELECT txrelay.enqueue('bench0', " + CALL + ');\n'
VARIANTS = {'bare': INSERT.format('bare'), 'awake': ENQUEUE, 'asleep': ENQUEUE, 'notify': INSERT.format('notify')}
SETUP = '''
CREATE SCHEMA bench;
CREATE TABLE bench.bare (LIKE txrelay.outbox INCLUDING ALL);
CREATE TABLE bench.notify (LIKE txrelay.outbox INCLUDING ALL);
CREATE FUNCTION bench.tell() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN PERFORM pg_notify('bench', NEW.id::text); RETURN NULL; END$$;
CREATE TRIGGER tell AFTER INSERT ON bench.notify FOR EACH ROW EXECUTE FUNCTION bench.tell();
SELECT txrelay.relay_register('bench0', decode(repeat('11', 32), 'hex'), 'sr25519', decode(repeat('22', 32), 'hex'),
    'bench0', 4711);
DROP ROLE IF EXISTS bench_app;
CREATE ROLE bench_app LOGIN IN ROLE txrelay_app;
GRANT USAGE ON SCHEMA bench TO bench_app;
GRANT INSERT ON bench.bare, bench.notify TO bench_app;
GRANT USAGE ON SEQUENCE txrelay.transaction_id TO bench_app;
'''


class Sleeper:
    """A session that listens, drains what it hears, and may hold the doorbell."""

    def __init__(self, pg, channel, doorbell):
        self.db = pg.connect()
        self.heard, self.over = 0, False
        with self.db.cursor() as cur:
            cur.execute(f'LISTEN {channel}')
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


def pgbench(pg, script, writers, seconds):
    args = [os.path.join(os.path.dirname(os.environ.get('PG_BIN', '/usr/lib/postgresql/15/bin/')), 'pgbench'), '-n',
            '-M', 'prepared', '-c', str(writers), '-j', str(min(writers, 2)), '-T', str(seconds), '-f', script,
            pg.dsn_of(pg.database, 'bench_app')]
    out = proc.run(args).stdout
    if not re.search(r'number of failed transactions: 0 ', out):
        raise RuntimeError(out)
    return float(re.search(r'tps = ([0-9.]+)', out).group(1))


def cell(pg, directory, variant, writers, seconds):
    """One measurement, and how many notifications its listener heard."""
    pg.query(MARK + 'TRUNCATE bench.bare, bench.notify, txrelay.outbox')
    pg.query('CHECKPOINT')
    sleeper = None
    if variant == 'asleep':
        sleeper = Sleeper(pg, 'outbox_wake', True)
    elif variant == 'notify':
        sleeper = Sleeper(pg, 'bench', False)
    try:
        return pgbench(pg, os.path.join(directory, f'{variant}.sql'), writers, seconds), sleeper.heard if sleeper else 0
    finally:
        if sleeper:
            sleeper.close()


def run(server, args):
    pg = server.fresh()
    pg.query(SETUP)
    directory = proc.make_dir('txbench-')
    for name, text in VARIANTS.items():
        with open(os.path.join(directory, f'{name}.sql'), 'w') as file:
            file.write(text)
    writers = [int(w) for w in args.writers.split(',')]
    tps = {(w, v): [] for w in writers for v in VARIANTS}
    names = list(VARIANTS)
    for n in range(args.rounds):
        for w in writers:
            for v in names[n % len(names):] + names[:n % len(names)]:
                got, heard = cell(pg, directory, v, w, args.seconds)
                assert v != 'asleep' or heard > 0, 'the doorbell did not ring'
                tps[w, v].append(got)
    cells, rows = [], []
    for w in writers:
        for v in names:
            ratio = spread([a / b for a, b in zip(tps[w, v], tps[w, 'bare'])])
            rate = spread(tps[w, v])
            cells.append({'writers': w, 'variant': v, 'commits_per_s': rate, 'ratio_to_bare': ratio})
            rows.append([f'{w} writers, {v}', f'{rate["median"]:.0f}', '' if v == 'bare' else show(ratio)])
    table(f'enqueue: commits per second, {args.rounds} rounds of {args.seconds} s; ratios within a round, median (min..max)',
          ['', 'commits/s', 'of bare'], rows)
    return {'rounds': args.rounds, 'seconds': args.seconds, 'cells': cells}
