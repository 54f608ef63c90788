"""A physical standby is promoted while the old primary still runs, so that the lock can be had
twice (docs/design.md, section 4). The application goes over to the new primary; one relay stays at
the old one, another goes to the new one. On the chain nothing may happen twice and no nonce may be
used for two transactions."""
import os
import re
import signal
import time
import unittest

from harness import proc
from harness.application import Application
from harness.chain import remark
from harness.leadership import LeadWorld, Server, kill, log_times
from harness.patroni import processes_under, signal_all
from harness.postgres import PG_SH
from harness.standby import Standby

class Promoted(unittest.TestCase):
    lost_commits = 'wait'

    def setUp(self):
        server = Server()
        self.world = LeadWorld('--block-ms', '100', postgres=server)
        self.world.leadership = {**self.world.leadership, 'lost_commits': self.lost_commits}
        self.addCleanup(self.world.close)
        self.old = self.world.pg
        self.standby = Standby(self.old)
        self.addCleanup(server.stop)
        self.addCleanup(self.standby.stop)
        both = [self.old.dir, self.standby.dir]
        self.first = self.world.relay('first', dsn=self.multi(both))
        self.world.ready(self.first)
        self.second = self.world.relay('second', dsn=self.multi(both[::-1]))
        self.second.wait_log('relay.running')
        self.world.enqueue_together([f'before {i}' for i in range(10)])
        self.settle_at(self.old)

    def multi(self, directories):
        return (f"host={','.join(directories)} port={','.join(['5432'] * len(directories))} "
                "user=postgres "
                f'dbname={self.world.pg.database}')

    def settle_at(self, pg, seconds=60):
        """Every transaction of the application has ended in this database; the invariants of it
        against the chain."""
        self.world.pg = pg
        return self.world.settle(seconds)

    def calls(self):
        return [x.call for _, _, _, x in self.world.chain.walk()]

    def promote(self):
        """The application writes to the new primary from here on. The second relay comes back, and
        finds it first."""
        self.standby.promote()
        self.world.pg = self.standby
        self.world.server_log, self.world.server_log_from = f'{self.standby.dir}/server.log', 0
        kill(self.second)
        readies = self.second.text().count('account.ready')
        self.second.start()
        proc.wait_for('the second to lead',
                      lambda: self.second.text().count('account.ready') > readies, 30)
        proc.wait_for('each to lead, in its own database', lambda: (
            self.first.leads('alice') and self.second.leads('alice')))

    def alerts(self, relay):
        return [line for line in relay.text().splitlines() if 'account.alert' in line]


