"""What an account may do on its own: policy, tips and bumps, holds and orders, the accounts that
stand still."""
import json
import random
import time
import unittest

from pgcase import Background, Case, h32, wait_until

BLOCK = h32('block')
U128 = 2**128 - 1


class Policy(Case):
    def raw(self, text):
        return self.relay.value("SELECT txrelay.account_policy('alice', %s::jsonb)", text)

    def test_reads_merges_and_removes(self):
        read = "SELECT txrelay.account_policy('alice')"
        self.assertEqual(self.relay.value(read), {})
        self.assertEqual(self.policy(tip_start=5, usurped='requeue'),
                         {'tip_start': '5', 'usurped': 'requeue'})
        both = {'tip_start': '5', 'usurped': 'requeue', 'skip_after_blocks': 7}
        self.assertEqual(self.policy(skip_after_blocks=7), both)
        self.assertEqual(self.relay.value(read), both)
        self.assertEqual(self.policy(usurped=None, tip_start='9'),
                         {'tip_start': '9', 'skip_after_blocks': 7})
        self.assertEqual(self.policy(), {'tip_start': '9', 'skip_after_blocks': 7})
        self.assertEqual(self.account()['policy'], {'tip_start': '9', 'skip_after_blocks': 7})

    def test_amounts_of_any_size_keep_every_digit(self):
        """As a number and as text; a JSON reader that knows only doubles gets a text."""
        for given in (U128, str(U128), '00' + str(U128)):
            self.assertEqual(self.policy(tip_cap=given), {'tip_cap': str(U128)})
        self.assertEqual(self.raw('{"tip_cap": 1e3}'), {'tip_cap': '1000'})

    def test_the_bounds_are_inclusive(self):
        for values in ({'tip_step_percent': 0}, {'tip_step_percent': 1000}, {'tip_after_blocks': 0},
                       {'tip_after_blocks': 100000, 'tip_cap': 0}, {'skip_after_blocks': 0},
                       {'skip_after_blocks': 1000000}, {'low_balance': 0}, {'low_balance': U128},
                       {'tip_step': 0},
                       {'tip_start': 0}, {'usurped': 'fail'}, {'usurped': 'requeue'}):
            with self.subTest(values):
                got = self.policy(**values)
                for key, value in values.items():
                    self.assertEqual(got[key], str(value) if key.startswith('low') or key in (
                        'tip_start', 'tip_step', 'tip_cap') else value)

    def test_what_is_wrong_is_named_with_what_is_allowed(self):
        self.policy(tip_start=3)
        for text, said in (
                ('{"tip": 1}', ('"tip"', 'not a key', 'tip_start', 'usurped')),
                ('{"tip": null}', ('"tip"', 'not a key')),
                ('{"tip_start": -1}', ('tip_start', '-1', '0 to ' + str(U128))),
                ('{"tip_step": 1.5}', ('tip_step', '1.5', 'whole number')),
                ('{"tip_cap": "1e3"}', ('tip_cap', '"1e3"', 'string of its digits')),
                ('{"tip_cap": "-1"}', ('tip_cap', '"-1"')), ('{"tip_cap": ""}', ('tip_cap', '""')),
                (json.dumps({'low_balance': U128 + 1}), ('low_balance', str(U128 + 1), str(U128))),
                (json.dumps({'low_balance': str(U128 + 1)}),
                 ('low_balance', str(U128 + 1), str(U128))),
                ('{"low_balance": true}', ('low_balance', 'true')),
                ('{"low_balance": [1]}', ('low_balance', '[1]')),
                ('{"retry_refusals": "Payment"}', ('retry_refusals', 'Payment', 'Custom:6')),
                ('{"retry_refusals": "Custom:x"}', ('retry_refusals', 'Custom:x')),
                ('{"retry_refusals": ["Custom"]}', ('retry_refusals', 'Custom')),
                ('{"tip_step_percent": 1001}', ('tip_step_percent', '1001', '0 to 1000')),
                ('{"tip_step_percent": "5"}', ('tip_step_percent', '"5"', '0 to 1000')),
                ('{"tip_after_blocks": 100001, "tip_cap": 5}',
                 ('tip_after_blocks', '100001', '0 to 100000')),
                ('{"tip_after_blocks": "5", "tip_cap": 5}', ('tip_after_blocks', '"5"')),
                ('{"skip_after_blocks": 1000001}',
                 ('skip_after_blocks', '1000001', '0 to 1000000')),
                ('{"skip_after_blocks": 0.5}', ('skip_after_blocks', '0.5')),
                ('{"usurped": "drop"}', ('usurped', '"drop"', '"fail" or "requeue"')),
                ('{"usurped": 1}', ('usurped', '1', '"fail" or "requeue"')),
                ('{"tip_after_blocks": 3}', ('tip_after_blocks', 'is 3', 'tip_cap')),
                ('{"tip_cap": 2}', ('tip_start', 'is 3', 'tip_cap (2)')),
                ('[]', ('policy', '[]', 'JSON object')), ('3', ('policy', 'JSON object')),
                ('null', ('policy', 'null', 'JSON object'))):
            with self.subTest(text):
                self.refused('TR011', self.raw, text, text=('account_policy',) + said)
        self.assertEqual(self.account()['policy'], {'tip_start': '3'})
        self.refused('TR010', self.relay.rows, "SELECT txrelay.account_policy('alcie', '{}')",
                     text='alice')

    def test_the_cap_cannot_be_taken_from_tips_that_rise_by_themselves(self):
        self.policy(tip_cap=50, tip_after_blocks=3)
        self.refused('TR011', self.raw, '{"tip_cap": null}',
                     text=('tip_after_blocks', 'is 3', 'tip_cap'))
        self.assertEqual(self.policy(tip_cap=None, tip_after_blocks=0), {'tip_after_blocks': 0})

    def test_two_at_once_lose_nothing(self):
        other = self.session('relay')
        other.begin()
        other.value("SELECT txrelay.account_policy('alice', '{\"tip_start\": 1}')")
        call = self.background(self.relay,
                               "SELECT txrelay.account_policy('alice', '{\"tip_step\": 2}')")
        other.commit()
        self.assertEqual(call.join(), [({'tip_start': '1', 'tip_step': '2'},)])

    def test_the_leader_is_told_and_reads_it(self):
        ear, epoch = self.listen('outbox_wake'), self.lead()
        unset = {'paused': False, 'suspension': None, 'reborn': False, 'transaction_version': None,
                 'tip_start': 0,
                 'tip_step': 0, 'tip_cap': None, 'tip_step_percent': 0, 'tip_after_blocks': 0,
                 'skip_after_blocks': 0,
                 'requeue_usurped': False, 'low_balance': None, 'retry_refusals': None}
        nonces = {'next_nonce': None, 'used_nonce': None, 'used_block': None, 'seen_block': None,
                  'reconcile_from': None,
                  'lost_since_ms': None, 'lost_until': None, 'era_immortal': True,
                  'suspension_text': None}
        self.assertEqual(self.facts(epoch), {**nonces, **unset})
        self.assertEqual({k: v for k, v in self.look(epoch)[0].items() if k in unset}, unset)
        self.relay.value("SELECT txrelay.account_policy('alice')")
        self.assertEqual(self.heard(ear), [])
        self.policy(tip_start=1, tip_step='2', tip_cap=U128, tip_step_percent=4, tip_after_blocks=5,
                    skip_after_blocks=6,
                    usurped='requeue', low_balance=7, retry_refusals='Custom')
        self.assertEqual(self.heard(ear), [('outbox_wake', str(self.alice))])
        told = {**unset, 'tip_start': 1, 'tip_step': 2, 'tip_cap': U128, 'tip_step_percent': 4,
                'tip_after_blocks': 5,
                'skip_after_blocks': 6, 'requeue_usurped': True, 'low_balance': 7,
                'retry_refusals': 'Custom'}
        self.assertEqual(self.facts(epoch), {**nonces, **told})
        self.assertEqual({k: v for k, v in self.look(epoch)[0].items() if k in unset}, told)
        self.policy(usurped='fail')
        self.assertFalse(self.facts(epoch)['requeue_usurped'])

    def test_every_row_of_a_look_carries_the_facts(self):
        epoch, ids = self.pending(2)
        self.policy(tip_cap=9)
        for tx in ids:
            self.app.value('SELECT txrelay.cancel(%s)', tx)
        self.assertEqual([(r['nonce'], r['tip_cap'], r['transaction_version'])
                          for r in self.look(epoch)],
                         [(0, 9, 1), (1, 9, 1)])


