"""A snapshot that somebody leaves open: nothing that was deleted or updated since can be cleaned
up while it stands. A relay under a load that always has rows waiting, before, during and after;
how many dead rows there are, what the leader's look at its outbox and an application's enqueue
cost, and the rate.

./dev soak xmin: a snapshot of three minutes. The system lane: of ten seconds."""
import os
import threading
import time
import unittest

from harness import proc
from harness.chain import remark
from harness.soak import FULL, WIDE_CHAIN, report, size
from harness.world import World

# Of the rate before, in the last third of the snapshot's time. What costs is the look at the
# outbox: an index keeps an entry for each row that a snapshot might still see, and a look for the
# next 128 walks over all of those that were admitted since.
FLOOR = 0.2
BEFORE_S, PINNED_S, AFTER_S = size((60, 180, 60), (2, 10, 1))
NAPTIME_S = size(10, 1)  # of autovacuum; Postgres' default is 60
WAITING, CHUNK = 1000, 250
TABLES = ('outbox', 'pending_transactions', 'attempts', 'accounts')

DEAD = '''SELECT relname, n_dead_tup, pg_total_relation_size(relid) FROM pg_stat_user_tables
          WHERE schemaname = 'txrelay' AND relname = ANY (%s)'''
DONE = ('SELECT coalesce(next_nonce, 0), coalesce(used_nonce, 0) FROM txrelay.accounts '
        'WHERE account = 1')
LOOK = ('SELECT count(*) FROM txrelay.leader_outbox(1, (SELECT epoch FROM txrelay.leadership '
        'WHERE subject = 1), 128)')


def cpu_s(pid):
    with open(f'/proc/{pid}/stat') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Load(threading.Thread):
    """Keeps rows waiting, and enqueues one by one between them, which is what is timed."""

    def __init__(self, world):
        super().__init__(daemon=True)
        self.world, self.db, self.asked, self.ended, self.failed = (
            world, world.pg.connect(), 0, False, None)
        self.single_ms = []

    def run(self):
        try:
            with self.db.cursor() as cur:
                while not self.ended:
                    cur.execute(DONE)
                    if self.asked - cur.fetchone()[0] < WAITING:
                        self.enqueue(cur)
                    else:
                        time.sleep(0.01)
        except Exception as error:  # told by the test
            self.failed = error

    def enqueue(self, cur):
        calls = [remark(f'pinned {self.asked + i}') for i in range(CHUNK)]
        cur.execute("SELECT txrelay.enqueue_many('alice', %s::bytea[])", (calls[1:],))
        begun = time.monotonic()
        cur.execute("SELECT txrelay.enqueue('alice', %s)", (calls[0],))
        self.single_ms.append((time.monotonic() - begun) * 1000)
        self.asked += CHUNK

    def end(self):
        self.ended = True
        self.join()


