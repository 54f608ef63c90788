"""The migrations install as they are, with least rights, also next to another migrator; nobody
gets more than his."""
import pathlib
import re
import subprocess
import unittest

import psycopg2

from pgcase import (FUNCTIONS, MIGRATIONS, PG_SH, Background, Case, Server, Session, h32, migrate,
                    wait_until)

PARTS_OF_VIEWS = {'row_holder', 'session_text', 'account_waits', 'turn_waits', 'account_blocks'}
FOLLOWER = {'status', 'history', 'counts', 'follow_position', 'account_of'} | PARTS_OF_VIEWS
APP = FOLLOWER | {'enqueue', 'enqueue_many', 'enqueue_signed', 'cancel', 'bump', 'retry'}
RELAY = APP | {'relay_register', 'timeline_known', 'ids_behind', 'repair_ids', 'clock_behind',
               'leader_claim', 'leader_renew', 'leader_release', 'leader_evict', 'leader_scan',
               'member_heartbeat',
               'leader_pause',
               'account_pause', 'account_resume', 'account_rewind', 'account_reconcile',
               'leader_adopt', 'leader_snapshot', 'leader_outbox', 'leader_admit', 'leader_attempt',
               'leader_record_status', 'leader_finish', 'leader_reject', 'leader_requeue',
               'leader_fill', 'leader_nonce', 'leader_heard',
               'leader_obstacles', 'relay_obstacle', 'leader_cleanup', 'leader_poll_requests',
               'leader_due', 'leader_account', 'leader_presigned', 'leader_note',
               'leader_admit_presigned', 'account_policy', 'account_grant', 'account_revoke',
               'lock_holder', 'queue_measure', 'ensure_partitions', 'drop_partitions',
               'feed_create', 'feed_publishers', 'feed_pause', 'feed_resume', 'feed_remove',
               'leader_feeds', 'leader_feed_take', 'token_create', 'token_revoke', 'token_use',
               'operate',
               'leader_site_setup', 'leader_site_load', 'leader_site_rows', 'leader_site_match',
               'leader_site_store', 'leader_site_note', 'account_unsite',
               'operate_many', 'relay_drained', 'relay_sent', 'http_cleanup', 'webhook_create',
               'webhook_remove', 'webhook_pause', 'webhook_resume',
               'webhook_rotate', 'webhook_again', 'webhook_row', 'http_time', 'http_span',
               'leader_webhooks', 'leader_webhooks_done'}
VIEWS = {'schema_version', 'schema_functions', 'transactions', 'leaders', 'blocked_accounts',
         'blocked_relays', 'follow_accounts', 'follow_pending',
         'follow_finished', 'follow_kept', 'follow_sources', 'feed_cursors', 'sites',
         'site_members'}
READABLE = {
    'follower': VIEWS,
    'app': VIEWS,
    'relay': VIEWS | {'accounts', 'outbox', 'outbox_presigned', 'pending_transactions', 'attempts',
                      'refusals', 'cancellations', 'bumps',
                      'finished_transactions', 'members', 'obstacles', 'leadership', 'relay_leases',
                      'feeds', 'feed_batches', 'feed_servers', 'tokens',
                      'operations', 'site_accounts', 'site_peers', 'site_transactions',
                      'site_dispatches', 'leadership_history', 'webhooks', 'webhook_deliveries'},
    'nobody': set(),
}


