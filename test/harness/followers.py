"""Followers whose connection and process may be ended at any time, and the view that their reader
has of it all.

The view lives in the reader, as it would in an application: it outlives the follower's process,
which goes on from the last position that was written down."""
import json
import os
import re
import subprocess

from . import proc

LINE = re.compile(r'(new|update|removed|finished) account=\S+ id=(\d+) nonce=(-?\d+) state=(\S*) '
                  r'outcome=(\S*)$')


class View:
    """What was heard of each transaction last: (state, outcome or None)."""

    def __init__(self):
        self.last, self.ended = {}, set()  # ended: told in this life of the process
        # thought to be pending when the process began anew, and not told since
        self.unsure = set()
        self.lives, self.stales, self.events, self.scanned = 0, 0, 0, 0

    def begin(self):
        self.unsure = {tx for tx, (_, outcome) in self.last.items() if outcome is None}
        self.ended.clear()

    def take(self, event, tx, state, outcome):
        if event == 'live':
            self.lives += 1
            for gone in self.unsure:  # it waits in the outbox again
                self.last.pop(gone, None)
            self.unsure.clear()
        elif event == 'stale':
            self.stales += 1
        elif tx:
            self.events += 1
            assert tx not in self.ended, f'{event} of transaction {tx} was told after its end'
            known = self.last.get(tx)
            assert not (known and known[1]
                and known != (state, outcome)), f'the end of {tx} was {known}, is {state} {outcome}'
            self.unsure.discard(tx)
            if event == 'removed':
                self.last.pop(tx, None)
            else:
                self.last[tx] = (state, outcome)
            if outcome:
                self.ended.add(tx)


class Follower:
    """One program and its login. far: the proxy between it and the server, if there is one."""
    stdin, environment = subprocess.DEVNULL, None

    def __init__(self, world, name, alias=None, far=None):
        self.world, self.name, self.alias, self.far = world, name, alias, far
        self.user = f'{name}_{world.number}'
        with world.pg.connect() as db, db.cursor() as cur:
            cur.execute(f'CREATE ROLE {self.user} LOGIN IN ROLE txrelay_follower')
        db.close()
        self.dsn = world.pg.dsn_of(world.pg.database, self.user)
        if far:
            parts = {**dict(p.split('=', 1) for p in self.dsn.split()), 'host': '127.0.0.1',
                     'port': str(far.port)}
            self.dsn = ' '.join(f'{k}={v}' for k, v in parts.items())
        self.view, self.process, self.serial = View(), None, 0

    def start(self):
        self.serial += 1
        self.path = os.path.join(self.world.dir, f'{self.name}-{self.serial}.out')
        self.read, self.rest = open(self.path, 'a+b'), b''
        with open(self.path, 'ab') as out:
            self.process = proc.Process(self.command(),
                                        os.path.join(self.world.dir, f'{self.name}.log'),
                                        stdin=self.stdin,
                                        stdout=out, env=self.environment)
        self.view.begin()
        return self

    def kill_process(self):
        """SIGKILL, and what it had written is read to the last whole line."""
        self.process.kill()
        self.look()
        self.read.close()

    def look(self):
        """Takes what was written since the last look."""
        *lines, self.rest = (self.rest + self.read.read()).split(b'\n')
        for line in lines:
            self.take(line.decode())
        return self.view

    def wait_lives(self, count, seconds=60):
        try:
            proc.wait_for(f'{self.name} to be live', lambda: self.look().lives >= count, seconds)
        except TimeoutError as error:
            raise TimeoutError(f'{error}\n{self.process.text()[-2000:]}') from None

    def close(self):
        self.process.kill()
        self.read.close()


class TailFollower(Follower):
    """`txrelay tail --json --since POSITION`."""
    position = '1'

    def command(self):
        return [proc.TXRELAY, 'tail', '--json', '--since', self.position, '--database', self.dsn,
                *(['--account', self.alias] if self.alias else [])]

    def take(self, line):
        row = json.loads(line)
        self.position = row['position']
        self.view.take(row['event'], row.get('id'), row.get('state', ''), row.get('outcome'))
        self.view.scanned += row.get('from_scan', False)


class LibraryFollower(Follower):
    """listen/example/follow.c, built with the installed library. It keeps its position in a file,
    and ends when its standard input does."""
    stdin = subprocess.PIPE

    def __init__(self, installed, world, name, alias, far=None):
        super().__init__(world, name, alias, far)
        self.installed = installed
        self.position_file = os.path.join(world.dir, f'{name}.position')
        with open(self.position_file, 'w') as file:
            file.write('1\n')
        self.environment = installed.env

    def command(self):
        return [os.path.join(self.installed.build, 'follow'), self.dsn, self.alias,
                self.position_file]

    def take(self, line):
        word, found = line.split(' ', 1)[0], LINE.match(line)
        assert found or word in ('live', 'stale', 'gap'), line
        if found:
            word, tx, _, state, outcome = found.groups()
            self.view.take(word, int(tx), state, outcome or None)
        else:
            self.view.take(word, 0, '', None)
