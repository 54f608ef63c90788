"""Processes whose clock is not the machine's."""
import glob
import os
import re
import time

from . import proc

LIBRARY = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1'
AVAILABLE = os.path.exists(LIBRARY)
MISSING = 'libfaketime is not installed'

_begun = time.time()


def environment(**settings):
    """Variables of a process: FAKETIME='-1h', or FAKETIME_TIMESTAMP_FILE. The monotonic clock
    stays true."""
    proc.on_exit(_remove_shared_memory)
    return {'LD_PRELOAD': LIBRARY, 'DONT_FAKE_MONOTONIC': '1', 'FAKETIME_DONT_FAKE_MONOTONIC': '1',
            **settings}


def _remove_shared_memory():
    """The library removes its own at exit; a process that is killed leaves it."""
    for path in glob.glob('/dev/shm/faketime_shm_*') + glob.glob('/dev/shm/sem.faketime_sem_*'):
        try:
            if not os.path.exists('/proc/' + re.search(r'\d+$', path)[0]) and os.stat(
                path).st_mtime >= _begun - 1:
                os.unlink(path)
        except FileNotFoundError:
            pass