class Lossless(Promoted):
    """An operator who knows that no commit is lost has told the relays not to wait."""
    lost_commits = 'search'

    def test_160_promoted_with_all_commits(self):
        """Ten pending transactions have two leaders. Both know the same bytes."""
        world = self.world
        world.chain.rpc('dev_pause')
        world.enqueue_together([f'pending {i}' for i in range(10)])
        proc.wait_for('ten in the pool', lambda: world.chain.rpc('dev_stats', {})['ready'] == 10)
        proc.wait_for('ten stored as ready', lambda: self.old.value(
            "SELECT count(*) FROM txrelay.pending_transactions WHERE state = 'ready'") == 10)
        self.standby.caught_up(self.old)
        self.promote()
        world.enqueue_together([f'after {i}' for i in range(5)])
        world.chain.rpc('dev_resume')
        figures = self.settle_at(self.standby)
        self.assertEqual(figures['finalized'], 25)
        self.assertEqual(world.chain.rpc('dev_stats', {})['max_hashes_per_nonce'], 1)
        proc.run([PG_SH, 'stop', self.old.dir, 'immediate'])
        kill(self.second)
        proc.wait_for('the first to find the new primary',
                      lambda: self.first.status() and self.first.status()['database']
                      and self.first.leads('alice') and world.epoch() > 2, 40)
        world.enqueue_together(['the old one is gone'])
        print(f'\n  promoted with all commits: {self.settle_at(self.standby)}')

    def test_161_synchronous_standby_loses_nothing(self):
        """The primary is killed under load and what it had sent last is lost on the way: only what
        the standby had was ever told to anybody, application or relay, so that it can take its
        place as if nothing had happened."""
        world = self.world
        world.pg.query("ALTER SYSTEM SET synchronous_standby_names = '*'")
        world.pg.value('SELECT pg_reload_conf()')
        proc.wait_for('the standby to be waited for', lambda: self.old.query(
            "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"), 30)
        # a commit that did not wait for it would be far ahead
        self.standby.stream.set('pass', delay_s=0.05)
        application = Application(world, self.multi([self.old.dir, self.standby.dir])
                                  + ' target_session_attrs=read-write')
        application.start()
        self.addCleanup(application.stop)
        proc.wait_for('some to be committed', lambda: len(application.commits) > 40, 60)
        before, when = len(application.commits), time.time()
        self.standby.cut()
        signal_all(processes_under(int(proc.run([PG_SH, 'pid', self.old.dir]).stdout)),
                   signal.SIGKILL)
        self.standby.promote()
        world.pg = self.standby
        ready = proc.wait_for('a leader there',
                              lambda: [t for r in world.relays
                                       for t in log_times(r.text(), 'account.ready')
                                                         if t > when], 60)
        proc.wait_for('more to be committed', lambda: len(application.commits) > before + 40, 60)
        application.stop()
        self.assertIsNone(application.failed)
        figures = self.settle_at(self.standby)
        self.assertEqual(figures['duplicates'] + figures['missing'] + figures['gaps'], 0)
        self.assertEqual([a for r in world.relays for a in self.alerts(r)], [],
                         'nobody has missed anything')
        print(f'\n  synchronous, primary killed after {before} commits: led again after '
              f'{min(ready) - when:.1f} s; {figures}')


