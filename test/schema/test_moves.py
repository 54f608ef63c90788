"""What holds after the data moved to another server: ids are given once, time goes on, every table
has an identity."""
import unittest

from pgcase import Case, h32

BLOCK = h32('block')


class Ids(Case):
    """R2: a logical copy leaves each sequence at 1."""
    FRESH = True
    SEQUENCES = "FROM pg_class s WHERE s.relnamespace = 'txrelay'::regnamespace AND s.relkind = 'S'"

    def setUp(self):
        super().setUp()
        self.root = self.superuser()
        self.epoch, (self.tx,) = self.pending()
        self.finish(self.relay, self.epoch, (0, h32(0), BLOCK, 'ok'))

    def copy(self):
        self.root.rows(f"SELECT setval(s.oid, 1, false) {self.SEQUENCES}")

    def heartbeat(self):
        self.relay.rows("SELECT * FROM txrelay.member_heartbeat('relay-a', 'a', 1, 5000)")

    def test_enqueue_refuses_an_id_that_was_given(self):
        self.heartbeat()
        self.copy()
        signed = b'\x84' + bytes(200)
        text = ('was given before', 'txrelay migrate')
        for call, args in (("enqueue('alice', '\\x01')", ()),
                           ("enqueue('alice', '\\x01', key => 'k')", ()),
                           ("enqueue('5alice', '\\x01')", ()),
                           ("enqueue_many('alice', ARRAY['\\x01', '\\x02']::bytea[])", ()),
                           ('enqueue_signed(%s)', (signed,))):
            with self.subTest(call):
                self.root.rows("SELECT setval('txrelay.transaction_id', 1, false)")
                self.refused('TR014', self.app.rows, f'SELECT txrelay.{call}', *args, text=text)
        self.assertEqual(self.count('outbox') + self.count('idempotency_keys'), 0)
        self.assertEqual(self.status(self.tx)['outcome'], 'ok')

    def test_a_claim_a_start_and_a_command_move_the_sequence_on(self):
        def register():
            self.register(self.relay, 'bob', 43)
        for way in (self.lead, register, lambda: self.relay.value('SELECT txrelay.repair_ids()')):
            self.copy()
            self.assertGreater(self.relay.value('SELECT txrelay.ids_behind()'), 0)
            way()
            self.assertEqual(self.relay.value('SELECT txrelay.ids_behind()'), 0)
            self.assertGreater(self.enqueue()[0], self.tx)
        self.assertEqual(self.owner.value('SELECT max(subject) FROM txrelay.leadership'), 2)
        self.assertEqual(self.relay.value('SELECT txrelay.repair_ids()'), 0)

    def test_every_sequence_of_the_schema_is_known(self):
        there = {n for n, in self.root.rows(f'SELECT s.oid::regclass::text {self.SEQUENCES}')}
        self.assertGreater(len(there), 4)
        self.assertEqual({n for n, in self.owner.rows('SELECT sequence::text '
                                                      'FROM txrelay.sequences()')}, there)

    def numbers(self):
        """Of each column that numbers its rows: how many rows, and the highest number."""
        columns = self.root.rows("SELECT a.attrelid::regclass::text, a.attname FROM pg_attribute a "
                                 "JOIN pg_class c ON c.oid = a.attrelid "
                                 "WHERE c.relnamespace = 'txrelay'::regnamespace AND a.attidentity "
                                 "<> '' AND c.relkind = 'r'")
        return {f'{t}.{c}': self.root.one(f'SELECT count(*), max({c}) FROM {t}')
                for t, c in columns}

    def test_whatever_has_a_number_goes_on(self):
        """Each at its first try: claims, what operators order and the deliveries of webhooks,
        after the old ones."""
        def end():
            self.app.value('SELECT txrelay.cancel(%s)', self.enqueue()[0])
            self.relay.rows("SELECT * FROM txrelay.leader_webhooks('relay-a', 10, 10)")

        def order():
            self.relay.rows("SELECT txrelay.account_pause('alice', 'x'), "
                            "txrelay.account_resume('alice')")
        self.relay.rows("SELECT txrelay.webhook_create('hook', 'https://x.example/', NULL, NULL)")
        for _ in range(4):
            order()
            self.lead()
            end()
        for turn in range(2):
            before = self.numbers()
            self.assertTrue(all(count for count, _ in before.values()), before)
            for first, then in ((self.lead, order), (order, self.lead)):
                self.copy()
                first()
                self.assertEqual(self.relay.value('SELECT txrelay.ids_behind()'), 0)
                then()
                end()
            self.register(self.relay, f'account{turn}', 100 + turn)
            for name, (count, highest) in self.numbers().items():
                self.assertGreater(count, before[name][0], name)
                self.assertGreater(highest, before[name][1], name)

    def test_ids_whose_records_retention_removed(self):
        for _ in range(3):
            self.app.value('SELECT txrelay.cancel(%s)', self.enqueue()[0])
        last = self.owner.value('SELECT max(id) FROM txrelay.finished_transactions')
        self.heartbeat()
        self.root.rows('SET session_replication_role = replica; TRUNCATE '
                       'txrelay.finished_transactions')
        self.copy()
        self.lead()
        self.assertGreater(self.enqueue()[0], last)

    def test_ids_that_others_draw_meanwhile_are_good(self):
        """The snapshot of a statement is older than the id that it draws."""
        self.heartbeat()
        waiting = self.app
        waiting.begin('REPEATABLE READ')
        waiting.rows('SELECT 1')
        self.enqueue_by(self.session('app'))
        self.heartbeat()
        waiting.rows("SELECT txrelay.enqueue('alice', '\\x01'), txrelay.enqueue_many('alice', "
                     "ARRAY['\\x01']::bytea[])")
        waiting.commit()
        self.heartbeat()
        self.assertEqual(self.owner.value('SELECT highest_id FROM txrelay.high_water'),
                         self.owner.value('SELECT max(id) FROM txrelay.outbox'))

    def enqueue_by(self, s):
        return s.value("SELECT txrelay.enqueue('alice', '\\x01')")


