"""follow: what followers cost. For each number of `txrelay tail` processes that follow everything:
sessions enqueue at a fixed rate (how late the last follower hears of an end), then --follow-count
are enqueued in one commit (the relay's rate). At the end every follower has told every end."""
import json
import os
import threading
import time

from harness import proc

from .stand import MARK, DurablePostgres, children_cpu_s, cpu_s, quantiles, save, table
from .suite_latency import CALL, IDLE, Stand


class Follower:
    """Its lines go to a file; of the one that is timed they are read as they come."""

    def __init__(self, pg, directory, number, timed):
        self.path = os.path.join(directory, f'tail{number}')
        self.timed, self.heard = timed, {}
        if timed:
            open(self.path, 'wb').close()
            read, write = os.pipe()
            self.process = self._start(pg, write)
            os.close(write)
            threading.Thread(target=self._read, args=(os.fdopen(read, 'rb'),), daemon=True).start()
        else:
            with open(self.path, 'wb') as file:
                self.process = self._start(pg, file)

    def _start(self, pg, out):
        return proc.Process([proc.TXRELAY, 'tail', '--json', '--database', pg.dsn],
                            f'{self.path}.log', stdout=out)

    def _read(self, pipe):
        with open(self.path, 'wb') as file:
            for line in iter(pipe.readline, b''):
                now = time.time()
                if b'"finished"' in line:
                    self.heard.setdefault(json.loads(line)['id'], now)
                file.write(line)
                file.flush()

    def text(self):
        with open(self.path) as file:
            return file.read()

    def ends(self):
        return {e['id'] for e in map(json.loads,
                                     filter(lambda line: '"finished"' in line,
                                            self.text().splitlines()))}


def measure(server, count, args):
    stand = Stand(server, '--instant-delay-ms', '5')
    directory = proc.make_dir('txbench-')
    followers = [Follower(stand.pg, directory, i, i == count - 1) for i in range(count)]
    proc.wait_for('all to be live', lambda: all('"live"' in f.text() for f in followers), 60, 0.1)
    pids = [f.process.pid for f in followers]

    def cpu():
        return sum(map(cpu_s,
                       pids)), children_cpu_s(stand.pg.postmaster), cpu_s(stand.relay.process.pid)
    before = cpu()
    load = stand.load('-T', str(args.follow_seconds), '-R', str(args.follow_rate))
    load.child.wait(args.follow_seconds + 60)
    stand.end()
    paced = stand.ask(MARK + 'SELECT count(*) FROM txrelay.finished_transactions')
    heard = [f for f in followers if f.timed]
    proc.wait_for('the last to hear', lambda: all(len(f.heard) >= paced for f in heard), 60, 0.05)
    after = cpu()
    finished = dict(stand.pg.query('SELECT id, extract(epoch FROM finished_at)::float8 '
                                   'FROM txrelay.finished_transactions'))
    late = [t - finished[i] for f in heard for i, t in f.heard.items()]
    rate = burst(stand, args.follow_count)
    total = paced + args.follow_count
    for f in followers:
        proc.wait_for('every follower to tell every end',
                      lambda: f.text().count('"finished"') >= total, 120, 0.2)
        assert len(f.ends()) == total, f'{len(f.ends())} of {total} were told'
        f.process.kill()
    stand.close()
    us = [(b - a) * 1e6 / paced for a, b in zip(before, after)]
    return {'followers': count,
            'late_ms': {k: v * 1000 if k != 'n' else v for k, v in quantiles(late).items()} if late
            else None,
            'followers_us': us[0], 'postgres_us': us[1], 'relay_us': us[2], 'burst_tx_per_s': rate}


def burst(stand, count):
    stand.ask(f"SELECT count(txrelay.enqueue('bench0', '\\x{CALL.hex()}')) "
              f"FROM generate_series(1, {count})")
    begun = stand.ask('SELECT extract(epoch FROM clock_timestamp())::float8')
    proc.wait_for('everything to end', lambda: stand.ask(IDLE), 300, 0.1)
    return count / (stand.ask('SELECT extract(epoch FROM max(finished_at))::float8 '
                              'FROM txrelay.finished_transactions') - begun)


def run(_, args):
    server = DurablePostgres({'max_connections': '400'})
    results = []
    for count in [int(n) for n in args.followers.split(',')]:
        results.append(measure(server, count, args))
        save(args, 'follow', results)
    table(f'follow: {args.follow_rate} enqueues/s for {args.follow_seconds} s, then '
          f'{args.follow_count} at once',
          ['followers', 'end to line, ms: p50 / p99 / max', 'CPU us/tx: all followers', 'Postgres',
           'relay', 'burst tx/s'],
          [[r['followers'], ' / '.join(f'{r["late_ms"][q]:.1f}' for q in ('p50', 'p99', 'max'))
            if r['late_ms'] else '',
            f'{r["followers_us"]:.0f}', f'{r["postgres_us"]:.0f}', f'{r["relay_us"]:.0f}',
            f'{r["burst_tx_per_s"]:.0f}']
           for r in results])
    return results
