#!/usr/bin/env python3
"""Rates of txrelay against baselines measured in the same run, and what one transaction costs in
counts that do not depend on the machine. Suites: see --help (default: all but soak). Only ratios
and counts carry over to another machine. Everything durable is on: fsync, full_page_writes,
synchronous_commit."""
import argparse
import json
import os
import platform
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from bench import (suite_cost, suite_enqueue, suite_feeds, suite_flat, suite_follow, suite_http,
                   suite_latency, suite_relay, suite_scale,
                   # noqa: E402
                   suite_sites, suite_soak, suite_start, suite_takeover, suite_wake, suite_watch)
from bench.stand import DurablePostgres, fsync_ms  # noqa: E402
from harness import proc  # noqa: E402

SUITES = {'cost': suite_cost, 'enqueue': suite_enqueue, 'relay': suite_relay,
          'latency': suite_latency,
          'takeover': suite_takeover, 'start': suite_start,
          'scale': suite_scale, 'flat': suite_flat, 'follow': suite_follow, 'soak': suite_soak,
          'wake': suite_wake, 'watch': suite_watch, 'feeds': suite_feeds, 'http': suite_http,
          'sites': suite_sites}

QUICK = {'rounds': 1, 'seconds': 1, 'relay_rounds': 1, 'count': 4000, 'accounts': '1,16',
         'calls': '100', 'schemes': 'sr25519',
         'api_seconds': 3.0, 'latency_count': 50, 'wake_count': 100, 'writers': '1,4,16',
         'latency_seconds': 5, 'kills': 5, 'stops': 1,
         'scale': '1x1,100x1,100x3', 'scale_count': 2000, 'idle_seconds': 5, 'followers': '0,1,10',
         'follow_seconds': 4,
         'follow_count': 1000, 'http_rounds': 1, 'http_seconds': 4, 'http_count': 3000,
         'minutes': 0.5, 'soak_every': 3, 'watch_pairs': 2, 'watch_seconds': 3,
         'feed_rounds': 1, 'feed_batches': '1x500,100x50,10000x2', 'idle_sessions': 200,
         'site_rounds': 1, 'site_count': 3000, 'site_idle': 10, 'site_losses': 1, 'site_seconds': 5,
         'site_ranges': '20,50',
         'flat_rounds': 1, 'backlog': '4000,100000', 'rows': '10000'}


def cpu_name():
    with open('/proc/cpuinfo') as file:
        return next((line.split(':', 1)[1].strip() for line in file
                     if line.startswith('model name')), platform.machine())


def header(server, args):
    git = proc.run(['git', '-C', proc.ROOT, 'describe', '--always', '--dirty'],
                   check=False).stdout.strip()
    flags = proc.run(['sed', '-n', 's/^CMAKE_C_FLAGS:STRING=//p',
                      os.path.join(proc.BUILD, 'CMakeCache.txt')]).stdout.strip()
    return {
        'when': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()),
        'machine': f'{cpu_name()}, {os.cpu_count()} cores, Linux {platform.release()}',
        'load at the start': '%.2f %.2f %.2f' % os.getloadavg(),
        'fsync': f'{fsync_ms(server.dir):.2f} ms (one page, median)',
        'txrelay': f'{git}, {flags}',
        'postgres': server.value('SHOW server_version'),
        'settings': ' '.join(f'{k}={v}' for k, v in server.options.items()),
        'arguments': ' '.join(f'{k}={v}' for k, v in sorted(vars(args).items())
                              if v not in (None, [], False)),
    }


