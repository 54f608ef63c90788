"""Nothing that can be set is silently ignored at an account that has sites: each key of a policy,
each option of enqueue and each order of an operator holds there, or is refused. What is new fails
here until it is classed."""
import re

from pgcase import EMPTY
from test_sites import Sites


class Options(Sites):
    REFUSED = {'tip_after_blocks': (5, 0), 'skip_after_blocks': (9, 0), 'low_balance': (7, None),
               'usurped': ('fail', 'requeue'),
               # key: (what is refused, what is taken)
               'order': ('strict', 'any'), 'retry_refusals': ('Custom:6', None)}

    def rows(self):
        return [r for r in self.poll() if r['kind'] == 'row']

    def each(self, prefix, names):
        """There is a method for every name and no other one; calls each on a fresh account."""
        root = self.superuser()
        self.assertEqual({n[len(prefix):] for n in dir(self) if n.startswith(prefix)}, set(names))
        for name in sorted(names):
            with self.subTest(name):
                getattr(self, prefix + name)()
            root.rows(EMPTY)
            self.alice = self.register(self.relay, 'alice', 42)
            self.begin()

    # ---- policy ----

    def known_keys(self):
        """Every key that account_policy knows, whatever its texts say."""
        source = self.owner.value("SELECT prosrc FROM pg_proc WHERE oid = "
                                  "'txrelay.policy_value'::regproc")

        def known(key):
            return self.owner.value("SELECT txrelay.policy_knows(%s)", key)
        self.owner.rows("""CREATE FUNCTION txrelay.policy_knows(p text) RETURNS boolean LANGUAGE
            plpgsql AS $$
            BEGIN PERFORM txrelay.policy_value(p, '{}'); RETURN true;
            EXCEPTION WHEN SQLSTATE 'TR011'
            THEN RETURN SQLERRM NOT LIKE '%is not a key of a policy'; END $$""")
        try:
            return {k for k in re.findall(r"'(\w+)'", source) if known(k)}
        finally:
            self.owner.rows('DROP FUNCTION txrelay.policy_knows')

    def test_each_key_of_a_policy_holds_or_is_refused(self):
        keys = self.known_keys()
        self.assertGreater(len(keys), 10)
        self.each('policy_', keys - set(self.REFUSED))
        self.assertLessEqual(set(self.REFUSED), keys)

    def test_a_key_without_effect_is_refused_when_it_is_set(self):
        self.policy(tip_cap=9)
        for key, (bad, good) in self.REFUSED.items():
            with self.subTest(key):
                self.refused('TR011', self.policy, **{key: bad},
                             text=(f'account_policy: {key} is ', str(bad), 'account alice',
                             'has sites', f'txrelay policy alice {key}='))
                self.assertEqual(self.policy(), {'tip_cap': '9'})
                self.policy(**{key: good})
                self.policy(**{key: None})

    def test_a_key_without_effect_is_refused_when_sites_begin(self):
        self.relay.rows("SELECT txrelay.account_unsite('alice')")
        self.epoch = self.successor()
        self.policy(tip_cap=9)
        for key, (bad, good) in self.REFUSED.items():
            with self.subTest(key):
                self.policy(**{key: bad})
                self.refused('TR011', self.setup_sites,
                             text=(f'leader_site_setup: {key} is ', 'account alice',
                                   f'txrelay policy alice {key}='))
                self.policy(**{key: good})
        self.setup_sites()
        self.assertEqual(self.app.value('SELECT account FROM txrelay.sites'), 'alice')

    def test_a_key_that_is_set_while_sites_begin_waits_for_them(self):
        self.relay.rows("SELECT txrelay.account_unsite('alice')")
        self.epoch = self.successor()
        self.policy(tip_cap=9)
        other = self.session('relay')
        self.relay.begin()
        self.setup_sites()
        call = self.background(other, "SELECT txrelay.account_policy('alice', "
                                      "'{\"tip_after_blocks\": 5}')")
        self.relay.commit()
        self.refused('TR011', call.join, text='has sites')

    def policy_tip_start(self):
        self.policy(tip_start=3)
        self.enqueue()
        self.assertEqual(self.rows()[0]['tip'], 3)

    def policy_tip_cap(self):
        self.policy(tip_cap=5)
        tx, = self.enqueue(tip=5)
        self.policy(tip_cap=4)
        self.assertEqual(self.rows()[0]['tip'], 4)
        self.refused('TR011', self.app.rows, 'SELECT txrelay.bump(%s, 6)', tx, text='tip_cap (4)')

    def policy_tip_step(self):
        tx, = self.enqueue()
        self.policy(tip_cap=90, tip_step=7)
        self.app.rows('SELECT txrelay.bump(%s)', tx)
        self.assertEqual(self.rows()[0]['tip'], 7)

    def policy_tip_step_percent(self):
        self.policy(tip_cap=900, tip_step_percent=50)
        tx, = self.enqueue(tip=20)
        self.app.rows('SELECT txrelay.bump(%s)', tx)
        self.assertEqual(self.rows()[0]['tip'], 30)

    def policy_priority_max(self):
        self.policy(priority_max=4)
        self.refused('TR011', self.enqueue, priority=5, text='4')
        self.enqueue(priority=4)

    def policy_outbox_max(self):
        self.policy(outbox_max=1)
        first, = self.enqueue()
        self.refused('TR013', lambda: self.enqueue(2), text='outbox_max')
        for tx in [r['id'] for r in self.rows()]:
            self.grant(tx, self.next[0] + tx)
        self.enqueue()  # what is granted waits no longer

    # ---- enqueue ----

    def test_each_option_of_enqueue_holds(self):
        names = self.owner.value("SELECT proargnames FROM pg_proc "
                                 "WHERE oid = 'txrelay.enqueue'::regproc")
        self.each('option_', names)

    def carried(self, column, value, **options):
        """The leader reads it, before bytes are granted and after."""
        tx, = self.enqueue(**options)
        self.assertEqual(self.rows()[0][column], value)
        self.grant(tx)
        self.assertEqual(self.load()[0]['tx'][0][column], value)

    def option_account(self):
        self.refused('TR010', lambda: self.app.rows("SELECT txrelay.enqueue('bob', '\\x0001')"),
                     text='bob')

    def option_call(self):
        self.carried('call', b'\0\2', call=b'\0\2')

    def option_key(self):
        first, second = self.enqueue(2, key='once')
        self.assertEqual(first, second)
        self.grant(first)
        self.assertEqual(self.enqueue(key='once'), [first])

    def option_priority(self):
        low, high = self.enqueue() + self.enqueue(priority=9)
        self.assertEqual(self.waiting(), [high, low])

    def option_not_before(self):
        self.enqueue(not_before='2099-01-01')
        self.assertEqual(self.rows(), [])
        self.assertGreater(self.poll()[0]['next_ms'], 0)

    def option_deadline(self):
        tx, = self.enqueue(deadline='2099-01-01')
        self.grant(tx)
        self.owner.rows("UPDATE txrelay.site_transactions SET deadline = '2020-01-01'")
        self.assertEqual([(r['kind'], r['id'], r['outcome']) for r in self.poll()],
                         [('stop', tx, 'expired')])

    def option_delay(self):
        self.enqueue(delay='1 hour')
        self.assertEqual(self.rows(), [])

    def option_expires_in(self):
        self.enqueue(expires_in='1 hour')
        self.assertAlmostEqual(self.poll()[0]['next_ms'], 3600_000, delta=600_000)

    def option_creator(self):
        tx, = self.enqueue(creator='shop')
        self.grant(tx)
        self.assertEqual(self.status(tx)['creator'], 'shop')

    def option_spec_version(self):
        self.carried('guard', 7, spec_version=7)

    def option_tip(self):
        self.policy(tip_cap=50)
        self.carried('tip', 6, tip=6)

    def option_max_tip(self):
        self.policy(tip_cap=50, tip_start=9)
        self.carried('tip', 6, max_tip=6)

    def option_deadline_block(self):
        self.carried('deadline_block', 900, deadline_block=900)

    def option_retries(self):
        tx, = self.enqueue(retries=1)
        for nonce, waits in ((5, True), (6, False)):
            bytes_ = self.grant(tx, nonce)
            self.read_final(self.included(bytes_, 'dispatch_error', error='Balances.Low'),
                            next=[nonce + 1] * 3)
            self.assertEqual(self.waiting() == [tx], waits)
        self.assertEqual(self.status(tx)['outcome'], 'dispatch_error')

    def option_traceparent(self):
        trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
        self.carried('traceparent', trace, traceparent=trace)

    # ---- operators ----

    def test_each_order_for_an_account_holds_or_is_refused(self):
        names = self.owner.rows("""SELECT p.proname FROM pg_proc p
            WHERE p.pronamespace = 'txrelay'::regnamespace AND p.proname LIKE 'account\\_%'
            AND p.proargnames[1] IN ('account', 'p_account') AND p.proargtypes[0] = 'text'::regtype
            AND has_function_privilege('txrelay_relay', p.oid, 'EXECUTE')""")
        self.each('order_', {n for n, in names})

    def order_account_policy(self):
        self.test_a_key_without_effect_is_refused_when_it_is_set()

    def order_account_pause(self):
        self.enqueue()
        self.relay.rows("SELECT txrelay.account_pause('alice', 'audit')")
        self.assertEqual((self.rows(), self.poll()[0]['paused']), ([], True))

    def order_account_resume(self):
        self.order_account_pause()
        self.relay.rows("SELECT txrelay.account_resume('alice')")
        self.assertEqual(len(self.rows()), 1)

    def order_account_rewind(self):
        self.refused('TR011', self.relay.rows, "SELECT txrelay.account_rewind('alice')",
                     text='has sites')

    def order_account_reconcile(self):
        self.refused('TR011', self.relay.rows, "SELECT txrelay.account_reconcile('alice', 90)",
                     text=('is 90', 'has sites', 'Leave it out'))
        self.relay.rows("SELECT txrelay.account_reconcile('alice')")
        self.epoch = self.lead()
        self.assertTrue(self.load()[1]['lost'])
        tx, = self.enqueue()
        self.refused('TR003', self.grant, tx, text='alice')

    def order_account_unsite(self):
        self.relay.rows("SELECT txrelay.account_unsite('alice')")
        self.assertEqual(self.app.rows('SELECT * FROM txrelay.sites'), [])

    def order_account_grant(self):
        self.relay.rows("SELECT txrelay.account_grant('alice', 'nobody')")
        self.refused('42501', lambda: self.enqueue(), text='alice')

    def order_account_revoke(self):
        self.relay.rows("SELECT txrelay.account_grant('alice', 'app')")
        self.enqueue()
        self.relay.rows("SELECT txrelay.account_revoke('alice', 'app')")
        self.refused('42501', lambda: self.enqueue(), text='alice')

    # ---- orders for a transaction ----

    def test_each_order_for_a_transaction_holds_or_is_refused(self):
        """At each of its places."""
        names = self.owner.rows("""SELECT p.proname FROM pg_proc p
            WHERE p.pronamespace = 'txrelay'::regnamespace AND p.proargnames[1] = 'id'
            AND p.proargtypes[0] = 'bigint'::regtype
            AND has_function_privilege('txrelay_app', p.oid, 'EXECUTE')""")
        self.each('of_one_', {n for n, in names})

    def of_one_status(self):
        waiting, granted, done = self.places()
        self.assertEqual([self.status(tx)['stage'] for tx in (waiting, granted, done)],
                         ['outbox', 'pending', 'finished'])

    def of_one_history(self):
        waiting, granted, done = self.places()
        self.assertEqual([[h['outcome'] for h in self.history(tx)]
                          for tx in (waiting, granted, done)], [[], ['live'], ['included']])

    def of_one_cancel(self):
        """Bytes that are alive stay so; until they die it cannot end as cancelled."""
        waiting, granted, done = self.places()
        self.assertEqual([self.app.value('SELECT txrelay.cancel(%s)', tx)
                          for tx in (waiting, granted, done)],
                         ['requested', 'requested', 'finished'])
        end = [dict(kind='end', id=tx, outcome='cancelled', error='x')
               for tx in (waiting, granted)]
        self.write(end[0])
        self.refused('TR003', self.write, end[1], text='can still be included')
        while self.status(granted)['stage'] == 'pending':
            self.read_final()
        self.write(end[1])
        self.assertEqual([self.status(tx)['outcome'] for tx in (waiting, granted)],
                         ['cancelled', 'cancelled'])

    def of_one_bump(self):
        """Bytes that are alive pay what they pay; the next ones pay the bump."""
        self.policy(tip_cap=50)
        waiting, granted, done = self.places()
        self.assertEqual([self.app.value('SELECT txrelay.bump(%s, 9)', tx)
                          for tx in (waiting, granted, done)], ['queued', 'queued', 'finished'])
        self.assertEqual(self.status(granted)['tip'], 2)
        while self.status(granted)['stage'] == 'pending':
            self.read_final()
        self.assertEqual({r['id']: r['tip'] for r in self.rows()}, {waiting: 9, granted: 9})

    def of_one_retry(self):
        waiting, granted, done = self.places('dispatch_error')
        for tx in (waiting, granted):
            self.refused('TR011', self.app.rows, 'SELECT txrelay.retry(%s)', tx,
                         text=f'id is {tx}')
        self.assertGreater(self.app.value('SELECT txrelay.retry(%s)', done), done)

    def places(self, outcome='ok'):
        """One that waits, one that was granted bytes, one that has ended."""
        waiting, granted, done = self.enqueue(3)
        bytes_ = self.grant(done, 5)
        self.read_final(self.included(bytes_, outcome), next=[6, 6, 6])
        self.grant(granted, 6)
        return waiting, granted, done