class StrictOrder(Case):
    """Policy order: strict: ids, and so nonces, follow the order of the commits."""
    WIDE = True

    ONE, MANY = ("SELECT txrelay.enqueue('alice', '\\x01')",
                 "SELECT txrelay.enqueue_many('alice', ARRAY['\\x01', '\\x02']::bytea[])")

    def setUp(self):
        super().setUp()
        self.policy(order='strict')

    def ids(self):
        return [r[0] for r in self.owner.rows('SELECT id FROM txrelay.outbox ORDER BY id')]

    def test_whoever_enqueues_waits_for_the_one_before(self):
        names = ("'alice'", "'5alice'", f"'0x{h32('alice').hex()}'")
        ways = [f"SELECT txrelay.enqueue({n}, '\\x01'{k})" for i, n in enumerate(names)
                for k in ('', f", key => 'k{i}'")]
        for way in ways + [self.MANY]:
            with self.subTest(way):
                first, second = self.session('app'), self.session('app')
                first.begin()
                first.rows(self.ONE)
                waiting = self.background(second, way)
                before = first.value(self.MANY)[-1]  # its own turn goes on
                first.commit()
                got = waiting.join()[0][0]
                self.assertGreater(got[0] if isinstance(got, list) else got, before)

    def test_a_rollback_ends_the_turn(self):
        """To a savepoint for those who come later: who waits already, waits for the end of the
        transaction."""
        first = self.session('app')
        first.begin()
        first.rows(self.ONE)
        waiting = self.background(self.app, self.ONE)
        first.rollback()
        waiting.join()
        first.begin()
        first.rows('SAVEPOINT here')
        first.rows(self.ONE)
        first.rows('ROLLBACK TO here')
        self.app.rows("SET lock_timeout = '20s'")
        self.app.rows(self.ONE)
        first.rollback()
        self.assertEqual(len(self.ids()), 2)

    def test_others_do_not_wait(self):
        self.register(self.relay, 'bob', 43)
        first = self.session('app')
        first.begin()
        first.rows(self.ONE)
        self.app.rows("SELECT txrelay.enqueue('bob', '\\x01')")
        self.app.rows(f"SELECT txrelay.enqueue('0x{h32('bob').hex()}', '\\x01', key => 'k')")
        self.relay.rows("SELECT txrelay.status(1)")
        self.policy(order='any')
        self.app.rows(self.ONE)  # the order to wait is gone
        first.rollback()

    def test_what_would_overtake_is_refused(self):
        for call in ("enqueue('alice', '\\x01'", "enqueue('5alice', '\\x01', key => 'k'",
                     "enqueue_many('alice', ARRAY['\\x01']::bytea[]"):
            for option, said in (('priority => 5', 'priority is 5'),
                                 ('priority => -1', 'priority is -1'),
                                 ("not_before => '2100-01-01Z'", 'not_before is 2100')):
                self.refused('TR011', self.app.rows, f'SELECT txrelay.{call}, {option})',
                             text=(call.split('(', maxsplit=1)[0] + ': ' + said, 'account alice',
                                   'order: strict'))
        self.app.rows("SELECT txrelay.enqueue('alice', '\\x01', priority => 0, deadline => "
                      "'2100-01-01Z')")

    def test_who_may_not_wait_is_told(self):
        first = self.session('app')
        first.begin()
        first.rows(self.ONE)
        self.app.rows("SET lock_timeout = '20ms'")
        self.refused('55P03', self.app.rows, self.ONE,
                     text=('account alice', 'order of commits', 'still open', 'Try again'))
        first.rollback()
        self.app.rows(self.ONE)

    def test_nonces_follow_the_commits_of_many_writers(self):
        """At every isolation level, with rollbacks."""
        self.superuser().rows('''DROP TABLE IF EXISTS public.commits; CREATE TABLE public.commits
            (n bigserial, id bigint);
            GRANT ALL ON public.commits, public.commits_n_seq TO app''')

        def write(number):
            s, dice = self.session('app'), random.Random(number)
            for i in range(12):
                s.begin(('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE')[(number + i) % 3])
                # the snapshot is older than its turn
                s.rows('SELECT count(*) FROM txrelay.leaders')
                ids = s.value(self.MANY) if i % 4 == 3 else [s.value(self.ONE)]
                time.sleep(dice.uniform(0, 0.004))
                s.rows('INSERT INTO public.commits (id) SELECT unnest(%s)', ids)
                s.rollback() if i % 5 == 4 else s.commit()

        # What waits of a role is counted with its first row. Of two SERIALIZABLE ones that count at
        # once one has to try again.
        self.app.rows('SELECT txrelay.cancel(%s)', self.app.value(self.ONE))
        writers = [Background(None, lambda n=n: write(n)) for n in range(6)]
        for writer in writers:
            writer.join()
        by_commit = [r[0] for r in self.superuser().rows('SELECT id FROM public.commits '
                                                         'ORDER BY n, id')]
        self.assertEqual(len(by_commit), 6 * (10 + 3))
        self.assertEqual(by_commit, self.ids())
        epoch = self.lead()
        got = self.relay.rows('SELECT id FROM txrelay.leader_outbox(%s, %s, 1000)', self.alice,
                              epoch)
        self.assertEqual([r[0] for r in got], by_commit, 'and so do nonces')

    def test_one_that_comes_back_goes_before_those_that_wait(self):
        """It is behind whatever has a nonce already, and keeps its place among the rest."""
        self.policy(usurped='requeue')
        epoch, ids = self.pending(2)
        later = self.enqueue()[0]
        self.requeue(self.relay, epoch, (0, 'usurped'))
        got = self.relay.rows('SELECT id FROM txrelay.leader_outbox(%s, %s, 10)', self.alice, epoch)
        self.assertEqual([r[0] for r in got], [ids[0], later])

    def test_any_is_the_default(self):
        for unset in ('any', None):
            self.policy(order='strict')
            self.policy(order=unset)
            first = self.session('app')
            first.begin()
            first.rows(self.ONE)
            self.app.rows(self.ONE)
            self.enqueue(priority=3)
            first.rollback()
        self.refused('TR011', self.relay.value,
                     "SELECT txrelay.account_policy('alice', '{\"order\": \"total\"}')",
                     text=('order', '"total"', '"any" or "strict"'))