class Phase:
    """What was seen from its begin to its end."""

    def __init__(self, soak, name, seconds):
        self.name, self.samples = name, []
        singles = len(soak.load.single_ms)
        until = time.monotonic() + seconds
        while True:
            self.samples.append(soak.sample())
            # one alone is no rate, however long it took
            if time.monotonic() >= until and len(self.samples) >= 4:
                break
            time.sleep(min(1, seconds / 10))
        self.single_ms = sorted(soak.load.single_ms[singles:]) or [0]

    def rate(self, part=slice(None)):
        """Finalized transactions a second."""
        found = self.samples[part]
        return (found[-1]['used'] - found[0]['used']) / (found[-1]['at'] - found[0]['at'])

    def last_third(self):
        return self.rate(slice(len(self.samples) * 2 // 3 - 1, None))

    def cost_us(self):
        """CPU of the relay's database session for one transaction, in the last third: it does not
        depend on who else is busy."""
        a, b = self.samples[len(self.samples) * 2 // 3 - 1], self.samples[-1]
        return (b['cpu'] - a['cpu']) * 1e6 / max(1, b['used'] - a['used'])

    def line(self):
        end = self.samples[-1]
        dead = ', '.join(f'{t} {end["dead"].get(t, (0, 0))[0]}' for t in TABLES)
        return (f'{self.name:<7} {self.rate():6.0f} tx/s, in its last third '
                f'{self.last_third():6.0f} at {self.cost_us():5.0f} us of '
                f'Postgres each; dead rows at its end: {dead}; a look at the outbox '
                f'{end["request_poll_ms"]:.1f} ms, one enqueue p50 '
                f'{self.single_ms[len(self.single_ms) // 2]:.1f} ms, p99 '
                f'{self.single_ms[int(len(self.single_ms) * 0.99)]:.1f} ms')


class Soak(unittest.TestCase):
    def setUp(self):
        self.world = World('--instant', '--instant-delay-ms', '5', '--finality-lag', '0',
                           *WIDE_CHAIN, own_postgres=True)
        self.addCleanup(self.world.close)
        with self.world.pg.admin() as db, db.cursor() as cur:
            cur.execute(f'ALTER SYSTEM SET autovacuum_naptime = {NAPTIME_S}')
            cur.execute('SELECT pg_reload_conf()')
        self.world.wait_leader(self.world.relay('one'))
        self.watch = self.world.pg.connect()
        with self.watch.cursor() as cur:
            cur.execute("SELECT pid FROM pg_stat_activity WHERE application_name LIKE '% work'")
            (self.backend,), = cur.fetchall()
        self.load = Load(self.world)
        self.load.start()
        self.addCleanup(self.load.end)

    def sample(self):
        self.assertIsNone(self.load.failed)
        with self.watch.cursor() as cur:
            cur.execute(DEAD, (list(TABLES),))
            dead = {name: (rows, size_) for name, rows, size_ in cur.fetchall()}
            cur.execute(DONE)
            used, at = cur.fetchone()[1], time.monotonic()
            cpu = cpu_s(self.backend)
            cur.execute(LOOK)
            return {'at': at, 'used': used, 'dead': dead, 'cpu': cpu,
                    'request_poll_ms': (time.monotonic() - at) * 1000}

    def test_pinned(self):
        proc.wait_for('the load to flow', lambda: self.sample()['used'] > 2000, 60)
        before = Phase(self, 'before', BEFORE_S)
        reader = self.world.pg.connect(autocommit=False)
        with reader.cursor() as cur:
            cur.execute('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')
            cur.execute('SELECT count(*) FROM txrelay.accounts')
        during = Phase(self, 'during', PINNED_S)
        reader.rollback()
        after = Phase(self, 'after', AFTER_S)
        self.assertGreater(during.samples[-1]['dead']['outbox'][0],
                           before.samples[-1]['dead']['outbox'][0], 'nothing was pinned')
        self.ends()
        for phase in (before, during, after):
            report(phase.line())
        # If another program takes the machine, the rate falls too, but not by what a transaction
        # costs.
        fell, dearer = (during.last_third() < FLOOR * before.rate(),
                        during.cost_us() > before.cost_us() / FLOOR)
        self.assertFalse(fell and dearer, f'below {FLOOR} of the rate before')
        if FULL:
            for s in during.samples[::15]:
                report(f'  {s["at"] - during.samples[0]["at"]:4.0f} s: {s["used"]} done, look '
                       f'{s["request_poll_ms"]:.1f} ms, {s["dead"]}')

    def ends(self):
        """All of it on the chain once, and what the snapshot kept is cleaned up."""
        self.load.end()
        proc.wait_for('everything to end', lambda: self.sample()['used'] == self.load.asked, 120,
                      0.1)
        self.assertEqual(self.world.pg.query('SELECT count(*), count(DISTINCT nonce), '
                                             'count(DISTINCT id) FROM '
                                             "txrelay.finished_transactions WHERE outcome = 'ok'"),
                                             [(self.load.asked,) * 3])
        address = self.world.pg.value('SELECT address FROM txrelay.accounts')
        self.assertEqual(self.world.chain.rpc('system_accountNextIndex', address), self.load.asked)
        # noqa: E731
        few = lambda: all(self.sample()['dead'][t][0] < 2500
                          for t in ('outbox', 'pending_transactions'))
        proc.wait_for('the dead rows to go', few, 60 + 6 * NAPTIME_S, 0.2)


if __name__ == '__main__':
    unittest.main()
