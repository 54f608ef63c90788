"""sites: what it costs that another database gives the nonces. Two sites and a chain with a block
every 5 ms; transactions that wait are committed at once, and the clock runs from that commit to
the last end. Alternating rounds of three kinds: delegated to the other site; at the site that
coordinates; and of an account without sites, by the same relay. Then, with blocks of 100 ms and
three sites: an idle link, the time until another site sends when the one that coordinates is lost,
and the dip at a rotation over the length of a range."""
import itertools
import re
import threading
import time
from collections import Counter

from harness import proc
from harness.chain import remark
from harness.sites import Sites

from .stand import (CHAIN_OPTIONS, MARK, Counters, DurablePostgres, call_of, children_cpu_s, cpu_s,
                    fund_options, quantiles, save,
                    show, spread, table)

ACCOUNT, PLAIN = ('shared', 'sr25519',
                  '//Bench//Shared'), [(f'plain{i}', 'sr25519', f'//Bench//Plain{i}')
                                       for i in range(2)]
KINDS = ('delegated', 'coordinated', 'plain')
CALL_BYTES = 100
ERA = 4096  # suite_relay says why
PACE_S = 0.02
SITE_METRICS = re.compile(r'^txrelay_site_(messages_sent|sent_bytes)_total\{site="\w+"\} (\d+)',
                          re.M)


def sent(sites):
    """Frames and bytes that the sites have sent to each other."""
    total = Counter()
    for site in sites.all:
        for relay in site.relays:
            if relay.alive():
                for name, value in SITE_METRICS.findall(relay.control({'cmd': 'metrics'})['text']):
                    total[name] += int(value)
    return total


def coordinator(sites):
    def one():
        seen = {site.sees()[1] for site in sites.all}
        return seen.pop() if len(seen) == 1 and None not in seen else None
    name = proc.wait_for('one coordinator', one, 60, 0.01)
    return next(site for site in sites.all if site.name == name)


