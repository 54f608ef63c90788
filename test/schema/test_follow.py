"""What a follower may read, what its position is worth, and retention by several callers at
once."""
import unittest

from pgcase import Background, Case, h32, wait_until

BLOCK = h32('block')


class Follow(Case):
    def setUp(self):
        super().setUp()
        self.follower = self.session('follower')

    def position(self, s=None):
        return (s or self.follower).value('SELECT txrelay.follow_position()')

    def now_us(self):
        return self.owner.value('SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint')

    def test_the_views_show_what_is_there_and_no_call(self):
        epoch, ids = self.pending(2, creator='shop')
        self.state(self.relay, epoch, (0, h32(0), 'in_block', BLOCK))
        self.finish(self.relay, epoch, (1, h32(1), BLOCK, 'ok'))
        for s in (self.follower, self.app, self.relay):
            self.assertEqual(s.rows('SELECT id, nonce, state::text, creator '
                                    'FROM txrelay.follow_pending'),
                             [(ids[0], 0, 'in_block', 'shop')])
            self.assertEqual(s.rows('SELECT id, nonce, outcome::text FROM txrelay.follow_finished'),
                             [(ids[1], 1, 'ok')])
            self.assertEqual(s.value('SELECT alias FROM txrelay.follow_accounts'), 'alice')
        columns = {c for (c,) in self.owner.rows(
            "SELECT attname FROM pg_attribute WHERE attnum > 0 "
            "AND attrelid IN ('txrelay.follow_accounts'::regclass, "
            "'txrelay.follow_pending'::regclass, 'txrelay.follow_finished'::regclass)")}
        self.assertEqual(columns & {'call', 'key', 'policy', 'extrinsic', 'lock_key',
                                    'holder_address'}, set())

    def test_sources_are_the_sessions_of_relays(self):
        """Whoever may NOTIFY and nothing else, and whoever may enqueue, is none; SET ROLE makes
        none; a superuser is one."""
        other, nobody, root = self.session('relay'), self.session('nobody'), self.superuser()
        # noqa: E731
        sources = lambda s: {pid for pid, in s.rows('SELECT pid FROM txrelay.follow_sources')}
        mine = {s.pid for s in self.opened}
        for s in (self.follower, self.app, self.relay):
            self.assertEqual(sources(s) & mine & {self.app.pid, self.follower.pid, nobody.pid},
                             set())
            self.assertLessEqual({self.relay.pid, other.pid, root.pid}, sources(s))
        self.refused('42501', nobody.rows, 'SELECT pid FROM txrelay.follow_sources')

    def test_a_nonce_that_was_used_up_is_no_end(self):
        epoch, _ = self.pending()
        self.requeue(self.relay, epoch, (0, 'usurped', 'x'))
        self.assertEqual(self.count('finished_transactions'), 1)
        self.assertEqual(self.follower.rows('SELECT * FROM txrelay.follow_finished'), [])

    def test_scans_use_the_indexes_through_the_views(self):
        self.follower.rows('SET enable_seqscan = off')
        for sql, index in (('follow_pending WHERE (account, nonce) > (1, 5)',
                            'pending_transactions_pkey'),
                           ('follow_finished WHERE id = 3', '_id_idx')):
            plan = '\n'.join(r[0]
                             for r in self.follower.rows(f'EXPLAIN SELECT * FROM txrelay.{sql}'))
            self.assertIn(index, plan)

    def test_position_is_now_when_nothing_is_open(self):
        before = self.now_us()
        at = self.position()
        self.assertTrue(before <= at <= self.now_us(), (before, at))

    def test_an_end_that_is_not_committed_holds_the_position_back(self):
        """An application cancels and commits late: its record is older than much that was told."""
        ids = self.enqueue(2)
        before = self.now_us()
        self.app.begin()
        self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', ids[0]), 'cancelled')
        after = self.now_us()
        for s in (self.follower, self.session('follower')):
            self.assertTrue(before <= self.position(s) <= after)
        self.app.commit()
        ended = self.follower.value('SELECT (extract(epoch FROM finished_at) * 1000000)::bigint '
                                    'FROM txrelay.follow_finished')
        self.assertTrue(before <= ended <= after)
        self.assertGreater(self.position(), after)

    def test_an_end_that_waits_for_its_rows_is_not_before_a_position_of_meanwhile(self):
        """The time of an end is taken when the table of ends is locked: that is what a position
        looks for."""
        epoch, _ = self.pending()
        self.owner.begin()
        self.owner.rows('LOCK TABLE txrelay.pending_transactions IN SHARE MODE')
        call = Background(self.relay,
                          lambda: self.finish(self.relay, epoch, (0, h32(0), h32('block'), 'ok')))
        watch = self.session('nobody')
        wait_until(lambda: watch.value('SELECT cardinality(pg_blocking_pids(%s)) > 0',
                                       self.relay.pid), 'the end waits')
        at = self.position()
        self.owner.commit()
        call.join()
        ended = self.owner.value('SELECT (extract(epoch FROM finished_at) * 1000000)::bigint '
                                 'FROM txrelay.finished_transactions')
        self.assertGreaterEqual(ended, at)

    def test_readers_and_enqueuers_do_not_hold_it_back(self):
        self.app.begin()
        self.enqueue()
        reader = self.session('relay')
        reader.begin('REPEATABLE READ')
        reader.rows('SELECT * FROM txrelay.finished_transactions')
        before = self.now_us()
        self.assertGreaterEqual(self.position(), before)


