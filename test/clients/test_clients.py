"""The packages of clients/ in their published form, against Postgres, a relay and devchain: every
driver, every step."""
import glob
import json
import os
import shutil
import subprocess
import sys
import tarfile
import unittest
import zipfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import proc  # noqa: E402
from harness.relay import cli  # noqa: E402
from harness.world import World  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
BUILT = os.path.join(proc.ROOT, 'build', 'clients')
NODE = ['node', os.path.join(BUILT, 'clients.mjs')]
PYTHON = ['/usr/bin/python3', '-B', os.path.join(HERE, 'clients.py')]
DRIVERS = [(NODE, ['pg', 'postgres', 'knex', 'kysely', 'drizzle', 'prisma']),
           (PYTHON, ['psycopg2', 'psycopg2-cursor', 'psycopg', 'psycopg-cursor', 'sqlalchemy',
                     'sqlalchemy-session', 'asyncpg',
                     'psycopg-async', 'sqlalchemy-async'])]
FOLLOWERS = {'node': [*NODE, 'follow', '0'], 'psycopg': [*PYTHON, 'follow', '0'],
             'psycopg2': [*PYTHON, 'follow', '0', 'psycopg2'],
             'asyncpg': [*PYTHON, 'follow_async', '0']}


def setUpModule():
    subprocess.run([os.path.join(HERE, 'setup.sh')], check=True, timeout=600)


class Published(unittest.TestCase):
    def test_what_is_in_them(self):
        tarball, = glob.glob(f'{BUILT}/packed/*.tgz')
        with tarfile.open(tarball) as t:
            self.assertEqual(sorted(t.getnames()), ['package/' + n for n in (
                'LICENSE', 'README.md', 'index.d.ts', 'index.js', 'lib/functions.js', 'lib/http.js',
                'lib/query.js', 'lib/read.js',
                'package.json')])
        wheel, = glob.glob(f'{BUILT}/packed/*.whl')
        with zipfile.ZipFile(wheel) as z:
            names = [n for n in z.namelist() if not n.startswith('txrelay-')]
            self.assertEqual(sorted(names),
                             ['txrelay/' + n for n in ('__init__.py', 'aio.py', 'follower.py',
                                                       'http.py', 'py.typed',
                                                                     'statements.py')])
            self.assertIn(b'License',
                          z.read(next(n for n in z.namelist() if n.endswith('METADATA'))))

    def test_one_version(self):
        with open(f'{proc.ROOT}/clients/node/package.json') as file:
            version = json.load(file)['version']
        with open(f'{proc.ROOT}/clients/python/pyproject.toml') as file:
            self.assertIn(f'version = "{version}"', file.read())
        self.assertIn(version, cli('--version').stdout)

    def test_declarations_fit_the_drivers(self):
        done = subprocess.run(['node_modules/.bin/tsc', '--noEmit', '--strict',
                               '--noUncheckedIndexedAccess', '--skipLibCheck', '--target',
                               'es2022', '--module', 'nodenext', '--moduleResolution', 'nodenext',
                               'types.ts'], cwd=BUILT, timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ''))


