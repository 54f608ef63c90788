"""The commands' output: tables within 100 columns, typed JSON, filters, and a message for each
mistake."""
import contextlib
import json
import re
import socket
import ssl
import subprocess
import threading
import unittest

from harness import proc
from harness.cases import CaseWorld
from harness.chain import remark
from harness.relay import cli
from harness.world import World

TIME = r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$'


def types(line):
    return {k: type(v) for k, v in line.items() if v is not None}


class Reading(unittest.TestCase):
    """All tests share one world, because they only read."""

    @classmethod
    def setUpClass(cls):
        cls.world = world = CaseWorld()
        cls.addClassCleanup(world.close)
        cls.db = ('--database', world.pg.dsn)
        cls.good = world.put('good', key='k-1')
        cls.bad = world.enqueue_raw(b'\xff' * 8)
        world.wait_end(cls.good)
        world.wait_end(cls.bad)
        world.pg.query("SELECT txrelay.account_pause('alice', 'lunch \u00e9 ' || repeat('x', 200))")
        cls.later = world.put('later', creator=('$$shop$$',))

    def lines(self, *args):
        return [json.loads(x) for x in cli(*args, '--json', *self.db).stdout.splitlines()]

    def table(self, *args):
        done = cli(*args, *self.db)
        self.assertEqual(done.stderr, '')
        return done.stdout.splitlines()

    def test_json_has_types(self):
        line = self.lines('status', str(self.good))[0]
        self.assertEqual((line['id'], line['outcome'], line['key'], line['error']),
                         (self.good, 'ok', 'k-1', None))
        found = types(line)
        for name in ('id', 'nonce', 'attempts', 'block_number', 'age_s'):
            self.assertIs(found[name], int, name)
        for name in ('tip', 'fee'):  # JSON readers lose digits of such numbers
            self.assertRegex(line[name], r'^\d+$')
        for name in ('created_at', 'updated_at'):
            self.assertRegex(line[name], TIME)
        account = self.lines('accounts')[0]
        self.assertIs(account['paused'], True)
        self.assertRegex(account['heartbeat'], TIME)
        self.assertEqual({types(account)[n] for n in ('epoch', 'next_nonce', 'heartbeat_age_s')},
                         {int})
        blocked = self.lines('blocked')[0]
        self.assertEqual((blocked['account'], blocked['paused']), ('alice', True))
        attempt = self.lines('history', str(self.good))[0]
        self.assertEqual((attempt['attempt'], attempt['filler']), (1, False))
        self.assertRegex(attempt['created_at'], TIME)

    def test_tables_fit_and_wide_has_everything(self):
        for args in (('status',), ('accounts',), ('blocked',), ('history', str(self.good))):
            with self.subTest(args):
                narrow = self.table(*args)
                self.assertGreater(len(narrow), 1)
                self.assertLessEqual(max(map(len, narrow)), 100)
                self.assertEqual([x for x in narrow if x != x.rstrip()], [])
        for args in (('accounts',), ('blocked',)):
            self.assertIn('lunch \u00e9 ' + 'x' * 200, '\n'.join(self.table(*args, '--wide')))
            self.assertIn('..', '\n'.join(self.table(*args)))
        header = self.table('status', '--wide')[0].split()
        self.assertEqual(len(header), len(self.lines('status')[0]))
        self.assertEqual(self.table('status')[0].split(),
                         ['id', 'account', 'state', 'nonce', 'age', 'tries', 'fee', 'reason'])
        record = dict(line.split(None, 1) for line in self.table('status', str(self.good)))
        self.assertEqual((record['outcome'], record['account']), ('ok', 'alice'))
        self.assertRegex(record['age'], r'^\d+[smhd]$')
        self.assertIn(self.lines('status', str(self.good))[0]['hash'], record['hash'])

    def test_fee_is_seen_by_who_sees_the_transaction(self):
        fee = self.world.pg.value('SELECT fee FROM txrelay.finished_transactions WHERE id = %s',
                                  (self.good,))
        self.assertGreater(fee, 0)
        self.assertEqual(self.lines('status', str(self.good))[0]['fee'], str(fee))
        counted = [x for x in self.lines('status', '--count') if x['state'] == 'ok']
        self.assertEqual([(x['count'], x['fee'], x['stage']) for x in counted],
                         [(1, str(fee), 'finished')])

    def test_json_of_every_command_is_one_typed_object_a_line(self):
        """Of each command that has --json, as its help says."""
        db = self.world.pg
        relay = self.world.relays[0]
        cli('feed', 'create', 'prices', 'alice', '0x' + 64 * '1', *self.db)
        cli('token', 'create', 'shop', '--scope', 'read,enqueue', '--for', 'alice', *self.db)
        cli('webhook', 'create', 'hook', 'https://example.org/x', '--outcome', 'failed,ok',
            *self.db)
        cli('policy', 'alice', 'tip_cap=7', *self.db)
        self.addCleanup(cli, 'policy', 'alice', 'tip_cap=', *self.db)
        asked = {'status': ('status',), 'tail': None, 'wait': ('wait', str(self.good)),
                 'retry': ('retry', '--account', 'alice', '--dry-run'),
                 'history': ('history', str(self.good)), 'accounts': ('accounts',),
                 'blocked': ('blocked',), 'sites': ('sites',),
                 'policy': ('policy', 'alice'), 'feed': ('feed', 'show', 'prices'),
                 'token': ('token', 'list'),
                 'webhook': ('webhook', 'list'), 'top': ('top',),
                 'audit': ('audit', '--config', relay.config),
                 'check': ('check', '--config', relay.config), 'decode': None}
        listed = re.findall(r'^  ([a-z]+) ', cli('--help').stdout, re.M)
        self.assertGreater(len(listed), 20)
        self.assertEqual({c for c in listed if '--json' in cli(c, '--help').stdout}, set(asked))
        with open(f'{proc.ROOT}/docs/commands.md') as file:
            page = file.read().split('## Output for programs')[1].split('have `--json`')[0]
        self.assertEqual(set(re.findall('`([a-z]+)`', page)), set(asked))
        found = {}
        for command, args in asked.items():
            if args:
                said = cli(*args, '--json',
                           *(() if '--config' in args else self.db)).stdout.splitlines()
                found[command] = [json.loads(x) for x in said]
                self.assertTrue(all(isinstance(x, dict) for x in found[command]), command)
        self.assertEqual({c for c, lines in found.items() if not lines}, {'sites'})
        self.assertEqual((found['feed'][0]['publishers'], found['feed'][0]['options']),
                         (['0x' + 64 * '1'], {}))
        self.assertEqual((found['token'][0]['scopes'], found['token'][0]['accounts']),
                         (['enqueue', 'read'], ['alice']))
        self.assertEqual((found['webhook'][0]['outcomes'], found['webhook'][0]['accounts']),
                         (['failed', 'ok'], None))
        self.assertEqual(cli('webhook', 'list', *self.db).stdout.splitlines()[1].split()[3],
                         'failed,ok')
        self.assertEqual(db.value('SELECT count(*) FROM txrelay.feeds'), 1)

    def test_the_keys_of_a_policy_are_where_they_are_needed(self):
        refused = cli('policy', 'alice', 'nix=1', *self.db, check=False).stderr
        keys = re.findall(r'[a-z_]+', refused.split('The keys are ')[1].replace(' and ', ' '))
        self.assertIn('outbox_max', keys)
        shown = cli('policy', '--help').stdout
        with open(f'{proc.ROOT}/docs/config.md') as file:
            page = file.read()
        for key in keys:
            self.assertIn(key, shown)
            self.assertIn(f'`{key}`', page)

    def test_nothing_is_too_wide_or_escapes(self):
        said = cli('audit', '--config', self.world.relays[0].config).stdout
        table = [x for x in said.splitlines() if x.startswith(('account ', 'alice '))]
        self.assertLessEqual(max(map(len, table)), 100, said)
        self.assertEqual(table[0].split(), ['account', 'day', 'creator', 'ok', 'failed', 'filler',
                                            'foreign', 'open', 'fees', 'foreign_fees'])

    def test_what_both_streams_say_is_in_order(self):
        """A file that gets both has the outcome above the text that refers to it."""
        path = f'{self.world.dir}/both.log'
        with open(path, 'w') as file:
            done = subprocess.run([proc.TXRELAY, 'wait', str(self.bad), *self.db], stdout=file,
                                  stderr=file, timeout=60)
        self.assertEqual(done.returncode, 4)
        with open(path) as file:
            lines = file.read().splitlines()
        self.assertIn('its outcome is above', lines[-1])
        self.assertIn('outcome=failed', lines[-2])

    def test_filters(self):
        first = self.lines('status', str(self.good))[0]
        for args, ids in (
                ((), [self.later, self.bad, self.good]),
                (('--account', 'alice'), [self.later, self.bad, self.good]),
                (('--account', self.world.address()), [self.later, self.bad, self.good]),
                (('--outcome', 'failed'), [self.bad]), (('--state', 'outbox'), [self.later]),
                (('--state', 'queued'), [self.later]),
                (('--state', 'finished', '--outcome', 'ok'), [self.good]),
                (('--key', 'k-1'), [self.good]), (('--creator', 'shop'), [self.later]),
                (('--until', first['created_at']), []),
                (('--since', first['created_at'], '--limit', '2'), [self.later, self.bad]),
                (('--hash', first['hash']), [self.good])):
            with self.subTest(args):
                self.assertEqual([x['id'] for x in self.lines('status', *args)], ids)
        empty = cli('status', '--key', 'none', *self.db)
        self.assertEqual((empty.stdout, empty.stderr), ('', 'txrelay: no transaction matches\n'))
        counts = {(x['account'], x['stage'], x['state']): x['count']
                  for x in self.lines('status', '--count')}
        self.assertEqual(counts,
                         {('alice', 'outbox', 'queued'): 1, ('alice', 'finished', 'failed'): 1,
                                  ('alice', 'finished', 'ok'): 1})
        self.assertEqual([x['alias'] for x in self.lines('accounts', '--account', 'alice')],
                         ['alice'])
        self.assertEqual(len(self.lines('blocked', '--account', 'alice')), 1)

    def test_an_account_that_there_is_not(self):
        for command in ('status', 'accounts', 'blocked', 'sites'):
            done = cli(command, '--account', 'alise', *self.db, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ''), command)
            for word in ('alise', 'Nearest: alice'):
                self.assertIn(word, done.stderr)


