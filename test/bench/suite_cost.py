"""cost: what one transaction costs, in counts that do not depend on how fast or how busy the
machine is. One account, one relay, one chain, from the application's commit to the record of the
end. Nothing is timed: a block is made on command when all of them are at rest, and so do the
database's answers wait (gate.py) until nobody has anything to do without them. What the relay
gathers meanwhile is the same on every machine.

Three runs of it: plain (the database's counters, CPU), under callgrind (instructions,
allocations), and under strace (system calls; only in the table, they depend on how the kernel cuts
the streams). `--check` holds the counts against costs.json next to this file, `--record` writes
it."""
import json
import os
import re
import shutil
import time

from harness import proc
from harness.chain import remark
from harness.relay import Relay

from . import callgrind, costs
from .gate import Gate
from .stand import MARK, Counters, DurablePostgres, chain, many_accounts, stat_fields, table

CALL = remark(b'Z' * 96)  # 100 bytes with its index and length
COUNT = 2048
REST_S = 0.025  # so long everything sleeps before it counts as at rest
# Page images depend on when the last checkpoint was, vacuum on when it comes: neither belongs to a
# transaction.
PG_OPTIONS = {'autovacuum': 'off', 'full_page_writes': 'off'}
MANAGER = {'window': 256, 'batch': 128, 'unanswered': 64}
SLOW_CLOCKS = {'heartbeat_ms': 60000, 'expiry_1_ms': 300000, 'expiry_2_ms': 300000}
# What comes by the clock and not by the transaction.
BY_CLOCK = ('leader_poll_requests', 'leader_renew', 'leader_scan', 'member_heartbeat')


class Wrapped(Relay):
    """A relay under another program."""

    def start(self, prefix=()):
        self.process = proc.Process([*prefix, proc.TXRELAY, 'run', '--config', self.config],
                                    self.log)
        return self


def children(pid):
    return [int(p) for p in os.listdir('/proc') if p.isdigit() and parent(p) == pid]


