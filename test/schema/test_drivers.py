"""What drivers and applications pass: integers typed by themselves, calls given as text, spans of
time."""
import unittest

from pgcase import Case

TYPES = ('', '::smallint', '::int', '::bigint')


class Integers(Case):
    def test_each_type_of_integer_is_taken(self):
        for t in TYPES:
            with self.subTest(t):
                tx = self.relay.value(f"SELECT txrelay.enqueue('alice', '\\x01', priority => 5{t}, "
                                      f"retries => 2{t}, "
                                      f"spec_version => 7{t}, deadline_block => 9{t})")
                self.assertEqual(self.owner.one('SELECT priority, retries, guard, deadline_block '
                                                'FROM txrelay.outbox WHERE id = %s',
                                                tx), (5, 2, 7, 9))
                many, = self.relay.value(
                    "SELECT txrelay.enqueue_many('alice', ARRAY['\\x01'::bytea], "
                                        f'priority => 5{t}, retries => 2{t}, spec_version => 7{t})')
                self.assertEqual(self.owner.one('SELECT priority, retries, guard '
                                                'FROM txrelay.outbox WHERE id = %s', many),
                                                (5, 2, 7))

    def test_a_statement_that_a_driver_typed(self):
        self.relay.rows('PREPARE p (text, bytea, bigint, bigint, bigint) AS '
                        'SELECT txrelay.enqueue($1, $2, priority => $3, '
                        'retries => $4, spec_version => $5)')
        tx = self.relay.value("EXECUTE p ('alice', '\\x01', 3, 1, 4294967295)")
        self.assertEqual(self.owner.one('SELECT priority, retries, guard FROM txrelay.outbox '
                                        'WHERE id = %s', tx), (3, 1, 4294967295))

    def test_what_is_out_of_bounds(self):
        for name, value, text in (('priority', 10 ** 12, '-1000 to 1000'),
                                  ('retries', 10 ** 12, '0 to 100'),
                                  ('spec_version', 4294967296, '0 to 4294967295'),
                                  ('spec_version', -1, '0 to 4294967295')):
            for call in ("enqueue('alice', '\\x01'", "enqueue_many('alice', ARRAY['\\x01'::bytea]"):
                self.refused('TR011', self.relay.rows, f'SELECT txrelay.{call}, {name} => %s)',
                             value, text=(name, str(value), text))


class CallAsText(Case):
    def test_is_refused_with_the_way_out(self):
        for text in (b'0x00001468656c6c6f', b'0x', b'0XAB'.replace(b'X', b'x'), b'\\x0000',
                     b'0x' + b'ab' * 40):
            for sql in ("SELECT txrelay.enqueue('alice', %s)",
                        "SELECT txrelay.enqueue('alice', %s, priority => -1)",
                        "SELECT txrelay.enqueue('alice', %s, key => 'k')",
                        "SELECT txrelay.enqueue_many('alice', ARRAY['\\x01'::bytea, %s])",
                        'SELECT txrelay.enqueue_signed(%s)'):
                with self.subTest(text=text, sql=sql):
                    self.refused('TR011', self.app.rows, sql, text,
                                 text=('is the text', text[:18].decode(), 'Decode it first',
                                       'Buffer.from'))
        self.assertEqual((self.count('outbox'), self.count('idempotency_keys')), (0, 0))

    def test_calls_that_only_begin_like_it_are_taken(self):
        """Pallet 48, call 120: not all of its bytes are digits, or not two for each byte."""
        calls = [b'0x\x04\x01', b'0xabc', b'0xag', b'\\xzz', b'0', b'x', b'xx',
                 b'\x30\x78' + bytes(range(256))]
        for call in calls:
            self.app.rows("SELECT txrelay.enqueue('alice', %s)", call)
        self.app.rows("SELECT txrelay.enqueue_many('alice', %s::bytea[])", calls)
        self.assertEqual([bytes(c) for c, in self.owner.rows('SELECT call FROM txrelay.outbox '
                                                             'ORDER BY id')], calls * 2)


class Spans(Case):
    def test_a_span_counts_from_now(self):
        for sql in ("SELECT txrelay.enqueue('alice', '\\x01', expires_in => interval '2 hours', "
                    "delay => '1 hour')",
                    "SELECT (txrelay.enqueue_many('alice', ARRAY['\\x01'::bytea], expires_in => '2 "
                    "hours', delay => '1 hour'))[1]"):
            tx = self.app.value(sql)
            self.assertEqual(self.owner.one("SELECT deadline - created_at BETWEEN '119 min' "
                                            "AND '2 hours', "
                                            "not_before - created_at BETWEEN '59 min' AND '1 hour' "
                                            "FROM txrelay.outbox WHERE id = %s", tx),
                             (True, True))

    def test_a_time_without_a_type_is_still_a_time(self):
        """A second function for intervals would make this call ambiguous: a driver that sends no
        types could not make it."""
        self.app.rows("PREPARE p AS SELECT txrelay.enqueue($1, $2, deadline => $3, not_before "
                      "=> $4)")
        tx = self.app.value("EXECUTE p ('alice', '\\x01', '2099-01-01', '2098-01-01')")
        self.assertEqual(self.owner.value("SELECT deadline > '2098-12-30' FROM txrelay.outbox "
                                          "WHERE id = %s", tx), True)
        self.assertEqual(self.owner.value("SELECT count(*) FROM pg_proc "
                                          "WHERE pronamespace = 'txrelay'::regnamespace "
                                          "AND proname IN ('enqueue', 'enqueue_many')"), 2)

    def test_what_is_refused(self):
        for options, text in (("expires_in => '-1 hour'", ('expires_in', '-01:00:00', 'above 0')),
                              ("delay => '0'", ('delay', 'above 0')),
                              ("delay => '2000 years'", ('delay', '1000 years')),
                              ("expires_in => '1 hour', deadline => '2099-01-01'",
                               ('expires_in', 'deadline is given too')),
                              ("delay => '1 hour', not_before => '2099-01-01'",
                               ('delay', 'not_before is given too')),
                              ("expires_in => '1 hour', delay => '2 hours'",
                               ('deadline', 'not_before'))):
            for call in ("enqueue('alice', '\\x01'", "enqueue_many('alice', ARRAY['\\x01'::bytea]"):
                self.refused('TR011', self.app.rows, f'SELECT txrelay.{call}, {options})',
                             text=text)


if __name__ == '__main__':
    unittest.main()
