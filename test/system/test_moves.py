"""The data moves to another server: dumped and restored, copied without its sequences; and the
connections that a relay opens. The clock that goes back: test/schema/test_moves.py."""
import os
import signal
import subprocess
import unittest

from harness import proc
from harness.bouncer import free_port
from harness.chain import remark
from harness.postgres import Postgres
from harness.relay import cli
from harness.world import World
from readme.pages import table

# the folder of another major version's server; test/versions/run.sh gives it
TO = os.environ.get('TXRELAY_MOVE_TO')


class Moves(unittest.TestCase):
    def restored(self, world, file):
        """A server without any role of ours, with what the file holds."""
        here = os.environ.get('PG_BIN')
        if TO:
            os.environ['PG_BIN'] = TO
        try:
            other = Postgres(os.path.join(world.dir, 'other'), durable=False)
        finally:
            os.environ.pop('PG_BIN', None)
            if here:
                os.environ['PG_BIN'] = here
        done = subprocess.run(['pg_restore', '--no-owner', '-d', other.dsn, file],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=60)
        self.assertIn('role "txrelay_relay" does not exist', done.stderr)
        return other

    def check(self, relay):
        done = cli('check', '--config', relay.config, check=False)
        return done.returncode, done.stdout

    def test_dumped_and_restored_to_a_server_without_roles(self):
        with World(own_postgres=True) as world:
            old = world.relay('old')
            world.wait_leader(old)
            first = world.enqueue('before')
            world.settle()
            old.kill()
            waits = world.enqueue('in the outbox at the dump')
            file = os.path.join(world.dir, 'dump')
            proc.run(['pg_dump', '-Fc', '-f', file, world.pg.dsn])
            world.pg = self.restored(world, file)
            relay = world.relay('new', start=False)
            code, text = self.check(relay)
            self.assertEqual(code, 1)
            self.assertIn('lacks the role txrelay_relay', text)
            self.assertIn('txrelay migrate', text)
            self.assertIn('applied again', cli('migrate', '--database', world.pg.dsn).stdout)
            self.assertEqual(self.check(relay)[0], 0, self.check(relay)[1])
            world.pg.query('CREATE ROLE application LOGIN IN ROLE txrelay_app')
            db = world.pg.connect(user='application')
            with db.cursor() as cur:
                call = remark('after')
                cur.execute('SELECT txrelay.enqueue(%s, %s)', ('alice', call))
                world.committed[call] = cur.fetchone()[0]
            db.close()
            self.assertGreater(world.committed[call], waits)
            self.assertGreater(waits, first)
            relay.start()
            world.settle()
            self.assertIn('nothing to do', cli('migrate', '--database', world.pg.dsn).stdout)

    def test_copied_without_sequences(self):
        with World() as world:
            one = world.relay('one')
            world.wait_leader(one)
            first = [world.enqueue(f'before {i}') for i in range(3)][-1]
            world.settle()
            proc.wait_for('a heartbeat',
                          lambda: world.pg.value(
                              'SELECT highest_id FROM txrelay.high_water') >= first)
            one.kill()
            world.pg.query("SELECT setval('txrelay.transaction_id', 1, false)")
            self.assertIn('was given before', cli('enqueue', 'alice', '0x' + remark('again').hex(),
                                                  '--database', world.pg.dsn,
                                                  check=False).stderr)
            code, text = self.check(one)
            self.assertEqual(code, 1)
            self.assertRegex(text, r'BAD +ids +the sequence is \d+ behind .* txrelay migrate')
            self.assertRegex(cli('migrate', '--database', world.pg.dsn).stdout,
                             r'ids: the sequence was \d+ behind')
            self.assertEqual(self.check(one)[0], 0)
            world.pg.query("SELECT setval('txrelay.transaction_id', 1, false)")
            two = world.relay('two')  # and so does a relay that starts
            world.wait_leader(two)
            self.assertGreater(world.enqueue('after'), first)
            world.settle()

    def ends(self, reader):
        return {e['id'] for e in proc.json_lines(reader.text()) if e.get('outcome') == 'ok'}

    def test_a_server_whose_clock_is_behind(self):
        """All of the data is from a server whose clock was 120 s and then 600 s ahead of this
        one's. Readers that were connected, that were away, and that come back with a position have
        every end, and a leader that hangs is replaced."""
        with World(leadership={'expiry_1_ms': 2000, 'expiry_2_ms': 4000, 'margin_ms': 500,
                               'heartbeat_ms': 500}) as world:
            relay = world.relay('one')
            world.wait_leader(relay)
            for ahead in (120, 600):
                world.pg.query("SELECT txrelay.note_high_water(clock_timestamp() + %s * interval "
                               "'1 s')", (ahead,))
                connected = self.tail(world, 'connected')
                first = world.enqueue(f'before the step {ahead}')
                world.settle()
                # by a scan, once a minute
                proc.wait_for('its end', lambda c=connected, tx=first: tx in self.ends(c), 180)
                position = [e['position'] for e in proc.json_lines(connected.text())
                            if e.get('outcome') == 'ok'][-1]
                later = [world.enqueue(f'after the step {ahead} {i}') for i in range(3)]
                world.settle()
                away = self.tail(world, 'away', '--since', str(position))
                for reader in (connected, away):
                    proc.wait_for('every end', lambda r=reader: self.ends(r) >= set(later), 180)
                    reader.kill()
            second = world.relay('second')
            second.wait_log('relay.running')
            second.wait_log('relay.blocked .*code=clock ')
            self.assertEqual(second.control({'cmd': 'status'})['obstacle'], 'clock')
            proc.wait_for('the view to say so', lambda: world.pg.query(
                'SELECT relay, code FROM txrelay.blocked_relays') == [(None, 'clock')])
            os.kill(relay.process.pid, signal.SIGSTOP)
            world.wait_leader(second)
            world.enqueue('by the second')
            world.settle()

    def tail(self, world, name, *options):
        reader = proc.Process([proc.TXRELAY, 'tail', '--json', *options, '--database',
                               world.pg.dsn], f'{world.dir}/{name}.log')
        proc.wait_for('it to listen', lambda: 'tail.live' in reader.text())
        return reader

    def test_a_relay_opens_four_connections(self):
        """As docs/postgres.md counts them; retention runs at once."""
        with World() as world:
            world.pg.query('DROP ROLE IF EXISTS counted')
            world.pg.query('CREATE ROLE counted LOGIN IN ROLE txrelay_relay CONNECTION LIMIT 4')
            relay = world.relay('one', dsn=world.pg.dsn_of(world.pg.database, 'counted'),
                                extra='retention:\n  interval_ms: 2000\n')  # a session ends late
            world.wait_leader(relay)
            world.enqueue('counted')
            world.settle()
            seen = ("SELECT count(*) FROM pg_stat_activity WHERE usename = 'counted' "
                    "AND application_name ~ 'retention'")
            proc.wait_for('retention to run', lambda: world.pg.value(seen))
            self.assertNotIn('retention.failed', relay.text())
            world.pg.query('ALTER ROLE counted CONNECTION LIMIT 3')
            proc.wait_for('the fourth one to be missed', lambda: 'retention.failed' in relay.text())
            relay.kill()
            self.assertEqual(int(connections()['every relay']), 4)

    def test_options_open_what_the_table_says(self):
        """With one connection less than they need, the log says which session has none."""
        most_of = connections()
        with World() as world:
            key = os.path.join(world.dir, 'webhooks.key')
            with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), 'w') as file:
                file.write('MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n')
            options = {'metrics': 'metrics: 127.0.0.1:{port}\n',
                       'feeds': 'feeds:\n  listen: tcp:127.0.0.1:{port}\n',
                       'webhooks': f'webhooks:\n  key_file: {key}\n',
                       'http': 'http:\n  listen: tcp:127.0.0.1:{port}\n'}
            self.assertEqual(set(options) | {'every relay', 'sites'}, set(most_of))
            moment = {'every relay': 1, 'http': 1}  # retention, and a reader of events
            for name, option in options.items():
                with self.subTest(name):
                    most = int(most_of['every relay']) - 1 + int(most_of[name]) - moment.get(name,
                                                                                             0)
                    login = f'counted_{name}'
                    world.pg.query(f'DROP ROLE IF EXISTS {login}')
                    world.pg.query(f'CREATE ROLE {login} LOGIN IN ROLE txrelay_relay CONNECTION '
                                   f'LIMIT {most}')
                    dsn = world.pg.dsn_of(world.pg.database, login)
                    relay = world.relay(name, dsn=dsn, extra=option.format(port=free_port())
                                        + 'retention:\n  interval_ms: 86400000\n')
                    count = f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{login}'"
                    proc.wait_for('its connections', lambda: world.pg.value(count) == most, 60)
                    relay.kill()
                    proc.wait_for('their end', lambda: world.pg.value(count) == 0, 60)
                    world.pg.query(f'ALTER ROLE {login} CONNECTION LIMIT {most - 1}')
                    relay.start()
                    relay.wait_log(r'database\.no_connection session=".+" text=".*too many '
                                   r'connections', 60)
                    relay.kill()


def connections():
    """{with: connections} of the table in docs/postgres.md."""
    return {row[0].strip('`'): row[1] for row in table('docs/postgres.md', '## Connections')}


if __name__ == '__main__':
    unittest.main()
