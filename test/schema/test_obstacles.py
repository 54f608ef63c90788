"""What keeps accounts from going on: what leaders tell, what the database sees by itself, and why
a transaction waits."""
import pathlib
import re
import unittest
from datetime import timedelta

from pgcase import Case, h32, wait_until
from test_signed import extrinsic

HEADER = pathlib.Path(__file__).parents[2] / 'relay/core/tx/include/relay/core/tx/obstacle.h'


def reasons(name):
    """The codes of a list of obstacle.h."""
    text = HEADER.read_text().replace('\\\n', ' ')
    return re.findall(r'"(\w+)"', re.search(rf'#define {name}\(X\)([^\n]*)', text).group(1))


# by the tests of this file: codes that blocked_accounts, blocked_relays or waits showed
MADE = set()


class Obstacles(Case):
    def tell(self, epoch, code, text=None, ms=0, account=None):
        return self.relay.value('SELECT txrelay.leader_obstacles(%s, %s, %s, %s, %s)',
                                [account or self.alice], [epoch], [code], [text], [ms])

    def lead(self, holder='relay-a', **more):
        """For longer than a test takes: who leads no more tells nothing."""
        return super().lead(holder, **{'e1': 600000, 'e2': 900000, **more})

    def clock(self):
        return self.owner.value('SELECT clock_timestamp()')

    def since_six_seconds(self, began, got):
        """It was told, after `began`, to be so old."""
        six = timedelta(seconds=6)
        self.assertTrue(began - six <= got['since'] <= self.clock() - six, got)

    def blocked(self):
        rows = self.app.dicts('SELECT code, reason, since FROM txrelay.blocked_accounts')
        MADE.update(r['code'] for r in rows)
        return rows

    def blocked_relays(self):
        rows = self.session('follower').dicts('SELECT relay, code, reason, since '
                                              'FROM txrelay.blocked_relays')
        MADE.update(r['code'] for r in rows)
        return rows

    def waits(self, tx):
        """No transaction that is not done waits in silence."""
        got = self.app.dict('SELECT waits, stage FROM txrelay.status(%s)', tx)
        self.assertEqual(got['waits'] is None, got['stage'] == 'finished', got)
        code = got['waits'].split(': ')[0] if got['waits'] else None
        MADE.add(code)
        return got['waits']

    def idle_for(self, seconds):
        """As if its claim had run out so long ago."""
        self.owner.rows("""UPDATE txrelay.leadership
            SET expiry_1 = clock_timestamp() - %s * interval '1 s',
            expiry_2 = clock_timestamp() - %s * interval '1 s', leased = false""", seconds, seconds)

    def test_nobody_leads_a_new_account_yet(self):
        self.owner.rows("UPDATE txrelay.accounts SET created_at = clock_timestamp() + interval "
                        "'1 min'")
        tx, = self.enqueue()
        self.assertEqual(self.blocked(), [])
        self.assertRegex(self.waits(tx), '^turn: .*; no relay leads the account now$')

    def test_told_and_taken_back(self):
        epoch = self.lead()
        tx, = self.enqueue()
        self.assertEqual(self.blocked(), [])
        self.assertRegex(self.waits(tx),
                         '^turn: 0 of its account come before it.*as its window has room$')
        began = self.clock()
        self.assertEqual(self.tell(epoch, 'node', 'no endpoint is usable', 6000), 1)
        got, = self.blocked()
        self.assertEqual((got['code'], got['reason']), ('node', 'no endpoint is usable'))
        self.since_six_seconds(began, got)
        self.assertEqual(self.waits(tx), 'node: no endpoint is usable')
        self.assertEqual(self.tell(epoch, 'finality', 'it lags', 9000), 1)
        self.assertEqual([r['code'] for r in self.blocked()], ['finality'])
        self.assertEqual(self.tell(epoch, None), 1)
        self.assertEqual(self.blocked(), [])
        self.assertIn('turn: ', self.waits(tx))
        self.assertEqual(self.tell(epoch, None), 0)

    def test_each_code_of_leaders(self):
        """But those that the account's own row says."""
        epoch, (tx,) = self.pending()
        for code in reasons('OBSTACLES'):
            shown = code not in ('suspended', 'lost_commits')
            self.tell(epoch, code, f'because of {code}')
            self.assertEqual([r['code'] for r in self.blocked()], [code] * shown)
            self.assertEqual(self.waits(tx) == f'{code}: because of {code}', shown)

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
        n = self.relay.value('SELECT txrelay.leader_obstacles(%s, %s, %s, %s, %s)',
                             [self.alice] * 2, [epoch] * 2,
                             [None, 'node'], [None, 'the last one counts'], [0, -5])
        self.assertEqual((n, self.blocked()[0]['reason']), (1, 'the last one counts'))
        self.refused('TR011', self.relay.value,
                     'SELECT txrelay.leader_obstacles(%s, %s, %s, %s, %s)',
                     [1, 2], [1], ['x'], ['x'], [0], text='lengths')

    def test_texts_have_an_end(self):
        epoch = self.lead()
        self.tell(epoch, 'x' * 100, 'y' * 10000, 2 ** 62)
        row = self.owner.dict('SELECT code, detail, clock_timestamp() - since AS age '
                              'FROM txrelay.obstacles')
        self.assertEqual((len(row['code']), len(row['detail']), row['age'].days), (40, 500, 1))

    def test_nobody_leads(self):
        self.lead()
        tx, = self.enqueue()
        self.assertEqual(self.blocked(), [])

        def asked_within_five():
            self.idle_for(4)
            told = self.blocked(), self.waits(tx)
            return told if self.owner.value("SELECT clock_timestamp() - expiry_1 < '5 s' "
                                            "FROM txrelay.leadership") else None
        told = []
        wait_until(lambda: told.append(asked_within_five()) or told[-1], 'an answer in time')
        self.assertEqual(told[-1][0], [])
        self.assertIn('turn: ', told[-1][1])
        began = self.clock()
        self.idle_for(6)
        got, = self.blocked()
        self.assertEqual(got['code'], 'no_leader')
        self.assertIn('the last leader was relay-a', got['reason'])
        self.since_six_seconds(began, got)
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
        for why in ('payment', 'signing', 'reaped', 'transaction_version'):
            self.relay.rows('SELECT txrelay.leader_pause(%s, %s, %s, %s)', self.alice, epoch, why,
                            'it cannot go on')
            self.tell(epoch, 'suspended', 'it cannot go on')
            self.assertEqual([(r['code'], r['reason']) for r in self.blocked()],
                             [(why, 'it cannot go on')])

    def test_not_before(self):
        self.lead()
        tx = self.app.value("SELECT txrelay.enqueue('alice', '\\x00', not_before => "
                            "clock_timestamp() + interval '1 h')")
        self.assertIn('not_before: it is not sent before', self.waits(tx))
        self.assertEqual(self.blocked(), [])

    def test_of_an_account_that_has_sites(self):
        epoch = self.lead()
        self.relay.rows("SELECT txrelay.leader_site_setup(%s, %s, '{north,south}', ARRAY['', "
                        "'south:9944'], %s::bytea[], 0, false, false, false, "
                        "1000, 64, 0, 100, ARRAY[5, 5]::bigint[])", self.alice, epoch,
                        [h32('alice')] * 2)
        tx, = self.enqueue()
        self.assertTrue(self.waits(tx).startswith('site: '), self.waits(tx))

    def test_lost_commits(self):
        self.lead()
        tx, = self.enqueue()
        self.owner.rows('UPDATE txrelay.accounts SET reconcile_from = 1, lost_since = '
                        'clock_timestamp()')
        self.assertEqual(self.blocked()[0]['code'], 'lost_commits')
        self.assertIn('lost_commits', self.waits(tx))

    def test_a_refusal_before_what_follows_from_it(self):
        epoch, (tx,) = self.pending()
        self.relay.rows("SELECT txrelay.leader_record_status(%s, %s, '{0}', ARRAY[(SELECT hash "
                        "FROM txrelay.pending_transactions)],"
                        " '{refused}', '{NULL}', '{NULL}', '{no}')", self.alice, epoch)
        self.tell(epoch, 'head', 'nonce 0 holds up the account')
        self.assertEqual([(r['code'], r['reason']) for r in self.blocked()], [('refused', 'no')])
        self.tell(epoch, 'node', 'no endpoint is usable')
        self.assertEqual([r['code'] for r in self.blocked()], ['node'])

    def test_its_turn(self):
        """Behind how many others, by priority and then by age, and how many are under way."""
        epoch, _ = self.pending(2)
        ids = [self.enqueue()[0] for _ in range(3)]
        urgent = self.enqueue(priority=7)[0]
        for tx, before in zip(ids + [urgent], (1, 2, 3, 0)):
            self.assertIn(f'turn: {before} of its account come before it, and 2 have a nonce and '
                          'are not done', self.waits(tx))
        later, = self.enqueue(not_before='2099-01-01')
        self.assertIn('not_before: ', self.waits(later))
        self.assertIn('turn: 3 of', self.waits(ids[2]),
                      'one whose time has not come is not before it')
        self.app.rows("SELECT txrelay.enqueue_many('alice', array_fill('\\x00'::bytea, "
                      "ARRAY[1500]), priority => 9)")
        self.assertIn('turn: 1000 or more of its account', self.waits(urgent))

    def test_each_state_of_a_pending_transaction(self):
        epoch, (tx,) = self.pending()
        self.assertIn('sent: ', self.waits(tx))
        for state, code in (('future', 'sent'), ('ready', 'block'), ('broadcast', 'block'),
                            ('in_block', 'final'),
                            ('retracted', 'search'), ('dropped', 'search'), ('finalized', 'final')):
            block = h32('a block') if state in ('in_block', 'retracted', 'finalized') else None
            self.relay.rows('SELECT txrelay.leader_record_status(%s, %s, ARRAY[0], ARRAY[(SELECT '
                            'hash FROM txrelay.pending_transactions)],'
                            ' %s, %s, %s, %s)', self.alice, epoch, [state], [block],
                            [7 if block else None], [None])
            self.assertTrue(self.waits(tx).startswith(f'{code}: '), (state, self.waits(tx)))
            self.assertEqual('it is in block 7, which' in self.waits(tx), state == 'in_block')

    def test_a_lock_in_other_hands(self):
        other = self.session('app')
        other.rows('SELECT pg_advisory_lock(%s)',
                   self.owner.value('SELECT lock_key FROM txrelay.leadership'))
        self.assertEqual([r['code'] for r in self.blocked()], ['foreign_lock'])
        tx, = self.enqueue()
        self.owner.rows("UPDATE txrelay.accounts SET created_at = created_at - interval '10 s'")
        self.assertTrue(self.waits(tx).startswith('foreign_lock: nobody leads it: its lock is held '
                                                  'by backend'), self.waits(tx))
        other.rows('SELECT pg_advisory_unlock_all()')
        self.assertEqual([r['code'] for r in self.blocked()], ['no_leader'])
        self.assertTrue(self.waits(tx).startswith('no_leader: '))

    def test_presigned(self):
        self.lead()
        tx = self.app.value('SELECT txrelay.enqueue_signed(%s)', extrinsic())
        self.assertIn('turn: it was signed elsewhere', self.waits(tx))
        self.owner.rows("UPDATE txrelay.outbox_presigned SET nonce = 4, waits = 'nonce 3 is "
                        "missing', waits_since = clock_timestamp()")
        self.owner.rows('UPDATE txrelay.accounts SET next_nonce = 3')
        self.assertIn('presigned: nonce 3 is missing', self.waits(tx))
        self.assertEqual([r['code'] for r in self.blocked()], ['presigned'])

    def test_a_row_in_other_hands(self):
        self.lead()
        tx, = self.enqueue()
        other = self.session('app')
        other.begin()
        other.rows('SELECT txrelay.cancel(%s)', tx)
        self.assertIn('row_held: ', self.waits(tx))
        other.rollback()
        self.assertIn('turn: ', self.waits(tx))

    def test_what_the_lists_name(self):
        """Of a relay: told under its heartbeat, over with it, and of no other."""
        self.relay.rows("SELECT * FROM txrelay.member_heartbeat('relay-a', 'a:1', 1, 5000, false, "
                        "false, NULL)")
        # noqa: E731
        say = lambda *args: self.relay.rows('SELECT txrelay.relay_obstacle(%s, %s, %s, %s)', *args)
        say('relay-b', 'listener', 'it is refused', 6000)
        self.assertEqual(self.blocked_relays(), [], 'it has no heartbeat')
        # those are the database's
        for code in [r for r in reasons('RELAY_OBSTACLES')
                     if r not in ('queue', 'clock')] + ['node']:
            began = self.clock()
            say('relay-a', code, 'it is refused', 6000)
            got, = self.blocked_relays()
            self.assertEqual((got['relay'], got['code'], got['reason']),
                             ('relay-a', code, 'it is refused'))
            self.since_six_seconds(began, got)
        self.owner.rows("UPDATE txrelay.members SET heartbeat = heartbeat - interval '11 s'")
        self.assertEqual(self.blocked_relays(), [], 'it does not live')
        self.relay.rows("SELECT * FROM txrelay.member_heartbeat('relay-a', 'a:1', 1, 5000, false, "
                        "false, NULL)")
        self.assertEqual(len(self.blocked_relays()), 1)
        say('relay-a', None, None, 0)
        self.assertEqual(self.blocked_relays(), [])

    def test_the_queue_and_the_clock(self):
        self.assertEqual(self.blocked_relays(), [])
        self.owner.rows('UPDATE txrelay.notify_queue SET shut = true, since = clock_timestamp()')
        self.assertEqual([(r['relay'], r['code']) for r in self.blocked_relays()],
                         [(None, 'queue')])
        self.relay.value('SELECT txrelay.queue_measure()')
        self.assertEqual(self.blocked_relays(), [], 'it has room again')
        self.owner.rows("UPDATE txrelay.high_water SET clock_offset = '130 s'")
        got, = self.blocked_relays()
        self.assertEqual((got['relay'], got['code']), (None, 'clock'))
        self.assertRegex(got['reason'], r'\b1[3-9]\d s behind')
        self.owner.rows("UPDATE txrelay.high_water SET clock_offset = '4 s', reached = 'epoch'")
        self.assertEqual(self.blocked_relays(), [])

    def test_applications_do_not_write_it(self):
        for session in (self.app, self.session('follower')):
            self.refused('42501', session.value,
                         'SELECT txrelay.leader_obstacles(%s, %s, %s, %s, %s)',
                         [self.alice], [1], ['x'], ['x'], [0])


    def test_zz_each_reason_was_made(self):
        """Runs last: the tests above made each reason that the database or a relay finds
        (relay_manager_obstacle makes those of leaders), and none that obstacle.h does not list."""
        if len(MADE) < 3:
            self.skipTest('only this test was asked for')
        wanted = set(reasons('DATABASE_OBSTACLES') + reasons('TRANSACTION_OBSTACLES')
                     + reasons('RELAY_OBSTACLES'))
        self.assertGreater(len(wanted), 15)
        self.assertEqual(wanted - MADE, set())
        known = wanted | set(reasons('OBSTACLES')) | {None}
        self.assertEqual(MADE - known, set(), 'codes that obstacle.h does not list')


if __name__ == '__main__':
    unittest.main()
