"""The log tells each step of each transaction, at the level that log_transactions names."""
import os
import re
import unittest

from harness import proc
from harness.chain import remark
from harness.relay import cli
from harness.world import World


def trace(n):
    return f'00-{n:032x}-{n:016x}-01'


def steps(relay, tx):
    """(event, fields) of each line about a transaction, in their order."""
    found = []
    for line in relay.text().splitlines():
        m = re.search(rf' event=(transaction\.\w+) .*\bid={tx}\b', line)
        if m:
            found.append((m.group(1), dict(re.findall(r'(\w+)=("[^"]*"|\S+)', line))))
    return found


def told(text, tx, member='event'):
    """What each line of a reader about a transaction has for this member."""
    return [line.get(member) for line in proc.json_lines(text) if line.get('id') == tx]


class Steps(unittest.TestCase):
    def test_each_step_with_id_account_nonce_and_hash(self):
        with World() as world:
            relay = world.relay('one', extra='log_transactions: info\n')
            world.wait_leader(relay)
            tx = world.enqueue('told')
            world.settle()
            (nonce, digest), = world.pg.query(
                "SELECT nonce, '0x' || encode(hash, 'hex') FROM txrelay.finished_transactions "
                                              'WHERE id = %s', (tx,))
            relay.wait_log(rf'event=transaction.ended account=alice id={tx} ')
            found = steps(relay, tx)
            events = [event for event, _ in found]
            self.assertEqual(events[:2], ['transaction.admitted', 'transaction.submitted'])
            self.assertEqual(events[-1], 'transaction.ended')
            self.assertIn('in_block',
                          [fields['state'] for event, fields in found
                           if event == 'transaction.state'])
            for event, fields in found:
                self.assertEqual((fields['account'], fields['nonce'], fields['hash'],
                                  fields['level']),
                                 ('alice', str(nonce), digest, 'info'), event)
                self.assertNotIn('trace', fields)
            self.assertEqual(found[-1][1]['outcome'], 'ok')
            self.assertEqual(relay.unparsed(), [])

    def test_by_default_only_ends_that_are_not_ok(self):
        with World() as world:
            relay = world.relay('one')
            world.wait_leader(relay)
            good = world.enqueue('fine')
            bad = world.enqueue_raw(b'\x30\x00')
            world.settle()
            relay.wait_log(rf'event=transaction.ended account=alice id={bad} ')
            self.assertEqual(steps(relay, good), [])
            (event, fields), = steps(relay, bad)
            self.assertEqual((event, fields['level'], fields['outcome']),
                             ('transaction.ended', 'warn', 'failed'))

    def test_an_end_in_the_outbox_by_the_database(self):
        """Cancelled by an application while a relay leads and while none does, and expired: one
        line each, and counted."""
        with World() as world:
            # noqa: E731
            cancel = lambda tx: self.assertEqual(world.pg.value('SELECT txrelay.cancel(%s)', (tx,)),
                                                 'cancelled')
            # noqa: E731
            put = lambda n, **k: world.pg.value("SELECT txrelay.enqueue('alice', %s, traceparent "
                                                f"=> %s {''.join(f', {a} => %s' for a in k)})",
                                                (remark(f'ends {n}'), trace(n), *k.values()))
            relay = world.relay('one')
            world.wait_leader(relay)
            cli('pause', 'alice', 'they wait', '--database', world.pg.dsn)
            one, late, two = put(1), put(2, expires_in='1 second'), put(3)
            cancel(one)
            relay.wait_log(rf'event=transaction.ended account=alice id={one} ')
            relay.wait_log(rf'event=transaction.ended account=alice id={late} ')
            for tx, n, level, outcome in ((one, 1, 'info', 'cancelled'),
                                          (late, 2, 'warn', 'expired')):
                (event, fields), = steps(relay, tx)
                self.assertEqual((event, fields['level'], fields['outcome'], fields['nonce'],
                                  fields['hash'], fields['trace']),
                                 ('transaction.ended', level, outcome, '-1', '""', trace(n)))
                self.assertIn(world.pg.value(
                    'SELECT error FROM txrelay.finished_transactions WHERE id = %s', (tx,)),
                    fields['text'])
                self.assertRegex(relay.control({'cmd': 'metrics'})['text'],
                              rf'txrelay_finished_total{{account="alice",outcome="{outcome}"}} 1\b')
            relay.kill()
            cancel(two)
            second = world.relay('two')
            second.wait_log(rf'level=info event=transaction.ended account=alice id={two} nonce=-1 '
                            rf'.*outcome=cancelled .*trace={trace(3)}')
            self.assertEqual((steps(relay, two), relay.unparsed() + second.unparsed()), ([], []))

    def test_a_trace_from_the_enqueue_to_the_end(self):
        """By SQL, by the command, and by a relay's control endpoint; told in each line, also by
        the next leader."""
        db = lambda world: ('--database', world.pg.dsn)  # noqa: E731
        with World('--block-ms', '0') as world:
            relay = world.relay('one', extra='log_transactions: info\n')
            world.wait_leader(relay)
            tail = proc.Process([proc.TXRELAY, 'tail', '--json', *db(world)],
                                os.path.join(world.dir, 'tail.log'))
            proc.wait_for('the reader to be live', lambda: '"event":"live"' in tail.text(), 60)
            sql = world.pg.value("SELECT txrelay.enqueue('alice', %s, traceparent => %s)",
                                 (remark('by SQL'), trace(1)))
            command = int(cli('enqueue', 'alice', '0x' + remark('by command').hex(),
                              '--traceparent', trace(2), *db(world)).stdout)
            control = relay.control({'cmd': 'send', 'account': 'alice',
                                     'call': '0x' + remark('by JSON').hex(),
                                     'traceparent': trace(3)})['id']
            bad = world.pg.value("SELECT txrelay.enqueue('alice', '\\x3000', traceparent => %s)",
                                 (trace(4),))
            world.committed.update({remark('by SQL'): sql, remark('by command'): command,
                                    remark('by JSON'): control,
                                    b'\x30\x00': bad})
            for tx in (sql, command, control):
                relay.wait_log(rf'event=transaction.admitted account=alice id={tx} ')
            relay.wait_log(rf'event=transaction.ended account=alice id={bad} ')
            relay.kill()
            second = world.relay('two', extra='log_transactions: info\n')
            world.wait_leader(second)
            proc.wait_for('all to end', lambda: world.chain.rpc('dev_newBlock', {'count': 1})
                          and not world.unfinished())
            world.check()
            for n, tx in ((1, sql), (2, command), (3, control)):
                second.wait_log(rf'event=transaction.ended account=alice id={tx} ')
                for log in (relay, second):
                    found = steps(log, tx)
                    self.assertEqual({fields.get('trace') for _, fields in found}, {trace(n)},
                                     (log.name, found))
                self.assertEqual(steps(second, tx)[-1][0], 'transaction.ended')
                self.assertIn(trace(n), cli('status', str(tx), *db(world)).stdout)
            (event, fields), = steps(relay, bad)
            self.assertEqual((event, fields['trace']), ('transaction.ended', trace(4)))
            # As it was notified, and as the tables have it.
            for n, tx in ((1, sql), (2, command), (3, control), (4, bad)):
                proc.wait_for('the reader to show the end',
                              lambda t=tx: told(tail.text(), t)[-1:] == ['finished'], 60)
                self.assertEqual(set(told(tail.text(), tx, 'traceparent')), {trace(n)})
            again = proc.Process([proc.TXRELAY, 'tail', '--json', '--since', '1970-01-01T00:00:00Z',
                                  *db(world)],
                                 os.path.join(world.dir, 'again.log'))
            proc.wait_for('the second reader to be live', lambda: '"event":"live"' in again.text(),
                          60)
            for n, tx in ((1, sql), (4, bad)):
                proc.wait_for('its end', lambda t=tx: told(again.text(), t))
                self.assertEqual(told(again.text(), tx, 'traceparent'), [trace(n)])
            tail.stop()
            again.stop()
            self.assertEqual(relay.unparsed() + second.unparsed(), [])


if __name__ == '__main__':
    unittest.main()
