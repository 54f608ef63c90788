"""What an application can say about its transactions: deadline, cancel, guard, priority,
not_before."""
import time
import unittest

from harness import proc
from harness.cases import CaseTest, load_tests, on_submit, refusal  # noqa: F401
from harness.leadership import SLOW
from harness.relay import cli


class Controls(CaseTest):
    def in_ms(self, ms):
        return (f"clock_timestamp() + interval '{ms:.0f} ms'",)

    def late_ms(self, world, tx, column='deadline'):
        """How long after this time of its record's text it ended."""
        return world.pg.value('''SELECT extract(epoch FROM finished_at
                                 - (regexp_match(error, 'deadline (.*) passed'))[1]::timestamptz)
                                 * 1000 FROM txrelay.finished_transactions WHERE id = %s''', (tx,))

    def lost(self, world):
        """The node answers with a hash and forgets the bytes; no status ever comes."""
        return world.script(on_submit('accept_and_drop', times=0),
                            {'match': {'status': '*', 'times': 0}, 'action': 'omit'})

    def sent(self, world, tx):
        return proc.wait_for('it to be sent',
                             lambda: len(world.submits()) > 0
                             and world.row(tx)['nonce'] is not None)

    # ---- deadline ----

    def test_deadline_in_the_outbox_of_an_idle_account(self):
        """The account is paused and its leader asleep: the row ends at its time, not at some
        poll."""
        world = self.world()
        world.pg.value("SELECT txrelay.account_pause('alice', 'test')")
        tx = world.put('too late', deadline=self.in_ms(1500))
        outcome, error = world.wait_end(tx)
        self.assertEqual(outcome, 'expired')
        self.assertRegex(error, 'deadline .* passed')
        self.assertLess(self.late_ms(world, tx), 400 * SLOW)
        world.pg.value("SELECT txrelay.account_resume('alice')")
        world.enqueue('goes on')
        world.settle()
        self.assertEqual(world.next_nonce(), 1)

    def filled(self, world, tx, rule):
        """A filler races what the node refuses. It may have taken it all the same, so nothing ends
        before the filler is final, for which the node has to take that."""
        proc.wait_for('a filler', lambda: any(h['filler'] for h in world.history(tx)))
        self.assertIsNone(world.row(tx)['outcome'])
        world.chain.rpc('dev_clearScript', {'id': rule})
        return world.wait_end(tx)

    def test_deadline_with_a_nonce_and_refused(self):
        """The node refuses it until after the deadline: a filler takes the nonce, those behind go
        on."""
        world = self.world()
        rule, = world.script(on_submit(refusal(1018), times=0))
        tx = world.put('refused', deadline=self.in_ms(1000 * SLOW))
        behind = world.enqueue('behind it')
        self.assertEqual(self.filled(world, tx, rule)[0], 'expired')
        figures = world.settle()
        self.assertEqual((figures['finalized'], figures['failed']), (1, 1))
        self.assertEqual(world.row(behind)['nonce'], 1)

    def test_deadline_passes_in_the_pool_and_it_gets_in(self):
        """Its bytes cannot be outbid within what it may cost: the record is what the chain says."""
        world = self.world()
        world.set(paused=True)
        tx = world.put('late but in', deadline=self.in_ms(700 * SLOW), max_tip=0)
        world.wait_pool(1)
        passed = ('SELECT deadline + interval \'1200 ms\' < clock_timestamp() '
                  'FROM txrelay.pending_transactions WHERE id = %s')
        proc.wait_for('the deadline to pass', lambda: world.pg.value(passed, (tx,)))
        self.assertIsNone(world.row(tx)['outcome'])
        world.set(paused=False)
        self.assert_once(world)
        self.assertEqual(len(world.attempts()), 1)

    def test_deadline_passes_and_the_bytes_are_lost(self):
        """Sent once and gone, and it may not cost more: no new signature, and no end before the
        era's: a pool somewhere may still have it."""
        world = self.world(manager={'era_period': 32})
        rules = self.lost(world)
        tx = world.put('gone', deadline=self.in_ms(1500), max_tip=0)
        self.sent(world, tx)
        self.assertEqual(world.wait_end(tx)[0], 'expired')
        # No finish of its own was written, a filler took its nonce: the log has its end all the
        # same.
        world.relays[0].wait_log(rf'level=warn event=transaction.ended account=alice id={tx} '
                                 r'nonce=0 .*outcome=expired')
        death, = world.rows('SELECT era_death FROM txrelay.attempts WHERE id = %s', tx)[0]
        self.assertGreaterEqual(world.best(), death)
        for rule in rules:
            world.chain.rpc('dev_clearScript', {'id': rule})
        world.enqueue('after it')
        world.settle()
        mine = [a for a in world.attempts(0) if a[2] == tx]
        self.assertEqual(len(mine), 1, 'signed once')

    # ---- cancel ----

    def test_cancel_in_the_outbox(self):
        world = self.world()
        tx = world.put('taken back', not_before=self.in_ms(3600000))
        self.assertEqual(cli('cancel', str(tx), '--database', world.pg.dsn).stdout.strip(),
                         'cancelled')
        self.assertEqual(world.cancel(tx), 'finished')
        world.settle()
        self.assertEqual(world.end(tx)[0], 'cancelled')
        self.assertEqual(world.submits(), [])

    def test_cancel_with_a_nonce_and_refused(self):
        world = self.world()
        rule, = world.script(on_submit(refusal(1018), times=0))
        # One admission for both: those behind it have their nonces when it is cancelled.
        world.pg.value("SELECT txrelay.account_pause('alice', 'collect')")
        tx, behind = world.enqueue_many(['refused', 'behind it'])
        world.pg.value("SELECT txrelay.account_resume('alice')")
        proc.wait_for('two nonces', lambda: world.next_nonce() == 2)
        self.assertEqual(world.cancel(tx), 'requested')
        outcome, error = self.filled(world, tx, rule)
        self.assertEqual(outcome, 'cancelled')
        self.assertRegex(error, 'cancelled by ')
        figures = world.settle()
        self.assertEqual((figures['finalized'], figures['failed']), (1, 1))
        self.assertEqual(world.row(behind)['nonce'], 1)
        proc.wait_for('no request to be left',
                      lambda: not world.pg.value('SELECT count(*) FROM txrelay.cancellations'))

    def test_cancel_of_what_a_pool_holds(self):
        """It may not cost more, so nothing can take its place: it gets in, and the record says so
        (a race that is won: test_fees)."""
        world = self.world()
        world.set(paused=True)
        tx = world.put('too late', max_tip=0)
        world.wait_pool(1)
        self.assertEqual(world.cancel(tx), 'requested')
        world.set(paused=False)
        self.assert_once(world)
        self.assertEqual(world.cancel(tx), 'finished')

    def test_cancel_of_what_is_lost_survives_the_leader(self):
        """Asked of one leader, carried out by the next, at the end of the era where no filler may
        outbid it."""
        world = self.world(manager={'era_period': 16})
        rules = self.lost(world)
        tx = world.put('gone', max_tip=0)
        self.sent(world, tx)
        self.assertEqual(world.cancel(tx), 'requested')
        world.relays[0].kill()
        heir = world.relay('heir')
        world.wait_leader(heir)
        self.assertEqual(world.wait_end(tx)[0], 'cancelled')
        # Of the bytes that left: what a slow run signed anew at the end of their era was never
        # sent.
        death, = world.rows('SELECT min(era_death) FROM txrelay.attempts WHERE id = %s', tx)[0]
        self.assertGreaterEqual(world.best(), death)
        for rule in rules:
            world.chain.rpc('dev_clearScript', {'id': rule})
        world.enqueue('after it')
        world.settle()

    # ---- guard ----

    def test_106_raw_call_only_under_its_runtime(self):
        """Made for 900: signed under it, refused under 901 with a reason that names both; others
        go on."""
        world = self.world()
        spec = world.chain.rpc('state_getRuntimeVersion')['specVersion']
        good = world.put('in time', spec_version=spec)
        self.assertEqual(world.wait_end(good)[0], 'ok')
        world.pg.value("SELECT txrelay.account_pause('alice', 'upgrade')")
        late, plain = world.put('for the old one', spec_version=spec), world.enqueue('for any')
        world.chain.rpc('dev_upgrade', {})
        proc.wait_for('the new runtime',
                      lambda: world.chain.rpc('state_getRuntimeVersion')['specVersion'] == spec + 1)
        world.wait_blocks(3)
        world.pg.value("SELECT txrelay.account_resume('alice')")
        outcome, error = world.wait_end(late)
        self.assertEqual(outcome, 'failed')
        self.assertIn(str(spec), error)
        self.assertIn(str(spec + 1), error)
        self.assertEqual(world.wait_end(plain)[0], 'ok')
        world.settle()

    def test_106_upgrade_between_signature_and_pool(self):
        """It has a nonce and the node refuses it: the upgrade makes it impossible, a filler takes
        the nonce."""
        world = self.world()
        spec = world.chain.rpc('state_getRuntimeVersion')['specVersion']
        rule, = world.script(on_submit(refusal(1018), times=0))
        world.pg.value("SELECT txrelay.account_pause('alice', 'collect')")
        tx = world.put('for the old one', spec_version=spec)
        behind = world.enqueue('for any')
        world.pg.value("SELECT txrelay.account_resume('alice')")
        # Before it is signed an upgrade ends it without a filler of its own.
        proc.wait_for('the node to refuse it', lambda: world.script_fired(rule))
        world.chain.rpc('dev_upgrade', {})
        outcome, error = self.filled(world, tx, rule)
        self.assertEqual(outcome, 'failed')
        self.assertRegex(error, f'{spec} .*{spec + 1}')
        world.settle()
        self.assertEqual((world.end(behind)[0], world.row(behind)['nonce']), ('ok', 1))

    # ---- priority, not_before ----

    def test_higher_priority_first_among_those_that_wait(self):
        world = self.world()
        world.pg.value("SELECT txrelay.account_pause('alice', 'collect')")
        txs = {p: world.put(f'priority {p}', priority=p) for p in (0, -3, 7, 2)}
        also = world.put('second of 7', priority=7)
        world.pg.value("SELECT txrelay.account_resume('alice')")
        self.assert_once(world)
        order = [txs[7], also, txs[2], txs[0], txs[-3]]
        self.assertEqual([world.row(t)['nonce'] for t in order], [0, 1, 2, 3, 4])

    def test_not_before_wakes_a_sleeping_leader(self):
        """Never earlier; and at its time, by knowing it, not by a poll that happens to come."""
        world = self.world()
        late = []
        for i in range(5):
            tx = world.put(f'later {i}', not_before=self.in_ms(1250 + 137 * i))
            due = world.pg.value('SELECT not_before FROM txrelay.outbox WHERE id = %s', (tx,))
            world.enqueue(f'at once {i}')
            world.wait_end(tx)
            late.append(world.pg.value('''SELECT extract(epoch
                                          FROM admitted_at - %s::timestamptz) * 1000
                                          FROM txrelay.finished_transactions
                                          WHERE id = %s''', (due, tx)))
        self.assertGreaterEqual(min(late), 0)
        self.assertLess(sorted(late)[2], 150 * SLOW, 'ms after its time, the median')
        self.assert_once(world)


if __name__ == '__main__':
    unittest.main()
