"""What an account's policy and an operator decide: nonces lost to others, dispatch errors, a line
that stands still, money (test/cases.md rows 4, 15, 21, 72, 112, 134; docs/sql.md)."""
import re
import unittest
from concurrent.futures import ThreadPoolExecutor

from harness import proc
from harness.cases import CaseTest, load_tests, on_submit, refusal  # noqa: F401
from harness.chain import put_compact, remark
from harness.relay import cli

BOB_ID = bytes.fromhex('8eaf04151687736326c9fea17e25fc5287613693c912909cb226aa4794f26a48')
DEPOSIT = 10 ** 9  # what an account must keep
INSUFFICIENT = {'fail': [10, 2]}  # Balances.InsufficientBalance


class Order(CaseTest):
    """order = strict: nonces follow the commits."""

    def test_of_writers_at_once(self):
        world = self.world()
        world.policy(order='strict')
        world.pg.query('CREATE TABLE public.commits (n bigserial, tx bigint)')

        def write(writer):
            db = world.pg.connect(autocommit=False)
            with db.cursor() as cur:
                for i in range(10):
                    call = remark(f'turn {writer} {i}')
                    cur.execute("SELECT txrelay.enqueue('alice', %s)", (call,))
                    tx = cur.fetchone()[0]
                    cur.execute('INSERT INTO public.commits (tx) VALUES (%s)', (tx,))
                    if i % 5 == 4:
                        db.rollback()
                        world.rolled_back.append(call)
                    else:
                        db.commit()
                        world.committed[call] = tx
            db.close()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
        self.assert_once(world)
        rows = world.rows('SELECT f.nonce FROM public.commits c '
                          'JOIN txrelay.finished_transactions f ON f.id = c.tx ORDER BY c.n')
        self.assertEqual([r[0] for r in rows], list(range(32)))

    def test_a_relay_that_enqueues_does_not_wait_for_long(self):
        world = self.world()
        world.policy(order='strict')
        relay, call = world.relays[0], remark('by the relay')
        # noqa: E731
        ask = lambda: cli('enqueue', 'alice', '0x' + call.hex(), '--to', relay.address, check=False)
        world.pg.query("SELECT txrelay.enqueue('alice', %s)", (remark('before'),))
        db = world.pg.connect(autocommit=False)
        with db.cursor() as cur:
            cur.execute("SELECT txrelay.enqueue('alice', %s)", (remark('open'),))
            done = ask()
            self.assertNotEqual(done.returncode, 0)
            self.assertIn('account alice keeps the order of commits, and another transaction that '
                          'enqueued for it is still open',
                          done.stderr)
        db.rollback()
        done = ask()
        self.assertEqual(done.returncode, 0, done.stderr)
        proc.wait_for('both to end', lambda: world.pg.value("SELECT count(*) = 2 "
                                                            "FROM txrelay.finished_transactions "
                                                            "WHERE outcome = 'ok'"))


