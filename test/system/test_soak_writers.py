"""16 writers, each a process, at all three isolation levels: random delays before the commit,
every tenth rolled back, conflicts that are tried again, several accounts and priorities, and a
relay that takes the rows meanwhile. Against the chain: nothing lost, nothing twice, nothing of a
transaction that was rolled back.

The order that is promised: if B's enqueue began after A's commit, and both are of one account and
priority, A has the lower nonce. Whoever enqueued them: the clock is the machine's, so it is
checked over all writers and not only within each.

./dev soak writers: 100,000 transactions. The system lane: 4,000."""
import os
import sys
import time
import unittest
from collections import Counter, defaultdict
from typing import NamedTuple

from harness import proc
from harness.soak import WIDE_CHAIN, report, size
from harness.world import ALICE, BOB, World
from harness.writer import TABLES, call_of

WRITERS = 16
TRANSACTIONS = size(100_000, 4_000)
CHARLIE = ('charlie', 'ed25519', '//Charlie')
ACCOUNTS = (ALICE, BOB, CHARLIE)


class Order(NamedTuple):
    name: str
    alias: str
    priority: int
    tx: int
    sent: int   # enqueue began after this
    known: int  # the commit was done before this


def parse(lines):
    """(end, tries, orders) of each transaction."""
    for line in lines:
        end, tries, *orders = line.split()
        yield end, int(tries), [Order(n, a, *map(int, rest))
                                for n, a, *rest in (o.split(',') for o in orders)]


def overtaken(orders, nonces):
    """Pairs (A, B) of an account and priority where B began after A's commit and has the lower
    nonce: one for each such A."""
    lines, found = defaultdict(list), []
    for order in orders:
        lines[order.alias, order.priority].append(order)
    for line in lines.values():
        latest = None  # of those with a lower nonce, the one that began last
        for order in sorted(line, key=lambda o: nonces[o.tx]):
            if latest and order.known < latest.sent:
                found.append((order, latest))
            if not latest or order.sent > latest.sent:
                latest = order
    return found


class Check(unittest.TestCase):
    """The judge itself."""

    def test_it_finds_what_is_out_of_order(self):
        a, b, c = Order('a', 'x', 0, 1, 10, 20), Order('b', 'x', 0, 2, 30,
                                                       40), Order('c', 'x', 0, 3, 15, 60)
        other, high = Order('o', 'y', 0, 4, 70, 80), Order('h', 'x', 5, 5, 70, 80)
        self.assertEqual(overtaken([a, b, c, other, high], {1: 3, 2: 4, 3: 5, 4: 0, 5: 0}), [])
        self.assertEqual(overtaken([a, b, c], {3: 0, 1: 1, 2: 2}), [], 'c was concurrent with both')
        self.assertEqual(overtaken([a, b, c], {2: 0, 3: 1, 1: 2}), [(a, b)])


class Soak(unittest.TestCase):
    def setUp(self):
        self.world = World('--instant', '--instant-delay-ms', '5', '--finality-lag', '0',
                           *WIDE_CHAIN, accounts=ACCOUNTS)
        self.addCleanup(self.world.close)
        self.world.pg.query(TABLES)
        relay = self.world.relay('one')
        for alias, _, _ in ACCOUNTS:
            self.world.wait_leader(relay, alias)

    def write(self):
        """All writers to their end: what each transaction came to."""
        share, aliases = TRANSACTIONS // WRITERS, [a for a, _, _ in ACCOUNTS]
        writers = []
        for number in range(WRITERS):
            path = os.path.join(self.world.dir, f'writer-{number}.out')
            with open(path, 'wb') as out:
                writers.append((path, proc.Process(
                    [sys.executable, '-m', 'harness.writer', self.world.pg.dsn, str(number),
                     str(share), *aliases],
                    os.path.join(self.world.dir, f'writer-{number}.log'), stdout=out,
                    cwd=os.path.join(proc.ROOT, 'test'))))
        for path, writer in writers:
            self.assertEqual(writer.child.wait(1800), 0, writer.text()[-2000:])
        ends = []
        for path, _ in writers:
            with open(path) as lines:
                ends += parse(lines)
        return ends

    def test_writers(self):
        begun = time.monotonic()
        ends = self.write()
        written = time.monotonic() - begun
        self.assertEqual(len(ends), TRANSACTIONS // WRITERS * WRITERS)
        orders = [o for end, _, found in ends if end == 'COMMIT' for o in found]
        table = dict(self.world.pg.query('SELECT name, tx FROM public.orders'))
        self.assertEqual(table, {o.name: o.tx for o in orders},
                         'what the writers were told is what is committed')
        self.assertEqual(len(set(table.values())), len(table), 'one id an order')
        idle = ('SELECT NOT EXISTS (SELECT FROM txrelay.outbox) AND NOT EXISTS (SELECT '
                'FROM txrelay.pending_transactions)')
        proc.wait_for('every transaction to end', lambda: self.world.pg.value(idle), 900, 0.2)
        relayed = time.monotonic() - begun
        self.world.committed = {call_of(name): tx for name, tx in table.items()}
        self.world.rolled_back = [call_of(o.name) for end, _, found in ends if end == 'ROLLBACK'
                                  for o in found]
        figures = self.world.check()
        self.assertEqual(figures, {'finalized': len(table), 'failed': 0, 'duplicates': 0,
                                   'missing': 0, 'gaps': 0,
                                   'rolled_back_sent': 0})
        self.assertEqual(self.world.pg.value('SELECT count(*) FROM txrelay.finished_transactions'),
                         len(table))
        nonces = dict(self.world.pg.query('SELECT id, nonce FROM txrelay.finished_transactions'))
        broken = overtaken(orders, nonces)
        self.assertEqual(broken[:3], [], f'{len(broken)} were overtaken')
        self.tell(ends, orders, nonces, written, relayed)

    def tell(self, ends, orders, nonces, written, relayed):
        """How much there was to go wrong, too: conflicts, and neighbours whose ids and commits are
        not in one order."""
        count, tries = Counter(end for end, _, _ in ends), sum(tries - 1 for _, tries, _ in ends)
        by_line = sorted(orders, key=lambda o: (o.alias, o.priority, nonces[o.tx]))
        pairs = [(a, b) for a, b in zip(by_line, by_line[1:])
                 if (a.alias, a.priority) == (b.alias, b.priority)]
        late = sum(a.known > b.known for a, b in pairs)
        behind = sum(a.tx > b.tx for a, b in pairs)
        self.assertGreater(late, 0)
        self.assertGreater(tries, 0)
        report(f'{len(ends)} transactions of {WRITERS} writers in {written:.0f} s '
               f'({count["COMMIT"]} committed, '
               f'{count["ROLLBACK"]} rolled back, {tries} serialization failures tried again), '
               f'{len(orders)} calls final after '
               f'{relayed:.0f} s on {len(ACCOUNTS)} accounts: 0 lost, 0 doubled, 0 of a '
               'rolled-back one, 0 out of causal order; of '
               f'{len(pairs)} neighbours {late} were committed in the other order than enqueued, '
               f'{behind} got nonces in the other '
               'order than ids')


if __name__ == '__main__':
    unittest.main()
