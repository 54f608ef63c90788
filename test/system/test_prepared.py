"""Two-phase commit: enqueue in a transaction that is prepared, with the leader awake and asleep."""
import time
import unittest

import psycopg2

from harness import proc
from harness.chain import remark
from harness.leadership import Server
from harness.world import World

ASLEEP = ("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 9001 "
          "AND objsubid = 2 AND mode = 'ExclusiveLock'")


class Prepared(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.stop)
        self.server.query('ALTER SYSTEM SET max_prepared_transactions = 4')
        self.server.restart()
        self.world = World('--block-ms', '100', postgres=self.server)
        self.addCleanup(self.world.close)
        self.relay = self.world.relay('first')
        proc.wait_for('it to lead', lambda: 'account.ready' in self.relay.text(), 30)
        self.asleep()

    def asleep(self):
        proc.wait_for('the leader to fall asleep', lambda: self.world.pg.value(ASLEEP) == 1, 30)

    def prepare(self, text, silent=False):
        """Enqueue and prepare; returns the id."""
        call = remark(text)
        db = self.world.pg.connect(autocommit=False)
        try:
            with db.cursor() as cur:
                if silent:
                    cur.execute('SET LOCAL txrelay.notify = off')
                cur.execute("SELECT txrelay.enqueue('alice', %s)", (call,))
                ident = cur.fetchone()[0]
                cur.execute(f"PREPARE TRANSACTION '{text}'")
            self.world.committed[call] = ident
            return ident
        finally:
            db.close()

    def finished(self, ident):
        return self.world.pg.value('SELECT count(*) FROM txrelay.finished_transactions '
                                   'WHERE id = %s', (ident,)) == 1

    def test_asleep_it_is_refused_and_nothing_is_lost(self):
        with self.assertRaises(psycopg2.errors.FeatureNotSupported) as caught:
            self.prepare('loud')
        self.assertIn('NOTIFY', str(caught.exception))
        self.assertEqual(self.world.pg.value('SELECT count(*) FROM txrelay.outbox'), 0)

    def test_asleep_and_silent_the_poll_finds_it(self):
        ident = self.prepare('silent', silent=True)
        self.assertFalse(self.finished(ident))
        self.world.pg.query("COMMIT PREPARED 'silent'")
        committed = time.monotonic()
        proc.wait_for('the leader to have it',
                      lambda: not self.world.pg.value('SELECT count(*) FROM txrelay.outbox'), 30)
        print(f'\n  found {(time.monotonic() - committed) * 1000:.0f} ms after COMMIT PREPARED',
              end=' ')
        self.world.settle()

    def hold_awake(self, db):
        """An open transaction that enqueued while the leader was awake: it cannot fall asleep
        before its end."""
        def held():
            self.world.enqueue(f'wake {len(self.world.committed)}')
            with db.cursor() as cur:
                cur.execute("SELECT txrelay.enqueue('alice', %s)", (remark('suspension'),))
                cur.execute("SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() "
                            "AND classid = 9001")
                if cur.fetchone()[0]:
                    return True
            db.rollback()
            return False
        proc.wait_for('an enqueue that finds the leader awake', held, 30)
        self.world.rolled_back.append(remark('suspension'))

    def test_awake_it_is_as_any_other(self):
        db = self.world.pg.connect(autocommit=False)
        self.addCleanup(db.close)
        self.hold_awake(db)
        ident = self.prepare('loud')
        db.rollback()
        proc.wait_for('what was awake to be done',
                      lambda: not self.world.pg.value('SELECT count(*) FROM txrelay.outbox'), 30)
        self.assertEqual(self.world.pg.value(ASLEEP), 0,
                         'one that is prepared keeps it awake as well')
        self.world.pg.query("COMMIT PREPARED 'loud'")
        proc.wait_for('its end', lambda: self.finished(ident), 30)
        self.asleep()
        self.world.settle()


if __name__ == '__main__':
    unittest.main()
