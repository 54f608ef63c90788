"""kill -9 of the leader at each of the four points around a submission (rows 126 and 127 of
test/cases.md): I1, I2, I3 and I6 hold on the chain after every round. Eight rounds, one for each
arrival at the point; TXRELAY_KILL_ROUNDS for more."""
import os
import unittest
from concurrent.futures import ThreadPoolExecutor

from harness import proc
from harness.world import World

ROUNDS = int(os.environ.get('TXRELAY_KILL_ROUNDS', '8'))
PER_ROUND = 8


def rounds(point):
    with World() as world:
        for number in range(ROUNDS):
            # The nth arrival: the first transaction, one in the middle, the last ones.
            nth = 1 + number % (PER_ROUND if point != 'after_admit' else 2)
            if point == 'after_admit':
                nth = 1
            victim = world.relay(f'{point}-{number}-a',
                                 env={'TXRELAY_FAILPOINT': f'{point}:{nth}:kill'})
            world.wait_leader(victim)
            heir = world.relay(f'{point}-{number}-b')
            heir.wait_log('relay.running')
            for i in range(PER_ROUND):
                world.enqueue(f'{point} {number} {i}')
            proc.wait_for(f'{point} round {number}: the victim to die', lambda: not victim.alive(),
                          30)
            world.settle()
            heir.stop()
        doubted = [r.name for r in world.relays if 'node.unconfirmed' in r.text()]
        return {**world.check(), 'doubted': doubted}


class KillPoints(unittest.TestCase):
    def test_kill_at_each_point(self):
        points = ['after_admit', 'before_send', 'after_send', 'after_reply']
        with ThreadPoolExecutor(len(points)) as pool:
            for point, figures in zip(points, pool.map(rounds, points)):
                print(f'\n  {point}: {ROUNDS} kills, {figures}')
                self.assertEqual(figures['finalized'], ROUNDS * PER_ROUND, point)
                self.assertEqual((figures['duplicates'], figures['missing'], figures['gaps']),
                                 (0, 0, 0), point)
                self.assertEqual(figures['doubted'], [], 'an honest node answers once: a takeover '
                                                         'waits for no second answer')


if __name__ == '__main__':
    unittest.main()
