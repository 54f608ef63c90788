"""Bad input: each a clear error that names the thing, the value and the way out, with nothing
lost."""
import json
import os
import re
import signal
import socket
import subprocess
import unittest

import psycopg2

from harness import proc
from harness.chain import Devchain, remark
from harness.relay import Relay, cli
from harness.world import ALICE, World


class BadInput(unittest.TestCase):
    def test_wrong_usage_of_every_command(self):
        """An option or a word that a command does not have ends it with 2 and is named; --help
        works everywhere."""
        listing = cli('help').stdout.split('usage:')[1].splitlines()
        commands = [line.split()[0] for line in listing if line.startswith('  ') and line.strip()]
        self.assertGreaterEqual(len(commands), 17)
        for command in commands:
            with self.subTest(command=command):
                done = cli(command, '--no-such-option', check=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn('no-such-option', done.stderr)
                done = cli(command, *(['word'] * 70), check=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn('word', done.stderr)
                self.assertIn(command, cli(command, '--help').stdout)

    def test_output_that_is_lost_is_a_failure(self):
        """Of every command's help, and of what prints by itself; a reader that has enough is
        none."""
        commands = [line.split()[0] for line in cli('help').stdout.split('usage:')[1].splitlines()
                    if line.startswith('  ') and line.strip()]
        for line in [['--version'], ['--help'],
                     ['help']] + [[command, '--help'] for command in commands]:
            with self.subTest(line=line):
                with open('/dev/full', 'w') as full:
                    done = subprocess.run([proc.TXRELAY, *line], stdout=full,
                                          stderr=subprocess.PIPE, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr),
                                 (1, 'txrelay: standard output could not be written: No space left '
                                     'on device\n'))
        done = subprocess.run(['bash', '-c',
                               f'set -o pipefail; {proc.TXRELAY} --help | (exec <&-)'],
                               stderr=subprocess.PIPE, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b''))

    def test_descriptors_that_the_caller_closed(self):
        """No file or socket takes the place of standard input, output or error, and nothing is
        printed into one."""
        with World() as world:
            relay = world.relay('one', start=False)
            db = ('--database', world.pg.dsn)
            tx = None
            for epoch, closed in enumerate (('<&-', '>&-', '2>&-', '<&- >&- 2>&-'), 1):
                def started(*args):
                    return subprocess.Popen(['bash', '-c', f'exec "$@" {closed}', 'sh',
                                             proc.TXRELAY, *args],
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                            text=True)
                key = f'{world.dir}/new-{closed}.key'.replace(' ', '')
                running = started('run', '--config', relay.config)
                try:
                    proc.wait_for('a leader',
                                  lambda: f'"epoch":{epoch},' in cli('accounts', '--json',
                                                                     *db).stdout)
                    tx = tx or world.enqueue('one')
                    for args in (('keys', 'new', key), ('status', *db), ('accounts', *db),
                                 ('wait', str(tx), *db),
                                 ('audit', '--config', relay.config),
                                 ('check', '--config', relay.config), ('top', *db),
                                 ('encode', '--list', '--node', world.chain.ws),
                                 ('metrics', '--to', relay.address)):
                        with self.subTest(closed=closed, command=args[0]):
                            child = started(*args)
                            said, errors = child.communicate(timeout=60)
                            lost = '>&-' in closed.replace('2>&-', '')
                            self.assertEqual(child.returncode, 1 if lost else 0, errors)
                            self.assertEqual('standard output could not be written' in errors,
                                             lost and '2>&-' not in closed, errors)
                            self.assertEqual(bool(said), not lost)
                    with open(key) as file:
                        self.assertEqual(len(file.read().splitlines()), 1)
                finally:
                    running.terminate()
                    running.communicate(timeout=60)
                self.assertEqual(running.returncode, 0, closed)

    def test_a_reader_that_has_enough(self):
        """No failure, and a command that would go on ends."""
        with World() as world:
            world.wait_leader(world.relay('one'))
            for command in ('top --times 100000 --interval 1', 'status'):
                for _ in range(3):
                    world.enqueue(command)
                done = subprocess.run(['bash', '-c', f'{proc.TXRELAY} {command} --database "$0" | '
                                                     f'head -n 1; echo "${{PIPESTATUS[0]}}"',
                                       world.pg.dsn], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, timeout=60, check=False)
                self.assertEqual(done.stdout.splitlines()[-1], '0', done)
                self.assertNotIn('could not be written', done.stderr)

    def test_unknown_account(self):
        with World() as world:
            relay = world.relay('one')
            world.wait_leader(relay)
            with self.assertRaises(psycopg2.Error) as caught:
                world.pg.query('SELECT txrelay.enqueue(%s, %s)', ('alicia', remark('x')))
            self.assertEqual(caught.exception.pgcode, 'TR010')
            self.assertIn('alicia', str(caught.exception))
            self.assertIn('alice', str(caught.exception))
            done = cli('enqueue', 'alicia', '0x0000', '--database', world.pg.dsn, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn('alicia', done.stderr)

    def test_call_that_does_not_decode(self):
        """It ends as failed with the place where it stops; the ones around it go through."""
        with World() as world:
            world.relay('one')
            proc.wait_for('the account to exist',
                          lambda: world.pg.value('SELECT count(*) FROM txrelay.accounts'))
            world.enqueue('good before')
            bad = [world.enqueue_raw(c) for c in (b'\xfe\x00', b'\x00\x00\xff\xff',
                                                  remark('cut')[:-1], remark('long') + b'\x00')]
            world.enqueue('good after')
            figures = world.settle()
            self.assertEqual((figures['finalized'], figures['failed']), (2, 4))
            for tx in bad:
                outcome, error = world.pg.query(
                    'SELECT outcome, error FROM txrelay.finished_transactions WHERE id = %s',
                    (tx,))[0]
                self.assertEqual(outcome, 'failed')
                self.assertTrue(error)

    def test_wrong_key_for_the_account(self):
        with World() as world:
            relay = world.relay('one', start=False)
            with open(relay.config) as file:
                text = file.read()
            with open(relay.config, 'w') as file:
                file.write(text.replace('scheme: sr25519', 'scheme: sr25519\n    '
                                       'account: 5FHneW46xGXgs5mUiveU4sbTyGBzmstUspZC92UhjJM694ty'))
            done = cli('run', '--config', relay.config, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn('5FHneW46xGXgs5mUiveU4sbTyGBzmstUspZC92UhjJM694ty', done.stderr)
            self.assertIn('alice.key', done.stderr)

    def test_key_file_open_to_others(self):
        with World() as world:
            relay = world.relay('one', start=False)
            os.chmod(f'{world.dir}/alice.key', 0o644)
            done = cli('run', '--config', relay.config, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn('chmod 600', done.stderr)

    def test_wrong_genesis(self):
        with World() as world:
            relay = world.relay('one', start=False)
            wrong = '0x' + '11' * 32
            with open(relay.config) as file:
                text = file.read()
            with open(relay.config, 'w') as file:
                file.write(text.replace('chain:\n', f'chain:\n  genesis: "{wrong}"\n'))
            done = cli('check', '--config', relay.config, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(wrong[2:10], done.stdout)
            self.assertIn(world.chain.rpc('chain_getBlockHash', 0)[2:10], done.stdout)

    def test_alias_of_another_chain(self):
        """The same alias on a chain with another genesis is refused at registration, and nothing
        is overwritten."""
        with World() as world:
            first = world.relay('one')
            world.wait_leader(first)
            other_dir = proc.make_dir('txo-')
            other = Devchain(other_dir, '--block-ms', '100', '--fund',
                             '5FHneW46xGXgs5mUiveU4sbTyGBzmstUspZC92UhjJM694ty=12345')
            self.assertNotEqual(other.rpc('chain_getBlockHash', 0),
                                world.chain.rpc('chain_getBlockHash', 0))
            stranger = Relay(other_dir, 'stranger', world.pg.dsn, [other.ws], [ALICE])
            done = cli('register', '--config', stranger.config, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn('account alice is registered for the chain with genesis', done.stderr)
            stranger.start()
            stranger.wait_log('chain.none.*every endpoint is of another chain')
            world.enqueue('still fine')
            world.settle()
            self.assertNotIn('leader.acquired', stranger.text())
            stranger.kill()

    def test_config_typo_names_file_line_column(self):
        with World() as world:
            relay = world.relay('one', start=False)
            with open(relay.config) as file:
                lines = file.read().splitlines()
            at = next(i for i, line in enumerate(lines) if line.startswith('chain:'))
            lines[at + 1] = '  endpionts:'
            with open(relay.config, 'w') as file:
                file.write('\n'.join(lines) + '\n')
            done = cli('check', '--config', relay.config, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(relay.config, done.stderr)
            self.assertIn('endpionts', done.stderr)
            self.assertRegex(done.stderr, rf'line: {at + 2}, column: \d+')

    def test_schema_missing_and_newer(self):
        with World() as world:
            relay = world.relay('one', start=False)
            bare = world.pg.sibling(f'bare_{world.number}')
            done = cli('run', '--config', relay.config, '--database', bare.dsn, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn('txrelay migrate', done.stderr)
            world.pg.query("INSERT INTO txrelay.schema_version (version, name, checksum) "
                           "VALUES (9999, 'future', 'x')")
            for command in ('migrate', 'run'):
                done = cli(command, '--config', relay.config, check=False)
                self.assertEqual(done.returncode, 1, command)
                self.assertIn('9999', done.stderr)
                self.assertIn('newer', done.stderr)

    def test_migrate_eight_at_once(self):
        with World() as world:
            fresh = world.pg.sibling(f'fresh_{world.number}')
            children = [subprocess.Popen([proc.TXRELAY, 'migrate', '--database', fresh.dsn],
                                         stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True) for _ in range(8)]
            outputs = [c.communicate(timeout=60)[0] for c in children]
            self.assertEqual([c.returncode for c in children], [0] * 8, outputs)
            self.assertEqual(sum('->' in o for o in outputs), 1, outputs)
            versions = [r[0] for r in fresh.query('SELECT version FROM txrelay.schema_version '
                                                  'ORDER BY 1')]
            self.assertEqual(versions, list(range(1, len(versions) + 1)))

    def test_options_of_the_command_line(self):
        """Each names the option or argument, the value and what it may be; nothing is enqueued."""
        with World() as world:
            relay = world.relay('one')
            world.wait_leader(relay)
            call = '0x' + remark('never').hex()
            for options, words in (
                    (('--tip', '1.5'), ('--tip', '1.5', 'whole number')),
                    (('--retries', 'many'), ('--retries', 'many')),
                    (('--retries', '101'), ('retries', '101', '100')),
                    (('--tip', '8', '--max-tip', '7'), ('tip', '8', 'max_tip', '7')),
                    (('--deadline', 'soonish'), ('--deadline', 'soonish', 'Z')),
                    (('--deadline', '2001-01-01T00:00:00Z'), ('deadline', '2001')),
                    (('--delay', 'soonish'), ('--delay', 'soonish', '15m')),
                    (('--expires-in', '0s'), ('expires_in', '0')),
                    (('--deadline-block', '0'), ('deadline_block', '0'))):
                for to in (('--database', world.pg.dsn), ('--to', relay.address)):
                    done = cli('enqueue', 'alice', call, *options, *to, check=False)
                    self.assertNotEqual(done.returncode, 0, (options, to))
                    for word in words:
                        self.assertIn(word.lstrip('-') if to[0] == '--to' else word, done.stderr,
                                      (options, to))
            for command in ('bump', 'history', 'status', 'cancel'):
                done = cli(command, 'seventeen', '--database', world.pg.dsn, check=False)
                self.assertEqual(done.returncode, 2, command)
                self.assertIn('seventeen', done.stderr)
                done = cli(command, '999999', '--database', world.pg.dsn, check=False)
                self.assertEqual(done.returncode, 1, command)
                self.assertIn('999999', done.stderr)
            for pair, word in (('tip_stat=1', 'tip_start'), ('tip_after_blocks=few', '100000'),
                               ('usurped=maybe', 'requeue'),
                               ('tip_cap', 'key=value')):
                done = cli('policy', 'alice', pair, '--database', world.pg.dsn, check=False)
                self.assertNotEqual(done.returncode, 0, pair)
                self.assertIn(word, done.stderr)
            self.assertEqual(world.pg.value('SELECT count(*) FROM txrelay.transactions'), 0)

    def test_texts_of_others_do_not_control_the_terminal(self):
        """Keys and creators of applications, and files that an error quotes, with escape
        sequences, bells and line feeds."""
        evil = '\x1b[31mred\x07\x9b2J\r\nid=7 state=finalized'
        with World() as world:
            world.wait_leader(world.relay('one'))
            tx = world.pg.value("SELECT txrelay.enqueue('alice', %s, key => %s, creator => %s)",
                                (remark('x'), evil, evil))
            world.committed[remark('x')] = tx
            world.pg.query("SELECT txrelay.account_pause('alice', %s)", (evil,))
            outputs = [cli(*args, '--database', world.pg.dsn, check=False) for args in (
                ('status',), ('status', str(tx)), ('status', '--json'), ('accounts',), ('blocked',),
                ('blocked', '--json'),
                ('history', str(tx)), ('enqueue', 'alice' + evil, '0x00'),
                ('enqueue', 'alice', '0x01', '--key', evil),
                ('encode', 'System', 'remark', '[]', '--metadata', '/nowhere/' + evil),
                ('policy', 'alice', evil + '=1'))]
            world.pg.query("SELECT txrelay.account_resume('alice')")
            world.settle()
            self.assertIn('red', outputs[1].stdout)
            for done in outputs:
                text = done.stdout + done.stderr
                with self.subTest(' '.join(done.args[1:3])):
                    self.assertEqual([c for c in text if c != '\n'
                                      and (c < ' ' or '\x7f' <= c < '\xa0')], [])
                    self.assertFalse([line for line in text.splitlines()
                                      if line.startswith('id=7')])

    def test_json_to_a_relay(self):
        """A field that is not known or not right is named with its value; what is asked for later
        as well."""
        with World() as world:
            relay = world.relay('one')
            world.wait_leader(relay)
            good = {'cmd': 'send', 'account': 'alice', 'call': '0x' + remark('never').hex()}
            for change, words in (({'deadlin': 1}, ('deadlin', 'deadline_block')),
                                  ({'tip': -1}, ('tip', '-1')),
                                  ({'priority': 'high'}, ('priority', 'high')),
                                  ({'account': 'alicia'}, ('alicia',)),
                                  ({'deadline': '2026-02-30T00:00:00Z'},
                                   ('deadline', '2026-02-30')),
                                  ({'call': None}, ('call',)),
                                  ({'retries': 1e3}, ('retries', '1000'))):
                answer = relay.control({**good, **change})
                self.assertEqual(answer['error'], 'ARGUMENT', change)
                for word in words:
                    self.assertIn(word, answer['text'])
            for request, word in (({'cmd': 'bump'}, 'id'), ({'cmd': 'bump', 'id': 'x'}, 'x'),
                                  ({'cmd': 'cancel', 'id': 999999}, '999999'),
                                  ({'cmd': 'resume', 'account': 'alicia'}, 'alicia'),
                                  ({'cmd': 'fly'}, 'resume')):
                answer = relay.control(request)
                self.assertIn(word, answer['text'], request)
            self.assertEqual(world.pg.value('SELECT count(*) FROM txrelay.transactions'), 0)

    def test_check_explains(self):
        with World() as world:
            relay = world.relay('one', start=False)
            done = cli('check', '--config', relay.config)
            for text in ('ready', 'schema version', 'genesis', 'alice: sr25519'):
                self.assertIn(text, done.stdout)
            world.chain.process.kill()
            done = cli('check', '--config', relay.config, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn('BAD', done.stdout)

    def test_check_tries_every_address_of_an_entry(self):
        """Of each key that is an address to listen on: one in use, a folder that is not there, a
        file."""
        with open(os.path.join(proc.ROOT, 'docs', 'config.md')) as file:
            keys = re.findall(r'^\| `(control|metrics|\w+\.listen)`', file.read(), re.M)
        self.assertEqual(set(keys),
                         {'control', 'metrics', 'feeds.listen', 'http.listen', 'sites.listen'})
        with World() as world, socket.create_server(('127.0.0.1', 0)) as taken:
            port = '127.0.0.1:%d' % taken.getsockname()[1]
            relay = world.relay('one', start=False)
            with open(relay.config) as file:
                text = re.sub('(?m)^control: .*\n', '', file.read())
            addresses = {f'tcp:{port}': ('warn', f'tcp:{port} is in use'),
                         'unix:/nowhere/x.sock': ('BAD',
                                                  'no such file or directory: create its folder'),
                         f'unix:{relay.config}': (
                             'BAD', 'a file that is no socket is there: give another path')}
            for address, (mark, words) in addresses.items():
                more = ''
                for key in keys:
                    section, _, name = key.rpartition('.')
                    given = port if key == 'metrics' else address
                    more += f'{section}:\n  {name}: {given}\n' if section else f'{name}: {given}\n'
                with open(relay.config, 'w') as file:
                    file.write(text + more)
                said = cli('check', '--config', relay.config, check=False).stdout
                for key in keys:
                    with self.subTest(address=address, key=key):
                        wanted = ('warn', f'tcp:{port} is in use') if key == 'metrics' else (mark,
                                                                                             words)
                        self.assertRegex(said,
                                         rf'(?m)^  {wanted[0]} +{key.split(".")[0]} .*{wanted[1]}')
                self.assertEqual('not ready' in said, mark == 'BAD' or 'BAD   sites' in said)

    LISTENS = {'control': 'control: {}', 'metrics': 'metrics: {}',
               'feeds.listen': 'feeds:\n  listen: {}', 'http.listen': 'http:\n  listen: {}',
               'sites.listen': 'sites:\n  name: a\n  listen: {}'}
    REACHED = {'feeds.address': 'feeds:\n  listen: tcp:127.0.0.1:0\n  address: {}',
               'sites.address': 'sites:\n  name: a\n  address: {}',
               'sites.peers: targets': 'sites:\n  name: a\n  peers:\n    - name: b\n'
                                       '      targets: [{}]'}
    NO_LISTENER = ('nohost', 'localhost:81', '127.0.0.1', 'tcp:', 'tcp:127.0.0.1', 'tcp::81',
                   'tcp:127.0.0.1:', 'tcp:127.0.0.1:65536', 'tcp:127.0.0.1:0x10',
                   'tcp:127.0.0.1:81 ', 'tcp:nosuch.invalid:81', 'unix:', 'udp:127.0.0.1:81',
                   'unix:/' + 200 * 'x')
    NO_HOST = ('bad host', 'a/b', 'host:81', 'http://host', '[::1', '::1', 'a,b', 'h' * 300)
    NOT_REACHED = ('nohost', ':81', 'host:', 'host:0', 'host:65536', 'host:81x', 'host: 81',
                   'tcp:127.0.0.1:81', '::1:81', '[::1]', 'bad host:81', 'a/b:81')

    def test_addresses_that_are_none(self):
        """A start, a reload and check refuse the same ones, and name key and value. A reload
        changes nothing then."""
        cases = [(k, t, v) for k, t in self.LISTENS.items() for v in self.NO_LISTENER]
        cases += [(k, t, v) for k, t in self.REACHED.items() for v in self.NOT_REACHED]
        cases += [('http.host', 'http:\n  listen: tcp:127.0.0.1:0\n  host: {}', v)
                  for v in self.NO_HOST]
        with World() as world:
            relay = world.relay('one')
            relay.wait_log('relay.running')
            with open(relay.config) as file:
                good = file.read()
            self.assertRegex(good, '(?m)^control: ')
            for key, template, value in cases:
                with self.subTest(key=key, value=value):
                    text = good if key != 'control' else re.sub('(?m)^control: .*\n', '', good)
                    with open(relay.config, 'w') as file:
                        file.write(text + template.format(json.dumps(value)) + '\n')
                    for command in ('run', 'check'):
                        done = cli(command, '--config', relay.config, check=False)
                        self.assertEqual(done.returncode, 2, done.stdout)
                        self.assertIn(f'{key}: ', done.stderr)
                        self.assertIn(value[:30], done.stderr)
                    failed = self.reload_fails(relay)
                    self.assertIn(f'{key}: ', failed)
                    self.assertIn(value[:30], failed)
            self.assertNotIn('config.reloaded', relay.text())

    def reload_fails(self, relay):
        """What the reload says."""
        def failed():
            return [line for line in relay.text().splitlines() if 'config.reload_failed' in line]
        before = len(failed())
        os.kill(relay.process.pid, signal.SIGHUP)
        return proc.wait_for('the reload to fail', lambda: failed()[before:])[0]

    def test_what_run_refuses_check_refuses(self):
        """Values that can never be right end both, and with a code after which systemd does not
        start the relay again. A reload refuses them too."""
        with World() as world:
            relay = world.relay('one')
            relay.wait_log('relay.running')
            with open(relay.config) as file:
                text = file.read()
            good = f'    - {world.chain.ws}\n'
            self.assertIn(good, text)
            changes = [('control: .*', 'control: tcp:0.0.0.0:9',
                        'can be reached from other machines')]
            changes += [('control: .*', f'metrics: {x}', 'is not a loopback address')
                        for x in ('0.0.0.0:9', 'unix:/tmp/x')]
            changes += [(good, f'{good}    - "{x}"\n', words) for x, words in
                        (('http://x', 'another scheme'), ('ws://x:99999', 'no usable port'),
                         ('ws://a b', 'does not belong there'))]
            every = 'tcp:0.0.0.0:0 can be reached from other machines'
            changes += [('control: (.*)', f'control: \\1\n{new}', words) for new, words in (
                ('http:\n  listen: tcp:0.0.0.0:0', every),
                ('feeds:\n  listen: tcp:0.0.0.0:0', every),
                ('http:\n  listen: tcp:127.0.0.1:0\n  cert_file: /x', 'http.key_file'),
                ('http:\n  listen: tcp:127.0.0.1:0\n  ca_file: /x', 'http.ca_file needs'),
                ('feeds:\n  listen: tcp:127.0.0.1:0\n  cert_file: /x', 'feeds.key_file'),
                ('sites:\n  name: here', 'no account has them'))]
            changes += [('chain:', 'chain:\n  quorum: 9', 'chain.quorum is 9')]
            for old, new, words in changes:
                with self.subTest(new):
                    with open(relay.config, 'w') as file:
                        file.write(re.sub(f'(?m)^{old}', new, text, count=1)
                                   + 'log_format: json\n')
                    entry = 'listen' in new or 'sites' in new  # what register does not open
                    for command, code in (('check', 1), ('run', 2), ('register', 2))[:3 - entry]:
                        done = cli(command, '--config', relay.config, check=False)
                        self.assertEqual(done.returncode, code, (command, done.stderr))
                        self.assertIn(words, done.stdout + done.stderr)
                    self.assertIn(words, self.reload_fails(relay))
                    self.assertIn('level=error event=config.reload_failed', relay.text())
            self.assertNotIn('{"', relay.text(), 'the log is as it was')

    def test_check_shows_every_key_and_where_it_came_from(self):
        """As docs/config.md has them, with its defaults."""
        with World() as world:
            relay = world.relay('one', start=False)
            relay.configure('chain', insecure='true', call_timeout_ms=7000)
            with open(relay.config, 'a') as file:
                file.write('log_format: logfmt\n')
            done = cli('check', '--config', relay.config, '--log-level', 'warn',
                       env={'TXRELAY_METRICS': '127.0.0.1:0', 'TXRELAY_LOG_TRANSACTIONS': 'info'})
            shown = {}
            for line in done.stdout.split('connections\n')[0].splitlines()[1:]:
                key, text, source = re.fullmatch(r'  (\S+) +(.*?) +(file|default|flag|TXRELAY_\w+)',
                                                 line).groups()
                shown.setdefault(key, (text, source))
            with open(os.path.join(proc.ROOT, 'docs', 'config.md')) as file:
                rows = re.findall(r'^\| (`[a-z][\w.]*`.*?) \| (.*?) \| .*\|$',
                                  file.read().split('## Several')[0], re.M)
            documented = {}
            for names, default in rows:
                section = ''
                for name in re.findall(r'`([a-z][\w.]*)`', names.split(', a list')[0]):
                    section = name.rpartition('.')[0] or section if '.' in name or section else ''
                    documented[name if '.' in name or not section
                               else f'{section}.{name}'] = default
            self.assertGreater(len(documented), 40)
            self.assertEqual(set(shown) - {'accounts'}, set(documented))
            given = {'name': 'file', 'control': 'file', 'database.url': 'file',
                     'chain.endpoints': 'file', 'accounts': 'file', 'log_format': 'file',
                     'chain.insecure': 'file', 'chain.call_timeout_ms': 'file',
                     'log_level': 'flag', 'metrics': 'TXRELAY_METRICS',
                     'log_transactions': 'TXRELAY_LOG_TRANSACTIONS'}
            with open(relay.config) as file:
                inside = file.read()
            for key, (text, source) in shown.items():
                default = documented.get(key, '').strip('`').split(':')[0]
                if key in given:
                    self.assertEqual(source, given[key], key)
                elif source == 'default' and not text.startswith('('):
                    self.assertEqual(text, default.split(',')[-1].strip() if 'bid_max' in key
                                     else default.split(',')[0], key)
                elif source != 'default':
                    self.assertRegex(inside, rf'(?m)^  {key.split(".")[-1]}: {re.escape(text)}$')
            self.assertEqual((shown['chain.insecure'][0], shown['chain.call_timeout_ms'][0],
                              shown['log_level'][0]), ('true', '7000', 'warn'))
            self.assertRegex(shown['accounts'][0], r'^alias=alice scheme=sr25519 key_file=/\S+$')
            plain = cli('check', '--config', relay.config).stdout
            self.assertRegex(plain, r'(?m)^  log_level +info +default$')


if __name__ == '__main__':
    unittest.main()
