"""What every suite stands on: a private Postgres with everything durable, a chain with high
limits, accounts, and the counters of a run that do not depend on the machine."""
import json
import os
import random
import re
import statistics
import time

from harness import proc
from harness.chain import Devchain, remark
from harness.postgres import Postgres
from harness.relay import cli, key_files

# Statements of the bench itself carry this mark, so that they are not counted as the relay's.
MARK = '/* bench */ '
TABLES = ('accounts', 'outbox', 'pending_transactions', 'attempts', 'finished_transactions')
PG_OPTIONS = {
    'fsync': 'on', 'synchronous_commit': 'on', 'full_page_writes': 'on', 'shared_buffers': '256MB',
    'max_wal_size': '4GB', 'checkpoint_timeout': '30min',
    'shared_preload_libraries': 'pg_stat_statements',
    'pg_stat_statements.track': 'top',
}
CHAIN_OPTIONS = ('--max-subscriptions', '1000000', '--pool-limit', '1000000', '--pool-bytes',
                 '1000000000',
                 '--future-limit', '100000', '--block-max-extrinsics', '100000',
                 '--max-block-bytes', '268435456')
# Blocks of 5 ms come a thousand times as fast as real ones. With the default of 64, bytes that a
# third of a second is enough to outdate would be measured, and an outdated one is signed anew: 4096
# are 20 s.
ERAS = {'era_period': 4096}
_ids = {}  # (scheme, secret uri): account id
TICKS = os.sysconf('SC_CLK_TCK')


class DurablePostgres(Postgres):
    """The harness's Postgres with the options above; suites take a database of their own from it
    (sibling)."""

    def __init__(self, more=None):
        self.dir = proc.make_dir('txbench-')
        self.options = {**PG_OPTIONS, **(more or {})}
        flags = [f for k, v in self.options.items() for f in ('-c', f'{k}={v}')]
        sh = os.path.join(proc.ROOT, 'test', 'harness', 'pg.sh')
        self.admin_dsn = proc.run([sh, 'start', self.dir, '--fsync', '--',
                                   *flags]).stdout.strip().splitlines()[-1]
        proc.on_exit(self.stop)
        self.database, self.dsn = 'postgres', self.dsn_of('postgres')
        self.serial = 0
        self.postmaster = int(proc.run([sh, 'pid', self.dir]).stdout)

    def fresh(self):
        """A migrated database of its own. The one before goes: its vacuum would write WAL into the
        next figures."""
        if self.serial:
            self.query(f'DROP DATABASE bench_{self.serial} WITH (FORCE)')
        self.serial += 1
        pg = self.sibling(f'bench_{self.serial}')
        pg.postmaster = self.postmaster
        cli('migrate', '--database', pg.dsn)
        pg.query('CREATE EXTENSION pg_stat_statements')
        return pg


def call_of(size):
    """A remark whose bytes no page can compress."""
    content = random.Random(size).randbytes(size - (3 if size < 67 else 4))
    return remark(content)


def many_accounts(count, scheme='sr25519'):
    return [(f'bench{i}', scheme, f'//Bench//{i}') for i in range(count)]


def fund_options(directory, accounts):
    """--fund for each: the id as the program itself shows it."""
    options = []
    for (_, scheme, uri), (_, _, path) in zip(accounts, key_files(directory, accounts)):
        if (scheme, uri) not in _ids:
            shown = cli('keys', 'show', path, '--scheme', scheme).stdout
            _ids[scheme, uri] = re.search(r'account id\s+(\S+)', shown).group(1)
        options += ['--fund', f'{_ids[scheme, uri]}={10 ** 18}']
    return options


def chain(directory, *options, accounts=()):
    return Devchain(directory, *CHAIN_OPTIONS, *fund_options(directory, accounts), *options)


def pgbench_command(pg, statement, *options):
    """Runs one statement again and again."""
    path = os.path.join(proc.make_dir('txbench-'), 'script.sql')
    with open(path, 'w') as file:
        file.write(statement + ';\n')
    return [os.path.join(os.environ.get('PG_BIN', '/usr/lib/postgresql/15/bin'), 'pgbench'), '-n',
            '-M', 'prepared', '-f', path,
            *options, pg.dsn]


# ---- clocks and processes ----

def log_time(text, event, alias=None):
    """Seconds since 1970 of the log line's own stamp, the last one of that event."""
    from datetime import datetime, timezone
    stamps = re.findall(rf'time=(\S+Z) level=\w+ event={re.escape(event)}'
                        + (rf' account={alias} ' if alias else ''), text)
    if not stamps:
        return None
    stamp = datetime.strptime(stamps[-1].split('>')[-1], '%Y-%m-%dT%H:%M:%S.%fZ')
    return stamp.replace(tzinfo=timezone.utc).timestamp()


def stat_fields(pid):
    with open(f'/proc/{pid}/stat') as file:
        return file.read().rsplit(')', 1)[1].split()


def cpu_s(pid):
    fields = stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS


