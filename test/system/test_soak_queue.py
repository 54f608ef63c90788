"""Somebody's listener sits in an open transaction, in another database of the same server, and the
server's one notification queue fills up. A commit that notifies fails when it is full: ours do not
notify from a quarter on (queue_has_room), and go on by polls and scans. Ended, everything is told
again.

It is filled until a NOTIFY is seen to fail. From Postgres 17 on a queue can be small (128 MiB
here: the postgres lane); before it has 8 GiB (./dev soak queue)."""
import os
import re
import shutil
import tempfile
import time
import unittest

import psycopg2

from harness import proc
from harness.chain import remark
from harness.foreign import Stranger
from harness.leadership import FAST
from harness.postgres import PG_SH, Postgres
from harness.relay import cli
from harness.soak import report
from harness.world import World
from system.test_follow import Base, Tail
from system.test_prepared import ASLEEP

SMALL = 17  # the first version whose queue has a setting
QUEUE_PAGES, PAGE = 16384, 8192
FILL = "SELECT count(pg_notify('junk', i::text || repeat('x', 4096))) FROM generate_series(1, %s) i"
USAGE = 'SELECT pg_notification_queue_usage()'
SHUT = 'SELECT shut FROM txrelay.notify_queue'
CHANNELS = ('outbox_wake', 'leader_change', 'pending_tx_new', 'pending_tx_update',
            'pending_tx_removed')


