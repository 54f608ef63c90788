#!/usr/bin/env python3
"""The main job, to watch: a private Postgres, a chain, three relays, two accounts, 1,000
transactions from eight SQL sessions (every tenth rolled back), the leader killed with kill -9
twice. At the end the chain itself is asked whether every committed transaction took effect exactly
once. The second act is a feed (feed_act.py), the third one three sites (sites_act.py). Exit code 0
only if I1, I2, I3, I6 hold, also over the sites, and the feed took each number once."""
import argparse
import os
import re
import socket
import statistics
import sys
import threading
import time
from datetime import datetime, timezone

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import invariants, proc  # noqa: E402
from harness.chain import Devchain, remark  # noqa: E402
from harness.postgres import Postgres  # noqa: E402
from harness.relay import Relay, cli  # noqa: E402
from feed_act import FeedAct  # noqa: E402
from sites_act import SitesAct  # noqa: E402

ACCOUNTS = [('alice', 'sr25519', '//Alice'), ('bob', 'sr25519', '//Bob')]
SESSIONS = 8
WATCHED = 'relay-c'  # has the page
TTY = sys.stdout.isatty()


def paint(code, text):
    return f'\033[{code}m{text}\033[0m' if TTY else text


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


class Demo:
    def __init__(self, args):
        self.args = args
        self.committed, self.rolled_back, self.commit_time = {}, [], {}
        self.kills = []
        self.lock = threading.Lock()
        self.errors = []

    def say(self, text):
        if TTY:
            print('\r\033[K', end='')
        print(text, flush=True)

    def set_up(self):
        self.dir = proc.make_dir('txdemo-')
        self.say('a private Postgres on a unix socket ...')
        self.pg = Postgres(os.path.join(self.dir, 'pg'))
        cli('migrate', '--database', self.pg.dsn)
        self.say('a chain of its own (test/devchain), a block every 500 ms, finality two blocks '
                 'behind ...')
        self.chain = Devchain(self.dir, '--block-ms', '500', '--finality-lag', '2')
        self.say('three relays, two accounts ...')
        web = f'http:\n  listen: tcp:127.0.0.1:{free_port()}\n' if self.args.page else ''
        self.relays = [Relay(self.dir, name, self.pg.dsn, [self.chain.ws], ACCOUNTS,
                             extra=FeedAct.settings(self.dir, name)
                             + (web if name == WATCHED else '')).start()
                       for name in ('relay-a', 'relay-b', 'relay-c')]
        if self.args.page:
            self.show_page()
        for alias, _, _ in ACCOUNTS:
            proc.wait_for(f'a leader of {alias}', lambda a=alias: self.leader(a), 30)
        self.say('leading: ' + ', '.join(f'{a} by {self.leader(a).name}' for a, _, _ in ACCOUNTS))
        self.feed = FeedAct(self, paint)
        self.feed.set_up()
        self.sites = SitesAct(self, paint)
        self.sites.set_up()

    def show_page(self):
        """Of a relay that is killed only if it leads all; its port stays, so the page comes
        back."""
        relay = next(r for r in self.relays if r.name == WATCHED)
        address = relay.wait_log(r'event=http.listening address=tcp:(\S+)').group(1)
        token = cli('token', 'create', 'demo', '--scope', 'read,operate', '--database',
                    self.pg.dsn).stdout.strip()
        self.say(paint('1', f'the page: http://{address}/') + f'\n  its token: {token}')

    def stay(self):
        self.say('the page stays open; Ctrl-C ends it')
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass

    def leader(self, alias):
        return next((r for r in self.relays if r.leads(alias)), None)

    def session(self, number):
        """One application session: its own table and the outbox in one transaction, every tenth
        rolled back."""
        try:
            db = self.pg.connect(autocommit=False)
            cur = db.cursor()
            cur.execute("SET application_name = 'demo application'")
            per = self.args.transactions // SESSIONS
            pause = self.args.seconds / per
            start = time.monotonic()
            for i in range(per):
                call = remark(f'order {number}-{i}')
                cur.execute('INSERT INTO orders (session, item) VALUES (%s, %s)', (number, i))
                cur.execute('SELECT txrelay.enqueue(%s, %s)', (ACCOUNTS[(number + i) % 2][0], call))
                tx = cur.fetchone()[0]
                if i % 10 == 9:
                    db.rollback()
                    with self.lock:
                        self.rolled_back.append(call)
                else:
                    db.commit()
                    with self.lock:
                        self.committed[call] = tx
                        self.commit_time[tx] = time.time()
                left = start + (i + 1) * pause - time.monotonic()
                if left > 0:
                    time.sleep(left)  # the pace of the application
            db.close()
        except Exception as error:
            self.errors.append(f'session {number}: {error!r}')

    def finished(self):
        return self.pg.value('SELECT count(*) FROM txrelay.finished_transactions '
                             'WHERE id IS NOT NULL')

    def victim(self):
        leaders = [r for r in (self.leader('alice'), self.leader('bob')) if r]
        return next((r for r in leaders if r.name != WATCHED), leaders[0] if leaders else None)

    def kill_leader(self):
        victim = proc.wait_for('a leader to kill', self.victim, 20)
        led = [a for a, _, _ in ACCOUNTS if victim.leads(a)]
        victim.kill()
        when = time.time()
        self.kills.append((victim.name, led, when))
        self.say(paint('31', f'kill -9 {victim.name}, the leader of {" and ".join(led)}'))
        proc.wait_for('a successor', lambda: all(self.leader(a) for a in led), 30)
        self.say('leading now: '
                 + ', '.join(f'{a} by {self.leader(a).name}' for a, _, _ in ACCOUNTS))
        victim.start()

    def progress(self, done, total):
        if TTY:
            width = 40
            fill = int(width * done / max(total, 1))
            print(f'\r\033[K[{"#" * fill}{"." * (width - fill)}] {done}/{total} finished, block '
                  f'{self.chain.finalized_number()}', end='', flush=True)
        elif done - self.printed >= 200:
            self.printed = done
            print(f'  {done} finished of {total} committed', flush=True)

    def run(self):
        with self.pg.admin(), self.pg.connect() as db, db.cursor() as cur:
            cur.execute('CREATE TABLE orders (session int, item int)')
        threads = [threading.Thread(target=self.session, args=(n,), daemon=True)
                   for n in range(SESSIONS)]
        self.printed, total = 0, self.args.transactions
        self.say(
            f'{SESSIONS} SQL sessions enqueue {total} transactions, every tenth is rolled back')
        for t in threads:
            t.start()
        kill_at = [total * 0.25, total * 0.55]
        deadline = time.monotonic() + self.args.seconds + 120
        while True:
            done = self.finished()
            with self.lock:
                committed = len(self.committed)
            self.progress(done, committed)
            if kill_at and committed >= kill_at[0]:
                kill_at.pop(0)
                self.kill_leader()
            if not any(t.is_alive() for t in threads) and done >= len(self.committed):
                break
            if time.monotonic() > deadline:
                self.say(paint('31', 'not everything ended in time'))
                break
            time.sleep(0.1)
        if self.errors:
            raise RuntimeError('; '.join(self.errors))

    def takeovers(self):
        """From kill -9 to the successor being ready, in its own log."""
        times = []
        for name, led, when in self.kills:
            for alias in led:
                ready = []
                for relay in self.relays:
                    for stamp in re.findall(
                        rf'time=(\S+Z) level=\w+ event=account\.ready account={alias} ',
                        relay.text()):
                        t = datetime.strptime(stamp.split('>')[-1], '%Y-%m-%dT%H:%M:%S.%fZ')
                        ready.append(t.replace(tzinfo=timezone.utc).timestamp())
                after = [t for t in ready if t > when - 0.001]
                times.append((name, alias, min(after) - when if after else None))
        return times

    def latencies(self):
        rows = self.pg.query('''SELECT id, extract(epoch FROM in_block_at)::float8
                                FROM txrelay.finished_transactions
                                WHERE id IS NOT NULL AND in_block_at IS NOT NULL''')
        return sorted(t - self.commit_time[i] for i, t in rows if i in self.commit_time)

    def report(self):
        submitted = self.chain.sent(self.pg)
        violation = '\n'.join(filter(None, (self.feed.gather(), self.sites.gather())))
        figures = {}
        try:
            figures = invariants.check(self.pg, self.chain,
                                       {**self.committed, **self.feed.committed}, self.rolled_back,
                                       submitted)
        except invariants.Violation as error:
            violation += str(error)
        took = self.takeovers()
        lat = self.latencies()
        attempts = self.pg.value('SELECT count(*) FROM txrelay.attempts')
        rows = [
            ('enqueued and committed', len(self.committed)),
            ('published to the feed', len(self.feed.committed)),
            ('rolled back, never sent', len(self.rolled_back) - figures.get('rolled_back_sent', 0)),
            ('finalized', figures.get('finalized', '?')),
            ('failed', figures.get('failed', '?')),
            ('duplicates', figures.get('duplicates', '?')),
            ('missing', figures.get('missing', '?')),
            ('nonce gaps', figures.get('gaps', '?')),
            ('signed extrinsics on record', attempts),
            ('blocks finalized', self.chain.finalized_number()),
        ]
        for name, alias, t in took:
            rows.append((f'takeover of {alias} after kill -9 {name}',
                         f'{t * 1000:.0f} ms' if t is not None else 'none'))
        if lat:
            rows.append(('commit to in-block, p50', f'{statistics.median(lat) * 1000:.0f} ms'))
            rows.append(('commit to in-block, p99', f'{lat[int(len(lat) * 0.99)] * 1000:.0f} ms'))
        width = max(len(r[0]) for r in rows)
        self.say('')
        print(paint('1', 'what the chain says'))
        for name, value in rows:
            print(f'  {name:<{width}}  {value}')
        if violation:
            print(paint('31', '\nINVARIANTS BROKEN\n') + violation)
            return 1
        print(paint('1', '\nwhat the feed says'))
        print('\n'.join('  ' + line for line in self.feed.report()))
        print(paint('1', '\nwhat the sites say'))
        print('\n'.join('  ' + line for line in self.sites.report()))
        if any(t is None for _, _, t in took):
            print(paint('31', '\na killed leader had no successor'))
            return 1
        print(paint('32', '\nevery committed transaction took effect exactly once, and every '
                          'number of the feed; I1, I2, I3 and I6 '
                    'hold on the chain, over all sites too'))
        return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--transactions', type=int, default=1000)
    parser.add_argument('--seconds', type=float, default=15,
                        help='over which the application enqueues')
    parser.add_argument('--page', action='store_true',
                        help='a page to watch it, which stays until the demo is stopped')
    parser.add_argument('--quiet', action='store_true', help='for CI: no difference but the pace')
    args = parser.parse_args()
    proc.install_signals()
    demo = Demo(args)
    try:
        demo.set_up()
        demo.run()
        demo.feed.run()
        demo.sites.run()
        code = demo.report()
        if args.page:
            demo.stay()
    except KeyboardInterrupt:
        code = 130
    finally:
        proc.cleanup()
    sys.exit(code)


if __name__ == '__main__':
    main()
