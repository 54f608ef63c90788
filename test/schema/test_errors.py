"""Errors that applications see: one line of context, with the name of the function that they
called."""
import re

import psycopg2

from pgcase import APPLICATION, Case

CALLS = re.compile(r'\b(\w+)\(')
# A block that catches, as these files write it: BEGIN, EXCEPTION and END stand below each other,
# and not at the margin.
CATCHES = re.compile(r'\n( +)BEGIN\n.*?\n\1EXCEPTION WHEN [^\n]*\n.*?\n\1END;', re.S)
RAISES = re.compile(r'\bRAISE (?!NOTICE|LOG|DEBUG)')
# retry calls enqueue where that can raise nothing more: it has asked all of its questions before.
# And status raises for a hash only, so the record of operators, which shows a transaction by its
# id, raises nothing.
ASKED_BEFORE = {('retry', 'enqueue'), ('retry', 'status'),
                *((name, note) for name in ('cancel', 'bump', 'retry')
                  for note in ('operation_before', 'operation_note'))}

LONG = 'x' * 201
SIGNED = b'\x84\0' + b'\7' * 118  # version 4, signed, by a key that no account has
EXTRINSIC = ((len(SIGNED) << 2 | 1).to_bytes(2, 'little') + SIGNED).hex()
CASES = [
    ('TR010', "enqueue('nobody', '\\x01')"), ('TR010', "enqueue(NULL, '\\x01')"),
    ('TR010', "enqueue('nobody', '\\x01', key => 'k')"),
    ('TR010', "enqueue('nobody', '\\x01', priority => 1)"), ('TR011', "enqueue('alice', '')"),
    ('TR011', "enqueue('alice', NULL)"),
    ('TR011', "enqueue('alice', '0x0001')"),
    ('TR011', f"enqueue('alice', '\\x01', key => '{LONG}')"),
    ('TR011', "enqueue('alice', '\\x01', key => '')"),
    ('TR011', f"enqueue('alice', '\\x01', creator => '{LONG}')"),
    ('TR011', "enqueue('alice', '\\x01', priority => 1001)"),
    ('TR011', "enqueue('alice', '\\x01', priority => 101)"),
    ('TR011', "enqueue('alice', '\\x01', tip => 1)"),
    ('TR011', "enqueue('alice', '\\x01', tip => 0.5)"),
    ('TR011', "enqueue('alice', '\\x01', deadline => '2000-01-01')"),
    ('TR011', "enqueue('alice', '\\x01', deadline => 'infinity')"),
    ('TR011', "enqueue('alice', '\\x01', expires_in => '-1 s')"),
    ('TR011', "enqueue('alice', '\\x01', delay => '0')"),
    ('TR011', "enqueue('alice', '\\x01', spec_version => -1)"),
    ('TR011', "enqueue('alice', '\\x01', deadline_block => 0)"),
    ('TR011', "enqueue('alice', '\\x01', retries => 101)"),
    ('TR011', "enqueue('alice', '\\x01', traceparent => 'x')"),
    ('TR011', "enqueue('strict', '\\x01', priority => 5)"),
    ('TR011', "enqueue('strict', '\\x01', delay => '1 s')"),
    ('TR011', "enqueue('watched', '\\x01')"), ('TR012', "enqueue('alice', '\\x02', key => 'used')"),
    ('TR012', "enqueue('strict', '\\x02', key => 'used')"), ('42501', "enqueue('theirs', '\\x01')"),
    ('TR013', "enqueue('small', '\\x01')"),
    ('TR010', "enqueue_many('nobody', ARRAY['\\x01'::bytea])"),
    ('TR011', "enqueue_many('alice', NULL)"),
    ('TR011', "enqueue_many('alice', ARRAY['\\x01'::bytea], ARRAY['a', 'b'])"),
    ('TR011', "enqueue_many('alice', ARRAY[''::bytea])"),
    ('TR011', "enqueue_many('alice', ARRAY['0x01'::bytea])"),
    ('TR011', "enqueue_many('alice', ARRAY['\\x01'::bytea], ARRAY[''])"),
    ('TR011', "enqueue_many('alice', ARRAY['\\x01'::bytea], tip => 1)"),
    ('TR011', "enqueue_many('watched', ARRAY['\\x01'::bytea])"),
    ('TR011', "enqueue_many('alice', ARRAY['\\x01'::bytea], traceparent => 'x')"),
    ('TR011', "enqueue_many('strict', ARRAY['\\x01'::bytea], priority => 5)"),
    ('TR012', "enqueue_many('alice', ARRAY['\\x02'::bytea], ARRAY['used'])"),
    ('42501', "enqueue_many('theirs', ARRAY['\\x01'::bytea])"),
    ('TR013', "enqueue_many('small', ARRAY['\\x01'::bytea])"),
    ('TR011', 'enqueue_signed(NULL)'), ('TR011', "enqueue_signed('\\x04')"),
    ('TR011', "enqueue_signed('0x0001')"),
    ('TR011', f"enqueue_signed('\\x04', key => '{LONG}')"),
    ('TR011', f"enqueue_signed('\\x04', creator => '{LONG}')"),
    ('TR011', "enqueue_signed('\\x0400', traceparent => 'x')"),
    ('TR010', f"enqueue_signed('\\x{EXTRINSIC}'::bytea)"),
    ('TR011', 'cancel(NULL)'), ('TR011', 'cancel(999)'), ('42501', 'cancel({other})'),
    ('TR011', 'bump(999)'), ('42501', 'bump({other})'), ('TR011', 'bump({mine})'),
    ('TR011', 'bump({mine}, -1)'),
    ('TR011', 'retry(999)'), ('TR011', 'retry({mine})'),
    ('TR011', 'retry({failed}, deadline_block => -1)'),
    ('TR011', "retry({failed}, deadline => '2000-01-01')"),
    ('TR011', "status(1, '0x00')"), ('TR011', "status(hash => 'x')"), ('TR010', "counts('nobody')"),
    ('TR011', "counts('alice', 0)"),
    ('TR010', "account_of('nobody')"),
]


