"""relay: the sustained rate end to end. N rows wait in the outbox; one relay starts; the clock runs from its first
account.ready to the last finished_at. Chain, relay and Postgres share the machine. Baselines in the same run: bare.py
with the batches the relay made, the signing rate of one core, and @polkadot/api against the same chain."""
import json
import os
import re
import shutil

from harness import proc
from harness.chain import remark
from harness.relay import Relay

from . import bare
from .stand import (MARK, TICKS, Counters, chain, children_cpu_s, cpu_s, log_time, many_accounts, show, spread,
                    stat_fields, table)

CALL = remark(b'Z' * 96)
CHAIN = ('--instant', '--instant-delay-ms', '5')
DONE = MARK + '''SELECT NOT EXISTS (SELECT FROM txrelay.outbox) AND NOT EXISTS (SELECT FROM txrelay.pending_transactions)'''


def polkadot_modules():
    """The npm folder of the runtime lane (test/runtime/chain/setup.sh), when it is there; nothing is installed here."""
    place = os.environ.get('TXRELAY_RUNTIME_DIR') or os.path.join(proc.ROOT, 'build', 'runtime')
    modules = os.path.join(place, 'node_modules')
    return modules if os.path.isdir(os.path.join(modules, '@polkadot', 'api')) else None


def manager_settings(args):
    pairs = {'window': args.window, 'batch': args.batch, 'unanswered': args.unanswered}
    return {k: v for k, v in pairs.items() if v} or None


class Run:
    """One drain of `count` rows over `account_count` accounts."""

    def __init__(self, server, args, account_count, count):
        self.pg, self.count, self.args = server.fresh(), count, args
        self.directory = proc.make_dir('txbench-')
        self.accounts = many_accounts(account_count)
        self.node = chain(self.directory, *CHAIN, accounts=self.accounts)
        self.relay = Relay(self.directory, 'drain', self.pg.dsn, [self.node.ws], self.accounts,
                           manager=manager_settings(args))
        self.relay.start()  # registers the accounts; then everything is laid out for the measured start
        for alias, _, _ in self.accounts:
            self.relay.wait_log(f'account.ready account={alias} ')
        self.relay.stop()
        numbers = [r[0] for r in self.pg.query('SELECT account FROM txrelay.accounts ORDER BY 1')]
        bare.preload(self.pg, 'txrelay.outbox', numbers, count, CALL)
        self.pg.query('VACUUM ANALYZE')
        self.pg.query('CHECKPOINT')

    def cpu(self):
        relay = stat_fields(self.relay.process.pid)
        return {'relay user': int(relay[11]) / TICKS, 'relay system': int(relay[12]) / TICKS,
                'Postgres': children_cpu_s(self.pg.postmaster), 'chain (verifies each)': cpu_s(self.node.process.pid)}

    def drain(self, around=None):
        """around(pid): something that watches the relay, started at once and ended with its wait()."""
        ready_before = len(re.findall('account.ready', self.relay.text()))
        counters = Counters(self.pg)
        self.relay.start()
        before = self.cpu()
        watcher = around(self.relay.process.pid) if around else None
        db = self.pg.connect()
        cur = db.cursor()

        def done():
            assert self.relay.alive(), self.relay.text()[-2000:]
            cur.execute(DONE)
            return cur.fetchone()[0]
        proc.wait_for('everything to end', done, 600, 0.1)
        counters.freeze_wal()
        after = self.cpu()
        db.close()
        peak = int(re.search(r'VmHWM:\s+(\d+)', open(f'/proc/{self.relay.process.pid}/status').read()).group(1))
        self.relay.stop()
        if watcher:
            watcher()
        ready = re.findall(r'account\.ready', self.relay.text())
        assert len(ready) > ready_before
        start = min(log_time(self.relay.text(), 'account.ready', a) for a, _, _ in self.accounts)
        rows = self.pg.query('''SELECT count(*), count(*) FILTER (WHERE outcome = 'ok'),
            extract(epoch FROM max(finished_at))::float8, extract(epoch FROM max(in_block_at))::float8
            FROM txrelay.finished_transactions''')[0]
        assert rows[0] == rows[1] == self.count, f'{rows[1]} ok of {rows[0]} ended of {self.count}'
        self.node.process.kill()
        cost = counters.read(self.count)
        cost['cpu_us_per_tx'] = {k: (after[k] - before[k]) * 1e6 / self.count for k in after}
        cost['peak_memory_kb'] = peak
        return {'seconds': rows[2] - start, 'tx_per_s': self.count / (rows[2] - start), 'cost': cost}


def batches_of(cost):
    """Average rows of each kind of write, from how often it was called."""
    calls = {'admit': 0, 'state': 0, 'finish': 0}
    for s in cost['statements']:
        kind = s['name'].removeprefix('leader_')
        if kind in calls:
            calls[kind] += s['calls_per_tx']
    return {k: max(1, round(1 / c)) if c else 128 for k, c in calls.items()}


def signing():
    out = proc.run([os.path.join(proc.BUILD, 'test', 'bench', 'sign_rate')]).stdout
    return {f[0]: {'sign_per_s': float(f[1]), 'verify_per_s': float(f[2])} for f in map(str.split, out.splitlines())}


def polkadot(args):
    modules, node = polkadot_modules(), shutil.which('node')
    if not modules or not node:
        print('\n@polkadot/api is not here: ./dev test runtime installs it into build/runtime; that baseline is skipped')
        return None
    found = {}
    for mode in ('chain', 'hand'):
        devchain = chain(proc.make_dir('txbench-'), *CHAIN)
        out = proc.run([node, os.path.join(proc.ROOT, 'test', 'bench', 'polkadot_rate.mjs'), modules, devchain.ws,
                        str(args.api_seconds), mode], seconds=args.api_seconds + 60).stdout
        got = json.loads(out.splitlines()[-1])
        found[mode] = {'tx_per_s': got['count'] / got['seconds'], 'refused': got['refused'],
                       'version': got['version']}
        devchain.process.kill()
    return found