class Bump(Case):
    WIDE = True

    def bump(self, tx, tip=None, s=None):
        return (s or self.app).value('SELECT txrelay.bump(%s, %s)', tx, tip)

    def bumps(self):
        return self.owner.rows('SELECT id, tip::bigint FROM txrelay.bumps ORDER BY id')

    def asked(self, epoch):
        return [(r['nonce'], r['id'], r['outcome'], r['tip']) for r in self.look(epoch)
                if r['nonce'] is not None]

    def test_in_the_outbox_the_first_attempt_pays_it(self):
        ear, epoch = self.listen('outbox_wake'), self.lead()
        tx, other = self.enqueue(2)
        self.assertEqual(self.bump(tx, 40), 'queued')
        got = self.relay.dicts('SELECT * FROM txrelay.leader_outbox(%s, %s, 9)', self.alice, epoch)
        self.assertEqual([(r['id'], r['tip']) for r in got], [(tx, 40), (other, None)])
        self.assertEqual(self.status(tx)['tip'], 40)
        self.assertEqual(self.heard(ear), [])
        self.admit(self.relay, epoch, [tx, other], [0, 1], tips=[40, 0])
        self.assertEqual(self.asked(epoch), [])
        self.assertEqual(self.bumps(), [])

    def test_with_a_nonce_its_leader_is_asked_until_it_is_paid(self):
        ear, (epoch, (tx, _)) = self.listen('outbox_wake'), self.pending(2)
        self.assertEqual(self.bump(tx, 40), 'requested')
        self.assertEqual(self.heard(ear), [('outbox_wake', str(self.alice))])
        for _ in range(2):
            self.assertEqual(self.asked(epoch), [(0, tx, None, 40)])
        self.attempt(self.relay, epoch, [0], [h32('0b')], tip=39)
        self.assertEqual(self.asked(epoch), [(0, tx, None, 40)])
        self.attempt(self.relay, epoch, [0], [h32('0c')], tip=40)
        self.assertEqual(self.asked(epoch), [])
        self.assertEqual(self.bumps(), [])
        self.assertEqual(self.status(tx)['tip'], 40)

    def test_the_higher_one_stays(self):
        epoch, (tx,) = self.pending()
        for tip, kept in ((40, 40), (30, 40), (50, 50)):
            self.assertEqual(self.bump(tx, tip), 'requested')
            self.assertEqual(self.bumps(), [(tx, kept)])
        self.assertEqual(self.owner.value('SELECT asked_by FROM txrelay.bumps'), 'app')
        self.bump(tx, 60, self.relay)
        self.assertEqual(self.owner.value('SELECT asked_by FROM txrelay.bumps'), 'relay')

    def test_the_next_step_of_the_policy(self):
        for policy, tip, step in (({}, 0, 1), ({}, 7, 8), ({'tip_step': 10}, 7, 17),
                                  ({'tip_step': 0}, 7, 8),
                                  ({'tip_step': 10, 'tip_step_percent': 50}, 7, 17),
                                  ({'tip_step': 10, 'tip_step_percent': 50}, 99, 148),
                                  ({'tip_step_percent': 50}, 1, 2),
                                  ({'tip_step_percent': 1000}, 3, 33),
                                  ({'tip_step_percent': 33}, 10**30 + 1,
                                   1330000000000000000000000000001),
                                  ({'tip_step': 10, 'tip_cap': 15}, 7, 15),
                                  ({'tip_step': 10, 'tip_cap': 17}, 7, 17)):
            with self.subTest(policy=policy, tip=tip):
                self.tearDown()
                self.setUp()
                self.policy(**policy)
                epoch, (tx,) = self.pending()
                self.attempt(self.relay, epoch, [0], [h32('0b')], tip=tip)
                self.assertEqual(self.bump(tx), 'requested')
                self.assertEqual(self.bump(tx), 'requested')
                self.assertEqual(self.asked(epoch), [(0, tx, None, step)])

    def test_the_next_step_in_the_outbox_is_above_what_it_would_pay(self):
        self.policy(tip_start=20, tip_step=5, tip_cap=1000)
        for options, step in (({}, 25), ({'tip': 30}, 35), ({'tip': 0}, 5),
                              ({'max_tip': 10, 'tip': 4}, 9),
                              ({'max_tip': 10, 'tip': 8}, 10)):
            with self.subTest(options):
                tx, = self.enqueue(**options)
                self.assertEqual(self.bump(tx), 'queued')
                self.assertEqual(self.status(tx)['tip'], step)

    def test_above_a_cap_it_says_which(self):
        self.policy(tip_cap=100)
        epoch = self.lead()
        small, large, plain = (self.enqueue(**o)[0] for o in ({'max_tip': 50}, {'max_tip': 500},
                                                              {}))
        for stage in ('queued', 'requested'):
            self.refused('TR011', self.bump, small, 51, text=('bump: tip', '51', 'max_tip (50)'))
            self.refused('TR011', self.bump, large, 101,
                         text=('101', 'tip_cap (100)', 'account_policy'))
            self.refused('TR011', self.bump, plain, 101, text=('101', 'tip_cap (100)'))
            self.assertEqual(self.bumps(), [])
            if stage == 'queued':
                self.admit(self.relay, epoch, [small, large, plain], [0, 1, 2])
        self.assertEqual([self.bump(tx, tip) for tx, tip in ((small, 50), (large, 100),
                                                             (plain, 100))], ['requested'] * 3)
        self.attempt(self.relay, epoch, [0], [h32('0b')], tip=50)
        self.refused('TR011', self.bump, small, text=('51', 'max_tip (50)'))

    def test_not_above_the_current_one(self):
        epoch, (tx,) = self.pending()
        self.attempt(self.relay, epoch, [0], [h32('0b')], tip=40)
        waits, = self.enqueue(tip=40)
        for one in (tx, waits):
            for tip in (40, 39, 0):
                self.refused('TR011', self.bump, one, tip,
                             text=('tip', f'is {tip}', 'current one (40)'))
        self.assertEqual((self.bump(tx, 41), self.bump(waits, 41)), ('requested', 'queued'))

    def test_what_is_no_amount(self):
        _, (tx,) = self.pending()
        # no value of numeric before
        infinity = ['Infinity'] if self.app.conn.server_version >= 140000 else []
        for tip in ['-1', '1.5', 'NaN', *infinity, str(U128 + 1)]:
            self.refused('TR011', self.app.rows, 'SELECT txrelay.bump(%s, %s::numeric)', tx, tip,
                         text=('tip', tip, str(U128)))
        self.assertEqual(self.bump(tx, U128), 'requested')

    def test_one_that_has_ended_and_one_that_never_was(self):
        epoch, (tx,) = self.pending()
        waits, = self.enqueue()
        self.app.value('SELECT txrelay.cancel(%s)', waits)
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        self.assertEqual((self.bump(tx), self.bump(waits, 9)), ('finished', 'finished'))
        for nothing in (99999, None):
            self.refused('TR011', self.bump, nothing,
                         text=('bump: id', str(nothing or 'NULL'), 'no such transaction'))
        self.assertEqual(self.bumps(), [])

    def test_what_ended_is_asked_for_no_more(self):
        epoch, ids = self.pending(2)
        for tx in ids:
            self.bump(tx, 9)
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        self.assertEqual(self.asked(epoch), [(1, ids[1], None, 9)])
        self.assertEqual(self.bumps(), [(ids[1], 9)])

    def test_a_cap_that_came_down_is_all_that_is_asked_for(self):
        epoch, (tx,) = self.pending()
        self.bump(tx, 90)
        self.policy(tip_cap=60)
        self.assertEqual(self.asked(epoch), [(0, tx, None, 60)])
        self.attempt(self.relay, epoch, [0], [h32('0b')], tip=60)
        self.assertEqual(self.asked(epoch), [])
        self.assertEqual(self.bumps(), [])

    def test_a_stop_and_a_bump_come_both(self):
        epoch, (tx,) = self.pending()
        self.bump(tx, 9)
        self.app.value('SELECT txrelay.cancel(%s)', tx)
        self.assertEqual(self.asked(epoch), [(0, tx, 'cancelled', None), (0, tx, None, 9)])

    def test_an_admission_with_the_lower_tip_does_not_swallow_it(self):
        """The leader read the row before the bump and signs it after: it goes on with what it
        read, and is asked."""
        epoch, (tx,) = self.lead(), self.enqueue()
        self.assertEqual(self.relay.dict('SELECT * FROM txrelay.leader_outbox(%s, %s, 9)',
                                         self.alice, epoch)['tip'], None)
        self.assertEqual(self.bump(tx, 40), 'queued')
        self.assertEqual(self.asked(epoch), [])
        self.admit(self.relay, epoch, [tx], [0])
        self.assertEqual(self.row(0)['tip'], 40)
        self.assertEqual(self.asked(epoch), [(0, tx, None, 40)])

    def test_meets_an_admission_that_is_under_way(self):
        epoch, ids = self.lead(), self.enqueue(2)
        for commit, answer in ((False, 'queued'), (True, 'requested')):
            self.relay.begin()
            self.admit(self.relay, epoch, ids[:1], [0])
            call = self.background(self.app, 'SELECT txrelay.bump(%s, 40)', ids[0])
            self.relay.commit() if commit else self.relay.rollback()
            self.assertEqual(call.join(), [(answer,)])
            ids = ids[1:]
        self.assertEqual(self.asked(epoch), [(0, self.row(0)['id'], None, 40)])

    def test_an_admission_that_meets_a_bump_builds_again(self):
        epoch, ids = self.lead(), self.enqueue(2)
        self.app.begin()
        self.bump(ids[1], 40)
        self.refused('TR002', self.admit, self.relay, epoch, ids, [0, 1],
                     text=('1 of 2', 'blocked by'))
        self.app.commit()
        self.assertEqual((self.count('outbox'), self.count('pending_transactions')), (2, 0))
        self.assertEqual(self.admit(self.relay, epoch, ids, [0, 1], tips=[0, 40]), 2)
        self.assertEqual(self.asked(epoch), [])

    def test_goes_along_when_the_nonce_is_lost(self):
        """Asked for while it had a nonce, it is paid at the next one."""
        epoch, (tx,) = self.pending()
        self.bump(tx, 40)
        self.requeue(self.relay, epoch, (0, 'usurped', 'lost'))
        self.assertEqual(self.asked(epoch), [])
        self.admit(self.relay, epoch, [tx], [1])
        self.assertEqual(self.asked(epoch), [(1, tx, None, 40)])

    def test_one_that_goes_back_meanwhile_is_found(self):
        """Between its looks at the two tables the transaction moves against it: it looks again.
        The same for cancel."""
        for sql, answer in (('SELECT txrelay.bump(%s, 40)', 'queued'),
                            ('SELECT txrelay.cancel(%s)', 'cancelled')):
            with self.subTest(sql):
                self.tearDown()
                self.setUp()
                epoch, (tx,) = self.pending()
                root = self.superuser()
                # Someone holds the table that the second look needs, until the transaction has gone
                # back.
                self.relay.begin()
                self.requeue(self.relay, epoch, (0, 'usurped', 'lost'))
                root.begin()
                wait = Background(root,
                                  lambda: root.rows('LOCK TABLE txrelay.pending_transactions'))
                wait_until(lambda: self.owner_sees_blocked(root.pid),
                           'the lock waits for the requeue')
                call = self.background(self.app, sql, tx)
                self.relay.commit()
                wait.join()
                root.commit()
                self.assertEqual(call.join(), [(answer,)])

    def test_a_bump_that_is_raised_under_the_leaders_look_stays(self):
        epoch, (tx,) = self.pending()
        self.bump(tx, 40)
        self.attempt(self.relay, epoch, [0], [h32('0b')], tip=40)
        self.app.begin()
        self.bump(tx, 50)
        self.look(epoch)
        self.app.commit()
        self.assertEqual(self.asked(epoch), [(0, tx, None, 50)])

    def test_another_accounts_bumps_are_left_alone(self):
        bob = self.register(self.relay, 'bob', 43)
        other = self.app.value("SELECT txrelay.enqueue('bob', '\\x01')")
        self.bump(other, 5, self.relay)
        self.assertEqual(self.asked(self.lead()), [])
        self.assertEqual(self.bumps(), [(other, 5)])
        self.assertNotEqual(bob, self.alice)


