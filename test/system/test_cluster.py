"""A Patroni cluster of three under load: a planned switchover, the primary killed, the primary
stopped and let run on when another has long taken its place. Three relays and the application have
one connection string that names all members; nobody tells them anything. synchronous_mode is on,
so no commit is lost, and the invariants must hold as if nothing had happened.

The system lane kills the primary; ./dev cluster runs all three (TXRELAY_CLUSTER=all)."""
import os
import re
import time
import unittest

import psycopg2

from harness import patroni, proc
from harness.application import Application
from harness.leadership import AUDIT, SLOW, LeadWorld, log_times
from harness.world import World

ALL = os.environ.get('TXRELAY_CLUSTER') == 'all'


class ClusterWorld(LeadWorld):
    def __init__(self, cluster):
        World.__init__(self, '--block-ms', '200', postgres=cluster,
                       leadership={'lost_commits': 'search'})
        self.pg.query(AUDIT)
        self.links = []


alone = unittest.skipUnless(ALL, 'the lane runs one of the three: ./dev cluster runs all')


@unittest.skipUnless(patroni.installed(), 'needs patroni and etcd-server')
class Cluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = patroni.Patroni()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()

    def setUp(self):
        self.cluster.whole()
        self.world = ClusterWorld(self.cluster)
        self.addCleanup(self.world.close)
        self.relays = [self.world.relay(n) for n in ('r0', 'r1', 'r2')]
        proc.wait_for('a leader', lambda: self.stamps('account.ready'), 30)
        self.application = Application(self.world, self.world.pg.dsn)
        self.application.start()
        self.addCleanup(self.application.stop)
        self.flows(50)

    def flows(self, more):
        """So many transactions more have ended."""
        done = lambda: self.ended() or 0  # noqa: E731
        begun, asked = done(), len(self.application.commits)
        try:
            proc.wait_for(f'{more} transactions to end', lambda: done() >= begun + more, 90, 0.1)
        except TimeoutError as error:
            self.fail(f'{error}; {done() - begun} ended, {len(self.application.commits) - asked} '
                      'were committed, the application: '
                      f'{self.application.failed} {self.application.errors[-3:]}; members '
                      f'{self.cluster.view()}\n'
                      + '\n'.join(line for r in self.relays
                                  for line in [f'-- {r.name}', *r.text().splitlines()[-25:]]))

    def ended(self):
        try:
            return self.world.pg.value('SELECT count(*) FROM txrelay.finished_transactions')
        except psycopg2.Error:
            return None  # no primary answers

    def stamps(self, event):
        return sorted(t for r in self.relays for t in log_times(r.text(), event))

    def moved(self, old, when):
        """Another primary, and a leader of the account who writes there."""
        new = proc.wait_for('another primary', lambda: (m := self.cluster.leader()) and m is not old
                            and m, 60, 0.05)
        promoted = time.time()
        ready = proc.wait_for('a leader',
                              lambda: [t for t in self.stamps('account.ready') if t > when], 90)[0]
        lost = [t for t in self.stamps('leader.lost') if when < t < ready]
        self.flows(50)
        return new, promoted - when, (lost[0] if lost else when), ready

    def ends(self, what, old, when, moved, within):
        """within: seconds from the new primary to a leader that works there."""
        new, promoted, lost, ready = moved
        self.cluster.whole(90)
        self.flows(20)
        self.application.stop()
        self.assertIsNone(self.application.failed)
        figures = self.world.settle()
        self.assertEqual(figures['duplicates'] + figures['missing'] + figures['gaps'], 0)
        epochs = [int(e) for r in self.relays
                  for e in re.findall(r'=leader\.acquired .*epoch=(\d+)', r.text())]
        self.assertEqual(len(epochs), len(set(epochs)), 'an epoch has one leader')
        self.assertLess(ready - when - promoted, within)
        print(f'\n  {what}: {old.name} -> {new.name}, another primary after {promoted:.1f} s, '
              'without a leader for '
              f'{ready - lost:.1f} s ({ready - when:.1f} s after it began), the application waited '
              f'{self.application.longest_wait():.1f} s at most; {figures}; errors it saw: '
              f'{sorted(set(self.application.errors))}')

    @alone
    def test_switchover(self):
        when = time.time()
        old, _ = self.cluster.switchover()
        self.ends('switchover', old, when, self.moved(old, when), 10 * SLOW)

    def test_primary_killed(self):
        """Its postgres and its patroni, kill -9. It comes back as a standby."""
        old, when = self.cluster.leader(), time.time()
        old.kill()
        moved = self.moved(old, when)
        old.start()
        self.ends('primary killed', old, when, moved, 10 * SLOW)

    @alone
    def test_primary_stopped(self):
        """SIGSTOP of its postgres and its patroni. When it runs on it takes itself for the primary
        until its patroni has looked."""
        old, when = self.cluster.leader(), time.time()
        old.freeze()
        moved = self.moved(old, when)
        old.thaw()
        # The control session is given up after 5 s, and takes the work session along.
        self.ends('primary stopped', old, when, moved, 12 * SLOW)


if __name__ == '__main__':
    unittest.main()
