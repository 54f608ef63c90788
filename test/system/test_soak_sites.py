"""Three sites that send through one account, each a Postgres of its own with two relays, 8 writers
at each, while things fail: relays are killed (kill -9), whole sites stop and come back, each pair
of sites is cut from each other or hears nothing, ways are black holes for everybody, and messages
between sites are lost, doubled, late and out of order all the time. The coordinator rotates
meanwhile. In the end every committed transaction took effect once and no other did, by the chain
(harness/ sites_invariants.py has I1 to I7); a follower at each site, killed like the relays, has
the table's view (I8); no enqueue waited while its database was there (I9); and a paused account
with a full queue held up nobody (I10).

./dev soak sites: 3,000 transactions; TXRELAY_SOAK_SEED repeats a run's dice. The system lane:
240."""
import itertools
import os
import random
import threading
import time
import unittest
from collections import Counter

import psycopg2

from harness import proc
from harness.application import Application
from harness.chain import remark
from harness.followers import TailFollower
from harness.sites import Sites
from harness.soak import FULL, report, size
from harness.world import BOB

SEED = int(os.environ.get('TXRELAY_SOAK_SEED')
           or (random.SystemRandom().randrange(1 << 32) if FULL else 1))
WRITERS, TRANSACTIONS = 8, size(3000, 240)
# of a writer between two transactions, at most; it lets the faults keep up with it
PACE_S = size(0.3, 0.1)
EACH = TRANSACTIONS // WRITERS // 3
ROLLED_BACK = 5          # every so manieth one beside it
RANGE_BLOCKS = size(150, 60)
FAULTS = {'drop': 0.03, 'double': 0.1, 'delay_s': 0.08}
LASTS_S = size((2.0, 6.0), (0.5, 1.0))
KILLS = size(4, 1)  # of each site's leader
PATIENCE_S = 120
AT_MOST_S = 5  # an enqueue (I9)
WAITING = 20
CAROL, DAVE = ('carol', 'sr25519', '//Charlie'), ('dave', 'sr25519', '//Dave')


class Writer(Application):
    """One application: each transaction is asked for with its key until it is known to be
    committed."""

    def __init__(self, site, number, dice, allowed):
        super().__init__(site, site.pg.dsn)
        self.number, self.dice, self.allowed, self.slowest = number, dice, allowed, 0.0

    def run(self):
        try:
            for i in range(EACH):
                while i >= self.allowed():
                    time.sleep(0.05)
                time.sleep(self.dice.uniform(0, PACE_S))
                name = f'{self.world.name} {self.number} {i}'
                self.world.committed[remark(name)] = self.enqueue(remark(name), name)
                if i % ROLLED_BACK == ROLLED_BACK - 1:
                    self.roll_back(remark(f'{name} rolled back'))
        except Exception as error:  # told by the test
            self.failed = error

    def once(self, call, key):
        if not self.db:
            # it connects, and asks: again below, for the time without the connection
            super().once(call, key)
        before = time.monotonic()
        tx = super().once(call, key)
        self.slowest = max(self.slowest, time.monotonic() - before)
        return tx

    def roll_back(self, call):
        self.world.rolled_back.append(call)
        try:
            self.db.autocommit = False
            with self.db.cursor() as cur:
                cur.execute('SELECT txrelay.enqueue(%s, %s)', ('alice', call))
            self.db.rollback()
            self.db.autocommit = True
        except psycopg2.Error:  # then the server did
            self.db.close()
            self.db = None