class Hold(Case):
    def pause(self, epoch, hold, reason=None):
        self.relay.rows('SELECT txrelay.leader_pause(%s, %s, %s, %s)', self.alice, epoch, hold,
                        reason)

    def resume(self):
        self.relay.rows("SELECT txrelay.account_resume('alice')")

    def paused(self):
        a = self.account()
        self.assertEqual(a['paused'], a['paused_since'] is not None)
        return a['paused'], a['paused_by'], a['paused_reason'], a['suspension']

    def test_the_leaders_pause_says_what_for(self):
        epoch = self.lead()
        for hold in ('payment', 'reaped', 'signing', 'transaction_version'):
            self.pause(epoch, hold, 'why')
            self.assertEqual(self.paused(), (True, 'leader', 'why', hold))
            self.assertEqual((self.facts(epoch)['paused'], self.facts(epoch)['suspension']),
                             (True, hold))
            self.pause(epoch, None)
            self.assertEqual(self.paused(), (False, None, None, None))
        self.pause(epoch, 'payment')
        self.assertEqual(self.paused(), (True, 'leader', 'payment', 'payment'))
        self.refused('TR011', self.pause, epoch, 'lunch', 'x',
                     text=('p_suspension', 'lunch', 'payment, reaped'))
        self.assertEqual(self.paused()[3], 'payment')

    def test_since_when_it_stands_still(self):
        epoch = self.lead()
        since = lambda: self.account()['paused_since']
        self.pause(epoch, 'payment')
        first = since()
        self.pause(epoch, 'payment', 'said again')
        self.relay.rows("SELECT txrelay.account_pause('alice', 'maintenance')")
        self.assertEqual(since(), first)
        self.resume()
        self.pause(epoch, 'payment')
        self.assertGreater(since(), first)

    def test_an_operators_pause_stays_and_the_hold_is_noted_beside_it(self):
        epoch = self.lead()
        self.relay.rows("SELECT txrelay.account_pause('alice', 'maintenance')")
        self.pause(epoch, 'payment', 'no balance')
        self.assertEqual(self.paused(), (True, 'operator', 'maintenance', 'payment'))
        self.pause(epoch, None)
        self.assertEqual(self.paused(), (True, 'operator', 'maintenance', None))

    def test_an_operator_who_pauses_keeps_the_hold(self):
        epoch = self.lead()
        self.pause(epoch, 'reaped', 'nonce went back')
        self.relay.rows("SELECT txrelay.account_pause('alice', 'let me see')")
        self.assertEqual(self.paused(), (True, 'operator', 'let me see', 'reaped'))
        self.pause(epoch, 'reaped', 'nonce went back')
        self.assertEqual(self.paused(), (True, 'operator', 'let me see', 'reaped'))

    def test_resume_gives_the_order_that_the_hold_waits_for(self):
        for hold, by_operator in ((h, o) for h in ('payment', 'reaped', 'transaction_version', None)
                                  for o in (0, 1)):
            with self.subTest(hold=hold, by_operator=by_operator):
                self.tearDown()
                self.setUp()
                epoch, _ = self.pending()
                self.pause(epoch, hold, 'x')
                if by_operator:
                    self.relay.rows("SELECT txrelay.account_pause('alice', 'x')")
                self.resume()
                got = self.facts(epoch)
                self.assertEqual((got['paused'], got['suspension'], got['reborn'],
                                  got['transaction_version']),
                                 (False, None, hold == 'reaped',
                                  None if hold == 'transaction_version' else 1))
                self.assertEqual(self.paused(), (False, None, None, None))

    def test_an_order_stands_until_it_is_carried_out_or_the_account_is_reaped_anew(self):
        epoch = self.lead()
        self.pause(epoch, 'reaped')
        self.resume()
        self.resume()
        self.pause(epoch, 'payment')
        self.pause(epoch, None)
        self.assertTrue(self.facts(epoch)['reborn'])
        for by_operator in (False, True):
            if by_operator:
                self.relay.rows("SELECT txrelay.account_pause('alice', 'x')")
            self.pause(epoch, 'reaped')
            self.assertFalse(self.facts(epoch)['reborn'])
            self.resume()
            self.assertTrue(self.facts(epoch)['reborn'])

    def test_nothing_gets_a_nonce(self):
        epoch, ids = self.lead(), self.enqueue()
        self.pause(epoch, 'payment')
        self.assertEqual(self.relay.rows('SELECT * FROM txrelay.leader_outbox(%s, %s, 10)',
                                         self.alice, epoch), [])
        self.refused('TR002', self.admit, self.relay, epoch, ids, [0], text='paused')
        self.pause(epoch, None)
        self.assertEqual(self.admit(self.relay, epoch, ids, [0]), 1)

    def test_calls_are_signed_under_the_transaction_version_that_was_accepted(self):
        epoch, ids = self.lead(), self.enqueue(4)
        self.admit(self.relay, epoch, ids[:1], [0], version=7)
        self.assertEqual(self.facts(epoch)['transaction_version'], 7)
        self.admit(self.relay, epoch, ids[1:2], [1], version=7)
        self.refused('TR002', self.admit, self.relay, epoch, ids[2:3], [2], None, None, 8,
                     text=('transaction version 8', 'alice signs under 7', 'account_resume'))
        self.assertEqual((self.count('outbox'), self.account()['next_nonce']), (2, 2))
        self.pause(epoch, 'transaction_version', 'from 7 to 8')
        self.resume()
        self.admit(self.relay, epoch, ids[2:3], [2], version=8)
        self.assertEqual(self.facts(epoch)['transaction_version'], 8)
        self.refused('TR002', self.admit, self.relay, epoch, ids[3:], [3], None, None, 7,
                     text='alice signs under 8')

    def test_nor_is_its_own_call_signed_again_under_another_one(self):
        epoch, _ = self.pending(2)
        again = lambda nonce, tag, **how: self.attempt(self.relay, epoch, [nonce], [h32(tag)],
                                                       **how)
        for nonces in ([0], [0, 1]):
            self.refused('TR002', lambda: self.attempt(self.relay, epoch, nonces,
                                                       [h32(f'b{n}') for n in nonces], version=2),
                         text=('leader_attempt', 'transaction version 2', 'signs under 1'))
        again(0, 'same', version=1)
        again(0, 'filler', version=2, filler=2, outcome='cancelled')
        self.fill(self.relay, epoch, [1])
        again(1, 'filler again', version=2)
        self.pause(epoch, 'transaction_version')
        self.resume()
        self.pending(1, first=2, epoch=epoch)
        self.assertEqual(self.facts(epoch)['transaction_version'], 1)