class Blocked(unittest.TestCase):
    def test_nothing_is_printed_when_nothing_is_blocked(self):
        with World() as world:
            world.wait_leader(world.relay('one'))
            done = cli('blocked', '--database', world.pg.dsn)
            self.assertEqual((done.stdout, done.stderr), ('', ''))


class Sites(unittest.TestCase):
    """What is recorded of an account with sites. No relay records that yet, so the test fills the
    tables."""

    def test_members_who_coordinates_since_when_and_why(self):
        with World() as world:
            relay = world.relay('one')
            world.wait_leader(relay)
            db = ('--database', world.pg.dsn)
            done = cli('sites', *db)
            self.assertEqual((done.stdout, done.stderr), ('', 'txrelay: no account has sites\n'))
            world.pg.query("""
                INSERT INTO txrelay.site_peers (account, member, name, address, key, next_nonce,
                down)
                    SELECT a.account, u.m, u.n, u.a, a.account_id, 5, u.m = 2
                    FROM txrelay.accounts a,
                        (VALUES (0, 'north', ''), (1, 'south', 'south:9944'), (2, 'east',
                        'east:9944')) u (m, n, a)
                    WHERE a.alias = 'alice';
                INSERT INTO txrelay.site_accounts (account, self, own_keys, sticky,
                silence_is_down, range_blocks, era_blocks, approvals,
                        final, state, coordinator, since_height, reason, noted_at, noted_epoch)
                    SELECT l.subject, 0, false, true, false, 1000, 64, 0, 100, 'OBSERVING', 1, 91,
                    'its range', now(), l.epoch
                    FROM txrelay.leadership l JOIN txrelay.accounts a ON a.account = l.subject
                    WHERE a.alias = 'alice'""")
            lines = [json.loads(x) for x in cli('sites', '--json', '--account', 'alice',
                                                *db).stdout.splitlines()]
            self.assertEqual([(x['site'], x['self'], x['coordinates'], x['away'], x['address'])
                              for x in lines],
                             [('north', True, False, False, ''),
                              ('south', False, True, False, 'south:9944'),
                              ('east', False, False, True, 'east:9944')])
            self.assertEqual({(x['coordinator'], x['since'], x['reason'], x['policy'])
                              for x in lines}, {('south', 91, 'its range', 'sticky')})
            table = cli('sites', *db).stdout.splitlines()
            self.assertEqual((table[0].split(), len(table)),
                             (['account', 'site', 'self', 'coordinates', 'away', 'since', 'reason'],
                              4))
            relay.stop()  # nobody leads: what the former leader saw says nothing
            lines = [json.loads(x) for x in cli('sites', '--json', *db).stdout.splitlines()]
            self.assertEqual({(x['coordinator'], x['since'], x['reason'], x['coordinates'])
                              for x in lines}, {(None, None, None, False)})


