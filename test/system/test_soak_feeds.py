"""Eight publishers of one feed, all but two of them faulty at random, and relays whose leader is
killed (kill -9) every few seconds, right after an acknowledgement: each number is taken once and
in order, its calls are finalized exactly once, what was acknowledged is in the database after each
kill (B43), and the promises hold (I1 to I8 by `settle`, I4 by a trigger; each enqueue of an
application is timed, I9; an account that is paused with a full queue is in nobody's way, I10).

Two of the publishers are `txrelay feed push`, killed and started again like the relays. The others
are grpcio's.

./dev soak feeds: 1,000 numbers; TXRELAY_SOAK_SEED repeats a run's dice. The system lane: 60
numbers."""
import itertools
import json
import os
import random
import re
import subprocess
import threading
import time
from collections import Counter

from harness import proc
from harness.cases import CaseTest
from harness.chain import remark
from harness.leadership import FAST, Server
from harness.publishers import Key, Publisher, Wire
from harness.relay import cli
from harness.soak import FULL, report, size
from harness.world import ALICE, BOB

SEED = int(os.environ.get('TXRELAY_SOAK_SEED')
           or (random.SystemRandom().randrange(1 << 32) if FULL else 1))
NUMBERS = size(1000, 60)
PACE_S = 0.06  # between two numbers, as they are produced
KILL_S = size((2.0, 6.0), (1.5, 2.5))
PATIENCE_S = size(1200, 180)
FAULTS = {name: size(0.01, 0.02) for name in (
    'death', 'stall', 'digest', 'signature', 'count', 'call', 'order', 'duplicate', 'ahead',
    'empty', 'pipelined')}
STALE_MS = 1500
AT_MOST_S = 5  # an enqueue (I9)
CAROL, WAITING = ('carol', 'sr25519', '//Charlie'), 20


