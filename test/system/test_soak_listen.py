"""Followers that lose their connection and their process again and again while states change, and
once are cut off without a word: their reader's view is the table's in the end (I8). Four of them,
of two kinds: `txrelay tail --since` and a program on libtxrelay-listen.

./dev soak listen: 500 kills during 50,000 changes. The system lane: 25 during 2,500."""
import os
import random
import re
import threading
import time
import unittest

from harness import proc
from harness.chain import remark
from harness.followers import LibraryFollower, TailFollower
from harness.proxy import Proxy
from harness.soak import report, size
from harness.world import ALICE, BOB, World
from system.test_follow_library import Installed

KILLS, CHANGES = size(500, 25), size(50_000, 2_500)
KILLED_PROCESS = 5   # every so manieth kill is the process's
CHANGES_OF_ONE = 6   # a transaction's, about
CANCELLED = 20       # every so manieth pair has one beside it that ends in the outbox

# What a notification tells, counted where it is caused.
COUNT = '''
CREATE TABLE public.changes (at timestamptz DEFAULT clock_timestamp(), account int, n int);
CREATE FUNCTION public.count_changes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        INSERT INTO public.changes (account, n) SELECT n.account, count(*) FROM rows n
        JOIN old_rows o USING (account, nonce)
            WHERE (n.state, n.hash, n.block_hash, n.id) IS DISTINCT
            FROM (o.state, o.hash, o.block_hash, o.id) GROUP BY 1;
    ELSE
        INSERT INTO public.changes (account, n) SELECT r.account, count(*) FROM rows r GROUP BY 1;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER soak_new AFTER INSERT ON txrelay.pending_transactions REFERENCING NEW TABLE AS rows
    FOR EACH STATEMENT EXECUTE FUNCTION public.count_changes();
CREATE TRIGGER soak_update AFTER UPDATE ON txrelay.pending_transactions REFERENCING OLD TABLE AS
old_rows NEW TABLE AS rows
    FOR EACH STATEMENT EXECUTE FUNCTION public.count_changes();
CREATE TRIGGER soak_removed AFTER DELETE ON txrelay.pending_transactions REFERENCING OLD TABLE AS
rows
    FOR EACH STATEMENT EXECUTE FUNCTION public.count_changes();
CREATE TABLE public.deaf (follower text, alias text, since timestamptz, pid int, until timestamptz);
'''
MISSED = '''
SELECT d.follower, count(*), count(*) FILTER (WHERE c.n > 0), coalesce(sum(c.n), 0)
FROM public.deaf d CROSS JOIN LATERAL (
    SELECT coalesce(sum(c.n), 0) AS n FROM public.changes c JOIN txrelay.accounts a USING (account)
    WHERE c.at BETWEEN d.since AND d.until AND a.alias = coalesce(d.alias, a.alias)) c
GROUP BY 1 ORDER BY 1'''
VIEW = '''
SELECT t.id, t.state, t.outcome FROM (
    SELECT p.id, p.account, p.state::text, NULL AS outcome FROM txrelay.pending_transactions p
    UNION ALL SELECT f.id, f.account, coalesce(f.state::text, ''), f.outcome::text
    FROM txrelay.finished_transactions f) t
JOIN txrelay.accounts a USING (account) WHERE t.id IS NOT NULL
AND a.alias = coalesce(%s, a.alias)'''


class Session:
    """A superuser's, for what is asked all the time."""

    def __init__(self, world):
        self.db = world.pg.connect()

    def rows(self, sql, *args):
        with self.db.cursor() as cur:
            cur.execute(sql, args)
            return cur.fetchall() if cur.description else []

    def value(self, sql, *args):
        return self.rows(sql, *args)[0][0]