class Document(unittest.TestCase):
    """The OpenAPI document passes a public validator, which finds what is wrong in it."""

    def validate(self, document):
        path = os.path.join(BUILT, 'openapi.json')
        with open(path, 'w') as file:
            json.dump(document, file)
        done = subprocess.run(['node_modules/.bin/validate-api', path], cwd=BUILT, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        return json.loads(done.stdout)

    def test_a_public_validator_finds_nothing(self):
        with open(f'{proc.ROOT}/http/openapi.json') as file:
            document = json.load(file)
        self.assertEqual(self.validate(document), {'valid': True})
        del document['paths']['/v1/cluster']['get']['responses']['200']['description']
        self.assertFalse(self.validate(document)['valid'])


class Real(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = world = World('--block-ms', '200')
        cls.addClassCleanup(world.close)
        relay = world.relay('one', extra='http:\n  listen: tcp:127.0.0.1:0\n')
        world.wait_leader(relay)
        address = relay.wait_log(r'http.listening .*address=tcp:(\S+)').group(1)
        login = f'shop_{world.number}'
        with world.pg.connect() as db, db.cursor() as cur:
            cur.execute(f'CREATE ROLE {login} LOGIN IN ROLE txrelay_app; CREATE TABLE orders (id '
                        'serial, note text); '
                        f"GRANT ALL ON orders, orders_id_seq TO {login}; "
                        f"SELECT txrelay.account_policy('alice', '{{\"tip_cap\": 1000}}')")
        db.close()
        dsn = world.pg.dsn_of(world.pg.database, login)
        parts = dict(p.split('=', 1) for p in dsn.split())
        url = (f"postgresql://{login}@/{parts['dbname']}"
               f"?host={parts['host']}&port={parts.get('port', '5432')}")
        token = cli('token', 'create', 'clients', '--scope', 'enqueue', '--database',
                    world.pg.dsn).stdout.strip()
        shared = {'PGHOST': parts['host'], 'PGPORT': parts.get('port', '5432'), 'PGUSER': login,
                  'PGDATABASE': parts['dbname'],
                  'URL': f'http://{address}', 'TOKEN': token,
                  'PYTHONPATH': os.path.join(BUILT, 'python')}
        cls.env = {'node': {**shared, 'DB': url},
                   '/usr/bin/python3': {**shared, 'DB': dsn, 'DB_URL': url}}

    def run_step(self, command, *args):
        done = subprocess.run([*command, *map(str, args)],
                              env={**os.environ, **self.env[command[0]]}, timeout=300, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0,
                         f'{command[0]} {args}: {done.stdout[-2000:]}\n{done.stderr[-4000:]}')
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_a_call_by_its_name(self):
        for command in (NODE, PYTHON):
            with self.subTest(command[0]):
                self.assertEqual(self.run_step(command, 'encode'), [{'encoded': True}])

    @unittest.skipUnless(shutil.which('go'), 'no Go is installed')
    def test_go(self):
        """Its package has no published form: it is the folder."""
        program = os.path.join(BUILT, 'go')
        subprocess.run(['go', 'build', '-o', program, '.'], cwd=os.path.join(HERE, 'go'),
                       check=True, timeout=600)
        self.env[program] = {**self.env['/usr/bin/python3'], 'PGSSLMODE': 'disable'}
        answer, = self.run_step([program])
        self.assertEqual(len(answer['ids']), 5)
        self.assertEqual(self.world.pg.query("SELECT note FROM orders WHERE note LIKE 'go%%'"),
                         [('go kept',)])

    def test_from_the_own_transaction_to_the_outcome(self):
        followers = {name: proc.Process(command, f'{self.world.dir}/follow-{name}.log',
                                        env=self.env[command[0]])
                     for name, command in FOLLOWERS.items()}
        for f in followers.values():
            self.addCleanup(f.kill)
        sent, ended = [], []
        for command, names in DRIVERS:
            if command == PYTHON:
                self.cut(followers)
            told = self.run_step(command, 'drivers', *names)
            self.assertEqual([t['driver'] for t in told], names)
            sent += [i for t in told for i in t['ids']]
            ended += [i for t in told for i in t['ended']]
        notes = self.world.pg.query("SELECT note FROM orders WHERE note NOT LIKE 'go%%' "
                                    "ORDER BY note")
        self.assertEqual([n for n, in notes],
                         sorted(f'{name} kept' for _, names in DRIVERS for name in names))
        for command in (NODE, PYTHON):
            with self.subTest(command[0]):
                outcomes = {o['id']: o for o in self.run_step(command, 'wait', *sent)}
                self.assertEqual(sorted(outcomes), sorted(sent))
                for o in outcomes.values():
                    self.assertEqual((o['outcome'], int(o['fee']) > 0, o['blockNumber'] > 0),
                                     ('ok', True, True), o)
        want = {**{i: 'ok' for i in sent}, **{i: 'cancelled' for i in ended}}
        for name, follower in followers.items():
            with self.subTest(name):
                self.reached(name, follower, want)

    def cut(self, followers):
        for name, f in followers.items():
            proc.wait_for(f'{name} to listen', lambda: 'connected' in f.text())
        self.world.pg.value("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                            "WHERE application_name = 'clients follow'")
        for name, f in followers.items():
            proc.wait_for(f'{name} to be back', lambda: f.text().count('connected') == 2)

    def reached(self, name, follower, want):
        def events():
            return proc.json_lines(follower.text())

        def ends():
            return {e['id']: e['outcome'] for e in events() if e.get('type') == 'end'}
        try:
            proc.wait_for(f'{name} to have read every outcome',
                          lambda: want.items() <= ends().items())
        except TimeoutError as error:
            missing = {i: o for i, o in want.items() if ends().get(i) != o}
            raise TimeoutError(f'{error}: {missing}\n{follower.text()[-3000:]}') from None
        positions = [e['position'] for e in events() if e.get('type') == 'end']
        self.assertEqual(positions, sorted(positions))
        lost = [e for e in events() if e.get('event') == 'lost']
        self.assertEqual(len(lost), 1, lost)


if __name__ == '__main__':
    unittest.main()