class Rewind(Case):
    """The operator's way back from a next nonce that is too high."""

    def rewind(self, name='alice'):
        self.relay.rows('SELECT txrelay.account_rewind(%s)', name)

    def orders(self):
        a = self.account()
        return a['reborn'], a['used_nonce'], a['used_block']

    def refused_and_nothing_changed(self, epoch, *text):
        before = self.account()
        said = self.refused('TR011', self.rewind, text=('account_rewind: account', *text))
        self.assertEqual(self.account(), before)
        self.facts(epoch)  # the epoch is in force
        return said

    def test_the_order(self):
        epoch, _ = self.pending(2)
        self.owner.rows('UPDATE txrelay.accounts SET used_nonce = 500, used_block = 9000')
        listener = self.listen('outbox_wake')
        self.rewind()
        self.assertEqual(self.heard(listener), [('outbox_wake', str(self.alice))],
                         'the leader need not wait for its next poll')
        self.assertEqual(self.orders(), (True, None, None))
        self.assertEqual((self.account()['next_nonce'], self.account()['life_since']), (2, None),
                         'the leader does the rest')

    def test_the_epoch_is_over(self):
        """What the leader decided on before the order cannot come after it."""
        epoch, _ = self.pending(1)
        tx = self.enqueue()
        self.rewind()
        self.refused('TR001', self.admit, self.relay, epoch, tx, [1], text='stale epoch')
        self.refused('TR001', self.relay.rows, 'SELECT txrelay.leader_nonce(%s, %s, 9)', self.alice,
                     epoch)
        self.refused('TR001', self.facts, epoch)
        self.assertFalse(self.relay.value("SELECT renewed FROM txrelay.leader_renew('relay-a', "
                                          "ARRAY[%s], ARRAY[%s::bigint], "
                                          '3000, 9000)', self.alice, epoch))
        self.assertEqual(self.lead(), epoch + 2)

    def test_no_epoch_passes_it_while_a_write_is_under_way(self):
        epoch, _ = self.pending(1)
        self.relay.begin()
        self.state(self.relay, epoch, (0, h32(0), 'ready'))
        other = self.session('relay')
        waiting = self.background(other, "SELECT txrelay.account_rewind('alice')")
        self.relay.commit()
        waiting.join()
        self.assertEqual(self.row(0)['state'], 'ready')
        self.assertTrue(self.orders()[0])

    def test_the_leader_carries_it_out(self):
        epoch, ids = self.pending(2)
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        self.relay.rows('SELECT txrelay.leader_nonce(%s, %s, 500)', self.alice, epoch)
        self.rewind()
        epoch = self.lead()
        begin = 'SELECT txrelay.leader_nonce(%s, %s, 1, true, true)'
        self.refused('TR003', self.relay.rows, begin, self.alice, epoch, text='nonce 1 is pending')
        self.requeue(self.relay, epoch, (1, 'failed'))
        self.relay.rows(begin, self.alice, epoch)
        self.assertEqual((self.orders(), self.account()['next_nonce']), ((False, None, None), 1))
        self.refused('TR003', self.relay.rows, begin, self.alice, epoch,
                     text='no operator has ordered')
        self.admit(self.relay, epoch, [ids[1]], [1])

    def test_it_ends_the_leaders_pause_and_not_an_operators(self):
        for by_operator in (False, True):
            for suspension in (None, 'payment', 'reaped', 'transaction_version'):
                with self.subTest(by_operator=by_operator, suspension=suspension):
                    self.tearDown()
                    self.setUp()
                    epoch, _ = self.pending()
                    self.relay.rows('SELECT txrelay.leader_pause(%s, %s, %s, %s)', self.alice,
                                    epoch, suspension, 'x')
                    if by_operator:
                        self.relay.rows("SELECT txrelay.account_pause('alice', 'let me see')")
                    since = self.account()['paused_since']
                    self.rewind()
                    a = self.account()
                    self.assertEqual((a['paused'], a['paused_by'], a['paused_reason'],
                                      a['paused_since'], a['suspension']),
                                     (True, 'operator', 'let me see', since, None) if by_operator
                                     else
                                     (False, None, None, None, None))
                    self.assertEqual((a['reborn'], a['transaction_version']), (True, 1))

    def test_bytes_that_never_die_are_refused(self):
        """The current attempt's, and those of an earlier one."""
        epoch, _ = self.pending(3)
        self.attempt(self.relay, epoch, [1], [h32('immortal')])
        self.refused_and_nothing_changed(
            epoch, 'is "alice", whose pending nonce 1 was signed without an era', 'another account')
        self.relay.rows('SELECT txrelay.leader_attempt(%s, %s, ARRAY[1::bigint], ARRAY[%s], '
                        'ARRAY[%s], ARRAY[1], ARRAY[64::bigint], '
                        "ARRAY[128::bigint], 100, 1, 20, ARRAY['era'], ARRAY[NULL::int], "
                        "ARRAY[NULL], ARRAY[NULL])", self.alice, epoch,
                        h32('mortal again'), b'\x84' + h32('mortal again'))
        self.refused_and_nothing_changed(epoch, 'nonce 1 was signed without an era')
        self.finish(self.relay, epoch, (1, h32('immortal'), BLOCK, 'ok'))
        self.rewind()

    def test_lost_commits_come_first(self):
        epoch = self.lead()
        self.relay.value("SELECT txrelay.account_reconcile('alice', 40)")
        epoch = self.lead()
        self.refused_and_nothing_changed(epoch, 'lost commits are looked for from block 40 on',
                                         'account_reconcile(account, block)')

    def test_accounts_without_a_key_and_without_a_row(self):
        epoch = self.lead()
        self.owner.rows('UPDATE txrelay.accounts SET watch_only = true')
        self.refused_and_nothing_changed(epoch, 'is "alice", whose key no relay has')
        self.refused('TR010', self.rewind, 'alicia', text='alicia')

    def test_operators_only(self):
        self.lead()
        for session in (self.app, self.session('follower'), self.session('nobody')):
            self.refused('42501', session.rows, "SELECT txrelay.account_rewind('alice')")
        self.assertFalse(self.orders()[0])


