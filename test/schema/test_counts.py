"""What is where, in constant time: counts(), and who may see fees."""
import unittest

from pgcase import Case, h32

READS = '''SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint
    FROM pg_stat_xact_user_tables
    WHERE schemaname = 'txrelay' AND relname ~ '^(outbox|pending|finished)\''''


class Counts(Case):
    def counts(self, *args):
        return {(r['alias'], r['stage'], r['state']): (r['count'], r['more'])
                for r in self.app.dicts(
                    f"SELECT * FROM txrelay.counts({', '.join(['%s'] * len(args))})", *args)}

    def end(self, count, **more):
        """`count` ends of alice, without a relay."""
        self.owner.rows('''INSERT INTO txrelay.finished_transactions (id, account, nonce, outcome,
            created_at, fee)
            SELECT 1000 + n, %s, n, 'ok', now() - interval '1 hour', 2
            FROM generate_series(1, %s) n''', self.alice, count)

    def test_each_stage(self):
        epoch, _ = self.pending(3)
        self.state(self.relay, epoch, (0, h32(0), 'ready'))
        self.finish(self.relay, epoch, (1, h32(1), h32('block'), 'ok'))
        self.enqueue(2)
        self.enqueue(1, delay='1 hour')
        self.assertEqual(self.counts(), {('alice', 'outbox', 'queued'): (3, False),
                                         ('alice', 'pending', 'ready'): (1, False),
                                         ('alice', 'pending', 'signed'): (1, False),
                                         ('alice', 'finished', 'ok'): (1, False)})
        self.assertEqual(self.counts('alice'), self.counts())
        self.refused('TR010', self.app.value, "SELECT txrelay.counts('alise')",
                     text=('alise', 'alice'))
        self.refused('TR011', self.app.value, "SELECT txrelay.counts('alice', 0)",
                     text=('most is 0', '1 to 1000000'))

    def test_the_bound(self):
        """What is read does not grow with the tables: at most `most` and one row of each kind."""
        self.enqueue(7)
        self.end(500)
        self.owner.rows('ANALYZE txrelay.finished_transactions')
        self.assertEqual(self.counts('alice', 5), {('alice', 'outbox', 'queued'): (5, True),
                                                   ('alice', 'finished', 'ok'): (5, True)})
        self.assertEqual(self.counts('alice', 7)['alice', 'outbox', 'queued'], (7, False))
        self.owner.begin()
        before = self.owner.value(READS)
        self.owner.rows("SELECT * FROM txrelay.counts('alice', 5)")
        self.assertLess(self.owner.value(READS) - before, 30)
        self.owner.commit()

    def test_ages_and_fees(self):
        self.end(3)
        self.enqueue(1)
        rows = {r['stage']: r for r in self.app.dicts('SELECT stage, fee, oldest < now() - '
                                                      'interval %s AS old FROM txrelay.counts()',
                                                      '59 minutes')}
        self.assertEqual((rows['finished']['fee'], rows['finished']['old']), (6, True))
        self.assertEqual((rows['outbox']['fee'], rows['outbox']['old']), (None, False))

    def test_fees_are_seen_by_who_sees_the_transaction(self):
        self.end(1)
        for login in (self.app, self.session('follower'), self.relay, self.owner):
            self.assertEqual(login.value('SELECT fee FROM txrelay.transactions WHERE id = 1001'), 2)
            self.assertEqual(login.value('SELECT fee FROM txrelay.status(1001)'), 2)
            self.assertEqual(login.value("SELECT fee FROM txrelay.counts('alice') "
                                         "WHERE stage = 'finished'"), 2)
        for what in ('transactions', 'counts()'):
            self.refused('42501', self.session('nobody').value,
                         f'SELECT count(fee) FROM txrelay.{what}')


if __name__ == '__main__':
    unittest.main()