class Soak(unittest.TestCase):
    def setUp(self):
        report(f'seed {SEED}')
        self.dice, self.counts = random.Random(SEED), Counter()
        self.sites = Sites(3, relays=2, frames=True, seed=SEED, range_blocks=RANGE_BLOCKS,
                           beside={'a': (BOB,), 'b': (CAROL,), 'c': (DAVE,)})
        self.addCleanup(self.sites.close)
        self.sites.wait_leaders()
        self.tails = []
        for site in self.sites.all:
            other = self.sites.beside[site.name][0][0]
            site.pg.query("SELECT txrelay.account_pause(%s, 'to be in the way')", (other,))
            site.pg.query("SELECT txrelay.enqueue_many(%s, %s::bytea[])",
                          (other, [remark(f'{other} {n}') for n in range(WAITING)]))
            site.number, site.dir = 1, proc.make_dir('txf-')
            tail = TailFollower(site, f'tail_{site.name}')
            self.addCleanup(tail.close)
            self.tails.append(tail.start())

    # ---- faults: each lasts for a while, and is over when it returns ----

    def lasts(self):
        time.sleep(self.dice.uniform(*LASTS_S))

    def kill_leader(self, site):
        leader = site.leader()
        if not leader:
            return
        leader.kill()
        self.counts['leaders killed'] += 1
        self.lasts()
        leader.start()

    def kill_both(self, site):
        for relay in site.relays:
            relay.kill()
        self.counts['leaders killed'] += 1
        self.lasts()
        site.start()

    def stop_site(self, site):
        """Its relays and its database; the others go on without it."""
        others = [s for s in self.sites.all if s is not site]
        site.away()
        self.counts['sites stopped'] += 1
        before = [s.ended() for s in others]
        try:
            proc.wait_for(f'the others to go on without {site.name}',
                          lambda: all(s.ended() > n or not s.unfinished()
                                      for s, n in zip(others, before)), PATIENCE_S, 0.2)
        except TimeoutError as error:
            raise TimeoutError(f'{error}; they have '
                 f'{[(s.name, n, s.ended(), s.unfinished()[:5]) for s, n in zip(others, before)]}\n'
                               f'{self.sites.text(40)}') from None
        self.lasts()
        site.back()

    def kill_tail(self, site):
        tail = next(t for t in self.tails if t.world is site)
        tail.kill_process()
        self.counts['followers killed'] += 1
        tail.start()

    def pair(self, pair, name):
        """name: cut or hole, until it has hit something: two sites of which none coordinates have
        nothing to say to each other, but the coordinator rotates."""
        fault = self.sites.fault(*pair)
        fault.set(**{name: True})
        before, until = self.hits(fault), time.monotonic() + PATIENCE_S
        while True:
            for site in (s for s in self.sites.all if s.name in pair):
                site.enqueue(1)
                self.more += 1
            self.lasts()
            if self.hits(fault) > before:
                break
            self.assertLess(time.monotonic(), until, f'nothing was sent between {pair}')
        fault.set(**FAULTS)
        self.counts[f'pairs {name}'] += 1

    @staticmethod
    def hits(fault):
        return fault.counts['cut'] + fault.counts['swallowed']

    def way(self, site, mode, delay_s=0.0):
        """TCP to the relays of a site."""
        for proxy in site.proxies:
            proxy.set(mode, delay_s)
        self.lasts()
        for proxy in site.proxies:
            proxy.set('pass')
        self.counts[f'ways {mode}{" late" if delay_s else ""}'] += 1

    def end_streams(self, site):
        self.counts['streams ended'] += sum(proxy.cut() for proxy in site.proxies)

    def plan(self):
        """Each kind at each site and between each two; in small at one of them."""
        of_site = [*[self.kill_leader] * KILLS, self.kill_tail, self.kill_both, self.stop_site,
                   self.end_streams,
                   lambda site: self.way(site, 'hole'), lambda site: self.way(site, 'hold'),
                   lambda site: self.way(site, 'pass', 0.4)]
        of_pair = [lambda pair: self.pair(pair, 'cut'), lambda pair: self.pair(pair, 'hole')]
        jobs = []
        for kinds, places in ((of_site, self.sites.all),
                              (of_pair, list(itertools.combinations('abc', 2)))):
            for kind in kinds:
                jobs += [lambda k=kind,
                         p=place: k(p)
                         for place in (places if FULL else [self.dice.choice(places)])]
        self.dice.shuffle(jobs)
        return jobs

    # ---- the run ----

    def disturb(self, jobs, writers):
        for fault in self.sites.pairs.values():
            fault.set(**FAULTS)
        for self.job, job in enumerate(jobs):
            self.assertIsNone(next((w.failed for w in writers if w.failed), None))
            job()
            for tail in self.tails:
                tail.look()
        for fault in self.sites.pairs.values():
            fault.set()

    def test_faults_between_three_sites(self):
        jobs, self.job, self.more = self.plan(), 0, 0
        writers = [Writer(site, n, random.Random(self.dice.random()),
                          lambda: EACH * (self.job + 1) / len(jobs))
                   for site in self.sites.all for n in range(WRITERS)]
        begun = time.monotonic()
        for w in writers:
            w.start()
        self.disturb(jobs, writers)
        disturbed = time.monotonic() - begun
        for w in writers:
            w.join(PATIENCE_S)
            self.assertFalse(w.is_alive(), f'{w.world.name} {w.number} still enqueues')
            self.assertIsNone(w.failed)
        written = time.monotonic() - begun
        figures = self.sites.settle(PATIENCE_S)
        settled = time.monotonic() - begun
        self.assertEqual(figures['transactions'], TRANSACTIONS + self.more)
        for tail in self.tails:
            self.check_view(tail)
        slowest = max(w.slowest for w in writers)
        self.assertLess(slowest, AT_MOST_S, 'I9')
        for site in self.sites.all:
            self.assertEqual(site.pg.value('SELECT count(*) FROM txrelay.outbox'), WAITING, 'I10')
        frames = sum((fault.counts for fault in self.sites.pairs.values()), Counter())
        for name in ('dropped', 'doubled', 'delayed', 'swallowed', 'cut'):
            self.assertGreater(frames[name], 0, f'{name}: {dict(frames)}, {dict(self.counts)}')
        by = sum((Counter(site.coordinators()) for site in self.sites.all), Counter())
        if FULL:
            self.assertGreater(len(by), 1, 'one site coordinated all: nothing moved')
        report(f'{TRANSACTIONS} transactions of 24 writers at 3 sites, {disturbed:.0f} s of '
               f'faults, all enqueued after {written:.0f} s, '
               f'all final after {settled:.0f} s; slowest enqueue {slowest * 1000:.0f} ms')
        report(f'  {dict(self.counts)}')
        report(f'  frames: {dict(frames)}')
        report(f'  coordinated by {dict(by)}; {figures}')

    def check_view(self, tail):
        """I8."""
        def differs():
            table = {tx: (state or '', outcome) for tx, state, outcome in tail.world.pg.query(
                '''SELECT f.id, f.state::text, f.outcome::text FROM txrelay.finished_transactions f
                WHERE f.id IS NOT NULL''')}
            view = tail.look().last
            return {tx: (view.get(tx), table.get(tx)) for tx in view.keys() | table.keys()
                    if view.get(tx) != table.get(tx)}
        try:
            proc.wait_for(f'{tail.name} to agree', lambda: not differs(), 60, 0.2)
        except TimeoutError:
            self.fail(f'I8: {tail.name} and the table differ in {list(differs().items())[:5]}')


if __name__ == '__main__':
    unittest.main()