class Life(Case):
    """What finalized blocks used, and what an account that was reaped and born again makes of
    it."""
    NONCE = 'SELECT txrelay.leader_nonce(%s, %s, %s, %s, %s)'

    def nonce(self, epoch, value, lower=False, reborn=False):
        self.relay.rows(self.NONCE, self.alice, epoch, value, lower, reborn)

    def used(self, epoch):
        return self.facts(epoch)['used_nonce'], self.facts(epoch)['used_block']

    def order(self, epoch):
        self.relay.rows("SELECT txrelay.leader_pause(%s, %s, 'reaped', 'x')", self.alice, epoch)
        self.relay.rows("SELECT txrelay.account_resume('alice')")

    def block(self, number):
        self.owner.rows("UPDATE txrelay.accounts SET used_block = %s", number)

    def test_used_by_a_block_or_by_somebody_else(self):
        epoch, _ = self.pending(6)
        self.assertEqual(self.used(epoch), (None, None))
        self.finish(self.relay, epoch, (5, None, None, 'expired'))
        self.assertEqual(self.used(epoch), (None, None))
        self.finish(self.relay, epoch, (1, h32(1), BLOCK, 'ok'))
        self.assertEqual(self.used(epoch), (2, 7))
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'dispatch_error'))
        self.assertEqual(self.used(epoch), (2, 7))
        self.finish(self.relay, epoch, (2, None, None, 'usurped'))
        self.assertEqual(self.used(epoch), (3, 7))
        self.requeue(self.relay, epoch, (3, 'usurped'))
        self.assertEqual(self.used(epoch), (4, 7))
        self.requeue(self.relay, epoch, (4, 'failed'))
        self.assertEqual(self.used(epoch), (4, 7))

    def test_the_highest_of_a_batch_and_never_a_lower_one(self):
        epoch, _ = self.pending(4)
        self.finish(self.relay, epoch, (2, h32(2), BLOCK, 'ok'), (0, h32(0), BLOCK, 'ok'),
                    (3, None, None, 'failed'))
        self.assertEqual(self.used(epoch), (3, 7))
        self.block(900)
        self.finish(self.relay, epoch, (1, h32(1), BLOCK, 'ok'))
        self.assertEqual(self.used(epoch), (3, 900))
        self.block(6)
        self.pending(1, first=4, epoch=epoch)
        self.finish(self.relay, epoch, (4, h32(4), BLOCK, 'ok'))
        self.assertEqual(self.used(epoch), (5, 7))

    def test_a_dispatch_error_that_is_tried_again_used_its_nonce(self):
        epoch, _ = self.pending(1, retries=1)
        self.requeue(self.relay, epoch, (0, 'dispatch_error', 'no', h32(0), BLOCK))
        self.assertEqual(self.used(epoch), (1, 7))
        self.refused('TR002', self.nonce, epoch, 0, True, text=('nonce 0', 'finalized block'))

    def test_a_new_life_takes_an_order_and_nothing_pending(self):
        epoch, _ = self.pending(2)
        self.finish(self.relay, epoch, (0, h32(0), BLOCK, 'ok'))
        self.refused('TR003', self.nonce, epoch, 0, False, True,
                     text=('new life', 'nonce 1 is pending'))
        self.finish(self.relay, epoch, (1, h32(1), BLOCK, 'ok'))
        self.refused('TR003', self.nonce, epoch, 0, False, True,
                     text=('no operator has ordered', 'account_resume'))
        self.refused('TR003', self.nonce, epoch, 0, text=('0', '2', 'p_lower'))
        self.refused('TR002', self.nonce, epoch, 0, True, text='used in a finalized block')
        self.order(epoch)
        for nothing in (None, -1):
            self.refused('TR003', self.nonce, epoch, nothing, False, True)
        self.assertEqual(self.account()['next_nonce'], 2)
        self.nonce(epoch, 0, reborn=True)
        a = self.account()
        self.assertEqual((a['next_nonce'], a['reborn'], self.used(epoch)), (0, False, (None, None)))
        self.assertIsNotNone(a['life_since'])
        self.refused('TR003', self.nonce, epoch, 0, False, True, text='no operator has ordered')

    def test_a_new_life_may_begin_anywhere(self):
        epoch = self.lead()
        self.nonce(epoch, 10)
        for value in (500, 3):
            self.order(epoch)
            self.nonce(epoch, value, reborn=True)
            self.assertEqual(self.account()['next_nonce'], value)

    def test_the_records_of_the_former_life_say_nothing(self):
        epoch, _ = self.pending(3)
        self.finish(self.relay, epoch, *[(n, h32(n), BLOCK, 'ok') for n in range(3)])
        self.order(epoch)
        self.nonce(epoch, 0, reborn=True)
        self.nonce(epoch, 5)
        self.nonce(epoch, 1, True)
        self.nonce(epoch, 0, True)
        self.admit(self.relay, epoch, self.enqueue(2), [0, 1], [h32('second'), h32('other')])
        self.assertEqual(self.used(epoch), (None, None))
        self.finish(self.relay, epoch, (0, h32('second'), BLOCK, 'ok'))
        self.assertEqual(self.used(epoch), (1, 7))
        self.refused('TR002', self.finish, self.relay, epoch, (1, h32('other'), BLOCK, 'ok'),
                     (2, h32(2), BLOCK, 'ok'),
                     text='1 of 2')
        self.refused('TR003', self.finish, self.relay, epoch, (1, h32('other'), BLOCK, 'ok'),
                     (0, h32(0), BLOCK, 'ok'),
                     text='ended before, as ok')


