"""Every command of README.md, run in its order against a real Postgres and devchain."""
import os
import re
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import proc  # noqa: E402
from harness.chain import Devchain, remark  # noqa: E402
from harness.postgres import Postgres  # noqa: E402

NODE_MODULES = os.path.join(proc.ROOT, 'build', 'runtime', 'node_modules')


def blocks():
    """(language, text, the HTML comment right before it) of each fenced block."""
    with open(os.path.join(proc.ROOT, 'README.md')) as file:
        text = file.read()
    return [(m.group(2), m.group(3), (m.group(1) or '').strip())
            for m in re.finditer(r'(?:<!-- (.*?) -->\n)?```(\w*)\n(.*?)```', text, re.S)]


def stat_of(pid):
    """The fields of /proc/PID/stat behind the name; none for a process that is gone."""
    try:
        with open(f'/proc/{pid}/stat') as file:
            return file.read().rpartition(')')[2].split()
    except OSError:
        return []


def began_at(pid):
    return stat_of(pid)[19:20]


def session_of(leader):
    return [int(pid) for pid in os.listdir('/proc') if pid.isdigit() and stat_of(pid)[3:4] == [str(leader)]]


class Readme(unittest.TestCase):
    def setUp(self):
        self.dir = proc.make_dir('txreadme-')
        self.pg = Postgres(os.path.join(self.dir, 'pg'), durable=False)
        self.chain = Devchain(self.dir, '--block-ms', '250', '--finality-lag', '1')
        host = dict(p.split('=', 1) for p in self.pg.dsn.split())
        self.env = {
            **os.environ,
            'PATH': os.path.dirname(proc.TXRELAY) + ':' + os.environ['PATH'],
            'DB': self.pg.dsn, 'NODE': self.chain.ws,
            'DB_NODE': f"postgresql://postgres@/{host['dbname']}?host={host['host']}",
        }
        self.left = {}  # what blocks left running in the background: {pid: when it began}
        proc.on_exit(self.end_left)

    def end_left(self):
        for pid, began in self.left.items():
            if began_at(pid) == began:
                os.kill(pid, signal.SIGTERM)

    def run_block(self, language, text):
        def run(args, **kw):
            """In a session of its own, by which the processes that it leaves behind are known."""
            child = subprocess.Popen(args, cwd=self.dir, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     stdin=subprocess.PIPE, text=True, start_new_session=True)
            said, _ = child.communicate(kw.get('input'), timeout=120)
            self.left.update({pid: began_at(pid) for pid in session_of(child.pid)})
            return subprocess.CompletedProcess(args, child.returncode, said)

        if language == 'sh':
            # The relay of the page goes on in the background: its output must not hold ours open.
            return run(['bash', '-euo', 'pipefail', '-c', text.replace('2>relay-1.log &', '>/dev/null 2>relay-1.log &')])
        if language == 'sql':
            return run(['psql', '-X', '-v', 'ON_ERROR_STOP=1', self.pg.dsn, '-f', '-'], input=text)
        if language == 'python':
            return run(['/usr/bin/python3', '-c', text])
        if language == 'js':
            with open(os.path.join(self.dir, 'enqueue.mjs'), 'w') as file:
                file.write(text)
            if not os.path.exists(os.path.join(self.dir, 'node_modules')):
                os.symlink(NODE_MODULES, os.path.join(self.dir, 'node_modules'))
            return run([os.environ.get('TXRELAY_NODE', 'node'), 'enqueue.mjs'])
        if language == 'c':
            with open(os.path.join(self.dir, 'enqueue.c'), 'w') as file:
                file.write(text)
            flags = subprocess.check_output(['pkg-config', '--cflags', '--libs', 'libpq'], text=True).split()
            built = run(['gcc', '-Wall', '-Werror', 'enqueue.c', '-o', 'enqueue', *flags])
            return built if built.returncode else run(['./enqueue'])
        self.fail(f'README has a block of language {language!r} that this test cannot run')

    def test_every_command(self):
        ran = 0
        for language, text, comment in blocks():
            if not language or comment in ('run by CI itself', 'set by the test'):
                continue
            with self.subTest(block=text.splitlines()[0]):
                done = self.run_block(language, text)
                self.assertEqual(done.returncode, 0, f'{text}\n---\n{done.stdout}')
                ran += 1
        self.assertGreaterEqual(ran, 7)
        proc.wait_for('the eight transactions to end',
                      lambda: self.pg.value('SELECT count(*) FROM txrelay.finished_transactions') == 8)
        calls = {x.call for _, _, _, x in self.chain.walk()}
        for content in ('hello', 'from node', 'from python', 'from C', 'shell', 'named', 'at once', 'signed elsewhere',
                        'solo'):
            self.assertIn(remark(content), calls, content)
        outcomes = {r[0] for r in self.pg.query('SELECT outcome FROM txrelay.finished_transactions')}
        self.assertEqual(outcomes, {'ok'})

    def test_every_config_key_is_documented(self):
        with open(os.path.join(proc.ROOT, 'main', 'config.c')) as file:
            keys = set(re.findall(r'(?:STR_\w+|UINT_OPT|BOOL_OPT|CYAML_FIELD_\w+)\(\s*"(\w+)"', file.read()))
        with open(os.path.join(proc.ROOT, 'docs', 'config.md')) as file:
            text = file.read()
        self.assertGreater(len(keys), 15)
        for key in keys - {'accounts'}:
            self.assertRegex(text, rf'`[\w.\[\]]*\b{key}`', key)


if __name__ == '__main__':
    unittest.main()
