"""takeover: the leader is killed with kill -9, while a session keeps enqueueing; from the kill to the successor's
account.ready in its own log."""
import threading
import time

from harness import proc
from harness.chain import remark
from harness.relay import Relay

from .stand import chain, log_time, many_accounts, quantiles, table


def enqueue_until(pg, stop, failed):
    try:
        db = pg.connect()
        with db.cursor() as cur:
            i = 0
            while not stop.wait(0.02):  # the pace of the application
                i += 1
                cur.execute('SELECT txrelay.enqueue(%s, %s)', ('bench0', remark(f'takeover {i}')))
        db.close()
    except Exception as error:
        failed.append(error)


def run(server, args):
    pg = server.fresh()
    directory = proc.make_dir('txbench-')
    accounts = many_accounts(1)
    node = chain(directory, '--block-ms', '200', '--finality-lag', '1', accounts=accounts)
    relays = [Relay(directory, name, pg.dsn, [node.ws], accounts).start() for name in ('a', 'b')]
    leader = lambda: next((r for r in relays if r.leads('bench0')), None)  # noqa: E731
    proc.wait_for('a leader', leader)
    stop, failed = threading.Event(), []
    session = threading.Thread(target=enqueue_until, args=(pg, stop, failed), daemon=True)
    session.start()
    times = []
    for _ in range(args.kills):
        victim = proc.wait_for('a leader', leader)
        heir = relays[1 - relays.index(victim)]
        proc.wait_for('a follower', lambda: heir.alive() and heir.status())
        seen = heir.text().count('account.ready')
        when = time.time()
        victim.kill()
        proc.wait_for('the successor', lambda: heir.text().count('account.ready') > seen, 60, 0.005)
        times.append((log_time(heir.text(), 'account.ready', 'bench0') - when) * 1000)
        victim.start()
        proc.wait_for('the killed one to be back', lambda: victim.status(), 30)
    stop.set()
    session.join()
    assert not failed, failed
    proc.wait_for('everything to end', lambda: pg.value(
        'SELECT NOT EXISTS (SELECT FROM txrelay.pending_transactions) AND NOT EXISTS (SELECT FROM txrelay.outbox)'), 60)
    for r in relays:
        r.stop()
    node.process.kill()
    result = quantiles(times)
    table(f'takeover: ms from kill -9 to account.ready, {args.kills} kills, 50 enqueues/s going on',
          ['', 'p50', 'p99', 'max'], [['takeover', *(f'{result[q]:.0f}' for q in ('p50', 'p99', 'max'))]])
    return {'kills': args.kills, 'ms': result, 'all_ms': times}
