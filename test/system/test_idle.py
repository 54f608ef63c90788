"""An idle relay (issues 4 and 5): what it asks the database with one account and with a thousand,
and what it costs in CPU. Statements are asserted; the CPU depends on the machine and is printed."""
import os
import time
import unittest

from harness import proc
from harness.chain import remark
from harness.leadership import SLOW
from harness.statements import CountingServer
from harness.world import ALICE, BOB, World

COUNT = int(os.environ.get('TXRELAY_IDLE_ACCOUNTS', '1000'))
ASLEEP = ("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 9001 "
          "AND objsubid = 2 AND mode = 'ExclusiveLock'")
SECONDS = float(os.environ.get('TXRELAY_IDLE_SECONDS', '10'))


def cpu(pid):
    """Seconds of CPU that the process has used, in user and in system mode."""
    with open(f'/proc/{pid}/stat') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Idle(unittest.TestCase):
    def measure(self, count, use_lock=True):
        server = CountingServer()
        self.addCleanup(server.stop)
        accounts = tuple((f'a{i}', 'ed25519', f'//{i}') for i in range(1, count + 1))
        with World('--block-ms', '1000', accounts=accounts, postgres=server) as world:
            relay = world.relay('idle', start=False)
            if not use_lock:
                relay.configure('database', use_lock='false')
            relay.start()
            if use_lock:
                proc.wait_for('every account to sleep', lambda: world.pg.value(ASLEEP) == count,
                              120)
            else:
                proc.wait_for('every account to be led',
                              lambda: relay.text().count('account.ready') >= count, 120)
            for i in range(1, 6 if not use_lock else 1):  # each falls out of step with the others
                world.enqueue(f'found by poll {i}', f'a{i}')
                proc.wait_for('it to be found',
                              lambda: world.pg.value('SELECT count(*) FROM txrelay.outbox') == 0,
                              30)
            server.wait_calm(world.pg.database, count)
            before, begun = cpu(relay.process.pid), time.monotonic()
            rates = server.rates(world.pg.database, SECONDS)
            used = (cpu(relay.process.pid) - before) / (time.monotonic() - begun)
            total, busy = sum(r for r, _, _ in rates), sum(ms for _, ms, _ in rates)
            print(f'\n{count} idle accounts, one relay{"" if use_lock else " without locks"}: '
                  f'{total:.1f} statements/s, '
                  f'{busy:.1f} ms of the server and {used * 1000:.1f} ms of CPU of the relay a '
                  'second')
            for rate, ms, name in rates[:8]:
                print(f'  {rate:7.1f}/s {ms:7.2f} ms/s  {name}')
            return total, {name: rate for rate, _, name in rates}

    def test_one_account(self):
        self.assertLess(self.measure(1)[0], 10)

    def test_many_accounts(self):
        """A relay asks for all of its accounts at once: what it asks does not grow with them."""
        self.assertLess(self.measure(COUNT)[0], 20)

    def test_without_locks(self):
        """Nobody rings: the outbox is polled each 20 ms, and so it is for all accounts at once."""
        _, of = self.measure(COUNT // 5, use_lock=False)
        self.assertLess(of['leader_due'], 1000 / 20 + 5)
        self.assertLess(of.get('leader_poll_requests', 0) + of.get('leader_outbox', 0), 20)


class Silent(unittest.TestCase):
    """What nobody rings for: the rounds find it within a second, and times are kept to the
    moment."""

    def since(self, world, column, tx):
        """Seconds from its time, four seconds after its enqueue, to what the column says."""
        return float(world.pg.value(f"""SELECT extract(epoch FROM {column} - created_at) - 4
                                        FROM txrelay.finished_transactions WHERE id = %s""", (tx,)))

    def test_times_of_silent_rows(self):
        with World('--block-ms', '100', accounts=(ALICE, BOB)) as world:
            world.relay('idle')
            proc.wait_for('both to sleep', lambda: world.pg.value(ASLEEP) >= 2, 30)
            world.pg.query("SELECT txrelay.account_pause('bob', 'its row waits for its deadline')")
            db = world.pg.connect(autocommit=False)
            self.addCleanup(db.close)
            with db.cursor() as cur:
                cur.execute('SET LOCAL txrelay.notify = off')
                cur.execute("""SELECT txrelay.enqueue('alice', %s), txrelay.enqueue('alice', %s,
                                   not_before => clock_timestamp() + interval '4 s'),
                                   txrelay.enqueue('bob', %s,
                                   deadline => clock_timestamp() + interval '4 s')""",
                            [remark(f'silent {i}') for i in range(3)])
                now, later, never = cur.fetchone()
            db.commit()
            committed = time.monotonic()
            world.committed.update({remark('silent 0'): now, remark('silent 1'): later})
            proc.wait_for('the first', lambda: not world.pg.query('SELECT 1 FROM txrelay.outbox '
                                                                  'WHERE id = %s', (now,)), 30)
            found = time.monotonic() - committed
            world.settle()
            late = self.since(world, 'admitted_at', later)
            proc.wait_for('the last to expire', lambda: world.pg.query(
                "SELECT 1 FROM txrelay.finished_transactions WHERE id = %s AND outcome = 'expired'",
                (never,)), 30)
            expired = self.since(world, 'finished_at', never)
            print(f'\n  found after {found * 1000:.0f} ms; admitted {late * 1000:.0f} ms after its '
                  'time, expired '
                  f'{expired * 1000:.0f} ms after', end=' ')
            self.assertLess(found, 2 * SLOW)
            self.assertTrue(-0.05 <= late < 0.5 * SLOW, late)
            self.assertTrue(-0.05 <= expired < 0.5 * SLOW, expired)


if __name__ == '__main__':
    unittest.main()
