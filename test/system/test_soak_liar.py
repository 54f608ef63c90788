"""Everything that a node says is mutated at random, in phases with honest ones in between, while
two accounts send: no relay crashes, whatever was enqueued ends, and the promises hold against the
chain (I1, I2, I3, I5, I6, I7, I8 by `settle`). Three have checks here: no write under an old epoch
(I4, a trigger; in the soak a relay is frozen now and then, so that its claims run out), every
enqueue is timed (I9), and so is a transaction of each account while a third one is paused with a
full queue (I10).

What lies may do by design is done here as an operator does it, and counted: an account that is
suspended is resumed once the nodes are honest. No answer ends a relay, not even one of all nodes
that they are of another chain.

./dev soak liar: 60 minutes unless TXRELAY_SOAK_MINUTES says otherwise; TXRELAY_SOAK_SEED repeats a
run's kinds of lies. The system lane: two phases of three seconds."""
import os
import random
import time
import unittest
from collections import Counter

from harness import proc
from harness.cases import CaseTest
from harness.chain import remark
from harness.leadership import FAST, SLOW, Server, freeze, thaw
from harness.liar import Liar
from harness.mutation import Mutation
from harness.soak import FULL, report, size
from harness.world import ALICE, BOB

SEED = int(os.environ.get('TXRELAY_SOAK_SEED')
           or (random.SystemRandom().randrange(1 << 32) if FULL else 1))
SECONDS = size(60 * float(os.environ.get('TXRELAY_SOAK_MINUTES', '60')), 6)
PHASE_S = size(20, 3)
CHANCES = size((0.005, 0.02, 0.05, 0.15), (0.02,))
AT_MOST_S = 5  # an enqueue (I9)
# from enqueue to finality, at honest nodes and while another account is paused (I10); blocks come
# ten times a second
SLOWED_S = 20 * SLOW
FREEZE_S = size(FAST['expiry_2_ms'] / 1000 + 1, 0)
CAROL, WAITING = ('carol', 'sr25519', '//Charlie'), 20