class Usurped(CaseTest):
    """usurped = requeue: somebody else used the nonce, and the transaction gets another one."""

    def requeuing(self, **kwargs):
        world = self.world(**kwargs)
        world.policy(usurped='requeue')
        return world

    def assert_requeued(self, world, tx, lost, now, foreign=None):
        """Finalized at nonce `now`; the one that it lost is on record with the reason, and in its
        history."""
        self.assertEqual(world.end(tx), ('ok', None))
        self.assertEqual(world.row(tx)['nonce'], now)
        (nonce, outcome, error), = world.given_up(tx)
        self.assertEqual((nonce, outcome), (lost, 'usurped'))
        if foreign:
            self.assertIn(foreign.hex(), error)
        self.assertEqual([h['nonce'] for h in world.history(tx)][::len(world.history(tx)) - 1],
                         [lost, now])
        self.assertNotEqual(world.attempts(lost)[0][4], 'included')

    def test_72_requeued_at_run_time(self):
        """A command-line user sends the same nonce with a higher tip, and it gets in."""
        world = self.requeuing()
        world.set(paused=True)
        first, second = world.enqueue_many(['ours', 'behind it'])
        world.wait_pool(2)
        foreign = world.foreign_send(0, remark('command line'), tip=10 ** 6)
        world.set(paused=False)
        self.assert_once(world)
        self.assert_requeued(world, first, 0, 2, foreign)
        self.assertEqual(world.row(second)['nonce'], 1)
        world.wait_alert('did not sign')

    def test_4_requeued_when_the_pool_holds_a_stranger(self):
        """1014 for the third of ten: a stranger's transaction is there. The other nine go on, the
        third gets the next nonce."""
        world = self.requeuing()
        world.set(paused=True)
        foreign = world.foreign_send(2, remark('a stranger'), tip=1000)
        txs = world.enqueue_many([f'loop {i}' for i in range(10)])
        world.wait_alert('the pool holds another transaction with our nonce 2')
        proc.wait_for('ten nonces', lambda: world.next_nonce() == 10)
        world.set(paused=False)
        self.assert_once(world)
        self.assert_requeued(world, txs[2], 2, 10, foreign)
        self.assertEqual([world.row(t)['nonce'] for t in txs[:2] + txs[3:]],
                         [0, 1, 3, 4, 5, 6, 7, 8, 9])

    def test_15_21_requeued_at_the_start(self):
        """One nonce is used by its own bytes while nobody looks, one by a stranger's. The first
        ends by the chain's word, the second is signed again at a new nonce."""
        world = self.requeuing()
        world.set(paused=True)
        first, second = world.enqueue_many(['own bytes', 'pushed out'])
        world.wait_pool(2)
        world.relays[0].kill()
        foreign = world.foreign_send(1, remark('outside'), tip=10 ** 6)
        world.set(paused=False)
        proc.wait_for('both nonces to be used', lambda: world.stranger.next_nonce() == 2)
        world.wait_leader(world.relay('heir'))
        self.assert_once(world)
        self.assertEqual((world.end(first), world.row(first)['nonce']), (('ok', None), 0))
        self.assert_requeued(world, second, 1, 2, foreign)

    def test_134_requeued_after_it_was_dropped(self):
        """A lagging node takes our bytes and loses them; the nonce is used by another."""
        world = self.requeuing()
        world.script(on_submit('accept_and_drop'),
                     {'match': {'status': '*', 'times': 0}, 'action': 'omit'})
        world.set(paused=True)
        tx = world.enqueue('lost')
        proc.wait_for('it to be sent', lambda: world.submits())
        world.foreign_send(0, remark('outside'))
        world.set(paused=False)
        self.assert_once(world)
        self.assert_requeued(world, tx, 0, 1)

    def test_15_five_nonces_taken_from_a_full_line(self):
        """Five strangers push out five of ours: each is requeued once, none is lost, none is
        executed twice."""
        world = self.requeuing()
        world.set(paused=True)
        txs = world.enqueue_many([f'line {i}' for i in range(8)])
        world.wait_pool(8)
        for nonce in range(1, 6):
            world.foreign_send(nonce, remark(f'outside {nonce}'), tip=10 ** 6)
        world.set(paused=False)
        self.assert_once(world)
        self.assertEqual([len(world.given_up(t)) for t in txs], [0, 1, 1, 1, 1, 1, 0, 0])
        self.assertEqual(sorted(world.row(t)['nonce'] for t in txs), [0, 6, 7, 8, 9, 10, 11, 12])

    def test_requeue_keeps_what_was_asked_for(self):
        """Key, deadline, tip and limits survive the way back to the outbox; the same key still
        gives the first id."""
        world = self.requeuing()
        world.set(paused=True)
        call = remark('with options')
        tx = world.put(call, key='order-9', tip=5, max_tip=50,
                       deadline=("clock_timestamp() + interval '1 hour'",))
        world.wait_pool(1)
        world.foreign_send(0, remark('outside'), tip=10 ** 6)
        world.set(paused=False)
        self.assert_once(world)
        self.assert_requeued(world, tx, 0, 1)
        self.assertEqual(world.tips(tx), [5, 5])
        self.assertEqual(world.put(call, key='order-9'), tx)

    def test_default_is_an_end(self):
        """usurped = fail, said or not: it ends with the reason and is not signed again."""
        world = self.requeuing()
        self.assertEqual(world.policy(usurped='fail'), {'usurped': 'fail'})
        world.set(paused=True)
        tx = world.enqueue('ours')
        world.wait_pool(1)
        foreign = world.foreign_send(0, remark('command line'), tip=10 ** 6)
        world.set(paused=False)
        outcome, error = world.wait_end(tx)
        self.assertEqual(outcome, 'usurped')
        self.assertIn(foreign.hex(), error)
        world.settle()
        self.assertEqual(world.given_up(tx), [])