class Blocked(Case):
    def blocked(self):
        return self.app.dicts('SELECT * FROM txrelay.blocked_accounts')

    def test_nobody(self):
        epoch, _ = self.pending(2)
        self.assertEqual(self.blocked(), [])
        self.state(self.relay, epoch, (1, h32(1), 'refused', None, None, 'no'))
        self.assertEqual(self.blocked(), [], 'it is not the first in line')

    def test_refused_and_first_in_line(self):
        epoch, ids = self.pending(2)
        self.state(self.relay, epoch, (0, h32(0), 'refused', None, None, '1010: payment'))
        got, = self.blocked()
        self.assertEqual(got, {'account': 'alice', 'account_id': '0x' + h32('alice').hex(),
                               'since': self.row(0)['blocked_since'], 'nonce': 0, 'id': ids[0],
                               'state': 'signed',
                               'reason': '1010: payment', 'paused': False, 'paused_by': None,
                               'suspension': None, 'code': 'refused'})
        self.state(self.relay, epoch, (0, h32(0), 'ready'))
        self.assertEqual(self.blocked(), [])

    def test_signed_anew_keeps_its_reason(self):
        """Between a new signature and what a node says of it, what was said last is the reason."""
        epoch, _ = self.pending()
        self.state(self.relay, epoch, (0, h32(0), 'refused', None, None, 'first'))
        self.state(self.relay, epoch, (0, h32(0), 'refused', None, None, 'last'))
        self.attempt(self.relay, epoch, [0], [h32('again')])
        self.assertEqual(self.blocked()[0]['reason'], 'last')

    def test_paused_by_whomever(self):
        epoch = self.lead()
        self.relay.rows("SELECT txrelay.leader_pause(%s, %s, 'payment', 'poor')", self.alice, epoch)
        got, = self.blocked()
        self.assertEqual((got['nonce'], got['reason'], got['paused'], got['paused_by'],
                          got['suspension'], got['since']),
                         (None, 'poor', True, 'leader', 'payment', self.account()['paused_since']))
        self.relay.rows("SELECT txrelay.account_pause('alice', 'wait')")
        got, = self.blocked()
        self.assertEqual((got['reason'], got['paused_by'], got['suspension']),
                         ('wait', 'operator', 'payment'))
        self.relay.rows("SELECT txrelay.account_resume('alice')")
        self.assertEqual(self.blocked(), [])

    def test_both_since_the_earlier(self):
        epoch, _ = self.pending()
        self.state(self.relay, epoch, (0, h32(0), 'refused', None, None, 'no'))
        self.relay.rows("SELECT txrelay.leader_pause(%s, %s, 'payment', 'poor')", self.alice, epoch)
        got, = self.blocked()
        self.assertEqual((got['since'], got['reason'], got['nonce']),
                         (self.row(0)['blocked_since'], 'poor', 0))

    def test_one_probe_an_account(self):
        """A long queue behind a blocked head costs the reader nothing."""
        epoch = self.lead()
        n = 3000
        ids = self.app.value("SELECT txrelay.enqueue_many('alice', array_fill('\\x01'::bytea, "
                             "ARRAY[%s]))", n)
        self.admit(self.relay, epoch, ids, list(range(n)))
        self.state(self.relay, epoch, *[(x, h32(x), 'refused', None, None, 'no') for x in range(n)])
        self.owner.rows('VACUUM ANALYZE txrelay.pending_transactions')
        with self.work_on(self.app, 'pending_transactions') as work:
            self.assertEqual([b['nonce'] for b in self.app.dicts('SELECT nonce FROM '
                                                                 'txrelay.blocked_accounts')], [0])
        self.assertLess(work[0][0], 10)


if __name__ == '__main__':
    unittest.main()
