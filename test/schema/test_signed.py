"""What was signed elsewhere (08_enqueue_signed.sql): what SQL can check of it, its keys, its way
to a nonce of its own, and what is refused for it."""
import hashlib
import unittest

from pgcase import Case, h32

BOB = b'\2' * 20


def compact(n):
    return bytes([n << 2]) if n < 64 else (n << 2 | 1).to_bytes(2, 'little') if n < 1 << 14 else (
        n << 2 | 2).to_bytes(4, 'little')


def extrinsic(text='x', signer=None, form=0x84, address=b'\0'):
    body = bytes([form]) + address + (signer or h32('alice')) + b'\1' + hashlib.sha512(
        text.encode()).digest() + text.encode()
    return compact(len(body)) + body


class Signed(Case):
    def put(self, raw, s=None, **options):
        names = ''.join(f', {k} => %s' for k in options)
        return (s or self.app).value(f'SELECT txrelay.enqueue_signed(%s{names})', raw,
                                     *options.values())

    def due(self, epoch, following=0, block=10, limit=10):
        return [r[0] for r in self.relay.rows(
            'SELECT id FROM txrelay.leader_presigned(%s, %s, %s, %s, %s)', self.alice, epoch, limit,
                                              following, block)]

    def note(self, epoch, *rows):
        """rows: (id, nonce[, death[, wait_block]])"""
        rows = [tuple(r) + (None,) * (4 - len(r)) for r in rows]
        ids, nonces, deaths, waits = [list(c) for c in zip(*rows)]
        return self.relay.value('SELECT txrelay.leader_note(%s, %s, %s::bigint[], %s::bigint[], '
                                '%s::bytea[], %s::bigint[], '
                                '%s::bigint[], %s::text[])', self.alice, epoch, ids, nonces,
                                [h32(i) for i in ids], deaths, waits,
                                [f'waits for {n}' for n in nonces])

    def admit_signed(self, epoch, *rows, version=1, call=3, following=None):
        """rows: (id, nonce)"""
        n = len(rows)
        return self.relay.value('SELECT txrelay.leader_admit_presigned(%s, %s, %s::bigint[], '
                                '%s::bigint[], %s::bytea[], %s::int[], '
                                '%s::numeric[], %s::bigint[], %s::bigint[], %s::bigint[], 100, '
                                '%s, %s)', self.alice, epoch,
                                [r[0] for r in rows], [r[1] for r in rows],
                                [h32(f'signed {r[1]}') for r in rows], [call] * n, [7] * n,
                                [None] * n, [None] * n, [3] * n, version,
                                self.owner.value('SELECT coalesce(%s, next_nonce, %s) '
                                                 'FROM txrelay.accounts WHERE account = %s',
                                                 following, min(r[1] for r in rows), self.alice))

    def status(self, tx):
        return self.app.dict('SELECT stage, state, nonce, hash, outcome, error '
                             'FROM txrelay.status(%s)', tx)

    def test_an_account_that_was_reaped(self):
        epoch = self.lead()
        old = self.put(extrinsic('old'))
        self.relay.rows("SELECT txrelay.leader_pause(%s, %s, 'reaped', 'nonce 0 again')",
                        self.alice, epoch)
        self.owner.rows("SELECT txrelay.account_resume('alice')")
        self.relay.rows('SELECT txrelay.leader_nonce(%s, %s, 0, false, true)', self.alice, epoch)
        got = self.status(old)
        self.assertEqual((got['stage'], got['outcome']), ('finished', 'failed'))
        self.assertIn('former life', got['error'])
        self.refused('TR011', self.put, extrinsic('new'),
                     text=('was reaped or rewound once', 'former life'))
        self.assertTrue(self.enqueue(1))

    def test_by_hash_while_it_waits(self):
        epoch = self.lead()
        tx = self.put(extrinsic())
        by_hash = lambda of: self.app.rows('SELECT id, stage FROM txrelay.status(hash => %s)',
                                           '0x' + of.hex())
        self.assertEqual(by_hash(h32(tx)), [])
        self.note(epoch, (tx, 5))
        self.assertEqual(by_hash(h32(tx)), [(tx, 'outbox')])
        self.admit_signed(epoch, (tx, 5))
        self.assertEqual(by_hash(h32('signed 5')), [(tx, 'pending')])

    def test_what_is_refused_at_once(self):
        good = extrinsic()
        for raw, words in ((None, 'is NULL'), (b'', '0 bytes'), (b'\0' * 1048577, '1048577 bytes'),
                           (good[:-1],
                            ('does not begin with its length', 'a call goes to enqueue')),
                           (good + b'\0', 'does not begin with its length'),
                           (b'\0\1', 'does not begin with its length'),
                           (b'\3' + good, 'does not begin with its length'),
                           (b'\2', 'does not begin with its length'),
                           (extrinsic(form=4), ('is not signed', '0x84')),
                           (extrinsic(form=0x85), 'form 0x85'),
                           (compact(1) + b'\x84', 'too short')):
            with self.subTest(words):
                self.refused('TR011', self.put, raw, text=words)
        self.refused('TR010', self.put, extrinsic(signer=h32('unknown')),
                     text=(h32('unknown').hex(), 'without a key_file'))
        self.refused('TR011', lambda: self.put(good, key=''), text='key has 0 bytes')
        self.refused('TR011', lambda: self.put(good, creator='x' * 201),
                     text='creator has 201 bytes')
        self.assertEqual(self.owner.rows('SELECT * FROM txrelay.outbox_presigned'), [])

    def test_lengths(self):
        """Of each form of compact length."""
        for size in (1, 300, 20000):
            self.assertGreater(self.put(extrinsic('x' * size)), 0)

    def test_the_signer_is_the_account(self):
        self.relay.value("SELECT txrelay.relay_register('bob', %s, 'ethereum', %s, '0xbob', 43)",
                         BOB, b'\1' * 32)
        self.relay.value("SELECT txrelay.relay_register('twin', %s, 'sr25519', %s, '5twin', 44)",
                         h32('alice'), b'\2' * 32)
        self.put(extrinsic(signer=BOB + b'\0' * 12, address=b''))
        self.put(extrinsic('plain id', signer=BOB, address=b''), account='bob')
        self.assertEqual(self.owner.rows('SELECT DISTINCT account FROM txrelay.outbox_presigned'),
                         [(2,)])
        self.refused('TR011', self.put, extrinsic(),
                     text=('several chains: alice, twin', 'account => alias'))
        self.refused('TR011', lambda: self.put(extrinsic(), account='bob'),
                     text=('is "bob"', h32('alice').hex()))
        self.put(extrinsic(), account='twin')
        self.assertEqual(self.owner.value('SELECT max(account) FROM txrelay.outbox_presigned'), 3)

    def test_the_same_bytes_are_one_transaction(self):
        first = self.put(extrinsic('one'), key='k')
        self.assertEqual([self.put(extrinsic('one')), self.put(extrinsic('one'), key='k'),
                          self.put(extrinsic('one'), key='other')],
                         [first] * 3)
        self.refused('TR012', lambda: self.put(extrinsic('two'), key='k'), text=('"k"', str(first)))
        self.refused('TR012', lambda: self.put(extrinsic('two'), key='other'))
        second = self.put(extrinsic('two'))
        self.assertNotEqual(first, second)
        self.assertEqual(self.owner.value('SELECT count(*) FROM txrelay.outbox_presigned'), 2)
        self.refused('TR012', self.app.value,
                     "SELECT txrelay.enqueue('alice', '\\x0000', key => 'k')")

    def test_two_at_once(self):
        one, two = self.session('app'), self.session('app')
        one.begin()
        first = self.put(extrinsic(), one)
        second = self.background(two, 'SELECT txrelay.enqueue_signed(%s)', extrinsic())
        one.commit()
        self.assertEqual(second.join(), [(first,)])

    def test_rolled_back(self):
        self.app.begin()
        self.put(extrinsic())
        self.app.rollback()
        self.assertEqual(self.due(self.lead()), [])
        self.assertGreater(self.put(extrinsic()), 0)

    def test_it_rings_as_enqueue_does(self):
        listener = self.listen('outbox_wake')
        self.put(extrinsic('awake'))
        self.assertEqual(self.heard(listener), [])
        self.assertTrue(self.relay.value('SELECT pg_try_advisory_lock(9001, %s)', self.alice))
        self.put(extrinsic('asleep'))
        self.assertEqual(self.heard(listener), [('outbox_wake', str(self.alice))])

    def test_which_rows_are_due(self):
        epoch = self.lead()
        a, b, c, d, e = [self.put(extrinsic(t)) for t in 'abcde']
        self.assertEqual(self.due(epoch), [a, b, c, d, e], 'nobody has read them')
        self.note(epoch, (a, 5), (b, 6), (c, 8, 100), (d, 5), (e, 2, None, 20))
        self.assertEqual(self.due(epoch, 1), [])
        self.assertEqual(self.due(epoch, 5), [a, d, b], 'a row of nonces without a gap')
        self.assertEqual(self.due(epoch, 6), [a, d, b], 'those below the next one too')
        self.assertEqual(self.due(epoch, 7), [a, d, b])
        self.assertEqual(self.due(epoch, 1, block=100), [e, c],
                         'its block is final, its era is over')
        self.assertEqual(self.due(epoch, 8, limit=1), [a])
        self.relay.value("SELECT txrelay.account_pause('alice', 'stop')")
        self.assertEqual(self.due(epoch, 5), [])

    def test_a_note_shows(self):
        epoch = self.lead()
        tx = self.put(extrinsic())
        self.assertEqual(self.status(tx), {'stage': 'outbox', 'state': 'queued', 'nonce': None,
                                           'hash': None, 'outcome': None,
                                           'error': None})
        self.assertEqual(self.note(epoch, (tx, 4), (9999, 5)), 1, 'one that is gone is no error')
        row = self.status(tx)
        self.assertEqual((row['nonce'], row['hash'], row['error']),
                         (4, '0x' + h32(tx).hex(), 'waits for 4'))
        blocked = self.app.dict('SELECT account, nonce, id, state, reason, paused '
                                'FROM txrelay.blocked_accounts')
        self.assertEqual(blocked, {'account': 'alice', 'nonce': 4, 'id': tx, 'state': 'queued',
                                   'reason': 'waits for 4', 'paused': False})
        self.owner.rows('UPDATE txrelay.accounts SET next_nonce = 4')
        self.assertEqual(self.app.rows('SELECT * FROM txrelay.blocked_accounts'), [],
                         'its turn has come')

    def test_admitted(self):
        epoch = self.lead()
        tx, other = self.put(extrinsic('call'), key='k', creator='me'), self.put(extrinsic('other'))
        self.assertEqual(self.admit_signed(epoch, (other, 5), (tx, 4), call=4), 6)
        row = self.row(4)
        self.assertEqual((row['id'], row['call'], row['signed'], row['key'], row['creator'],
                          row['state'], row['retries']),
                         (tx, b'call', True, 'k', 'me', 'signed', 0))
        attempt = self.owner.dict('SELECT * FROM txrelay.attempts WHERE nonce = 4')
        self.assertEqual((attempt['extrinsic'], attempt['tip'], attempt['block'],
                          attempt['spec_version'], attempt['number']),
                         (extrinsic('call'), 7, 3, 100, 1))
        self.assertEqual(self.owner.value('SELECT next_nonce FROM txrelay.accounts'), 6)
        self.assertTrue(self.relay.value('SELECT bool_and(signed) FROM txrelay.leader_snapshot(%s, '
                                         '%s, -1, 10)', self.alice, epoch))
        self.assertEqual(self.due(epoch), [])

    def test_below_the_next_nonce(self):
        """Where nothing is pending; at a nonce that has attempts already it is the next one."""
        epoch, _ = self.pending(3)
        self.finish(self.relay, epoch, (1, h32(1), h32('block'), 'ok'))
        tx = self.put(extrinsic())
        self.refused('TR002', self.admit_signed, epoch, (tx, 2), text='free')
        self.refused('TR003', self.admit_signed, epoch, (tx, 4), text='nonce 4 where 3 is next')
        self.refused('TR003', lambda: self.admit_signed(epoch, (tx, 1), following=4),
                     text='given as 4')
        self.assertEqual(self.admit_signed(epoch, (tx, 1)), 3)
        self.assertEqual((self.row(1)['attempt'], self.row(1)['id']), (2, tx))
        self.assertEqual(self.relay.one('SELECT earlier, earlier_own '
                                        'FROM txrelay.leader_snapshot(%s, %s, 0, 1)', self.alice,
                                        epoch),
                         ([], 0), 'what used the nonce is not its own')
        self.refused('TR003', self.finish, self.relay, epoch, (1, h32(1), h32('block'), 'ok'))
        self.assertEqual(self.finish(self.relay, epoch, (1, h32('signed 1'), None, 'usurped')), 1)

    def test_the_first_use_of_an_account(self):
        """Its next nonce is what the leader knows of the chain, whatever was used before."""
        epoch = self.lead()
        used, following = self.put(extrinsic('used')), self.put(extrinsic('next'))
        self.assertEqual(self.admit_signed(epoch, (used, 0), (following, 3), following=3), 4)

    def test_admission_is_all_or_nothing(self):
        epoch = self.lead()
        one, two = self.put(extrinsic('1')), self.put(extrinsic('2'))
        self.app.value('SELECT txrelay.cancel(%s)', two)
        self.refused('TR002', self.admit_signed, epoch, (one, 0), (two, 1), text='1 of 2')
        behind = self.put(extrinsic('behind'))
        self.refused('TR002', self.admit_signed, epoch, (one, 0), (two, 1), (behind, 2),
                     text='2 of 3')
        self.refused('TR003', self.admit_signed, epoch, (one, 0), (behind, 2),
                     text='nonce 2 where 1 is next')
        self.app.value('SELECT txrelay.cancel(%s)', behind)
        self.refused('TR003', self.admit_signed, epoch, (one, 0), (one, 0), text='more than once')
        self.assertEqual(self.due(epoch), [one])
        self.admit_signed(epoch, (one, 0))
        three = self.put(extrinsic('3'))
        self.refused('TR002', lambda: self.admit_signed(epoch, (three, 1), version=2),
                     text='transaction version 2')
        self.relay.value("SELECT txrelay.account_pause('alice', 'stop')")
        self.refused('TR002', self.admit_signed, epoch, (three, 1), text='paused')

    def test_it_is_never_signed_again(self):
        epoch = self.lead()
        tx = self.put(extrinsic())
        self.admit_signed(epoch, (tx, 0))
        self.refused('TR003', self.attempt, self.relay, epoch, [0], [h32('again')],
                     text=('signed elsewhere', str(tx)))
        self.refused('TR003', self.requeue, self.relay, epoch, (0, 'usurped', 'x', h32('signed 0')),
                     text='signed elsewhere')
        self.attempt(self.relay, epoch, [0], [h32('filler')], filler=1, outcome='cancelled',
                     stop='cancelled by app')
        self.assertTrue(self.row(0)['signed'])

    def test_ends_without_a_nonce(self):
        epoch = self.lead()
        tx = self.put(extrinsic(), key='k')
        listener = self.listen('pending_tx_removed')
        self.assertEqual(self.relay.value("SELECT txrelay.leader_reject(%s, %s, %s, '{failed}', "
                                          "'{bad signature}')", self.alice,
                                          epoch, [tx]), 1)
        self.assertEqual((self.status(tx)['outcome'], self.status(tx)['error']),
                         ('failed', 'bad signature'))
        self.assertIn('"outcome":"failed"', self.heard(listener)[0][1])
        self.assertEqual(self.put(extrinsic(), key='k'), tx,
                         'the same bytes are the same transaction')
        self.refused('TR002', self.relay.value,
                     "SELECT txrelay.leader_reject(%s, %s, %s, '{failed}', '{x}')", self.alice,
                     epoch, [tx])

    def test_cancel_and_bump(self):
        epoch = self.lead()
        waits, sent = self.put(extrinsic('waits')), self.put(extrinsic('sent'))
        self.refused('TR011', self.app.value, 'SELECT txrelay.bump(%s, 5)', waits,
                     text='its tip is signed with it')
        self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', waits), 'cancelled')
        self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', waits), 'finished')
        self.admit_signed(epoch, (sent, 0))
        self.refused('TR011', self.app.value, 'SELECT txrelay.bump(%s, 5)', sent,
                     text='its tip is signed with it')
        self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', sent), 'requested',
                         'a filler can take its nonce')
        self.owner.rows('UPDATE txrelay.accounts SET watch_only = true')
        self.refused('TR011', self.app.value, 'SELECT txrelay.cancel(%s)', sent,
                     text=('no relay has a key', 'nonce 0'))

    def test_an_account_without_a_key(self):
        register = 'SELECT txrelay.relay_register(%s, %s, %s, %s, %s, %s, %s)'
        args = ('carol', h32('carol'), 'sr25519', b'\1' * 32, '5carol', 45)
        self.relay.value(register, *args, True)
        self.relay.value(register, *args, True)
        self.refused('TR011', self.relay.value, register, *args, False,
                     text=('registered without a key', 'every relay'))
        for name in ('carol', '5carol', '0x' + h32('carol').hex()):
            for key in (None, 'k'):
                self.refused('TR011', self.app.value,
                             "SELECT txrelay.enqueue(%s, '\\x0000', key => %s)", name, key,
                             text=('whose key no relay has', 'enqueue_signed'))
            self.refused('TR011', self.app.value,
                         "SELECT txrelay.enqueue_many(%s, '{\"\\\\x0000\"}')", name,
                         text='enqueue_signed')
        self.assertGreater(self.put(extrinsic(signer=h32('carol'))), 0)

    def test_adopted_by_its_bytes(self):
        """After lost commits the very bytes say which row it is, whatever waits with the same
        call."""
        epoch = self.lead()
        tx = self.put(extrinsic('call'))
        plain = self.enqueue(call=b'call')[0]
        self.owner.rows('UPDATE txrelay.leadership SET timeline = timeline - 1')
        epoch = self.lead()
        adopt = ('SELECT txrelay.leader_adopt(%s, %s, %s::bigint[], %s::bytea[], %s::bytea[], '
                 '%s::int[], %s::numeric[], '
                 '%s::bigint[], %s::bigint[], %s::bigint[], 100, 1, 40, true, NULL)')
        self.assertEqual(self.relay.value(adopt, self.alice, epoch, [3], [h32('found')],
                                          [extrinsic('call')], [4], [7], [30], [94],
                                          [None]), 1)
        self.assertEqual((self.row(3)['id'], self.row(3)['signed'], self.row(3)['call']),
                         (tx, True, b'call'))
        self.assertEqual(self.owner.value('SELECT block FROM txrelay.attempts'), 30,
                         'it may be in any block of its era')
        self.assertEqual(self.status(plain)['stage'], 'outbox')
        self.assertEqual(self.owner.value('SELECT next_nonce FROM txrelay.accounts'), 4)

    def test_retention_keeps_the_key_of_what_waits(self):
        epoch = self.lead()
        self.put(extrinsic())
        self.owner.rows("UPDATE txrelay.idempotency_keys SET created_at = created_at - interval "
                        "'40 days'")
        self.assertEqual(self.relay.value("SELECT txrelay.leader_cleanup(%s, %s, '30 days')",
                                          self.alice, epoch), 0)


if __name__ == '__main__':
    unittest.main()
