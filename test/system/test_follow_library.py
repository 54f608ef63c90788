"""libtxrelay-listen as another program has it: installed elsewhere, built with pkg-config, against
the real thing."""
import os
import re
import shutil
import subprocess
import unittest

from harness import proc
from harness.world import BOB, ALICE, World

EXAMPLE = os.path.join(proc.ROOT, 'listen', 'example')


def cache(name):
    with open(os.path.join(proc.BUILD, 'CMakeCache.txt')) as file:
        return re.search(rf'^{name}:\w+=(.*)$', file.read(), re.M).group(1)


class Installed:
    """The library in a DESTDIR, and the example built outside of the tree."""

    def __init__(self):
        self.dir = proc.make_dir('txlib-')
        self.prefix = os.path.join(self.dir, 'root', 'opt', 'txrelay')
        proc.run(['cmake', '--install', proc.BUILD, '--prefix', '/opt/txrelay'],
                 env={'DESTDIR': os.path.join(self.dir, 'root')})
        self.lib = os.path.join(self.prefix, 'lib')
        self.env = {'PKG_CONFIG_PATH': os.path.join(self.lib, 'pkgconfig'),
                    'LD_LIBRARY_PATH': self.lib,
                    'CC': cache('CMAKE_C_COMPILER'),
                    'CFLAGS': cache('CMAKE_C_FLAGS') + ' -Wall -Wextra -Werror'}
        self.build = os.path.join(self.dir, 'example')
        shutil.copytree(EXAMPLE, self.build)
        proc.run(['make', '-C', self.build, 'follow', 'follow-static'], env=self.env)

    def compile(self, compiler, source, suffix, *flags):
        path = os.path.join(self.dir, f'one{suffix}')
        with open(path, 'w') as file:
            file.write(source)
        return proc.run([compiler, *flags, *self.flags('--cflags'), path, '-o', path + '.out',
                         *self.flags('--libs')],
                        env=self.env) and path + '.out'

    def flags(self, *which):
        return proc.run(['pkg-config', *which, 'txrelay-listen'], env=self.env).stdout.split()


class Program:
    """A running example; it ends when its standard input does."""

    def __init__(self, installed, name, dsn, account, position, program='follow', env=None):
        self.log = os.path.join(installed.dir, f'{name}.log')
        self.process = proc.Process([os.path.join(installed.build, program), dsn, account,
                                     position], self.log,
                                    env=installed.env if env is None else env,
                                    stdin=subprocess.PIPE)

    def lines(self):
        return self.process.text().splitlines()

    def wait(self, pattern, seconds=40):
        try:
            return proc.wait_for(f'a line like {pattern}',
                                 lambda: [x for x in self.lines() if re.search(pattern, x)],
                                 seconds)
        except TimeoutError as error:
            raise TimeoutError(f'{error}\n{self.process.text()[-2000:]}') from None

    def end(self):
        self.process.child.stdin.close()
        code = self.process.child.wait(20)
        self.process.file.close()
        return code