class Queue(Base):
    def setUp(self):
        small = int(re.search(r'\d+', proc.run([PG_SH, 'version']).stdout)[0]) >= SMALL
        self.pages = QUEUE_PAGES if small else 1 << 20
        memory = os.path.isdir('/dev/shm') and shutil.disk_usage(
            '/dev/shm').free > 1.25 * self.pages * PAGE
        directory = tempfile.mkdtemp(prefix='txpg-', dir='/dev/shm' if memory else '/tmp')
        os.chmod(directory, 0o755)
        proc.on_exit(lambda: shutil.rmtree(directory, ignore_errors=True))
        server = Postgres(directory, durable=False,
                          options=('-c', f'max_notify_queue_pages={self.pages}') if small else ())
        self.addCleanup(shutil.rmtree, directory, True)
        self.addCleanup(server.stop)
        self.world = World('--block-ms', '100', postgres=server, leadership=FAST)
        self.addCleanup(self.world.close)
        self.others = self.world.pg.sibling('others')
        self.stuck = self.others.connect(autocommit=False)
        with self.stuck.cursor() as cur:
            cur.execute('LISTEN junk')
            self.stuck.commit()
            cur.execute('SELECT 1')  # and now it does something else for a long time

    def fill(self, goal):
        db = self.others.connect()
        with db.cursor() as cur:
            while True:
                cur.execute(USAGE)
                if cur.fetchone()[0] >= goal:
                    break
                try:
                    # a payload of more than half a page takes a whole one
                    cur.execute(FILL, (self.pages // 100,))
                # what is left is less than a statement's
                except psycopg2.errors.ProgramLimitExceeded:
                    break
        db.close()

    def heard(self, ear):
        with ear.cursor() as cur:
            cur.execute('SELECT 1')  # its answer comes after all that was told before
        channels = {n.channel for n in ear.notifies}
        ear.notifies.clear()
        return channels

    def work(self, tag):
        """Everything that notifies when there is room: by an application, an operator, a leader
        and its successor."""
        world, value = self.world, self.world.pg.value
        world.settle()
        proc.wait_for('the leader to fall asleep', lambda: value(ASLEEP), 30)
        world.enqueue(f'{tag} one')
        calls = [remark(f'{tag} {i}') for i in range(20)]
        world.committed.update(zip(calls, value("SELECT txrelay.enqueue_many('alice', %s::bytea[])",
                                                (calls,))))
        world.settle()
        proc.wait_for('it to fall asleep again', lambda: value(ASLEEP), 30)
        signed = self.signer.extrinsic(value('SELECT next_nonce FROM txrelay.accounts'),
                                       remark(f'{tag} signed'))
        world.committed[signed.call] = value('SELECT txrelay.enqueue_signed(%s)', (signed.raw,))
        later = value("SELECT txrelay.enqueue('alice', '\\x000004ff', not_before => now() + "
                      "interval '1 h')")
        self.assertEqual(value('SELECT txrelay.cancel(%s)', (later,)), 'cancelled')
        world.settle()
        value("SELECT txrelay.account_policy('alice', '{\"low_balance\": 1}')")
        value("SELECT txrelay.account_pause('alice', 'a look')")
        value("SELECT txrelay.account_resume('alice')")
        leader = next(r for r in world.relays if r.leads('alice'))
        heir = next(r for r in world.relays if r is not leader)
        leader.kill()
        world.wait_leader(heir)
        leader.start()
        world.enqueue(f'{tag} after it')
        world.settle()

    def test_filled_and_emptied(self):
        world = self.world
        self.signer = Stranger(world.chain)
        for name in 'ab':
            world.relay(name).wait_log('relay.running')
        proc.wait_for('a leader', lambda: any(r.leads('alice') for r in world.relays))
        tail = Tail(world, self.login(world, 'dashboard', 'txrelay_follower')).wait_live()
        ear = world.pg.connect()
        with ear.cursor() as cur:
            cur.execute('; '.join(f'LISTEN {c}' for c in CHANNELS))
        self.work('with room')
        self.assertEqual(self.heard(ear), set(CHANNELS))

        begun = time.monotonic()
        self.fill(0.06)
        proc.wait_for('the alert',
                      lambda: re.search(r'listen\.queue usage=0\.0[67] .*From 0\.25 on',
                                        tail.process.text()), 20)
        self.fill(1.0)
        report(f'the queue is {self.world.pg.value(USAGE):.4f} full after '
               f'{time.monotonic() - begun:.1f} s')
        with self.assertRaises(psycopg2.errors.ProgramLimitExceeded):
            world.pg.query('NOTIFY anything')
        proc.wait_for('a relay to see it', lambda: world.pg.value(SHUT), 20)
        self.assertIn((None, 'queue'), world.pg.query('SELECT relay, code FROM '
                                                      'txrelay.blocked_relays'))
        for relay in world.relays:
            relay.wait_log('relay.blocked .*code=queue ')
            self.assertEqual(relay.control({'cmd': 'status'})['obstacle'], 'queue')
        # What would become of our commits if they notified.
        with self.assertRaises(psycopg2.errors.ProgramLimitExceeded):
            world.pg.query("UPDATE txrelay.notify_queue SET shut = false; "
                           "SELECT txrelay.account_resume('alice')")
        self.heard(ear)
        begun = time.monotonic()
        self.work('without room')
        self.assertEqual(self.heard(ear), set(), 'a commit notified')
        ended = set(world.committed.values())
        tail.wait('every end',
                  lambda rows: {r['id'] for r in rows if r.get('outcome') == 'ok'} >= ended, 120)
        report(f'all of it ended and told after {time.monotonic() - begun:.1f} s')
        self.assertIn('Nothing is notified now', tail.process.text())
        self.assertIn('listen.queue', ''.join(r.text() for r in world.relays))
        self.first_listener_of_a_database()

        begun = time.monotonic()
        self.others.query('SELECT pg_terminate_backend(%s)', (self.stuck.info.backend_pid,))
        proc.wait_for('a relay to see it', lambda: not world.pg.value(SHUT), 120)
        # While the server removes the queue's files a listener may be without an answer, and say
        # so.
        proc.wait_for('nothing to keep a relay',
                      lambda: not world.pg.query('SELECT 1 FROM txrelay.blocked_relays'), 120)
        report(f'emptied {time.monotonic() - begun:.1f} s after that session was ended')
        self.work('with room again')
        self.assertEqual(self.heard(ear), set(CHANNELS))
        tail.stop()

    def first_listener_of_a_database(self):
        """LISTEN walks over all that nobody there has read. And nobody there has looked whether
        there is room."""
        fresh = self.world.pg.sibling('fresh')
        cli('migrate', '--database', fresh.dsn)
        begun = time.monotonic()
        relay = self.world.relay('c', dsn=fresh.dsn)
        self.world.wait_leader(relay, seconds=60)
        proc.wait_for('it to have looked', lambda: fresh.value(SHUT), 60)
        report(f'a relay leads and has looked after {time.monotonic() - begun:.1f} s')
        relay.kill()
        self.world.relays.remove(relay)
        begun = time.monotonic()
        tail = Tail(self.world, fresh.dsn)
        tail.wait('it to be live', lambda rows: rows and rows[-1]['event'] == 'live', 60)
        report(f'the first listener of a database is live after {time.monotonic() - begun:.1f} s')
        self.assertEqual([r['event'] for r in tail.lines()], ['live'])
        self.assertEqual(tail.stop(), 0)


if __name__ == '__main__':
    unittest.main()
