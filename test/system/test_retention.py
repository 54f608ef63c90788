"""Retention as the service does it: partitions ahead, old ones dropped, leftovers removed, live
rows untouched."""
import json
import re
import unittest

from harness import proc
from harness.relay import cli
from harness.world import ALICE, BOB, World

RETENTION = 'retention:\n  keep_days: 2\n  interval_ms: 200\n'


class Retention(unittest.TestCase):
    def owner(self, world, sql, *args):
        """As the owner with triggers off: records that never change are made old."""
        with world.pg.connect() as db, db.cursor() as cur:
            cur.execute('SET session_replication_role = replica')
            cur.execute(sql, args)
            rows = cur.fetchall() if cur.description else []
        db.close()
        return rows

    def partitions(self, world):
        return {r[0] for r in world.pg.query(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
            "WHERE i.inhparent = 'txrelay.finished_transactions'::regclass")}

    def attempts(self, world, tx):
        return world.pg.value('SELECT count(*) FROM txrelay.attempts WHERE id = %s', (tx,))

    def by_hash(self, world, *args, check=True):
        return cli('status', '--hash', *args, '--database', world.pg.dsn, check=check)

    def test_what_has_ended_long_ago_goes_and_nothing_else(self):
        with World('--block-ms', '0', accounts=(ALICE, BOB)) as world:
            one = world.relay('one', accounts=(ALICE,), extra=RETENTION)
            two = world.relay('two', accounts=(BOB,), extra=RETENTION)
            world.wait_leader(one)
            world.wait_leader(two, 'bob')
            old, kept = world.enqueue('old'), world.enqueue('kept')
            keyed = world.pg.value("SELECT txrelay.enqueue('bob', '\\x00000478', key => 'k')")
            proc.wait_for('three in the pool',
                          lambda: len(world.chain.rpc('author_pendingExtrinsics')) == 3)
            for _ in range(3):
                world.chain.rpc('dev_newBlock', {'count': 1})
            ended = 'SELECT count(*) FROM txrelay.finished_transactions WHERE id IS NOT NULL'
            proc.wait_for('them to end', lambda: world.pg.value(ended) == 3)
            world.pg.query("""SELECT txrelay.account_policy('alice', '{"tip_cap": 1000000}')""")
            live = world.enqueue('live')
            state = 'SELECT state FROM txrelay.status(%s)'
            proc.wait_for('it to be in the pool', lambda: world.pg.value(state, (live,)) == 'ready')
            world.pg.query('SELECT txrelay.bump(%s, 5)', (live,))
            proc.wait_for('its second attempt', lambda: self.attempts(world, live) == 2)
            waiting = world.pg.value("SELECT txrelay.enqueue('bob', '\\x00000479', key => 'w', "
                                     "not_before => now() + interval '1 h')")

            removed = json.loads(cli('history', str(old), '--json', '--database',
                                     world.pg.dsn).stdout)['hash']
            self.assertIn('finished', self.by_hash(world, removed).stdout)

            # Months pass: a partition of long ago, a month that nobody made, everything but `kept`
            # is old.
            month = world.pg.value("SELECT 'finished_transactions_' || to_char(now() AT TIME ZONE "
                                   "'UTC' + interval '1 month', "
                                   "'YYYY\"m\"MM')")
            self.owner(world, f'DROP TABLE txrelay.{month}')
            # In one transaction: a run of retention in between would drop the empty partition.
            self.owner(world, "SELECT txrelay.ensure_partitions(0, '2020-01-15'); "
                              "INSERT INTO txrelay.finished_transactions (id, account, outcome, "
                              "created_at, finished_at) "
                              "VALUES (1000000, 1, 'ok', '2020-01-10', '2020-01-10')")
            self.owner(world, "UPDATE txrelay.attempts SET ended_at = coalesce(ended_at, now()) - "
                              "interval '3 days' "
                              "WHERE id <> %s AND (ended_at IS NOT NULL OR id <> %s)", kept, live)
            self.owner(world, "UPDATE txrelay.idempotency_keys "
                              "SET created_at = now() - interval '3 days'")

            proc.wait_for('the month to be made', lambda: month in self.partitions(world))
            proc.wait_for('2020 to go',
                          lambda: 'finished_transactions_2020m01' not in self.partitions(world))
            proc.wait_for('the old attempt to go', lambda: not self.attempts(world, old))
            proc.wait_for('the old key to go',
                          lambda: world.pg.query('SELECT key FROM txrelay.idempotency_keys') == [
                              ('w',)])
            self.assertEqual(world.pg.query('SELECT * FROM txrelay.status(1000000)'), [])

            self.assertEqual(self.attempts(world, kept), 1)
            self.assertEqual(self.attempts(world, live), 2, 'what is in use stays, however old')
            for tx in (kept, live):
                history = [json.loads(x) for x in cli('history', str(tx), '--json', '--database',
                                                      world.pg.dsn).stdout.splitlines()]
                self.assertEqual(len(history), 1 if tx == kept else 2)
                for attempt in history:
                    self.assertIn(f'"id":{tx},',
                                  self.by_hash(world, attempt['hash'], '--json').stdout)
            gone = self.by_hash(world, removed, check=False)
            self.assertEqual((gone.returncode, gone.stdout), (1, ''))
            self.assertIn('no attempt in this database (they are kept for retention.keep_days) '
                          f'with the hash {removed}',
                          gone.stderr)
            for bad in ((removed[:-1],), (removed[2:],), (removed, str(kept))):
                self.assertEqual(self.by_hash(world, *bad, check=False).returncode, 2)
            for tx, word in ((old, 'finished'), (kept, 'finished'), (keyed, 'finished'),
                             (live, 'pending'), (waiting, 'outbox')):
                self.assertIn(word, cli('status', str(tx), '--database', world.pg.dsn).stdout)
            for _ in range(3):
                world.chain.rpc('dev_newBlock', {'count': 1})
            self.assertEqual(cli('wait', str(live), '--timeout', '30', '--database',
                                 world.pg.dsn).returncode, 0)
            for said in (r'retention\.done made=1 ', r'retention\.done .*dropped=1'):
                proc.wait_for(said, lambda: re.search(said, one.text() + two.text()))
            logs = one.text() + two.text()
            self.assertNotIn('retention.failed', logs)
            self.assertEqual(sum(int(n) for n in re.findall(r'dropped=(\d+)', logs)), 1,
                             'one relay did it')
            # A relay that stops in the middle of it stops in good order.
            self.assertEqual([one.stop(), two.stop()], [0, 0])

    def test_only_a_leader_keeps_house(self):
        with World(own_postgres=True) as world:
            leader = world.relay('leader')  # its own next look is a minute away
            world.wait_leader(leader)
            follower = world.relay('follower', extra=RETENTION)
            follower.wait_log('relay.running')
            self.owner(world, "SELECT txrelay.ensure_partitions(0, '2020-01-15')")
            sessions = (
                "SELECT count(*) FROM pg_stat_activity WHERE application_name ~ ' retention$'")
            tx = world.enqueue('meanwhile')
            proc.wait_for('it to end', lambda: not world.unfinished())
            self.assertIn('finished_transactions_2020m01', self.partitions(world))
            self.assertEqual(world.pg.value(sessions), 0)
            leader.kill()
            world.wait_leader(follower)
            proc.wait_for('2020 to go',
                          lambda: 'finished_transactions_2020m01' not in self.partitions(world))
            self.assertIsNotNone(tx)
            world.settle()

    def test_bad_values_are_named(self):
        with World() as world:
            relay = world.relay('one', start=False, extra='retention:\n  keep_days: 40000\n')
            done = cli('check', '--config', relay.config, check=False)
            self.assertIn('retention.keep_days is 40000; it must be from 1 to 36500', done.stderr)


if __name__ == '__main__':
    unittest.main()
