"""Manual pages and completions name each command and option of the program, in the tools that read
them."""
import os
import re
import subprocess
import unittest

BUILD = os.environ['TXRELAY_BUILD']
PROGRAM = f'{BUILD}/main/txrelay'
FOLDER = f'{BUILD}/main/described'


def run(*argv):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0 and not done.stderr, (argv, done)
    return done.stdout


def help_of(command):
    """Its options as argp prints them, without those that argp adds."""
    text = run(PROGRAM, command, '--help')
    found = set(re.findall(r'^ +(?:-\w, )?--([a-z-]+)', text, re.M))
    return found - {'help', 'usage', 'version'}


class Described(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # As a user sees them, so that a command that the generator leaves out is missed.
        cls.commands = re.findall(r'^  (\w+) +\S', run(PROGRAM, '--help'), re.M)
        cls.options = {c: help_of(c) for c in cls.commands}
        assert len(cls.commands) > 15 and {'json', 'account', 'hash',
                                           'config'} <= cls.options['status']

    def test_manual(self):
        overview = self.page('txrelay.1')
        for command, options in self.options.items():
            self.assertIn(f'txrelay-{command}(1)', overview)
            page = self.page(f'txrelay-{command}.1')
            self.assertEqual(set(re.findall(r'^ +(?:-\w, )?--([a-z-]+)', page, re.M)) - {'help'},
                             options, command)

    def test_manual_of_the_configuration(self):
        page = self.page('txrelay.yaml.5')
        with open(os.path.join(os.path.dirname(__file__), '../../docs/config.md')) as f:
            keys = re.findall(r'^\| `([a-z0-9_.\[\]]+)`', f.read().split('\n\n|', 2)[1], re.M)
        self.assertGreater(len(keys), 30)
        for key in keys:
            self.assertRegex(page, rf'(?m)^ {{7}}{re.escape(key)}\b')

    def page(self, name):
        path = f'{FOLDER}/{name}'
        wrong = [x for x in run('mandoc', '-Tlint', '-W', 'error', path).splitlines() if x]
        self.assertEqual(wrong, [])
        return re.sub('.\b', '', run('mandoc', '-Tascii', '-Owidth=200', path))

    def bash(self, *words):
        text = (f'source {FOLDER}/txrelay.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                f'_txrelay; printf "%s\\n" "${{COMPREPLY[@]}}"')
        return run('bash', '-euc', text, 'bash', *words).split()

    def test_bash(self):
        self.assertEqual(set(self.bash('txrelay', '')) - {'help', '--help', '--version'},
                         set(self.commands))
        for command, options in self.options.items():
            offered = {x[2:] for x in self.bash('txrelay', command, '--')
                       if x.startswith('--')} - {'help'}
            self.assertEqual(offered, options, command)
        self.assertEqual(self.bash('txrelay', 'run', '--log-level', 'd'), ['debug'])
        self.assertIn('/etc/passwd', self.bash('txrelay', 'run', '--config', '/etc/passw'))

    def test_zsh(self):
        # _arguments as it is called: each option is one of its arguments.
        text = ('_arguments() { print -rl -- $@ }; words=(txrelay $1 ""); CURRENT=3; source '
                + f'{FOLDER}/_txrelay')
        for command, options in self.options.items():
            lines = run('zsh', '-fc', text, 'zsh', command)
            offered = set(re.findall(r'^(?:\([^)]*\))?--([a-z-]+)=?\[', lines, re.M)) - {'help'}
            self.assertEqual(offered, options, command)
        described = ('_describe() { print -rl -- $commands }; words=(txrelay ""); CURRENT=2; '
                     'source ' + f'{FOLDER}/_txrelay')
        self.assertEqual(re.findall(r'^(\w+):', run('zsh', '-fc', described), re.M), self.commands)

    def fish(self, line):
        text = f"source {FOLDER}/txrelay.fish; complete -C '{line}'"
        return [x.split('\t')[0] for x in run('fish', '--no-config', '-c', text).splitlines()]

    def test_fish(self):
        self.assertEqual(set(self.fish('txrelay ')), set(self.commands))
        for command, options in self.options.items():
            self.assertEqual({x[2:] for x in self.fish(f'txrelay {command} --')}, options, command)
        self.assertEqual(set(self.fish('txrelay run --log-level ')),
                         {'error', 'warn', 'info', 'debug'})


if __name__ == '__main__':
    unittest.main()
