"""soak: 70 % of what the relay finishes while applications enqueue, for --minutes, everything as
it is delivered (autovacuum too). Every --soak-every seconds: the rate, what waits, memory of relay
and its server, dead tuples, and how long the control endpoint takes to answer, which is how late
the relay's loop is. Flat is what the last third shows that the first one did."""
import re
import statistics
import time

from harness import proc

from .stand import DurablePostgres, TABLES, save, table
from .suite_latency import IDLE, Stand, capacity

SHARE = 0.7
WAITING = ('SELECT (SELECT count(*) FROM txrelay.outbox) + (SELECT count(*) '
           'FROM txrelay.pending_transactions)')
JUDGED_MINUTES = 5  # autovacuum looks once a minute: a shorter run has no steady state
PINGS = 20  # of the control endpoint, for one look
# At least and at most so many times what it was, and what counts as nothing.
LIMITS = {'tx/s': (0.9, None, 0), 'waiting': (None, 2.0, 500), 'relay MB': (None, 1.1, 0),
          'dead tuples': (None, 2.0, 20000),
          'dead attempts': (None, 2.0, 20000), 'loop ms': (None, 2.0, 5)}


def memory_mb(pid):
    with open(f'/proc/{pid}/status') as file:
        return int(re.search(r'VmRSS:\s+(\d+)', file.read()).group(1)) / 1024


class Watch:
    def __init__(self, stand):
        self.stand, self.looks = stand, []
        self.begun, self.last, self.done = time.monotonic(), time.monotonic(), self.ended()

    def ended(self):
        """Of the statistics, so that the look does not read a table that grows."""
        return self.stand.ask("SELECT coalesce(sum(n_tup_ins), 0)::bigint FROM pg_stat_user_tables "
                              "WHERE relname LIKE 'finished_transactions%'")

    def loop_ms(self):
        times = []
        for _ in range(PINGS):
            start = time.monotonic()
            self.stand.relay.control({'cmd': 'status'})
            times.append((time.monotonic() - start) * 1000)
        return statistics.median(times), max(times)

    def look(self):
        now, done, (loop, worst) = time.monotonic(), self.ended(), self.loop_ms()
        dead = dict(self.stand.pg.query(
            'SELECT relname, n_dead_tup FROM pg_stat_user_tables WHERE relname = ANY(%s)',
                                        (list(TABLES),)))
        self.looks.append({
            'at s': now - self.begun, 'tx/s': (done - self.done) / (now - self.last),
            'waiting': self.stand.ask(WAITING),
            'relay MB': memory_mb(self.stand.relay.process.pid),
            'node MB': memory_mb(self.stand.node.process.pid),
            'dead tuples': sum(n for name, n in dead.items() if name != 'attempts'),
            'dead attempts': dead['attempts'],
            'loop ms': loop, 'loop worst ms': worst})
        self.last, self.done = now, done
        self.stand.node.rpc('dev_resetStats')  # its list of submissions would grow

    def third(self, name, which):
        n = max(1, len(self.looks) // 3)
        part = self.looks[:n] if which == 'first' else self.looks[-n:]
        return statistics.median(k[name] for k in part)


def moved(name, first, last):
    low, high, small = LIMITS[name]
    return (low is not None and last < first * low) or (high is not None
                                                        and last > max(first * high, small))


def run(_, args):
    server = DurablePostgres({'max_wal_size': '1GB', 'checkpoint_timeout': '5min'})
    most = capacity(server, args)
    stand = Stand(server, '--instant-delay-ms', '5', '--keep-mb', '64')
    seconds = args.minutes * 60
    load = stand.load('-T', f'{seconds:.0f}', '-R', f'{most * SHARE:.0f}')
    every = min(args.soak_every, seconds / 6)
    time_of_first = time.monotonic() + every  # the start is no part of it
    proc.wait_for('the first look', lambda: time.monotonic() >= time_of_first, every + 60, 0.1)
    watch, result = Watch(stand), {'capacity_per_s': most, 'share': SHARE, 'minutes': args.minutes}
    while load.alive():
        due = time.monotonic() + every
        proc.wait_for('the next look', lambda: time.monotonic() >= due or not load.alive(),
                      every + 60, 0.1)
        if load.alive():
            watch.look()
            result['looks'] = watch.looks
            save(args, 'soak', result)
    kept = float(re.search(r'tps = ([0-9.]+)', load.text()).group(1))
    proc.wait_for('everything to end', lambda: stand.ask(IDLE), 300, 0.2)
    bad = stand.ask("SELECT count(*) FROM txrelay.finished_transactions WHERE outcome <> 'ok'")
    assert not bad, f'{bad} did not end well'
    rows, result['moved'] = [], []
    for name in ('tx/s', 'waiting', 'relay MB', 'node MB', 'dead tuples', 'dead attempts',
                 'loop ms', 'loop worst ms'):
        first, last = watch.third(name, 'first'), watch.third(name, 'last')
        judged = name in LIMITS and args.minutes >= JUDGED_MINUTES
        drift = judged and moved(name, first, last)
        result['moved'] += [name] if drift else []
        rows.append([name, f'{first:.1f}', f'{last:.1f}',
                     f'{max(k[name] for k in watch.looks):.1f}',
                     'NOT FLAT' if drift else 'flat' if judged else ''])
    result.update(kept_per_s=kept, ended=stand.ask('SELECT count(*) FROM '
                                                   'txrelay.finished_transactions'))
    table(f'soak: {args.minutes:g} minutes at {SHARE:.0%} of {most:.0f} tx/s, kept {kept:.0f}/s, '
          f'{result["ended"]} ended ok',
          ['', 'first third', 'last third', 'most', ''], rows)
    stand.close()
    return result
