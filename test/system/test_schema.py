"""A database whose schema is not that of the program: run and check name the difference and the
way out, migrate mends what it can, and nobody leads before."""
import os
import threading
import unittest

import psycopg2

from harness import proc
from harness.chain import remark
from harness.relay import cli
from harness.world import World

BY_HAND = ('REVOKE EXECUTE ON FUNCTION txrelay.leader_claim FROM txrelay_relay',
           'DROP FUNCTION txrelay.leader_renew',
           "CREATE OR REPLACE FUNCTION txrelay.mid_submission(p_subject int) RETURNS boolean "
           "LANGUAGE sql AS 'SELECT false'")


def read_until_it_is_canceled(reader):
    try:
        reader.cursor().execute('SELECT count(*), pg_sleep(3600) FROM txrelay.transactions')
    except psycopg2.errors.QueryCanceled:
        pass


class Schema(unittest.TestCase):
    def refused(self, relay, *words):
        """By run, which ends, and by check, in the same words."""
        for command in ('run', 'check'):
            done = cli(command, '--config', relay.config, check=False)
            self.assertEqual(done.returncode, 1, command)
            for word in words:
                self.assertIn(word, done.stdout + done.stderr, command)

    def test_changed_by_hand(self):
        with World() as world:
            relay = world.relay('one', start=False)
            for change in BY_HAND:
                world.pg.query(change)
                self.refused(relay, 'changed by hand', 'run txrelay migrate')
                self.assertIn('applied again', cli('migrate', '--config', relay.config).stdout)
                self.assertIn('nothing to do', cli('migrate', '--config', relay.config).stdout)
                cli('check', '--config', relay.config)
            relay.start()
            world.wait_leader(relay)
            world.enqueue('as ever')
            world.settle()

    def test_the_lock_of_migrations_in_other_hands(self):
        """Any login may take an advisory lock. migrate does not wait for it for ever, and names
        who keeps it."""
        with World() as world:
            relay = world.relay('one', start=False)
            world.pg.query(f"ALTER DATABASE {world.pg.value('SELECT current_database()')} "
                           "SET txrelay.migration_wait = '200ms'")
            keeper = psycopg2.connect(world.pg.dsn, application_name='a keeper')
            keeper.cursor().execute('SELECT pg_advisory_lock(9002, 0)')
            done = cli('migrate', '--config', relay.config, check=False)
            self.assertEqual(done.returncode, 1)
            for word in ('kept the lock of migrations', f'backend {keeper.info.backend_pid}',
                         'a keeper', 'pg_terminate_backend'):
                self.assertIn(word, done.stdout + done.stderr)
            keeper.close()
            self.assertIn('nothing to do', cli('migrate', '--config', relay.config).stdout)

    def test_a_long_report_holds_up_no_application(self):
        """migrate needs locks that a running
        SELECT has. It waits for them in short tries, between which applications enqueue and the
        relay sends; it names the report; and it ends once the report has ended."""
        with World() as world:
            relay = world.relay('one')
            world.wait_leader(relay)
            database = world.pg.value('SELECT current_database()')
            world.pg.query(f"ALTER DATABASE {database} SET txrelay.migration_wait = '1h'")
            world.pg.query(BY_HAND[2])
            reader = psycopg2.connect(world.pg.dsn, application_name='the report')
            backend = reader.info.backend_pid
            report = threading.Thread(target=read_until_it_is_canceled, args=[reader], daemon=True)
            report.start()
            proc.wait_for('the report to read', lambda: world.pg.value(
                "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'",
                [backend]))
            migrate = proc.Process([proc.TXRELAY, 'migrate', '--config', relay.config],
                                   os.path.join(world.dir, 'migrate.log'))
            proc.wait_for('the second try', lambda: 'tries=2' in migrate.text())
            application = world.pg.connect()
            self.addCleanup(application.close)
            with application.cursor() as cur:
                cur.execute("SET lock_timeout = '60s'")
                for number in range(20):
                    call = remark(f'beside the report {number}')
                    cur.execute("SELECT txrelay.enqueue('alice', %s)", [call])
                    world.committed[call] = cur.fetchone()[0]
            world.settle()
            self.assertTrue(migrate.alive(), migrate.text())
            self.assertIn(f'backend {backend} (user postgres, application the report',
                          migrate.text())
            world.pg.query('SELECT pg_cancel_backend(%s)', [backend])
            report.join()
            self.assertEqual(migrate.child.wait(120), 0, migrate.text())
            self.assertIn('applied again', migrate.text())
            reader.close()

    def test_functions_of_another_build(self):
        with World() as world:
            relay = world.relay('one', start=False)
            ours = world.pg.value('SELECT checksum FROM txrelay.schema_functions')
            world.pg.query("UPDATE txrelay.schema_functions SET checksum = md5('older')")
            self.refused(relay, world.pg.value("SELECT left(md5('older'), 16)"), ours[:16],
                         'run txrelay migrate')
            cli('migrate', '--config', relay.config)
            cli('check', '--config', relay.config)

    def test_older(self):
        with World() as world:
            relay = world.relay('one', start=False)
            last = world.pg.value('DELETE FROM txrelay.schema_version '
                                  'WHERE version = (SELECT max(version) FROM '
                                  'txrelay.schema_version) RETURNING version')
            self.refused(relay, f'version {last - 1}, this program needs {last}',
                         'run txrelay migrate')

    def test_an_edited_migration(self):
        with World() as world:
            relay = world.relay('one', start=False)
            ours = world.pg.value('SELECT checksum FROM txrelay.schema_version WHERE version = 1')
            world.pg.query(
                "UPDATE txrelay.schema_version SET checksum = 'edited' WHERE version = 1")
            words = ('0001_init.sql', 'edited', ours[:16], 'another build')
            self.refused(relay, *words)
            done = cli('migrate', '--config', relay.config, check=False)
            self.assertEqual(done.returncode, 1)
            for word in words:
                self.assertIn(word, done.stderr)

    def test_changed_under_a_relay_that_runs(self):
        """At its next connect, or at the next statement that fails by it, the relay stops, says
        why, and goes on once migrate has been run."""
        cut = ('SELECT pg_terminate_backend(pid) FROM pg_stat_activity '
               'WHERE datname = current_database() AND pid <> pg_backend_pid()')
        for changes in ((BY_HAND[0], cut), (BY_HAND[1],), ('DROP FUNCTION txrelay.leader_due',)):
            with self.subTest(changes), World() as world:
                relay = world.relay('one')
                world.wait_leader(relay)
                for change in changes:
                    world.pg.query(change)
                proc.wait_for('the reason in its log', lambda: 'changed by hand' in relay.text())
                proc.wait_for('it to lead no more', lambda: not relay.leads('alice'))
                self.assertTrue(relay.alive())
                cli('migrate', '--config', relay.config)
                world.wait_leader(relay)
                world.enqueue('as ever')
                world.settle()


if __name__ == '__main__':
    unittest.main()
