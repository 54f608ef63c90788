"""A rolling upgrade from release 0.1.0 to a made-up next version, while applications enqueue.

The database is the kept one of 0.1.0 (test/upgrade/0.1.0), with rows in every state. `./dev soak
upgrade` upgrades it twice: from the program of 0.1.0 (TXRELAY_OLD) to this tree's, and from there
to txrelay_next (test/upgrade), which is one version ahead. The system lane has no program of
0.1.0: it brings the database to this tree's version, and then upgrades it once.

In each upgrade the old relays go on beside the newer database until their sessions end; a session
that begins again is refused with both versions. Not a row is lost or changed, every transaction of
the load ends once, and no application has seen an error.

./dev soak upgrade: a million final outcomes. The system lane: 5,000."""
import json
import os
import re
import time
import unittest

import psycopg2

from harness import proc
from harness.application import Application
from harness.soak import report, size
from harness.world import ALICE, BOB, World

ROWS = size(1_000_000, 5_000)
LOAD = size(300, 30)  # commits of the application at each step
KEPT = os.path.join(proc.ROOT, 'test', 'upgrade', '0.1.0')
NEXT = os.path.join(proc.BUILD, 'test', 'upgrade', 'txrelay_next')
OLD = os.environ.get('TXRELAY_OLD')
PROGRAMS = [OLD, proc.TXRELAY, NEXT] if OLD else [proc.TXRELAY, NEXT]
ACCOUNTS = "account IN (SELECT a.account FROM txrelay.accounts a WHERE a.alias IN ('past', 'held'))"
TABLES = {t: ACCOUNTS for t in ('accounts', 'attempts', 'bumps', 'cancellations',
                                'finished_transactions', 'idempotency_keys', 'obstacles', 'outbox',
                                'outbox_full', 'outbox_presigned', 'pending_transactions',
                                'refusals')}
TABLES.update(feeds=ACCOUNTS, feed_batches="feed LIKE 'feed %'")
TABLES['retries'] = 'id < 200000000'  # the load's ids begin there


def versions(program):
    """('0.1.0', 9)"""
    words = proc.run([program, '--version']).stdout.replace(',', '').split()
    return words[1], int(words[-1])


def restore(pg):
    """The kept database, as pg_dump gave it, and its rows."""
    pg.query('DROP SCHEMA txrelay CASCADE')
    proc.run(['psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', pg.dsn, '-f',
              os.path.join(KEPT, 'dump.sql')])
    with open(os.path.join(KEPT, 'rows.sql')) as file:
        pg.query(f'SET upgrade.rows = {ROWS}; {file.read()}')
    pg.query('ANALYZE')


def columns(pg):
    """Those of each table of the kept database."""
    found = {}
    for table in TABLES:
        names = pg.query('SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass '
                         'AND attnum > 0 AND NOT attisdropped ORDER BY attnum',
                         [f'txrelay.{table}'])
        found[table] = ', '.join(f't.{n}' for n, in names)
    return found


def digest(pg, of):
    """How many rows of the two accounts each table has, and a sum over what is in them."""
    return {table: pg.query(f'SELECT count(*), sum(hashtextextended(row({of[table]})::text, '
                            f'0)::numeric) FROM txrelay.{table} t WHERE {where}')[0]
            for table, where in TABLES.items()}


