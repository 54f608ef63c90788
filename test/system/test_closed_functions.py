"""R9: a managed server that keeps functions for itself, as not supported (0A000) or as not granted
(42501)."""
import unittest

from harness.relay import cli
from harness.world import World

CLOSED = ('pg_walfile_name(pg_lsn)', 'pg_current_wal_lsn()', 'pg_control_system()')


class Closed(unittest.TestCase):
    def close(self, world, how):
        world.pg.query('CREATE ROLE managed_%s LOGIN CREATEROLE' % how.lower())
        world.pg.query('ALTER SCHEMA txrelay OWNER TO managed_%s' % how.lower())
        for function in CLOSED:
            name = function.split('(')[0]
            if how == '0A000':
                result = world.pg.value('SELECT pg_get_function_result(%s::regprocedure)',
                                        (function,))
                world.pg.query(f'ALTER FUNCTION pg_catalog.{function} RENAME TO {name}_closed')
                world.pg.query(f"CREATE FUNCTION pg_catalog.{function} RETURNS "
                               f"{'record' if 'TABLE' in result else result} LANGUAGE plpgsql "
                               "AS 'BEGIN RAISE EXCEPTION USING ERRCODE = ''0A000'', MESSAGE = "
                               "''not supported''; END'")
            else:
                world.pg.query(f'REVOKE EXECUTE ON FUNCTION pg_catalog.{function} FROM PUBLIC')
        # No superuser owns the functions, or they might call all the same.
        world.pg.query("DO $$ DECLARE f regprocedure; BEGIN FOR f IN SELECT oid FROM pg_proc "
                       "WHERE pronamespace = 'txrelay'::regnamespace "
                       f"LOOP EXECUTE format('ALTER FUNCTION %s OWNER TO managed_{how.lower()}', "
                       "f); END LOOP; END $$")
        for kind in ('TABLES', 'SEQUENCES'):
            world.pg.query(f'GRANT ALL ON ALL {kind} IN SCHEMA txrelay TO managed_{how.lower()}')
        world.pg.query(f'GRANT pg_signal_backend, pg_read_all_stats TO managed_{how.lower()}')

    def test_the_main_job_with_closed_functions(self):
        for how in ('0A000', '42501'):
            with self.subTest(how), World() as world:
                self.close(world, how)
                first = world.relay('first')
                world.wait_leader(first)
                second = world.relay('second')
                second.wait_log('relay.running')
                done = cli('check', '--config', first.config, check=False)
                self.assertIn('pg_walfile_name', done.stdout)
                self.assertIn('warn  timeline', done.stdout)
                self.assertNotIn('may not end sessions', done.stdout)
                self.assertEqual(done.returncode, 0, done.stdout)
                world.pg.query(f'REVOKE pg_signal_backend FROM managed_{how.lower()}')
                done = cli('check', '--config', first.config)
                self.assertRegex(done.stdout, r'warn +rights +the schema.s owner '
                                              rf'managed_{how.lower()} may not end sessions.* '
                                              r'GRANT pg_signal_backend')
                world.enqueue('closed one')
                world.settle()
                first.kill()
                world.enqueue('closed two')
                world.settle()
                for relay in (first, second):
                    self.assertNotIn('database.down', relay.text())
                    self.assertNotIn('GRANT txrelay_relay', relay.text())

    def test_check_tries_what_a_relay_asks(self):
        """A function that it cannot do without, and that nobody opens."""
        with World() as world:
            world.pg.query('CREATE ROLE lone LOGIN IN ROLE txrelay_relay')
            world.pg.query('REVOKE EXECUTE ON FUNCTION pg_catalog.pg_notification_queue_usage() '
                           'FROM PUBLIC')
            relay = world.relay('one', start=False, dsn=world.pg.dsn_of(world.pg.database, 'lone'))
            done = cli('check', '--config', relay.config, check=False)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertRegex(done.stdout, r'BAD +database +permission denied for function '
                                          r'pg_notification_queue_usage')
            self.assertNotIn('GRANT txrelay_relay', done.stdout)


if __name__ == '__main__':
    unittest.main()