class Acting(unittest.TestCase):
    def test_a_statement_that_waits_says_so(self):
        with World() as world:
            world.wait_leader(world.relay('one'))
            holder = world.pg.connect(autocommit=False)
            with holder.cursor() as cur:
                cur.execute("SELECT FROM txrelay.accounts WHERE alias = 'alice' FOR UPDATE")
                held = proc.Process([proc.TXRELAY, 'pause', 'alice', 'x', '--database',
                                     world.pg.dsn], f'{world.dir}/pause.log')
                proc.wait_for('to be told', lambda: 'has not answered for 5 s' in held.text(), 60)
            holder.rollback()
            proc.wait_for('to go on', lambda: 'alice is paused' in held.text(), 60)

    def test_pause_resume_and_why_a_transaction_waits(self):
        with CaseWorld() as world:
            db = ('--database', world.pg.dsn)
            self.assertIn('alice is paused', cli('pause', 'alice', 'lunch', *db).stdout)
            tx = world.enqueue('later')
            self.assertIn('lunch', cli('blocked', *db).stdout)
            late = cli('wait', str(tx), '--timeout', '5', *db, check=False)
            self.assertEqual(late.returncode, 3)
            for word in (f'transaction {tx} is not finalized', 'why', 'paused: lunch'):
                self.assertIn(word, late.stderr)
            self.assertEqual(cli('resume', 'alice', *db).stdout, 'alice goes on\n')
            self.assertEqual(cli('resume', 'alice', *db).stdout, 'alice was not paused\n')
            self.assertEqual(cli('wait', str(tx), '--timeout', '60', *db).returncode, 0)
            self.assertRegex(cli('reconcile', 'alice', '--block', '0', *db).stdout,
                             'alice: .* from block 0 on')
            self.assertEqual(world.pg.value('SELECT reconcile_from IS NOT NULL OR epoch > 1 '
                                            'FROM txrelay.accounts JOIN '
                                            'txrelay.leadership ON subject = account'), True)

    def test_retry(self):
        with CaseWorld() as world:
            db = ('--database', world.pg.dsn)
            cli('pause', 'alice', 'to cancel', *db)
            one, two, three = (world.put(x, creator=('$$shop$$',)) for x in ('one', 'two', 'three'))
            for tx in (one, two):
                self.assertEqual(cli('cancel', str(tx), *db).stdout, 'cancelled\n')
            refused = cli('retry', str(one), str(three), *db, check=False)
            self.assertEqual((refused.returncode, refused.stdout), (1, ''))
            self.assertIn(f'{three}, which has not ended', refused.stderr)
            self.assertEqual(world.pg.value('SELECT count(*) FROM txrelay.retries'), 0)
            listed = cli('retry', '--creator', 'shop', '--dry-run', '--json',
                         *db).stdout.splitlines()
            self.assertEqual([json.loads(x)['id'] for x in listed], [one, two])
            first = cli('retry', str(one), *db).stdout
            self.assertRegex(first, rf'^{one} -> \d+$')
            self.assertEqual(cli('retry', str(one), *db).stdout, first)
            new = int(first.split()[-1])
            self.assertIn(f'retry_of      {one}\n', cli('status', str(new), *db).stdout)
            order = {'cmd': 'retry', 'id': one}
            self.assertEqual(world.relays[0].control(order), {'id': new})
            late = world.relays[0].control({**order, 'deadlin': 'infinity'})
            self.assertIn('has no field "deadlin"', late['text'])
            four = world.put('four', deadline=("clock_timestamp() + interval '2 s'",))
            world.wait_end(four)
            order = {'cmd': 'retry', 'id': four}
            self.assertIn('deadline of transaction', world.relays[0].control(order)['text'])
            answer = world.relays[0].control({**order, 'deadline': 'infinity', 'deadline_block': 0})
            self.assertEqual(list(answer), ['id'], answer)
            fifth = answer['id']
            self.assertEqual(cli('retry', str(four), *db).stdout, f'{four} -> {fifth}\n')
            bulk = cli('retry', '--account', 'alice', '--outcome', 'cancelled',
                       *db).stdout.splitlines()
            self.assertEqual([x.split(' -> ')[0] for x in bulk], [str(two)])
            again = cli('retry', '--account', 'alice', *db)
            self.assertEqual(again.stdout, '')
            self.assertIn('nothing to retry matches', again.stderr)
            cli('resume', 'alice', *db)
            for tx in (new, int(bulk[0].split()[-1]), three, fifth):
                self.assertEqual(world.wait_end(tx), ('ok', None))
            self.assertEqual(world.end(one)[0], 'cancelled')

    def test_migrate_dry_run(self):
        with World() as world:
            bare = world.pg.sibling(f'dry{world.number}')
            db = ('--database', bare.dsn)
            last = world.pg.value('SELECT max(version) FROM txrelay.schema_version')
            plan = cli('migrate', '--dry-run', *db).stdout.splitlines()
            self.assertEqual(plan[0], 'would apply migrations/0001_init.sql')
            self.assertEqual((len(plan), plan[-1]),
                             (last + 1, 'would apply all functions, views, triggers and rights'))
            self.assertIsNone(bare.value("SELECT to_regnamespace('txrelay')"))
            cli('migrate', *db)
            self.assertEqual(cli('migrate', '--dry-run', *db).stdout,
                             f'schema version {last}: nothing to do\n')
            bare.query('DROP FUNCTION txrelay.retry')
            self.assertEqual(cli('migrate', '--dry-run', *db).stdout, plan[-1] + '\n')
            self.assertEqual(bare.value("SELECT count(*) FROM pg_proc WHERE proname = 'retry'"), 0)

    def test_top(self):
        with World() as world:
            world.wait_leader(world.relay('one'))
            done = cli('top', '--database', world.pg.dsn)
            self.assertEqual(done.stdout.splitlines()[0].split()[:4],
                             ['account', 'queued', 'pending', 'oldest'])
            self.assertEqual(len(done.stdout.splitlines()), 2)
            twice = cli('top', '--times', '2', '--interval', '1', '--json', '--database',
                        world.pg.dsn).stdout.splitlines()
            self.assertEqual([json.loads(x)['account'] for x in twice], ['alice', 'alice'])


