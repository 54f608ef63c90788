"""A rolling upgrade from release 0.1.0 to a made-up next version, while applications enqueue.

The database is the kept one of 0.1.0 (test/upgrade/0.1.0), with rows in every state. This tree's program is one version behind
txrelay_next (test/upgrade), so its relays are the old ones; `./dev soak upgrade` builds those of the tag v0.1.0 where there is
one (TXRELAY_OLD). First the database is brought to this tree's version, then to the next one, with the old relays at work. They go
on beside the newer database until their sessions end; a session that begins again is refused with both versions. Not a row is
lost or changed, every transaction of the load ends once, and no application has seen an error.

./dev soak upgrade: a million final outcomes. The system lane: 5,000."""
import json
import os
import threading
import time
import unittest

import psycopg2

from harness import proc
from harness.application import Application
from harness.relay import cli
from harness.soak import report, size
from harness.world import ALICE, BOB, World

ROWS = size(1_000_000, 5_000)
LOAD = size(300, 30)  # commits of the application at each step
KEPT = os.path.join(proc.ROOT, 'test', 'upgrade', '0.1.0')
NEXT = os.path.join(proc.BUILD, 'test', 'upgrade', 'txrelay_next')
OLD = os.environ.get('TXRELAY_OLD', proc.TXRELAY)
ACCOUNTS = "account IN (SELECT a.account FROM txrelay.accounts a WHERE a.alias IN ('past', 'held'))"
TABLES = {t: ACCOUNTS for t in ('accounts', 'attempts', 'bumps', 'cancellations', 'finished_transactions', 'idempotency_keys', 'obstacles', 'outbox',
                                'outbox_full', 'outbox_presigned', 'pending_transactions', 'refusals')}
TABLES.update(feeds=ACCOUNTS, feed_batches="feed LIKE 'feed %'")
TABLES['retries'] = 'id < 200000000'  # the load's ids begin there
STEPS_DOWN = "newer than this program's"


def versions(program):
    """('0.1.0', 9)"""
    words = proc.run([program, '--version']).stdout.replace(',', '').split()
    return words[1], int(words[-1])


def restore(pg):
    """The kept database, as pg_dump gave it, and its rows."""
    pg.query('DROP SCHEMA txrelay CASCADE')
    proc.run(['psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', pg.dsn, '-f', os.path.join(KEPT, 'dump.sql')])
    with open(os.path.join(KEPT, 'rows.sql')) as file:
        pg.query(f'SET upgrade.rows = {ROWS}; {file.read()}')
    pg.query('ANALYZE')


def columns(pg):
    """Those of each table of the kept database."""
    found = {}
    for table in TABLES:
        names = pg.query('SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum',
                         [f'txrelay.{table}'])
        found[table] = ', '.join(f't.{n}' for n, in names)
    return found


def digest(pg, of):
    """How many rows of the two accounts each table has, and a sum over what is in them."""
    return {table: pg.query(f'SELECT count(*), sum(hashtextextended(row({of[table]})::text, 0)::numeric) FROM txrelay.{table} t WHERE {where}')[0]
            for table, where in TABLES.items()}


