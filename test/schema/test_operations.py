"""What operators do leaves a record, by whichever way they do it; what applications do does not.
Tokens and records leave in time."""
import json

import psycopg2

from pgcase import Case, h32

KEY = b'\1' * 32

# Functions that a relay's login may call and that are no operator's: they read, or a relay calls
# them for itself.
NO_OPERATION = {
    'account_blocks', 'account_of', 'account_waits', 'clock_behind', 'counts', 'drop_partitions',
    'enqueue', 'enqueue_many', 'enqueue_signed', 'ensure_partitions',
    'follow_position', 'history', 'http_cleanup', 'http_span', 'http_time', 'ids_behind',
    'lock_holder', 'member_heartbeat', 'operate', 'operate_many', 'queue_measure',
    'relay_obstacle', 'repair_ids', 'row_holder', 'session_text', 'status', 'timeline_known',
    'token_use', 'turn_waits',
    'webhook_row'}

# Every other one: a statement, the action in its record, and what tells its subject. {id} waits,
# {ended} has ended without effect.
OPERATIONS = {
    'cancel': ("SELECT txrelay.cancel({id})", 'cancel', ('transaction', '{id}')),
    'bump': ("SELECT txrelay.bump({id}, 7)", 'bump', ('transaction', '{id}')),
    'retry': ("SELECT txrelay.retry({ended})", 'retry', ('transaction', '{ended}')),
    'account_pause': ("SELECT txrelay.account_pause('alice', 'lunch')", 'pause',
                      ('account', '{alice}')),
    'account_resume': ("SELECT txrelay.account_resume('alice')", 'resume', ('account', '{alice}')),
    'account_rewind': ("SELECT txrelay.account_rewind('alice')", 'rewind', ('account', '{alice}')),
    'account_policy': ("SELECT txrelay.account_policy('alice', '{{\"tip_start\": 3}}')", 'policy',
                       ('account', '{alice}')),
    'account_reconcile': ("SELECT txrelay.account_reconcile('alice', 5)", 'reconcile',
                          ('account', '{alice}')),
    'account_grant': ("SELECT txrelay.account_grant('alice', 'txrelay_app')", 'grant',
                      ('account', '{alice}')),
    'account_revoke': ("SELECT txrelay.account_revoke('alice', 'txrelay_app')", 'revoke',
                       ('account', '{alice}')),
    'account_unsite': ("SELECT txrelay.account_unsite('alice')", 'unsite', ('account', '{alice}')),
    'relay_register': ("SELECT txrelay.relay_register('bob', decode(repeat('02', 32), 'hex'), "
                       "'sr25519', decode(repeat('01', 32), 'hex'), "
                       "'5bob', 77)", 'register',
                       ('account', "(SELECT account FROM txrelay.accounts WHERE alias = 'bob')")),
    'relay_drained': ("SELECT txrelay.relay_drained('one')", 'drain', ('subject', "'one'")),
    'relay_sent': ("SELECT txrelay.relay_sent({id}, '', 'shop')", 'send', ('transaction', '{id}')),
    'feed_create': ("SELECT txrelay.feed_create('new', 'alice', ARRAY[decode(repeat('01', 32), "
                    "'hex')])", 'feed_create', ('subject', "'new'")),
    'feed_publishers': ("SELECT txrelay.feed_publishers('rates', ARRAY[decode(repeat('02', 32), "
                        "'hex')])", 'feed_publishers', ('subject', "'rates'")),
    'feed_pause': ("SELECT txrelay.feed_pause('rates', 'lunch')", 'feed_pause',
                   ('subject', "'rates'")),
    'feed_resume': ("SELECT txrelay.feed_resume('rates')", 'feed_resume', ('subject', "'rates'")),
    'feed_remove': ("SELECT txrelay.feed_remove('rates')", 'feed_remove', ('subject', "'rates'")),
    'token_create': ("SELECT txrelay.token_create('new', decode(repeat('02', 32), 'hex'), "
                     "ARRAY['read'])", 'token_create', ('subject', "'new'")),
    'token_revoke': ("SELECT txrelay.token_revoke('shop')", 'token_revoke', ('subject', "'shop'")),
    'webhook_create': ("SELECT txrelay.webhook_create('new', 'https://x.example/')",
                       'webhook_create', ('subject', "'new'")),
    'webhook_remove': ("SELECT txrelay.webhook_remove('hook')", 'webhook_remove',
                       ('subject', "'hook'")),
    'webhook_pause': ("SELECT txrelay.webhook_pause('hook')", 'webhook_pause',
                      ('subject', "'hook'")),
    'webhook_resume': ("SELECT txrelay.webhook_resume('hook')", 'webhook_resume',
                       ('subject', "'hook'")),
    'webhook_rotate': ("SELECT txrelay.webhook_rotate('hook')", 'webhook_rotate',
                       ('subject', "'hook'")),
    'webhook_again': ("SELECT txrelay.webhook_again('hook')", 'webhook_again',
                      ('subject', "'hook'")),
}
# or in another subject
UNCHANGED = {'retry', 'account_resume', 'account_rewind', 'relay_drained', 'feed_resume',
             'webhook_resume', 'webhook_again'}


