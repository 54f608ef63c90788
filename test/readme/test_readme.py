"""Every command of README.md and docs/, in the order of a page, against a real Postgres and
devchain."""
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import proc  # noqa: E402
from harness.chain import Chain, Devchain, remark  # noqa: E402
from harness.postgres import Postgres  # noqa: E402
from readme.pages import all_pages, to_run  # noqa: E402

NODE_MODULES = os.path.join(proc.ROOT, 'build', 'runtime', 'node_modules')
# These go on from the README's relay, one after the other.
CONTINUED = ['README.md', 'docs/applications.md', 'docs/keys.md', 'docs/install.md',
             'docs/postgres.md', 'docs/faq.md',
             'docs/upgrade.md', 'docs/drill.md', 'docs/backup.md']
# These bring a relay and a chain of their own.
ALONE = ['docs/tutorial.md']


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
    return [int(pid) for pid in os.listdir('/proc') if pid.isdigit()
            and stat_of(pid)[3:4] == [str(leader)]]


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Postgres(os.path.join(proc.make_dir('txreadme-'), 'pg'), durable=False)

    def setUp(self):
        self.dir = proc.make_dir('txreadme-')
        self.left = {}  # what blocks left running in the background: {pid: when it began}
        proc.on_exit(self.end_left)
        self.addCleanup(self.end_left)
        self.pg = self.server.sibling('app')  # the name that the pages use
        self.env = {
            **os.environ,
            'PATH': os.pathsep.join([os.path.dirname(proc.TXRELAY), os.path.dirname(proc.DEVCHAIN),
                                     os.environ['PATH']]),
            # As the pages print it, but for the folder of the socket.
            'DB': f'postgresql:///app?host={self.server.dir}', 'PGUSER': 'postgres',
            'NODE': 'ws://127.0.0.1:9944',
        }

    def tearDown(self):
        self.end_left()
        with self.server.admin() as db, db.cursor() as cur:
            cur.execute('DROP DATABASE app WITH (FORCE)')

    def end_left(self):
        for pid, began in self.left.items():
            if began_at(pid) == began:
                os.kill(pid, signal.SIGTERM)
        proc.wait_for('what the pages left to end',
                      lambda: not any(began and began_at(pid) == began and stat_of(pid)[0] != 'Z'
                                                               for pid, began in self.left.items()))

    def run_block(self, language, text):
        def run(args, **kw):
            """In a session of its own, by which the processes that it leaves behind are known."""
            child = subprocess.Popen(args, cwd=self.dir, env=self.env, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT,
                                     stdin=subprocess.PIPE, text=True, start_new_session=True)
            said, _ = child.communicate(kw.get('input'), timeout=120)
            self.left.update({pid: began_at(pid) for pid in session_of(child.pid)})
            return subprocess.CompletedProcess(args, child.returncode, said)

        if language == 'sh':
            # A reader has one shell for a page: what one block sets, the next one has.
            kept = '[ ! -f .page ] || . ./.page; set -a; trap "export -p >.page" EXIT\n'
            return run(['bash', '-euo', 'pipefail', '-c', kept + text])
        if language == 'sql':
            return run(['psql', '-X', '-v', 'ON_ERROR_STOP=1', self.env['DB'], '-f', '-'],
                       input=text)
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
            flags = subprocess.check_output(['pkg-config', '--cflags', '--libs', 'libpq'],
                                            text=True).split()
            built = run(['gcc', '-Wall', '-Werror', 'enqueue.c', '-o', 'enqueue', *flags])
            return built if built.returncode else run(['./enqueue'])
        self.fail(f'this test cannot run a block of language {language!r}')

    def run_page(self, page):
        """What its blocks print."""
        said = ''
        found = to_run(page)
        self.assertGreater(len(found), 0, page)
        for language, text in found:
            done = self.run_block(language, text)
            self.assertEqual(done.returncode, 0,
                             f'{page}:\n{text}\n---\n{done.stdout}{self.logs()}')
            said += done.stdout
        return said

    def logs(self):
        text = ''
        for name in sorted(os.listdir(self.dir)):
            if name.endswith('.log'):
                with open(os.path.join(self.dir, name), errors='replace') as file:
                    text += f'--- {name}\n{file.read()[-3000:]}'
        return text

    def outcomes(self):
        return [r[0] for r in self.pg.query(
            'SELECT outcome FROM txrelay.finished_transactions WHERE id IS NOT NULL ORDER BY id')]

    def calls(self, chain):
        return {x.call for _, _, _, x in chain.walk()}

    def test_pages_that_go_on_from_the_readme(self):
        chain = Devchain(self.dir, '--block-ms', '250', '--finality-lag', '1')
        self.addCleanup(chain.process.kill)
        self.env['NODE'] = chain.ws
        said = {page: self.run_page(page) for page in CONTINUED}
        proc.wait_for('the transactions to end', lambda: len(self.outcomes()) == 14)
        self.assertEqual(sorted(self.outcomes()), ['cancelled'] + 13 * ['ok'])
        calls = self.calls(chain)
        for content in ('hello', 'one', 'two', 'from node', 'from python', 'from C', 'shell',
                        'wait', 'named', 'at once', 'signed elsewhere', 'solo',
                        'drill1', 'drill2'):
            self.assertIn(remark(content), calls, content)
        self.assertIn('nothing is wrong', said['docs/drill.md'])

    def test_pages_alone(self):
        for page in ALONE:
            said = self.run_page(page)
            with open(os.path.join(self.dir, 'devchain.log')) as file:
                self.assertIn('listening ' + self.env['NODE'], file.read(),
                              'another program has its port')
            self.assertEqual(self.outcomes(), ['ok', 'dispatch_error', 'ok'])
            self.assertIn('exit code 4', said)
            self.assertIn('Balances.InsufficientBalance', said)
            self.assertRegex(
                said, r'txrelay_finished_total\{account="alice",outcome="dispatch_error"\} 1')
            self.assertRegex(said, r'alice +txrelay-relay-2\S* +2 ')
            self.assertIn('nothing is wrong', said)
            self.assertNotIn(remark('never'), self.calls(Chain(self.env['NODE'])))

    def test_every_page_with_commands_is_run(self):
        self.assertEqual({page for page in all_pages() if to_run(page)}, {*CONTINUED, *ALONE})


if __name__ == '__main__':
    unittest.main()