class Stand:
    def __init__(self, server, args):
        self.args = args
        self.servers = iter([server.fresh(), DurablePostgres().fresh()])
        directory = proc.make_dir('txbench-')
        funds = fund_options(directory, [ACCOUNT, *PLAIN])
        self.sites = Sites(2, chain=(*CHAIN_OPTIONS, '--instant', '--instant-delay-ms', '5',
                                     *funds), block_ms=None, account=ACCOUNT,
                           beside={'a': (PLAIN[0],), 'b': (PLAIN[1],)},
                           postgres=lambda: next(self.servers), watch=False,
                           manager={'era_period': ERA}, era_blocks=ERA, range_blocks=1000000)
        self.sites.wait_leaders()
        for site in self.sites.all:
            site.enqueue(1)
        self.sites.wait_ends(60)
        one, other = self.sites.all
        name = one.coordinators().most_common(1)[0][0]
        self.near, self.far = (one, other) if one.name == name else (other, one)

    def drain(self, kind, count):
        """Transactions a second, and what each of them cost."""
        site = self.far if kind == 'delegated' else self.near
        alias = ACCOUNT[0] if kind != 'plain' else self.sites.beside[site.name][0][0]
        counters = [(s, Counters(s.pg)) for s in self.sites.all]
        before, cpu = sent(self.sites), [cpu_s(s.relays[0].process.pid)
                                         + children_cpu_s(s.pg.postmaster) for s in self.sites.all]
        done = site.pg.value(MARK + 'SELECT count(*) FROM txrelay.finished_transactions')
        db = site.pg.connect(autocommit=False)
        with db.cursor() as cur:
            for _ in range(count // 1000):
                cur.execute(MARK + 'SELECT txrelay.enqueue_many(%s, %s::bytea[])',
                            (alias, [call_of(CALL_BYTES)] * 1000))
            db.commit()
            begun = time.time()
        db.autocommit = True
        with db.cursor() as cur:
            def ended():
                cur.execute(MARK + 'SELECT count(*), max(extract(epoch FROM finished_at)::float8) '
                                   'FROM txrelay.finished_transactions')
                row = cur.fetchone()
                return row if row[0] >= done + count else None
            last = proc.wait_for('everything to end', ended, 600, 0.05)[1]
        db.close()
        after, cpu_after = sent(self.sites), [cpu_s(s.relays[0].process.pid)
                                              + children_cpu_s(s.pg.postmaster)
                                              for s in self.sites.all]
        cost = {}
        for s, c in counters:
            c.freeze_wal()
            got = c.read(count)
            for key in ('statements_per_tx', 'sql_us_per_tx', 'wal_bytes_per_tx'):
                cost[key] = cost.get(key, 0) + got[key]
            cost.setdefault('statements', {})[s.name] = got['statements'][:12]
        cost['frames_per_tx'] = (after['messages_sent'] - before['messages_sent']) / count
        cost['frame_bytes_per_tx'] = (after['sent_bytes'] - before['sent_bytes']) / count
        cost['cpu_us_per_tx'] = sum(b - a for a, b in zip(cpu, cpu_after)) * 1e6 / count
        return {'tx_per_s': count / (last - begun), 'cost': cost}


def rates(server, args):
    stand = Stand(server, args)
    got = {kind: [] for kind in KINDS}
    for kind in KINDS:
        stand.drain(kind, 1000)
    for i in range(args.site_rounds):
        for kind in KINDS[i % 3:] + KINDS[:i % 3]:
            got[kind].append(stand.drain(kind, args.site_count))
    stand.sites.close()
    values = {kind: [r['tx_per_s'] for r in runs] for kind, runs in got.items()}
    return {'tx_per_s': {kind: spread(v) for kind, v in values.items()},
            'delegated_to': {
                kind: spread([d / o for d, o in zip(values['delegated'], values[kind])])
                for kind in KINDS[1:]},
            'cost': {kind: runs[-1]['cost'] for kind, runs in got.items()}}


def show_rates(args, result):
    table(f'{args.site_count} transactions at once, calls of {CALL_BYTES} B, {args.site_rounds} '
          'round(s): median (min..max); costs of both sites together',
          ['', 'tx/s', 'delegated / it', 'statements', 'WAL B', 'CPU us', 'frames', 'their bytes'],
          [[kind, show(result['tx_per_s'][kind], 0),
            show(result['delegated_to'][kind]) if kind in result['delegated_to'] else '',
            *(f'{result["cost"][kind][key]:.{digits}f}' for key, digits in (
                ('statements_per_tx', 3), ('wal_bytes_per_tx', 0), ('cpu_us_per_tx', 0),
                ('frames_per_tx', 3), ('frame_bytes_per_tx', 0)))]
           for kind in KINDS])


# ---- three sites ----

class Feeder(threading.Thread):
    """One transaction after the other at a site, at a steady pace."""

    def __init__(self, site):
        super().__init__(daemon=True)
        self.site, self.over, self.failed = site, threading.Event(), None
        self.start()

    def run(self):
        try:
            db = self.site.pg.connect()
            with db.cursor() as cur:
                for n in itertools.count():
                    if self.over.wait(PACE_S):
                        break
                    call = remark(f'{self.site.name} {id(self)} {n}')
                    cur.execute('SELECT txrelay.enqueue(%s, %s)', (self.site.sites.alias, call))
                    self.site.committed[call] = cur.fetchone()[0]
            db.close()
        except Exception as error:
            self.failed = error

    def end(self):
        self.over.set()
        self.join()
        assert not self.failed, self.failed


def idle(sites, args):
    """Frames and bytes while no site has work. The last heartbeats of a coordinator are over, and
    links are closed after a minute."""
    proc.wait_for('the last heartbeats',
                  lambda: all(site.sees()[0] == 'IDLE' for site in sites.all), 60)
    before = sent(sites)
    time.sleep(args.site_idle)  # what is measured
    after = sent(sites)
    return {'seconds': args.site_idle, 'frames': after['messages_sent'] - before['messages_sent'],
            'bytes': after['sent_bytes'] - before['sent_bytes']}


def in_blocks(site):
    """When each transaction of this site ended, as seconds since 1970."""
    return [float(r[0]) for r in site.pg.query('SELECT extract(epoch FROM finished_at) '
                                               'FROM txrelay.finished_transactions '
                                               'WHERE id IS NOT NULL ORDER BY finished_at')]


def takeover(sites, args):
    """Seconds from the loss of the coordinating site, relays and database, to the first end at
    another site after it that was enqueued after the loss."""
    times = []
    for _ in range(args.site_losses):
        for site in sites.all:
            site.enqueue(1)
        victim = coordinator(sites)
        other = next(site for site in sites.all if site is not victim)
        feeder = Feeder(other)
        victim.away()
        lost = other.pg.value('SELECT extract(epoch FROM clock_timestamp())::float8')
        found = proc.wait_for('another site to send', lambda o=other, t=lost: o.pg.value(
            'SELECT min(extract(epoch FROM finished_at))::float8 '
            'FROM txrelay.finished_transactions WHERE created_at > to_timestamp(%s)',
            (t,)), 120, 0.05)
        times.append(found - lost)
        feeder.end()
        victim.back()
        sites.settle(120)
    return times


def dip(args, blocks):
    """Sites that rotate every so many blocks, under a steady load at all of them, for two
    rotations at least."""
    sites = Sites(3, watch=False, range_blocks=blocks, account=ACCOUNT,
                  chain=fund_options(proc.make_dir('txbench-'), [ACCOUNT]))
    sites.wait_leaders()
    feeders = [Feeder(site) for site in sites.all]
    proc.wait_for('the first ends', lambda: all(in_blocks(site) for site in sites.all), 60)
    first = sites.chain.finalized_number()
    seconds = max(args.site_seconds, 3 * blocks * 0.1)
    time.sleep(seconds)  # the load
    last = sites.chain.finalized_number()
    for feeder in feeders:
        feeder.end()
    counts = Counter(number for number, _, _, _ in sites.chain.walk(first, last))
    sites.wait_ends(120)
    sites.close()
    usual = sorted(counts[n] for n in range(first, last + 1))[(last - first) // 2]
    # A dip: blocks with less than half of what a block usually has, in the half of a range after a
    # boundary.
    rotations, thin = 0, 0
    for boundary in range((first // blocks + 1) * blocks, last - blocks // 2 + 1, blocks):
        rotations += 1
        thin += sum(counts[n] < usual / 2 for n in range(boundary, boundary + blocks // 2))
    rate = sum(counts.values()) / (last - first + 1)
    return {'range_blocks': blocks, 'rotations': rotations, 'usual': usual,
            'dip_blocks': thin / max(rotations, 1),
            'share': thin / max(rotations, 1) / blocks, 'tx_per_block': rate}


def run(server, args):
    result = {'rates': rates(server, args)}
    show_rates(args, result['rates'])
    save(args, 'sites', result)
    sites = Sites(3, relays=2)
    sites.wait_leaders()
    for site in sites.all:
        site.enqueue(5)
    sites.settle()
    result['idle'] = idle(sites, args)
    print(f'\nidle: {result["idle"]}')
    result['takeover_s'] = takeover(sites, args)
    sites.close()
    took = quantiles(result['takeover_s'])
    table('the coordinating site is lost, relays and database: seconds to the first final '
          'transaction of another site', ['p50', 'max', 'of'],
          [[f'{took["p50"]:.1f}', f'{took["max"]:.1f}', took['n']]])
    save(args, 'sites', result)
    result['dip'] = [dip(args, int(n)) for n in args.site_ranges.split(',')]
    table('the dip at a rotation, blocks of 100 ms, a steady load at three sites (P57)',
          ['blocks of a range', 'rotations', 'thin blocks after one', 'share of the range',
           'tx a block, over all'],
          [[d['range_blocks'], d['rotations'], f'{d["dip_blocks"]:.1f}', f'{d["share"]:.2f}',
            f'{d["tx_per_block"]:.1f}'] for d in result['dip']])
    save(args, 'sites', result)
    return result
