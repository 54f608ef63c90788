"""The unit of systemd: it is well formed, its exposure is the one that its commit stated, and a
relay at work, with a reload and a hand-over, uses no system call that its filter refuses and no
file that it hides."""
import os
import re
import signal
import subprocess
import unittest

from harness import proc
from harness.world import World

UNIT = os.path.join(proc.BUILD, 'packaging', 'txrelay.service')
EXPOSURE = 12  # tenths; systemd 252


def run(*argv):
    done = subprocess.run(argv, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def calls_of(group, seen=None):
    """The names of a group of system calls, as systemd has them."""
    seen = seen if seen is not None else set()
    _, text = run('systemd-analyze', 'syscall-filter', group)
    for name in re.findall(r'^    (@?[a-z0-9_-]+)$', text, re.M):
        if name.startswith('@'):
            calls_of(name, seen)
        else:
            seen.add(name)
    return seen


class TestUnit(unittest.TestCase):
    def test_exposure(self):
        rc, text = run('systemd-analyze', 'security', '--offline=true', f'--threshold={EXPOSURE}',
                       '--no-pager', UNIT)
        self.assertEqual(rc, 0, text[-400:])

    def test_words(self):
        """Each line is one that systemd knows. (The program is not installed where the unit names
        it, nor are the pages.)"""
        _, text = run('systemd-analyze', 'verify', '--man=no', UNIT)
        wrong = [line for line in text.splitlines() if 'txrelay.service' in line
                 and 'is not executable' not in line]
        self.assertEqual(wrong, [])

    def test_system_calls(self):
        with open(UNIT) as f:
            unit = f.read()
        filters = re.findall(r'^SystemCallFilter=(~?)(\S+)$', unit, re.M)
        self.assertEqual(filters, [('', '@system-service'), ('~', '@privileged')])
        allowed = calls_of('@system-service') - calls_of('@privileged') | calls_of('@default')
        self.assertGreater(len(allowed), 200)
        with World() as world:
            relay = world.relay('one', start=False, extra='metrics: 127.0.0.1:0\n')
            log = os.path.join(world.dir, 'strace')
            relay.process = proc.Process(['strace', '-f', '-qq', '-o', log, proc.TXRELAY, 'run',
                                          '--config', relay.config], relay.log)
            world.wait_leader(relay, seconds=60)
            for i in range(5):
                world.enqueue(f'traced {i}')
            world.settle()
            with open(
                f'/proc/{relay.process.child.pid}/task/{relay.process.child.pid}/children') as f:
                pid = int(f.read().split()[0])
            os.kill(pid, signal.SIGHUP)
            relay.wait_log('config.reloaded')
            os.kill(pid, signal.SIGTERM)
            relay.wait_log('relay.released')
            relay.process.child.wait(30)
            with open(log, errors='replace') as f:
                text = f.read()
        # Until the program runs (execve), strace itself is traced.
        used = set(re.findall(r'^\d+ +(?:<\.\.\. )?([a-z0-9_]+)[( ]', text, re.M))
        self.assertGreater(len(used), 30)
        self.assertEqual(sorted(used - allowed - {'exit_group', 'execve'}), [])
        families = set(re.findall(r'socket\((AF_\w+)', text))
        self.assertEqual(families - set(re.search(r'^RestrictAddressFamilies=(.*)$', unit,
                                                  re.M).group(1).split()) - {'AF_NETLINK'}, set())


if __name__ == '__main__':
    unittest.main()
