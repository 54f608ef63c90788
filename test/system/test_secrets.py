"""No output of a run holds a secret of its configuration: a secret is in every url of a node and
of the database, and everything that the program prints, logs, answers and stores is searched for
them."""
import json
import os
import re
import unittest

from harness import proc
from harness.bouncer import free_port
from harness.relay import cli
from harness.world import World

SECRET = re.compile('s3cret')
URL = '/s3cret-path?apikey=s3cret-query'


class Secrets(unittest.TestCase):
    def clean(self, where, *texts):
        for text in texts:
            self.assertTrue(text, where)
            found = SECRET.search(text)
            self.assertIsNone(found, f'{where}: '
                                  f'{found and text[max(0, found.start() - 200):found.end() + 20]}')

    def of(self, where, *args, env=None, status=None, stdin=None):
        done = cli(*args, env=env, check=False, stdin=stdin)
        if status is not None:
            self.assertEqual(done.returncode == 0, status == 0, done.stdout + done.stderr)
        self.clean(where, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_a_run(self):
        with World() as world:
            dead = f'ws://127.0.0.1:{free_port()}{URL}'
            dsn = f'{world.pg.dsn} password=s3cret-db'
            named = [url.replace('ws://', 'ws://user:s3cret%40@')
                     for url in (dead, world.chain.ws + URL)]
            relay = world.relay('one', start=False, dsn=dsn, endpoints=named,
                                extra='log_level: debug\n')
            os.chmod(relay.config, 0o600)
            relay.start()
            world.wait_leader(relay)
            world.enqueue('sent')
            self.assertEqual(world.settle()['finalized'], 1)
            status = json.dumps(relay.status())
            self.assertIn('/***', status)
            # that it is down
            self.assertIn(f'ws://***@{dead.split("/s3")[0][5:]}/***', relay.text())
            self.clean('status', status)
            self.of('check', 'check', '--config', relay.config)
            for command in (('accounts',), ('status',), ('history', '1'), ('blocked',)):
                self.of(command[0], *command, '--config', relay.config)
            env = {'TXRELAY_DATABASE': dsn}
            self.of('database of the environment', 'accounts', env=env, status=0)
            self.of('encode', 'encode', 'System', 'remark', '["x"]', '--node', world.chain.ws + URL,
                    status=0)
            self.of('encode, dead', 'encode', 'System', 'remark', '["x"]', '--node', dead, status=1)

            self.of('encode, dead', 'encode', 'System', 'remark', '["x"]', '--node', named[0],
                    status=1)
            self.of('encode', 'encode', 'System', 'remark', '["x"]', '--node',
                    named[1] + '&at=s3cret@x', status=0)

            # What cannot be used is refused without being shown.
            for wrong in ('ws://user:s3cret@x@h:1', 'ws://:s3cret@h:1', 'ws://h:0/s3cret',
                          's3cret@h', 'ws://h:1?s3cret#', 'http://u:s3cret@h',
                          'wss://u:s3/s3cret@h'):
                with self.subTest(wrong):
                    text = self.of('encode', 'encode', 'System', 'remark', '["x"]', '--node', wrong,
                                   status=1)
                    self.assertIn('***', text)
                    self.of('check', 'check', '--config', relay.config, '--endpoint', wrong,
                            status=1)
                    self.of('run', 'run', '--config', relay.config, '--endpoint', wrong, status=1)
            far = self.of('a warning', 'check', '--config', relay.config, '--endpoint',
                          'ws://192.0.2.1:1' + URL)
            self.assertIn('ws://192.0.2.1:1/*** is not encrypted', far)
            for wrong in ('host=h password=s3cret port=x', "host=h password='s3cret",
                          'postgresql://u:s3cret@h:x/d', 'postgresql://u:s3/cret@h'):
                with self.subTest(wrong):
                    self.of('check', 'check', '--config', relay.config,
                            env={'TXRELAY_DATABASE': wrong}, status=1)
                    self.of('flag', 'accounts', '--database', wrong, status=1)

            world.chain.process.kill()
            relay.wait_log('chain.down')
            relay.stop()
            self.clean('log', relay.text())
            dump = proc.run(['pg_dump', '--inserts', '-n', 'txrelay', world.pg.dsn]).stdout
            self.assertIn('INSERT INTO txrelay.finished_transactions', dump)
            self.clean('database', dump)


if __name__ == '__main__':
    unittest.main()
