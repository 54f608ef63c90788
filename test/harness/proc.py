"""Processes and directories of one run. Everything that was started is stopped at exit, by any
signal."""
import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('TXRELAY_BUILD', os.path.join(ROOT, 'build', 'dev'))
TXRELAY = os.path.join(BUILD, 'main', 'txrelay')
DEVCHAIN = os.path.join(BUILD, 'test', 'devchain', 'devchain')

_stops = []
_dirs = []


def on_exit(stop):
    _stops.append(stop)


def cleanup():
    while _stops:
        try:
            _stops.pop()()
        except Exception as error:  # the rest must still be stopped
            print('cleanup:', error, file=sys.stderr)
    while _dirs:
        path = _dirs.pop()
        if os.environ.get('TXRELAY_KEEP'):
            print('kept', path, file=sys.stderr)
        else:
            shutil.rmtree(path, ignore_errors=True)


atexit.register(cleanup)


def _on_signal(signum, _frame):
    sys.exit(128 + signum)


def install_signals():
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _on_signal)


def make_dir(prefix='txrelay-'):
    """A short path: unix socket names have room for 107 characters."""
    path = tempfile.mkdtemp(prefix=prefix, dir='/tmp')
    os.chmod(path, 0o755)
    _dirs.append(path)
    return path


def wait_for(what, condition, seconds=60.0, every=0.04):
    """Wait until condition() gives something true, and return it."""
    deadline = time.monotonic() + seconds
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > deadline:
            raise TimeoutError(f'{what}: not within {seconds} s')
        time.sleep(every)


def json_lines(text):
    """The objects that a program has printed, one a line. Of its last line there may be a part."""
    return [json.loads(line) for line in text.split('\n')[:-1] if line.startswith('{')]


class Process:
    """A child in the background with its output in a file. It dies with us (PR_SET_PDEATHSIG)."""

    def __init__(self, args, log, env=None, cwd=None, stdin=subprocess.DEVNULL, stdout=None):
        self.args, self.log = args, log
        self.file = open(log, 'ab')
        full = dict(os.environ)
        full.update(env or {})
        self.child = subprocess.Popen(args, stdin=stdin, stdout=stdout or self.file,
                                      stderr=self.file, env=full, cwd=cwd,
                                      preexec_fn=_die_with_parent)
        on_exit(self.kill)

    @property
    def pid(self):
        return self.child.pid

    def alive(self):
        return self.child.poll() is None

    def kill(self, signum=signal.SIGKILL):
        if self.alive():
            self.child.send_signal(signal.SIGCONT)
            self.child.send_signal(signum)
            self.child.wait()
        self.file.close()

    def stop(self, seconds=15):
        """A polite end; the exit code."""
        self.child.terminate()
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self.file.close()
        return self.child.returncode

    def text(self):
        with open(self.log, errors='replace') as file:
            return file.read()


def _die_with_parent():
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    os.setpgrp()  # Ctrl-C goes to the harness alone, which stops the rest in order


def run(args, env=None, check=True, seconds=120, **kwargs):
    full = dict(os.environ)
    full.update(env or {})
    done = subprocess.run(args, env=full, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=seconds,
                          **kwargs)
    if check and done.returncode:
        raise RuntimeError(f'{args}: exit {done.returncode}\n{done.stdout}{done.stderr}')
    return done
