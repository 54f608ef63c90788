"""Three relays behind four endpoints that are no good for everything: one takes 10 requests a
second, one keeps 10 blocks, one is 5 blocks behind, one closes methods. Each is away in turn, at
the end all of them at once. Every transaction ends `ok`, the promises hold, and no account stands
still for longer than the time for which no endpoint was there.

./dev soak endpoints: 5,000 transactions over 20 minutes. The system lane: 60 transactions, each
endpoint away for 2 s."""
import time
from collections import Counter

from harness import proc
from harness.cases import CaseTest, load_tests  # noqa: F401
from harness.chain import remark
from harness.liar import Lag, Liar, Limit, Pruned, closed
from harness.soak import report, size
from harness.world import ALICE, BOB

TRANSACTIONS = size(5_000, 60)
SECONDS = size(1_200, 12)
BLOCK_MS = size(1_000, 250)
AWAY_S = size(20, 1)
ALL_AWAY_S = size(20, 2)
# requests a second: 10 in the soak, and as many a block in the small form
PER_S = 10_000 // BLOCK_MS
# beside the outage: to notice it, to connect, to take over, and until a block is final
STILL_S = size(10, 20)
CLOSED = ('author_pendingExtrinsics', 'author_submitAndWatchExtrinsic', 'chain_getBlockHash',
          'chain_getFinalizedHead',
          'chain_getHeader', 'state_getRuntimeVersion', 'state_queryStorageAt',
          'state_subscribeRuntimeVersion')


class Moving:
    """Pruned, with the blocks that there are."""

    def __init__(self, chain, keeps):
        self.chain, self.keeps, self.pruned, self.at = chain, keeps, Pruned(chain, 0), 0.0

    def __call__(self, method, params):
        if time.monotonic() > self.at + 0.5:
            self.at = time.monotonic()
            self.pruned.below = self.chain.finalized_number() - self.keeps
        return self.pruned(method, params)


class Soak(CaseTest):
    def setUp(self):
        self.of_world = self.world('--block-ms', str(BLOCK_MS), accounts=(ALICE, BOB), start=False)
        chain = self.of_world.chain
        lag = Lag(chain, 5)
        self.limit = Limit(PER_S, PER_S)
        self.endpoints = {'limited': self.liar(self.limit), 'pruned': self.liar(Moving(chain, 10)),
                          'lagging': self.liar(lag.reply, lag.lie),
                          'closed': self.liar(closed(*CLOSED))}
        urls = [e.url for e in self.endpoints.values()]
        genesis = chain.rpc('chain_getBlockHash', 0)
        for number in range(3):  # each begins with another one
            self.of_world.relay(f'relay-{number}', endpoints=urls[number:] + urls[:number],
                                chain={'genesis': f'"{genesis}"'})
        for alias in ('alice', 'bob'):
            proc.wait_for(f'a leader of {alias}',
                          lambda a=alias: any(r.leads(a) for r in self.of_world.relays))

    def liar(self, reply, lie=None):
        liar = Liar(self.of_world.chain.ws, lie)
        liar.reply = reply
        self.addCleanup(liar.close)
        return liar

    def send_until(self, end):
        """At an even pace; the accounts in turn."""
        while time.monotonic() < end and len(self.of_world.committed) < TRANSACTIONS:
            due = int(TRANSACTIONS * (time.monotonic() - self.begun) / SECONDS) + 1
            while len(self.of_world.committed) < min(due, TRANSACTIONS):
                number = len(self.of_world.committed)
                self.of_world.enqueue(f'number {number}', ('alice', 'bob')[number % 2])
            time.sleep(0.05)

    def test_each_away_in_turn(self):
        self.begun = time.monotonic()
        share = SECONDS / size(40, 4)
        names = list(self.endpoints)
        for turn in range(size(40, 4)):
            away = self.endpoints[names[turn % len(names)]]
            away.leave()
            self.send_until(min(time.monotonic() + AWAY_S, self.begun + (turn + 1) * share))
            away.come_back()
            self.send_until(self.begun + (turn + 1) * share)
        for endpoint in self.endpoints.values():
            endpoint.leave()
        self.of_world.enqueue('while all are away', 'alice')
        self.of_world.enqueue('while all are away, of bob', 'bob')
        time.sleep(ALL_AWAY_S)
        for endpoint in self.endpoints.values():
            endpoint.come_back()
        self.of_world.settle(600)
        self.tell()
        outcomes = Counter(o for o, in self.of_world.pg.query(
            'SELECT outcome::text FROM txrelay.finished_transactions WHERE id IS NOT NULL'))
        self.assertEqual(outcomes, {'ok': len(self.of_world.committed)})
        for alias in ('alice', 'bob'):
            self.assertLess(self.still(alias), ALL_AWAY_S + STILL_S, alias)

    def still(self, alias):
        """The longest time without an end while something of the account waited for one, in
        seconds."""
        rows = self.of_world.pg.query('''SELECT extract(epoch FROM created_at)::float, extract(epoch
            FROM finished_at)::float
            FROM txrelay.finished_transactions WHERE id IS NOT NULL AND account = %s
            ORDER BY finished_at''', [self.number(alias)])
        first = [r[0] for r in rows]
        longest, before = 0.0, 0.0
        for at, (_, finished) in enumerate(rows):
            longest = max(longest, finished - max(before, min(first[at:])))
            before = finished
        return longest

    def number(self, alias):
        return self.of_world.pg.value('SELECT account FROM txrelay.accounts WHERE alias = %s',
                                      [alias])

    def tell(self):
        asked = {name: sum(e.asked.values()) for name, e in self.endpoints.items()}
        volume = sum(e.bytes_up + e.bytes_down for e in self.endpoints.values())
        seconds = time.monotonic() - self.begun
        report(f'{len(self.of_world.committed)} transactions in {seconds:.0f} s; requests a '
               'transaction '
               f'{sum(asked.values()) / len(self.of_world.committed):.1f}, bytes '
               f'{volume / len(self.of_world.committed):.0f}; '
               f'requests {asked}, refused by the limit {self.limit.refused} of '
               f'{self.limit.asked}; longest standstill '
               + ', '.join(f'{a} {self.still(a):.1f} s' for a in ('alice', 'bob')))