class Upgrade(unittest.TestCase):
    def setUp(self):
        self.of_world = world = World(accounts=(ALICE, BOB))
        self.addCleanup(world.close)
        restore(world.pg)
        self.columns = columns(world.pg)
        self.rows = digest(world.pg, self.columns)
        states = {s for s, in world.pg.query('SELECT DISTINCT state::text FROM txrelay.pending_transactions')}
        ends = {o for o, in world.pg.query('SELECT DISTINCT outcome::text FROM txrelay.finished_transactions')}
        self.assertEqual(states, {s for s, in world.pg.query('SELECT unnest(enum_range(NULL::txrelay.tx_state))::text')})
        self.assertEqual(ends, {o for o, in world.pg.query('SELECT unnest(enum_range(NULL::txrelay.tx_outcome))::text')})
        self.assertTrue(all(count for count, _ in self.rows.values()), self.rows)

    def relay(self, name, program):
        relay = self.of_world.relay(name, start=False)
        relay.program = program
        return relay.start()

    def leader(self, alias, relays):
        return next((r for r in relays if r.leads(alias)), None)

    def wait_leader(self, relays):
        for alias in ('alice', 'bob'):
            proc.wait_for(f'a leader of {alias} among {[r.name for r in relays]}', lambda a=alias: self.leader(a, relays), 120)

    def load_goes_on(self):
        """The application commits LOAD more, one more for bob does too, and all that is committed by then ends."""
        world, app = self.of_world, self.application
        before = len(app.commits)
        proc.wait_for('the application to commit', lambda: app.failed or len(app.commits) >= before + LOAD, 120)
        self.assertIsNone(app.failed)
        world.enqueue(f'bob {time.monotonic_ns()}', 'bob')
        ids = list(world.committed.values())
        proc.wait_for('what was committed to end', lambda: world.pg.value(
            'SELECT count(*) FROM txrelay.finished_transactions WHERE id = ANY (%s)', [ids]) == len(ids), 120)

    def migrate(self, program, *words):
        begun = time.monotonic()
        done = proc.run([program, 'migrate', '--database', self.of_world.pg.dsn], seconds=600,
                        env={'PGOPTIONS': '-c txrelay.migration_wait=9min'})
        for word in words:
            self.assertIn(word, done.stdout)
        return time.monotonic() - begun, done.stderr

    def refused(self, program, *args, code=1):
        """With both versions and the way out."""
        done = proc.run([program, *args], check=False)
        self.assertEqual(done.returncode, code, args)
        for word in (f'version {versions(NEXT)[1]} (', f"{STEPS_DOWN} {versions(program)[1]}: upgrade txrelay on this host"):
            self.assertIn(word, done.stdout + done.stderr, args)

    def test_rolling_upgrade(self):
        world, newest, after = self.of_world, versions(proc.TXRELAY)[1], versions(NEXT)
        self.assertEqual(after, ('0.2.0-test', newest + 1))
        self.migrate(proc.TXRELAY, f'{newest}')
        self.assertEqual(digest(world.pg, self.columns), self.rows)

        old = [self.relay('old-a', OLD), self.relay('old-b', OLD)]
        self.wait_leader(old)
        tail = proc.Process([OLD, 'tail', '--json', '--database', world.pg.dsn], os.path.join(world.dir, 'tail.log'))
        self.application = Application(world, world.pg.dsn)
        self.application.patience = 300  # an error would not be the product's
        self.application.start()
        self.addCleanup(self.application.enough.set)
        self.load_goes_on()

        took, waited = self.migrate(NEXT, f'schema version {newest} -> {newest + 1}')
        self.load_goes_on()
        self.assertTrue(all(r.alive() and STEPS_DOWN not in r.text() for r in old), 'an old relay goes on beside the newer database')
        self.assertEqual(digest(world.pg, self.columns), self.rows)

        # The old ones are replaced: one by a signal, the other because its sessions end.
        new = [self.relay('new-a', NEXT)]
        new[0].wait_log('event=database.up')
        self.assertEqual(old[0].stop(), 0)
        self.wait_leader([old[1], *new])
        self.load_goes_on()
        world.pg.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%old-b%' AND datname = current_database()")
        line = old[1].wait_log(rf'event=database.down .*{STEPS_DOWN}.*', 120).group()
        self.assertIn('code=DB_SCHEMA', line)
        self.assertIn('upgrade txrelay on this host', line)
        self.wait_leader(new)
        self.load_goes_on()
        self.assertFalse(old[1].leads('alice') or old[1].leads('bob'))
        self.assertTrue(old[1].alive())
        old[1].kill()

        # The way back is refused, and a program that is one behind may still be asked.
        for command in ('run', 'check'):
            self.refused(OLD, command, '--config', old[0].config)
        self.refused(OLD, 'migrate', '--database', world.pg.dsn)
        some = next(iter(world.committed.values()))
        for program in (OLD, NEXT):
            row = json.loads(proc.run([program, 'status', str(some), '--json', '--database', world.pg.dsn]).stdout)
            self.assertEqual(row['outcome'], 'ok')
            self.assertIn('included', proc.run([program, 'history', str(some), '--database', world.pg.dsn]).stdout)

        self.application.stop()
        self.assertIsNone(self.application.failed)
        self.assertEqual(self.application.errors, [])
        world.settle(300)
        self.assertEqual(digest(world.pg, self.columns), self.rows)
        ids = set(world.committed.values())
        proc.wait_for('the old reader to have shown every end', lambda: ids <= ended(tail.text()), 60)
        audit = proc.run([NEXT, 'audit', '--config', new[0].config], check=False)
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        report(f'{ROWS} final outcomes, {sum(c for c, _ in self.rows.values())} rows: migrate took {took:.1f} s and {1 + waited.count("migrate.waits")} tries, the longest time between '
               f'two commits of the application was {self.application.longest_wait():.1f} s, {len(ids)} transactions')


def ended(text):
    found = set()
    for line in text.split('\n')[:-1]:
        event = json.loads(line) if line.startswith('{') else {}
        if event.get('outcome'):
            found.add(event['id'])
    return found


if __name__ == '__main__':
    unittest.main()
