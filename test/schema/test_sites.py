"""Sites: what the database of a site keeps, and the rules that it enforces. Tests are named after
the rows of the requirements."""
import threading
import unittest

import psycopg2

from pgcase import Background, Case, h32

NAMES = ['north', 'south', 'east']
NORTH, SOUTH, EAST = range(3)
ERA = 64
COLUMNS = ('kind', 'member', 'id', 'hash', 'key', 'nonce', 'birth', 'death', 'extrinsic', 'tip',
           'spec', 'version', 'outcome',
           'error', 'block', 'number', 'index', 'fee')
TYPES = ('text', 'int', 'bigint', 'bytea', 'int', 'bigint', 'bigint', 'bigint', 'bytea', 'numeric',
         'bigint', 'bigint', 'text',
         'text', 'bytea', 'bigint', 'int', 'numeric')
STORE = ('SELECT txrelay.leader_site_store(%s, %s, ' + ', '.join(f'%s::{t}[]' for t in TYPES)
         + ', %s::bigint[])')


class Sites(Case):
    """alice at north, whose final block is 100; all sites have one key, whose next nonce is 5."""
    own_keys = False

    def setUp(self):
        super().setUp()
        self.begin()

    def begin(self):
        self.epoch = self.lead()
        self.final, self.next = 100, [5, 5, 5]
        self.keys = [h32('alice') if i == NORTH or not self.own_keys else h32(f'key of {n}')
                     for i, n in enumerate(NAMES)]
        self.setup_sites()

    def refused(self, sqlstate, call, *args, text=(), **named):
        return super().refused(sqlstate, lambda: call(*args, **named), text=text)

    def setup_sites(self, **changed):
        v = dict(names=NAMES, addresses=['', 'south:9944', 'east:9944'], keys=self.keys, me=NORTH,
                 own=self.own_keys, sticky=False,
                 down=False, range=1000, era=ERA, approvals=0, final=self.final, next=self.next)
        v.update(changed)
        return self.relay.rows('SELECT txrelay.leader_site_setup(%s, %s, %s::text[], %s::text[], '
                               '%s::bytea[], %s, %s, %s, %s, %s, %s, %s, '
                               '%s, %s::bigint[])', self.alice, self.epoch, *v.values())

    def write(self, *writes, next=None, epoch=None, session=None):
        columns = [[w.get(c, {'member': -1, 'id': 0}.get(c)) for w in writes] for c in COLUMNS]
        return (session or self.relay).rows(STORE, self.alice,
                                            self.epoch if epoch is None else epoch, *columns,
                                            next or [])

    def bytes_of(self, tx, nonce=5, key=0, death=None, tag=''):
        name = h32(f'{tx} {nonce} {key} {tag}')
        return dict(id=tx, hash=name, key=key, nonce=nonce, death=death or self.final + 32,
                    extrinsic=b'\x84' + name, birth=self.final,
                    spec=7, version=3, tip=2)

    def grant(self, tx, nonce=5, member=SOUTH, **kwargs):
        bytes_ = self.bytes_of(tx, nonce, **kwargs)
        self.write(dict(bytes_, kind='grant', member=member))
        return bytes_

    def read_final(self, *writes, next=None, **kwargs):
        self.final += 1
        self.next = next or self.next
        self.write(*writes, dict(kind='final', number=self.final), next=self.next, **kwargs)

    def included(self, bytes_, outcome='ok', **more):
        return dict(dict(bytes_, kind='end', outcome=outcome, block=h32(f'block {self.final + 1}'),
                         number=self.final + 1, index=2, fee=125),
                    **more)

    def load(self, epoch=None):
        rows = self.relay.dicts('SELECT * FROM txrelay.leader_site_load(%s, %s)', self.alice,
                                epoch or self.epoch)
        return {k: [r for r in rows if r['kind'] == k]
                for k in ('key', 'tx', 'grant', 'dispatch')}, rows[0]

    def poll(self, limit=100, known=()):
        return self.relay.dicts('SELECT * FROM txrelay.leader_site_rows(%s, %s, %s, %s::bigint[])',
                                self.alice, self.epoch, limit, list(known))

    def waiting(self):
        return [r['id'] for r in self.poll() if r['kind'] == 'row']

    def successor(self):
        """Another relay leads; the former one is gone."""
        self.relay.rows('SELECT txrelay.leader_release(%s, %s, %s)', self.alice,
                        self.account()['epoch'], self.account()['holder'])
        return self.lead('another relay')

    def lose_commits(self):
        """As a claim on another timeline notes it."""
        self.owner.rows('UPDATE txrelay.leadership SET timeline = timeline - 1')
        self.epoch = self.lead()


