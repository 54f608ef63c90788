"""The data moves between two real servers: logical replication with a cut-over, and a standby with
another clock that takes over. Ids, transactions and readers go on as if nothing had happened."""
import os
import signal
import time
import unittest

import psycopg2

from harness import faketime, proc
from harness.application import Application
from harness.chain import remark
from harness.followers import TailFollower
from harness.leadership import LeadWorld, Server, freeze, log_times, thaw
from harness.patroni import processes_under, signal_all
from harness.postgres import PG_SH
from harness.relay import cli
from harness.standby import Standby

TABLES = '''SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'txrelay'::regnamespace
            AND c.relkind IN ('r', 'p')
            AND NOT c.relispartition AND c.relname NOT IN ('schema_version', 'schema_functions')
            ORDER BY 1'''


class Moved(unittest.TestCase):
    def readers(self, world, dsn=None):
        """One that stays connected, and one that has a position and is away. Both have heard
        everything until now."""
        both = [TailFollower(world, name) for name in ('stays', 'away')]
        for reader in both:
            reader.dsn = (dsn or world.pg.dsn).replace('user=postgres', f'user={reader.user}')
            self.addCleanup(reader.close)
            reader.start()
            reader.wait_lives(1)
        world.enqueue_together([f'before {i}' for i in range(10)])
        world.settle()
        for reader in both:
            self.hears_all(world, reader)
        both[1].kill_process()
        return both

    def hears_all(self, world, reader):
        """The reader's view has every end, once, and only ends that are in the table."""
        proc.wait_for(f'{reader.name} to hear every end', lambda: set(world.committed.values()) <= {
            tx for tx, (_, outcome) in reader.look().last.items() if outcome == 'ok'}, 120)


class LogicalReplication(Moved):
    def cut_over(self, old, new):
        """Returns when the new server has all that is committed in the old one; nothing connects
        them any more."""
        goal = old.value('SELECT pg_current_wal_lsn()')
        proc.wait_for('every table to be copied',
                      lambda: not new.query(
                          "SELECT 1 FROM pg_subscription_rel WHERE srsubstate <> 'r'"))
        proc.wait_for('the new server to have all', lambda: old.value(
            "SELECT bool_and(replay_lsn >= %s) FROM pg_stat_replication "
            "WHERE application_name = 'moves'", (goal,)))
        new.query('DROP SUBSCRIPTION moves')

    def subscribe(self, old, new):
        """The tables of the new server, which has the schema, receive what the old server's
        have."""
        tables = [name for name, in old.query(TABLES)]
        self.assertEqual(tables, [name for name, in new.query(TABLES)])
        names = ', '.join(f'txrelay.{name}' for name in tables)
        old.query(f'CREATE PUBLICATION moves FOR TABLE {names} WITH (publish_via_partition_root '
                  '= true)')
        for name in tables:  # migrate has put a row into some
            if new.value(f'SELECT count(*) FROM txrelay.{name}'):
                new.query(f'DELETE FROM txrelay.{name}')
        new.query(f"CREATE SUBSCRIPTION moves CONNECTION '{old.dsn}' PUBLICATION moves")

    def test_cut_over(self):
        old_server, new = Server('-c', 'wal_level=logical'), Server()
        self.addCleanup(new.stop)
        self.addCleanup(old_server.stop)
        with LeadWorld(postgres=old_server) as world:
            old = world.pg
            first = world.ready(world.relay('first'))
            readers = self.readers(world)
            old.query("INSERT INTO txrelay.leadership_history (subject, epoch, holder, at) "
                      "SELECT 1, 0, 'before', clock_timestamp() "
                      "FROM generate_series(1, 3)")
            self.subscribe(old, new)
            world.chain.rpc('dev_pause')
            world.enqueue_together([f'in flight {i}' for i in range(10)])
            proc.wait_for('ten stored as ready', lambda: old.value(
                "SELECT count(*) FROM txrelay.pending_transactions WHERE state = 'ready'") == 10)
            self.assertEqual(first.stop(), 0)
            world.enqueue_together([f'waits {i}' for i in range(5)])
            keyed = "SELECT txrelay.enqueue('alice', %s, key => 'once')"
            key_id = world.committed[remark('with a key')] = old.value(keyed,
                                                                       (remark('with a key'),))
            readers[0].kill_process()  # its host is told the new server's name
            self.cut_over(old, new)
            old_server.stop()
            given = max(world.committed.values())
            self.assertEqual(new.query("SELECT DISTINCT pg_sequence_last_value(s.oid) "
                                       "FROM pg_class s WHERE s.relkind = 'S' "
                                       "AND s.relnamespace = 'txrelay'::regnamespace"), [(None,)])

            world.pg = new
            with self.assertRaises(psycopg2.Error) as refused:
                new.value("SELECT txrelay.enqueue('alice', %s)", (remark('too early'),))
            self.assertEqual(refused.exception.pgcode, 'TR014')
            second = world.relay('second', start=False)
            self.assertRegex(cli('check', '--config', second.config, check=False).stdout,
                             r'BAD +ids +the sequence is \d+ behind')
            second.start()
            world.ready(second)
            self.assertEqual(new.value(keyed, (remark('with a key'),)), key_id)
            world.enqueue_together([f'after {i}' for i in range(5)])
            self.assertGreater(min(world.committed[remark(f'after {i}')] for i in range(5)), given)
            for reader in readers:
                new.query(f'CREATE ROLE {reader.user} LOGIN IN ROLE txrelay_follower')
                reader.dsn = new.dsn_of(new.database, reader.user)
                reader.start()
                reader.wait_lives(reader.view.lives + 1)
            world.chain.rpc('dev_resume')
            figures = world.settle()
            self.assertEqual(figures['finalized'], 31)
            self.assertEqual(world.chain.rpc('dev_stats', {})['max_hashes_per_nonce'], 1)
            for reader in readers:
                self.hears_all(world, reader)
            self.assertEqual(new.value('SELECT min(subject) || max(subject)::text '
                                       'FROM txrelay.leadership'), '11')
            self.assertNotIn('election.request_failed', second.text(),
                             'a claim whose number was given before')
            print(f'\n  cut over: {figures}')