class Load(threading.Thread):
    """Few at a time, so that there is always one that changes; as many as it is told."""

    def __init__(self, world):
        super().__init__(daemon=True)
        self.world, self.sql, self.dice = world, Session(world), random.Random(7)
        self.due, self.done, self.told, self.ended, self.failed = (
            0, 0, threading.Event(), False, None)

    def more(self, count):
        self.due = max(self.due, self.done) + count
        self.told.set()

    def idle(self):
        return self.done >= self.due

    def run(self):
        try:
            while not self.ended:
                if self.idle():
                    self.told.wait(1)
                    self.told.clear()
                else:
                    self.enqueue()
                    time.sleep(0.01)
        except Exception as error:  # told by the test
            self.failed = error

    def enqueue(self):
        for alias in ('alice', 'bob'):
            calls = [remark(f'soak {self.done + i}') for i in range(2)]
            ids = self.sql.value('SELECT txrelay.enqueue_many(%s, %s::bytea[])', alias, calls)
            self.world.committed.update(zip(calls, ids))
            self.done += len(calls)
            if self.dice.randrange(CANCELLED) == 0:
                tx = self.sql.value("SELECT txrelay.enqueue(%s, %s, not_before => now() + interval "
                                    "'1 h')", alias, calls[0])
                assert self.sql.value('SELECT txrelay.cancel(%s)', tx) == 'cancelled'

    def end(self):
        self.ended = True
        self.told.set()
        self.join()


