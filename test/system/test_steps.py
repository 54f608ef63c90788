"""The log tells each step of each transaction, at the level that log_transactions names."""
import re
import unittest

from harness.world import World


def steps(relay, tx):
    """(event, fields) of each line about a transaction, in their order."""
    found = []
    for line in relay.text().splitlines():
        m = re.search(rf' event=(transaction\.\w+) .*\bid={tx}\b', line)
        if m:
            found.append((m.group(1), dict(re.findall(r'(\w+)=("[^"]*"|\S+)', line))))
    return found


class Steps(unittest.TestCase):
    def test_each_step_with_id_account_nonce_and_hash(self):
        with World() as world:
            relay = world.relay('one', extra='log_transactions: info\n')
            world.wait_leader(relay)
            tx = world.enqueue('told')
            world.settle()
            (nonce, digest), = world.pg.query("SELECT nonce, '0x' || encode(hash, 'hex') FROM txrelay.finished_transactions "
                                              'WHERE id = %s', (tx,))
            found = steps(relay, tx)
            events = [event for event, _ in found]
            self.assertEqual(events[:2], ['transaction.admitted', 'transaction.submitted'])
            self.assertEqual(events[-1], 'transaction.ended')
            self.assertIn('in_block', [fields['state'] for event, fields in found if event == 'transaction.state'])
            for event, fields in found:
                self.assertEqual((fields['account'], fields['nonce'], fields['hash'], fields['level']),
                                 ('alice', str(nonce), digest, 'info'), event)
            self.assertEqual(found[-1][1]['outcome'], 'ok')
            self.assertEqual(relay.unparsed(), [])

    def test_by_default_only_ends_that_are_not_ok(self):
        with World() as world:
            relay = world.relay('one')
            world.wait_leader(relay)
            good = world.enqueue('fine')
            bad = world.enqueue_raw(b'\x30\x00')
            world.settle()
            self.assertEqual(steps(relay, good), [])
            (event, fields), = steps(relay, bad)
            self.assertEqual((event, fields['level'], fields['outcome']), ('transaction.ended', 'warn', 'failed'))


if __name__ == '__main__':
    unittest.main()