# A command line, its exit code, and texts that the message must hold: the thing, the value, the way
# out. DB is a database with the schema, BARE one without it. APP and NOBODY reach the database of
# DB with other logins.
MISTAKES = (
    (('statsu',), 2, ("'statsu'", 'near: status', 'txrelay COMMAND --help')),
    (('help', 'acounts'), 2, ("'acounts'", 'near: accounts')),
    (('audit', 'DB'), 2, ('no chain node is given', '--endpoint')),
    (('status', '--foo'), 2, ("'--foo'", '--help')),
    (('cancel',), 2, ('the id is missing', 'that enqueue printed')),
    (('status', 'abc'), 2, ('the id', "'abc'", 'the number that enqueue printed')),
    (('wait', 'abc'), 2, ('the id', "'abc'", 'the number that enqueue printed')),
    (('status', '99999999999999999999'), 2,
     ('the id', "'99999999999999999999'", 'from 1 to 9223372036854775807')),
    (('bump', '0'), 2, ('the id', "'0'", 'from 1 to')),
    (('status', '--limit', 'ten'), 2, ('--limit', "'ten'", 'whole number from 1 to')),
    (('status', '--limit', '0'), 2, ('--limit', "'0'", 'whole number from 1 to')),
    (('status', '--outcome', 'faild'), 2, ('--outcome', "'faild'", 'near: failed')),
    (('status', '--state', 'waiting'), 2, ('--state', "'waiting'", 'outbox, pending, finished')),
    (('status', '--since', 'monday'), 2,
     ('--since', "'monday'", 'a time like 2026-01-31T12:00:00Z')),
    (('status', '1', '--account', 'alice'), 2, ('--account', "'alice'", 'leave it out')),
    (('status', '--count', '--limit', '3'), 2, ('--limit', '--count', 'leave it out')),
    (('status', '--account', 'nobody', 'DB'), 1, ('no such account', '"nobody"', 'registered')),
    (('status', '--endpoint', 'ws://x'), 2, ('--endpoint', '--help')),
    (('keys', 'show', '/nowhere', '--prefix', '2x'), 2, ('--prefix', "'2x'", 'from 0 to 16383')),
    (('keys', 'list', '/nowhere'), 2, ('verb', "'list'", 'new or show')),
    (('wait', '1', '--timeout', 'soon'), 2, ('--timeout', "'soon'", 'number of seconds')),
    (('wait', '1', '--for', 'ever'), 2, ('--for', "'ever'", 'finalized, in_block, ended')),
    (('tail', '--id', 'x'), 2, ('--id', "'x'", 'whole number from 1 to')),
    (('status', '--database', 'host=127.0.0.1 port=1'), 1,
     ('127.0.0.1', 'port 1', 'start the server, or correct --database')),
    (('status', '--database', 'hosst=x'), 2,
     ('database.url', 'hosst', 'invalid connection option')),
    (('status', 'MISSING'), 1, ('database', '"nosuch"', 'create it (createdb), or correct '
                                                        '--database')),
    (('status', 'BARE'), 1, ('database bare', 'no txrelay schema', 'run txrelay migrate')),
    (('accounts', 'BARE'), 1, ('database bare', 'no txrelay schema', 'run txrelay migrate')),
    (('enqueue', 'alice', '0x00', 'BARE'), 1,
     ('database bare', 'no txrelay schema', 'run txrelay migrate')),
    (('tail', 'BARE'), 1, ('no txrelay schema', 'run txrelay migrate')),
    (('wait', '1', 'BARE'), 1, ('no txrelay schema', 'run txrelay migrate')),
    (('status', 'NOBODY'), 1, ('schema txrelay', 'user mistaken', 'GRANT txrelay_follower TO '
                                                                  'mistaken')),
    (('enqueue', 'alice', '0x00', 'NOBODY'), 1,
     ('schema txrelay', 'user mistaken', 'GRANT txrelay_app TO mistaken')),
    (('policy', 'alice', 'NOBODY'), 1,
     ('schema txrelay', 'user mistaken', 'GRANT txrelay_relay TO mistaken')),
    (('enqueue', 'alice', '0x000', 'DB'), 2, ('the call', "'0x000'", 'two digits for each byte')),
    (('keys', 'show', '/nowhere'), 1, ('key file', '/nowhere', 'correct the path, or make one')),
    (('encode', '--list', '--node', 'ws://127.0.0.1:1'), 1,
     ('ws://127.0.0.1:1', 'refused', 'start the node')),
    (('drain', '--to', 'unix:/nowhere.sock'), 1,
     ('unix:/nowhere.sock', 'no relay answers', 'control endpoint')),
    (('migrate', 'NOTMINE'), 1, ('permission denied', 'user mistaken', 'GRANT CREATE ON DATABASE')),
    (('pause', 'alice'), 2, ('the reason is missing', 'txrelay blocked')),
    (('pause', 'alise', 'lunch', 'DB'), 1, ('no such account', '"alise"', 'registered')),
    (('pause', 'alice', 'lunch', 'NOBODY'), 1,
     ('schema txrelay', 'user mistaken', 'GRANT txrelay_relay TO mistaken')),
    (('reconcile', 'alice', '--block', 'last'), 2, ('--block', "'last'", 'whole number from 0')),
    (('retry',), 2, ('nothing says which', '--account')),
    (('retry', 'x'), 2, ('the id', "'x'", 'the number that enqueue printed')),
    (('retry', '1', '--account', 'alice'), 2, ('ids', 'filter', 'either')),
    (('retry', '1', '--deadline', 'soon'), 2, ('--deadline', "'soon'", 'a time like')),
    (('retry', '1', 'DB'), 1, ('retry: id is 1', 'no such transaction', 'ended without effect')),
    (('top', '--interval', '0'), 2, ('--interval', "'0'", 'whole number from 1')),
    (('feed', 'show', 'prices', 'DB'), 1, ('no such feed', '"prices"', 'txrelay feed list')),
    (('feed', 'pause', 'prices', 'lunch', 'DB'), 1,
     ('no such feed', '"prices"', 'feed_create creates one')),
    (('webhook', 'dead', 'hook', 'DB'), 1, ('no such webhook', '"hook"', 'webhook list')),
    (('token', 'revoke', 'shop', 'DB'), 1, ('token', 'shop')),
    (('history', '7', 'DB'), 1, ('signed attempt', '7', 'txrelay status')),
    (('status', '7', 'DB'), 1, ('transaction', '7', 'kept for the retention time')),
    (('encode', '--list', '--node', '@BANNER'), 1,
     ('@BANNER', 'it is no node, or it wants TLS (wss://)', 'correct --node')),
    (('encode', '--list', '--node', '@WEB'), 1,
     ('@WEB', 'a web server answers there, and no node (HTTP status 200)',
      'correct the port or the path')),
    (('encode', '--list', '--node', '@TLS'), 1,
     ('@TLS', 'it is no node, or it wants TLS (wss://)', 'correct --node')),
    (('encode', '--list', '--node', '@WSS-WEB'), 1,
     ('@WSS-WEB', 'speaks no TLS at this port (ws://)', 'correct --node')),
    (('encode', '--list', '--node', '@WSS-TLS'), 1,
     ('@WSS-TLS', 'its certificate is refused: self-signed certificate', 'correct --node')),
    (('encode', '--list', '--node', '127.0.0.1:9944'), 2,
     ('"127.0.0.1:9944"', 'has another scheme', 'write ws://host:port or wss://host:port')),
    (('encode', 'Balnces.transfer', '[]', '--node', '@NODE'), 1,
     ('no such pallet', "'Balnces'", 'near: Balances')),
    (('encode', 'System.remark', 'hello', '--node', '@NODE'), 1,
     ('System.remark: the arguments', "'hello'", 'in double quotes')),
    (('run', 'CONFIG-PORT'), 1, ('cannot listen on tcp:@PORT', 'address already in use',
                                 'stop the program that has it')),
    # What a configuration says is wrong at the database or on the chain: by check, and by run,
    # whose log has the reason once.
    (('check', 'CONFIG-NOBODY'), 1, ('BAD   rights', 'login mistaken', 'GRANT txrelay_relay TO '
                                                                       'mistaken')),
    (('run', 'CONFIG-NOBODY'), 1, ('code=DB_DENIED', 'login mistaken may not read the txrelay '
                                                     'schema', 'GRANT txrelay_relay TO mistaken')),
    (('check', 'CONFIG-BARE'), 1,
     ('BAD   schema', 'database has no txrelay schema', 'run txrelay migrate')),
    (('run', 'CONFIG-BARE'), 1,
     ('code=DB_SCHEMA', 'database has no txrelay schema', 'run txrelay migrate')),
    (('check', 'CONFIG-PREFIX'), 0, ('warn  account', 'alice: its address has the SS58 prefix 0',
                                     "the chain's is 42", 'write 5Grw')),
    (('wait', 'UNFUNDED', '--timeout', '1', 'POOR'), 3,
     ('why transaction UNFUNDED is not done: payment', 'cannot pay for nonce 0', 'fund ADDRESS')),
)


