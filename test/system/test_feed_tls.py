"""The certificates of the door of feeds: `check` and `run` refuse the same files in the same
words, and SIGHUP brings new ones without a restart (docs/feeds.md)."""
import os
import re
import signal
import unittest

from harness import proc
from harness.bouncer import free_port
from harness.certificates import Certificates
from harness.chain import remark
from harness.relay import cli
from harness.world import World


class FeedTls(unittest.TestCase):
    def setUp(self):
        self.files = Certificates()
        self.path, self.authority, self.certificate = (
            self.files.path, self.files.authority, self.files.certificate)

    def relay(self, world, port, start=True, **files):
        text = f'feeds:\n  listen: tcp:127.0.0.1:{port}\n'
        for key, name in files.items():
            text += f'  {key}: {self.path(name)}\n'
        return world.relay('one', start=start, extra=text)

    def push(self, world, key, port, host, content, number):
        return cli('feed', 'push', 'payouts', '--to', f'127.0.0.1:{port}', '--key', key, '--ca',
                   self.path('ca.pem'), '--cert',
                   self.path('publisher.pem'), '--cert-key', self.path('publisher.key'),
                   '--server-name', host, '--from', str(number),
                   stdin=f'["0x{remark(content).hex()}"]\n')

    def test_check_and_the_log_refuse_the_same_in_the_same_words(self):
        for name in ('ca', 'other'):
            self.authority(name)
        self.certificate('relay', 'relay.test')
        self.certificate('stranger', 'relay.test', signer='other')
        self.certificate('publisher', 'publisher.test')
        with World() as world:
            good = {'cert_file': 'relay.pem', 'key_file': 'relay.key', 'ca_file': 'ca.pem'}
            relay = self.relay(world, free_port(), start=False, **good)
            done = cli('check', '--config', relay.config)
            self.assertRegex(done.stdout, r'ok +feeds +tcp:127\.0\.0\.1:\d+ takes publishers with '
                                          r'a certificate; TLS /CN=relay\.test, '
                             r'until 20\d\d-')
            cases = [({'key_file': 'stranger.key'}, 'stranger.key is not the key of certificate'),
                     ({'ca_file': 'publisher.pem'},
                      'was signed by /CN=ca, which is not in the file'),
                     ({'key_file': 'open.key'},
                      'open.key has mode 644, open to others than its owner: chmod 600')]
            with open(self.path('relay.key')) as key, open(self.path('open.key'), 'w') as file:
                file.write(key.read())
            os.chmod(self.path('open.key'), 0o644)
            for change, words in cases:
                with self.subTest(words):
                    relay = self.relay(world, free_port(), start=False, **{**good, **change})
                    checked = cli('check', '--config', relay.config, check=False)
                    self.assertEqual(checked.returncode, 1)
                    found = re.search(r'^  BAD +feeds +(.*)$', checked.stdout, re.M)
                    self.assertIn(words, found[1])
                    relay.start()
                    relay.wait_log(rf'event=entry\.closed entry=feeds text="{re.escape(found[1])}"')
                    relay.process.stop()
            self.certificate('relay', 'relay.test', days='3')
            relay = self.relay(world, free_port(), start=False, **good)
            self.assertRegex(cli('check', '--config', relay.config).stdout,
                             r'warn +feeds +certificate .*: /CN=relay\.test expires at')

    def test_sighup_brings_new_certificates(self):
        self.authority('ca')
        self.certificate('relay', 'old.test')
        self.certificate('publisher', 'publisher.test')
        port = free_port()
        with World() as world:
            relay = self.relay(world, port, cert_file='relay.pem', key_file='relay.key',
                               ca_file='ca.pem')
            world.wait_leader(relay)
            pid = relay.process.pid
            key = os.path.join(world.dir, 'publisher.key')
            public = re.search(r'public key +0x([0-9a-f]{64})',
                               cli('keys', 'new', key, '--scheme', 'ed25519').stdout)[1]
            cli('feed', 'create', 'payouts', 'alice', public, '--database', world.pg.dsn)
            self.assertEqual(self.push(world, key, port, 'old.test', 'before', 0).stdout, '0\n')

            self.certificate('relay', 'new.test')
            os.kill(pid, signal.SIGHUP)
            relay.wait_log(r'event=feed\.reloaded certificate="/CN=new\.test, until ')
            self.assertEqual(self.push(world, key, port, 'new.test', 'after', 1).stdout, '1\n')

            os.chmod(self.path('relay.key'), 0o640)
            os.chown(self.path('relay.key'), 1, -1)
            os.kill(pid, signal.SIGHUP)
            relay.wait_log(r'event=feed\.reload_failed text=".*relay\.key has mode 640, open to '
                           r'others than its owner')
            # what was in force is in force
            self.assertEqual(self.push(world, key, port, 'new.test', 'still', 2).stdout, '2\n')
            self.assertEqual(relay.process.pid, pid)
            self.assertTrue(relay.alive())


if __name__ == '__main__':
    unittest.main()