class Pushed(threading.Thread):
    """`txrelay feed push`, killed now and then and started again with everything that was
    produced."""

    def __init__(self, test, key_file, lines, dice):
        super().__init__(daemon=True)
        self.test, self.key_file, self.lines, self.dice = test, key_file, lines, dice
        self.acked, self.kills, self.broken, self.process = -1, 0, [], None

    def run(self):
        while self.acked < NUMBERS - 1:
            self.process = p = proc.Process(
                [proc.TXRELAY, 'feed', 'push', 'payouts', '--to', ','.join(self.test.targets),
                 '--key', self.key_file, '--json'],
                self.key_file + '.log', stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            writer = threading.Thread(target=self.write, args=(p.child.stdin,), daemon=True)
            writer.start()
            for line in p.child.stdout:
                if not line.endswith(b'\n'):
                    break  # it was killed in the middle of it
                self.acked = max(self.acked, json.loads(line)['acknowledged'])
            code = p.child.wait()
            writer.join()
            p.child.stdout.close()
            if code not in (0, -9):
                self.broken.append(f'feed push ended with {code}: {p.text()[-1000:]}')
                return

    def write(self, pipe):
        try:
            for n in range(NUMBERS):
                pipe.write(self.lines(n).encode())
                pipe.flush()
            pipe.close()
        except BrokenPipeError:
            pass  # it was killed

    def strike(self):
        self.kills += 1
        self.process.child.kill()


class Soak(CaseTest):
    def setUp(self):
        report(f'seed {SEED}')
        self.dice = random.Random(SEED)
        server = Server()
        self.addCleanup(server.stop)
        self.of_world = self.world('--block-ms', '100', accounts=(ALICE, BOB, CAROL), start=False,
                                   postgres=server, leadership=FAST)
        self.targets = [f'unix:{self.of_world.dir}/{name}.feeds'
                        for name in ('one', 'two', 'three')]
        for name, listen in zip(('one', 'two', 'three'), self.targets):
            self.of_world.relay(name, extra=f'feeds:\n  listen: {listen}\n')
        for alias in ('alice', 'bob', 'carol'):
            proc.wait_for(f'a leader of {alias}',
                          lambda a=alias: any(r.leads(a) for r in self.of_world.relays))
        self.of_world.pg.query("SELECT txrelay.account_pause('carol', 'to be in the way')")
        waiting = [remark(f'carol {n}') for n in range(WAITING)]
        ids = self.of_world.pg.value("SELECT txrelay.enqueue_many('carol', %s::bytea[])",
                                     (waiting,))
        self.of_carol = dict(zip(waiting, ids))
        self.counts, self.slowest = Counter(), 0.0

    def content(self, number):
        """The same in each publisher, from the time on when it is produced."""
        time.sleep(max(0.0, self.begun + number * PACE_S - time.monotonic()))
        return self.calls(number)

    def calls(self, number):
        return [remark(f'batch {number} call {i}') for i in range(1 + number % 4)]

    def lines(self, number):
        return json.dumps({'number': number,
                           'calls': ['0x' + c.hex() for c in self.content(number)]}) + '\n'

    def publishers(self):
        wire = Wire(self.of_world.dir, 'payouts')
        keys = [Key(self.dice.randbytes(32)) for _ in range(6)]
        files = [os.path.join(self.of_world.dir, f'push-{i}.key') for i in range(2)]
        public = [k.public.hex() for k in keys]
        public += [re.search(r'public key +0x([0-9a-f]{64})',
                             cli('keys', 'new', f, '--scheme', 'ed25519').stdout).group(1)
                   for f in files]
        cli('feed', 'create', 'payouts', 'alice', *public, '--database', self.of_world.pg.dsn,
            '--option',
            f'stale_winner_ms={STALE_MS}', '--option', 'resend_ms=1000', '--option',
            f'duplicate_skip_window={self.dice.choice((0, 5))}', '--option',
            f'behind_stays_open={self.dice.choice((0, 1))}')
        self.begun = time.monotonic()
        grpcio = [Publisher(wire, key, self.targets, self.content, NUMBERS - 1,
                            random.Random(self.dice.random()), FAULTS)
                  for key in keys]
        return grpcio, [Pushed(self, f, self.lines, random.Random(self.dice.random()))
                        for f in files]

    def enqueue(self):
        """An application's, beside (I9)."""
        before = time.monotonic()
        self.of_world.enqueue(f'of bob {len(self.of_world.committed)}', 'bob')
        self.slowest = max(self.slowest, time.monotonic() - before)
        self.assertLess(self.slowest, AT_MOST_S, 'I9')

    def kill_leader(self, everybody):
        """kill -9 right after an acknowledgement: it was told the truth (B43)."""
        known = max(p.acked for p in everybody)
        leader = next((r for r in self.of_world.relays if r.leads('alice')), None)
        if not leader:
            return False
        ends = time.monotonic() + 2
        while max(p.acked for p in everybody) == known and time.monotonic() < ends:
            time.sleep(0.001)
        acked = max(p.acked for p in everybody)
        leader.kill()
        self.assertGreaterEqual(self.cursor(), acked, 'B43')
        self.counts['leader kills'] += 1
        self.counts['kills within a batch'] += acked > known
        leader.start()
        return True

    def cursor(self):
        return self.of_world.pg.value(
            "SELECT last_number FROM txrelay.feeds WHERE name = 'payouts'")

    def check_broken(self, everybody):
        broken = list(itertools.chain.from_iterable(p.broken for p in everybody))
        self.assertEqual(broken, [], f'seed {SEED}')

    def publish(self):
        grpcio, pushed = self.publishers()
        everybody = [*grpcio, *pushed]
        for p in everybody:
            p.start()
        next_kill = self.begun + self.dice.uniform(*KILL_S)
        while any(p.is_alive() for p in everybody):
            self.assertLess(time.monotonic() - self.begun, PATIENCE_S,
                            f'seed {SEED}: the cursor is at {self.cursor()}: '
                            f'{[p.acked for p in everybody]}')
            self.enqueue()
            self.check_broken(everybody)
            if time.monotonic() > next_kill and self.kill_leader(everybody):
                victim = self.dice.choice(pushed)
                if victim.is_alive() and self.dice.random() < 0.5:
                    victim.strike()
                next_kill = time.monotonic() + self.dice.uniform(*KILL_S)
            time.sleep(0.05)
        self.check_broken(everybody)
        self.assertEqual([p.acked for p in everybody], [NUMBERS - 1] * 8)
        return grpcio, pushed

    def check_b56_logs(self):
        """B56: each step of a session, with its id."""
        logs = ''.join(r.text() for r in self.of_world.relays)
        steps = [('info', e) for e in ('feed.connected session',
                                       'feed.primary feed=payouts session',
                                       'feed.published feed=payouts session',
                                       'feed.disconnected session')]
        for level, step in [*steps, ('warn', 'feed.ended feed=payouts session')]:
            self.assertRegex(logs, rf'level={level} event={step}=\d+')
        self.assertRegex(logs, 'level=warn event=feed.ended .*status=DUPLICATE_BLOCK')

    def test_publishers(self):
        grpcio, pushed = self.publish()
        published = time.monotonic() - self.begun
        self.assertEqual(self.cursor(), NUMBERS - 1)
        self.assertGreater(self.counts['leader kills'], 0)
        # Each number was taken once and in order, with all of its calls and no other.
        self.assertEqual(self.of_world.rows('SELECT number, calls FROM txrelay.feed_batches '
                                            'ORDER BY first_id'),
                         [(n, len(self.calls(n))) for n in range(NUMBERS)])
        keys = dict(self.of_world.rows('SELECT key, id FROM txrelay.idempotency_keys'))
        places = {f'feed/payouts/{n}/{i}': c for n in range(NUMBERS)
                  for i, c in enumerate(self.calls(n))}
        self.assertEqual(sorted(keys), sorted(places))
        self.of_world.committed.update({places[k]: tx for k, tx in keys.items()})
        proc.wait_for('every call to end', lambda: not self.of_world.unfinished(), PATIENCE_S, 0.2)
        relayed = time.monotonic() - self.begun
        self.assertEqual(self.of_world.rows("SELECT count(*) FROM txrelay.outbox o "
                                            "JOIN txrelay.accounts a USING (account) "
                                            "WHERE a.alias = 'carol'"), [(WAITING,)],
                                            'I10: the paused account was sent for')
        self.of_world.committed.update(self.of_carol)
        self.of_world.resume('carol')
        figures = self.of_world.settle(PATIENCE_S)
        self.assertEqual(self.of_world.rows('SELECT * FROM public.old_writes'), [],
                         f'I4, seed {SEED}')
        nonces = self.of_world.rows('''SELECT b.number, f.id, f.nonce FROM txrelay.feed_batches b
                                       JOIN txrelay.finished_transactions f
                                       ON f.id BETWEEN b.first_id AND b.last_id
                                       JOIN txrelay.accounts a ON a.account = f.account
                                       WHERE a.alias = 'alice' ORDER BY f.nonce''')
        self.assertEqual([r[:2] for r in nonces], sorted(r[:2] for r in nonces),
                         'nonces follow the numbers')
        self.check_b56_logs()
        counts = sum((p.counts for p in grpcio), Counter())
        self.assertGreater(sum(counts[name] for name in FAULTS), 0)
        report(f'{NUMBERS} numbers of 8 publishers in {published:.0f} s, {len(places)} calls '
               f'finalized once after {relayed:.0f} s; '
               f'{self.counts["leader kills"]} leaders and {sum(p.kills for p in pushed)} '
               'publishers killed; '
               f'slowest enqueue beside it {self.slowest * 1000:.0f} ms; {figures}')
        report(f'  faults: { {name: counts[name] for name in FAULTS} }')
        report(f'  seen: { {k: v for k, v in sorted(counts.items()) if k not in FAULTS} }')