class Soak(CaseTest):
    def setUp(self):
        self.dice = random.Random(SEED)
        report(f'seed {SEED}')
        server = Server()
        self.addCleanup(server.stop)
        self.of_world = self.world('--block-ms', '100', accounts=(ALICE, BOB, CAROL), start=False,
                                   postgres=server, leadership=FAST)
        self.liars = [Liar(self.of_world.chain.ws) for _ in range(2)]
        for liar in self.liars:
            self.addCleanup(liar.close)
        self.methods, self.kinds, self.counts = Counter(), Counter(), Counter()
        self.slowest = 0.0
        genesis = self.of_world.chain.rpc('chain_getBlockHash', 0)
        for name in ('one', 'two'):
            self.of_world.relay(name, endpoints=[liar.url for liar in self.liars],
                                chain={'genesis': f'"{genesis}"', 'call_timeout_ms': 2000})
        for alias in ('alice', 'bob'):
            proc.wait_for(f'a leader of {alias}',
                          lambda a=alias: any(r.leads(a) for r in self.of_world.relays))
        self.of_world.pg.query("SELECT txrelay.account_pause('carol', 'to be in the way')")
        self.waiting = [remark(f'carol {n}') for n in range(WAITING)]
        ids = self.of_world.pg.value("SELECT txrelay.enqueue_many('carol', %s::bytea[])",
                                     (self.waiting,))
        self.of_carol = dict(zip(self.waiting, ids))
        self.slowed = 0.0

    def test_mutations(self):
        begun = time.monotonic()
        while time.monotonic() - begun < SECONDS:
            self.lie(self.dice.choice(CHANCES))
            self.be_honest()
            self.not_slowed()
            self.counts['phases'] += 1
        self.assertEqual(self.of_world.rows("SELECT count(*) FROM txrelay.outbox o "
                                            "JOIN txrelay.accounts a USING (account) "
                                            "WHERE a.alias = 'carol'"), [(WAITING,)],
                                            'the paused account was sent for')
        self.of_world.committed.update(self.of_carol)
        self.of_world.resume('carol')
        figures = self.of_world.settle()
        self.assertEqual(self.of_world.rows('SELECT * FROM public.old_writes'), [],
                         f'I4, seed {SEED}')
        self.assertGreater(sum(self.methods.values()), 0)
        self.tell(figures, time.monotonic() - begun)

    def lie(self, chance):
        """Both nodes, each in its own way."""
        lies = [Mutation(self.dice.randrange(1 << 32), chance) for _ in self.liars]
        for liar, lie in zip(self.liars, lies):
            liar.tell(lie)
        end = time.monotonic() + PHASE_S
        frozen = self.dice.choice(
            self.of_world.relays) if FREEZE_S and self.dice.random() < 0.3 else None
        if frozen and frozen.alive():
            freeze(frozen)
            self.counts['frozen'] += 1
        thaw_at = time.monotonic() + FREEZE_S
        while time.monotonic() < end:
            self.enqueue(self.dice.choice(('alice', 'bob')))
            self.supervise()
            time.sleep(self.dice.uniform(0, 0.1))
            if frozen and frozen.alive() and time.monotonic() >= thaw_at:
                thaw(frozen)
        for liar, lie in zip(self.liars, lies):
            liar.tell(None)
            self.methods += lie.methods
            self.kinds += lie.kinds

    def enqueue(self, alias):
        before = time.monotonic()
        self.of_world.enqueue(f'number {len(self.of_world.committed)}', alias)
        self.slowest = max(self.slowest, time.monotonic() - before)
        self.assertLess(self.slowest, AT_MOST_S, 'I9')

    def supervise(self):
        for relay in self.of_world.relays:
            if not relay.alive():
                self.fail(f'seed {SEED}: {relay.name} ended with '
                          f'{relay.process.child.returncode}:\n'
                          + '\n'.join(relay.text().splitlines()[-20:]))

    def be_honest(self):
        """Until all has ended."""
        def ended():
            self.supervise()
            for alias, in self.of_world.rows(
                "SELECT account FROM txrelay.blocked_accounts WHERE suspension IS NOT NULL"):
                self.counts['resumed'] += 1
                self.of_world.resume(alias)
            return not self.of_world.unfinished()
        try:
            proc.wait_for('every transaction to end', ended, 120, 0.2)
        except TimeoutError:
            self.of_world.settle(1)  # fails, and shows what is left

    def not_slowed(self):
        for alias in ('alice', 'bob'):
            begun = time.monotonic()
            self.enqueue(alias)
            proc.wait_for(f'I10: a transaction of {alias} while carol is paused',
                          lambda: not self.of_world.unfinished(),
                          SLOWED_S, 0.05)
            self.slowed = max(self.slowed, time.monotonic() - begun)

    def tell(self, figures, seconds):
        ends = Counter(dict(self.of_world.rows(
            'SELECT outcome::text, count(*) FROM txrelay.finished_transactions '
            'WHERE id IS NOT NULL GROUP BY 1')))
        report(f'seed {SEED}: {self.counts["phases"]} phases in {seconds:.0f} s, '
               f'{sum(self.methods.values())} mutations; '
               f'{sum(ends.values())} transactions ended: {dict(ends)}; '
               f'{sum(x.accepted for x in self.liars)} connections, '
               f'{self.counts["resumed"]} accounts resumed, {self.counts["frozen"]} relays frozen; '
               f'slowest enqueue {self.slowest * 1000:.0f} ms, transaction beside a paused account '
               f'{self.slowed * 1000:.0f} ms; '
               f'{figures}')
        report(f'  by method: {dict(self.methods.most_common())}')
        report(f'  by kind: {dict(self.kinds.most_common())}')


if __name__ == '__main__':
    unittest.main()
