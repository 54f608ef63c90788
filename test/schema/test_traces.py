"""The trace context that an application gives: it is checked, kept wherever the transaction goes,
and told."""
import json
import unittest

from pgcase import Case, h32

TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
OTHER = 'cc-0af7651916cd43dd8448eb211c80319d-b7ad6b7169203332-00'
BLOCK = h32('block')


class Traces(Case):
    WIDE = True

    def put(self, more=f", traceparent => '{TRACE}'"):
        return self.app.value(f"SELECT txrelay.enqueue('alice', '\\x0001'{more})")

    def trace(self, tx):
        return self.app.value('SELECT traceparent FROM txrelay.status(%s)', tx)

    def admitted(self):
        epoch, (tx,) = self.pending(1, traceparent=TRACE)
        return epoch, tx

    def test_it_is_stored_by_each_function(self):
        self.assertEqual(self.trace(self.put()), TRACE)
        self.assertEqual(self.trace(self.put(f", key => 'k', traceparent => '{OTHER}'")), OTHER)
        self.assertIsNone(self.trace(self.put('')))
        ids = self.app.value("SELECT txrelay.enqueue_many('alice', ARRAY['\\x00'::bytea, "
                             f"'\\x01'], traceparent => '{TRACE}')")
        self.assertEqual([self.trace(i) for i in ids], [TRACE, TRACE])
        # By the longer way too: an account that is not named by its alias.
        account = '0x' + self.owner.value(
            "SELECT encode(account_id, 'hex') FROM txrelay.accounts WHERE alias = 'alice'")
        tx = self.app.value(f"SELECT txrelay.enqueue(%s, '\\x02', traceparent => '{TRACE}')",
                            account)
        self.assertEqual(self.trace(tx), TRACE)

    def test_the_first_one_of_a_key_stays(self):
        first = self.put(f", key => 'k', traceparent => '{TRACE}'")
        self.assertEqual(self.put(f", key => 'k', traceparent => '{OTHER}'"), first)
        self.assertEqual(self.trace(first), TRACE)

    def test_what_is_none_is_refused(self):
        for bad in ('', 'x', TRACE[:-1], TRACE + '0', TRACE.upper(), 'ff' + TRACE[2:],
                    TRACE.replace('-', '_'),
                    f'00-{"0" * 32}-b7ad6b7169203331-01',
                    f'00-0af7651916cd43dd8448eb211c80319c-{"0" * 16}-01', TRACE + '\n'):
            for function, given in (('enqueue', "'alice', '\\x00'"),
                                    ('enqueue_many', "'alice', ARRAY['\\x00'::bytea]")):
                with self.subTest(bad=bad, function=function):
                    self.refused('TR011', self.app.rows,
                                 f'SELECT txrelay.{function}({given}, traceparent => %s)', bad,
                                 text=('traceparent', 'like 00-'))
        self.assertEqual(self.count('outbox'), 0)

    def test_it_stays_from_the_outbox_to_the_end(self):
        epoch, tx = self.admitted()
        self.assertEqual(self.row(0)['traceparent'], TRACE)
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        self.assertEqual(self.trace(tx), TRACE)

    def test_it_goes_back_to_the_outbox_with_its_transaction(self):
        epoch, tx = self.admitted()
        self.assertEqual(self.requeue(self.relay, epoch, (0, 'usurped', 'another program')), 1)
        self.assertEqual(self.relay.dicts('SELECT * FROM txrelay.leader_outbox(%s, %s, 10)',
                                          self.alice, epoch)[0]['traceparent'],
                         TRACE)

    def test_a_retry_has_it_too(self):
        tx = self.put()
        self.app.value('SELECT txrelay.cancel(%s)', tx)
        self.assertEqual(self.trace(tx), TRACE)
        self.assertEqual(self.trace(self.app.value('SELECT txrelay.retry(%s)', tx)), TRACE)

    def test_the_leader_reads_it(self):
        epoch, tx = self.admitted()
        row, = self.relay.dicts('SELECT * FROM txrelay.leader_snapshot(%s, %s, -1, 10)', self.alice,
                                epoch)
        self.assertEqual((row['id'], row['traceparent']), (tx, TRACE))

    def test_notifications_have_it_where_it_was_given(self):
        ear = self.listen('pending_tx_new', 'pending_tx_update', 'pending_tx_removed')
        for nonce, trace in enumerate((TRACE, None)):
            with self.subTest(trace=trace):
                epoch, _ = self.pending(1, nonce, **({'traceparent': trace} if trace else {}))
                self.state(self.relay, epoch, (nonce, h32(nonce), 'ready', None, None))
                self.finish(self.relay, epoch, (nonce, h32(nonce), BLOCK, 'ok'))
                waits = self.put(f", traceparent => '{trace}'" if trace else '')
                self.app.value('SELECT txrelay.cancel(%s)', waits)
                heard = [(channel, json.loads(payload)) for channel, payload in self.heard(ear)]
                self.assertEqual({channel for channel, _ in heard},
                                 {'pending_tx_new', 'pending_tx_update', 'pending_tx_removed'})
                for channel, payload in heard:
                    self.assertEqual(payload.get('traceparent'), trace, (channel, payload))
                    self.assertEqual('traceparent' in payload, trace is not None)
                self.assertIn((None, waits, 'cancelled'),
                              [(p['nonce'], p['id'], p.get('outcome')) for _, p in heard])


if __name__ == '__main__':
    unittest.main()