class Upgrade(unittest.TestCase):
    def setUp(self):
        self.of_world = world = World(accounts=(ALICE, BOB))
        self.addCleanup(world.close)
        restore(world.pg)
        self.columns = columns(world.pg)
        self.rows = digest(world.pg, self.columns)
        states = {s for s, in world.pg.query(
            'SELECT DISTINCT state::text FROM txrelay.pending_transactions')}
        ends = {o for o, in world.pg.query(
            'SELECT DISTINCT outcome::text FROM txrelay.finished_transactions')}
        self.assertEqual(
            states, {s for s, in world.pg.query(
                'SELECT unnest(enum_range(NULL::txrelay.tx_state))::text')})
        self.assertEqual(
            ends, {o for o, in world.pg.query(
                'SELECT unnest(enum_range(NULL::txrelay.tx_outcome))::text')})
        self.assertTrue(all(count for count, _ in self.rows.values()), self.rows)

    def relay(self, name, program):
        relay = self.of_world.relay(name, start=False)
        relay.program = program
        return relay.start()

    def leader(self, alias, relays):
        return next((r for r in relays if r.leads(alias)), None)

    def wait_leader(self, relays):
        for alias in ('alice', 'bob'):
            proc.wait_for(f'a leader of {alias} among {[r.name for r in relays]}',
                          lambda a=alias: self.leader(a, relays), 120)

    def load_goes_on(self):
        """The application commits LOAD more, one more for bob does too, and all that is committed
        by then ends."""
        world, app = self.of_world, self.application
        before = len(app.commits)
        proc.wait_for('the application to commit', lambda: app.failed or len(app.commits) >= before
                      + LOAD, 120)
        self.assertIsNone(app.failed)
        world.enqueue(f'bob {time.monotonic_ns()}', 'bob')
        ids = list(world.committed.values())
        proc.wait_for('what was committed to end', lambda: world.pg.value(
            'SELECT count(*) FROM txrelay.finished_transactions WHERE id = ANY (%s)',
            [ids]) == len(ids), 120)

    def migrate(self, program):
        """What it printed, how long it took, and in how many tries."""
        begun = time.monotonic()
        done = proc.run([program, 'migrate', '--database', self.of_world.pg.dsn], seconds=600,
                        env={'PGOPTIONS': '-c txrelay.migration_wait=9min'})
        return (done.stdout, f'{time.monotonic() - begun:.1f} s and '
                             f'{1 + done.stderr.count("migrate.waits")} tries')

    def refused(self, words, program, *args):
        done = proc.run([program, *args], check=False)
        self.assertEqual(done.returncode, 1, args)
        for word in words:
            self.assertIn(word, done.stdout + done.stderr, args)

    def upgrade(self, step, old, new):
        """Relays of `old` lead when it begins, and one of `new` when it ends."""
        world, was, now = self.of_world, versions(old.program)[1], versions(new)[1]
        names = [old.name, f'old-{step}']
        relays = [old, self.relay(names[1], old.program)]
        relays[1].wait_log('event=database.up')
        stdout, took = self.migrate(new)
        self.took.append(took)
        if now > was:
            self.assertIn(f'schema version {was} -> {now}', stdout)
            refusal = [f'version {now} (',
                       f"newer than this program's {was}: upgrade txrelay on this host"]
        else:  # only functions changed, or nothing
            refusal = [] if 'nothing to do' in stdout else [
                'run txrelay migrate of the newer build, and use that build on every host']
        self.load_goes_on()
        self.assertTrue(all(r.alive() and 'code=DB_SCHEMA' not in r.text() for r in relays),
                        'an old relay goes on beside the newer database')
        self.assertEqual(digest(world.pg, self.columns), self.rows)

        # The old ones are replaced: one by a signal, the other because its sessions end.
        next_one = self.relay(f'new-{step}', new)
        next_one.wait_log('event=database.up')
        self.assertEqual(relays[0].stop(), 0)
        self.wait_leader([relays[1], next_one])
        self.load_goes_on()
        if refusal:
            world.pg.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity '
                           'WHERE application_name LIKE %s AND datname = current_database()',
                           [f'%{names[1]}%'])
            line = relays[1].wait_log(rf'event=database.down .*{re.escape(refusal[-1])}.*',
                                      120).group()
            self.assertIn('code=DB_SCHEMA', line)
            self.wait_leader([next_one])
            self.load_goes_on()
            self.assertFalse(relays[1].leads('alice') or relays[1].leads('bob'))
            self.assertTrue(relays[1].alive())
        relays[1].kill()
        self.wait_leader([next_one])

        # The way back is refused, and a program that is one behind may still be asked.
        for command in ('run', 'check') if refusal else ():
            self.refused(refusal, old.program, command, '--config', old.config)
        if now > was:
            self.refused(refusal, old.program, 'migrate', '--database', world.pg.dsn)
        some = next(iter(world.committed.values()))
        for program in (old.program, new):
            row = json.loads(proc.run([program, 'status', str(some), '--json', '--database',
                                       world.pg.dsn]).stdout)
            self.assertEqual(row['outcome'], 'ok')
            self.assertIn('included',
                          proc.run([program, 'history', str(some), '--database',
                                    world.pg.dsn]).stdout)
        return next_one

    def test_rolling_upgrade(self):
        world = self.of_world
        self.took = []
        self.assertEqual(versions(NEXT), ('0.2.0-test', versions(proc.TXRELAY)[1] + 1))
        stdout, _ = self.migrate(PROGRAMS[0])
        if OLD:
            self.assertIn('nothing to do', stdout,
                          'the kept database is the one that this program makes')
        self.assertEqual(digest(world.pg, self.columns), self.rows)

        leader = self.relay('first', PROGRAMS[0])
        self.wait_leader([leader])
        tail = proc.Process([PROGRAMS[0], 'tail', '--json', '--database', world.pg.dsn],
                            os.path.join(world.dir, 'tail.log'))
        self.application = Application(world, world.pg.dsn)
        self.application.patience = 300  # an error would not be the product's
        self.application.start()
        self.addCleanup(self.application.enough.set)
        self.load_goes_on()
        for step, program in enumerate(PROGRAMS[1:]):
            leader = self.upgrade(step, leader, program)

        self.application.stop()
        self.assertIsNone(self.application.failed)
        self.assertEqual(self.application.errors, [])
        world.settle(300)
        self.assertEqual(digest(world.pg, self.columns), self.rows)
        ids = set(world.committed.values())
        proc.wait_for('the oldest reader to have shown every end',
                      lambda: ids <= ended(tail.text()), 60)
        audit = proc.run([NEXT, 'audit', '--config', leader.config], check=False)
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        report(f'{ROWS} final outcomes, {sum(c for c, _ in self.rows.values())} rows: migrate took '
               f'{", then ".join(self.took)}, the longest time '
               f'between two commits of the application was {self.application.longest_wait():.1f} '
               f's, {len(ids)} transactions')


def ended(text):
    found = set()
    for line in text.split('\n')[:-1]:
        event = json.loads(line) if line.startswith('{') else {}
        if event.get('outcome'):
            found.add(event['id'])
    return found


if __name__ == '__main__':
    unittest.main()