class Retention(Case):
    FRESH = True

    def test_of_two_who_drop_one_does_it(self):
        self.relay.value("SELECT txrelay.ensure_partitions(0, '2020-01-15')")
        other = self.session('relay')
        drop = "SELECT txrelay.drop_partitions(interval '30 days', '2020-04-01')"
        self.relay.begin()
        self.assertEqual(self.relay.value(drop), 1)
        self.assertEqual(other.value(drop), 0, 'it does not wait')
        self.relay.commit()
        self.assertEqual(other.value(drop), 0)

    def test_what_was_dropped_is_on_record(self):
        kept = ("SELECT to_char(dropped_before AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') "
                "FROM txrelay.follow_kept")
        follower = self.session('follower')
        follower.rows("SET timezone = 'Asia/Kolkata'")
        self.assertEqual(follower.rows(kept), [])
        for month, drop in (('2020-02-15', '2020-06-01'), ('2020-01-15', '2020-06-01')):
            self.relay.rows("SET timezone = 'Asia/Kolkata'")
            self.relay.value('SELECT txrelay.ensure_partitions(0, %s)', month)
            self.assertEqual(self.relay.value("SELECT txrelay.drop_partitions(interval '30 "
                                              "days', %s)", drop), 1)
            self.assertEqual(follower.value(kept), '2020-03-01 00:00',
                             'an older one takes nothing back')

    def test_an_open_reader_is_not_waited_for_long(self):
        """lock_timeout: a long reader of the parent costs retention a turn, and others no
        standstill."""
        self.relay.value("SELECT txrelay.ensure_partitions(0, '2020-01-15')")
        reader = self.session('relay')
        reader.begin()
        reader.rows('SELECT count(*) FROM txrelay.finished_transactions')
        self.refused('55P03', self.relay.rows,
                     "SELECT txrelay.drop_partitions(interval '30 days', '2020-04-01')")
        self.assertLessEqual(self.owner.value(
            "SELECT (regexp_match(proconfig::text, 'lock_timeout=([0-9]+)ms'))[1]::int "
            "FROM pg_proc WHERE oid = 'txrelay.drop_partitions'::regproc"), 1000)
        reader.commit()
        self.assertEqual(self.relay.value("SELECT txrelay.drop_partitions(interval '30 days', "
                                          "'2020-04-01')"), 1)


class Cleanup(Case):
    def old(self, where='true'):
        self.owner.rows("UPDATE txrelay.attempts SET ended_at = ended_at - interval '31 days' "
                        f"WHERE {where}")

    def cleanup(self, epoch, limit=10000):
        return self.relay.value("SELECT txrelay.leader_cleanup(%s, %s, interval '30 days', %s)",
                                self.alice, epoch, limit)

    def nonces(self):
        return [r[0] for r in self.owner.rows('SELECT nonce FROM txrelay.attempts ORDER BY 1')]

    def test_only_the_oldest_are_looked_at(self):
        """A call reads about its limit, however much is kept."""
        epoch, _ = self.pending(6)
        self.finish(self.relay, epoch, *[(n, h32(n), BLOCK, 'ok') for n in range(6)])
        self.old('nonce IN (0, 1, 4)')
        self.assertEqual(self.cleanup(epoch, 2), 2)
        self.assertEqual(self.cleanup(epoch, 2), 0,
                         'the two oldest are kept: the later one is not looked for')
        self.assertEqual(self.nonces(), [2, 3, 4, 5])
        self.assertEqual(self.cleanup(epoch, 3), 1)

    def test_it_reads_no_more_than_it_removes(self):
        """Whatever is kept: a call holds the account's row, and its leader waits."""
        epoch, n = self.lead(), 5000
        self.superuser().rows('''
            INSERT INTO txrelay.attempts (account, nonce, number, hash, extrinsic, tip,
            spec_version, transaction_version,
                block, epoch, outcome, ended_at)
                SELECT 1, g, 1, sha256('x'), '\\x84', 0, 1, 1, 1, 1, 'included', now()
            FROM generate_series(0, %s) g;
            INSERT INTO txrelay.idempotency_keys (account, key, id, payload_sha256)
            SELECT 1, g::text, g, sha256('x')
            FROM generate_series(0, %s) g;
            ANALYZE txrelay.attempts, txrelay.idempotency_keys''', n, n)
        with self.work_on(self.relay, 'attempts', 'idempotency_keys') as work:
            self.assertEqual(self.cleanup(epoch, 100), 0)
        for (read, *_), least, most in zip(work, (100, 0), (210, 10)):
            self.assertTrue(least <= read <= most, work)

    def test_what_is_left_of_a_former_life(self):
        epoch, _ = self.pending(4)
        self.finish(self.relay, epoch, *[(n, h32(n), BLOCK, 'ok') for n in range(4)])
        self.old('nonce IN (2, 3)')
        self.owner.rows('UPDATE txrelay.accounts SET next_nonce = 2')
        self.assertEqual(self.cleanup(epoch, 2), 2)
        self.assertEqual(self.nonces(), [0, 1])

    def test_what_is_in_use_stays(self):
        epoch, ids = self.pending(1)
        self.attempt(self.relay, epoch, [0], [h32('again')])
        self.old()
        self.assertEqual(self.cleanup(epoch), 0)
        self.assertEqual([h['attempt'] for h in self.history(ids[0])], [1, 2])

    def test_a_stale_leader_cleans_nothing(self):
        epoch, _ = self.pending(1)
        self.refused('TR001', self.cleanup, epoch - 1)


if __name__ == '__main__':
    unittest.main()
