"""Every session of ours sets what its statements depend on (store/sql/set_session.sql), whatever
was set for its role and its database. Each setting at its worst, alone;
test/system/test_sessions.py runs the main job with all of them at once."""
import re
import unittest

import psycopg2

from pgcase import ROOT, Case, Session, h32

LIST = (ROOT / 'store' / 'sql' / 'set_session.sql').read_text()
# Name, worst value, what our sessions have.
WORST = (
    ('search_path', 'shadow, pg_catalog', 'pg_catalog'),
    ('default_transaction_isolation', 'serializable', 'read committed'),
    ('default_transaction_deferrable', 'on', 'off'),
    ('synchronous_commit', 'off', 'on'),
    ('row_security', 'off', 'on'),
    ('restrict_nonsystem_relation_kind', 'view, foreign-table', ''),
    ('client_encoding', 'LATIN1', 'UTF8'),
    ('bytea_output', 'escape', 'hex'),
    ('DateStyle', 'German, DMY', 'ISO, MDY'),
    ('IntervalStyle', 'sql_standard', 'postgres'),
    ('TimeZone', 'Asia/Kathmandu', 'UTC'),
    ('extra_float_digits', '-15', '1'),
    ('standard_conforming_strings', 'off', 'on'),
    ('array_nulls', 'off', 'on'),
    ('transform_null_equals', 'on', 'off'),
    ('quote_all_identifiers', 'on', 'off'),
    ('check_function_bodies', 'off', 'on'),
    ('client_min_messages', 'debug5', 'notice'),
    ('exit_on_error', 'on', 'off'),
    ('stats_fetch_consistency', 'snapshot', 'cache'),
    ('plpgsql.extra_errors', 'all', 'none'),
    ('plpgsql.extra_warnings', 'all', 'none'),
    ('statement_timeout', '500ms', '0'),
    ('lock_timeout', '1ms', '0'),
    ('transaction_timeout', '500ms', '0'),
    ('idle_session_timeout', '500ms', '0'),
    ('idle_in_transaction_session_timeout', '500ms', '10s'),
    ('tcp_keepalives_idle', '7200', None),  # a Unix socket has none
    ('tcp_keepalives_interval', '75', None),
    ('tcp_keepalives_count', '9', None),
    ('tcp_user_timeout', '3600000', None),
    ('jit', 'on', 'off'),
    ('plan_cache_mode', 'force_custom_plan', 'auto'),
    *((f'enable_{plan}', 'off', 'on') for plan in (
        'seqscan', 'indexscan', 'indexonlyscan', 'bitmapscan', 'tidscan', 'nestloop', 'hashjoin',
        'mergejoin', 'hashagg', 'sort',
        'incremental_sort', 'material', 'memoize', 'partition_pruning')),
    ('constraint_exclusion', 'on', 'partition'),
    ('geqo', 'off', 'on'),
    ('geqo_threshold', '2', '12'),
    ('from_collapse_limit', '1', '8'),
    ('join_collapse_limit', '1', '8'),
    ('debug_parallel_query', 'on', 'off'),
    ('force_parallel_mode', 'on', 'off'),
)
# tests of their own below
ELSEWHERE = {'default_transaction_read_only', 'session_replication_role'}


