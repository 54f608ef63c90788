"""relay: the sustained rate end to end. N rows wait in the outbox; one relay starts; the clock
runs from its first account.ready to the last finished_at. Chain, relay and Postgres share the
machine. Baselines in the same rounds, each beside what it is compared with: bare.py with the
batches the relay made, the signing rate of one core, and the peers of baselines.py against the
same chain."""
import itertools
import os
import re
import sys

from harness import proc
from harness.relay import Relay

from . import bare
from .baselines import KINDS, Peers
from .stand import (ERAS, MARK, TICKS, Counters, call_of, chain, children_cpu_s, cpu_s, log_time,
                    many_accounts, save, show, spread,
                    stat_fields, table)

CHAIN = ('--instant', '--instant-delay-ms', '5')
DONE = MARK + '''SELECT NOT EXISTS (SELECT FROM txrelay.outbox) AND NOT EXISTS (SELECT FROM
                 txrelay.pending_transactions)'''
BARE = ('functions', 'plain')
PEER_CALL_BYTES = 100


def manager_settings(args):
    pairs = {'window': args.window, 'batch': args.batch, 'unanswered': args.unanswered}
    return {**ERAS, **{k: v for k, v in pairs.items() if v}}


def chain_options(trust):
    return CHAIN + (('--trust-signatures',) if trust else ())


class Run:
    """One drain of `count` rows over `account_count` accounts."""

    def __init__(self, server, args, account_count, count, call, scheme='sr25519', trust=False):
        self.pg, self.count, self.args = server.fresh(), count, args
        self.directory = proc.make_dir('txbench-')
        self.accounts = many_accounts(account_count, scheme)
        self.node = chain(self.directory, *chain_options(trust), accounts=self.accounts)
        self.relay = Relay(self.directory, 'drain', self.pg.dsn, [self.node.ws], self.accounts,
                           manager=manager_settings(args))
        # registers the accounts; then everything is laid out for the measured start
        self.relay.start()
        proc.wait_for('all accounts',
                      lambda: self.relay.text().count('=account.ready ') >= account_count, 60)
        self.relay.stop()
        numbers = [r[0] for r in self.pg.query('SELECT account FROM txrelay.accounts ORDER BY 1')]
        bare.preload(self.pg, 'txrelay.outbox', numbers, count, call)
        self.pg.query('VACUUM ANALYZE')
        self.pg.query('CHECKPOINT')

    def cpu(self):
        relay = stat_fields(self.relay.process.pid)
        return {'relay user': int(relay[11]) / TICKS, 'relay system': int(relay[12]) / TICKS,
                'Postgres': children_cpu_s(self.pg.postmaster),
                'chain': cpu_s(self.node.process.pid)}

    def drain(self):
        seen = len(self.relay.text())
        counters = Counters(self.pg)
        self.relay.start()
        before = self.cpu()
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
        peak = int(re.search(r'VmHWM:\s+(\d+)',
                             open(f'/proc/{self.relay.process.pid}/status').read()).group(1))
        # while it ran: the end gives all of them up
        lost = self.relay.text()[seen:].count('=leader.lost ')
        self.relay.stop()
        first = re.search(r'.*=account\.ready .*', self.relay.text()[seen:]).group(0)
        start = log_time(first, 'account.ready')
        rows = self.pg.query('''SELECT count(*), count(*) FILTER (WHERE outcome = 'ok'),
            extract(epoch FROM max(finished_at))::float8 FROM txrelay.finished_transactions''')[0]
        assert rows[0] == rows[1] == self.count, f'{rows[1]} ok of {rows[0]} ended of {self.count}'
        self.node.process.kill()
        cost = counters.read(self.count)
        cost['cpu_us_per_tx'] = {k: (after[k] - before[k]) * 1e6 / self.count for k in after}
        cost['peak_memory_kb'] = peak
        cost['leads_lost'] = lost
        return {'seconds': rows[2] - start, 'tx_per_s': self.count / (rows[2] - start),
                'cost': cost}


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
    return {f[0]: {'sign_per_s': float(f[1]), 'verify_per_s': float(f[2])}
            for f in map(str.split, out.splitlines())}


