"""The second act: three publishers of one feed compute the same numbered batches. otto is killed
with kill -9 in the middle of one, loki's batches contain a call that the chain does not have, and
vera just works. The relay must take each number once and in order, and nothing of loki's."""
import calendar
import json
import os
import re
import subprocess
import time

from harness import proc
from harness.chain import remark
from harness.proxy import Proxy
from harness.relay import cli

FEED, ACCOUNT = 'prices', 'alice'
NUMBERS, CALLS, PACE_S = 30, 3, 0.08
# long enough for its publisher to die in the middle of it
FATAL, FATAL_CALLS, FATAL_BYTES = 12, 40, 8192
LIE = '0xff00'


class Publisher:
    """One `txrelay feed push` that reads its batches from a pipe."""

    def __init__(self, directory, name, lies=False):
        self.directory, self.name, self.lies = directory, name, lies
        self.key = os.path.join(directory, f'{name}.ed25519')
        made = cli('keys', 'new', self.key, '--scheme', 'ed25519').stdout
        self.public = re.search(r'public key +0x([0-9a-f]{64})', made)[1]

    def start(self, to):
        self.process = proc.Process([proc.TXRELAY, 'feed', 'push', FEED, '--to', to, '--key',
                                     self.key],
                                    os.path.join(self.directory, f'{self.name}.log'),
                                    stdin=subprocess.PIPE)
        return self

    def compute(self, batch):
        calls = [LIE, *batch[1:]] if self.lies else batch
        self.process.child.stdin.write(json.dumps(calls).encode() + b'\n')
        self.process.child.stdin.flush()

    def end(self):
        self.process.child.stdin.close()


class Wire:
    """otto's way to the relay. Once it is armed, it passes the first half of a long batch and no
    more."""

    def __init__(self, target):
        self.armed, self.passed = False, 0
        self.proxy = Proxy(target, tap=self.tap)

    def tap(self, _link, data):
        """In the proxy's thread, before it passes the bytes on."""
        if self.armed:
            self.passed += len(data)
            if self.passed > FATAL_CALLS * FATAL_BYTES // 2:
                self.proxy.mode = 'hold'

    def is_stuck(self):
        return self.proxy.mode == 'hold'