def cost_table(name, cost, floors):
    rows = [['statements', f'{cost["statements_per_tx"]:.3f}'], ['WAL bytes', f'{cost["wal_bytes_per_tx"]:.0f}'],
            ['WAL records', f'{cost["wal_records_per_tx"]:.2f}'],
            ['WAL full page images', f'{cost["wal_page_images_per_tx"]:.3f}']]
    for t, c in cost['tables'].items():
        rows.append([f'{t}: inserted / updated (not HOT) / deleted',
                     f'{c["inserted"]:.2f} / {c["updated"]:.2f} ({c["updated_not_hot"]:.2f}) / {c["deleted"]:.2f}'])
    rows.append(['dead tuples made', f'{sum(c["dead"] for c in cost["tables"].values()):.2f}'])
    rows += [[f'CPU us, {k}', f'{v:.0f}'] for k, v in cost['cpu_us_per_tx'].items()]
    rows.append(['peak memory of the relay, kB (whole)', cost['peak_memory_kb']])
    for kind, text in (('functions', 'the leader functions alone'), ('plain', 'plain statements alone')):
        rows.append([f'  {text}: WAL bytes / CPU us of Postgres',
                     f'{floors[kind]["wal_bytes_per_tx"]:.0f} / {floors[kind]["backend_us_per_tx"]:.0f}'])
    table(f'cost of one transaction, {name}', ['', 'per tx'], rows)
    table(f'statements of the relay, {name}', ['', 'calls/tx', 'us/tx', 'WAL B/tx'],
          [[s['name'], f'{s["calls_per_tx"]:.4f}', f'{s["us_per_tx"]:.1f}', f'{s["wal_bytes_per_tx"]:.0f}']
           for s in cost['statements'][:8]])


def syscalls(server, args):
    if not shutil.which('strace'):
        print('\nstrace is not here: system calls are not counted')
        return None
    count = min(args.count, 5000)
    run = Run(server, args, 1, count)
    path = os.path.join(run.directory, 'strace')

    def around(pid):
        child = proc.Process(['strace', '-c', '-f', '-p', str(pid), '-o', path], os.path.join(run.directory, 'strace.log'))
        return lambda: child.child.wait(30)
    run.drain(around)
    found = {}
    with open(path) as file:
        for line in file:
            f = line.split()
            if len(f) >= 5 and f[3].isdigit() and f[-1] != 'total':
                found[f[-1]] = int(f[3]) / count
    table('system calls of the relay, 1 account (under strace)', ['', 'per tx'],
          [[k, f'{v:.3f}'] for k, v in sorted(found.items(), key=lambda x: -x[1])[:8]])
    return found


def run(server, args):
    result = {'count': args.count, 'runs': {}, 'signing': signing()}
    rows = []
    for accounts in [int(a) for a in args.accounts.split(',')]:
        kinds, floors = {'relay': [], 'functions': [], 'plain': []}, {}
        for _ in range(args.relay_rounds):
            got = Run(server, args, accounts, args.count).drain()
            kinds['relay'].append(got['tx_per_s'])
            batches = batches_of(got['cost'])
            for kind in ('functions', 'plain'):
                floors[kind] = bare.rate(server, kind, accounts, args.count, batches, CALL)
                kinds[kind].append(floors[kind]['tx_per_s'])
        ratios = {k: spread([r / b for r, b in zip(kinds['relay'], kinds[k])]) for k in ('functions', 'plain')}
        result['runs'][str(accounts)] = {'tx_per_s': {k: spread(v) for k, v in kinds.items()}, 'relay_to': ratios,
                                         'batches': batches, 'cost': got['cost'], 'floors': floors}
        s = 's' if accounts > 1 else ''
        rows.append([f'relay, {accounts} account{s}', show(spread(kinds['relay']), 0), '1.00'])
        for k, text in (('functions', 'bare SQL, the leader functions'), ('plain', 'bare SQL, plain statements')):
            rows.append([f'  {text}', show(spread(kinds[k]), 0), show(ratios[k])])
        cost_table(f'{accounts} account{s}, batches {batches}', got['cost'], floors)
    relay_rate = next(iter(result['runs'].values()))['tx_per_s']['relay']['median']
    sr = result['signing']['sr25519']
    rows.append(['signing alone, sr25519, one core', f'{sr["sign_per_s"]:.0f}', f'{relay_rate / sr["sign_per_s"]:.2f}'])
    rows.append(['checking alone, sr25519, one core', f'{sr["verify_per_s"]:.0f}', f'{relay_rate / sr["verify_per_s"]:.2f}'])
    result['polkadot'] = polkadot(args)
    for mode, got in (result['polkadot'] or {}).items():
        text = f'nonce -1 ({got["refused"]} refused)' if mode == 'chain' else 'nonce by hand'
        rows.append([f'@polkadot/api one by one, {text}', f'{got["tx_per_s"]:.0f}', f'{relay_rate / got["tx_per_s"]:.2f}'])
    table(f'relay: {args.count} transactions end to end, {args.relay_rounds} round(s), median (min..max); '
          'ratio: relay over that line (first account count for the lower ones)', ['', 'tx/s', 'relay / it'], rows)
    if args.syscalls:
        result['syscalls_per_tx'] = syscalls(server, args)
    return result
