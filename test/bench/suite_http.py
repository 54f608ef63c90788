"""http: readers of events over HTTP, and requests, at one relay.

  late   --http-readers readers of everything at --http-rate enqueues a second: from the time of an
  end's record to each reader beside the relay's rate over --http-count transactions at
  --http-beside enqueues a second, alone; beside 200 pages that read all
         events; and beside these and 500 requests a second. In turns, so that a slow minute is in
  all of them costs  of the same runs: CPU of the relay and of the server that readers and requests
  add, which a busy machine changes little"""
import json
import os
import statistics
import subprocess
import sys

from harness.relay import cli

from .stand import DurablePostgres, children_cpu_s, cpu_s, quantiles, save, table
from .suite_latency import Stand

LOAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'http_load.py')
EXTRA = 'http:\n  listen: tcp:127.0.0.1:0\n  rate: 1000000\n'


class Load:
    def __init__(self, *args):
        self.process = subprocess.Popen([sys.executable, LOAD, *map(str, args)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == 'ready\n', f'no load: {args}'

    def end(self, said=''):
        self.process.stdin.write(said)
        self.process.stdin.close()
        found = json.loads(self.process.stdout.readline())
        self.process.wait(30)
        return found


def stand_of(server):
    stand = Stand(server, '--instant-delay-ms', '5', extra=EXTRA)
    address = stand.relay.wait_log(r'http.listening .*address=tcp:(\S+)').group(1)
    token = cli('token', 'create', 'bench', '--scope', 'read', '--database',
                stand.pg.dsn).stdout.strip()
    return stand, address, token


def late(server, args):
    stand, address, token = stand_of(server)
    load = Load('events', address, token, args.http_readers, '')
    writers = stand.load('-T', str(args.http_seconds), '-R', str(args.http_rate))
    writers.child.wait(args.http_seconds + 60)
    stand.end()
    total = stand.ask('SELECT count(*) FROM txrelay.finished_transactions')
    found = load.end(f'{total}\n')
    stand.close()
    return {'readers': args.http_readers, 'ends': total,
            **{k: v * 1000 if k != 'n' else v for k, v in quantiles(found['late']).items()}}


def rate(server, args, readers, asks):
    stand, address, token = stand_of(server)
    loads = [Load('pages', address, token, readers)] if readers else []
    if asks:
        loads.append(Load('asks', address, token, asks, '/v1/accounts/bench0/nonces?limit=10'))
    begun = stand.ask('SELECT extract(epoch FROM clock_timestamp())::float8')
    used = lambda: (cpu_s(stand.relay.process.pid), children_cpu_s(server.postmaster))  # noqa: E731
    before = used()
    writers = stand.load('-t', str(args.http_count // 4), '-R', str(args.http_beside))
    writers.child.wait(300)
    stand.end()
    count, last = stand.pg.query('SELECT count(*), extract(epoch FROM max(finished_at))::float8 '
                                 'FROM txrelay.finished_transactions')[0]
    cpu = [b - a for a, b in zip(before, used())]
    found = [load.end() for load in loads]
    stand.close()
    return count / (last - begun), cpu, found[-1] if asks else None, found[0] if readers else None


def costs(args, cpu, ends, requests):
    """What a way adds to the one before it."""
    means = {name: [statistics.median(run[i] for run in runs) for i in (0, 1)]
             for name, runs in cpu.items()}
    (_, alone), (_, read), (_, asked) = means.items()
    rows = [['1,000 transactions, alone'] + [f'{s / args.http_count * 1e6:.0f}' for s in alone],
            ['1,000 ends at a page']
            + [f'{(b - a) / ends * 1000:.2f}' for a, b in zip(alone, read)],
            ['1,000 requests'] + [f'{(b - a) / requests * 1000:.0f}' for a, b in zip(read, asked)]]
    table('http: CPU', ['of', 'relay ms', 'server ms'], rows)


def run(_, args):
    server = DurablePostgres({'max_connections': '400'})
    first = late(server, args)
    save(args, 'http', first)
    pages = args.http_pages
    ways = [('alone', 0, 0), (f'{pages} pages', pages, 0),
            (f'{pages} pages, 500 requests/s', pages, 500)]
    rates, cpu, asked, read = {name: [] for name, _, _ in ways}, {name: []
                                                                  for name, _, _ in ways}, [], []
    for _ in range(args.http_rounds):
        for name, readers, asks in ways:
            per_s, used, answered, seen = rate(server, args, readers, asks)
            rates[name].append(per_s)
            cpu[name].append(used)
            if answered:
                asked.append(answered)
            if seen:
                read.append(seen)
    alone = statistics.median(rates['alone'])
    table(f'http: {first["readers"]} readers at {args.http_rate} tx/s, from the record of an end '
          'to its reader', ['ends', 'p50 ms', 'p99 ms', 'max ms'],
          [[str(first['ends'])] + [f'{first[q]:.1f}' for q in ('p50', 'p99', 'max')]])
    table(f'http: the relay at {args.http_beside} enqueues/s', ['beside', 'tx/s', 'of alone'],
          [[name, f'{statistics.median(r):.0f}', f'{statistics.median(r) / alone:.2f}']
           for name, r in rates.items()])
    wait = quantiles([x for a in asked for x in a['late']])
    per_s = statistics.median(a['answered'] / a['seconds'] for a in asked)
    table('http: requests', ['answered/s', 'p50 ms', 'p99 ms'],
          [[f'{per_s:.0f}', f'{wait["p50"] * 1000:.1f}', f'{wait["p99"] * 1000:.1f}']])
    got, closed = statistics.median(r['bytes'] for r in read), sum(r['closed'] for r in read)
    table('http: pages', ['MB in a run', 'closed as too slow'], [[f'{got / 1e6:.0f}', str(closed)]])
    costs(args, cpu, pages * args.http_count / 1000, statistics.median(a['answered'] for a in asked)
          / 1000)
    results = {'late': first, 'rates': rates, 'cpu': cpu, 'pages': read,
               'requests': {'per_s': per_s, **wait}}
    save(args, 'http', results)
    return results