class Operations(Case):
    def setUp(self):
        super().setUp()
        self.policy(tip_cap='100')
        self.relay.rows("SELECT txrelay.feed_create('rates', 'alice', ARRAY[%s::bytea])", KEY)
        self.relay.rows("SELECT txrelay.token_create('shop', %s, ARRAY['read'])", h32('shop'))
        self.relay.rows("SELECT txrelay.webhook_create('hook', 'https://hook.example/')")
        self.id = self.app.value("SELECT txrelay.enqueue('alice', '\\x0001')")
        self.ended = self.app.value("SELECT txrelay.enqueue('alice', '\\x0002')")
        self.app.value('SELECT txrelay.cancel(%s)', self.ended)
        self.owner.rows('DELETE FROM txrelay.operations')

    def record(self):
        return self.owner.dict('SELECT * FROM txrelay.operations ORDER BY id DESC LIMIT 1')

    def count(self):
        return self.owner.value('SELECT count(*) FROM txrelay.operations')

    def test_each_function_of_an_operator_is_known_here(self):
        may = {name for (name,) in self.owner.rows(
            "SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'txrelay'::regnamespace "
            "AND has_function_privilege('txrelay_relay', p.oid, 'EXECUTE')")
            if not name.startswith('leader_')}
        self.assertEqual(may - NO_OPERATION, set(OPERATIONS))

    def test_each_of_them_leaves_who_what_before_and_after(self):
        self.relay.rows("SET application_name = 'psql'")
        login = self.relay.value('SELECT session_user')
        for name, (sql, action, (column, subject)) in OPERATIONS.items():
            values = {'id': self.id, 'ended': self.ended, 'alice': self.alice}
            with self.subTest(name):
                if name == 'account_unsite':
                    self.owner.rows(
                        "UPDATE txrelay.accounts SET sited = true WHERE alias = 'alice'")
                self.relay.rows('BEGIN')
                self.relay.rows(sql.format(**values).replace('%', '%%'))
                r = self.relay.dict('SELECT *, (SELECT count(*) FROM txrelay.operations) AS count '
                                    'FROM txrelay.operations')
                expected = self.relay.value('SELECT ' + subject.format(**values))
                self.relay.rows('ROLLBACK')
                self.assertEqual((r['count'], r['who'], r['login'], r['via'], r['action'],
                                  r[column]),
                                 (1, login, login, 'psql', action, expected))
                self.assertIsNotNone(r['answer'])
                if name not in UNCHANGED:
                    self.assertNotEqual(r['before'], r['after'])
        self.assertEqual(self.count(), 0)

    def test_what_is_refused_leaves_no_record(self):
        for action, id, account, code in (('cancel', 999999, None, 'TR011'),
                                          ('fly', None, 'alice', 'TR011'),
                                          ('pause', None, 'nobody', 'TR010'),
                                          ('cancel', None, None, 'TR011')):
            with self.assertRaises(psycopg2.Error) as caught:
                self.operate(action, id, account)
            self.assertEqual(caught.exception.pgcode, code, action)
        self.assertEqual(self.count(), 0)

    def operate(self, action, id=None, account=None, arguments='{}'):
        return self.relay.value('SELECT txrelay.operate(%s, %s, %s, %s, %s)', 'admin', action, id,
                                account, arguments)

    def test_over_http_the_token_is_who(self):
        self.assertEqual(self.operate('bump', self.id, arguments='{"tip": "7"}'), 'queued')
        r = self.record()
        self.assertEqual((r['who'], r['action'], r['transaction'], r['answer']),
                         ('admin', 'bump', self.id, 'queued'))
        self.assertEqual((r['before']['tip'], r['after']['tip']), (None, '7'))
        self.assertEqual(self.operate('cancel', self.id), 'cancelled')
        r = self.record()
        self.assertEqual((r['before']['stage'], r['after']['stage'], r['after']['outcome']),
                         ('outbox', 'finished', 'cancelled'))
        new = self.operate('retry', self.id)
        self.assertEqual(self.record()['answer'], new)
        self.assertEqual(self.operate('pause', account='alice', arguments='{"reason": "lunch"}'),
                         'paused')
        r = self.record()
        self.assertEqual((r['before']['paused'], r['after']['paused'], r['after']['paused_reason']),
                         (False, True, 'lunch'))
        self.assertEqual(self.operate('resume', account='alice'), 'resumed')
        self.assertEqual(json.loads(self.operate('policy', account='alice',
                                                 arguments='{"tip_start": 5}')),
                                                 {'tip_cap': '100', 'tip_start': '5'})
        self.assertEqual(self.operate('drain', arguments='{"relay": "one"}'), 'draining')
        new = json.dumps({'id': '05' * 32, 'genesis': '06' * 32, 'scheme': 'sr25519',
                          'address': '5x', 'lock_key': -5, 'watch_only': True, 'era': 64,
                          'immortal': False})
        self.assertEqual(self.operate('register', account='new', arguments=new), 'registered')
        r = self.record()
        self.assertEqual((r['who'], r['action'], r['arguments']),
                         ('admin', 'register', {'address': '5x'}))
        self.assertEqual(self.owner.rows("SELECT encode(account_id, 'hex'), watch_only, "
                                         "era_longest, era_immortal FROM txrelay.accounts WHERE "
                                         "alias = 'new'"),
                         [('05' * 32, True, 64, False)])
        self.assertEqual(self.owner.rows('SELECT DISTINCT who, login FROM txrelay.operations'),
                         [('admin', self.relay.value('SELECT session_user'))])
        # the name ended with its statement
        self.relay.rows("SELECT txrelay.account_resume('alice')")
        self.assertNotEqual(self.record()['who'], 'admin')

    def test_who_asks_is_recorded_everywhere(self):
        """Beside the record of operations: where an order leaves a name. An application cannot
        choose it."""
        _, (waits,) = self.pending()
        self.operate('bump', waits, arguments='{"tip": "9"}')
        self.operate('cancel', waits)
        self.operate('retry', self.ended)
        self.operate('cancel', self.id)
        self.assertEqual(self.owner.rows('SELECT asked_by FROM txrelay.bumps WHERE id = %s '
                                         'UNION ALL SELECT asked_by FROM txrelay.cancellations '
                                         'WHERE id = %s UNION ALL SELECT asked_by '
                                         'FROM txrelay.retries WHERE id = %s', waits, waits,
                                         self.ended),
                         [('admin',)] * 3)
        self.assertEqual(self.owner.value('SELECT error FROM txrelay.status(%s)', self.id),
                         'cancelled by admin')
        mine = self.app.value("SELECT txrelay.enqueue('alice', '\\x0003')")
        self.app.rows('BEGIN')
        self.app.rows("SET LOCAL txrelay.operator = 'admin'")
        self.app.value('SELECT txrelay.cancel(%s)', mine)
        self.app.rows('COMMIT')
        self.assertEqual(self.owner.value('SELECT error FROM txrelay.status(%s)', mine),
                         'cancelled by app')

    def test_many_at_once_each_for_itself(self):
        done = self.relay.value("SELECT txrelay.operate_many('admin', 'cancel', ARRAY[%s, 999999, "
                                "%s]::bigint[], '{}')", self.id, self.ended)
        self.assertEqual([(d['id'], d.get('answer')) for d in done],
                         [(self.id, 'cancelled'), (999999, None), (self.ended, 'finished')])
        self.assertIn('there is no such transaction', done[1]['error'])
        self.assertEqual(self.count(), 2)
        for action, ids in (('pause', '{1}'), ('cancel', '{}')):
            with self.assertRaises(psycopg2.Error) as caught:
                self.relay.rows('SELECT txrelay.operate_many(%s, %s, %s, %s)', 'admin', action, ids,
                                '{}')
            self.assertEqual(caught.exception.pgcode, 'TR011')

    def test_applications_have_no_part_in_it(self):
        self.app.value('SELECT txrelay.cancel(%s)', self.id)
        self.assertEqual(self.count(), 0)
        for sql in ("SELECT txrelay.operate('x', 'cancel', 1, NULL, '{}')",
                    "SELECT txrelay.token_create('x', '\\x00', ARRAY['read'])",
                    "SELECT * FROM txrelay.token_use('\\x00', 'read', NULL)",
                    'SELECT * FROM txrelay.tokens',
                    'SELECT * FROM txrelay.operations', 'SELECT * FROM txrelay.webhooks',
                    "SELECT txrelay.webhook_create('x', 'https://x/')",
                    "SELECT txrelay.operation_note('x', 1, NULL, NULL, '{}', NULL, '')"):
            with self.assertRaises(psycopg2.errors.InsufficientPrivilege):
                self.app.rows(sql)

    def test_old_records_leave_and_tokens_behind_them(self):
        self.relay.rows("SELECT txrelay.token_revoke('shop')")
        self.owner.rows("UPDATE txrelay.tokens SET revoked_at = clock_timestamp() - interval "
                        "'30 days'")
        clean = "SELECT txrelay.http_cleanup('20 days')"
        self.assertEqual(self.relay.value(clean), 0)  # the record of its end names it
        self.owner.rows("UPDATE txrelay.operations SET at = clock_timestamp() - interval '30 days'")
        self.operate('pause', account='alice')
        self.assertEqual(self.relay.value(clean), 2)
        self.assertEqual(self.owner.value('SELECT count(*) FROM txrelay.tokens'), 0)
        self.assertEqual(self.count(), 1)
        self.relay.rows("SELECT txrelay.token_create('shop', %s, ARRAY['read'])", h32('again'))
        self.owner.rows(
            "UPDATE txrelay.operations SET at = clock_timestamp() - interval '500 days'")
        self.relay.rows("SELECT txrelay.drop_partitions('1 day')")
        self.assertEqual(self.count(), 0)
        with self.assertRaises(psycopg2.Error) as caught:
            self.relay.rows("SELECT txrelay.http_cleanup('1 hour')")
        self.assertEqual(caught.exception.pgcode, 'TR011')


class Leaders(Case):
    def test_who_led_when_stays_and_is_bounded(self):
        for i in range(70):
            self.relay.rows("SELECT * FROM txrelay.leader_claim(%s, %s, %s, false, 5000, 20000)",
                            self.alice, 'one', 'unix:/one')
        rows = self.owner.rows('SELECT subject, epoch, holder, address '
                               'FROM txrelay.leadership_history ORDER BY epoch')
        self.assertEqual(rows, [(self.alice, e, 'one', 'unix:/one') for e in range(7, 71)])
        self.relay.rows("SELECT * FROM txrelay.leader_claim(%s, %s, %s, false, 5000, 20000)",
                        self.alice, 'two', None)
        # it was not granted
        self.assertEqual(self.owner.value('SELECT max(epoch) FROM txrelay.leadership_history'), 70)