class FreshCluster(unittest.TestCase):
    """Its own server: the roles must not exist yet."""

    def setUp(self):
        self.server = Server()
        self.root = Session(self.server.connect())

    def tearDown(self):
        self.server.stop()

    def database(self, name, owner):
        self.root.rows(f'CREATE DATABASE {name} OWNER {owner}')
        return Session(self.server.connect(name, owner))

    def test_psql_runs_the_files_as_they_are(self):
        files = [arg for path in MIGRATIONS + FUNCTIONS for arg in ('-f', path)]
        run = subprocess.run([PG_SH, 'psql', self.server.dir, '-q', '-1', '-v', 'ON_ERROR_STOP=1',
                              '-o', '/dev/null', *files],
                             capture_output=True, text=True, timeout=60)
        self.assertEqual((run.returncode, run.stderr), (0, ''))

    def test_a_failed_migration_leaves_nothing(self):
        s = Session(self.server.connect())
        s.begin()
        migrate(s.conn)
        with self.assertRaises(psycopg2.Error):
            s.rows('SELECT 1/0')
        s.rollback()
        self.assertEqual(s.value("SELECT count(*) FROM pg_namespace WHERE nspname = 'txrelay'"), 0)
        self.assertEqual(s.value("SELECT count(*) FROM pg_roles WHERE rolname ~ '^txrelay'"), 0)

    def test_without_createrole_the_error_says_what_to_run(self):
        self.root.rows('CREATE ROLE poor LOGIN')
        poor = self.database('poor', 'poor')
        with self.assertRaises(psycopg2.Error) as caught:
            migrate(poor.conn)
        poor.rollback()
        self.assertEqual(caught.exception.pgcode, '42501')
        self.assertIn('role txrelay_app does not exist and user poor may not',
                      str(caught.exception))
        self.assertIn('CREATE ROLE txrelay_app NOLOGIN; CREATE ROLE txrelay_relay NOLOGIN; CREATE '
                      'ROLE txrelay_follower NOLOGIN',
                      caught.exception.diag.message_hint)
        self.root.rows('CREATE ROLE txrelay_app NOLOGIN')
        self.root.rows('CREATE ROLE txrelay_relay NOLOGIN')
        self.root.rows('CREATE ROLE txrelay_follower NOLOGIN')
        migrate(poor.conn)

    def test_two_databases_create_the_roles_at_once(self):
        for user in ('one', 'two'):
            self.root.rows(f'CREATE ROLE {user} LOGIN CREATEROLE')
        one, two = self.database('one', 'one'), self.database('two', 'two')
        one.begin()
        migrate(one.conn)
        second = Background(two, lambda: migrate(two.conn))
        wait_until(lambda: self.root.value('SELECT cardinality(pg_blocking_pids(%s)) > 0', two.pid),
                   'two waits')
        one.commit()
        second.join()
        for s in (one, two):
            self.assertEqual(s.value('SELECT max(version) FROM txrelay.schema_version'),
                             len(MIGRATIONS))


# Parts of their callers, whose rights and search_path they have: nobody else may call them
# (functions_by_role).
PARTS = {'size_fits', 'timeline', 'start_sign', 'steady_clock', 'timelines', 'be_durable',
         'subject_fence', 'fence', 'fence_wait', 'batch_size', 'queue_has_room', 'account_facts',
         'account_fingerprint', 'claim_times', 'request_times', 'left_ms', 'change_text',
         'removal_text', 'acting_role', 'stored_role', 'is_operator', 'asker', 'key_role',
         'outbox_most', 'time_fits', 'wait_briefly'}