class FeedAct:
    def __init__(self, demo, paint):
        self.demo, self.paint, self.dir = demo, paint, demo.dir
        self.batches = [[remark(f'price {n}-{i}'.ljust(FATAL_BYTES if n == FATAL else 0))
                         for i in range(FATAL_CALLS if n == FATAL else CALLS)]
                         for n in range(NUMBERS)]
        self.lines = [['0x' + call.hex() for call in batch] for batch in self.batches]
        self.committed = {}

    @staticmethod
    def door(directory, relay):
        return os.path.join(directory, f'{relay}.feeds')

    @classmethod
    def settings(cls, directory, relay):
        return f'feeds:\n  listen: unix:{cls.door(directory, relay)}\n'

    def set_up(self):
        self.vera, self.otto = Publisher(self.dir, 'vera'), Publisher(self.dir, 'otto')
        self.loki = Publisher(self.dir, 'loki', lies=True)
        self.people = {p.public: p.name for p in (self.vera, self.otto, self.loki)}
        cli('feed', 'create', FEED, ACCOUNT, *self.people, '--database', self.demo.pg.dsn)

    def logged(self, pattern):
        return re.search(pattern, self.leader.text(), re.M)

    def run(self):
        say = self.demo.say
        say('')
        self.leader = proc.wait_for('a leader', lambda: self.demo.leader(ACCOUNT), 30)
        say(f'a feed: vera, otto and loki compute the same {NUMBERS} batches and stream them to '
            f'{self.leader.name}')
        door = self.door(self.dir, self.leader.name)
        proc.wait_for('the feed to be served',
                      lambda: self.logged(rf'event=feed\.served feed={FEED} '), 30)
        wire = Wire(door)
        self.otto.start(f'127.0.0.1:{wire.proxy.port}')
        self.loki.start(f'unix:{door}').compute(self.lines[0])
        proc.wait_for('loki to be refused', lambda: self.logged(r'event=feed\.bad_batch '), 30)
        say(self.paint('31', 'loki lies in batch 0, and is first'))
        self.vera.start(f'unix:{door}')
        for n, line in enumerate(self.lines):
            people = [self.otto, self.vera, self.loki]
            if n == FATAL:
                self.lose_otto(wire, door)
                people = [self.loki]
            elif n == 0:
                people = [self.otto, self.vera]  # loki has it
            # now this one is the first, now that one
            for publisher in people[n % 3:] + people[:n % 3]:
                publisher.compute(line)
            time.sleep(PACE_S)  # the pace of who computes
        for honest in (self.vera, self.otto):
            honest.end()
            if honest.process.child.wait(60):
                raise RuntimeError(f'{honest.name}: {honest.process.text()}')
        self.loki.process.kill()
        proc.wait_for('the transactions of the feed to end', lambda: self.unfinished() == 0, 60)

    def lose_otto(self, wire, door):
        """kill -9, while otto's copy is being taken and is not whole."""
        proc.wait_for('the batches before it to be taken', lambda: self.last() == FATAL - 1, 30)
        wire.armed = True
        self.otto.compute(self.lines[FATAL])
        proc.wait_for('otto to be in the middle of it', wire.is_stuck, 30)
        taking = proc.wait_for('otto to be first',
                               lambda: self.logged(
                                   rf'event=feed\.primary .*session=(\d+) number={FATAL}$'), 30)
        self.vera.compute(self.lines[FATAL])
        self.lost_session, self.killed = taking[1], time.time()
        self.otto.process.kill()
        wire.proxy.cut()
        self.demo.say(self.paint('31', f'kill -9 otto, in the middle of batch {FATAL}'))
        proc.wait_for(f'batch {FATAL} to be taken of another', lambda: self.last() >= FATAL, 30)
        self.otto.start(f'unix:{door}')
        for line in self.lines[:FATAL + 1]:
            self.otto.compute(line)
        self.demo.say('otto is back, and computes it all again')

    def last(self):
        return self.demo.pg.value('SELECT last_number FROM txrelay.feeds WHERE name = %s', (FEED,))

    def unfinished(self):
        return self.demo.pg.value('''SELECT count(*) FROM txrelay.idempotency_keys k
            WHERE k.key LIKE %s AND NOT EXISTS
            (SELECT FROM txrelay.finished_transactions f WHERE f.id = k.id)''', (f'feed/{FEED}/%',))

    def count(self, status):
        """Headers of batches, by what became of them, at all relays."""
        text = ''.join(r.control({'cmd': 'metrics'})['text'] for r in self.demo.relays if r.alive())
        return sum(int(n) for n in re.findall(
            rf'txrelay_publish_blocks_received_total{{feed="{FEED}",status="{status}"}} (\d+)',
            text))

    def gather(self):
        """Remembers what the feed put into the outbox, for the check against the chain. What is
        wrong with it, or ''."""
        ids = dict(self.demo.pg.query('SELECT key, id FROM txrelay.idempotency_keys '
                                      'WHERE key LIKE %s', (f'feed/{FEED}/%',)))
        places = {f'feed/{FEED}/{n}/{i}': call for n, batch in enumerate(self.batches)
                  for i, call in enumerate(batch)}
        taken = self.demo.pg.query('''SELECT number, encode(publisher, 'hex'), calls, first_id,
                                      last_id FROM txrelay.feed_batches
                                      WHERE feed = %s ORDER BY first_id''', (FEED,))
        self.taken = [(number, self.people[key]) for number, key, _, _, _ in taken]
        self.refused = re.findall(r'event=feed\.bad_batch .*publisher=0x(\w+) text="(.*)"',
                                  self.leader.text())
        if sorted(ids) != sorted(places):
            return f'{len(ids)} calls of the feed are stored, and {len(places)} were published'
        self.committed = {places[key]: tx for key, tx in ids.items()}
        if [n for n, _ in self.taken] != list(range(NUMBERS)):
            return f'the numbers were not taken once and in order: {[n for n, _ in self.taken]}'
        if any(name == 'loki' for _, name in self.taken):
            return 'a copy of loki was taken'
        if not self.refused or any(self.people[key] != 'loki' for key, _ in self.refused):
            return f'another than loki was refused: {self.refused}'
        if self.logged(rf'event=feed\.published .*session={self.lost_session} number={FATAL} '):
            return f'batch {FATAL} of the killed otto was taken'
        return ''

    def report(self):
        """Lines for people."""
        by = {name: sum(name == n for _, n in self.taken) for name in ('vera', 'otto', 'loki')}
        stamp = self.logged(rf'^time=(\S+)Z .*event=feed\.published .*number={FATAL} ')[1]
        heir = dict(self.taken)[FATAL]
        after = _epoch(stamp) - self.killed
        rows = [
            ('numbers taken', len(self.taken),
             f"each once and in order: {by['vera']} of vera's copies, {by['otto']} of otto's, "
             f"{by['loki'] or 'none'} of loki's"),
            ('copies skipped', self.count('skipped'),
             'another publisher was faster, and all three heard when it was stored'),
            ('copies refused', len(self.refused), f"loki's, every one: \"{self.refused[0][1]}\""),
            ('copies cut off', 1, f"otto died in the middle of number {FATAL}; {heir}'s was stored "
                                  f"{after * 1000:.0f} ms later"),
        ]
        return [f'{what:<14} {n:>5}  {why}' for what, n, why in rows]


def _epoch(stamp):
    whole, fraction = stamp.split('.')
    return calendar.timegm(time.strptime(whole, '%Y-%m-%dT%H:%M:%S')) + float('0.' + fraction)