class Soak(unittest.TestCase):
    def setUp(self):
        installed = Installed()
        self.world = World('--block-ms', '100', accounts=(ALICE, BOB))
        self.addCleanup(self.world.close)
        self.world.pg.query(COUNT)
        self.world.wait_leader(self.world.relay('one'))
        self.world.wait_leader(self.world.relays[0], 'bob')
        parts = dict(p.split('=', 1) for p in self.world.pg.dsn.split())
        self.far = Proxy(os.path.join(parts['host'], '.s.PGSQL.5432'))
        self.addCleanup(self.far.close)
        self.near = [TailFollower(self.world, 'tail'),
                     LibraryFollower(installed, self.world, 'library', 'alice')]
        self.cut_off = [TailFollower(self.world, 'tail_far', 'bob', self.far),
                        LibraryFollower(installed, self.world, 'library_far', 'alice', self.far)]
        self.followers = self.near + self.cut_off
        self.sql, self.dice, self.load = Session(self.world), random.Random(5), Load(self.world)
        self.load.start()
        self.addCleanup(self.load.end)
        for follower in self.followers:
            self.addCleanup(follower.close)
            self.sql.rows(f"ALTER ROLE {follower.user} SET log_statement = 'all'")
            follower.start().wait_lives(1)

    def changes(self):
        return self.sql.value('SELECT coalesce(sum(n), 0) FROM public.changes')

    # ---- the kills ----

    def backend(self, follower):
        """The process of its session."""
        rows = self.sql.rows('SELECT pid FROM pg_stat_activity WHERE usename = %s', follower.user)
        return rows[0][0] if rows else None

    def deaf(self, follower, since, than):
        """From then until a session other than that listens it hears nothing."""
        pid = proc.wait_for(f'{follower.name} to come back',
                            lambda: (b := self.backend(follower)) and b != than and b, 60, 0.005)
        self.sql.rows('INSERT INTO public.deaf VALUES (%s, %s, %s, %s)', follower.name,
                      follower.alias, since, pid)

    def listened(self):
        """When each session said LISTEN: the server's log."""
        with open(os.path.join(self.world.pg.dir, 'server.log'), errors='replace') as file:
            for at, pid in re.findall(r'^(\S+ \S+ \S+) (\d+) .*LISTEN ', file.read(), re.M):
                self.sql.rows('UPDATE public.deaf SET until = %s WHERE pid = %s AND until IS NULL',
                              at, pid)

    def kill(self, follower, number, load=True):
        self.assertIsNone(self.load.failed)
        if number % 2:  # the other half may hit a connection that only just catches up
            follower.wait_lives(follower.heard + 1)
        pid = proc.wait_for(f'{follower.name} to be connected', lambda: self.backend(follower), 60,
                            0.005)
        follower.heard = follower.look().lives
        if load:
            self.load.more(max(4, (CHANGES * number // KILLS - self.changes()) // CHANGES_OF_ONE))
            # so that a kill falls anywhere between the first and the last change
            time.sleep(self.dice.uniform(0, 0.15))
        if number % KILLED_PROCESS == 0:
            follower.kill_process()
            since = self.sql.value('SELECT clock_timestamp()')
            follower.start()
            self.killed_processes += 1
        else:
            self.assertTrue(self.sql.value('SELECT pg_terminate_backend(%s, 5000)', pid))
            since = self.sql.value('SELECT clock_timestamp()')
        self.deaf(follower, since, pid)

    # ---- I8 ----

    def differs(self, follower):
        view = follower.look().last
        table = {tx: (state, outcome) for tx, state, outcome in self.sql.rows(VIEW, follower.alias)}
        return {tx: (view.get(tx), table.get(tx)) for tx in view.keys() | table.keys()
                if view.get(tx) != table.get(tx)}

    def equal(self, follower):
        try:
            proc.wait_for(f'{follower.name} to agree', lambda: not self.differs(follower), 60, 0.2)
        except TimeoutError:
            wrong = self.differs(follower)
            self.fail(f'I8: {follower.name} and the table differ in {len(wrong)}: '
                      f'{dict(list(wrong.items())[:5])}')

    def test_kills(self):
        begun, self.killed_processes = time.monotonic(), 0
        for follower in self.followers:
            follower.heard = 0
        stales = [f.look().stales for f in self.cut_off]
        self.far.set('hole')
        cut_at, hole = self.sql.value('SELECT clock_timestamp()'), True
        before = [self.backend(f) for f in self.cut_off]
        for number in range(1, KILLS + 1):
            if hole and all(f.look().stales > s for f, s in zip(self.cut_off, stales)):
                self.heal(cut_at, before)
                hole = False
            self.kill(self.dice.choice(self.near if hole else self.followers), number)
        proc.wait_for('the changes', lambda: self.more_changes() >= CHANGES, 120, 0.05)
        if hole:
            proc.wait_for('those that are cut off to find out',
                          lambda: all(f.look().stales > s for f, s in zip(self.cut_off, stales)),
                          40)
            self.heal(cut_at, before)
        self.half_way()
        self.world.settle()
        for follower in self.followers:
            self.equal(follower)
        self.tell(time.monotonic() - begun)

    def more_changes(self):
        found = self.changes()
        if found < CHANGES and self.sql.value(
            'SELECT NOT EXISTS (SELECT FROM txrelay.pending_transactions)'):
            self.load.more(10)
        return found

    def heal(self, cut_at, before):
        """What the proxy kept from them it has lost: they come back and read it."""
        self.far.set('pass')
        for follower, pid in zip(self.cut_off, before):
            self.deaf(follower, cut_at, pid)

    def half_way(self):
        """Some are pending, some wait in the outbox, and all lose their connection once more: the
        view shows that too."""
        self.world.chain.rpc('dev_pause')
        self.load.more(60)
        proc.wait_for('them to stand still', lambda: self.load.idle() and self.sql.value(
            "SELECT NOT EXISTS (SELECT FROM txrelay.outbox) AND NOT EXISTS (SELECT "
            "FROM txrelay.pending_transactions "
            "WHERE state IN ('signed', 'future'))"))
        for follower in self.followers:
            self.kill(follower, 2, load=False)
        for follower in self.followers:
            self.equal(follower)
        self.assertGreater(self.sql.value('SELECT count(*) FROM txrelay.pending_transactions'), 50)
        self.world.chain.rpc('dev_resume')

    def tell(self, seconds):
        self.listened()
        rows = self.sql.rows(MISSED)
        self.assertEqual([r[0] for r in rows], sorted(f.name for f in self.followers))
        kills, gaps, missed = (sum(r[i] for r in rows) for i in (1, 2, 3))
        self.assertGreater(gaps, kills // 10, 'changes fell into the kills')
        report(f'{self.changes()} state changes in {seconds:.0f} s, {kills} times a follower lost '
               f'its connection ({self.killed_processes} '
               f'times with its process), two were black-holed once; {gaps} of these gaps hid '
               f'{missed} changes, all were '
               f'repaired: every view equals the table ({len(self.world.committed)} transactions '
               'and the cancelled ones)')
        for follower, (name, lost, hidden,
                       changes) in zip(sorted(self.followers, key=lambda f: f.name), rows):
            report(f'  {name}: lost {lost} times, {hidden} gaps with {changes} changes; told '
                   f'{follower.view.events} events'
                   + (f', {follower.view.scanned} of them by a scan' if follower.view.scanned
                      else '')
                   + f', live {follower.view.lives} times, stale {follower.view.stales} times')


if __name__ == '__main__':
    unittest.main()
