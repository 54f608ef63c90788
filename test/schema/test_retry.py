"""retry: what ended without effect is enqueued once more, once, by whom cancel allows it, and its
record stays."""
import unittest

from pgcase import Background, Case, wait_until


class Retry(Case):
    def put(self, session=None, call=b'\x01\x02', more=''):
        return (session or self.app).value(f"SELECT txrelay.enqueue('alice', %s{more})", call)

    def ended(self, session=None, **kwargs):
        tx = self.put(session, **kwargs)
        self.assertEqual((session or self.app).value('SELECT txrelay.cancel(%s)', tx), 'cancelled')
        return tx

    def retry(self, tx, session=None, more=''):
        return (session or self.app).value(f'SELECT txrelay.retry(%s{more})', tx)

    def row(self, tx):
        return self.owner.one('SELECT call, creator, role, priority, deadline, guard, tip, '
                              'max_tip, deadline_block, retries, key '
                              'FROM txrelay.outbox WHERE id = %s', tx)

    def test_the_same_call_and_options(self):
        self.relay.rows("SELECT txrelay.account_policy('alice', '{\"tip_cap\": 100}')")
        first = self.put(more=", key => 'k', creator => 'me', priority => 3, deadline => "
                              "'2099-01-01', spec_version => 7, "
                                  "tip => 5, max_tip => 9, deadline_block => 5000000, retries => "
                                  "2, not_before => '2098-01-01'")
        before = self.row(first)
        self.app.rows('SELECT txrelay.cancel(%s)', first)
        record = self.owner.one('SELECT f::text FROM txrelay.finished_transactions f WHERE id = %s',
                                first)
        new = self.retry(first)
        self.assertEqual(self.row(new)[:-1], before[:-1])
        self.assertEqual(self.owner.value('SELECT not_before::text FROM txrelay.outbox '
                                          'WHERE id = %s', new)[:4], '2098')
        self.assertIsNone(self.row(new)[-1])  # the key stands for the first one
        self.assertEqual(self.owner.one('SELECT f::text FROM txrelay.finished_transactions f '
                                        'WHERE id = %s', first), record)
        self.assertEqual(self.app.rows('SELECT id, retry_of, retried_as FROM txrelay.transactions '
                                       'ORDER BY id'),
                         [(first, None, new), (new, first, None)])

    def test_a_second_retry_gives_the_first_id(self):
        first = self.ended()
        new = self.retry(first)
        self.assertEqual((self.retry(first), self.retry(first, self.relay)), (new, new))
        self.app.rows('SELECT txrelay.cancel(%s)', new)
        self.assertEqual(self.retry(first), new)
        third = self.retry(new)
        self.assertEqual(self.app.value('SELECT retry_of FROM txrelay.transactions WHERE id = %s',
                                        third), new)
        self.assertEqual(self.count('outbox'), 1)

    def test_two_at_once_give_one(self):
        first, other = self.ended(), self.session('app')
        self.app.begin()
        new = self.retry(first)
        second = Background(other, lambda: self.retry(first, other))
        wait_until(lambda: self.superuser().value('SELECT cardinality(pg_blocking_pids(%s)) > 0',
                                                  other.pid), 'it waits')
        self.app.commit()
        self.assertEqual(second.join(), new)
        self.assertEqual(self.count('outbox'), 1)

    def test_a_retry_that_was_rolled_back_was_none(self):
        first = self.ended()
        self.app.begin()
        self.retry(first)
        self.app.rollback()
        self.assertEqual((self.count('retries'), self.count('outbox')), (0, 0))
        self.assertIsNotNone(self.retry(first))

    def test_what_is_refused(self):
        waiting = self.put()
        for tx, words in ((waiting, 'which has not ended'), (424242, 'no such transaction'),
                          (None, 'no such transaction')):
            error = self.refused('TR011', self.retry, tx)
            self.assertIn(words, str(error))
        for outcome, words in (('ok', 'took effect'), ('unknown', 'nobody can tell')):
            self.owner.rows("INSERT INTO txrelay.finished_transactions (id, account, outcome, "
                            "creator, created_at) "
                            "VALUES (nextval('txrelay.transaction_id'), %s, %s, 'app', now())",
                            self.alice, outcome)
            tx = self.owner.value('SELECT max(id) FROM txrelay.finished_transactions')
            self.assertIn(words, str(self.refused('TR011', self.retry, tx)))
        signed = self.owner.value("INSERT INTO txrelay.outbox_presigned (account, extrinsic, "
                                  "creator) VALUES (%s, '\\x01', 'app') "
                                  'RETURNING id', self.alice)
        self.app.rows('SELECT txrelay.cancel(%s)', signed)
        self.assertIn('signed elsewhere', str(self.refused('TR011', self.retry, signed)))
        self.assertEqual(self.count('retries'), 0)

    def test_a_deadline_that_has_passed_must_be_replaced(self):
        first = self.ended(more=", deadline => clock_timestamp() + interval '0.2 s'")
        wait_until(lambda: self.owner.value(
            "SELECT (options ->> 'deadline')::timestamptz < clock_timestamp() "
                                            'FROM txrelay.finished_transactions WHERE id = %s',
                                            first), 'it is over')
        self.assertRegex(str(self.refused('TR011', self.retry, first)),
                         'retry: deadline of transaction .* was')
        new = self.retry(first, more=", deadline => 'infinity'")
        self.assertIsNone(self.row(new)[4])
        second = self.ended(more=', deadline_block => 5')
        self.owner.rows('UPDATE txrelay.leadership SET seen_block = 9 WHERE subject = %s',
                        self.alice)
        self.assertIn('deadline_block', str(self.refused('TR011', self.retry, second)))
        self.assertEqual(self.row(self.retry(second, more=', deadline_block => 10'))[8], 10)

    def test_who_may(self):
        """The rights of cancel, and the new one belongs to whom the old one belonged to."""
        root = self.superuser()
        root.rows('DROP ROLE IF EXISTS other; CREATE ROLE other LOGIN IN ROLE txrelay_app')
        other = self.session('other')
        first = self.ended(more=", creator => 'other'")  # whoever it names: it belongs to app
        self.assertIn('belongs to app', str(self.refused('42501', self.retry, first, other)))
        new = self.retry(first, self.relay)
        self.assertEqual(self.row(new)[1:3], ('other', 'app'))
        self.refused('42501', other.rows, 'SELECT txrelay.cancel(%s)', new)
        self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', new), 'cancelled')
        plain = self.ended()
        new = self.retry(plain, self.relay)
        self.assertEqual(self.row(new)[1:3], ('app', None))

    def test_after_it_had_a_nonce(self):
        """A record that a leader made has the options too."""
        self.relay.rows("SELECT txrelay.account_policy('alice', '{\"tip_cap\": 100}')")
        epoch = self.lead()
        tx = self.put(more=", creator => 'me', priority => 3, deadline => '2099-01-01', "
                           "spec_version => 7, tip => 5, max_tip => 9, "
                           'deadline_block => 5000000, retries => 2')
        before = self.row(tx)
        self.admit(self.relay, epoch, [tx], [0])
        self.relay.rows("SELECT txrelay.leader_finish(%s, %s, ARRAY[0], ARRAY[NULL]::bytea[], "
                        "ARRAY[NULL]::bytea[], ARRAY[7], "
                        "ARRAY[NULL]::int[], ARRAY['usurped'], ARRAY['somebody else'], "
                        "ARRAY[NULL]::numeric[])", self.alice, epoch)
        self.assertEqual(self.row(self.retry(tx)), before)

    def test_rows_leave_with_the_records(self):
        first = self.ended()
        self.retry(first)
        self.relay.rows("SELECT txrelay.drop_partitions(interval '1 day', p_now => now() + "
                        "interval '1 year')")
        self.assertEqual(self.count('retries'), 0)


if __name__ == '__main__':
    unittest.main()
