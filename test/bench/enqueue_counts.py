"""What one enqueue costs in counts that do not depend on how busy the machine is, from one
session: bytes of WAL, pages touched, processor time of the backend (the first call, which compiles
and plans, apart), and with --instructions those of the backend under callgrind (a single-user
server that executes the statement 60 and 260 times; the difference counts)."""
import os
import re
import statistics

from harness import proc
from harness.postgres import Postgres
from harness.relay import cli

from .stand import MARK, table

COUNT = 200
ROUNDS = 9
FEW, MANY = 60, 260
WITHOUT = ('asleep', 'notify')  # as awake and bare, but for who listens


def cpu_ns(pid):
    with open(f'/proc/{pid}/schedstat') as file:
        return int(file.read().split()[0])


class Session:
    """One that commits the statement again and again."""

    def __init__(self, stand, name):
        self.db = stand.pg.connect(user=stand.user(name))
        self.cur = self.db.cursor()
        self.cur.execute('SET synchronous_commit = off')  # the flush is not what is counted here
        self.cur.execute('PREPARE one AS ' + stand.statements[name])
        self.pid = self.db.get_backend_pid()
        self.first_us = self.repeat(1)
        self.repeat(50)

    def repeat(self, count):
        start = cpu_ns(self.pid)
        for _ in range(count):
            self.cur.execute('EXECUTE one')
        return (cpu_ns(self.pid) - start) / count / 1000


def counters(pg):
    wal = pg.value(MARK + "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
    hits = pg.value(MARK + '''SELECT coalesce(sum(shared_blks_hit + shared_blks_read), 0)
        FROM pg_stat_statements s
        JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = current_database()
        AND query NOT LIKE '%bench */%' ''')
    return int(wal), int(hits)


def count(stand, name):
    """Of COUNT commits, in rounds. The least WAL: of a round without page images."""
    session = Session(stand, name)
    times, seen = [], [counters(stand.pg)]
    for _ in range(ROUNDS):
        times.append(session.repeat(COUNT))
        seen.append(counters(stand.pg))
    session.db.close()
    wal, pages = ([(b[i] - a[i]) / COUNT for a, b in zip(seen, seen[1:])] for i in (0, 1))
    return {'wal_bytes': min(wal), 'pages': statistics.median(pages), 'cpu_us_least': min(times),
            'cpu_us': statistics.median(times), 'cpu_us_first': session.first_us}


class SingleUser:
    """A server that callgrind can run: one process, statements from standard input."""

    def __init__(self, setup):
        self.pg = Postgres(durable=False, database='bench')
        cli('migrate', '--database', self.pg.dsn)
        self.pg.query(setup)
        self.pg.stop()

    def instructions(self, statement):
        few, many = (self._total(statement, n) for n in (FEW, MANY))
        return (many - few) / (MANY - FEW)

    def _total(self, statement, count):
        text = 'SET SESSION AUTHORIZATION bench_app;\nPREPARE one AS ' + ' '.join(
            statement.split()) + ';\n' + 'EXECUTE one;\n' * count
        user = [] if os.getuid() else ['setpriv', '--reuid', 'postgres', '--regid', 'postgres',
                                       '--clear-groups']
        binary = os.path.join(os.environ.get('PG_BIN', '/usr/lib/postgresql/15/bin'), 'postgres')
        out = proc.run([*user, 'valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null',
                        binary, '--single', '-D',
                        os.path.join(self.pg.dir, 'data'), '-c', 'autovacuum=off', '-c', 'jit=off',
                        'bench'], input=text,
                       seconds=300)
        if 'ERROR' in out.stderr:
            raise RuntimeError(out.stderr[-2000:])
        return int(re.search(r'Collected : (\d+)', out.stderr).group(1))


def run(stand, args):
    names = [n for n in stand.statements if n not in WITHOUT]
    stand.pg.query(MARK + stand.empty)
    stand.pg.query('CHECKPOINT')
    found = {n: count(stand, n) for n in names}
    if args.instructions:
        from .suite_enqueue import SETUP
        single = SingleUser(SETUP)
        for n in names:
            if n not in stand.queues:
                found[n]['instructions'] = single.instructions(stand.statements[n])
    rows = [[n, *(f'{c[k]:.{d}f}' for k, d in (('wal_bytes', 0), ('pages', 1), ('cpu_us_least', 1),
                                               ('cpu_us', 1),
                                               ('cpu_us_first', 0), ('instructions', 0)) if k in c)]
            for n, c in found.items()]
    rows = [r + [''] * (7 - len(r)) for r in rows]
    table('one enqueue, one session: counts',
          ['', 'WAL bytes', 'pages', 'CPU us, least', 'middle', 'first call',
                                               'instructions'], rows)
    return found