# A configuration, and texts that the message must hold. The third entry is the "line: L, column: C"
# that it names.
CONFIGS = (
    ('name: r\nchain:\n  endpoints:\n    - ws://x\nacounts:\n  - alias: a\n',
     ("'acounts'", 'near: accounts'), (5, 1)),
    ('chain:\n  endpoints:\n    - ws://x\n  genesi: 1\n', ("'genesi'", 'near: genesis'), (4, 3)),
    ('manager:\n  window: many\n', ('manager.window', "'many'", 'whole number'), (2, 11)),
    ('manager:\n  window: -5\n', ('manager.window', "'-5'", 'whole number'), (2, 11)),
    ('manager:\n  window: 0\n', ('manager.window', '0', 'from 1 to 1000000'), None),
    ('chain:\n  insecure: flase\n', ('chain.insecure', "'flase'", 'true or false'), None),
    ('chain:\n  endpoints:\n    - ""\n', ('chain.endpoints[1]', 'is empty', 'give it a value'),
     (3, 7)),
    ('chain:\n  endpoints: ws://x\n', ('chain.endpoints', 'must be a list', 'a line of its own'),
     (2, 14)),
    ('chain: x\n', ('chain', 'must be a section', 'write its keys below it'), (1, 8)),
    ('name: r\nchain:\n\tendpoints: x\n', ('behind this place', 'not with tabs'), (2, 1)),
    ('accounts:\n  - scheme: sr25519\n', ('accounts[1]', 'has no key alias', 'add it'), (2, 13)),
    ('name: r\nname: s\n', ('name', 'twice', 'remove one'), (1, 7)),
)