class Rights(Case):
    FRESH = True

    def functions(self):
        return self.owner.dicts("SELECT p.oid, p.proname, p.prosecdef, p.proconfig, "
                                "p.oid::regprocedure::text AS sig "
                                "FROM pg_proc p WHERE p.pronamespace = 'txrelay'::regnamespace")

    def test_every_function_is_a_closed_definer(self):
        for f in self.functions():
            if f['proname'] in PARTS:
                self.assertFalse(f['prosecdef'])
                continue
            with self.subTest(f['sig']):
                self.assertTrue(f['prosecdef'])
                self.assertIn('search_path=pg_catalog, txrelay, pg_temp', f['proconfig'] or [])

    def test_the_reference_has_every_function(self):
        """docs/sql.md or docs/sql-relay.md names each function that a role may call, with its
        arguments and the columns of its result."""
        docs = pathlib.Path(__file__).parents[2] / 'docs'
        page = ' '.join(((docs / 'sql.md').read_text()
                         + (docs / 'sql-relay.md').read_text()).split())
        named = {}
        for name, arguments, columns in re.findall(
            r'`(\w+)\(((?:\w+[^`()]*)?)\)`?(?: RETURNS (?:TABLE)?\(?([^`|()]*))?', page):
            if '=>' not in arguments:  # a call, as an example
                named.setdefault(name, (arguments, columns or ''))
        def words(text):
            return [part.split()[0] for part in text.split(', ') if part
                    and not part.startswith('p_now')]
        for name in sorted((RELAY | APP | FOLLOWER) - PARTS_OF_VIEWS):
            with self.subTest(name):
                self.assertTrue(name in named, 'it is not on the page')
                row, = self.owner.rows(
                    "SELECT proargnames, proargmodes::text[], cardinality(proargtypes::oid[]) "
                    "FROM pg_proc WHERE proname = %s "
                    "AND pronamespace = 'txrelay'::regnamespace", name)
                names, modes, count = row[0] or [], row[1], row[2]
                # of tests
                self.assertEqual(words(named[name][0]), [n for n in names[:count] if n != 'p_now'])
                results = [n for n, m in zip(names, modes or []) if m == 't']
                if ', ' in named[name][1]:
                    self.assertEqual(words(named[name][1]), results)

    def test_functions_by_role(self):
        allowed = {'follower': FOLLOWER, 'app': APP, 'relay': RELAY, 'nobody': set()}
        self.assertEqual(RELAY - {f['proname'] for f in self.functions()}, set())
        for role, names in allowed.items():
            for f in self.functions():
                with self.subTest(role=role, function=f['sig']):
                    self.assertEqual(self.owner.value('SELECT has_function_privilege(%s, %s, %s)',
                                                      role, f['oid'],
                                                      'EXECUTE'), f['proname'] in names)

    def test_tables_by_role(self):
        tables = self.owner.rows("SELECT relname FROM pg_class WHERE relnamespace = "
                                 "'txrelay'::regnamespace "
                                 "AND relkind IN ('r', 'p', 'v')")
        for role, readable in READABLE.items():
            for (table,) in tables:
                for right in ('SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES',
                              'TRIGGER'):
                    with self.subTest(role=role, table=table, right=right):
                        self.assertEqual(self.owner.value('SELECT has_table_privilege(%s, %s, %s)',
                                                          role,
                                                          f'txrelay.{table}', right),
                                         right == 'SELECT' and table in readable)
            for right in ('USAGE', 'SELECT', 'UPDATE'):
                self.assertFalse(self.owner.value('SELECT has_sequence_privilege(%s, %s, %s)', role,
                                                  'txrelay.transaction_id', right))
            self.assertFalse(
                self.owner.value("SELECT has_schema_privilege(%s, 'txrelay', 'CREATE')", role))

    def test_what_is_not_granted_is_refused(self):
        nobody, follower = self.session('nobody'), self.session('follower')
        for s, sql in ((nobody, "SELECT txrelay.enqueue('alice', '\\x00')"),
                       (nobody, 'SELECT * FROM txrelay.transactions'),
                       (nobody, 'SELECT * FROM txrelay.follow_pending'),
                       (nobody, 'SELECT txrelay.follow_position()'),
                       (follower, "SELECT txrelay.enqueue('alice', '\\x00')"),
                       (follower, "SELECT txrelay.enqueue_signed('\\x00')"),
                       (follower, 'SELECT txrelay.cancel(1)'),
                       (follower, 'SELECT txrelay.bump(1)'),
                       (follower, 'SELECT * FROM txrelay.finished_transactions'),
                       (follower, 'DELETE FROM txrelay.follow_finished'),
                       (self.app, 'UPDATE txrelay.follow_accounts SET alias = alias'),
                       (self.app, "INSERT INTO txrelay.outbox (account, call) VALUES (1, '\\x00')"),
                       (self.app, 'SELECT * FROM txrelay.outbox'),
                       (self.app, 'SELECT * FROM txrelay.outbox_presigned'),
                       (self.app, 'SELECT * FROM txrelay.leader_presigned(1, 1, 1, 0, 0)'),
                       (self.app, "SELECT txrelay.leader_pause(1, 1, 'payment', 'x')"),
                       (self.app, "SELECT txrelay.account_policy('alice')"),
                       (self.app, "SELECT txrelay.account_pause('alice', 'x')"),
                       (self.app, 'SELECT txrelay.leader_evict(42)'),
                       (self.app, "SELECT * FROM txrelay.leader_scan('{1}')"),
                       (self.app, "SELECT * FROM txrelay.leader_due('{1}', '{1}', '{1}', 1)"),
                       (self.relay, 'SELECT txrelay.accounts_with_work(10)'),
                       (self.relay, 'UPDATE txrelay.leadership SET epoch = 1'),
                       (self.relay, 'DELETE FROM txrelay.outbox'),
                       (self.relay, "SELECT txrelay.fence(1, 1, 'read')")):
            with self.subTest(sql):
                self.refused('42501', s.rows, sql)

    def test_search_path_attack(self):
        """Objects of the caller with the names that the functions use are never looked at."""
        root = self.superuser()
        root.rows('CREATE SCHEMA evil AUTHORIZATION app')
        self.app.rows('''
            CREATE TABLE evil.hits (what text);
            CREATE FUNCTION evil.pg_notify(text, text) RETURNS void LANGUAGE sql AS $$ INSERT INTO
            evil.hits VALUES ('notify') $$;
            CREATE FUNCTION evil.sha256(bytea) RETURNS bytea LANGUAGE sql AS $$ INSERT INTO
            evil.hits VALUES ('sha') RETURNING '\\x00'::bytea $$;
            CREATE FUNCTION evil.nextval(text) RETURNS bigint LANGUAGE sql AS $$ INSERT INTO
            evil.hits VALUES ('next') RETURNING 1::bigint $$;
            CREATE FUNCTION evil.pg_try_advisory_xact_lock_shared(int, int) RETURNS boolean
            LANGUAGE sql AS $$ INSERT INTO evil.hits VALUES ('lock') RETURNING true $$;
            CREATE FUNCTION evil.octet_length(bytea) RETURNS int LANGUAGE sql AS $$ INSERT INTO
            evil.hits VALUES ('len') RETURNING 1 $$;
            CREATE FUNCTION evil.same(text, text) RETURNS boolean LANGUAGE sql AS $$ INSERT INTO
            evil.hits VALUES ('=') RETURNING true $$;
            CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.same);
            CREATE TABLE evil.outbox (LIKE evil.hits); CREATE TABLE evil.accounts (LIKE evil.hits);
            CREATE TEMP TABLE outbox (id bigint, account int, call bytea); CREATE TEMP TABLE
            accounts (account int, alias text);
            CREATE TEMP TABLE idempotency_keys (account int, key text, id bigint, payload_sha256
            bytea);
            SET search_path = evil, pg_temp, pg_catalog, txrelay''')
        first = self.app.value("SELECT txrelay.enqueue('alice', '\\x01', key => 'k')")
        many = self.app.value("SELECT txrelay.enqueue_many('alice', ARRAY['\\x02']::bytea[])")
        self.assertEqual(self.owner.rows('SELECT id FROM txrelay.outbox ORDER BY id'),
                         [(first,), (many[0],)])
        self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', first), 'cancelled')
        self.assertEqual(self.app.value('SELECT count(*) FROM evil.hits'), 0)
        self.assertEqual(self.app.value('SELECT count(*) FROM pg_temp.outbox'), 0)

    def test_no_index_on_state(self):
        """One would make every status update a non-HOT one (postgres.md 24); the updates are
        HOT."""
        epoch, _ = self.pending(200)
        self.owner.rows('VACUUM txrelay.pending_transactions')
        with self.work_on(self.relay, 'pending_transactions') as work:
            self.state(self.relay, epoch, *[(n, h32(n), 'ready') for n in range(200)])
        self.assertEqual(work[0][1:], (200, 200))


if __name__ == '__main__':
    unittest.main()
