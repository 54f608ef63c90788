"""What followers hear, and what time does to the tables: payloads, partitions, retention."""
import json
import unittest

from pgcase import Case, h32

BLOCK = h32('block')
CHANNELS = ('pending_tx_new', 'pending_tx_update', 'pending_tx_removed')


class Notify(Case):
    def setUp(self):
        super().setUp()
        self.ear = self.listen(*CHANNELS)
        self.hex_id = '0x' + h32('alice').hex()

    def told(self):
        return [(channel, json.loads(payload)) for channel, payload in self.heard(self.ear)]

    def test_the_life_of_a_row(self):
        epoch, (tx,) = self.pending(1, first=4, creator='shop')
        (channel, new), = self.told()
        self.assertEqual(channel, 'pending_tx_new')
        self.assertRegex(new.pop('updated_at'), r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$')
        self.assertEqual(new, {'account_id': self.hex_id, 'nonce': 4, 'hash': '0x' + h32(4).hex(),
                               'state': 'signed',
                               'creator_id': 'shop', 'id': tx})
        for state, block in (('ready', None), ('in_block', BLOCK), ('retracted', BLOCK),
                             ('finality_timeout', BLOCK)):
            self.state(self.relay, epoch, (4, h32(4), state, block))
            (channel, update), = self.told()
            self.assertEqual((channel, update['state'], update.get('block_hash')),
                             ('pending_tx_update', state, block and '0x' + block.hex()))
        self.attempt(self.relay, epoch, [4], [h32('4b')])
        (_, update), = self.told()
        self.assertEqual((update['hash'], update['state'], 'block_hash' in update),
                         ('0x' + h32('4b').hex(), 'signed', False))
        self.finish(self.relay, epoch, (4, h32(4), BLOCK, 'ok'))
        (one, update), (two, removed) = self.told()
        self.assertEqual((one, update['state'], update['hash'], update['block_hash']),
                         ('pending_tx_update', 'finalized', '0x' + h32(4).hex(),
                          '0x' + BLOCK.hex()))
        self.assertEqual((two, removed),
                         ('pending_tx_removed', {'account_id': self.hex_id, 'nonce': 4, 'id': tx,
                                                                 'outcome': 'ok'}))

    def test_nothing_visible_nothing_told(self):
        epoch, _ = self.pending(2)
        self.state(self.relay, epoch, (0, h32(0), 'ready'))
        self.attempt(self.relay, epoch, [1], [h32('1b')])
        self.told()
        self.state(self.relay, epoch, (0, h32(0), 'ready'))
        self.state(self.relay, epoch, (0, h32(0), 'ready', None, None, 'a note'))
        self.state(self.relay, epoch, (0, h32(0), 'unknown'))
        self.state(self.relay, epoch, (1, h32(1), 'dropped'))
        self.assertEqual(self.told(), [])

    def test_a_rolled_back_write_is_not_told(self):
        epoch, ids = self.lead(), self.enqueue()
        self.relay.begin()
        self.admit(self.relay, epoch, ids, [0])
        self.relay.rollback()
        self.assertEqual(self.told(), [])

    def test_filler(self):
        epoch, (tx,) = self.pending()
        self.told()
        self.fill(self.relay, epoch, [0], 'expired')
        (one, removed), (two, new) = self.told()
        self.assertEqual((one, removed['id'], removed['outcome']),
                         ('pending_tx_removed', tx, 'expired'))
        self.assertEqual((two, new['id'], new['creator_id'], new['nonce']),
                         ('pending_tx_new', None, None, 0))

    def test_ends_without_a_nonce_and_goes_back_without_an_outcome(self):
        epoch, (tx,) = self.pending()
        other = self.enqueue()[0]
        self.told()
        self.relay.rows("SELECT txrelay.leader_reject(%s, %s, ARRAY[%s]::bigint[], '{failed}', "
                        "'{x}')", self.alice, epoch,
                        other)
        self.requeue(self.relay, epoch, (0, 'usurped', 'x'))
        self.assertEqual(self.told(), [
            ('pending_tx_removed', {'account_id': self.hex_id, 'nonce': None, 'id': other,
                                    'outcome': 'failed'}),
            ('pending_tx_removed', {'account_id': self.hex_id, 'nonce': 0, 'id': tx})])

    def test_an_end_wakes_who_waits_for_it_alone(self):
        epoch, ids = self.pending(3)
        ids += self.enqueue(3)
        ears = {tx: self.listen(f'tx_ended_{tx}') for tx in ids}
        nobody = self.listen('tx_ended_0')
        self.state(self.relay, epoch, (0, h32(0), 'in_block', BLOCK))
        self.requeue(self.relay, epoch, (1, 'usurped', 'x'))
        self.fill(self.relay, epoch, [2], 'expired')
        self.assertEqual([self.heard(ear) for ear in ears.values()],
                         [[]] * 2 + [[(f'tx_ended_{ids[2]}', 'expired')]] + [[]] * 3)
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        self.relay.rows("SELECT txrelay.leader_reject(%s, %s, ARRAY[%s]::bigint[], '{failed}', "
                        "'{x}')", self.alice, epoch, ids[3])
        self.app.value('SELECT txrelay.cancel(%s)', ids[4])
        self.owner.rows("UPDATE txrelay.outbox SET deadline = clock_timestamp() - interval '1 s' "
                        "WHERE id = %s", ids[5])
        self.look(epoch)
        outcomes = {ids[0]: 'ok', ids[3]: 'failed', ids[4]: 'cancelled', ids[5]: 'expired'}
        for tx, ear in ears.items():
            self.assertEqual(self.heard(ear), [(f'tx_ended_{tx}', outcomes[tx])] if tx in outcomes
                             else [], tx)
        self.assertEqual(self.heard(nobody), [])

    def test_a_large_call_is_stored_and_told_like_any_other(self):
        """No payload contains the bytes of a call."""
        for size in (64 << 10, 1 << 20):
            epoch = self.account()['epoch'] or self.lead()
            nonce = self.account()['next_nonce'] or 0
            self.pending(1, first=nonce, epoch=epoch, call=b'\x2a' * size)
            self.state(self.relay, epoch, (nonce, h32(nonce), 'in_block', BLOCK))
            got = self.heard(self.ear)
            self.assertEqual([c for c, _ in got], ['pending_tx_new', 'pending_tx_update'])
            self.assertTrue(all(len(p) < 600 for _, p in got))
            self.assertEqual(len(self.row(nonce)['call']), size)
            self.assertEqual(len(self.relay.dict('SELECT * FROM txrelay.leader_snapshot(%s, %s, '
                                                 '%s, 1)', self.alice,
                                                 epoch, nonce - 1)['call']), size)

    def test_the_largest_payload_is_far_below_the_limit(self):
        epoch, _ = self.pending(1, creator='\1' * 200)
        self.state(self.relay, epoch, (0, h32(0), 'finality_timeout', BLOCK))
        sizes = [len(p.encode()) for _, p in self.heard(self.ear)]
        self.assertEqual(len(sizes), 2)
        self.assertLess(max(sizes), 2000)

    def test_thousands_in_one_transaction_come_in_order(self):
        n = 3000
        epoch = self.lead()
        ids = self.app.value("SELECT txrelay.enqueue_many('alice', array_fill('\\x01'::bytea, "
                             "ARRAY[%s]))", n)
        self.admit(self.relay, epoch, ids, list(range(n)))
        self.assertEqual([p['nonce'] for _, p in self.told()], list(range(n)))

    def test_the_sessions_time_zone_does_not_matter(self):
        self.relay.rows("SET timezone = 'Asia/Kolkata'; SET datestyle = 'German'")
        self.pending()
        (_, new), = self.told()
        self.assertEqual(new['updated_at'], self.owner.value(
            "SELECT to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') "
            "FROM txrelay.pending_transactions"))


class Partitions(Case):
    FRESH = True

    def names(self):
        return [r[0] for r in self.owner.rows(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
            "WHERE i.inhparent = 'txrelay.finished_transactions'::regclass ORDER BY 1")]

    def finished(self, *times):
        for t in times:
            self.superuser().rows("INSERT INTO txrelay.finished_transactions (id, account, "
                                  "outcome, created_at, "
                                  "finished_at) VALUES (nextval('txrelay.transaction_id'), 1, "
                                  "'ok', %s, %s)", t, t)

    def test_installed_ahead_and_made_once(self):
        before = self.names()
        self.assertEqual(len(before), 4)
        self.assertEqual(self.relay.value('SELECT txrelay.ensure_partitions()'), 0)
        self.assertEqual(self.relay.value('SELECT txrelay.ensure_partitions(3)'), 1)
        self.assertEqual(len(self.names()), 5)
        for ahead in (-1, 25, None):
            self.refused('TR011', self.relay.rows, 'SELECT txrelay.ensure_partitions(%s)', ahead,
                         text='p_ahead')

    def test_what_the_default_caught_moves(self):
        self.finished('2040-02-29 23:59:59Z', '2040-03-01 00:00:00Z', '2040-03-31 12:00:00Z',
                      '2040-04-01 00:00:00Z')
        self.assertEqual(self.relay.value("SELECT txrelay.ensure_partitions(0, '2040-03-15')"), 1)
        self.assertEqual(self.owner.value('SELECT count(*) FROM '
                                          'txrelay.finished_transactions_2040m03'), 2)
        self.assertEqual(self.owner.value('SELECT count(*) FROM '
                                          'txrelay.finished_transactions_default'), 2)
        for table in ('finished_transactions', 'finished_transactions_default',
                      'finished_transactions_2040m03'):
            self.refused('TR003', self.superuser().rows, f'DELETE FROM txrelay.{table}')
        # Rights and indexes of the new one are the parent's.
        self.assertFalse(self.owner.value("SELECT has_table_privilege('relay', "
                                          "'txrelay.finished_transactions_2040m03', "
                                          "'INSERT, UPDATE, DELETE, TRUNCATE')"))
        indexes = [self.owner.value("SELECT count(*) FROM pg_index "
                                    f"WHERE indrelid = 'txrelay.{table}'::regclass")
                   for table in ('finished_transactions', 'finished_transactions_2040m03')]
        self.assertEqual(indexes[0], indexes[1])
        self.assertGreater(indexes[0], 3)

    def test_two_callers(self):
        other = self.session('relay')
        self.relay.begin()
        self.relay.value("SELECT txrelay.ensure_partitions(0, '2041-01-01')")
        call = self.background(other, "SELECT txrelay.ensure_partitions(0, '2041-01-01')")
        self.relay.commit()
        self.assertEqual(call.join(), [(0,)])

    def test_the_sessions_time_zone_does_not_matter(self):
        self.relay.rows("SET timezone = 'Pacific/Kiritimati'")
        self.assertEqual(self.relay.value("SELECT txrelay.ensure_partitions(0, '2042-01-31 "
                                          "23:00:00Z')"), 1)
        self.assertIn('finished_transactions_2042m01', self.names())

    def test_retention_drops_whole_partitions(self):
        self.relay.value("SELECT txrelay.ensure_partitions(1, '2020-01-15')")
        self.finished('2020-01-20 00:00:00Z', '2020-02-20 00:00:00Z')
        drop = "SELECT txrelay.drop_partitions(interval '30 days', %s)"
        self.assertEqual(self.relay.value(drop, '2020-03-01 23:00:00Z'), 0)
        self.assertEqual(self.relay.value(drop, '2020-03-02 00:00:00Z'), 1)
        self.assertEqual(self.count('finished_transactions'), 1)
        self.assertEqual(self.relay.value(drop, '2020-04-02 00:00:00Z'), 1)
        self.assertEqual(len(self.names()), 4)
        for keep in ('1 hour', None):
            self.refused('TR011', self.relay.rows, 'SELECT txrelay.drop_partitions(%s::interval)',
                         keep, text='p_age')


class Cleanup(Case):
    def cleanup(self, epoch, limit=10000):
        return self.relay.value("SELECT txrelay.leader_cleanup(%s, %s, interval '30 days', %s)",
                                self.alice, epoch, limit)

    def test_attempts_and_keys_of_what_has_ended(self):
        """By the leader alone, after the retention time."""
        epoch, ids = self.pending(3)
        keyed = [self.enqueue(key=k)[0] for k in ('ended', 'waiting')]
        self.app.value('SELECT txrelay.cancel(%s)', keyed[0])
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'), (1, h32(1), BLOCK, 'ok'))
        self.assertEqual(self.cleanup(epoch), 0)
        self.owner.rows("UPDATE txrelay.attempts SET ended_at = ended_at - interval '31 days'; "
                        "UPDATE txrelay.idempotency_keys SET created_at = created_at - interval "
                        "'31 days'")
        self.assertEqual(self.cleanup(epoch, 1), 2)
        self.assertEqual(self.cleanup(epoch), 1)
        self.assertEqual(self.owner.rows('SELECT nonce FROM txrelay.attempts'), [(2,)])
        self.assertEqual(self.owner.rows('SELECT key FROM txrelay.idempotency_keys'),
                         [('waiting',)])
        self.assertEqual(self.status(ids[0])['outcome'], 'ok')
        self.refused('TR011', self.relay.rows,
                     "SELECT txrelay.leader_cleanup(%s, %s, interval '1 h')", self.alice, epoch)


if __name__ == '__main__':
    unittest.main()
