"""An idle relay (issues 4 and 5): what it asks the database with one account and with a thousand, and what it costs in
CPU. Statements are asserted; the CPU depends on the machine and is printed."""
import os
import time
import unittest

from harness import proc
from harness.statements import CountingServer
from harness.world import World

COUNT = int(os.environ.get('TXRELAY_IDLE_ACCOUNTS', '1000'))
ASLEEP = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 9001 AND objsubid = 2 AND mode = 'ExclusiveLock'"
SECONDS = float(os.environ.get('TXRELAY_IDLE_SECONDS', '10'))


def cpu(pid):
    """Seconds of CPU that the process has used, in user and in system mode."""
    with open(f'/proc/{pid}/stat') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Idle(unittest.TestCase):
    def measure(self, count):
        server = CountingServer()
        self.addCleanup(server.stop)
        accounts = tuple((f'a{i}', 'ed25519', f'//{i}') for i in range(1, count + 1))
        with World('--block-ms', '1000', accounts=accounts, postgres=server) as world:
            relay = world.relay('idle')
            proc.wait_for('every account to sleep', lambda: world.pg.value(ASLEEP) == count, 120)
            before, begun = cpu(relay.process.pid), time.monotonic()
            rates = server.rates(world.pg.database, SECONDS)
            used = (cpu(relay.process.pid) - before) / (time.monotonic() - begun)
            total, busy = sum(r for r, _, _ in rates), sum(ms for _, ms, _ in rates)
            print(f'\n{count} idle accounts, one relay: {total:.1f} statements/s, {busy:.1f} ms of the server and '
                  f'{used * 1000:.1f} ms of CPU of the relay a second')
            for rate, ms, name in rates[:8]:
                print(f'  {rate:7.1f}/s {ms:7.2f} ms/s  {name}')
            return total

    def test_one_account(self):
        self.measure(1)

    def test_many_accounts(self):
        self.measure(COUNT)


if __name__ == '__main__':
    unittest.main()