class Sessions(Case):
    FRESH = True

    def tearDown(self):
        self.root.rows('ALTER ROLE relay RESET ALL')
        self.root.rows(f'ALTER DATABASE {self.db} RESET ALL')
        super().tearDown()

    def setUp(self):
        super().setUp()
        self.root = self.superuser()

    def new(self):
        """A new session of a relay that has run the list."""
        s = Session(self.server.connect(self.db, 'relay', level=None))
        self.opened.append(s)
        s.rows(LIST)
        return s

    def test_each_setting_at_its_worst(self):
        """Role and database have it; the session has ours all the same."""
        self.root.rows('LOAD \'plpgsql\'')
        there = {n.lower() for n, in self.root.rows('SELECT name FROM pg_settings')}
        checked = 0
        for name, worst, ours in WORST:
            if name.lower() not in there:
                continue
            for where in (f'DATABASE {self.db}', 'ROLE relay'):
                with self.subTest(name, where=where):
                    value = worst if name in ('search_path', 'DateStyle') else f"'{worst}'"
                    self.root.rows(f'ALTER {where} SET {name} = {value}')
                    s = self.new()
                    if ours is not None:
                        self.assertEqual(s.value(f'SHOW {name}'), ours)
                    s.conn.close()
                    self.root.rows(f'ALTER {where} RESET {name}')
                    checked += 1
        self.assertGreater(checked, 2 * 40)

    def test_the_table_is_whole(self):
        """A setting that joins the list needs a worst value here."""
        listed = set(re.findall(r"\('([A-Za-z_.]+)',", LIST))
        self.assertEqual(listed, {name for name, _, _ in WORST} | ELSEWHERE)

    def test_functions_that_shadow_the_servers(self):
        self.root.rows("CREATE SCHEMA shadow; GRANT USAGE ON SCHEMA shadow TO public; CREATE "
                       "FUNCTION shadow.set_config(text, text, boolean) "
                       "RETURNS text LANGUAGE sql AS 'SELECT ''shadow'''; CREATE FUNCTION "
                       "shadow.ne(text, text) RETURNS boolean LANGUAGE sql "
                       "AS 'SELECT false'; CREATE OPERATOR shadow.<> (LEFTARG = text, RIGHTARG = "
                       "text, FUNCTION = shadow.ne)")
        self.root.rows(f'ALTER DATABASE {self.db} SET search_path = shadow, pg_catalog')
        self.assertEqual(self.new().value('SHOW search_path'), 'pg_catalog')

    def test_read_only_for_the_role_alone_is_undone(self):
        """What was made read-only for everybody stays so: somebody moves the data away, or the
        disk is full."""
        self.root.rows('ALTER ROLE relay SET default_transaction_read_only = on')
        self.assertEqual(self.new().value('SHOW transaction_read_only'), 'off')
        self.root.rows('ALTER ROLE relay RESET ALL')
        self.root.rows(f'ALTER DATABASE {self.db} SET default_transaction_read_only = on')
        self.assertEqual(self.new().value('SHOW transaction_read_only'), 'on')

    def test_without_triggers_no_session_begins(self):
        self.root.rows('ALTER ROLE relay SET session_replication_role = replica')
        with self.assertRaises(psycopg2.Error) as caught:
            self.new()
        self.assertEqual(caught.exception.pgcode, '42501')
        self.assertIn('session_replication_role', str(caught.exception))

    def test_what_is_right_is_left_alone(self):
        s = self.new()
        # a Unix socket has no keepalives to set
        self.assertEqual([v for v, in s.rows(LIST) if v != '0'], [])
        s.rows('SET synchronous_commit = remote_apply')  # more than we ask for
        s.rows(LIST)
        self.assertEqual(s.value('SHOW synchronous_commit'), 'remote_apply')


class Durable(Case):
    def test_leaders_wait_for_the_disk_whatever_the_default(self):
        """Behind a pooler nothing of the session is ours: each function that precedes a
        submission, or makes an epoch, says so."""
        def commits(call):
            self.relay.rows('SET synchronous_commit = off')
            self.relay.begin()
            got = call()
            set_to = self.relay.value('SHOW synchronous_commit')
            self.relay.commit()
            self.assertEqual(set_to, 'on')
            return got
        ids = self.enqueue(3)
        epoch = commits(lambda: self.claim(self.relay))['epoch']
        commits(lambda: self.admit(self.relay, epoch, ids, [0, 1, 2]))
        commits(lambda: self.attempt(self.relay, epoch, [0], [h32('again')]))
        commits(lambda: self.fill(self.relay, epoch, [3]))
        commits(lambda: self.state(self.relay, epoch, (1, h32(1), 'refused', None, None, 'no')))
        commits(lambda: self.requeue(self.relay, epoch, (2, 'usurped', 'foreign')))
        commits(lambda: self.finish(self.relay, epoch, (0, h32('again'), h32('block'), 'ok')))
        self.relay.rows('SET synchronous_commit = remote_apply')
        self.relay.begin()
        self.finish(self.relay, epoch, (1, h32(1), h32('block'), 'ok'))
        self.assertEqual(self.relay.value('SHOW synchronous_commit'), 'remote_apply')
        self.relay.commit()


if __name__ == '__main__':
    unittest.main()
