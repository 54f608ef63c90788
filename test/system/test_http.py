"""The HTTP interface: every route against its own document, who may ask, hostile input, and what
operators leave behind."""
import http.client
import json
import os
import re
import unittest

import jsonschema

from harness import proc
from harness.application import remark
from harness.relay import cli
from harness.world import World

with open(os.path.join(proc.ROOT, 'http', 'openapi.json')) as _file:
    DOCUMENT = json.load(_file)
TEXTS = {kind for item in DOCUMENT['paths'].values()
         for kind in item.get('get', {'responses': {}})['responses'].get('200',
                                                                         {'content': ()})['content']
         if not kind.startswith('application/')}
BOB_ADDRESS = '5FHneW46xGXgs5mUiveU4sbTyGBzmstUspZC92UhjJM694ty'
STREAM = '/v1/events'  # it does not end; test_events.py reads it
REFUSED = (408, 413, 417, 431)  # of the connection itself
EXTRA = 'http:\n  listen: tcp:127.0.0.1:0\n'


def token(world, name, *scopes, options=()):
    return cli('token', 'create', name, '--scope', ','.join(scopes), *options, '--database',
               world.pg.dsn).stdout.strip()


class Client:
    """One connection, which every answer must leave open; each answer is held against the
    document."""

    def __init__(self, relay, token=None, address=None):
        self.address = address or relay.wait_log(r'http.listening .*address=tcp:(\S+)').group(1)
        self.token, self.seen, self.validators, self.answered = token, set(), {}, 0
        host, port = self.address.rsplit(':', 1)
        self.conn = http.client.HTTPConnection(host, int(port), timeout=30)
        if token:
            proc.wait_for('its database', lambda: self.ask('GET', '/v1/transactions')[0] != 503, 30)

    def ask(self, method, target, body=None, token=..., **headers):
        token = self.token if token is ... else token
        headers = {k.replace('_', '-'): v for k, v in headers.items()}
        if token:
            headers['Authorization'] = f'Bearer {token}'
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if body is not None:
            headers.setdefault('Content-Type', 'application/json')
        self.conn.request(method, target, body, headers)
        answer = self.conn.getresponse()
        text = answer.read()
        page = answer.headers['Content-Type'] in TEXTS
        value = text.decode() if page else json.loads(text) if text else None
        self.check(method, target, answer, value)
        self.answered += 1
        return answer.status, value

    def validator(self, key, schema):
        if key not in self.validators:
            self.validators[key] = jsonschema.Draft202012Validator(
                schema, resolver=jsonschema.RefResolver('', DOCUMENT),
                                                          format_checker=jsonschema.FormatChecker())
        return self.validators[key]

    def check(self, method, target, answer, value):
        path = target.split('?')[0]
        for pattern, item in DOCUMENT['paths'].items():
            if not re.fullmatch(re.sub(r'\{\w+\}', '[^/]+', pattern),
                                path) or method.lower() not in item:
                continue
            responses = item[method.lower()]['responses']
            status = str(answer.status) if answer.status not in REFUSED or str(
                answer.status) in responses else 'default'
            assert status in responses, (
                f'{method} {target[:200]}: {status} is not in the document: {value}')
            response = responses[status]
            if '$ref' in response:
                response = DOCUMENT['components']['responses'][response['$ref'].rsplit('/', 1)[1]]
            kind = answer.headers['Content-Type']
            self.validator((method, pattern, status, kind),
                           response['content'][kind]['schema']).validate(value)
            self.seen.add((method.lower(), pattern, answer.status < 400))
        assert answer.headers['Cache-Control'] == 'no-store' and not answer.headers.get(
            'Set-Cookie')
        assert not [name for name in answer.headers if name.lower().startswith('access-control-')]


