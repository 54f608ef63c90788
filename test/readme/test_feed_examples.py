"""The examples for Node and Python under feed/example publish to a real relay: each number once,
through a killed leader."""
import json
import os
import re
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import proc  # noqa: E402
from harness.bouncer import free_port  # noqa: E402
from harness.certificates import Certificates  # noqa: E402
from harness.chain import remark  # noqa: E402
from harness.relay import cli  # noqa: E402
from harness.world import World  # noqa: E402

EXAMPLE = os.path.join(proc.ROOT, 'feed', 'example')
WIRE = os.path.join(proc.ROOT, 'feed', 'wire')
NODE_MODULES = os.path.join(proc.ROOT, 'build', 'runtime', 'node_modules')
NUMBERS = 40


class FeedExamples(unittest.TestCase):
    def install(self, world):
        """What their heads tell a reader to do."""
        for name in ('publish.py', 'publish.mjs'):
            shutil.copy(os.path.join(EXAMPLE, name), world.dir)
        shutil.copy(os.path.join(WIRE, 'feed.proto'), world.dir)
        os.symlink(NODE_MODULES, os.path.join(world.dir, 'node_modules'))
        proc.run(['protoc', '--python_out=.', 'feed.proto'], cwd=world.dir)
        self.programs = {'python': ['/usr/bin/python3', 'publish.py'],
                         'node': [os.environ.get('TXRELAY_NODE', 'node'), 'publish.mjs']}

    def key(self, world, name):
        path = os.path.join(world.dir, f'{name}.ed25519')
        return path, re.search(r'public key +0x([0-9a-f]{64})',
                               cli('keys', 'new', path, '--scheme', 'ed25519').stdout)[1]

    def relay(self, world, name):
        return world.relay(name, extra=f'feeds:\n  listen: unix:{world.dir}/{name}.feeds\n')

    def start(self, world, name, relays, key, lines, env=None):
        """relays: their names, or one address."""
        to = relays if isinstance(relays, str) else ','.join(f'unix:{world.dir}/{r.name}.feeds'
                                                             for r in relays)
        path = os.path.join(world.dir, f'{name}.batches')
        with open(path, 'w') as file:
            file.write(lines)
        with open(path) as file:
            return proc.Process([*self.programs[name], 'prices', to, key],
                                f'{world.dir}/{name}.log', cwd=world.dir, stdin=file,
                                env=env)

    def last(self, world):
        return world.pg.value("SELECT last_number FROM txrelay.feeds WHERE name = 'prices'")

    def test_both_publish_one_feed(self):
        batches = [[remark(f'{n} {i}') for i in range(3)] for n in range(NUMBERS)]
        lines = ''.join(json.dumps(['0x' + c.hex() for c in batch]) + '\n' for batch in batches)
        with World() as world:
            self.install(world)
            relays = [self.relay(world, name) for name in ('one', 'two')]
            leader = proc.wait_for('a leader',
                                   lambda: next((r for r in relays if r.leads('alice')), None))
            # the follower first: it says where the leader is
            relays.sort(key=lambda r: r is leader)
            keys = {name: self.key(world, name) for name in self.programs}
            cli('feed', 'create', 'prices', 'alice', *[public for _, public in keys.values()],
                '--database', world.pg.dsn)
            for relay in relays:
                relay.wait_log(r'event=feed\.served' if relay is leader
                               else r'event=feed\.listening')
            # First the half of it. The whole follows in a second run, as after a restart of the
            # publisher.
            half = ''.join(lines.splitlines(keepends=True)[:NUMBERS // 2])
            for text, number in ((half, NUMBERS // 2 - 1), (lines, NUMBERS - 1)):
                running = {name: self.start(world, name, relays, key, text)
                           for name, (key, _) in keys.items()}
                for name, program in running.items():
                    self.assertEqual(program.child.wait(120), 0, program.text())
                    self.assertIn(f'acknowledged {number}\n', program.text())
                self.assertEqual(self.last(world), number)
                if text is half:
                    self.assertTrue(all('NOT_LEADER' in p.text() for p in running.values()),
                                    running['node'].text())
                    leader.kill()  # the other relay takes the feed over, and the publishers find it
            ids = dict(world.pg.query('SELECT key, id FROM txrelay.idempotency_keys'))
            places = {f'feed/prices/{n}/{i}': c for n, batch in enumerate(batches)
                      for i, c in enumerate(batch)}
            self.assertEqual(sorted(ids), sorted(places))
            world.committed = {places[key]: tx for key, tx in ids.items()}
            self.assertEqual(world.settle()['finalized'], 3 * NUMBERS)

    def test_over_mutual_tls_with_a_token(self):
        files, port = Certificates(), free_port()
        files.authority()
        files.certificate('relay', 'localhost')
        files.certificate('publisher', 'publisher.test')
        with open(files.path('token'), 'w') as file:
            file.write('open sesame\n')
        with World() as world:
            self.install(world)
            names = {'cert_file': 'relay.pem', 'key_file': 'relay.key', 'ca_file': 'ca.pem',
                     'token_file': 'token'}
            relay = world.relay('one', extra=f'feeds:\n  listen: tcp:127.0.0.1:{port}\n' +
                                ''.join(f'  {k}: {files.path(v)}\n' for k, v in names.items()))
            world.wait_leader(relay)
            keys = {name: self.key(world, name) for name in self.programs}
            cli('feed', 'create', 'prices', 'alice', *[public for _, public in keys.values()],
                '--database', world.pg.dsn)
            relay.wait_log(r'event=feed\.served')
            env = {'CA': files.path('ca.pem'), 'CERT': files.path('publisher.pem'),
                   'CERT_KEY': files.path('publisher.key')}
            for name, (key, _) in keys.items():
                refused = self.start(world, name, f'localhost:{port}', key,
                                     '["0x00001468656c6c6f"]\n', env={**env, 'TOKEN': 'closed'})
                self.assertEqual(refused.child.wait(60), 1, refused.text())
                taken = self.start(world, name, f'localhost:{port}', key,
                                   '["0x00001468656c6c6f"]\n', env={**env, 'TOKEN': 'open sesame'})
                self.assertEqual(taken.child.wait(60), 0, taken.text())
                self.assertIn('acknowledged 0\n', taken.text())
            self.assertEqual(self.last(world), 0)

    def test_what_the_relay_refuses_is_an_end(self):
        with World() as world:
            self.install(world)
            relay = self.relay(world, 'one')
            world.wait_leader(relay)
            keys = {name: self.key(world, name)[0] for name in self.programs}
            cli('feed', 'create', 'prices', 'alice', self.key(world, 'another')[1], '--database',
                world.pg.dsn)
            relay.wait_log(r'event=feed\.served')
            running = {name: self.start(world, name, [relay], key, '["0x00001468656c6c6f"]\n')
                       for name, key in keys.items()}
            for name, program in running.items():
                self.assertEqual(program.child.wait(120), 1, program.text())
                self.assertIn('refused three times: the key is none of the feed', program.text())
            self.assertEqual(self.last(world), -1)


if __name__ == '__main__':
    unittest.main()
