"""feeds: batches of one publisher into the outbox. The account is paused, so nothing is relayed.
Rounds alternate with `enqueue_many` of as many calls with keys, in one session, which sends texts
that are made before: no driver is in the figure. Then batches of 100 calls beside a relay that
works at 1,000 transactions a second, in alternating windows, and the memory and CPU of a relay
with idle sessions, each on a connection of its own: over a unix socket, and over TCP with TLS and
a client's certificate."""
import os
import statistics
import subprocess
import time

from harness import proc
from harness.bouncer import free_port
from harness.certificates import Certificates
from harness.relay import Relay, cli

from .stand import (ERAS, MARK, call_of, chain, cpu_s, many_accounts, quantiles, save,
                    show as shown, spread, table)
from .suite_watch import ACCOUNTS, Load, finished

LOAD = os.path.join(proc.BUILD, 'test', 'bench', 'feed_load')
CALL_BYTES = 100
IDLE_S = 20  # more than the silence after which a connection is pinged
BESIDE = 100  # calls of a batch
RELAY_NAME = 'relay.test'  # of its certificate


class Stand:
    """A relay with a door and a feed of an account that is paused. Number 0 counts as stored."""

    def __init__(self, server, tls=False):
        self.pg = server.fresh()
        self.dir = proc.make_dir('txbench-')
        accounts = [('feed', 'sr25519', '//Feed'), *many_accounts(ACCOUNTS)]
        self.node = chain(self.dir, '--instant', '--instant-delay-ms', '5', accounts=accounts)
        self.target, self.tls, door = f'unix:{self.dir}/feeds', [], ''
        if tls:
            self.target = f'127.0.0.1:{free_port()}'
            door = self.certificates()
        listen = f'tcp:{self.target}' if tls else self.target
        self.relay = Relay(self.dir, 'feeds', self.pg.dsn, [self.node.ws], accounts, manager=ERAS,
                           extra=f'feeds:\n  listen: {listen}\n{door}').start()
        proc.wait_for('all accounts', lambda: self.relay.text().count('=account.ready ') > ACCOUNTS,
                      60)
        self.pg.query("SELECT txrelay.account_pause('feed', 'the bench takes batches')")
        self.pg.query("SELECT txrelay.account_policy('feed', '{\"outbox_max\": 1000000}')")
        key = os.path.join(self.dir, 'publisher.key')
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), 'w') as file:
            file.write('//Alice\n')
        public = next(line.split()[-1] for line in cli('keys', 'show', key, '--scheme',
                                                       'ed25519').stdout.splitlines()
                      if line.startswith('public key'))
        cli('feed', 'create', 'bench', 'feed', public, '--database', self.pg.dsn, '--last', '0',
            '--option', 'duplicate_skip_window=10')
        self.next, self.keys = 1, 0

    def certificates(self):
        """Of the relay and of publishers; returns the relay's configuration."""
        files = Certificates()
        files.authority()
        files.certificate('relay', RELAY_NAME)
        files.certificate('publisher', 'publisher.test')
        self.tls = [files.path('ca.pem'), files.path('publisher.pem'), files.path('publisher.key'),
                    RELAY_NAME]
        return ''.join(f'  {key}: {files.path(name)}\n' for key, name in
                       (('cert_file', 'relay.pem'), ('key_file', 'relay.key'),
                        ('ca_file', 'ca.pem')))

    def publish(self, calls, batches):
        """Seconds of each batch, from its offer to its acknowledgement."""
        done = proc.run([LOAD, 'publish', self.target, 'bench', str(self.next), str(batches),
                         call_of(CALL_BYTES).hex(), str(calls)],
                        seconds=600)
        self.next += batches
        return [int(line) / 1e6 for line in done.stdout.split()]

    def enqueue(self, calls, batches):
        """Calls per second of enqueue_many. The text of the calls is there before the clock
        starts."""
        db = self.pg.connect()
        literal = '{' + ','.join(['"\\\\x' + call_of(CALL_BYTES).hex() + '"'] * calls) + '}'
        with db.cursor() as cur:
            began = time.monotonic()
            for _ in range(batches):
                self.keys += 1
                keys = '{' + ','.join([f'bench/{self.keys}/{i}' for i in range(calls)]) + '}'
                cur.execute(f"SELECT cardinality(txrelay.enqueue_many('feed', E'{literal}', keys "
                            f"=> '{keys}'))")
            took = time.monotonic() - began
        db.close()
        return calls * batches / took

    def empty(self):
        """What the last figures left behind is not part of the next ones."""
        self.pg.query('TRUNCATE txrelay.outbox, txrelay.idempotency_keys, txrelay.feed_batches')
        self.pg.query('CHECKPOINT')

    def rss_kb(self):
        with open(f'/proc/{self.relay.process.pid}/status') as file:
            return int(next(line for line in file if line.startswith('VmRSS')).split()[1])

    def close(self):
        self.relay.stop()
        self.node.process.kill()