class Http(unittest.TestCase):
    def client(self, *args):
        client = Client(*args)
        self.addCleanup(client.conn.close)
        return client

    def test_every_route_answers_as_its_document_says(self):
        with World() as world:
            follower = world.relay('follower', start=False, extra=EXTRA)
            leader = world.relay('leader', extra=EXTRA)
            world.wait_leader(leader)
            follower.start()  # it leads nothing, and answers all the same
            client = self.client(follower, token(world, 'all', 'read', 'enqueue', 'operate'))
            ask = client.ask
            self.assertEqual(ask('GET', '/openapi.json', token=''), (200, DOCUMENT))

            status, made = ask('POST', '/v1/transactions',
                               {'account': 'alice', 'call': '0x' + remark('one').hex()},
                               Idempotency_Key='order-1')
            self.assertEqual(status, 201, made)
            world.committed[remark('one')] = made['id']
            again = ask('POST', '/v1/transactions',
                        {'account': 'alice', 'call': remark('one').hex(), 'key': 'order-1'})
            self.assertEqual(again, (201, made))
            status, problem = ask('POST', '/v1/transactions',
                                  {'account': 'alice', 'call': '0x' + remark('two').hex(),
                                   'key': 'order-1'})
            self.assertEqual((status, problem['code']), (409, 'key_conflict'))
            status, problem = ask('POST', '/v1/transactions',
                                  {'account': 'alice', 'call': '0x' + remark('one').hex(),
                                   'key': 'order-1'},
                                  Idempotency_Key='order-2')
            self.assertEqual((status, problem['detail']),
                             (400, 'the header Idempotency-Key and the field key differ'))
            proc.wait_for('a chain', lambda: ask('POST', '/v1/transactions', {
                'account': 'alice', 'dry_run': True, 'call': '0x' + remark('x').hex()})[0] == 200,
                30)
            by_name = {'account': 'alice',
                       'call': {'pallet': 'System', 'name': 'remark',
                                'args': ['0x' + b'three'.hex()]}}
            status, dry = ask('POST', '/v1/transactions', {**by_name, 'dry_run': True})
            self.assertEqual((status, dry['call']), (200, '0x' + remark('three').hex()))
            self.assertGreater(int(dry['fee']), 0)
            system = [p for p in ask('GET', '/v1/calls')[1]['pallets'] if p['name'] == 'System'][0]
            calls = {c['name']: c['args'] for c in ask('GET', '/v1/calls/System')[1]['calls']}
            self.assertEqual((len(calls), calls['remark']),
                             (system['calls'], [{'name': 'remark', 'type': 'bytes'}]))
            self.assertIn('System.remark(remark: bytes)',
                          ask('GET', '/v1/calls/System/remark')[1]['types'])
            for path, words in (('Sytem', 'System'), ('System/remarc', 'remark')):
                status, problem = ask('GET', f'/v1/calls/{path}')
                self.assertEqual(status, 404)
                self.assertIn(words, problem['detail'])  # a near name
            status, third = ask('POST', '/v1/transactions', by_name)
            self.assertEqual(status, 201)
            world.committed[remark('three')] = third['id']
            world.settle()

            status, one = ask('GET', f'/v1/transactions/{made["id"]}')
            self.assertEqual((one['outcome'], one['key'], one['creator'], len(one['history'])),
                             ('ok', 'order-1', 'all', 1))
            said = {'pallet': 'System', 'call': 'remark', 'args': {'remark': 'one'}}
            # out of its extrinsic
            self.assertEqual((one['call'], one['decoded']), ('0x' + remark('one').hex(), said))
            ids = lambda query: [t['id'] for t in ask('GET', '/v1/transactions'
                                                      + query)[1]['transactions']]
            self.assertEqual(ids(''), [third['id'], made['id']])
            for query in ('?key=order-1', f'?hash={one["hash"]}',
                          f'?nonce={one["nonce"]}&account=alice', f'?cursor={third["id"]}'):
                self.assertEqual(ids(query), [made['id']], query)
            self.assertEqual(
                ids('?outcome=ok&creator=all&state=finished&from=2020-01-01T00:00:00Z'
                    '&before=2100-01-01T00:00:00Z'), [third['id'], made['id']])
            page = ask('GET', '/v1/transactions?limit=1')[1]
            self.assertEqual((len(page['transactions']), page['next']), (1, str(third['id'])))
            self.assertEqual(ask('GET', '/v1/transactions/999999')[0], 404)

            self.assertEqual([a['alias'] for a in ask('GET', '/v1/accounts')[1]['accounts']],
                             ['alice'])
            account = ask('GET', '/v1/accounts/alice')[1]
            self.assertEqual(account['next_nonce'], 2)
            self.assertEqual(ask('GET', '/v1/accounts/nobody')[0], 404)
            self.assertEqual(ask('GET', '/v1/accounts?account=nobody')[0], 404)
            self.assertEqual(ask('GET', '/v1/transactions?account=nobody')[0], 404)
            self.assertEqual(ask('GET', '/v1/accounts/alice/nonces')[1]['nonces'], [])
            proc.wait_for('both members', lambda: len(ask('GET', '/v1/cluster')[1]['members']) == 2)

            self.assertEqual(ask('POST', '/v1/accounts/alice/pause', {'reason': 'lunch'}),
                             (200, {'answer': 'paused'}))
            account = ask('GET', '/v1/accounts/alice')[1]
            self.assertEqual((account['paused_reason'], account['blocked']['code']),
                             ('lunch', 'paused'))
            waits = ask('POST', '/v1/transactions',
                        {'account': 'alice', 'call': '0x' + remark('four').hex(),
                         'priority': 1})[1]['id']
            one = ask('GET', f'/v1/transactions/{waits}')[1]
            self.assertIn('lunch', one['waits'])
            self.assertEqual((one['call'], one['decoded']['args']),
                             ('0x' + remark('four').hex(), {'remark': 'four'}))
            cli('policy', 'alice', 'tip_cap=1000', '--database', world.pg.dsn)
            self.assertEqual(ask('POST', f'/v1/transactions/{waits}/bump', {'tip': '7'}),
                             (200, {'answer': 'queued'}))
            self.assertEqual(ask('POST', f'/v1/transactions/{waits}/cancel'),
                             (200, {'answer': 'cancelled'}))
            status, retried = ask('POST', f'/v1/transactions/{waits}/retry', {})
            self.assertEqual(status, 200)
            world.committed[remark('four')] = int(retried['answer'])
            many = [ask('POST', '/v1/transactions',
                        {'account': 'alice', 'call': '0x' + remark(f'many {i}').hex()})[1]['id']
                        for i in range(2)]
            answers = ask('POST', '/v1/transactions/bump', {'ids': many, 'tip': 3})[1]['answers']
            self.assertEqual([a['answer'] for a in answers], ['queued', 'queued'])
            answers = ask('POST', '/v1/transactions/cancel', {'ids': [*many, 999999]})[1]['answers']
            self.assertEqual([a.get('answer') for a in answers], ['cancelled', 'cancelled', None])
            self.assertIn('there is no such transaction', answers[2]['error'])
            answers = ask('POST', '/v1/transactions/retry', {'ids': many})[1]['answers']
            for i, a in enumerate(answers):
                world.committed[remark(f'many {i}')] = int(a['answer'])
            for bad in ({}, {'ids': []}, {'ids': ['1']}, {'ids': 1}, {'ids': [1] * 501}):
                self.assertEqual(ask('POST', '/v1/transactions/cancel', bad)[0], 400, bad)
            self.assertIn('"tip_start": "1"',
                          ask('POST', '/v1/accounts/alice/policy', {'tip_start': 1})[1]['answer'])
            self.assertEqual(ask('POST', '/v1/accounts/alice/policy', {'tip_start': -1})[0], 422)
            self.assertEqual(ask('POST', '/v1/accounts/alice/resume'), (200, {'answer': 'resumed'}))
            self.assertEqual(ask('POST', '/v1/transactions/999999/cancel')[0], 422)
            records = ask('GET', '/v1/operations')[1]['operations']
            self.assertEqual([(o['who'], o['action']) for o in records
                              if o['via'] == 'txrelay http'],
                             [('all', a) for a in ('resume', 'policy', *['retry'] * 2,
                                                   *['cancel'] * 2, *['bump'] * 2, 'retry',
                                                   'cancel', 'bump', 'pause')])
            pause = [o for o in records if o['action'] == 'pause'][0]
            self.assertEqual((pause['before']['paused'], pause['after']['paused']), (False, True))
            self.assertEqual({(o['action'], o['subject']) for o in records
                              if o['via'] != 'txrelay http'},
                             # commands, and the relay
                             {('token_create', 'all'), ('policy', None), ('register', None)})
            world.settle()
            self.assertEqual(len(ask('GET', '/v1/overview')[1]['blocked_accounts']), 0)
            for path in ('/', *re.findall(r'(?:href|src)="(/page/[^"]+)"',
                                          ask('GET', '/', token='')[1])):
                self.assertEqual(ask('GET', path, token='')[0], 200, path)
            self.assertEqual(ask('GET', '/page/x')[0], 404)
            led = ask('GET', '/v1/leaders?account=alice')[1]['leaders'][0]
            self.assertEqual((led['account'], led['epoch'], led['until']),
                             ('alice', account['epoch'], None))
            self.register(world, ask)
            self.leader_knows_more(world, leader, follower, ask)
            self.webhooks(world, ask)
            self.assertEqual(ask('POST', '/v1/relay/drain'), (200, {'answer': 'draining'}))
            proc.wait_for('its end', lambda: not follower.alive(), 30)
            self.assertEqual(world.pg.value("SELECT who FROM txrelay.operations "
                                            "WHERE action = 'drain'"), 'all')
            every = {(method, path, True) for path, item in DOCUMENT['paths'].items()
                     if path != STREAM for method in item}
            self.assertEqual({s for s in client.seen if s[2]}, every)

    def register(self, world, ask):
        bob = {'alias': 'bob', 'account': BOB_ADDRESS}
        for _ in range(2):
            self.assertEqual(ask('POST', '/v1/accounts', bob), (200, {'answer': 'registered'}))
        row, = world.pg.query("SELECT address, scheme::text, watch_only, genesis = (SELECT "
                              "a.genesis FROM txrelay.accounts a WHERE a.alias = 'alice') "
                              "FROM txrelay.accounts WHERE alias = 'bob'")
        self.assertEqual(row, (BOB_ADDRESS, 'sr25519', False, True))
        who, = world.pg.query("SELECT who FROM txrelay.operations o JOIN txrelay.accounts a "
                              "USING (account) WHERE action = 'register' AND alias = 'bob'")
        self.assertEqual(who, ('all',))  # once: the second one changed nothing
        for change, status in (({'alias': 'a b'}, 422), ({'alias': 'carl'}, 422),
                               ({'account': BOB_ADDRESS[:-1] + 'x'}, 422), ({'scheme': 'rsa'}, 422),
                               ({'scheme': 'ethereum'}, 422), ({'watch_only': True}, 422),
                               ({'watch_only': 1}, 400), ({'more': 1}, 400)):
            self.assertEqual(ask('POST', '/v1/accounts', {**bob, **change})[0], status, change)

    def webhooks(self, world, ask):
        for name in ('hook', 'other'):
            world.pg.query('SELECT txrelay.webhook_create(%s, %s, ARRAY[%s])',
                           (name, 'https://hook.example/x', 'alice'))
        for number in range(3):
            world.pg.query("INSERT INTO txrelay.webhook_deliveries (webhook, account, id, body, "
                           "attempts, dead_at, error) SELECT 'hook', account, %s, "
                           "'{\"type\": \"x\"}', 20, clock_timestamp(), 'it answered 500' FROM "
                           "txrelay.accounts WHERE alias = 'alice'", (number,))
        first, = ask('GET', '/v1/webhooks?limit=1')[1]['webhooks']
        self.assertEqual({k: first[k] for k in ('name', 'accounts', 'outcomes', 'paused', 'waiting',
                                                'dead')},
                         {'name': 'hook', 'accounts': ['alice'], 'outcomes': None, 'paused': False,
                          'waiting': 0, 'dead': 3})
        self.assertEqual([w['name'] for w in ask('GET', '/v1/webhooks?cursor=hook')[1]['webhooks']],
                         ['other'])
        page = ask('GET', '/v1/webhooks/hook/dead?limit=2')[1]
        self.assertEqual([(d['id'], d['error'], d['body']) for d in page['dead']],
                         [(i, 'it answered 500', {'type': 'x'}) for i in (0, 1)])
        last, = ask('GET', f'/v1/webhooks/hook/dead?cursor={page["next"]}')[1]['dead']
        self.assertEqual(ask('GET', '/v1/webhooks/other/dead')[1],
                         {'webhook': 'other', 'dead': [], 'next': None})
        self.assertEqual(ask('GET', '/v1/webhooks/nothing/dead')[0], 404)
        self.assertEqual(ask('POST', '/v1/webhooks/nothing/again')[0], 404)
        self.assertEqual(ask('POST', '/v1/webhooks/hook/again', {'number': 999999})[0], 422)
        self.assertEqual(ask('POST', '/v1/webhooks/hook/pause'), (200, {'answer': 'paused'}))
        self.assertEqual(ask('POST', '/v1/webhooks/hook/again', {'number': last['number']}),
                         (200, {'answer': '1'}))
        self.assertEqual(ask('POST', '/v1/webhooks/hook/again'), (200, {'answer': '2'}))
        self.assertEqual([(w['paused'], w['waiting'], w['dead'])
                          for w in ask('GET', '/v1/webhooks')[1]['webhooks']],
                          [(True, 3, 0), (False, 0, 0)])
        self.assertEqual(ask('POST', '/v1/webhooks/hook/resume'), (200, {'answer': 'resumed'}))
        records = [(o['who'], o['action'], o['subject'])
                   for o in ask('GET', '/v1/operations?limit=4')[1]['operations']]
        self.assertEqual(records, [('all', f'webhook_{a}', 'hook')
                                   for a in ('resume', 'again', 'again', 'pause')])

    def leader_knows_more(self, world, leader, follower, ask):
        account = ask('GET', '/v1/accounts/alice')[1]
        self.assertEqual((account['window'], account['balance']), (None, None))
        self.assertIn('fee', account['counts'][0])
        client = self.client(leader, token(world, 'of-the-leader', 'read'))
        account = proc.wait_for('a balance',
                                lambda: (a := client.ask('GET', '/v1/accounts/alice')[1])['balance']
                                and a, 30)
        self.assertGreater(int(account['balance']), 0)
        self.assertGreater(account['window'], 0)

    def test_who_may_ask(self):
        with World() as world:
            relay = world.relay('one', extra=EXTRA + '  rate: 100000\n')
            world.wait_leader(relay)
            reads = token(world, 'reads', 'read')
            client, limited = self.client(relay, reads), token(world, 'limited', 'enqueue',
                                                               options=('--for', 'alice'))
            ask = client.ask
            for method, target, scope in [(m.upper(), p, o.get('security'))
                                          for p, item in DOCUMENT['paths'].items()
                                          for m, o in item.items()]:
                if scope:
                    target = re.sub(r'\{\w+\}', '1', target)
                    for bad in (None, 'x', reads[:-1], reads + '0', reads.upper(),
                                'txr_' + '0' * 64):
                        status, problem = ask(method, target, token=bad or '')
                        self.assertEqual((status, problem['code']), (401, 'unauthorized'),
                                         (method, target, bad))
                    if scope != [{'token': ['read']}]:
                        self.assertEqual(ask(method, target, token=reads)[0], 403, (method, target))
            self.assertEqual(ask('GET', '/v1/accounts', token=reads)[0], 200)
            self.assertEqual(ask('GET', '/v1/accounts', token=limited)[0], 403)
            # a few a second are logged
            for token_, name, status in ((reads, 'reads', 403), ('x', 'none', 401)):
                proc.wait_for(f'{status} in the log',
                              lambda: ask('GET', '/v1/operations', token=token_)[0] == status
                              and re.search(
                    rf'http.refused .*status={status} .*token={name} ', relay.text()), 30)
            call = '0x' + remark('mine').hex()
            status, made = ask('POST', '/v1/transactions', {'account': 'alice', 'call': call},
                               token=limited)
            self.assertEqual(status, 201)
            world.committed[remark('mine')] = made['id']
            world.pg.query("SELECT txrelay.relay_register('bob', %s, 'sr25519', %s, '5bob', 7)",
                           (b'\2' * 32, b'\1' * 32))
            status, problem = ask('POST', '/v1/transactions', {'account': 'bob', 'call': call},
                                  token=limited)
            self.assertEqual((status, problem['code']), (403, 'forbidden'))
            self.assertEqual(world.pg.value('SELECT count(*) FROM txrelay.outbox o '
                                            'JOIN txrelay.accounts a USING (account) '
                                            "WHERE a.alias = 'bob'"), 0)

            # Pages of other origins, and other names of this host (DNS rebinding).
            for headers in ({'Origin': 'https://evil.example'}, {'Origin': 'null'},
                            {'Host': 'evil.example'}):
                self.assertEqual(ask('GET', '/v1/accounts', token=reads, **headers)[0], 403,
                                 headers)
            self.assertEqual(ask('GET', '/v1/accounts', token=reads,
                                 Origin=f'http://{client.address}')[0], 200)
            self.assertEqual(ask('OPTIONS', '/v1/accounts', token='',
                                 Origin='https://evil.example')[0], 403)
            self.assertEqual(ask('POST', '/v1/accounts/alice/pause', 'reason=x',
                                 token=token(world, 'op', 'operate'),
                                 Content_Type='application/x-www-form-urlencoded')[0], 415)

            # Revoked and expired.
            cli('token', 'revoke', 'reads', '--database', world.pg.dsn)
            self.assertEqual(ask('GET', '/v1/accounts', token=reads)[0], 401)
            brief = token(world, 'brief', 'read', options=('--expires', '1 hour'))
            self.assertEqual(ask('GET', '/v1/accounts', token=brief)[0], 200)
            world.pg.query("UPDATE txrelay.tokens SET expires_at = clock_timestamp() "
                           "WHERE name = 'brief'")
            self.assertEqual(ask('GET', '/v1/accounts', token=brief)[0], 401)
            listed = cli('token', 'list', '--json', '--database', world.pg.dsn).stdout
            self.assertEqual([json.loads(line)['state'] for line in listed.splitlines()],
                             ['expired', 'good', 'good', 'revoked'])

            # The log names the token, and neither the log nor the database has it.
            for secret in (reads, limited, brief):
                self.assertNotIn(secret[4:], relay.text() + listed)
                self.assertEqual(world.pg.value('SELECT count(*) FROM txrelay.tokens t '
                                                'WHERE t::text LIKE %s', (f'%{secret[4:]}%',)), 0)
            world.settle()

    def test_rate_of_a_token(self):
        with World() as world:
            relay = world.relay('one', extra=EXTRA + '  rate: 5\n')
            client = self.client(relay, token(world, 'reads', 'read'))
            answers = [client.ask('GET', '/v1/cluster')[0] for _ in range(200)]
            self.assertIn(429, answers)
            self.assertEqual(client.ask('GET', '/v1/cluster',
                                        token=token(world, 'other', 'read'))[0], 200)
            # Who guesses is slowed down too, and the database is not asked; a token that was good
            # goes on.
            answers = [client.ask('GET', '/v1/cluster', token='x' * 40)[0] for _ in range(100)]
            self.assertEqual(set(answers), {401, 429})
            relay.wait_log('http.refused')
            passed = []
            # Of a flood a few refusals a second are logged and the others counted; together they
            # are no more than were refused.
            proc.wait_for('a count in the log',
                          lambda: client.ask('GET', '/v1/cluster', token='x' * 40) and re.search(
                r'http.refused .*unlogged=[1-9]', relay.text()), 30)

            def turn():
                passed.append(client.ask('GET', '/v1/cluster', token='x' * 40)[0])
                status, answer = client.ask('GET', '/v1/cluster')
                if status != 200:
                    self.assertIn("the token's requests come too fast", answer['detail'])
                return passed[-1] == 429 and status == 200
            proc.wait_for('its turn among guesses', turn, 30)
            relay.stop()  # its sessions end, and leave their counts
            asked = world.pg.value("SELECT coalesce(seq_scan, 0) + coalesce(idx_scan, 0) "
                                   "FROM pg_stat_user_tables WHERE relname = 'tokens'")
            self.assertLess(asked, client.answered - (answers + passed).count(429) / 2)

    def test_a_database_that_is_away_and_the_end_of_the_relay(self):
        with World(own_postgres=True) as world:
            relay = world.relay('one', extra=EXTRA)
            client = self.client(relay, token(world, 'reads', 'read'))
            world.wait_leader(relay)
            self.assertEqual(client.ask('GET', '/v1/cluster')[0], 200)
            world.pg.restart()
            proc.wait_for('200', lambda: client.ask('GET', '/v1/cluster')[0] == 200, 60)
            world.pg.stop()
            proc.wait_for('503', lambda: client.ask('GET', '/v1/cluster')[0] == 503, 30)
            self.assertEqual(relay.stop(), 0)

    def test_what_is_not_safe_is_refused_at_the_start(self):
        with World() as world:
            for extra, words in (('http:\n  listen: tcp:0.0.0.0:0\n',
                                  'can be reached from other machines'),
                                 ('http:\n  listen: tcp:127.0.0.1:0\n  cert_file: x\n',
                                  'belong together'),
                                 ('http:\n  listen: nowhere\n', 'nowhere')):
                relay = world.relay('bad', extra=extra)
                relay.wait_log(words)
                proc.wait_for('its end', lambda: not relay.alive(), 30)