class Kept(Sites):
    """What is on record at each point at which a relay may die."""

    def test_a_restart_reads_what_is_granted_and_polls_the_rest(self):
        first, second, third = self.enqueue(3)
        a, b = self.grant(first, 5), self.grant(second, 6, member=EAST)
        self.write(dict(a, kind='grant', member=SOUTH))  # the same grant twice is one (P94)
        load, head = self.load(self.successor())
        self.assertEqual((head['final'], head['wait_until'], head['lost']), (100, 0, False))
        self.assertEqual([(r['member'], r['nonce']) for r in load['key']], [(0, 5), (1, 5), (2, 5)])
        self.assertEqual([(r['id'], r['call'], r['stop']) for r in load['tx']],
                         [(first, b'\0\1', False), (second, b'\0\1', False)])
        self.assertEqual([(r['id'], r['hash'], r['site_key'], r['nonce'], r['era_death'],
                           r['extrinsic'], r['member']) for r in load['grant']],
                         [(first, a['hash'], 0, 5, 132, a['extrinsic'], SOUTH),
                          (second, b['hash'], 0, 6, 132, b['extrinsic'], EAST)])
        self.epoch = self.account()['epoch']
        self.assertEqual(self.waiting(), [third])

    def test_before_the_commit_of_the_grant_nothing_is_there(self):
        tx, = self.enqueue()
        self.relay.begin()
        self.grant(tx)
        self.relay.rollback()
        load, _ = self.load()
        self.assertEqual((load['tx'], self.waiting(), self.count('attempts')), ([], [tx], 0))

    def test_after_it_the_sender_has_the_bytes(self):
        tx, = self.enqueue()
        g = self.grant(tx)
        load, _ = self.load()
        self.assertEqual([r['extrinsic'] for r in load['grant']], [g['extrinsic']])
        self.assertEqual(self.waiting(), [])

    def test_after_the_notice_of_the_dispatch_it_is_on_record(self):
        tx, = self.enqueue()
        g = self.grant(tx)
        for _ in range(2):  # a repeated notice is harmless
            self.write(dict(kind='noted', member=SOUTH, id=tx, hash=g['hash']))
        self.assertEqual(self.status(tx)['state'], 'broadcast')
        self.assertIsNotNone(self.attempts(5)[0]['noted_at'])
        self.assertEqual(self.attempts(5)[0]['coordinator'], SOUTH)
        self.read_final(self.included(g), next=[6, 6, 6])
        # nor one that comes late
        self.write(dict(kind='noted', member=SOUTH, id=tx, hash=g['hash']))
        self.assertEqual(self.status(tx)['outcome'], 'ok')

    def test_the_coordinator_has_what_it_dispatched_and_nothing_else(self):
        self.assertEqual(self.load()[0]['dispatch'], [])  # 1C: as if it had never been delegated
        theirs = dict(self.bytes_of(77, 5), kind='dispatch', member=SOUTH)
        filler = dict(self.bytes_of(-2**63 + 6, 6), kind='dispatch', member=NORTH)
        self.write(theirs, filler)
        self.write(theirs)
        tx, = self.enqueue()
        own = self.grant(tx, 7, member=NORTH)
        self.write(dict(own, kind='dispatch', member=NORTH, extrinsic=None))
        load, _ = self.load(self.successor())  # 2C: the successor sends these
        self.assertEqual([(r['member'], r['id'], r['nonce'], r['extrinsic'])
                          for r in load['dispatch']],
                         sorted([(NORTH, -2**63 + 6, 6, filler['extrinsic']),
                                 (NORTH, tx, 7, own['extrinsic']),
                                 (SOUTH, 77, 5, theirs['extrinsic'])], key=lambda row: row[1]))
        self.epoch = self.account()['epoch']
        self.write(*(dict(kind='drop', hash=d['hash']) for d in (theirs, filler, own, own)))
        self.assertEqual(self.count('site_dispatches'), 0)

    def test_two_transactions_may_have_bytes_at_one_nonce(self):
        """Of two coordinators: the chain takes one, and the other goes back to its line (P45,
        P47)."""
        first, second = self.enqueue(2)
        a, b = self.grant(first, 5, member=SOUTH), self.grant(second, 5, member=EAST)
        self.assertEqual([x['number'] for x in self.attempts(5)], [1, 2])
        self.assertEqual([r['hash'] for r in self.load()[0]['grant']], [a['hash'], b['hash']])
        self.read_final(self.included(b), next=[6, 6, 6])
        self.assertEqual((self.status(second)['outcome'], self.status(second)['coordinator']),
                         ('ok', 'east'))
        self.assertEqual((self.status(first)['stage'], self.waiting()), ('outbox', [first]))
        self.grant(first, 6)
        self.assertEqual([(h['nonce'], h['outcome']) for h in self.history(first)],
                         [(5, 'usurped'), (6, 'live')])

    def test_a_failed_batch_changes_nothing(self):
        first, second = self.enqueue(2)
        self.refused('TR002', self.write, dict(self.bytes_of(first), kind='grant', member=SOUTH),
                     dict(self.bytes_of(second + 1, 6), kind='grant', member=SOUTH),
                     text='1 of 2 rows')
        self.assertEqual((self.count('outbox'), self.count('site_transactions'),
                          self.count('attempts')), (2, 0, 0))

    def test_a_load_waits_for_writers_and_keeps_no_lock(self):
        tx, = self.enqueue()
        writer, other = self.session('relay'), self.session('installer')
        writer.begin()
        self.write(dict(self.bytes_of(tx), kind='grant', member=SOUTH), session=writer)
        late = self.overlap(self.relay, self.load)
        writer.commit()
        self.assertEqual([r['id'] for r in late.join()[0]['tx']], [tx])
        self.relay.begin()
        self.load()
        other.rows('SELECT FROM txrelay.leadership WHERE subject = %s FOR UPDATE NOWAIT',
                   self.alice)
        self.relay.commit()

    def test_the_highest_block_is_that_of_any_relay_at_any_time(self):
        self.assertEqual(self.load()[1]['highest'], 0)
        claim = ("SELECT renewed FROM txrelay.leader_renew('relay-a', ARRAY[%s], "
                 "ARRAY[%s::bigint], 3000, 9000, p_block => 140)")
        self.assertEqual(self.relay.value(claim, self.alice, self.epoch), True)
        self.assertEqual(self.load()[1]['highest'], 140)  # of the claim
        self.owner.rows('UPDATE txrelay.accounts SET used_block = 150')
        self.assertEqual(self.load()[1]['highest'], 150)
        self.owner.rows('UPDATE txrelay.accounts SET seen_block = 160')
        self.assertEqual(self.load()[1]['highest'], 160)

    def test_an_old_epoch_writes_nothing(self):
        tx, = self.enqueue()
        old = self.epoch
        self.epoch = self.successor()
        for call in (lambda: self.write(dict(self.bytes_of(tx), kind='grant', member=SOUTH),
                                        epoch=old),
                     lambda: self.relay.rows('SELECT * FROM txrelay.leader_site_load(%s, %s)',
                                             self.alice, old),
                     lambda: self.relay.rows(
                         "SELECT txrelay.leader_site_note(%s, %s, 'ACTIVE', 0, 1, 'x', 0)",
                         self.alice, old)):
            self.refused('TR001', call, text='stale epoch')