class Context(Case):
    def test_each_error_names_what_was_called(self):
        self.register(self.relay, 'strict', 43)
        self.register(self.relay, 'theirs', 44)
        self.register(self.relay, 'small', 45)
        self.relay.value("SELECT txrelay.relay_register('watched', %s, 'sr25519', %s, '5watched', "
                         "46, true)", b'\x09' * 32, b'\1' * 32)
        self.relay.rows("""SELECT txrelay.account_policy('strict', '{"order": "strict"}')""")
        self.relay.rows("""SELECT txrelay.account_policy('small', '{"outbox_max": 1}')""")
        self.relay.rows("SELECT txrelay.account_grant('theirs', 'installer')")
        self.app.rows("SELECT txrelay.enqueue('small', '\\x01')")
        mine, = self.enqueue(key='used')
        self.app.rows("SELECT txrelay.enqueue('strict', '\\x01', key => 'used')")
        failed, = self.enqueue()
        self.app.rows('SELECT txrelay.cancel(%s)', failed)
        other = self.relay.value("SELECT txrelay.enqueue('alice', '\\x01')")
        called = set()
        for code, sql in CASES:
            sql = sql.format(mine=mine, failed=failed, other=other)
            name = sql.split('(')[0]
            called.add(name)
            with self.subTest(sql):
                with self.assertRaises(psycopg2.Error) as caught:
                    self.app.rows(f'SELECT * FROM txrelay.{sql}')
                e = caught.exception
                self.assertEqual(e.pgcode, code, str(e))
                self.assertTrue(e.diag.message_hint, str(e))
                self.assertRegex(e.diag.context,
                                 r'\APL/pgSQL function (txrelay\.)?%s\([^\n]*\) line \d+ at RAISE\Z'
                                 % name)
        # history answers with no row, and follow_position has no argument.
        self.assertEqual(called, APPLICATION - {'history', 'follow_position'})

    def test_a_check_that_raises_is_called_in_a_block_that_catches(self):
        """However a function is changed later: what it calls and what can raise stands in such a
        block."""
        source = {name: re.sub(r'--[^\n]*', '', text) for name, text in self.owner.rows(
            "SELECT p.proname, p.prosrc FROM pg_proc p "
            "WHERE p.pronamespace = 'txrelay'::regnamespace AND p.prokind = 'f'")}
        raisers = {name for name, text in source.items() if RAISES.search(text)}
        while True:
            more = {name for name, text in source.items() if name not in raisers
                    and any(c in raisers for c in CALLS.findall(CATCHES.sub('', text)))}
            if not more:
                break
            raisers |= more
        self.assertIn('strict_turn', raisers)
        for name in sorted(APPLICATION):
            loose = {c for c in CALLS.findall(CATCHES.sub('', source[name])) if c in raisers
                     and c != name}
            self.assertEqual({c for c in loose if (name, c) not in ASKED_BEFORE}, set(),
                             f'{name} calls these outside of a block')

    def test_checks_take_no_transaction_id(self):
        """The blocks that catch write nothing: each would take a place in the server's cache of
        subtransactions."""
        self.policy(tip_cap='1000')
        mine, failed = self.enqueue(2)
        self.enqueue(key='used')
        self.app.rows('SELECT txrelay.cancel(%s)', failed)
        for sql in ("enqueue('alice', '\\x01', priority => 1, expires_in => '1 h')",
                    "enqueue('5alice', '\\x01')",
                    "enqueue('alice', '\\x00\\x01', key => 'used')".replace('\\x00\\x01',
                                                                            '\\x0001'),
                                                                            f'bump({mine})',
                                                                            f'cancel({mine})',
                    f'retry({failed})',
                    "enqueue_many('alice', ARRAY['\\x0001'::bytea], ARRAY['used'])"):
            with self.subTest(sql):
                for _ in range(20):  # vacuum may draw an id meanwhile
                    self.app.begin()
                    first = self.app.value('SELECT pg_current_xact_id()::text::bigint')
                    self.app.rows(f'SELECT txrelay.{sql}')
                    self.app.rollback()
                    drawn = self.owner.value(
                        'SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint') - first
                    if drawn == 1:
                        break
                self.assertEqual(drawn, 1)
