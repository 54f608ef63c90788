"""What a build from source needs, on other systems than the one that runs the tests: names of
packages, a release build without what only tests need, argp beside a C library that lacks it, and
the Postgres that a demo finds."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(args, **kw):
    return subprocess.run(args, cwd=kw.pop('cwd', ROOT), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, timeout=100, **kw)


class InFolder(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='txbuild-')
        self.addCleanup(shutil.rmtree, self.dir)

    def file(self, path, text, mode=0o644):
        path = os.path.join(self.dir, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w') as file:
            file.write(text)
        os.chmod(path, mode)
        return path


class Packages(InFolder):
    def names(self, *args):
        done = run(['./dev', 'packages', *args])
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.split()

    def test_each_library_that_cmake_wants_has_a_package_of_both(self):
        with open(os.path.join(ROOT, 'CMakeLists.txt')) as file:
            wanted = file.read().count('pkg_check_modules(')
        for manager, suffix in (('apt', '-dev'), ('dnf', '-devel')):
            libraries = [name for name in self.names(manager, 'release', 'build')
                         if name.endswith(suffix)]
            # libyaml and uthash are used and have no pkg_check_modules.
            self.assertEqual(len(libraries), wanted + 2, libraries)

    def test_a_release_needs_no_library_for_tests(self):
        self.assertNotIn('libcmocka-dev', self.names('apt', 'release'))
        self.assertIn('libcmocka-dev', self.names('apt', 'build'))

    def test_fedora_gets_its_own_names(self):
        """dnf and rpm are stand-ins: rpm has one package installed, dnf notes what it is asked
        for."""
        asked = os.path.join(self.dir, 'asked')
        self.file('bin/rpm', '#!/bin/sh\n[ "$2" = libuv-devel ]\n', 0o755)
        self.file('bin/dnf', f'#!/bin/sh\necho "$@" >{asked}\n', 0o755)
        self.file('bin/sudo', '#!/bin/sh\nexec "$@"\n', 0o755)
        env = {**os.environ, 'PACKAGE_MANAGER': 'dnf',
               'PATH': f'{self.dir}/bin:{os.environ["PATH"]}'}
        done = run(['./dev', 'setup', 'release'], env=env)
        self.assertEqual(done.returncode, 0, done.stdout)
        with open(asked) as file:
            words = file.read().split()
        self.assertEqual(words[:3], ['install', '-y', '-q'])
        self.assertEqual(set(words[3:]), set(self.names('dnf', 'release')) - {'libuv-devel'})

    def test_without_a_manager_that_we_know_nothing_is_installed(self):
        done = run(['./dev', 'setup', 'release'], env={**os.environ, 'PACKAGE_MANAGER': 'none'})
        self.assertEqual((done.returncode, done.stdout), (0, ''))


class Release(InFolder):
    def test_builds_without_cmocka_and_without_warnings_as_errors(self):
        paths = run(['pkg-config', '--variable', 'pc_path', 'pkg-config']).stdout.strip().split(':')
        self.file('pc/.keep', '')
        for folder in paths:
            for name in os.listdir(folder) if os.path.isdir(folder) else []:
                if name != 'cmocka.pc' and not os.path.exists(f'{self.dir}/pc/{name}'):
                    os.symlink(os.path.join(folder, name), f'{self.dir}/pc/{name}')
        env = {**os.environ, 'PKG_CONFIG_LIBDIR': f'{self.dir}/pc'}
        done = run(['cmake', '--preset', 'release', '-B', f'{self.dir}/release'], env=env)
        self.assertEqual(done.returncode, 0, done.stdout)
        with open(f'{self.dir}/release/compile_commands.json') as file:
            commands = json.load(file)
        self.assertGreater(len(commands), 200)
        self.assertEqual([c['file'] for c in commands if '-Werror' in c['command']
                          or '/test/' in c['file']], [])
        done = run(['cmake', '--preset', 'dev', '-B', f'{self.dir}/dev'], env=env)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('cmocka', done.stdout)


class Argp(InFolder):
    def configure(self, *args):
        self.file('CMakeLists.txt', 'cmake_minimum_required(VERSION 3.25)\nproject(x C)\n'
                  f'include({ROOT}/cmake/argp.cmake)\n'
                  'get_target_property(libraries argp INTERFACE_LINK_LIBRARIES)\nmessage(STATUS '
                  '"links ${libraries}")\n')
        return run(['cmake', '-S', self.dir, '-B', f'{self.dir}/build', *args])

    def test_the_c_library_has_it(self):
        done = self.configure()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn('links libraries-NOTFOUND', done.stdout)

    def test_a_library_of_its_own(self):
        self.file('prefix/include/argp.h', '')
        library = self.file('prefix/lib/libargp.a', '')
        done = self.configure('-DTXRELAY_LIBC_HAS_ARGP=OFF',
                              f'-DCMAKE_PREFIX_PATH={self.dir}/prefix')
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f'links {library}', done.stdout)

    def test_none_is_said_with_the_way_out(self):
        done = self.configure('-DTXRELAY_LIBC_HAS_ARGP=OFF')
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('argp-standalone', done.stdout)


class AnyPostgres(InFolder):
    def found(self, *versions):
        for version in versions:
            self.file(f'{version}/postgres', f'#!/bin/sh\necho "postgres (PostgreSQL) {version}.4 '
                                             f'(Debian {version}.4-1)"\n', 0o755)
        done = run(['test/harness/pg.sh', 'bin'],
                   env={**os.environ, 'PG_BIN': ' '.join(f'{self.dir}/{v}' for v in versions)})
        return done.returncode, done.stdout.strip().replace(self.dir + '/', '')

    def test_15_before_the_newest(self):
        self.assertEqual(self.found(13, 15, 17), (0, '15'))

    def test_else_the_newest(self):
        self.assertEqual(self.found(13), (0, '13'))
        self.assertEqual(self.found(14, 18, 17), (0, '18'))

    def test_one_that_is_too_old(self):
        code, said = self.found(12)
        self.assertEqual(code, 1)
        self.assertIn('no Postgres 13 or newer but 12 (12)', said)


if __name__ == '__main__':
    unittest.main()