class Rules(Sites):
    """What a relay with a fault cannot store."""

    def test_s_i5_other_bytes_wait_until_the_first_are_dead_by_the_final_chain(self):
        tx, = self.enqueue()
        self.grant(tx, 5, death=102)
        self.grant(tx, 5, tag='newer')  # the same place: at once
        for nonce in (4, 6):
            self.refused('TR003', self.grant, tx, nonce, tag='x')
        self.read_final()
        self.refused('TR003', self.grant, tx, 6,
                     text=('nonce 5 that can still be included', 'others at 6'))
        self.final = 131
        self.owner.rows('UPDATE txrelay.site_accounts SET final = 131')
        self.read_final()  # 132: the newer ones die
        self.assertEqual(self.status(tx)['stage'], 'outbox')
        self.grant(tx, 6)
        self.assertEqual([h['outcome'] for h in self.history(tx)], ['replaced', 'dropped', 'live'])

    def test_s_i5_a_used_nonce_is_death_too(self):
        tx, = self.enqueue()
        self.grant(tx, 5)
        self.read_final(next=[6, 6, 6])
        self.assertEqual((self.status(tx)['stage'], self.waiting()), ('outbox', [tx]))
        record = self.owner.dict('SELECT * FROM txrelay.finished_transactions')
        self.assertEqual((record['id'], record['requeued'], record['nonce'], record['outcome'],
                          record['coordinator']),
                         (None, tx, 5, 'usurped', 'south'))
        self.grant(tx, 6)

    def test_the_same_nonce_of_another_key_is_another_place(self):
        self.owner.rows('UPDATE txrelay.site_peers SET next_nonce = 5')
        tx, = self.enqueue()
        self.grant(tx, 5, key=1)
        self.refused('TR003', self.grant, tx, 5, key=2)

    def test_bytes_that_are_dead_or_live_too_long_are_not_granted(self):
        tx, = self.enqueue()
        for wrong in (dict(death=100), dict(death=101 + ERA), dict(death=2**62), dict(nonce=4),
                      dict(nonce=-1)):
            bad = dict(self.bytes_of(tx), kind='grant', member=SOUTH, **wrong)
            self.refused('TR003', self.write, bad, text='cannot be granted')
        for wrong in (dict(death=None), dict(extrinsic=None), dict(extrinsic=b''), dict(hash=None),
                      dict(hash=b'x'), dict(key=None),
                      dict(key=7), dict(member=None), dict(member=-1)):
            bad = dict(dict(self.bytes_of(tx), kind='grant', member=SOUTH), **wrong)
            self.refused('TR003', self.write, bad, text='cannot be granted')
        self.grant(tx, death=100 + ERA)

    def test_s_i3_own_bytes_are_dispatched_when_they_are_granted(self):
        tx, = self.enqueue()
        own = dict(self.bytes_of(tx), kind='dispatch', member=NORTH)
        self.refused('TR003', self.write, own, text='before they are granted')
        self.write(dict(own, kind='grant', member=NORTH))
        self.refused('TR003', self.write, dict(own, hash=h32('other')))
        self.write(own)
        self.refused('TR003', self.write, dict(self.bytes_of(9, 8), kind='dispatch', member=SOUTH,
                                               extrinsic=None))

    def test_a_transaction_with_live_bytes_is_not_stopped(self):
        tx, other = self.enqueue(2)
        self.grant(tx)
        for outcome in ('cancelled', 'expired', 'failed'):
            self.refused('TR003', self.write, dict(kind='end', id=tx, outcome=outcome, error='x'),
                         text='can still be included')
        self.refused('TR003', self.write, dict(kind='end', id=other, outcome='ok', error='x'))
        # this block has killed them
        self.read_final(dict(kind='end', id=tx, outcome='cancelled', error='x'), next=[6, 6, 6])
        self.assertEqual(self.status(tx)['outcome'], 'cancelled')

    def test_one_end_by_a_final_block(self):
        tx, = self.enqueue()
        g = self.grant(tx)
        self.refused('TR002', self.write, self.included(dict(g, hash=h32('other'), extrinsic=None)))
        self.refused('TR011', self.write, self.included(g, outcome='cancelled'))
        self.read_final(self.included(g), next=[6, 6, 6])
        self.refused('TR002', self.write, self.included(g))
        end = self.finished(5)
        self.assertEqual((end['id'], end['outcome'], end['block_number'], end['extrinsic_index'],
                          end['fee'], end['hash'], end['state']),
                         (tx, 'ok', 101, 2, 125, g['hash'], 'finalized'))

    def test_every_final_block_is_read(self):
        for number in (100, 102, None):
            self.refused('TR003', self.write, dict(kind='final', number=number), next=self.next)
        for next_ in ([5, 5], [5, 5, None], []):
            self.refused('TR003', self.write, dict(kind='final', number=101), next=next_)
        self.refused('TR011', self.write, dict(kind='sleep'), text='"sleep"')

    def test_an_account_is_the_managers_or_the_sites(self):
        """Every fenced function of leaders refuses the accounts of the other kind, before anything
        else."""
        both = {'leader_cleanup', 'leader_feed_take', 'leader_pause', 'leader_site_setup'}
        bob = self.register(self.relay, 'bob', 43)
        other = self.claim(self.relay, account=bob)['epoch']
        functions = self.owner.rows("""SELECT p.proname, p.pronargs FROM pg_proc p
            WHERE p.pronamespace = 'txrelay'::regnamespace
            AND p.prosrc ~ 'fence\\(.*p_account, p_epoch' AND p.proname LIKE 'leader%%'
            ORDER BY 1""")
        self.assertGreater(len(functions), 18)
        for name, count in functions:
            with self.subTest(name):
                ours = 'site' in name
                account, epoch = (bob, other) if ours else (self.alice, self.epoch)
                call = f"SELECT txrelay.{name}({', '.join(['%s', '%s'] + ['NULL'] * (count - 2))})"
                if name in both:
                    self.refused('TR011', self.relay.rows, call, account,
                                 epoch) if name != 'leader_pause' else self.relay.rows(
                                     call, account, epoch)
                else:
                    self.refused('TR003', self.relay.rows, call, account, epoch,
                                 text='has no sites' if ours else 'alice has sites')