class Retries(CaseTest):
    def failing(self, times):
        world = self.world()
        self.rule, = world.script({'match': {'dispatch': True, 'times': times},
                                   'action': INSUFFICIENT})
        return world

    def test_none_by_default(self):
        world = self.failing(1)
        tx = world.enqueue('fails once')
        self.assertEqual(world.wait_end(tx), ('dispatch_error', 'Balances.InsufficientBalance'))
        world.settle()
        self.assertEqual(world.given_up(tx), [])

    def test_two_retries_are_enough(self):
        """Two dispatches fail, the third is the one that counts. Each has a nonce, and its error
        is on record."""
        world = self.failing(2)
        tx = world.put('third time lucky', retries=2)
        self.assert_once(world)
        self.assertEqual((world.end(tx), world.row(tx)['nonce']), (('ok', None), 2))
        self.assertEqual(world.given_up(tx),
                         [(n, 'dispatch_error', 'Balances.InsufficientBalance') for n in (0, 1)])
        self.assertEqual([(h['nonce'], h['outcome'], h['error']) for h in world.history(tx)],
                         [(0, 'included', 'Balances.InsufficientBalance'),
                          (1, 'included', 'Balances.InsufficientBalance'),
                          (2, 'included', None)])

    def test_two_retries_are_not_enough(self):
        world = self.failing(5)
        tx = world.put('fails thrice', retries=2)
        self.assertEqual(world.wait_end(tx), ('dispatch_error', 'Balances.InsufficientBalance'))
        world.settle()
        self.assertEqual((world.row(tx)['nonce'], len(world.given_up(tx))), (2, 2))
        self.assertEqual(world.script_fired(self.rule), 3)
        world.chain.rpc('dev_clearScript')
        world.enqueue('others go on')
        world.settle()

    def test_a_batch_that_stopped_is_not_repeated(self):
        """The batch itself was executed in part: again would be twice."""
        world = self.world()
        items = remark('item') + b'\x0a\x03\x00' + BOB_ID + put_compact(10 ** 30)
        tx = world.put(b'\x28\x00' + put_compact(2) + items, retries=3)
        outcome, error = world.wait_end(tx)
        self.assertEqual(outcome, 'dispatch_error')
        self.assertRegex(error, r'^Utility\.BatchInterrupted\[1\]')
        world.settle()
        self.assertEqual(world.given_up(tx), [])

    def test_retries_survive_the_leader(self):
        world = self.failing(2)
        tx = world.put('two leaders', retries=2)
        proc.wait_for('the first failure', lambda: world.given_up(tx))
        world.relays[0].kill()
        world.wait_leader(world.relay('heir'))
        self.assert_once(world)
        self.assertEqual(len(world.given_up(tx)), 2)


