"""A start that takes long says what it does and how far it is: in the log, to the supervisor, in
health and in the status. (Which steps there are, and that what is instant is not told:
relay_progress_test.)"""
import os
import re
import time
import unittest

from harness import proc
from harness.proxy import Proxy
from harness.relay import cli
from harness.world import World
from system.test_supervisor import Supervisor

BLOCKS = 300


def node_proxy(test, node):
    host, port = re.match(r'ws://(.*):(\d+)', node.ws).groups()
    proxy = Proxy((host, int(port)))
    test.addCleanup(proxy.close)
    return proxy


def database_proxy(test, pg, tap=None):
    """And the connection string that goes through it."""
    parts = dict(word.split('=', 1) for word in pg.dsn.split())
    proxy = Proxy(os.path.join(parts['host'], f".s.PGSQL.{parts.get('port', '5432')}"), tap=tap)
    test.addCleanup(proxy.close)
    return proxy, ' '.join(f'{k}={v}' for k, v in {**parts, 'host': '127.0.0.1',
                                                   'port': str(proxy.port)}.items())


class Start(unittest.TestCase):
    def health(self, relay, pattern):
        def said():
            done = cli('health', '--to', relay.address, check=False)
            return done.returncode == 1 and re.search(pattern, done.stdout)
        proc.wait_for(f'health to say {pattern}', said, 30)

    def test_a_slow_database_and_a_slow_node(self):
        with World() as world:
            supervisor = Supervisor(world.dir)
            self.addCleanup(supervisor.socket.close)
            database, dsn = database_proxy(self, world.pg)
            node = node_proxy(self, world.chain)
            database.set('hold')
            node.set('hold')
            relay = world.relay('slow', dsn=dsn, endpoints=[f'ws://127.0.0.1:{node.port}'],
                                env={'NOTIFY_SOCKET': supervisor.path})
            for step in 'database', 'endpoint':
                relay.wait_log(rf'event=relay.starting relay=slow step={step} ')
            supervisor.wait('STATUS=starting: leads 0 of 1 accounts; database down, chain down; '
                            'connects to the database')
            self.health(relay, 'it connects to the database and checks its schema, for .* and '
                               '1 more')
            starting = relay.status()['starting']
            self.assertEqual([s['step'] for s in starting], ['database', 'endpoint'])
            self.assertGreaterEqual(starting[0]['ms'], 1000)

            database.set('pass')
            node.set('pass', 0.7)  # each way
            for step in 'chain', 'metadata':
                relay.wait_log(rf'event=relay.starting relay=slow step={step} '
                               rf'endpoint=ws://127.0.0.1:{node.port} ', 60)
            node.set('pass')
            world.wait_leader(relay)
            relay.wait_log('account.ready')
            proc.wait_for('an end of it', lambda: not relay.status()['starting']
                          and not relay.status()['accounts'][0]['progress'])
            supervisor.wait('STATUS=running: leads 1 of 1 accounts; database up, chain up')
            self.assertEqual(relay.unparsed(), [])

    def test_a_line_that_is_slow(self):
        """Each answer comes within connect_timeout, and all of them together do not. After the
        first probe of a session the others share a round trip, which a pooler would not show
        otherwise."""
        delay_s, asked = 0.4, []

        def probed(link, data):
            if link.called('control') and b'pg_backend_pid' in data:
                asked.append(time.monotonic())
        with World() as world:
            database, dsn = database_proxy(self, world.pg, probed)
            database.set('pass', delay_s)
            dsn += ' connect_timeout=1'
            done = cli('accounts', '--database', dsn, check=False)
            self.assertEqual((done.returncode, done.stderr),
                             (0, 'txrelay: no account is registered: run txrelay register\n'))
            relay = world.relay('slow', dsn=dsn)
            relay.wait_log('relay.running', 60)
            self.assertGreaterEqual(len(asked), 2)
            self.assertLess(asked[-1] - asked[1] if len(asked) < 5 else asked[3] - asked[1],
                            4 * delay_s)
            database.set('hole')
            late = cli('accounts', '--database', dsn, check=False)
            self.assertIn('within 1000 ms (connect_timeout=SECONDS in the connection string '
                          'allows more)', late.stderr)

    def test_blocks_that_nobody_has_read(self):
        with World('--block-ms', '0') as world:
            relay = world.relay('first')
            world.wait_leader(relay)
            tx = world.enqueue('waits')
            proc.wait_for('it to be sent',
                          lambda: world.pg.value('SELECT state FROM txrelay.status(%s)',
                                                 (tx,)) in ('ready', 'broadcast'))
            relay.kill()
            world.chain.rpc('dev_dropPool')  # no block has it: the account needs all of them
            world.chain.rpc('dev_newBlock', {'count': BLOCKS})
            node = node_proxy(self, world.chain)
            node.set('pass', 0.15)
            late = world.relay('late', endpoints=[f'ws://127.0.0.1:{node.port}'])
            far = late.wait_log(r'event=account.starting account=alice epoch=\d+ step=blocks '
                                r'done=(\d+) of=(\d+) ', 60)
            self.assertLess(int(far.group(1)), int(far.group(2)))
            self.assertLessEqual(int(far.group(2)), BLOCKS + 1)
            self.assertGreater(int(far.group(2)), BLOCKS // 2)
            node.set('pass')
            late.wait_log('account.ready', 60)
            world.chain.rpc('dev_setBlockMs', {'ms': 200})
            world.settle()


if __name__ == '__main__':
    unittest.main()