class Lost(Sites):
    """Commits are lost: nothing is granted or ended before every block up to the wait's was read,
    and the wait is a row."""

    def test_the_wait_is_a_row_and_a_successor_goes_on_with_it(self):
        first, second = self.enqueue(2)
        self.relay.rows("SELECT txrelay.member_heartbeat('relay-b', 'b:1', 1, 1000, p_best => 140)")
        self.lose_commits()
        _, head = self.load()
        self.assertEqual((head['lost'], head['wait_until'], head['highest']), (True, 0, 140))
        for write in (dict(self.bytes_of(first), kind='grant', member=SOUTH),
                      dict(kind='end', id=first, outcome='cancelled', error='x')):
            self.refused('TR003', self.write, write, text='not reconciled')
        self.write(dict(kind='wait', number=103))
        self.write(dict(kind='wait', number=102))  # a later word only moves it on
        self.epoch = self.successor()
        _, head = self.load()
        self.assertEqual((head['lost'], head['wait_until']), (False, 103))
        for _ in range(2):
            self.read_final()
            self.refused('TR003', self.grant, first, text='not reconciled')
        adopted = self.bytes_of(second, 5)
        self.read_final(self.included(adopted), next=[6, 6, 6])  # a block shows that it was sent
        self.assertEqual((self.status(second)['outcome'], self.status(second)['hash']),
                         ('ok', '0x' + adopted['hash'].hex()))
        self.assertIsNone(self.account()['reconcile_from'])
        self.grant(first, 6)

    def test_a_second_loss_begins_a_second_wait(self):
        self.lose_commits()
        self.write(dict(kind='wait', number=101))
        self.lose_commits()
        self.assertTrue(self.load()[1]['lost'])
        self.read_final()
        self.assertIsNotNone(self.account()['reconcile_from'])
        self.write(dict(kind='wait', number=102))
        self.read_final()
        self.assertIsNone(self.account()['reconcile_from'])

    def test_whose_call_it_is(self):
        one, = self.enqueue(call=b'\1\1')
        two, three = self.enqueue(2, call=b'\2\2')
        self.grant(two)
        now = self.owner.value('SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint')

        def match(*calls, at=now):
            return self.relay.rows('SELECT * FROM txrelay.leader_site_match(%s, %s, %s::bytea[], '
                                   '%s::bigint[])', self.alice, self.epoch,
                                   list(calls), [at] * len(calls))
        self.assertEqual(match(b'\2\2', b'\3\3', b'\1\1'), [(two, 2), (0, 0), (one, 1)])
        self.owner.rows("""INSERT INTO txrelay.site_transactions SELECT (jsonb_populate_record(t,
            '{"id": 9999, "account": 9}')).* FROM txrelay.site_transactions t""")
        # equal calls of another account are not counted
        self.assertEqual(match(b'\2\2'), [(two, 2)])
        self.assertEqual(match(b'\1\1', at=now - 3600000), [(0, 0)])
        self.assertEqual(match(b'\1\1', at=None), [(one, 1)])
        self.assertEqual(match(), [])

    def test_cancel_waits_for_the_leader(self):
        tx, = self.enqueue()
        self.lose_commits()
        self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', tx), 'requested')


