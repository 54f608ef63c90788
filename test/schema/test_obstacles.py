"""What keeps accounts from going on: what leaders tell, what the database sees by itself, and why a transaction waits."""
import unittest

from pgcase import Case


class Obstacles(Case):
    def tell(self, epoch, code, text=None, ms=0, account=None):
        return self.relay.value('SELECT txrelay.leader_obstacles(%s, %s, %s, %s, %s)', [account or self.alice], [epoch], [code], [text], [ms])

    def blocked(self):
        return self.app.dicts('SELECT code, reason, clock_timestamp() - since AS age FROM txrelay.blocked_accounts')

    def waits(self, tx):
        return self.app.value('SELECT waits FROM txrelay.status(%s)', tx)

    def idle_for(self, seconds):
        """As if its claim had run out so long ago."""
        self.owner.rows("""UPDATE txrelay.leadership SET expiry_1 = clock_timestamp() - %s * interval '1 s',
            expiry_2 = clock_timestamp() - %s * interval '1 s', leased = false""", seconds, seconds)

    def test_told_and_taken_back(self):
        epoch = self.lead()
        tx, = self.enqueue()
        self.assertEqual((self.blocked(), self.waits(tx)), ([], None))
        self.assertEqual(self.tell(epoch, 'node', 'no endpoint is usable', 6000), 1)
        got, = self.blocked()
        self.assertEqual((got['code'], got['reason']), ('node', 'no endpoint is usable'))
        self.assertTrue(6 <= got['age'].total_seconds() < 8, got['age'])
        self.assertEqual(self.waits(tx), 'node: no endpoint is usable')
        self.assertEqual(self.tell(epoch, 'finality', 'it lags', 9000), 1)
        self.assertEqual([r['code'] for r in self.blocked()], ['finality'])
        self.assertEqual(self.tell(epoch, None), 1)
        self.assertEqual((self.blocked(), self.waits(tx)), ([], None))
        self.assertEqual(self.tell(epoch, None), 0)

    def test_of_a_pending_transaction(self):
        epoch, (tx,) = self.pending()
        self.tell(epoch, 'head', 'nonce 0 holds up the account')
        self.assertEqual(self.waits(tx), 'head: nonce 0 holds up the account')
        self.assertEqual(self.blocked()[0]['code'], 'head')

    def test_only_the_leader_of_this_epoch(self):
        epoch = self.lead()
        self.assertEqual(self.tell(epoch + 1, 'node', 'x'), 0)
        self.assertEqual(self.tell(epoch, 'node', 'x', account=self.alice + 100), 0)
        self.assertEqual(self.tell(epoch, 'node', 'x'), 1)
        self.idle_for(0)
        self.assertEqual(self.blocked(), [], 'nobody leads it now, and nothing waits')
        later = self.lead()
        self.assertGreater(later, epoch)
        self.assertEqual(self.blocked(), [], 'its successor has not said so')
        self.assertEqual(self.tell(epoch, 'node', 'x'), 0)

    def test_many_and_one_twice(self):
        epoch = self.lead()
        n = self.relay.value('SELECT txrelay.leader_obstacles(%s, %s, %s, %s, %s)', [self.alice] * 2, [epoch] * 2,
                             [None, 'node'], [None, 'the last one counts'], [0, -5])
        self.assertEqual((n, self.blocked()[0]['reason']), (1, 'the last one counts'))
        self.refused('TR011', self.relay.value, 'SELECT txrelay.leader_obstacles(%s, %s, %s, %s, %s)',
                     [1, 2], [1], ['x'], ['x'], [0], text='lengths')

    def test_texts_have_an_end(self):
        epoch = self.lead()
        self.tell(epoch, 'x' * 100, 'y' * 10000, 2 ** 62)
        row = self.owner.dict('SELECT code, detail, clock_timestamp() - since AS age FROM txrelay.obstacles')
        self.assertEqual((len(row['code']), len(row['detail']), row['age'].days), (40, 500, 1))

    def test_nobody_leads(self):
        tx, = self.enqueue()
        self.assertEqual(self.blocked(), [])
        self.lead()
        self.idle_for(4)
        self.assertEqual((self.blocked(), self.waits(tx)), ([], None))
        self.idle_for(6)
        got, = self.blocked()
        self.assertEqual(got['code'], 'no_leader')
        self.assertIn('the last leader was relay-a', got['reason'])
        self.assertTrue(6 <= got['age'].total_seconds() < 8, got['age'])
        self.assertIn('no_leader', self.waits(tx))
        self.owner.rows('DELETE FROM txrelay.outbox')
        self.assertEqual(self.blocked(), [], 'it has nothing to do')

    def test_never_led(self):
        tx, = self.enqueue()
        self.owner.rows("UPDATE txrelay.accounts SET created_at = created_at - interval '10 s'")
        self.assertEqual(self.blocked()[0]['code'], 'no_leader')
        self.assertIn('no_leader', self.waits(tx))

    def test_paused(self):
        self.lead()
        tx, = self.enqueue()
        self.relay.rows("SELECT txrelay.account_pause('alice', 'for the audit')")
        self.assertEqual(self.blocked()[0]['code'], 'paused')
        self.assertEqual(self.waits(tx), 'paused: for the audit')

    def test_suspended(self):
        epoch = self.lead()
        self.relay.rows("SELECT txrelay.leader_pause(%s, %s, 'payment', 'it cannot pay')", self.alice, epoch)
        self.tell(epoch, 'suspended', 'it cannot pay')
        self.assertEqual([(r['code'], r['reason']) for r in self.blocked()], [('payment', 'it cannot pay')])

    def test_not_before(self):
        self.lead()
        tx = self.app.value("SELECT txrelay.enqueue('alice', '\\x00', not_before => clock_timestamp() + interval '1 h')")
        self.assertIn('not_before: it is not sent before', self.waits(tx))
        self.assertEqual(self.blocked(), [])

    def test_lost_commits(self):
        self.lead()
        tx, = self.enqueue()
        self.owner.rows('UPDATE txrelay.accounts SET reconcile_from = 1, lost_since = clock_timestamp()')
        self.assertEqual(self.blocked()[0]['code'], 'lost_commits')
        self.assertIn('lost_commits', self.waits(tx))

    def test_a_refusal_before_what_follows_from_it(self):
        epoch, (tx,) = self.pending()
        self.relay.rows("SELECT txrelay.leader_record_status(%s, %s, '{0}', ARRAY[(SELECT hash FROM txrelay.pending_transactions)],"
                        " '{refused}', '{NULL}', '{NULL}', '{no}')", self.alice, epoch)
        self.tell(epoch, 'head', 'nonce 0 holds up the account')
        self.assertEqual([(r['code'], r['reason']) for r in self.blocked()], [('refused', 'no')])
        self.tell(epoch, 'node', 'no endpoint is usable')
        self.assertEqual([r['code'] for r in self.blocked()], ['node'])

    def test_applications_do_not_write_it(self):
        for session in (self.app, self.session('follower')):
            self.refused('42501', session.value, 'SELECT txrelay.leader_obstacles(%s, %s, %s, %s, %s)',
                         [self.alice], [1], ['x'], ['x'], [0])


if __name__ == '__main__':
    unittest.main()
