"""An operator's transaction that stays open keeps one account's row locked. That account waits;
the others of the same relay go on (I10), and nobody's lead is lost but perhaps its own."""
import time
import unittest

from harness import proc
from harness.world import ALICE, World

BOB = ('bob', 'ed25519', '//Bob')


class RowLock(unittest.TestCase):
    def locked(self, world):
        operator = world.pg.connect()
        operator.autocommit = False
        operator.cursor().execute("SELECT txrelay.account_policy('bob', '{}')")
        return operator

    def ended(self, world, ids, seconds):
        started = time.monotonic()
        proc.wait_for('them to end', lambda: not set(ids) & set(world.unfinished()), seconds, 0.02)
        return time.monotonic() - started

    def others_go_on(self, world, relay):
        """While bob's row is locked: rounds of alice's, and bob's wait. Then all end."""
        operator = self.locked(world)
        waits = [world.enqueue(f'bob {i}', 'bob') for i in range(3)]
        took = [self.ended(world, [world.enqueue(f'alice {i} {n}') for n in range(5)], 20)
                for i in range(6)]
        self.assertEqual(set(waits) & set(world.unfinished()), set(waits))
        operator.rollback()
        resumed = self.ended(world, waits, 60)
        print(f'\nalice beside a locked row: {", ".join(f"{t:.2f}" for t in took)} s; bob after it '
              f'{resumed:.2f} s')
        self.assertLess(sorted(took)[len(took) // 2], 2)
        self.assertNotIn('leader.lost account=alice', relay.text())
        world.settle()

    def world(self):
        world = World(accounts=(ALICE, BOB))
        self.addCleanup(world.close)
        relay = world.relay('r0')
        proc.wait_for('both accounts', lambda: relay.text().count('=account.ready ') == 2, 30)
        return world, relay

    def test_before_the_first_renewal(self):
        """The claim is not leased yet: the renewal would write the row."""
        self.others_go_on(*self.world())

    def test_while_it_is_led(self):
        world, relay = self.world()
        proc.wait_for('the lease', lambda: world.pg.value('SELECT bool_and(leased) '
                                                          'FROM txrelay.leadership'), 30)
        self.ended(world, [world.enqueue(f'{a} first', a) for a in ('alice', 'bob')], 30)
        self.others_go_on(world, relay)
        self.assertNotIn('leader.lost', relay.text())


if __name__ == '__main__':
    unittest.main()