class Lossy(Promoted):
    def test_160_161_promoted_without_the_last_ten_commits(self):
        """Ten transactions are on the chain that the new primary never heard of. Their nonces are
        not used again, and the log says so; nothing is left of them in the new database, since
        there is nothing to adopt them by."""
        world = self.world
        self.standby.caught_up(self.old)
        self.standby.cut()
        lost = [remark(f'lost {i}') for i in range(10)]
        kept = dict(world.committed)
        for i in range(10):
            world.enqueue(f'lost {i}')
        self.settle_at(self.old)
        world.committed = kept
        world.foreign |= {x.hash for _, _, _, x in world.chain.walk() if x.call in lost}
        self.assertEqual(len(world.foreign), 10)
        self.promote()
        world.enqueue_together([f'after {i}' for i in range(5)])
        figures = self.settle_at(self.standby)
        calls = self.calls()
        self.assertEqual(len(calls), len(set(calls)), 'nothing twice')
        self.assertTrue(any('the database lost commits' in a for a in self.alerts(self.second)),
                        self.alerts(self.second))
        self.assertEqual(world.pg.value('SELECT min(nonce) FROM txrelay.finished_transactions '
                                        'WHERE id = ANY (%s)',
                                        ([world.committed[remark(f'after {i}')] for i in range(5)],
                                         )), 20)
        print(
            f'\n  promoted without ten commits: {figures}, alerts {len(self.alerts(self.second))}')

    def test_160_the_admissions_are_lost_but_not_the_transactions(self):
        """The outbox rows were replicated, what the leader did with them was not. The new leader
        reads the blocks since the last renewal that was replicated, and adopts what it finds by
        its call, before it admits anything."""
        world = self.world
        world.pg.value("SELECT txrelay.account_pause('alice', 'the test collects')")
        world.enqueue_together([f'twice {i}' for i in range(10)])
        self.standby.caught_up(self.old)
        self.standby.cut()
        world.pg.value("SELECT txrelay.account_resume('alice')")
        self.settle_at(self.old)
        self.promote()
        world.pg.value("SELECT txrelay.account_resume('alice')")
        proc.wait_for('the outbox to be empty',
                      lambda: not world.pg.value('SELECT count(*) FROM txrelay.outbox'))
        proc.wait_for('all to end', lambda: not world.unfinished())
        calls = self.calls()
        print(f'\n  admissions lost: {len(calls) - len(set(calls))} of 10 took effect twice; '
              f'alerts {self.alerts(self.second)}')
        self.assertEqual(len(calls), len(set(calls)), 'nothing twice')

    def test_what_lost_commits_have_sent_is_waited_for(self):
        """Bytes that a lost commit had sent are in no block and no pool when the new leader looks,
        and come back later. It ends and sends nothing before their eras are over; it says for how
        long, and a successor goes on with the same wait."""
        world = self.world
        world.pg.value("SELECT txrelay.account_pause('alice', 'the test collects')")
        late, never = world.enqueue('late'), world.enqueue('never')
        self.standby.caught_up(self.old)
        self.standby.cut()
        world.chain.rpc('dev_pause')
        world.pg.value("SELECT txrelay.account_resume('alice')")
        proc.wait_for('both in the pool', lambda: world.chain.rpc('dev_stats', {})['ready'] == 2)
        raw = bytes(self.old.value('SELECT extrinsic FROM txrelay.attempts WHERE id = %s', (late,)))
        kill(self.first)
        kill(self.second)
        proc.run([PG_SH, 'stop', self.old.dir, 'immediate'])
        world.chain.rpc('dev_dropPool')
        self.standby.promote()
        world.pg = self.standby
        world.server_log, world.server_log_from = f'{self.standby.dir}/server.log', 0
        self.assertEqual(world.pg.value('SELECT txrelay.cancel(%s)', (never,)), 'requested',
                         'before anybody has claimed')
        world.pg.value("SELECT txrelay.account_resume('alice')")
        self.second.start()
        world.wait_leader(self.second)
        world.chain.rpc('dev_resume')
        until = int(self.second.wait_log(
            r'before block (\d+) is final and read, which is \d+ blocks').group(1))
        world.chain.rpc('author_submitExtrinsic', '0x' + raw.hex())
        # The leader writes what it waits for after it has logged it.
        told = lambda pattern: proc.wait_for(pattern, lambda: any(  # noqa: E731
            re.search(pattern, reason or '')
            for reason, in world.pg.query('SELECT reason FROM txrelay.blocked_accounts')))
        told(rf'ended before block {until} is final and read; \d+ blocks are left')
        kill(self.second)
        self.second.start()
        # noqa: E731
        waits = lambda: next(({**a} for a in (self.second.status() or {}).get('accounts', [])
                              if a['phase'] == 'era_wait' and 0 < a['wait_blocks'] <= 66), None)
        # First it reads again what is final already, which counts as left.
        left = proc.wait_for('the successor to go on with the wait', waits)['wait_blocks']
        told(f'ended before block {until} is final')
        proc.wait_for('both to end', lambda: not world.unfinished(), 60)
        self.assertIn(f'the wait after lost commits is over: every block up to {until}',
                      self.second.text())
        self.assertEqual(set(re.findall(r'before block (\d+) is final and read, which',
                                        self.second.text())), {str(until)})
        self.assertEqual([self.calls().count(remark(c)) for c in ('late', 'never')], [1, 0])
        self.assertEqual(world.pg.query('SELECT outcome::text FROM txrelay.finished_transactions '
                                        'WHERE id IN (%s, %s) ORDER BY id',
                                        (late, never)), [('ok',), ('cancelled',)])
        # What held it for a moment (a nonce is asked for again, say) leaves with the block that
        # answers it.
        proc.wait_for('nothing to be blocked',
                      lambda: not world.pg.query('SELECT * FROM txrelay.blocked_accounts'))
        print(f'\n  waited up to block {until}; {left} blocks were left for the successor')


if __name__ == '__main__':
    unittest.main()