class Library(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.installed = Installed()

    def app(self, world):
        with world.pg.connect() as db, db.cursor() as cur:
            cur.execute(f'CREATE ROLE lib_{world.number} LOGIN IN ROLE txrelay_follower')
        db.close()
        return world.pg.dsn_of(world.pg.database, f'lib_{world.number}')

    def test_only_its_own_names_are_seen(self):
        out = proc.run(['nm', '-D', '--defined-only',
                        os.path.join(self.installed.lib, 'libtxrelay-listen.so')]).stdout
        names = [line.split()[-1].split('@')[0] for line in out.splitlines()]
        self.assertGreater(len(names), 5)
        self.assertEqual([n for n in names if not n.lower().startswith('txrelay_')], [])
        out = proc.run(['nm', '--defined-only', '--extern-only',
                        os.path.join(self.installed.lib, 'libtxrelay-listen.a')]).stdout
        exported = [line.split()[-1] for line in out.splitlines() if len(line.split()) == 3]
        self.assertEqual(sorted(exported), sorted(n for n in names if n.startswith('txrelay_')))

    def test_linked_statically(self):
        with World() as world:
            world.wait_leader(world.relay('one'))
            needed = proc.run(['ldd', os.path.join(self.installed.build, 'follow-static')]).stdout
            self.assertNotIn('txrelay', needed.replace(self.installed.dir, ''))
            program = Program(self.installed, 'static', self.app(world), 'alice',
                              os.path.join(world.dir, 'position'),
                              'follow-static', env={})
            program.wait('^live')
            tx = world.enqueue('static')
            program.wait(rf'^finished account=alice id={tx} .* outcome=ok$')
            self.assertEqual(program.end(), 0)
            world.settle()

    def test_the_header_is_strict_c99_and_cxx(self):
        if 'sanitize' in self.installed.env['CFLAGS']:
            self.skipTest('the sanitizer runtime is not linked here')
        source = ('#include <txrelay/listen.h>\nint main(void) { txrelay_close(txrelay_open("x", '
                  '0)); return 0; }\n')
        for compiler, suffix, flags in (('gcc', '.c',
                                         ['-std=c99', '-pedantic-errors', '-Wall', '-Werror']),
                                        ('g++', '.cc',
                                         ['-std=c++11', '-pedantic-errors', '-Wall', '-Werror'])):
            path = self.installed.compile(compiler, source, suffix, *flags)
            proc.run([path], env=self.installed.env)

    def test_follows_and_goes_on_where_it_stopped(self):
        with World(accounts=(ALICE, BOB)) as world:
            dsn, position = self.app(world), os.path.join(world.dir, 'position')
            relay = world.relay('one')
            world.wait_leader(relay)
            world.wait_leader(relay, 'bob')
            program = Program(self.installed, 'first', dsn, 'alice', position)
            program.wait('^live')
            ids = [world.enqueue(f'tx {i}') for i in range(5)]
            other = world.enqueue('of bob', alias='bob')
            for tx in ids:
                program.wait(rf'^finished account=alice id={tx} nonce=\d+ state=finalized '
                             r'outcome=ok$')
                mine = [x for x in program.lines() if f' id={tx} ' in x]
                self.assertEqual(mine[0].split()[0], 'new', mine)
                self.assertEqual([x for x in mine if x.startswith('finished')], mine[-1:])
            self.assertEqual(program.end(), 0)
            self.assertEqual([x for x in program.lines() if f' id={other} ' in x], [])
            away = [world.enqueue(f'away {i}') for i in range(5)]
            world.settle()
            again = Program(self.installed, 'second', dsn, '0x' + world.pg.value(
                "SELECT encode(account_id, 'hex') FROM txrelay.accounts WHERE alias = 'alice'"),
                position)
            for tx in away:
                again.wait(rf'^finished account=alice id={tx} .* outcome=ok$')
            again.wait('^live')
            self.assertEqual(again.end(), 0)

    def test_stale_then_live_with_what_was_missed(self):
        """The server is stopped and started: told with its age, nothing is lost."""
        with World(own_postgres=True) as world:
            dsn, position = self.app(world), os.path.join(world.dir, 'position')
            world.wait_leader(world.relay('one'))
            program = Program(self.installed, 'stale', dsn, 'alice', position)
            program.wait('^live')
            tx = world.pg.value("SELECT txrelay.enqueue('alice', '\\x00000478', not_before => "
                                "now() + interval '3 s')")
            world.pg.stop()
            program.wait(r'^stale age_ms=\d+ code=DB_UNAVAILABLE text=.+')
            proc.run([os.path.join(proc.ROOT, 'test', 'harness', 'pg.sh'), 'restart', world.pg.dir])
            program.wait(rf'^finished account=alice id={tx} .* outcome=ok$')
            kinds = lambda: [x.split()[0] for x in program.lines()]  # noqa: E731
            self.assertEqual(kinds().index('live'), 0)
            proc.wait_for('it to be live again', lambda: 'live' in kinds()[kinds().index('stale'):])
            self.assertEqual(program.end(), 0)

    def test_no_such_account_is_told_and_tried_again(self):
        with World() as world:
            dsn, position = self.app(world), os.path.join(world.dir, 'position')
            program = Program(self.installed, 'early', dsn, 'alice', position)
            program.wait(r'^stale age_ms=\d+ code=NOT_FOUND text=no such account')
            world.wait_leader(world.relay('one'))
            program.wait('^live')
            self.assertEqual(program.end(), 0)


if __name__ == '__main__':
    unittest.main()
