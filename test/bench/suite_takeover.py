"""takeover: the leader ends while a session keeps enqueueing. From the signal to the successor's
account.ready in its own log, and to the first submission that the node is sent afterwards. kill -9
takes the sessions along, so that the lock proves the death; SIGSTOP leaves them, and only expiry
shows it."""
import signal
import threading
import time

from harness import proc
from harness.chain import remark
from harness.relay import Relay

from .stand import chain, log_time, many_accounts, quantiles, save, table

PACE_S = 0.02  # of the application
ENDED = ('SELECT NOT EXISTS (SELECT FROM txrelay.pending_transactions) AND NOT EXISTS (SELECT '
         'FROM txrelay.outbox)')


def enqueue_until(pg, stop, failed, calls):
    try:
        db = pg.connect()
        with db.cursor() as cur:
            while not stop.wait(PACE_S):
                call = remark(f'takeover {len(calls)}')
                cur.execute('SELECT txrelay.enqueue(%s, %s)', ('bench0', call))
                calls.append(call)
        db.close()
    except Exception as error:
        failed.append(error)


class Pair:
    def __init__(self, server):
        self.pg, self.passed = server.fresh(), 0
        directory = proc.make_dir('txbench-')
        accounts = many_accounts(1)
        self.node = chain(directory, '--block-ms', '200', '--finality-lag', '1', accounts=accounts)
        self.relays = [Relay(directory, name, self.pg.dsn, [self.node.ws], accounts).start()
                       for name in ('a', 'b')]

    def leader(self):
        return proc.wait_for('a leader', lambda: next((r for r in self.relays if r.leads('bench0')),
                                                      None))

    def heir_of(self, victim):
        heir = self.relays[1 - self.relays.index(victim)]
        proc.wait_for('a follower', lambda: heir.alive() and heir.status())
        return heir

    def end(self, how):
        """Milliseconds from the signal to account.ready and to the next submission."""
        victim = self.leader()
        heir = self.heir_of(victim)
        seen = heir.text().count('account.ready')
        when, mono = time.time(), time.monotonic()
        if how == 'kill':
            victim.kill()
        else:
            victim.process.child.send_signal(signal.SIGSTOP)
        proc.wait_for('the successor', lambda: heir.text().count('account.ready') > seen, 60, 0.005)
        ready = log_time(heir.text(), 'account.ready', 'bench0') - when
        sent = proc.wait_for('its first submission',
                             lambda: [s for s in self.submits_after(mono) if s > ready], 60,
                             0.01)[0]
        if how == 'kill':
            victim.start()
        else:
            victim.process.child.send_signal(signal.SIGCONT)
        proc.wait_for('the former leader to follow',
                      lambda: victim.status() and not victim.leads('bench0'), 60)
        return ready * 1000, sent * 1000

    def submits_after(self, mono):
        """Seconds after that moment of the newest submissions."""
        page = self.node.rpc('dev_stats', {'from': self.passed, 'limit': 5000})['submits']
        self.passed += max(0, len(page) - 100)
        return [s['at_ms'] / 1000 - mono for s in page]

    def close(self):
        for r in self.relays:
            r.stop()
        self.node.process.kill()


def measure(server, how, count):
    pair = Pair(server)
    pair.leader()
    stop, failed, calls = threading.Event(), [], []
    session = threading.Thread(target=enqueue_until, args=(pair.pg, stop, failed, calls),
                               daemon=True)
    session.start()
    times = [pair.end(how) for _ in range(count)]
    stop.set()
    session.join()
    assert not failed, failed
    proc.wait_for('everything to end', lambda: pair.pg.value(ENDED), 60)
    on_chain = [x.call for _, _, _, x in pair.node.walk()]
    assert sorted(on_chain) == sorted(
        calls), f'{len(calls)} were enqueued, {len(on_chain)} are on the chain'
    pair.close()
    return {'ready': quantiles([t[0] for t in times]), 'sends': quantiles([t[1] for t in times]),
            'all_ms': times}


def run(server, args):
    result = {}
    for how, count in (('kill', args.kills), ('stop', args.stops)):
        if count:
            result[how] = measure(server, how, count)
            save(args, 'takeover', result)
    names = {'kill': f'{args.kills} x kill -9',
            'stop': f'{args.stops} x SIGSTOP (expires after 5 s; 20 s with a submission under way)'}
    table(f'takeover: ms to account.ready and to the first submission after it, {1 / PACE_S:.0f} '
          'enqueues/s going on',
          ['', 'p50', 'p99', 'max'],
          [[f'{names[how]}, {what}', *(f'{got[what][q]:.0f}' for q in ('p50', 'p99', 'max'))]
           for how, got in result.items() for what in ('ready', 'sends')])
    return result