def children_cpu_s(pid):
    """Of a process, its children now, and those it has waited for."""
    fields = stat_fields(pid)
    total = sum(int(f) for f in fields[11:15]) / TICKS
    for name in os.listdir('/proc'):
        if name.isdigit():
            try:
                if int(stat_fields(name)[1]) == pid:
                    total += cpu_s(name)
            except (FileNotFoundError, ProcessLookupError):
                pass
    return total


def fsync_ms(directory, count=50):
    """Median of a write and fdatasync of one page where the data lives: the price of a lone
    commit."""
    path = os.path.join(directory, 'fsync.probe')
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    times = []
    for _ in range(count):
        os.pwrite(fd, b'x' * 8192, 0)
        start = time.monotonic()
        os.fdatasync(fd)
        times.append((time.monotonic() - start) * 1000)
    os.close(fd)
    os.unlink(path)
    return statistics.median(times)


# ---- counters of the database ----

def statement_name(query):
    """The schema's function that a statement calls, else how it begins."""
    text = ' '.join(re.sub('--.*', '', query).split())
    found = re.search(r'txrelay\.((?:leader|relay)_\w+)\s*\(', text)
    return found.group(1) if found else text[:60]


class Counters:
    """Differences between two looks at the server. Table counters are flushed when a session ends,
    so the second look at them comes after the relay has stopped."""

    def __init__(self, pg):
        self.pg = pg
        pg.query(MARK + 'SELECT pg_stat_statements_reset()')
        self.tables = self._tables()
        self.lsn = self._lsn()
        self.wal = self._wal()

    def _lsn(self):
        return self.pg.value(MARK + "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")

    def _wal(self):
        return self.pg.query(MARK + 'SELECT wal_records, wal_fpi, wal_bytes FROM pg_stat_wal')[0]

    def _tables(self):
        rows = self.pg.query(MARK + '''SELECT CASE WHEN relname LIKE 'finished_transactions%%'
            THEN 'finished_transactions'
            ELSE relname END, sum(n_tup_ins), sum(n_tup_upd), sum(n_tup_hot_upd), sum(n_tup_del)
            FROM pg_stat_user_tables WHERE schemaname = 'txrelay' GROUP BY 1''')
        return {r[0]: [int(x) for x in r[1:]] for r in rows}

    def freeze_wal(self):
        """When the last transaction is done; later looks do not move it."""
        self.lsn_end = self._lsn()

    def read(self, count):
        """Per transaction. count: transactions that ended."""
        wal = [b - a for a, b in zip(self.wal, self._wal())]
        tables = {}
        now = self._tables()
        for name in TABLES:
            ins, upd, hot, dele = (b - a for a, b in zip(self.tables.get(name, [0] * 4),
                                                         now.get(name, [0] * 4)))
            tables[name] = {'inserted': ins / count, 'updated': upd / count,
                            'updated_not_hot': (upd - hot) / count,
                            'deleted': dele / count, 'dead': (upd + dele) / count}
        rows = self.pg.query('SELECT query, calls, total_exec_time, wal_bytes '
                             'FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid '
                             'WHERE d.datname = current_database() AND query NOT LIKE %s AND '
                             'toplevel '
                             'ORDER BY total_exec_time DESC', ('%' + MARK.strip() + '%',))
        statements = [{'name': statement_name(r[0]), 'calls_per_tx': r[1] / count,
                       'us_per_tx': r[2] * 1000 / count,
                       'wal_bytes_per_tx': float(r[3]) / count} for r in rows]
        return {
            'statements_per_tx': sum(s['calls_per_tx'] for s in statements),
            'sql_us_per_tx': sum(s['us_per_tx'] for s in statements),
            'wal_bytes_per_tx': int(self.lsn_end - self.lsn) / count,
            'wal_records_per_tx': int(wal[0]) / count,
            'wal_page_images_per_tx': int(wal[1]) / count,
            'tables': tables,
            'statements': statements,
        }


# ---- figures ----

def save(args, suite, result):
    """What a long suite has so far, next to the file of --json."""
    if args.json:
        with open(f'{args.json}.{suite}', 'w') as file:
            json.dump(result, file, indent=1)


def spread(values):
    """Median with the smallest and the largest."""
    values = sorted(values)
    return {'median': statistics.median(values), 'min': values[0], 'max': values[-1],
            'n': len(values)}


def quantiles(values):
    values = sorted(values)
    at = lambda q: values[min(len(values) - 1, int(len(values) * q))]  # noqa: E731
    return {'p50': at(0.5), 'p99': at(0.99), 'max': values[-1], 'n': len(values)}


def show(s, digits=2, scale=1.0):
    return (f'{s["median"] * scale:.{digits}f} '
            f'({s["min"] * scale:.{digits}f}..{s["max"] * scale:.{digits}f})')


def table(title, columns, rows):
    print(f'\n{title}')
    rows = [[str(c) for c in row] for row in rows]
    widths = [max(len(r[i]) for r in [columns] + rows) for i in range(len(columns))]

    def line(row):
        return '  ' + '  '.join(c.ljust(w) if i == 0 else c.rjust(w)
                                for i, (c, w) in enumerate(zip(row, widths)))
    print(line(columns))
    print('  ' + '  '.join('-' * w for w in widths))
    for row in rows:
        print(line(row), flush=True)
