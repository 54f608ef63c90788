"""latency: one transaction at a time through an idle relay whose leader sleeps, on a chain that makes a block at once.
From the return of the application's commit to: admitted (committed with nonce and signature, the database's clock),
accepted (the node has answered the submission; the node's clock, whole milliseconds), in block and finished (when the relay
stored it). All processes share the host's clocks."""
import time

from harness import proc
from harness.chain import remark
from harness.relay import Relay

from .stand import MARK, chain, many_accounts, quantiles, table

ASLEEP = MARK + '''SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 9001 AND objsubid = 2
    AND mode = 'ExclusiveLock' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())'''
IDLE = MARK + 'SELECT NOT EXISTS (SELECT FROM txrelay.pending_transactions) AND NOT EXISTS (SELECT FROM txrelay.outbox)'


def run(server, args):
    pg = server.fresh()
    directory = proc.make_dir('txbench-')
    accounts = many_accounts(1)
    node = chain(directory, '--instant', accounts=accounts)
    relay = Relay(directory, 'latency', pg.dsn, [node.ws], accounts).start()
    relay.wait_log('account.ready')
    db = pg.connect()
    cur = db.cursor()
    sent = {}

    def ask(sql):
        cur.execute(sql)
        return cur.fetchone()[0]

    for i in range(args.latency_count):
        proc.wait_for('the relay to be idle', lambda: ask(IDLE) and ask(ASLEEP), 30, 0.005)
        before = time.time()
        cur.execute('SELECT txrelay.enqueue(%s, %s)', ('bench0', remark(b'%0100d' % i)))
        sent[cur.fetchone()[0]] = (before, time.time(), time.monotonic())
    proc.wait_for('everything to end', lambda: ask(IDLE), 60)
    rows = pg.query('''SELECT id, hash, extract(epoch FROM admitted_at)::float8, extract(epoch FROM in_block_at)::float8,
                       extract(epoch FROM finished_at)::float8, outcome FROM txrelay.finished_transactions''')
    assert len(rows) == args.latency_count and all(r[5] == 'ok' for r in rows), 'not every transaction ended well'
    taken = {s['hash']: s['at_ms'] / 1000 for s in node.submits()}
    stages = {'commit itself': [], 'admitted': [], 'accepted by the node': [], 'in block, stored': [], 'finished': []}
    for tx, digest, admitted, in_block, finished, _ in rows:
        before, wall, mono = sent[tx]
        stages['commit itself'].append(wall - before)
        stages['admitted'].append(admitted - wall)
        stages['accepted by the node'].append(taken['0x' + bytes(digest).hex()] - mono)
        stages['in block, stored'].append(in_block - wall)
        stages['finished'].append(finished - wall)
    relay.stop()
    node.process.kill()
    result = {k: {q: v * 1000 if q != 'n' else v for q, v in quantiles(s).items()} for k, s in stages.items()}
    table(f'latency: ms from the commit, {args.latency_count} single transactions, leader asleep, instant chain',
          ['', 'p50', 'p99', 'max'], [[k, *(f'{v[q]:.1f}' for q in ('p50', 'p99', 'max'))] for k, v in result.items()])
    return {'count': args.latency_count, 'ms': result}