class Line(CaseTest):
    """The head of the line stands still."""

    def test_head_is_skipped_after_so_many_blocks(self):
        """The author passes over one transaction for ever. The relay alerts, then gives it up: a
        filler takes its nonce and those behind it go on."""
        world = self.world()
        world.policy(skip_after_blocks=8)
        world.set(paused=True)
        txs = world.enqueue_many(['stands still', 'behind 1', 'behind 2'])
        first = next(x for x in world.wait_pool(3) if x.nonce == 0)
        world.script({'match': {'include': True, 'hash': '0x' + first.hash.hex(), 'times': 0},
                      'action': 'skip'})
        start = world.best()
        world.set(paused=False)
        outcome, error = world.wait_end(txs[0])
        self.assertEqual(outcome, 'failed')
        self.assertRegex(error, r'held up the account for (8|9|\d\d) blocks')
        block = world.pg.value('SELECT block_number FROM txrelay.finished_transactions '
                               'WHERE id = %s', (txs[0],))
        death = world.pg.value('SELECT min(era_death) FROM txrelay.attempts WHERE id = %s',
                               (txs[0],))
        self.assertGreaterEqual(block - start, 8)
        self.assertLess(block, death - 10, 'before its era was over')
        figures = world.settle()
        self.assertEqual((figures['finalized'], figures['failed']), (2, 1))
        self.assertEqual([world.row(t)['nonce'] for t in txs], [0, 1, 2])

    def test_blocked_account_is_shown_until_it_moves(self):
        """The node refuses the head of the line: the view names account, nonce, transaction and
        reason; with skip_after_blocks it goes on by itself, and the view is empty."""
        world = self.world()
        rule, = world.script(on_submit(refusal(1012), nonce=0, times=0))
        tx, behind = world.enqueue_many(['refused', 'behind it'])
        row = proc.wait_for('the account to be shown',
                            lambda: (row := world.blocked()) and row['reason'] and row)
        self.assertEqual((row['nonce'], row['id'], row['paused']), (0, tx, False))
        self.assertRegex(row['reason'], '(?i)banned')
        since = world.pg.value("SELECT since FROM txrelay.blocked_accounts WHERE account = 'alice'")
        world.wait_blocks(5)
        self.assertEqual(world.pg.value("SELECT since FROM txrelay.blocked_accounts "
                                        "WHERE account = 'alice'"), since)
        self.assertIsNone(world.row(tx)['outcome'])
        world.policy(skip_after_blocks=5)
        proc.wait_for('it to be given up',
                      lambda: world.row(tx)['outcome']
                      or any(h['filler'] for h in world.history(tx)))
        world.chain.rpc('dev_clearScript', {'id': rule})
        outcome, error = world.wait_end(tx)
        self.assertEqual(outcome, 'failed')
        self.assertRegex(error, r'held up the account for \d+ blocks; the last refusal: .*banned')
        figures = world.settle()
        self.assertEqual((figures['finalized'], figures['failed']), (1, 1))
        self.assertEqual(world.row(behind)['nonce'], 1)
        proc.wait_for('nothing to be shown', lambda: world.blocked() is None)

    def test_head_is_not_skipped_by_default(self):
        world = self.world()
        rule, = world.script({'match': {'include': True, 'nonce': 0, 'times': 0}, 'action': 'skip'})
        tx = world.enqueue('stands still')
        world.wait_pool(1)
        world.wait_blocks(20)
        self.assertIsNone(world.row(tx)['outcome'])
        world.chain.rpc('dev_clearScript', {'id': rule})
        self.assert_once(world)

    def test_paused_account_is_shown(self):
        world = self.world()
        self.assertIsNone(world.blocked())
        with world.collect():
            tx = world.enqueue('waits')
            row = world.blocked()
            self.assertEqual((row['paused'], row['paused_by']), (True, 'operator'))
            self.assertIn('the test collects', row['reason'])
            self.assertIsNone(world.row(tx)['nonce'])
        self.assert_once(world)
        proc.wait_for('nothing to be shown', lambda: world.blocked() is None)


