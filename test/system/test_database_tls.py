"""A relay over TLS to the database: every session is encrypted and verifies the server, and the
relay does what it does without (docs/config.md, "TLS to the database")."""
import os
import socket
import unittest

from harness import proc
from harness.postgres import Postgres
from harness.relay import cli
from harness.world import World

MAKE = ['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
        '-nodes', '-days', '2',
        '-subj', '/CN=db.test', '-addext', 'subjectAltName=DNS:db.test']


def certificate(directory, name):
    paths = [os.path.join(directory, f'{name}.{x}') for x in ('key', 'crt')]
    proc.run([*MAKE, '-keyout', paths[0], '-out', paths[1]])
    return paths


class TlsServer(Postgres):
    """Refuses connections without TLS, but for its own unix socket."""

    def __init__(self):
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            port = s.getsockname()[1]
        super().__init__(durable=False, tcp=port)
        key, self.ca = certificate(self.dir, 'server')
        owner = os.stat(os.path.join(self.dir, 'data'))
        for path in (key, self.ca):
            os.chown(path, owner.st_uid, owner.st_gid)
        os.chmod(key, 0o600)
        with self.admin() as db, db.cursor() as cur:
            for name, value in (('ssl_cert_file', self.ca), ('ssl_key_file', key), ('ssl', 'on')):
                cur.execute(f'ALTER SYSTEM SET {name} = %s', (value,))
        hba = os.path.join(self.dir, 'data', 'pg_hba.conf')
        with open(hba) as file:
            rules = file.read()
        with open(hba, 'w') as file:
            file.write('hostnossl all all 0.0.0.0/0 reject\n' + rules)
        self.restart()
        self.admin_dsn = (f'host=db.test hostaddr=127.0.0.1 port={port} user=postgres '
                          'dbname=postgres '
                          f'sslmode=verify-full sslrootcert={self.ca}')


class Tls(unittest.TestCase):
    def test_a_relay_over_tls(self):
        server = TlsServer()
        self.addCleanup(server.stop)
        with World(postgres=server) as world:
            relay = world.relay('one')
            world.wait_leader(relay)
            for i in range(5):
                world.enqueue(f'over tls {i}')
            self.assertEqual(world.settle()['finalized'], 5)
            sessions = world.pg.query("""SELECT a.application_name, s.ssl, s.version
                FROM pg_stat_activity a
                JOIN pg_stat_ssl s USING (pid) WHERE a.application_name ~ '^txrelay'""")
            self.assertGreaterEqual(len(sessions), 3, 'control, work and listen')
            for name, encrypted, version in sessions:
                self.assertTrue(encrypted and version >= 'TLSv1.2', f'{name}: {version}')
            self.assertNotIn('about=database', relay.text())  # no warning: it verifies the server

            plain = cli('check', '--config', relay.config, '--database',
                        world.pg.dsn.replace('verify-full', 'disable'), check=False)
            self.assertNotEqual(plain.returncode, 0)
            self.assertIn('no encryption', plain.stdout + plain.stderr)

    def test_a_server_that_is_not_verified(self):
        """It is a follower that sends nothing, and says why; another certificate of the same name
        is no better."""
        server = TlsServer()
        self.addCleanup(server.stop)
        _, other = certificate(server.dir, 'other')
        with World(postgres=server) as world:
            for dsn, words in ((world.pg.dsn.replace(server.ca, other),
                                'certificate verify failed'),
                               (world.pg.dsn.replace('host=db.test', 'host=other.test'),
                                'does not match host name')):
                with self.subTest(words):
                    done = cli('accounts', '--database', dsn, check=False)
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn(words, done.stderr)
            good = world.relay('good')
            world.wait_leader(good)
            good.stop()
            relay = world.relay('one', dsn=world.pg.dsn.replace(server.ca, other))
            relay.wait_log(r'database\.down .*certificate verify failed')
            self.assertEqual([a['role'] for a in relay.status()['accounts']], ['follower'])
            world.enqueue('waits')
            proc.wait_for('two blocks',
                   lambda n=world.chain.finalized_number(): world.chain.finalized_number() >= n + 2)
            self.assertEqual(world.submitted(), set())
            relay.stop()
            good.start()
            world.settle()


if __name__ == '__main__':
    unittest.main()
