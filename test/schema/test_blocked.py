"""What a look at blocked_accounts reads: little where nothing is blocked, however many accounts
and rows there are; else what is blocked, and nothing of the others."""
import unittest

from pgcase import Case, wait_until

ACCOUNTS = 2000
QUEUED = 6  # of each account
ONE = 50       # what a look at one account may read, or what one blocked account may add

# Nothing is wrong with these: a relay leads them, they have rows in every table.
FILL = f"""
SET session_replication_role = replica;
INSERT INTO txrelay.relay_leases (holder, heartbeat, expiry_1, expiry_2)
VALUES ('relay-b', now(), now() + interval '1 day', now() + interval '1 day');
INSERT INTO txrelay.leadership (subject, kind, lock_key, holder, holder_address, epoch, expiry_1,
expiry_2, heartbeat, leased)
    OVERRIDING SYSTEM VALUE SELECT n, 'account', 100000 + n, 'relay-b', 'b:1', 1, now() + interval
    '1 day', now() + interval '1 day', now(), true
    FROM generate_series(1001, 1000 + {ACCOUNTS}) n;
INSERT INTO txrelay.accounts (account, alias, account_id, scheme, genesis, address, next_nonce)
    SELECT n, 'many-' || n, sha256(n::text::bytea), 'sr25519', decode(repeat('01', 32), 'hex'), '5'
    || n, 1 FROM generate_series(1001, 1000 + {ACCOUNTS}) n;
INSERT INTO txrelay.outbox (account, call, not_before) SELECT n, '\\x01', CASE WHEN m % 3 = 0
THEN now() - interval '1 s' END
    FROM generate_series(1001, 1000 + {ACCOUNTS}) n, generate_series(1, {QUEUED}) m;
INSERT INTO txrelay.pending_transactions (account, nonce, account_id, id, call, hash, attempt,
attempts, state, epoch, created_at)
    SELECT n, m, sha256(n::text::bytea), 1000000 + n * 100 + m, '\\x01', sha256(n::text::bytea), 1,
    1, 'ready', 1, now()
    FROM generate_series(1001, 1000 + {ACCOUNTS}) n, generate_series(1, 3) m;
SET session_replication_role = origin;
ANALYZE"""
QUEUES = ('outbox', 'outbox_presigned', 'pending_transactions', 'attempts', 'refusals',
          'finished_transactions')

# What is wrong with an account, and then the code that is shown. Statements of the owner.
WRONG = {
    'paused': ("UPDATE txrelay.accounts SET paused = true, paused_by = 'operator', paused_reason = "
               "'x', paused_since = now() WHERE account = %s",),
    'lost_commits': ("UPDATE txrelay.accounts SET reconcile_from = 1, lost_since = now() "
                     "WHERE account = %s",),
    'refused': ("UPDATE txrelay.pending_transactions SET blocked_since = now(), error = 'x' "
                "WHERE nonce = 1 AND account = %s",),
    'no_leader': ("UPDATE txrelay.leadership SET leased = false, expiry_1 = now() - interval '1 "
                  "min', "
                  "expiry_2 = now() - interval '1 min' WHERE subject = %s",),
    'foreign_lock': ("UPDATE txrelay.leadership SET leased = false, expiry_1 = now() - interval '1 "
                     "min', "
                     "expiry_2 = now() - interval '1 min' WHERE subject = %s",
                     'SELECT pg_advisory_lock(100000 + %s)'),
    'presigned': ("INSERT INTO txrelay.outbox_presigned (account, extrinsic, nonce, hash, waits, "
                  "waits_since) "
                  "VALUES (%s, '\\x01', 9, decode(repeat('07', 32), 'hex'), 'for lower nonces', "
                  "now())",),
    'pool_full': ("INSERT INTO txrelay.obstacles (account, epoch, code, detail, since) "
                  "VALUES (%s, 1, 'pool_full', 'x', now())",),
    'row_held': ('BEGIN', 'SELECT FROM txrelay.outbox WHERE id = (SELECT min(id) '
                          'FROM txrelay.outbox WHERE account = %s) FOR UPDATE'),
}


class Blocked(Case):
    def setUp(self):
        super().setUp()
        self.root = self.superuser()
        self.root.rows(FILL)
        self.lead(e1=3600000, e2=3600000)  # alice

    def look(self, sql='SELECT account, code FROM txrelay.blocked_accounts', *args):
        """The answer, and how many rows of each queue and of all tables it read."""
        def counters():
            return dict(self.app.rows("SELECT relname::text, (coalesce(seq_tup_read, 0) + "
                                      "coalesce(idx_tup_fetch, 0))::int "
                                      "FROM pg_stat_xact_user_tables WHERE schemaname = 'txrelay'"))
        self.app.begin()
        before = counters()
        got = self.app.rows(sql, *args)
        read = {name: count - before.get(name, 0) for name, count in counters().items()}
        self.app.commit()
        return got, sum(read.get(name, 0) for name in QUEUES), sum(read.values())

    def test_where_nothing_is_blocked_no_queue_is_read(self):
        for _ in range(7):  # five plans of their own, then the one that is kept
            got, queues, rows = self.look()
            self.assertEqual((got, queues), ([], 0))
            self.assertLess(rows, 3 * ACCOUNTS)

    def test_who_is_blocked_is_looked_at_alone(self):
        for number, (code, statements) in enumerate(WRONG.items()):
            account = 1050 + number
            with self.subTest(code):
                session = self.superuser()
                for sql in statements:
                    session.rows(sql, *[account] * sql.count('%s'))
                self.wait(code)
                got, queues, _ = self.look()
                self.assertIn((f'many-{account}', code), got)
                self.assertEqual(len(got), number + 1)
                # The rows of a transaction that holds some are looked for in the queue of each
                # account.
                self.assertLess(queues, (number + 1) * ONE if code != 'row_held'
                                else 2 * ACCOUNTS * QUEUED)
                one, _, rows = self.look(
                    'SELECT account, code FROM txrelay.account_blocks(ARRAY[%s])', account)
                self.assertEqual(one, [(f'many-{account}', code)])
                self.assertLess(rows, ONE)
                other, queues, rows = self.look(
                    'SELECT account, code FROM txrelay.account_blocks(ARRAY[%s])', 1100)
                self.assertEqual(other, [])
                self.assertLess(rows, ONE)

    def wait(self, code):
        if code == 'row_held':
            wait_until(lambda: self.root.value(
                "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' "
                "AND xact_start < clock_timestamp() - interval '3 s'"),
                'the row to be held for long')


if __name__ == '__main__':
    unittest.main()