class Seen(Sites):
    """An application does not know that there are sites."""

    def test_enqueue_and_every_status_read_as_those_of_a_local_one(self):
        listener = self.listen('pending_tx_new', 'pending_tx_update', 'pending_tx_removed')
        tx, = self.enqueue(creator='shop', key='k')
        self.assertEqual(self.enqueue(creator='shop', key='k'), [tx])
        self.assertEqual((self.status(tx)['stage'], self.status(tx)['state']), ('outbox', 'queued'))
        self.assertIn('no site coordinates', self.status(tx)['waits'])
        self.relay.rows("SELECT txrelay.leader_site_note(%s, %s, 'OBSERVING', 1, 90, 'its "
                        "range', 0)", self.alice, self.epoch)
        self.assertIn('south coordinates the account since block 90', self.status(tx)['waits'])
        g = self.grant(tx)
        row = self.status(tx)
        self.assertEqual((row['stage'], row['state'], row['nonce'], row['hash'], row['attempts'],
                          row['tip'], row['coordinator'], row['creator']),
                         ('pending', 'signed', 5, '0x' + g['hash'].hex(), 1, 2, 'south', 'shop'))
        self.assertEqual(self.app.rows("SELECT stage, state, count FROM txrelay.counts('alice')"),
                         [('pending', 'signed', 1)])
        self.assertEqual(
            self.owner.rows('SELECT id, nonce, state::text FROM txrelay.follow_pending'),
            [(tx, 5, 'signed')])
        by_hash = self.app.dict('SELECT * FROM txrelay.status(hash => %s)', '0x' + g['hash'].hex())
        self.assertEqual(by_hash['id'], tx)
        self.write(dict(kind='noted', member=SOUTH, id=tx, hash=g['hash']))
        self.write(dict(kind='state', id=tx, hash=g['hash'], outcome='in_block', block=h32('b'),
                        number=101))
        self.assertEqual((self.status(tx)['state'], self.status(tx)['block_number']),
                         ('in_block', 101))
        self.assertIn('which is not final yet', self.status(tx)['waits'])
        self.read_final(self.included(g), next=[6, 6, 6])
        row = self.status(tx)
        self.assertEqual((row['stage'], row['outcome'], row['state'], row['block_number'],
                          row['coordinator'], row['fee'], row['waits']),
                         ('finished', 'ok', 'finalized', 101, 'south', 125, None))
        self.assertEqual([(h['nonce'], h['outcome'], h['state']) for h in self.history(tx)],
                         [(5, 'included', 'finalized')])
        heard = self.heard(listener)
        self.assertEqual([c for c, _ in heard], ['pending_tx_new'] + ['pending_tx_update'] * 3
                         + ['pending_tx_removed'])
        for state, (_, text) in zip(('signed', 'broadcast', 'in_block', 'finalized'), heard):
            self.assertIn(f'"state":"{state}"', text)
        self.assertIn('"outcome":"ok"', heard[-1][1])

    def test_what_this_site_dispatches_itself_is_broadcast(self):
        tx, = self.enqueue()
        listener = self.listen('pending_tx_update')
        own = self.bytes_of(tx)
        self.write(dict(own, kind='grant', member=NORTH),
                   dict(own, kind='dispatch', member=NORTH, extrinsic=None))
        self.assertEqual(self.status(tx)['state'], 'broadcast')
        self.assertIsNotNone(self.attempts(5)[0]['noted_at'])
        (_, text), = self.heard(listener)
        self.assertIn('"state":"broadcast"', text)

    def test_blocks_that_are_left_stay_in_the_history(self):
        tx, = self.enqueue()
        g = self.grant(tx)

        def says(outcome, block, number):
            self.write(dict(kind='state', id=tx, hash=g['hash'], outcome=outcome, block=h32(block),
                            number=number))
        says('in_block', 'b', 101)
        says('in_block', 'b', 101)
        says('retracted', 'b', 101)
        says('retracted', 'b', 101)
        self.assertEqual((self.status(tx)['state'], self.status(tx)['block_number']),
                         ('retracted', 101))
        says('in_block', 'c', 102)
        says('in_block', 'd', 102)  # a fork, of which nothing else was said
        self.read_final(self.included(g), next=[6, 6, 6])
        left = [f'block 0x{h32(block).hex()} was retracted' for block in 'bc']
        self.assertEqual([(h['state'], h['error'], h['error_count']) for h in self.history(tx)],
                         [('finalized', text, 1) for text in left])

    def test_refusals_of_nodes_stay_in_the_history(self):
        tx, = self.enqueue()
        g = self.grant(tx)
        said = dict(kind='state', id=tx, hash=g['hash'], outcome='refused')
        self.write(dict(said, error='Unactionable'), dict(said, error='Unactionable'))
        self.write(dict(said, error='Priority is too low'))
        # Of bytes that it was not granted, or of another's, nothing is known here.
        self.write(dict(said, hash=h32('other'), error='no'), dict(said, id=tx + 1, error='no'))
        row = self.status(tx)
        self.assertEqual((row['stage'], row['state']), ('pending', 'signed'))
        self.assertEqual([(h['error'], h['error_count']) for h in self.history(tx)],
                         [('Unactionable', 2), ('Priority is too low', 1)])
        self.assertEqual(self.attempts(5)[0]['error'], 'Priority is too low')
        with self.assertRaisesRegex(psycopg2.Error, 'a refusal without its error'):
            self.write(said)
        self.read_final(self.included(g), next=[6, 6, 6])
        self.write(dict(said, error='late'))  # it has ended
        self.assertEqual([h['error'] for h in self.history(tx)],
                         ['Unactionable', 'Priority is too low'])

    def test_what_is_noted_is_found_by_its_hash(self):
        """Not by a walk through every attempt of the account, which made the sender's store
        quadratic."""
        read = ("SELECT sum(pg_stat_get_xact_tuples_returned(i.indexrelid))::int FROM pg_index i "
                "WHERE i.indrelid = 'txrelay.attempts'::regclass")
        ids = self.app.value("SELECT txrelay.enqueue_many('alice', array_fill('\\x0001'::bytea, "
                             "ARRAY[1000]))")
        given = [self.bytes_of(tx, 5 + i) for i, tx in enumerate(ids)]
        self.write(*(dict(g, kind='grant', member=SOUTH) for g in given))
        self.relay.begin()
        before = self.relay.value(read)
        self.write(*(dict(kind='noted', member=SOUTH, id=g['id'], hash=g['hash'])
                     for g in given[:50]))
        self.assertLess(self.relay.value(read) - before, 500)
        self.relay.commit()
        self.assertEqual(self.owner.value('SELECT count(*) FROM txrelay.attempts '
                                          'WHERE noted_at IS NOT NULL'), 50)

    def test_a_state_that_nobody_reports_is_refused(self):
        tx, = self.enqueue()
        g = self.grant(tx)
        for outcome in (None, 'signed'):
            self.refused('TR011', self.write, dict(kind='state', id=tx, hash=g['hash'],
                                                   outcome=outcome, block=h32('b'), number=101))

    def test_the_block_says_which_of_two_bytes_it_was(self):
        """Newer ones at the same nonce are on record, and the chain took the first."""
        tx, = self.enqueue()
        first = self.bytes_of(tx, tag='first')
        self.write(dict(first, kind='grant', member=SOUTH, tip=None))
        self.grant(tx, tag='second')
        self.read_final(self.included(first), next=[6, 6, 6])
        self.assertEqual(self.status(tx)['hash'], '0x' + first['hash'].hex())
        self.assertEqual([(x['outcome'], x['tip'], x['ended_at'] is None)
                          for x in self.attempts(5)],
                         [('included', 0, False), ('superseded', 2, False)])

    def test_what_was_said_of_earlier_bytes_stays_on_record(self):
        tx, = self.enqueue()
        first, second = self.bytes_of(tx, tag='first'), self.bytes_of(tx, tag='second')
        self.write(dict(first, kind='grant', member=SOUTH))
        self.write(dict(kind='state', id=tx, hash=first['hash'], outcome='dropped',
                        error='the pool was full'))
        self.write(dict(second, kind='grant', member=SOUTH))
        self.assertEqual([(x['state'], x['error']) for x in self.attempts(5)],
                         [('dropped', 'the pool was full'), (None, None)])
        self.read_final(self.included(first), next=[6, 6, 6])
        self.assertEqual([(x['outcome'], x['error']) for x in self.attempts(5)],
                         [('included', 'the pool was full'), ('superseded', None)])

    def test_a_lost_nonce_is_told_as_a_removal_without_an_outcome(self):
        tx, = self.enqueue()
        self.grant(tx)
        # it is in no state to be told
        listener = self.listen('pending_tx_update', 'pending_tx_removed')
        self.read_final(next=[6, 6, 6])
        (_, text), = self.heard(listener)
        self.assertNotIn('outcome', text)

    def test_a_dispatch_error_takes_a_retry_and_then_ends(self):
        tx, = self.enqueue(retries=1)
        self.read_final(self.included(self.grant(tx), outcome='dispatch_error', error='Module: x'),
                        next=[6, 6, 6])
        self.assertEqual((self.status(tx)['stage'], self.waiting()), ('outbox', [tx]))
        self.read_final(self.included(self.grant(tx, 6), outcome='dispatch_error',
                                      error='Module: x'), next=[7, 7, 7])
        row = self.status(tx)
        self.assertEqual((row['outcome'], row['error'], row['attempts']),
                         ('dispatch_error', 'Module: x', 2))
        self.assertEqual(self.owner.value('SELECT call FROM txrelay.finished_transactions '
                                          'WHERE id = %s', tx), b'\0\1')
        self.assertGreater(self.app.value('SELECT txrelay.retry(%s)', tx), tx)

    def test_cancel_and_deadline_are_asked_of_the_leader(self):
        waiting, granted, late = self.enqueue(3)
        self.owner.rows("UPDATE txrelay.outbox SET deadline = clock_timestamp() - interval '1 s' "
                        "WHERE id = %s", late)
        self.grant(granted)
        ear = self.listen('outbox_wake')
        for x in (waiting, granted):
            self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', x), 'requested')
            self.assertEqual(self.heard(ear), [('outbox_wake', str(self.alice))])
        stops = {r['id']: (r['outcome'], r['error']) for r in self.poll(known=[waiting])
                 if r['kind'] == 'stop'}
        self.assertEqual(stops, {waiting: ('cancelled', 'cancelled by app'),
                                 granted: ('cancelled', 'cancelled by app'),
                                 late: ('expired', stops[late][1])})
        self.assertIn('the deadline', stops[late][1])
        self.assertEqual([r['stop'] for r in self.load()[0]['tx']], [True])
        self.write(*(dict(kind='end', id=x, outcome=stops[x][0], error=stops[x][1])
                     for x in (waiting, late)))
        self.assertEqual([self.status(x)['outcome'] for x in (waiting, late)],
                         ['cancelled', 'expired'])
        self.assertEqual([r['id'] for r in self.poll() if r['kind']], [granted])
        self.owner.rows('INSERT INTO txrelay.cancellations (id, account, asked_by) '
                        'VALUES (%s, %s, %s)', waiting, self.alice, 'app')
        self.poll()  # one that came after the end
        self.assertEqual(self.owner.rows('SELECT id FROM txrelay.cancellations'), [(granted,)])

    def test_cancel_and_bump_of_granted_ones_belong_to_who_enqueued(self):
        tx, = self.enqueue(creator='bank')
        self.owner.rows("UPDATE txrelay.outbox SET role = 'bank'")
        self.policy(tip_cap=100)
        self.grant(tx)
        for sql in ('SELECT txrelay.cancel(%s)', 'SELECT txrelay.bump(%s, 5)'):
            self.refused('42501', self.app.rows, sql, tx, text='belongs to bank')
        self.assertEqual(self.owner.value('SELECT txrelay.bump(%s, 5)', tx), 'queued')
        self.assertEqual(self.owner.value('SELECT txrelay.bump(%s)', tx), 'queued')
        self.assertEqual(self.load()[0]['tx'][0]['tip'], 6)
        waiting, = self.enqueue()
        self.assertEqual(self.app.value('SELECT txrelay.bump(%s, 9)', waiting), 'queued')
        self.assertEqual([r['tip'] for r in self.poll() if r['id'] == waiting], [9])
        self.assertEqual(self.owner.value('SELECT txrelay.cancel(%s)', tx), 'requested')

    def test_the_next_bytes_pay_the_tip_of_row_policy_and_bump_within_both_bounds(self):
        def tips():
            return [r['tip'] for r in self.poll() if r['kind'] == 'row']
        self.policy(tip_cap=50)
        plain, = self.enqueue()
        self.enqueue(tip=7)
        self.enqueue(max_tip=2)
        self.assertEqual(tips(), [0, 7, 0])
        self.policy(tip_start=3)
        self.assertEqual(tips(), [3, 7, 2])
        self.app.rows('SELECT txrelay.bump(%s, 5)', plain)
        self.assertEqual(tips(), [5, 7, 2])
        self.policy(tip_cap=4)
        self.assertEqual(tips(), [4, 4, 2])
        self.grant(plain)
        self.assertEqual([r['tip'] for r in self.load()[0]['tx']], [4])

    def test_a_bump_reaches_what_the_leader_has_already(self):
        """The bytes that are alive pay what they pay, and the next ones pay the bump, at this
        relay too."""
        waiting, granted, plain = self.enqueue(3)
        self.policy(tip_cap=50)
        self.grant(granted)
        known = [waiting, granted, plain]
        self.assertEqual([r['kind'] for r in self.poll(known=known)], [None])
        for tx in (waiting, granted):
            self.app.rows('SELECT txrelay.bump(%s, 9)', tx)
        self.assertEqual({(r['kind'], r['id'], r['tip'], r['call'])
                          for r in self.poll(known=known)},
                         {('row', waiting, 9, b'\0\1'), ('row', granted, 9, b'\0\1')})
        # a load gives what is granted
        self.assertEqual(sorted(r['id'] for r in self.poll(known=[plain])), [waiting])

    def test_a_sweep_names_the_deadline_of_what_is_granted(self):
        """A quiet account is asked for nothing else."""
        def due():
            return self.relay.rows('SELECT has_requests, has_rows, next_ms > 0 '
                                   'FROM txrelay.leader_due(ARRAY[%s], ARRAY[%s::bigint], '
                                   'ARRAY[NULL::bigint], 10000)', self.alice, self.epoch)
        tx, = self.enqueue(deadline='2099-01-01')
        self.grant(tx)
        self.assertEqual(due(), [])
        for seconds, said in ((5, (False, False, True)), (-1, (True, False, None))):
            self.owner.rows("UPDATE txrelay.site_transactions "
                            "SET deadline = clock_timestamp() + %s * interval '1 s'", seconds)
            self.assertEqual(due(), [said])

    def test_the_poll_gives_what_is_new_in_order(self):
        first, second, third = self.enqueue(3)
        urgent, = self.enqueue(priority=5)
        later, = self.enqueue(not_before='2100-01-01Z')
        rows = self.poll(limit=2)
        self.assertEqual([r['id'] for r in rows], [urgent, first])
        self.assertGreater(rows[0]['next_ms'], 10**9)
        self.enqueue(not_before='2090-01-01Z')
        until = self.poll()[0]['next_ms']
        self.assertLess(until, rows[0]['next_ms'])  # until the first of both
        self.enqueue(deadline='2095-01-01Z', not_before='2094-01-01Z')
        self.assertLessEqual(self.poll()[0]['next_ms'], until)
        self.assertEqual([r['id'] for r in self.poll(limit=2, known=[urgent, first])],
                         [second, third])
        self.assertEqual([(r['kind'], r['paused'])
                          for r in self.poll(known=[urgent, first, second, third])],
                          [(None, False)])
        self.relay.rows("SELECT txrelay.account_pause('alice', 'x')")
        self.assertEqual([(r['kind'], r['paused']) for r in self.poll()], [(None, True)])
        self.assertEqual(self.status(later)['stage'], 'outbox')

    def test_no_open_transaction_of_an_application_stops_a_grant(self):
        first, second = self.enqueue(2)
        self.policy(tip_cap=100)
        other = self.session('app')
        for tx, held in ((first, ('bump(%s, 5)', 'cancel(%s)')), (second, ('bump(%s, 5)',))):
            other.begin()
            for call in held:
                other.rows(f'SELECT txrelay.{call}', tx)
            g = self.grant(tx, 5 if tx == first else 6)
            self.write(dict(kind='noted', member=SOUTH, id=tx, hash=g['hash']))
            other.commit()
        self.assertEqual({r['id']: r['stop'] for r in self.load()[0]['tx']},
                         {first: True, second: False})
        other.begin()
        other.rows('SELECT txrelay.bump(%s, 6)', second)
        self.read_final(self.included(g), next=[7, 7, 7])
        other.commit()
        self.assertEqual(self.status(second)['outcome'], 'ok')
        self.poll()
        self.assertEqual(self.owner.rows('SELECT id FROM txrelay.bumps'), [(first,)])

    def test_presigned_ones_are_refused(self):
        body = b'\x84\0' + h32('alice') + b'\1' + bytes(68)
        self.refused('TR011', self.app.rows, 'SELECT txrelay.enqueue_signed(%s)',
                     bytes([len(body) << 2 & 255 | 1, len(body) >> 6]) + body,
                     text=('alice, which has sites', 'Use enqueue'))

    def test_retention_keeps_what_has_not_ended(self):
        tx, = self.enqueue(key='k')
        self.grant(tx)
        self.owner.rows("UPDATE txrelay.idempotency_keys SET created_at = created_at - interval "
                        "'9 days'")
        self.owner.rows("UPDATE txrelay.attempts SET created_at = created_at - interval '9 days'")
        self.relay.rows("SELECT txrelay.leader_cleanup(%s, %s, interval '1 day')", self.alice,
                        self.epoch)
        self.assertEqual((self.count('idempotency_keys'), self.count('attempts')), (1, 1))
        self.assertEqual(self.owner.value('SELECT txrelay.highest_id()'), tx)

    def test_concurrent_leaders_write_in_turn(self):
        ids = self.enqueue(6)
        racers = [self.session('relay') for _ in range(3)]
        start = threading.Barrier(3)

        def run(n):
            start.wait()
            self.write(*(dict(self.bytes_of(ids[2 * n + i], 5 + 2 * n + i), kind='grant',
                              member=SOUTH) for i in range(2)), session=racers[n])
        for call in [Background(racers[n], lambda n=n: run(n)) for n in range(3)]:
            call.join()
        self.assertEqual((self.count('site_transactions'), self.count('outbox')), (6, 0))


