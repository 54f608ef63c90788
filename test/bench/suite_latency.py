"""latency: from the return of the application's commit to: admitted (nonce and signature are in
the statement that stores them; the database's clock, before its flush), on the wire (the relay
wrote the submission to its socket), taken by the node (the node's clock, whole milliseconds), in
block and finished (the relay's statements, the database's clock). All processes share the host's
clocks.

  idle        one transaction at a time, the leader sleeps, a block at once. The bytes on the wire
  are seen by a proxy before
              the node, in a run of its own: it is in the way of the others
  10, 50, 90  per cent of what the relay finishes while four sessions enqueue as fast as they can:
  pgbench keeps that rate,
              one more session takes the samples; blocks at most every 5 ms"""
import re
import time

from harness import proc
from harness.proxy import Proxy
from harness.relay import Relay

from .stand import (ERAS, MARK, call_of, chain, many_accounts, pgbench_command, quantiles, save,
                    table)

ASLEEP = MARK + '''SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 9001
    AND objsubid = 2
    AND mode = 'ExclusiveLock' AND granted AND database = (SELECT oid FROM pg_database
    WHERE datname = current_database())'''
IDLE = (MARK + 'SELECT NOT EXISTS (SELECT FROM txrelay.pending_transactions) '
               'AND NOT EXISTS (SELECT FROM txrelay.outbox)')
ENDED = MARK + "SELECT count(*) FROM txrelay.finished_transactions"
ENQUEUE = "SELECT txrelay.enqueue('bench0', '\\x{}')"
CALL = call_of(100)
SHARES = (10, 50, 90)
SESSIONS = 4
# what is longer than this is one, on a connection that else only asks for blocks
SUBMISSION_BYTES = 300
STAGES = ('commit itself', 'admitted', 'on the wire', 'taken by the node', 'in block, stored',
          'finished')


class Stand:
    def __init__(self, server, *chain_options, wire=False, extra=None):
        self.pg = server.fresh()
        directory = proc.make_dir('txbench-')
        accounts = many_accounts(1)
        self.node = chain(directory, '--instant', *chain_options, accounts=accounts)
        self.writes, self.proxy, endpoint = [], None, self.node.ws
        if wire:
            host, port = re.search(r'//(.*):(\d+)', self.node.ws).groups()
            self.proxy = Proxy((host, int(port)), tap=lambda _,
                               data: self.writes.append((time.time(), len(data))))
            endpoint = f'ws://{self.proxy.host}:{self.proxy.port}'
        self.relay = Relay(directory, 'latency', self.pg.dsn, [endpoint], accounts, manager=ERAS,
                           extra=extra).start()
        self.relay.wait_log('account.ready')
        self.db = self.pg.connect()
        self.cur = self.db.cursor()
        self.sent = {}  # id: before the commit, after it, by both clocks

    def ask(self, sql):
        self.cur.execute(sql)
        return self.cur.fetchone()[0]

    def sample(self):
        before = time.time()
        id_ = self.ask(ENQUEUE.format(CALL.hex()))
        self.sent[id_] = (before, time.time(), time.monotonic())

    def load(self, *options):
        """pgbench sessions that enqueue."""
        command = pgbench_command(self.pg, ENQUEUE.format(CALL.hex()), '-c', str(SESSIONS), '-j',
                                  '1', *options)
        return proc.Process(command, command[command.index('-f') + 1] + '.log')

    def end(self, seconds=300):
        proc.wait_for('everything to end', lambda: self.ask(IDLE), seconds, 0.1)

    def stages(self):
        rows = self.pg.query('''SELECT id, hash, extract(epoch
            FROM admitted_at)::float8, extract(epoch FROM in_block_at)::float8,
            extract(epoch FROM finished_at)::float8, outcome FROM txrelay.finished_transactions
            WHERE id = ANY(%s)''',
                             (list(self.sent),))
        assert len(rows) == len(self.sent) and all(r[5] == 'ok'
                                                  for r in rows), 'not every transaction ended well'
        taken = {s['hash']: s['at_ms'] / 1000 for s in self.node.submits()}
        found = {k: [] for k in STAGES}
        for tx, digest, admitted, in_block, finished, _ in rows:
            before, wall, mono = self.sent[tx]
            found['commit itself'].append(wall - before)
            found['admitted'].append(admitted - wall)
            found['taken by the node'].append(taken['0x' + bytes(digest).hex()] - mono)
            found['in block, stored'].append(in_block - wall)
            found['finished'].append(finished - wall)
            if self.proxy:
                found['on the wire'].append(next(t for t, n in self.writes if t > before
                                                 and n > SUBMISSION_BYTES) - wall)
        return {k: {q: v * 1000 if q != 'n' else v for q, v in quantiles(s).items()}
                for k, s in found.items() if s}

    def close(self):
        self.db.close()
        self.relay.stop()
        if self.proxy:
            self.proxy.close()
        self.node.process.kill()


def idle(server, args, wire):
    stand = Stand(server, wire=wire)
    for _ in range(args.latency_count):
        proc.wait_for('the relay to be idle', lambda: stand.ask(IDLE) and stand.ask(ASLEEP), 30,
                      0.005)
        stand.sample()
    stand.end()
    found = stand.stages()
    stand.close()
    return found


def capacity(server, args):
    """What is finished a second while sessions enqueue without a pause."""
    stand = Stand(server, '--instant-delay-ms', '5')
    load = stand.load('-T', str(args.latency_seconds))
    proc.wait_for('the first ends', lambda: stand.ask(ENDED), 30)
    start, begun = stand.ask(ENDED), time.monotonic()
    load.child.wait(args.latency_seconds + 60)
    rate = (stand.ask(ENDED) - start) / (time.monotonic() - begun)
    stand.relay.kill()
    stand.node.process.kill()
    stand.db.close()
    return rate


def loaded(server, args, rate):
    stand = Stand(server, '--instant-delay-ms', '5')
    load = stand.load('-T', str(args.latency_seconds), '-R', f'{rate:.0f}')
    proc.wait_for('the first ends', lambda: stand.ask(ENDED), 30)
    pause = (args.latency_seconds - 1) / args.latency_count
    due = time.monotonic()
    while load.alive():
        stand.sample()
        due = max(due + pause, time.monotonic())
        while load.alive() and time.monotonic() < due:
            time.sleep(max(0, min(due - time.monotonic(), 0.05)))
    kept = float(re.search(r'tps = ([0-9.]+)', load.text()).group(1))
    stand.end()
    found = stand.stages()
    stand.close()
    return found, kept


def run(server, args):
    levels = {'idle': idle(server, args, False)}
    levels['idle']['on the wire'] = idle(server, args, True)['on the wire']
    most = capacity(server, args)
    kept = {}
    for share in SHARES:
        levels[f'{share} %'], kept[f'{share} %'] = loaded(server, args, most * share / 100)
        result = {'capacity_per_s': most, 'kept_per_s': kept, 'ms': levels}
        save(args, 'latency', result)
    table(f'latency: ms from the commit, p50 / p99 / max; 100 % = {most:.0f} tx/s; kept: '
          + ', '.join(f'{k}: {v:.0f}/s' for k, v in kept.items()),
          ['', *levels],
          [[s, *('/'.join(f'{level[s][q]:.1f}' for q in ('p50', 'p99', 'max')) if s in level else ''
                                for level in levels.values())] for s in STAGES])
    return result