def rates(stand, args):
    result = {}
    for size in args.feed_batches.split(','):
        calls, batches = map(int, size.split('x'))
        stand.publish(calls, max(1, batches // 10))
        stand.enqueue(calls, max(1, batches // 10))
        feed, many, took = [], [], []
        for i in range(args.feed_rounds):
            for ours in (True, False) if i % 2 else (False, True):
                stand.empty()
                if ours:
                    times = stand.publish(calls, batches)
                    took += times
                    feed.append(calls * batches / sum(times))
                else:
                    many.append(stand.enqueue(calls, batches))
        result[calls] = {'calls_per_s': spread(feed), 'enqueue_many': spread(many),
                         'ratio': spread([f / m for f, m in zip(feed, many)]),
                         'ack_s': quantiles(took)}
    return result


def beside(stand, args):
    """Batches of 100 alone and beside relay work, and the work's own rate."""
    batches = max(20, max(int(s.split('x')[0]) * int(s.split('x')[1])
                          for s in args.feed_batches.split(',')) // BESIDE)
    pairs = []
    for i in range(args.feed_rounds):
        got = {}
        for busy in (False, True) if i % 2 else (True, False):
            stand.empty()
            load = Load(stand.pg, args.watch_rate) if busy else None
            if busy:
                before = finished(stand.pg)
                proc.wait_for('the relay to work', lambda b=before: finished(stand.pg) > b
                              + args.watch_rate, 60)
            before, began = finished(stand.pg), time.monotonic()
            times = stand.publish(BESIDE, batches)
            took = time.monotonic() - began
            got[busy] = {'calls_per_s': BESIDE * batches / sum(times),
                         'relayed_per_s': (finished(stand.pg) - before) / took}
            if load:
                load.end()
                proc.wait_for('the rest to end', lambda: not stand.pg.value(
                    MARK + 'SELECT EXISTS (SELECT FROM txrelay.pending_transactions)'), 600, 0.2)
        pairs.append(got)
    return pairs


def cpu_of(stand):
    """The share of a core that the relay takes."""
    before, began = cpu_s(stand.relay.process.pid), time.monotonic()
    time.sleep(IDLE_S)  # what is measured
    return (cpu_s(stand.relay.process.pid) - before) / (time.monotonic() - began)


def idle(stand, args, publishes=False):
    """A session's memory and CPU, and what its acknowledgements cost the others."""
    alone = stand.publish(BESIDE, 50) if publishes else None
    alone_cpu, before_kb = cpu_of(stand), stand.rss_kb()
    child = subprocess.Popen([LOAD, 'idle', stand.target, 'bench', str(stand.next - 1),
                              str(args.idle_sessions), *stand.tls], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline() == 'open\n', 'the sessions were not opened'
        after_kb, cpu = stand.rss_kb(), cpu_of(stand)
        later_kb = stand.rss_kb()
        # the door takes 1,000 connections
        with_them = stand.publish(BESIDE, 50) if publishes and args.idle_sessions < 1000 else None
    finally:
        child.communicate('')
    return {'sessions': args.idle_sessions, 'kb_each': (after_kb - before_kb) / args.idle_sessions,
            'kb_each_later': (later_kb - before_kb) / args.idle_sessions, 'cpu_alone': alone_cpu,
            'cpu': cpu,
            'ack_s_alone': quantiles(alone) if alone else None,
            'ack_s': quantiles(with_them) if with_them else None}


def run(server, args):
    stand = Stand(server)
    result = {'rates': rates(stand, args)}
    show_rates(result['rates'])
    save(args, 'feeds', result)
    result['beside'] = beside(stand, args)
    show_beside(args, result['beside'])
    result['idle'] = idle(stand, args, publishes=True)
    stand.close()
    stand = Stand(server, tls=True)
    result['idle_tls'] = idle(stand, args)
    stand.close()
    show_idle(result['idle'], 'over a unix socket')
    show_idle(result['idle_tls'], 'with TLS')
    save(args, 'feeds', result)
    return result


def show_rates(result):
    table(f'batches of one publisher, calls of {CALL_BYTES} B with keys',
          ['calls of a batch', 'calls/s', 'enqueue_many', 'ratio', 'ack p50 ms', 'p99 ms'],
          [[calls, shown(r['calls_per_s'], 0), shown(r['enqueue_many'], 0), shown(r['ratio']),
            f'{r["ack_s"]["p50"] * 1000:.2f}',
            f'{r["ack_s"]["p99"] * 1000:.1f}'] for calls, r in result.items()])


def show_beside(args, pairs):
    rate = lambda busy, what: [p[busy][what] for p in pairs]  # noqa: E731
    print(f'\n  beside {args.watch_rate} transactions a second '
          f'({statistics.median(rate(True, "relayed_per_s")):.0f} relayed): batches of '
          f'{BESIDE} at {statistics.median(rate(True, "calls_per_s")):.0f} calls/s; alone '
          f'{statistics.median(rate(False, "calls_per_s")):.0f}; '
        f'pairs {shown(spread([p[True]["calls_per_s"] / p[False]["calls_per_s"] for p in pairs]))}')


def show_idle(r, how):
    print(f'  {r["sessions"]} idle sessions {how}: {r["kb_each"]:.1f} KB each, after {IDLE_S} s '
          f'{r["kb_each_later"]:.1f}; the relay takes {r["cpu"] * 100:.2f} % of a core, '
          f'{r["cpu_alone"] * 100:.2f} % without them')
    if r['ack_s']:
        print(f'  each acknowledgement goes to all of them: p50 {r["ack_s"]["p50"] * 1000:.2f} ms, '
              f'{r["ack_s_alone"]["p50"] * 1000:.2f} ms without them')
