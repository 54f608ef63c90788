"""docker-compose.yml and Dockerfile, read: what a clone lacks, or what does not fit together,
before a container is made. compose.py runs the services."""
import os
import re
import subprocess
import unittest

import yaml

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..')
PROGRAM = os.environ['TXRELAY_BUILD'] + '/main/txrelay'


def read(name):
    with open(os.path.join(ROOT, name)) as f:
        return f.read()


class Compose(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.file = yaml.safe_load(read('docker-compose.yml'))
        cls.services = cls.file['services']
        cls.docker = read('Dockerfile')

    def test_mounts_exist(self):
        """A path that is missing would become an empty folder."""
        tracked = set(subprocess.run(['git', 'ls-files'], cwd=ROOT, capture_output=True, text=True,
                                     check=True).stdout.split())
        for name, service in self.services.items():
            for mount in service.get('volumes', []):
                source = mount.split(':')[0]
                if source.startswith('./'):
                    self.assertTrue(source[2:] in tracked, f'{name}: {source} is in no clone')
                else:
                    self.assertIn(source, self.file['volumes'], name)

    def test_images(self):
        stages = set(re.findall(r'^FROM \S+ AS (\S+)', self.docker, re.M))
        for name, service in self.services.items():
            if 'build' in service:
                self.assertIn(service['build']['target'], stages, name)
            else:
                self.assertRegex(service['image'], r':v?\d', name)  # no "latest"
        self.assertEqual(re.findall(r'^FROM (\S+) AS (?:build|base)$', self.docker, re.M),
                         ['debian:12', 'debian:12-slim'])
        self.assertTrue(self.docker.rstrip().splitlines()[-1].startswith('CMD'))

    def test_user(self):
        """One number everywhere: a key file belongs to it."""
        user = re.search(r'^USER (\d+:\d+)$', self.docker, re.M).group(1)
        self.assertIn(f'chown -R {user} relay follower', read('packaging/compose/prepare.sh'))
        for name, service in self.services.items():
            if service['image'].startswith('txrelay') and name != 'secrets':
                self.assertEqual(service['user'], user, name)
                for mount in service.get('tmpfs', []):
                    self.assertIn('uid=%s,gid=%s' % tuple(user.split(':')), mount)

    def test_commands(self):
        """The program has the command and the options of each service."""
        for name, service in self.services.items():
            if service['image'] != 'txrelay' or name == 'secrets':
                continue
            command, *rest = service['command']
            shown = subprocess.run([PROGRAM, command, '--help'], capture_output=True, text=True)
            self.assertEqual(shown.returncode, 0, name)
            for option in rest:
                if option.startswith('--'):
                    self.assertIn(option, shown.stdout, name)
        known = read('main/config.c')
        for name, service in self.services.items():
            for variable in service.get('environment', {}):
                if variable.startswith('TXRELAY_'):
                    self.assertTrue(f'"{variable}"' in known, f'{name}: {variable}')

    def test_order(self):
        """What is awaited can come: a health check, or an end; and no circle."""
        done = []

        def visit(name, path):
            self.assertNotIn(name, path)
            for other, how in self.services[name].get('depends_on', {}).items():
                visit(other, path + [name])
                target = self.services[other]
                if how['condition'] == 'service_healthy':
                    self.assertTrue(target.get('healthcheck', {}).get('test'),
                                    f'{name} waits for {other}')
                if how['condition'] == 'service_completed_successfully':
                    self.assertIn(target.get('restart', 'no'), ('no',), f'{name} waits for {other}')
            if name not in done:
                done.append(name)
        for name in self.services:
            visit(name, [])
        self.assertEqual(done[0], 'secrets')

    def test_network(self):
        """All share one network, where alone ports are published, on loopback only."""
        for name, service in self.services.items():
            if name == 'postgres':
                self.assertTrue(all(p.startswith('127.0.0.1:') for p in service['ports']))
            else:
                self.assertIn(service['network_mode'], ('service:postgres', 'none'), name)
                self.assertNotIn('ports', service, name)
        scraped = yaml.safe_load(read('packaging/compose/prometheus.yml'))['scrape_configs'][0][
            'static_configs'][0]['targets']
        self.assertEqual(scraped,
                         [s['environment']['TXRELAY_METRICS'] for s in self.services.values()
                                   if 'TXRELAY_METRICS' in s.get('environment', {})])


if __name__ == '__main__':
    unittest.main()