class Cell:
    """Accounts, call bytes and scheme, with what was measured of them. unchecked: the same as that
    cell, with a chain that takes signatures as they are; bare SQL has no chain at all, so the
    report shows both beside it."""

    def __init__(self, accounts, size, scheme, trust=False, unchecked=None):
        self.accounts, self.size, self.scheme, self.unchecked = accounts, size, scheme, unchecked
        self.trust = trust or unchecked is not None
        self.name = f'{accounts} account{"s" if accounts > 1 else ""}, {size} B, {scheme}' + (
            ', unchecked' if self.trust else '')
        self.rates = {'relay': [], **{k: [] for k in BARE}}
        self.last, self.lost = {}, 0

    def measure(self, server, args, with_bare):
        call = call_of(self.size)
        got = Run(server, args, self.accounts, args.count, call, self.scheme, self.trust).drain()
        self.rates['relay'].append(got['tx_per_s'])
        self.lost += got['cost']['leads_lost']
        progress(self.name, got['tx_per_s'])
        self.last = {'batches': batches_of(got['cost']), 'cost': got['cost'],
                     'bare': self.last.get('bare', {})}
        for kind in BARE if with_bare else ():
            floor = bare.rate(server, kind, self.accounts, args.count, self.last['batches'], call)
            self.rates[kind].append(floor['tx_per_s'])
            progress(f'  bare SQL, {kind}', floor['tx_per_s'])
            self.last['bare'][kind] = floor

    def bare(self, kind):
        return (self.unchecked or self).rates[kind]

    def to_bare(self, kind):
        return spread([a / b for a, b in zip(self.rates['relay'], self.bare(kind))])

    def as_json(self):
        measured = {k: v for k, v in self.rates.items() if v}
        return {'tx_per_s': {k: spread(v) for k, v in measured.items()}, 'all': measured,
                'relay_to': {k: self.to_bare(k) for k in BARE if self.bare(k)}, **self.last}

    def row(self):
        cpu = self.last['cost']['cpu_us_per_tx']
        us = '/'.join(f'{v:.0f}' for v in (cpu['relay user'] + cpu['relay system'], cpu['Postgres'],
                                           cpu['chain']))
        ratios = [show(self.to_bare(k)) if self.bare(k) else '' for k in BARE]
        return [self.name, show(spread(self.rates['relay']), 0), *ratios, us,
                f'{self.last["cost"]["wal_bytes_per_tx"]:.0f}',
                f'{self.last["cost"]["peak_memory_kb"] / 1024:.0f}', self.lost]


def cells_of(args):
    sizes, schemes = [int(n) for n in args.calls.split(',')], args.schemes.split(',')
    cells = [Cell(int(a), size, scheme, args.trust_signatures)
             for a, size, scheme in itertools.product(args.accounts.split(','), sizes, schemes)]
    return cells + [Cell(c.accounts, c.size, c.scheme, unchecked=c) for c in cells
                    if c.scheme == 'sr25519' and c.size == PEER_CALL_BYTES and not c.trust]


def measure_peer(server, npm, kind, into, args):
    into.append(npm.rate(server, kind, args.api_seconds, PEER_CALL_BYTES - 4,
                         chain_options(args.trust_signatures)))
    progress(KINDS[kind], into[-1]['tx_per_s'])


def progress(name, rate):
    print(f'  {name}: {rate:.0f} tx/s', file=sys.stderr, flush=True)


def peer_rows(cells, peers):
    """Each peer, and the relay's rate over it round by round: one account to one key, 16 to 16."""
    rows = []
    for kind, got in peers.items():
        keys = int(kind.split()[-1]) if kind.split()[-1].isdigit() else 1
        ours = next((c for c in cells if c.accounts == keys and c.size == PEER_CALL_BYTES
                     and c.scheme == 'sr25519'), cells[0])
        ratio = spread([a / b['tx_per_s'] for a, b in zip(ours.rates['relay'], got)])
        text = KINDS[kind] + (f' ({got[-1]["refused"]} refused)' if got[-1].get('refused') else '')
        rows.append([text, show(spread([g['tx_per_s'] for g in got]), 0), show(ratio, 1)])
    return rows


def print_all(cells, peers, signing_rates, args):
    rounds = args.relay_rounds
    table(f'relay: {args.count} transactions end to end, {rounds} interleaved round(s), median '
          '(min..max)',
          ['', 'tx/s', 'of the leader functions alone', 'of plain statements alone',
           'CPU us/tx: relay/Postgres/chain',
           'WAL B/tx', 'peak MB', 'leads lost'], [c.row() for c in cells])
    lead = cells[0]
    rate = spread(lead.rates['relay'])['median']
    rows = [[f'bare SQL, {k} ({c.name}; {c.last["bare"][k]["sessions"]} session(s))',
             show(spread(c.rates[k]), 0), show(c.to_bare(k))] for c in cells for k in BARE
             if c.rates[k]]
    for scheme in ('sr25519', 'ed25519'):
        one = signing_rates[scheme]
        rows += [[f'signing alone, {scheme}, one core', f'{one["sign_per_s"]:.0f}',
                  f'{rate / one["sign_per_s"]:.2f}'],
                 [f'checking alone, {scheme}, one core', f'{one["verify_per_s"]:.0f}',
                  f'{rate / one["verify_per_s"]:.2f}']]
    table(f'baselines of the same rounds (signing: {lead.name} over it)',
          ['', 'tx/s', 'relay / it'],
          rows + peer_rows(cells, peers))


def run(server, args):
    cells, result = cells_of(args), {'count': args.count, 'rounds': args.relay_rounds,
                                     'signing': signing()}
    kinds = [] if args.no_peers else list(KINDS)
    npm = Peers() if kinds else None
    peers = {k: [] for k in kinds}
    for n in range(args.relay_rounds):
        jobs = [lambda c=c: c.measure(server, args, c.scheme == 'sr25519' and not c.unchecked)
                for c in cells]
        jobs += [lambda k=k: measure_peer(server, npm, k, peers[k], args) for k in kinds]
        # each round begins elsewhere, so that a slow minute hits another one
        for i in range(len(jobs)):
            jobs[(i + n * 5) % len(jobs)]()
        result['cells'] = {c.name: c.as_json() for c in cells}
        result['peers'] = peers
        save(args, 'relay', result)
    print_all(cells, peers, result['signing'], args)
    return result