def server(answer, tls=None):
    """A port where `answer` is all that a client gets for its first bytes."""
    listener = socket.create_server(('127.0.0.1', 0))

    def serve():
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return  # closed
            with peer, contextlib.suppress(OSError):
                peer = tls.wrap_socket(peer, server_side=True) if tls else peer
                peer.recv(4096)
                peer.sendall(answer)
                peer.close()

    threading.Thread(target=serve, daemon=True).start()
    return listener


def self_signed(folder):
    proc.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout',
              f'{folder}/key', '-out', f'{folder}/cert',
              '-days', '2', '-subj', '/CN=localhost'])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f'{folder}/cert', f'{folder}/key')
    return context


ALICE_ON_POLKADOT = '15oF4uVJwmo4TdGW7VfQxNLavjCXviqxT9S1MgbjMNHr6Sp5'


class Mistakes(unittest.TestCase):
    def test_each_in_a_configuration(self):
        folder = proc.make_dir('txc-')
        for n, (text, words, place) in enumerate(CONFIGS):
            path = f'{folder}/{n}.yaml'
            with open(path, 'w') as file:
                file.write(text)
            done = cli('check', '--config', path, check=False)
            with self.subTest(text):
                self.assertEqual(done.returncode, 2, done.stderr)
                for word in (path, *words, *(['line: %u, column: %u' % place] if place else [])):
                    self.assertIn(word, done.stderr)
                self.assertLess(len(done.stderr), 299)  # nothing was cut

    def test_each_says_the_thing_the_value_and_the_way_out(self):
        with World() as world, World() as poor:
            bare = world.pg.sibling(f'bare{world.number}')
            world.pg.query('DROP ROLE IF EXISTS mistaken')
            world.pg.query('CREATE ROLE mistaken LOGIN')
            self.addCleanup(world.pg.query, 'DROP ROLE mistaken')
            places = {'DB': world.pg.dsn, 'BARE': bare.dsn,
                      'NOBODY': world.pg.dsn + ' user=mistaken',
                      'MISSING': world.pg.dsn + ' dbname=nosuch',
                      'NOTMINE': bare.dsn + ' user=mistaken', 'POOR': poor.pg.dsn}
            named = {'database bare': f'database bare{world.number}', **self.endpoints(),
                     **self.unfunded(poor)}
            configs = {f'CONFIG-{name}': world.relay(name, start=False,
                                                     dsn=places.get(name, world.pg.dsn)).config
                       for name in ('NOBODY', 'BARE', 'PREFIX')}
            taken = socket.create_server(('127.0.0.1', 0))
            self.addCleanup(taken.close)
            named.update({'@NODE': world.chain.ws,
                          '@PORT': '127.0.0.1:%d' % taken.getsockname()[1]})
            configs['CONFIG-PORT'] = self.standalone(world.relay('PORT', start=False,
                                                                 listen=f"tcp:{named['@PORT']}"))
            with open(configs['CONFIG-PREFIX'], 'a') as file:
                file.write(f'    account: {ALICE_ON_POLKADOT}\n')
            for args, code, words in MISTAKES:
                line = [y for x in args for y in (('--database', places[x]) if x in places else
                                                  ('--config', configs[x]) if x in configs
                                                  else (self.filled(x, named),))]
                with self.subTest(' '.join(args)):
                    done = cli(*line, check=False)
                    self.assertEqual(done.returncode, code, done.stderr)
                    said = done.stdout + done.stderr
                    self.assertTrue(args[0] in ('check', 'wait') or not done.stdout, done.stdout)
                    for word in words:
                        self.assertIn(self.filled(word, named), said)
                    if args[0] == 'run':
                        self.assertEqual((said.count(words[1]),
                                          said.count('until the database is back')), (1, 0), said)

    def test_times_that_only_the_database_can_judge(self):
        """Each option of each command that takes one: wrong usage, with the option and the
        value."""
        with CaseWorld() as world:
            db = ('--database', world.pg.dsn)
            cli('pause', 'alice', 'to cancel', *db)
            tx = world.enqueue('ends')
            world.pg.value('SELECT txrelay.cancel(%s)', (tx,))
            for command, options in ((('enqueue', 'alice', '0x00000478'),
                                      ('--not-before', '--deadline', '--delay', '--expires-in')),
                                     (('retry', str(tx)), ('--deadline',)),
                                     (('token', 'create', 'x', '--scope', 'read'), ('--expires',))):
                for option in options:
                    for value in ('yesterdayish', '2026-13-45', '12 parsecs'):
                        with self.subTest(command=command[0], option=option, value=value):
                            done = cli(*command, f'{option}={value}', *db, check=False)
                            self.assertEqual(done.returncode, 2, done.stderr)
                            self.assertIn(option, done.stderr)
                            self.assertIn(value, done.stderr)
            self.assertEqual(world.pg.query('SELECT count(*) FROM txrelay.outbox'), [(0,)])
            self.assertEqual(world.pg.query('SELECT count(*) FROM txrelay.tokens'), [(0,)])

    def standalone(self, relay):
        """Its configuration, without the database: the control endpoint is the only entry."""
        with open(relay.config) as file:
            text = file.read()
        with open(relay.config, 'w') as file:
            file.write(re.sub(r'database:\n  url: .*\n', '', text))
        return relay.config

    def filled(self, text, named):
        for name, value in named.items():
            text = text.replace(name, value)
        return text

    def endpoints(self):
        """No nodes: a banner, a web server, TLS; WSS asks them by TLS."""
        urls, folder = {}, proc.make_dir('txt-')
        for name, answer, tls in (('BANNER', b'SSH-2.0-x\r\n', None),
                                  ('WEB', b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', None),
                                  ('TLS', b'', self_signed(folder))):
            listener = server(answer, tls)
            self.addCleanup(listener.close)
            address = '127.0.0.1:%d' % listener.getsockname()[1]
            urls[f'@WSS-{name}'], urls[f'@{name}'] = f'wss://{address}', f'ws://{address}'
        return urls

    def unfunded(self, world):
        """A transaction of an account that has nothing, once its leader has found that out."""
        relay = world.relay('poor', accounts=[('poor', 'sr25519', '//Nothing')])
        world.wait_leader(relay, 'poor')
        tx = world.pg.value("SELECT txrelay.enqueue('poor', %s)", [remark('too dear')])
        proc.wait_for('the suspension',
                      lambda: world.pg.value(
                          "SELECT suspension FROM txrelay.accounts WHERE alias = 'poor'"))
        return {'UNFUNDED': str(tx), 'ADDRESS': world.pg.value("SELECT address FROM "
                                                               "txrelay.accounts WHERE alias = "
                                                               "'poor'")}


if __name__ == '__main__':
    unittest.main()