@unittest.skipUnless(faketime.AVAILABLE, faketime.MISSING)
class AnotherClock(Moved):
    def world(self, lost_commits):
        server = Server()
        self.addCleanup(server.stop)
        world = LeadWorld('--block-ms', '100', postgres=server, manager={'era_period': 16})
        self.addCleanup(world.close)
        world.leadership = {**world.leadership, 'lost_commits': lost_commits}
        return world

    def set_clock(self, world, seconds):
        """Of the standby; its processes look once a second."""
        path = os.path.join(world.dir, 'clock')
        with open(path + '.new', 'w') as file:
            file.write(f'{seconds:+d}s\n')
        os.rename(path + '.new', path)
        return path

    def is_off(self, standby, seconds):
        shift = standby.value('SELECT extract(epoch FROM clock_timestamp())::float8') - time.time()
        return abs(shift - seconds) < 10

    def standby(self, world, seconds):
        standby = Standby(world.pg, faketime.environment(
            FAKETIME_TIMESTAMP_FILE=self.set_clock(world, seconds), FAKETIME_CACHE_DURATION='1',
            NO_FAKE_STAT='1'))
        self.addCleanup(standby.stop)
        self.assertTrue(self.is_off(standby, seconds))
        return standby

    def both(self, *servers):
        return (f'host={",".join(s.dir for s in servers)} port=5432,5432 user=postgres '
                f'dbname={servers[0].database}')

    def take_over(self, seconds, lost_commits):
        """The primary is killed under load. A synchronous standby whose clock differs by so many
        seconds is promoted."""
        world = self.world(lost_commits)
        old, standby = world.pg, self.standby(world, seconds)
        old.query("ALTER SYSTEM SET synchronous_standby_names = '*'")
        old.query('SELECT pg_reload_conf()')
        proc.wait_for('the standby to be waited for',
                      lambda: old.query(
                          "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"))
        dsn = self.both(old, standby)
        relays = [world.relay(name, dsn=dsn) for name in ('one', 'two')]
        proc.wait_for('a leader', world.leader)
        writes = dsn + ' target_session_attrs=read-write'
        readers = self.readers(world, writes)
        application = Application(world, writes)
        application.start()
        self.addCleanup(application.stop)
        proc.wait_for('some to be committed', lambda: len(application.commits) > 20)
        before, when = len(application.commits), time.time()
        signal_all(processes_under(int(proc.run([PG_SH, 'pid', old.dir]).stdout)), signal.SIGKILL)
        standby.promote()
        world.pg = standby
        ready = proc.wait_for('a leader there',
                              lambda: [t for r in relays
                                       for t in log_times(r.text(), 'account.ready') if t > when])
        proc.wait_for('more to be committed', lambda: len(application.commits) > before + 20)
        application.stop()
        self.assertIsNone(application.failed)
        world.settle()
        self.times(world)

        lead = proc.wait_for('a leader', world.leader)
        other = relays[1 - relays.index(lead)]
        claims = ('SELECT max(extract(epoch FROM expiry_2 - txrelay.steady_clock()))::float8 '
                  'FROM txrelay.leaders')
        self.assertLess(standby.value(claims), 5)  # expiry_2_ms is 4000
        hung = time.time()
        freeze(lead)
        proc.wait_for('the other to lead', lambda: other.leads('alice'))
        taken = time.time() - hung
        world.enqueue_together(['by the other'])
        thaw(lead)
        readers[1].start()
        readers[1].wait_lives(2)
        figures = world.settle()
        self.assertEqual(figures['duplicates'] + figures['missing'] + figures['gaps'], 0)
        for reader in readers:
            self.hears_all(world, reader)
        print(f'\n  clock {seconds:+d} s, {lost_commits}: led again after {min(ready) - when:.1f} '
              's, taken from a hung leader after '
              f'{taken:.1f} s; {figures}')
        return world

    def times(self, world):
        """Delays and deadlines that are given from now on are those of the new server's clock."""
        late = world.pg.value("SELECT txrelay.enqueue('alice', %s, delay => '1 s', expires_in => "
                              "'1 h')", (remark('late'),))
        world.committed[remark('late')] = late
        proc.wait_for('the delayed one to end', lambda: not world.unfinished())
        world.pg.query("SELECT txrelay.account_pause('alice', 'the test')")
        ends = world.pg.value("SELECT txrelay.enqueue('alice', %s, expires_in => '1 s')",
                              (remark('ends'),))
        outcome = "SELECT outcome::text FROM txrelay.finished_transactions WHERE id = %s"
        proc.wait_for('it to expire', lambda: world.pg.query(outcome, (ends,)) == [('expired',)])
        world.pg.query("SELECT txrelay.account_resume('alice')")

    def test_120_s_behind(self):
        world = self.take_over(-120, 'wait')
        proc.wait_for('the view to say so', lambda: world.pg.query(
            'SELECT relay, code FROM txrelay.blocked_relays') == [(None, 'clock')])

    def test_600_s_ahead(self):
        world = self.take_over(600, 'search')
        proc.wait_for('no relay to be blocked', lambda: not world.pg.query(
            'SELECT relay, code FROM txrelay.blocked_relays'))

    def test_600_s_ahead_when_commits_may_be_lost(self):
        """Eras are waited for, from the first final block that was made after the loss was found.
        By the new server's clock such a block is ten minutes away; the relay's clock and the
        blocks agree that it is not. Times that the application gave are those of the server that
        leads."""
        world = self.world('wait')
        old, standby = world.pg, self.standby(world, 600)
        relay = world.ready(world.relay('one', dsn=self.both(old, standby)))
        world.enqueue_together([f'before {i}' for i in range(10)])
        world.settle()
        old.query("SELECT txrelay.account_pause('alice', 'the test')")
        expires = old.value("SELECT txrelay.enqueue('alice', %s, expires_in => '300 s')",
                            (remark('expires'),))
        delayed = old.value("SELECT txrelay.enqueue('alice', %s, delay => '300 s')",
                            (remark('delayed'),))
        world.committed[remark('delayed')] = delayed
        standby.caught_up(old)
        signal_all(processes_under(int(proc.run([PG_SH, 'pid', old.dir]).stdout)), signal.SIGKILL)
        standby.promote()
        world.pg = standby
        standby.query("SELECT txrelay.account_resume('alice')")
        world.enqueue('after')
        until = int(relay.wait_log(r'before block (\d+) is final and read, which').group(1))
        proc.wait_for('both to end', lambda: not world.unfinished())
        self.assertRegex(relay.text(), 'the wait after lost commits is over: every block up to '
                                       f'{until}')
        outcome = "SELECT outcome::text FROM txrelay.finished_transactions WHERE id = %s"
        proc.wait_for('the other one to expire',
                      lambda: standby.query(outcome, (expires,)) == [('expired',)])
        self.assertEqual(standby.query(outcome, (delayed,)), [('ok',)])
        self.assertTrue(self.is_off(standby, 600))
        world.settle()


if __name__ == '__main__':
    unittest.main()