class Members(Sites):
    """P06: the sites of an account are fixed, and the same everywhere."""

    def view(self):
        return self.app.dict('SELECT * FROM txrelay.sites')

    def test_operators_see_who_coordinates_since_when_and_why(self):
        v = self.view()
        self.assertEqual((v['account'], v['site'], v['policy'], v['state'], v['coordinator'],
                          v['final']), ('alice', 'north', 'rotation', None, None, 100))
        tx, = self.enqueue()
        self.grant(tx)
        self.relay.rows("SELECT txrelay.leader_site_note(%s, %s, 'ACTIVE', 0, 91, 'south is "
                        "silent', 2)", self.alice, self.epoch)
        v = self.view()
        self.assertEqual((v['state'], v['coordinator'], v['since_height'], v['reason'],
                          v['granted'], v['dispatched']),
                         ('ACTIVE', 'north', 91, 'south is silent', 1, 0))
        self.assertEqual(self.app.rows('SELECT site, self, address, away, coordinates '
                                       'FROM txrelay.site_members ORDER BY member'),
                         [('north', True, '', False, True),
                          ('south', False, 'south:9944', True, False),
                          ('east', False, 'east:9944', False, False)])
        self.successor()
        v = self.view()
        # what a former leader saw says nothing
        self.assertEqual((v['state'], v['coordinator']), (None, None))

    def test_members_change_only_while_nothing_is_granted(self):
        tx, = self.enqueue()
        g = self.grant(tx)
        changes = (dict(names=['north', 'west', 'east']), dict(me=SOUTH), dict(era=32),
                   dict(names=NAMES[:2], addresses=['', ''],
                   keys=self.keys[:2], next=[5, 5]))
        for change in changes:
            self.refused('TR003', self.setup_sites, **change, text='has granted transactions')
        self.setup_sites()
        self.setup_sites(sticky=True, down=True, range=50, approvals=1, addresses=['', 'b', 'c'])
        self.assertEqual((self.view()['policy'], self.view()['range_blocks'],
                          self.view()['approvals']), ('sticky', 50, 1))
        self.read_final(self.included(g), dict(self.bytes_of(3, 6), kind='dispatch', member=EAST),
                        next=[6, 6, 6])
        self.refused('TR003', self.setup_sites, **changes[0], text='has dispatched transactions')
        self.write(dict(kind='drop', hash=self.bytes_of(3, 6)['hash']))
        self.owner.rows('TRUNCATE txrelay.site_dispatches')
        self.setup_sites(**changes[0], final=150)
        self.assertEqual(self.view()['final'], 150)
        self.assertEqual([r[0] for r in self.app.rows('SELECT site FROM txrelay.site_members '
                                                      'ORDER BY member')],
                                                      ['north', 'west', 'east'])

    def test_a_configuration_that_cannot_be_is_refused(self):
        for change, text in ((dict(names=['north', 'south', 'south']), 'twice'),
                             (dict(names=['north', 'a b', 'c']), '"a b"'),
                             (dict(me=3), '0 to 2'), (dict(me=None), 'p_self'),
                             (dict(keys=[h32('x')] * 3), 'does not fit'),
                             (dict(own=True), 'twice'),
                             (dict(own=True, keys=[h32('alice'), b'x', h32('y')]), 'site south'),
                             (dict(range=0), 'p_range_blocks'), (dict(era=3), 'p_era_blocks'),
                             (dict(approvals=3), 'p_approvals'),
                             (dict(final=None), 'not known'),
                             (dict(next=[5, None, 5]), 'not known'),
                             (dict(names=[], addresses=[], keys=[], next=[]), '1 to 32')):
            with self.subTest(text):
                self.refused('TR011', self.setup_sites, **change, text=text)

    def test_an_account_begins_and_ends_without_pending_transactions(self):
        bob = self.register(self.relay, 'bob', 43)
        epoch = self.claim(self.relay, account=bob)['epoch']
        self.app.rows("SELECT txrelay.enqueue('bob', '\\x0001')")
        self.relay.rows("SELECT txrelay.leader_admit(%s, %s, ARRAY[(SELECT id "
                        "FROM txrelay.outbox)], '{0}', ARRAY[sha256('a')], "
                        "ARRAY['\\x84'::bytea], '{0}', '{1}', '{60}', 1, 1, 10)", bob, epoch)
        self.refused('TR003', self.relay.rows, "SELECT txrelay.leader_site_setup(%s, %s, '{a}', "
                                               "'{x}', ARRAY[sha256('bob')], 0, false, false, "
                     "false, 9, 64, 0, 1, '{0}')", bob, epoch, text='has pending transactions')
        tx, = self.enqueue()
        g = self.grant(tx)
        self.refused('TR003', self.relay.rows, "SELECT txrelay.account_unsite('alice')",
                     text='has granted transactions')
        self.refused('TR011', self.relay.rows, "SELECT txrelay.account_unsite('bob')",
                     text='has no sites')
        self.refused('TR011', self.relay.rows, "SELECT txrelay.account_rewind('alice')",
                     text='has sites')
        self.refused('42501', self.app.rows, "SELECT txrelay.account_unsite('alice')")
        self.epoch = self.account()['epoch']
        self.read_final(self.included(g), next=[6, 6, 6])
        old = self.epoch
        self.relay.rows("SELECT txrelay.account_unsite('alice')")
        self.refused('TR001', self.write, dict(kind='drop', hash=h32('x')), epoch=old)
        self.assertEqual(self.app.rows('SELECT * FROM txrelay.sites'), [])
        epoch, _ = self.pending(1, first=6, epoch=self.successor())
        self.refused('TR003', self.relay.rows, 'SELECT * FROM txrelay.leader_site_load(%s, %s)',
                     self.alice, epoch, text='has no sites')


class OwnKeys(Sites):
    """Each site signs with a key of its own."""
    own_keys = True

    def test_places_are_of_a_key(self):
        first, second = self.enqueue(2)
        a, b = self.grant(first, 5, key=SOUTH), self.grant(second, 5, key=EAST, member=EAST)
        self.refused('TR003', self.grant, first, 5, key=EAST)
        self.read_final(self.included(b), next=[5, 5, 6])
        self.assertEqual((self.status(second)['outcome'], self.status(first)['stage']),
                         ('ok', 'pending'))
        self.assertEqual([(r['id'], r['site_key']) for r in self.load()[0]['grant']],
                         [(first, SOUTH)])
        self.read_final(self.included(a), next=[5, 6, 6])
        self.assertEqual(self.status(first)['outcome'], 'ok')


if __name__ == '__main__':
    unittest.main()