def parent(pid):
    try:
        return int(stat_fields(pid)[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def task_states(pid):
    states = ''
    for task in tasks(pid):
        try:
            with open(f'/proc/{pid}/task/{task}/stat') as file:
                states += file.read().rsplit(')', 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            pass
    return states


def tasks(pid):
    try:
        return os.listdir(f'/proc/{pid}/task')
    except FileNotFoundError:
        return []


def cpu_ns(pid):
    total = 0
    for task in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{task}/schedstat') as file:
            total += int(file.read().split()[0])
    return total


class Life:
    """The transactions of one run, with the relay under `prefix`; calls begin() before it counts
    and end() afterwards."""

    def __init__(self, server, count, prefix=(), account_count=1):
        self.server, self.count, self.account_count = server, count, account_count
        self.pg = server.fresh()
        self.dir = proc.make_dir('txbench-')
        accounts = many_accounts(account_count)
        self.node = chain(self.dir, '--block-ms', '0', '--finality-lag', '1', '--seed', '1',
                          '--genesis-ms', '1700000000000',
                          accounts=accounts)
        self.node.rpc('dev_newBlock', {'count': 2})
        self.gate = Gate(self.dir, server.dir)
        self.relay = Wrapped(self.dir, 'cost', self.pg.dsn.replace(server.dir, self.dir),
                             [self.node.ws], accounts, SLOW_CLOCKS, MANAGER)
        self.relay.start(prefix)
        proc.wait_for('all accounts',
                      lambda: self.relay.text().count('=account.ready ') >= account_count, 120, 0.1)
        self.pg.query('VACUUM ANALYZE')
        self.server_pids = children(server.postmaster)
        self.gate.hold(True)
        self.rest()

    def at_work(self):
        """Whether relay, node or server have anything to do; what waits at the gate is nothing to
        do."""
        assert self.relay.alive(), self.relay.text()[-2000:]
        pids = [self.relay.process.pid, self.node.process.pid, *self.server_pids]
        return bool(set(''.join(map(task_states, pids))) - {'S'})

    def quiet(self):
        """Wait until all of them sleep, and did so for REST_S."""
        since = {'when': time.monotonic()}

        def resting():
            if self.at_work() or self.gate.pump():
                since['when'] = time.monotonic()
            return time.monotonic() - since['when'] >= REST_S
        proc.wait_for('everything to rest', resting, 120, 0.002)

    def rest(self):
        """Let the answers through, all that wait at once, until none comes any more. How many were
        submitted by then."""
        self.quiet()
        while self.gate.waiting():
            self.gate.release()
            self.quiet()
        return self.node.rpc('dev_stats', {'limit': 0})['submit_count']

    def cpu(self):
        pids = [r[0] for r in self.pg.query(
            MARK + 'SELECT pid FROM pg_stat_activity WHERE datname = current_database() '
                                            'AND pid <> pg_backend_pid()')]
        return {'relay': cpu_ns(self.relay.process.pid), 'Postgres': sum(cpu_ns(p) for p in pids)}

    def run(self, begin=lambda: None, end=lambda: None):
        counters = Counters(self.pg)
        before = self.cpu()
        begin()
        enqueued = self.enqueue()
        blocks = 0
        while self.rest() < self.count:
            self.node.rpc('dev_newBlock', {'count': 1})
            blocks += 1
        for _ in range(2):  # the last ones into a block, and that one final
            self.node.rpc('dev_newBlock', {'count': 1})
            self.rest()
        end()
        counters.freeze_wal()
        after = self.cpu()
        self.gate.hold(False)
        self.relay.stop()
        ended = self.pg.query(MARK + "SELECT count(*), count(*) FILTER (WHERE outcome = 'ok') "
                                     "FROM txrelay.finished_transactions")
        assert ended == [(self.count, self.count)], f'{ended} of {self.count}'
        cost = counters.read(self.count)
        cost['cpu_us_per_tx'] = {k: (after[k] - before[k]) / 1000 / self.count for k in before}
        cost['enqueue_wal_bytes_per_tx'] = int(enqueued - counters.lsn) / self.count
        cost['relay_wal_bytes_per_tx'] = cost['wal_bytes_per_tx'] - cost['enqueue_wal_bytes_per_tx']
        cost['relay_statements_per_tx'] = sum(s['calls_per_tx'] for s in cost['statements']
                                              if of_relay(s['name']))
        cost['blocks'] = blocks + 2
        self.gate.close()
        self.node.process.kill()
        return cost

    def enqueue(self):
        """All of them in one commit; where the log was just before it."""
        db = self.pg.connect(autocommit=False)
        with db.cursor() as cur:
            cur.execute(MARK + "SELECT count(txrelay.enqueue('bench' || n %% %s, %s)) "
                               "FROM generate_series(0, %s) n",
                        (self.account_count, CALL, self.count - 1))
            cur.execute(MARK + "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
            lsn = cur.fetchone()[0]
        db.commit()
        db.close()
        return lsn


def of_relay(name):
    return name.startswith(('leader_', 'relay_')) and name not in BY_CLOCK


def callgrind_run(server, count):
    path = os.path.join(proc.make_dir('txbench-'), 'callgrind.out')
    life = Life(server, count, callgrind.command(path))
    pid = life.relay.process.pid

    def end():
        callgrind.control(pid, '-d')
        callgrind.control(pid, '-i', 'off')
    life.run(lambda: callgrind.control(pid, '-i', 'on'), end)
    return callgrind.Profile(path + '.1')


def strace_run(server, count):
    path = os.path.join(proc.make_dir('txbench-'), 'strace')
    life = Life(server, count)
    watcher = []

    def begin():
        watcher.append(proc.Process(['strace', '-c', '-f', '-p', str(life.relay.process.pid), '-o',
                                     path], path + '.log'))
        proc.wait_for('strace to attach', lambda: 'attached' in watcher[0].text(), 30)
    life.run(begin, lambda: watcher[0].stop())
    found = {}
    with open(path) as file:
        for line in file:
            f = line.split()
            if len(f) >= 5 and f[3].isdigit() and f[-1] != 'total':
                found[f[-1]] = int(f[3]) / count
    return dict(sorted(found.items(), key=lambda x: -x[1]))


# ---- the table ----

def show(plain, profile, calls, count):
    rows = [['statements of the relay = round trips', f'{plain["relay_statements_per_tx"]:.4f}'],
            ['WAL bytes: relay / enqueue',
             f'{plain["relay_wal_bytes_per_tx"]:.0f} / {plain["enqueue_wal_bytes_per_tx"]:.0f}'],
            ['WAL records', f'{plain["wal_records_per_tx"]:.2f}']]
    for name, t in plain['tables'].items():
        rows.append([f'{name}: inserted / updated (not HOT) / deleted',
                     f'{t["inserted"]:.2f} / {t["updated"]:.2f} ({t["updated_not_hot"]:.2f}) / '
                     f'{t["deleted"]:.2f}'])
    rows += [[f'CPU us, {k} (not a count)', f'{v:.0f}'] for k, v in plain['cpu_us_per_tx'].items()]
    rows += [['instructions of the relay', f'{profile.instructions() / count:.0f}'],
             ['allocations of the relay', f'{profile.allocations() / count:.1f}']]
    if calls:
        rows.append(['system calls of the relay', f'{sum(calls.values()):.2f}'])
    table(f'cost of one transaction: {count} of one account in {plain["blocks"]} blocks',
          ['', 'per tx'], rows)
    table('statements', ['', 'calls per 1000', 'us/tx', 'WAL B/tx'],
          [[s['name'], f'{s["calls_per_tx"] * 1000:.2f}', f'{s["us_per_tx"]:.1f}',
            f'{s["wal_bytes_per_tx"]:.0f}']
           for s in plain['statements'] if of_relay(s['name']) or s['name'] in BY_CLOCK])
    whole = profile.instructions()
    table('instructions by place (itself)', ['', 'per tx', '%'],
          [[k, f'{v / count:.0f}', f'{100 * v / whole:.1f}'] for k, v in profile.by_place().items()
           if v > whole / 1000])
    named = {k: v for k, v in profile.most() if not re.search(r' [0-9a-f]{3,}$', k)}
    table('instructions by function (with all it calls)', ['', 'per tx', '%'],
          [[k, f'{v / count:.0f}', f'{100 * v / whole:.1f}'] for k, v in list(named.items())[:45]])
    table('allocations by caller', ['', 'per tx'],
          [[k, f'{v / count:.2f}'] for k, v in list(profile.allocations_by_caller().items())[:20]
           if v > count / 100])
    if calls:
        table('system calls (under strace)', ['', 'per tx'],
              [[k, f'{v:.3f}'] for k, v in list(calls.items())[:10]])


def measure(server, count):
    plain, profile = Life(server, count).run(), callgrind_run(server, count)
    return costs.counts_of(plain, profile, count), plain, profile


def check(server, count, measured):
    """A figure that is off is measured twice more, and its median counts. What is still off."""
    with open(costs.FILE) as file:
        recorded = json.load(file)['per transaction']
    tries = [measured]
    while costs.differences(costs.median_of(tries), recorded) and len(tries) < 3:
        tries.append(measure(server, count)[0])
    now = costs.median_of(tries)
    off = costs.differences(now, recorded)
    table(f'cost of one transaction against {os.path.relpath(costs.FILE, proc.ROOT)} '
          f'({costs.BOUND:.0%} allowed)',
          ['', 'recorded', 'now', 'off by'],
          [[k, f'{recorded.get(k, 0):.2f}', f'{v:.2f}',
            f'{costs.off_by(v, recorded.get(k, 0)) * 100:+.1f} %'
            + (' !' if k in off else '')] for k, v in now.items()])
    return off


def check_lane():
    server = DurablePostgres(PG_OPTIONS)
    off = check(server, COUNT, measure(server, COUNT)[0])
    if off:
        raise SystemExit(f'bench cost: {", ".join(off)} moved{costs.other_versions()}. If the '
                         'change means it: ./dev bench cost '
                         '--record, and commit test/bench/costs.json with it; ./dev bench cost '
                         'shows where it comes from')


def run(_, args):
    server = DurablePostgres(PG_OPTIONS)
    counts, plain, profile = measure(server, COUNT)
    calls = strace_run(server, COUNT) if shutil.which('strace') else None
    show(plain, profile, calls, COUNT)
    if args.record:
        costs.record([counts] + [measure(server, COUNT)[0] for _ in range(2)],
                     {'transactions': COUNT, 'call bytes': len(CALL), 'manager': MANAGER})
    return {'counts': counts, 'plain': plain, 'system calls': calls,
            'instructions by place': profile.by_place(),
            'instructions by function': dict(profile.most()[:200]),
            'allocations by caller': profile.allocations_by_caller()}