class Money(CaseTest):
    def test_low_balance_is_told(self):
        """Once, with what there is and what there should be; and again when it went up and down
        again."""
        world = self.world()
        world.policy(low_balance=str(5 * 10 ** 12))
        world.enqueue('while rich')
        self.assert_once(world)
        low = r'the free balance is (\d+) at block \d+; low_balance is 5000000000000'

        def alerts():
            return [a for a in world.alerts() if re.search(low, a)]

        self.assertEqual(alerts(), [])
        world.fund(4 * 10 ** 12)
        world.wait_alert(low)
        self.assertEqual(re.search(low, alerts()[0])[1], str(4 * 10 ** 12))
        world.wait_blocks(8)
        self.assertEqual(len(alerts()), 1)
        world.fund(10 ** 13)
        world.wait_blocks(4)
        world.fund(3 * 10 ** 12)
        proc.wait_for('a second alert', lambda: len(alerts()) == 2)
        world.enqueue('it still pays')
        self.assert_once(world)

    def test_112_payment_hold_is_shown_and_ends_by_itself(self):
        """The account cannot pay: it is held, which leaders and blocked_accounts show, nothing
        more gets a nonce, one try a block at most; funded, it goes on."""
        world = self.world()
        world.enqueue('while it could')
        self.assert_once(world)
        world.fund(DEPOSIT + 1)
        start, sent = world.best(), len(world.submits())
        first = world.enqueue('unpaid')
        world.wait_suspension('payment')
        later = world.enqueue_many([f'later {i}' for i in range(3)])
        shown = world.rows("SELECT suspension FROM txrelay.leaders WHERE alias = 'alice'")
        self.assertEqual(shown, [('payment',)])
        row = world.blocked()
        self.assertEqual((row['suspension'], row['paused_by']), ('payment', 'leader'))
        world.wait_blocks(12)
        self.assertLessEqual(len(world.submits()) - sent, world.best() - start + 2)
        self.assertEqual({world.row(t)['nonce'] for t in later}, {None})
        world.fund(10 ** 18)
        world.wait_suspension(None)
        self.assert_once(world)
        self.assertEqual(world.row(first)['nonce'], 1)
        self.assertEqual([world.row(t)['nonce'] for t in later], [2, 3, 4])
        proc.wait_for('nothing to be shown', lambda: world.blocked() is None)

    def test_112_payment_hold_is_found_by_the_next_leader(self):
        world = self.world()
        world.enqueue('while it could')
        self.assert_once(world)
        world.fund(DEPOSIT + 1)
        world.enqueue('unpaid')
        world.wait_suspension('payment')
        world.relays[0].kill()
        heir = world.relay('heir')
        world.wait_leader(heir)
        later = world.enqueue('later')
        world.wait_blocks(6)
        heir.wait_log('account.blocked .*code=suspended text="[^"]*cannot pay')
        self.assertIsNone(world.row(later)['nonce'])
        world.fund(10 ** 18)
        self.assert_once(world)
        world.wait_suspension(None)

    def refuse_three_times(self, world, verdict):
        world.script({'match': {'method': 'author_submitAndWatchExtrinsic', 'times': 3},
                      'action': verdict})

    def test_what_is_refused_for_now_waits(self):
        """The policy lists it: the same bytes until the chain takes them. Without the list it ends
        at the first refusal."""
        world = self.world()
        for verdict in ({'verdict': 'ExhaustsResources'}, {'verdict': 'Custom', 'custom': 6}):
            with self.subTest(verdict):
                world.policy(retry_refusals='ExhaustsResources,Custom:6')
                self.refuse_three_times(world, verdict)
                tx = world.enqueue(f'listed {verdict}')
                self.assertEqual(world.wait_end(tx)[0], 'ok')
                self.assertFalse(any(h['filler'] for h in world.history(tx)))
        world.policy(retry_refusals=None)
        self.refuse_three_times(world, {'verdict': 'ExhaustsResources'})
        self.assertEqual(world.wait_end(world.enqueue('not listed'))[0], 'failed')


if __name__ == '__main__':
    unittest.main()