class Clock(Case):
    """R7: positions and leases when the server's clock goes back, or was ahead."""
    FRESH = True

    def clock(self, seconds):
        """The server's clock as a heartbeat sees it, this long after the real one."""
        self.owner.rows("SELECT txrelay.note_high_water(clock_timestamp() + %s * interval '1 s')",
                        seconds)

    def steady(self):
        """Seconds that the steady clock is ahead of the real one."""
        return float(self.owner.value('SELECT extract(epoch FROM txrelay.steady_clock() - '
                                      'clock_timestamp())'))

    def position(self):
        return self.app.value('SELECT txrelay.follow_position()')

    def ends(self):
        """Of a cancellation, of a nonce by its block, of one that somebody else used."""
        epoch = self.lead()
        waits, own, comes_back = self.enqueue(3)
        first = self.account()['next_nonce'] or 0
        self.admit(self.relay, epoch, [own, comes_back], [first, first + 1])
        self.finish(self.relay, epoch, (first, h32(first), BLOCK, 'ok'))
        self.requeue(self.relay, epoch, (first + 1, 'usurped', 'foreign'))
        for tx in (waits, comes_back):
            self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', tx), 'cancelled')

    def test_time_never_goes_back(self):
        count = 0
        for ahead in (0, 120, 600):
            self.clock(ahead)
            before = self.position()
            stands = self.steady()  # until the next heartbeat
            self.assertGreater(stands, ahead - 5)
            self.clock(0)
            self.assertAlmostEqual(self.steady(), stands, delta=5)
            self.ends()
            count += 4
            times = self.owner.rows('SELECT (extract(epoch FROM finished_at) * 1000000)::bigint '
                                    'FROM txrelay.finished_transactions '
                                    'ORDER BY finished_at')
            self.assertEqual(len(times), count)
            self.assertGreaterEqual(times[-4][0], before)
            self.assertGreaterEqual(self.position(), times[-1][0])
        first, moves = self.position(), self.owner.value(
            'SELECT clock_offset FROM txrelay.high_water')
        for _ in range(5):
            self.clock(0)
        self.assertGreater(self.position(), first)
        self.assertLess(self.owner.value('SELECT clock_offset FROM txrelay.high_water'), moves)

    def test_it_comes_back_to_the_servers(self):
        self.owner.rows("UPDATE txrelay.high_water SET reached = clock_timestamp() - interval '5 "
                        "s', clock_offset = '0.25 s'")
        for second in range(4):
            self.clock(second)
        self.assertEqual(self.owner.value('SELECT extract(epoch FROM clock_offset) '
                                          'FROM txrelay.high_water'), 0)

    def test_a_hung_leader_is_replaced(self):
        """Its lease was granted by a clock that was ahead."""
        claim = "SELECT granted FROM txrelay.leader_claim(%s, %s, 'x', false, 1000, 1000)"
        self.clock(120)
        self.clock(0)
        self.assertTrue(self.relay.value(claim, self.alice, 'hangs'))
        self.relay.rows("SELECT * FROM txrelay.leader_renew('hangs', ARRAY[%s], ARRAY[1::bigint], "
                        "1000, 1000)", self.alice)
        self.assertFalse(self.relay.value(claim, self.alice, 'other'))
        # A second later, by the steady clock: two relays' heartbeats and nobody's renewal.
        self.owner.rows("UPDATE txrelay.high_water SET reached = reached + interval '2 s'")
        self.assertTrue(self.relay.value(claim, self.alice, 'other'))

    def test_a_leader_that_renews_is_not_replaced(self):
        self.clock(0)
        claim = "SELECT granted FROM txrelay.leader_claim(%s, %s, 'x', false, 3000, 9000)"
        self.assertTrue(self.relay.value(claim, self.alice, 'lives'))
        self.assertFalse(self.relay.value(claim, self.alice, 'other'))


class Identity(Case):
    FRESH = True

    def test_every_table_has_one(self):
        rows = self.owner.rows("SELECT c.relname FROM pg_class c "
                               "WHERE c.relnamespace = 'txrelay'::regnamespace AND c.relkind IN "
                               "('r', 'p') "
                               "AND c.relreplident <> 'f' AND NOT EXISTS (SELECT FROM pg_index i "
                               "WHERE i.indrelid = c.oid AND i.indisprimary)")
        self.assertEqual(rows, [])

    def test_rows_leave_the_default_partition_where_all_tables_are_published(self):
        root = self.superuser()
        root.rows('CREATE PUBLICATION everything FOR ALL TABLES')
        months = [n for n, in root.rows(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = "
                                        "'txrelay.finished_transactions'::regclass AND "
                                        "inhrelid::regclass::text !~ 'default'")]
        self.assertTrue(months)
        for month in months:
            root.rows(f'DROP TABLE {month}')
        epoch, (tx,) = self.pending()
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        self.assertEqual(self.count('finished_transactions_default'), 1)
        self.assertEqual(self.relay.value('SELECT txrelay.ensure_partitions()'), 3)
        self.assertEqual(self.count('finished_transactions_default'), 0)
        self.assertEqual(self.status(tx)['outcome'], 'ok')
        self.test_every_table_has_one()


if __name__ == '__main__':
    unittest.main()
