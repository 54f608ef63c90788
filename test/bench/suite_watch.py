"""watch: what metrics cost. One relay of 16 accounts works at 1,000 transactions a second (or at
all that the machine gives). Windows with a scrape each second alternate with windows without, so
that whatever else the machine does falls on both: transactions finished per second, and CPU of
relay and Postgres for each. Then, with nothing else to do, the CPU of one scrape and the time of
the statement that counts what waits, which runs every five seconds."""
import statistics
import threading
import time
import urllib.request

from harness import proc
from harness.relay import Relay

from .stand import ERAS, MARK, call_of, chain, children_cpu_s, cpu_s, many_accounts, save, table

ACCOUNTS = 16
SCRAPES = 500
SAMPLE_EVERY_S = 5


class Load:
    """`rate` transactions a second, in commits of a tenth of a second."""

    def __init__(self, pg, rate):
        self.pg, self.rate, self.over = pg, rate, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        db = self.pg.connect()
        calls = [call_of(100)] * max(1, self.rate // 10 // ACCOUNTS)
        due = time.monotonic()
        with db.cursor() as cur:
            while not self.over.is_set():
                for account in range(ACCOUNTS):
                    cur.execute('SELECT txrelay.enqueue_many(%s, %s::bytea[])',
                                (f'bench{account}', calls))
                due += len(calls) * ACCOUNTS / self.rate
                self.over.wait(max(0, due - time.monotonic()))
        db.close()

    def end(self):
        self.over.set()
        self.thread.join()


class Scraper:
    """A request for the metrics each second, while `on`."""

    def __init__(self, address):
        self.url, self.on, self.count, self.over = (
            f'http://{address}/metrics', False, 0, threading.Event())
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def scrape(self):
        with urllib.request.urlopen(self.url, timeout=10) as answer:
            assert b'txrelay_running 1' in answer.read()
        self.count += 1

    def run(self):
        while not self.over.wait(1):
            if self.on:
                self.scrape()

    def end(self):
        self.over.set()
        self.thread.join()


def finished(pg):
    return pg.value(MARK + 'SELECT count(*) FROM txrelay.finished_transactions')


def window(pg, relay, seconds):
    before, cpu, began = finished(pg), cpu_s(relay.process.pid) + children_cpu_s(
        pg.postmaster), time.monotonic()
    time.sleep(seconds)  # what a window is
    took = time.monotonic() - began
    count = finished(pg) - before
    used = cpu_s(relay.process.pid) + children_cpu_s(pg.postmaster) - cpu
    return {'tx_per_s': count / took, 'cpu_us_per_tx': used * 1e6 / max(count, 1)}


def run(server, args):
    pg = server.fresh()
    directory = proc.make_dir('txbench-')
    accounts = many_accounts(ACCOUNTS)
    node = chain(directory, '--instant', '--instant-delay-ms', '5', accounts=accounts)
    relay = Relay(directory, 'watched', pg.dsn, [node.ws], accounts, manager=ERAS,
                  extra='metrics: 127.0.0.1:0\n').start()
    address = relay.wait_log(r'metrics.listening .*address=tcp:(\S+)').group(1)
    proc.wait_for('all accounts', lambda: relay.text().count('=account.ready ') >= ACCOUNTS, 60)
    scraper, load = Scraper(address), Load(pg, args.watch_rate)
    window(pg, relay, args.watch_seconds)  # until it runs evenly
    pairs = []
    for i in range(args.watch_pairs):
        got = {}
        for on in ((False, True) if i % 2 == 0 else (True, False)):
            scraper.on = on
            got[on] = window(pg, relay, args.watch_seconds)
        pairs.append(got)
    scraper.on = False
    load.end()
    proc.wait_for('the rest to end', lambda: pg.value(MARK + 'SELECT NOT EXISTS (SELECT '
                                                             'FROM txrelay.outbox) AND NOT EXISTS '
                                                      '(SELECT FROM txrelay.pending_transactions)'),
                                                      600, 0.2)
    before = cpu_s(relay.process.pid)
    for _ in range(SCRAPES):
        scraper.scrape()
    scrape_us = (cpu_s(relay.process.pid) - before) * 1e6 / SCRAPES
    scraper.end()
    sample_us = pg.value(MARK + "SELECT coalesce(max(mean_exec_time), 0) * 1000 "
                                "FROM pg_stat_statements WHERE query ~ "
                         "'FROM unnest.*AS a.id.'")
    relay.stop()
    node.process.kill()
    return show(args, pairs, scrape_us, float(sample_us))


def show(args, pairs, scrape_us, sample_us):
    result = {'pairs': [{'off': p[False], 'on': p[True]} for p in pairs], 'scrape_us': scrape_us,
              'sample_us': sample_us}
    rows = []
    for what in ('tx_per_s', 'cpu_us_per_tx'):
        ratios = sorted(p[True][what] / p[False][what] for p in pairs)
        result[f'{what} ratio'] = statistics.median(ratios)
        low, high = (ratios[round(q * (len(ratios) - 1))] for q in (0.25, 0.75))
        rows.append([what.replace('_', ' '),
                     f'{statistics.median(p[False][what] for p in pairs):.0f}',
                     f'{statistics.median(p[True][what] for p in pairs):.0f}',
                     f'{(statistics.median(ratios) - 1) * 100:+.1f} % '
                     f'({(low - 1) * 100:+.1f}..{(high - 1) * 100:+.1f})'])
    table(f'metrics scraped each second, {len(pairs)} pairs of windows of {args.watch_seconds} s',
          ['', 'not scraped', 'scraped', 'pairs: median (quartiles)'],
          rows)
    print(f'  one scrape takes {scrape_us:.0f} us of the relay\'s CPU: {scrape_us / 1e4:.3f} % of '
          'a core at one a second\n'
          f'  the count of what waits takes {sample_us:.0f} us of Postgres each '
          f'{SAMPLE_EVERY_S} s: '
          f'{sample_us / SAMPLE_EVERY_S / 1e4:.3f} % of a core')
    save(args, 'watch', result)
    return result