def parse():
    p = argparse.ArgumentParser(description=__doc__, prog='./dev bench')
    p.add_argument('suites', nargs='*', metavar='suite', help=', '.join(SUITES))
    p.add_argument('--json', metavar='FILE', help='all figures, for programs')
    p.add_argument('--rounds', type=int, default=3, help='enqueue: interleaved rounds')
    p.add_argument('--seconds', type=int, default=3, help='enqueue: of each measurement')
    p.add_argument('--writers', default='1,4,16,64', help='enqueue: sessions')
    p.add_argument('--instructions', action='store_true',
                   help='enqueue: count instructions too (callgrind)')
    p.add_argument('--count', type=int, default=20000, help='relay: transactions')
    p.add_argument('--accounts', default='1,16,256', help='relay: how many share them')
    p.add_argument('--calls', default='100,4000', help='relay: bytes of a call')
    p.add_argument('--schemes', default='sr25519,ed25519', help='relay: of the accounts')
    p.add_argument('--no-peers', action='store_true', help='relay: only ours and bare SQL')
    p.add_argument('--relay-rounds', type=int, default=5)
    p.add_argument('--trust-signatures', action='store_true',
                   help='relay: the chain checks none in any of the runs')
    p.add_argument('--window', type=int, help='relay: manager.window, else its default')
    p.add_argument('--batch', type=int, help='relay: manager.batch')
    p.add_argument('--unanswered', type=int, help='relay: manager.unanswered')
    p.add_argument('--api-seconds', type=float, default=10, help='relay: of each run of a peer')
    p.add_argument('--latency-count', type=int, default=200, help='latency: samples of each level')
    p.add_argument('--latency-seconds', type=int, default=20,
                   help='latency: of each level under load')
    p.add_argument('--wake-count', type=int, default=500)
    p.add_argument('--kills', type=int, default=50, help='takeover: by kill -9')
    p.add_argument('--stops', type=int, default=5,
                   help='takeover: by SIGSTOP, each takes an expiry, 5 or 20 s')
    p.add_argument('--rows', default='10000,1000000', help='start: pending rows of each run')
    p.add_argument('--check', action='store_true',
                   help='only hold the counts of cost against costs.json')
    p.add_argument('--record', action='store_true', help='cost: write costs.json')
    p.add_argument('--scale', default='1x1,1x5,100x1,1000x1,1000x5,10000x1,10000x5',
                   help='scale: accounts x relays')
    p.add_argument('--scale-count', type=int, default=20000, help='scale: transactions')
    p.add_argument('--idle-seconds', type=int, default=20, help='scale: with nothing to do')
    p.add_argument('--followers', default='0,1,10,100', help='follow: how many')
    p.add_argument('--follow-rate', type=int, default=100, help='follow: enqueues a second')
    p.add_argument('--follow-seconds', type=int, default=15)
    p.add_argument('--http-readers', type=int, default=100, help='http: of everything')
    p.add_argument('--http-rate', type=int, default=100, help='http: enqueues a second beside them')
    p.add_argument('--http-seconds', type=int, default=20)
    p.add_argument('--http-beside', type=int, default=1000,
                   help='http: enqueues a second of the relay')
    p.add_argument('--http-count', type=int, default=20000, help='http: of each run beside')
    p.add_argument('--http-pages', type=int, default=200, help='http: that read all events beside')
    p.add_argument('--http-rounds', type=int, default=3)
    p.add_argument('--follow-count', type=int, default=5000, help='follow: of the burst')
    p.add_argument('--minutes', type=float, default=30, help='soak: how long')
    p.add_argument('--soak-every', type=float, default=10, help='soak: seconds between looks')
    p.add_argument('--watch-rate', type=int, default=1000, help='watch: transactions a second')
    p.add_argument('--watch-pairs', type=int, default=12, help='watch: pairs of windows')
    p.add_argument('--watch-seconds', type=float, default=5, help='watch: of a window')
    p.add_argument('--feed-rounds', type=int, default=7, help='feeds: interleaved rounds')
    p.add_argument('--feed-batches', default='1x3000,100x300,10000x6',
                   help='feeds: calls of a batch x batches')
    p.add_argument('--idle-sessions', type=int, default=1000, help='feeds: that stay connected')
    p.add_argument('--site-rounds', type=int, default=5, help='sites: interleaved rounds')
    p.add_argument('--site-count', type=int, default=10000,
                   help='sites: transactions of each run, in thousands')
    p.add_argument('--site-idle', type=int, default=70, help='sites: seconds with nothing to do')
    p.add_argument('--site-losses', type=int, default=5,
                   help='sites: how often the coordinating one is lost')
    p.add_argument('--site-seconds', type=int, default=30, help='sites: of each range, at least')
    p.add_argument('--site-ranges', default='20,50,100,200,400', help='sites: blocks of a range')
    p.add_argument('--flat-rounds', type=int, default=5)
    p.add_argument('--backlog', default='20000,1000000', help='flat: rows in the outbox')
    p.add_argument('--quick', action='store_true',
                   help='small sizes, for a first look and not to be quoted')
    if '--quick' in sys.argv:
        p.set_defaults(**QUICK)
    args = p.parse_args()
    for name in args.suites:
        if name not in SUITES:
            p.error(f'there is no suite {name}; suites: {", ".join(SUITES)}')
    args.suites = args.suites or [s for s in SUITES if s != 'soak']
    return args


def main():
    args = parse()
    proc.install_signals()
    try:
        if args.check:
            suite_cost.check_lane()
            return
        server = DurablePostgres()
        result = {'header': header(server, args), 'suites': {}}
        for key, value in result['header'].items():
            print(f'{key:<18} {value}')
        for name in args.suites:
            result['suites'][name] = SUITES[name].run(server, args)
        if args.json:
            with open(args.json, 'w') as file:
                json.dump(result, file, indent=1)
            print(f'\nwritten to {args.json}')
    finally:
        proc.cleanup()


if __name__ == '__main__':
    main()
