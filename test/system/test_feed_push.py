"""`txrelay feed push` when the relay's database has lost what it acknowledged, and what it shows
on a terminal."""
import fcntl
import json
import os
import pty
import re
import subprocess
import unittest

from harness import proc
from harness.chain import remark
from harness.relay import cli
from harness.world import World

FEED = 'payouts'


def read_all(terminal):
    """What was written to a terminal whose other end is closed; one read has a part of it."""
    shown = b''
    try:
        while part := os.read(terminal, 65536):
            shown += part
    except OSError:  # EIO: nothing is left
        pass
    return shown


class FeedPush(unittest.TestCase):
    def world(self, count, **options):
        """A relay with a feed of one publisher, and `count` batches in lines and in a directory."""
        world = self.enterContext(World())
        self.door = f'unix:{world.dir}/feeds'
        self.relay = world.relay('one', extra=f'feeds:\n  listen: {self.door}\n')
        world.wait_leader(self.relay)
        self.key = os.path.join(world.dir, 'publisher.ed25519')
        self.public = re.search(r'public key +0x([0-9a-f]{64})',
                                cli('keys', 'new', self.key, '--scheme', 'ed25519').stdout)[1]
        self.options = [word for k, v in options.items() for word in ('--option', f'{k}={v}')]
        self.create(world)
        self.content = [remark(f'batch {n}') for n in range(count)]
        self.lines = ''.join(f'["0x{call.hex()}"]\n' for call in self.content)
        self.directory = os.path.join(world.dir, 'batches')
        os.mkdir(self.directory)
        for n, line in enumerate(self.lines.splitlines()):
            with open(os.path.join(self.directory, f'{n}.json'), 'w') as file:
                file.write(line)
        return world

    def create(self, world, last=-1):
        cli('feed', 'create', FEED, 'alice', self.public, '--last', str(last), *self.options,
            '--database', world.pg.dsn)

    def push(self, source, stdin=None):
        p = subprocess.Popen([proc.TXRELAY, 'feed', 'push', FEED, source, '--to', self.door,
                              '--key', self.key, '--json'], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(p.communicate)
        self.addCleanup(p.kill)
        # It waits for its reader after two hundred lines, so it has not ended before a test says.
        fcntl.fcntl(p.stdout, fcntl.F_SETPIPE_SZ, 4096)
        if stdin:
            p.stdin.write(stdin)
            p.stdin.flush()
        return p

    def acknowledged(self, p, number):
        """Reads on until this number is acknowledged."""
        last = -1
        while last < number:
            last = json.loads(p.stdout.readline())['acknowledged']
        return last

    def lose(self, world, last):
        """The cursor goes back, as after a failover that lost commits. The keys of the calls stay,
        so each call stays one."""
        cli('feed', 'remove', FEED, '--database', world.pg.dsn)
        self.create(world, last)

    def check(self, world):
        ids = dict(world.pg.query('SELECT key, id FROM txrelay.idempotency_keys'))
        self.assertEqual(sorted(ids),
                         sorted(f'feed/{FEED}/{n}/0' for n in range(len(self.content))))
        world.committed = {self.content[int(key.split('/')[2])]: tx for key, tx in ids.items()}
        self.assertEqual(world.settle()['finalized'], len(self.content))

    def test_a_directory_goes_back_to_what_was_lost(self):
        world = self.world(600)
        p = self.push(self.directory)
        self.acknowledged(p, 20)
        self.lose(world, 9)
        self.assertIsNone(p.poll(), 'all of it was taken before')
        out, err = p.communicate(timeout=120)
        self.assertEqual(p.returncode, 0, err)
        self.assertIn('the relay needs batch 10 again: going back to it', err)
        self.assertEqual(json.loads(out.splitlines()[-1]), {'acknowledged': 599})
        self.check(world)

    def test_lines_wait_for_another_publisher_that_has_it(self):
        world = self.world(30, behind_stays_open=1)
        half = ''.join(self.lines.splitlines(keepends=True)[:20])
        p = self.push('-', half)
        self.acknowledged(p, 19)
        self.lose(world, 9)
        p.stdin.write(self.lines[len(half):])
        p.stdin.close()
        p.stdin = None
        self.relay.wait_log(rf'level=warn event=feed\.too_far_behind feed={FEED} session=\d+ '
                            r'peer=".*" last=9 earliest=20 latest_acked=19')
        other = self.push(self.directory)
        for one in (other, p):
            _, err = one.communicate(timeout=120)
            self.assertEqual(one.returncode, 0, err)
        self.assertIn('batch 10 is needed by the relay and is not here', err)
        self.check(world)

    def test_progress_on_a_terminal(self):
        world = self.world(5)
        ours, theirs = pty.openpty()
        done = subprocess.run([proc.TXRELAY, 'feed', 'push', FEED, self.directory, '--to',
                               self.door, '--key', self.key],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs,
                              text=True, timeout=60)
        os.close(theirs)
        shown = read_all(ours).decode()
        os.close(ours)
        self.assertEqual((done.returncode, done.stdout), (0, '4\n'))
        self.assertIn('\rpayouts: 4 acknowledged, 0 kept', shown)
        self.assertTrue(shown.endswith('\n'), 'the line is ended')
        self.check(world)


if __name__ == '__main__':
    unittest.main()
