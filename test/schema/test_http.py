"""Tokens of the HTTP interface are kept as hashes and do what their scopes say; each operation leaves a record."""
import psycopg2

from pgcase import ROOT, Case, h32


class Tokens(Case):
    def create(self, name='shop', secret='secret', scopes=('read',), accounts=None, expires=None):
        self.relay.rows('SELECT txrelay.token_create(%s, %s, %s, %s, %s::interval)', name, h32(secret), list(scopes), accounts, expires)

    def use(self, scope, account=None, secret='secret'):
        return self.relay.rows('SELECT * FROM txrelay.token_use(%s, %s, %s)', h32(secret), scope, account)

    def refused(self, text, *args, **named):
        with self.assertRaises(psycopg2.Error) as caught:
            self.create(*args, **named)
        self.assertEqual(caught.exception.pgcode, 'TR011')
        self.assertIn(text, caught.exception.diag.message_primary)

    def test_a_token_is_good_for_its_scopes(self):
        self.create(scopes=['read', 'read', 'enqueue'])
        self.assertEqual(self.use('read'), [('shop', True)])
        self.assertEqual(self.use('enqueue', 'alice'), [('shop', True)])
        self.assertEqual(self.use('operate'), [('shop', False)])
        self.assertEqual(self.use('read', secret='another'), [])
        self.assertEqual(self.use('', 'alice'), [('shop', False)])
        self.assertEqual(self.owner.value('SELECT scopes FROM txrelay.tokens'), ['enqueue', 'read'])

    def test_a_token_may_enqueue_for_its_accounts_alone(self):
        self.register(self.relay, 'bob', 43)
        self.create(scopes=['enqueue'], accounts=['alice'])
        self.assertEqual(self.use('enqueue', 'alice'), [('shop', True)])
        self.assertEqual(self.use('enqueue', '0x' + self.owner.value(
            "SELECT encode(account_id, 'hex') FROM txrelay.accounts WHERE alias = 'alice'")), [('shop', True)])
        self.assertEqual(self.use('enqueue', 'bob'), [('shop', False)])
        self.assertEqual(self.use('enqueue'), [('shop', True)])
        with self.assertRaises(psycopg2.Error) as caught:
            self.use('enqueue', 'nobody')
        self.assertEqual(caught.exception.pgcode, 'TR010')

    def test_a_token_ends_when_it_expires_or_is_revoked(self):
        self.create(expires='1 hour')
        self.assertEqual(self.use('read'), [('shop', True)])
        self.owner.rows("UPDATE txrelay.tokens SET expires_at = clock_timestamp() - interval '1 ms'")
        self.assertEqual(self.use('read'), [])
        self.create('other', 'other')
        self.relay.rows("SELECT txrelay.token_revoke('other')")
        first = self.owner.rows('SELECT revoked_at, revoked_by FROM txrelay.tokens ORDER BY name')
        self.relay.rows("SELECT txrelay.token_revoke('other')")
        self.assertEqual(self.owner.rows('SELECT revoked_at, revoked_by FROM txrelay.tokens ORDER BY name'), first)
        self.assertEqual(self.use('read', secret='other'), [])
        with self.assertRaises(psycopg2.Error) as caught:
            self.relay.rows("SELECT txrelay.token_revoke('none')")
        self.assertEqual(caught.exception.pgcode, 'TR010')

    def test_bad_tokens_are_refused(self):
        self.refused('name is NULL', None)
        self.refused('name is "a b"', 'a b')
        self.refused('scopes has "root"', scopes=['read', 'root'])
        self.refused('scopes has none', scopes=[])
        self.refused('expires is', expires='-1 s')
        self.refused('accounts is given without the scope enqueue', accounts=['alice'])
        self.create()
        self.refused('there is a token of that name', secret='a second one')
        self.refused('there is a token of that name', 'second')
        with self.assertRaises(psycopg2.Error) as caught:
            self.relay.rows("SELECT txrelay.token_create('x', '\\x00', ARRAY['read'])")
        self.assertIn('has 1 bytes', caught.exception.diag.message_primary)


class Keys(Case):
    def setUp(self):
        super().setUp()
        self.relay.rows('PREPARE enqueue AS ' + (ROOT / 'http' / 'sql' / 'enqueue.sql').read_text())
        for name in ('shop', 'bank'):
            self.relay.rows('SELECT txrelay.token_create(%s, %s, %s)', name, h32(name), ['enqueue'])

    def post(self, name, call=b'\1'):
        values = ['alice', call.hex(), 'order-1'] + [None] * 12 + [h32(name).hex()]
        return self.relay.value(f"EXECUTE enqueue({', '.join(['%s'] * len(values))})", *values)['id']

    def test_each_token_has_keys_of_its_own(self):
        ids = [self.post('shop'), self.post('bank')]
        relays = "SELECT txrelay.enqueue('alice', '\\x01', key => 'order-1')"
        ids.append(self.relay.value(relays))  # the setting ends with the statement
        ids.append(self.app.value(relays))
        self.assertEqual(len(set(ids)), 4)
        self.assertEqual([self.post('shop'), self.post('bank'), self.relay.value(relays), self.app.value(relays)], ids)
        with self.assertRaises(psycopg2.Error) as caught:
            self.post('bank', b'\2')
        self.assertEqual(caught.exception.pgcode, 'TR012')
        self.assertIn(f'for transaction {ids[1]}', caught.exception.diag.message_primary)

    def test_an_application_does_not_get_at_them(self):
        id = self.post('shop')
        self.app.rows("SET txrelay.token = 'shop'")
        self.assertNotEqual(self.app.value("SELECT txrelay.enqueue('alice', '\\x01', key => 'order-1')"), id)
