"""Placement over the members: five relays share 200 accounts by the hash ring; a rolling restart
under load. Figures are printed."""
import itertools
import os
import re
import threading
import time
import unittest
from collections import Counter
from datetime import datetime, timezone

from harness import proc
from harness.chain import remark
from harness.leadership import FAST, SLOW, freeze, thaw
from harness.relay import cli, key_files
from harness.statements import CountingServer
from harness.world import World

COUNT = int(os.environ.get('TXRELAY_PLACED_ACCOUNTS', '200'))
ACCOUNTS = tuple((f'a{i}', 'ed25519', f'//{i}') for i in range(1, COUNT + 1))
RING = {'placement': 'ring', 'handover_ms': 1000}


def funded(accounts):
    """--fund for each, with the id that the program itself shows."""
    options = []
    for _, scheme, path in key_files(proc.make_dir('txkeys-'), accounts):
        account = re.search(r'account id\s+(\S+)',
                            cli('keys', 'show', path, '--scheme', scheme).stdout).group(1)
        options += ['--fund', f'{account}={10 ** 18}']
    return options


def stamps(relay, event, after):
    """Seconds since `after` of a relay's log lines of this kind."""
    found = []
    for stamp, alias in re.findall(rf'time=(\S+Z) level=\w+ event={re.escape(event)} account=(\S+)',
                                   relay.text()):
        at = datetime.strptime(stamp.split('>')[-1],
                               '%Y-%m-%dT%H:%M:%S.%fZ').replace(tzinfo=timezone.utc).timestamp()
        if at > after:
            found.append((at - after, alias))
    return found


class Placement(unittest.TestCase):
    def holders(self, world):
        """alias -> name of the relay that leads it."""
        rows = world.pg.query("SELECT alias, split_part(holder, '-', 2) FROM txrelay.leaders")
        return {alias: name or None for alias, name in rows}

    def shares(self, world):
        return Counter(self.holders(world).values())

    def balanced(self, world, relays):
        """Every relay leads at least a third of a fair share, nobody more than twice of it."""
        shares = self.shares(world)
        fair = COUNT / relays
        return len(shares) == relays and None not in shares and all(fair / 3 <= n <= fair * 2
                                                                    for n in shares.values())

    def test_five_relays_share_the_accounts(self):
        with World('--block-ms', '1000', accounts=ACCOUNTS,
                   leadership={**RING, 'heartbeat_ms': 300}) as world:
            relays = {n: world.relay(n) for n in ('r0', 'r1', 'r2', 'r3', 'r4')}
            proc.wait_for('all five to see each other', lambda: all(
                (r.status() or {}).get('members') == 5 for r in relays.values()), 60)
            proc.wait_for('each to tell how far it sees', lambda: world.pg.query(
                'SELECT count(*) FROM txrelay.members WHERE best > 0') == [(5,)], 60)
            proc.wait_for('the ring to be followed', lambda: self.balanced(world, 5), 120)
            self.wait_still(world)
            before = self.holders(world)
            print(
                f'\n{COUNT} accounts over five relays: {dict(sorted(self.shares(world).items()))}')
            victim = 'r2'
            lost = {a for a, holder in before.items() if holder == victim}
            when = time.time()
            relays[victim].kill()
            proc.wait_for('its share to be led again', lambda: victim not in self.shares(world) and
                          None not in self.shares(world), 30)
            # noqa: E731
            claims = lambda: sorted((at, alias, name) for name, r in relays.items()
                                    if name != victim
                                    for at, alias in stamps(r, 'leader.acquired', when)
                                    if alias in lost)
            # The table has a claim before the relay that made it hears so.
            times = proc.wait_for('each claim to be logged', lambda: (
                lambda found: {alias for _, alias, _ in found} == lost and found)(claims()))
            heirs = Counter(name for _, _, name in times)
            print(f'kill -9 of {victim}: {len(lost)} accounts led again after '
                  f'{times[0][0] * 1000:.0f} '
                  f'to {times[-1][0] * 1000:.0f} ms by {dict(sorted(heirs.items()))}')
            self.assertGreaterEqual(len(heirs), 3, 'its share goes to several others')
            self.assertLess(times[-1][0], 1.0 * SLOW)
            after = self.holders(world)
            kept = [a for a, holder in before.items() if holder != victim and after[a] != holder]
            self.assertEqual(kept, [], 'nobody else has moved')

    def test_idle_installation(self):
        """What five relays that have nothing to do ask the database, account by account or all at
        once."""
        server = CountingServer()
        self.addCleanup(server.stop)
        with World('--block-ms', '1000', accounts=ACCOUNTS, leadership=RING,
                   postgres=server) as world:
            relays = [world.relay(n) for n in ('r0', 'r1', 'r2', 'r3', 'r4')]
            proc.wait_for('all five to see each other', lambda: all(
                (r.status() or {}).get('members') == 5 for r in relays), 60)
            proc.wait_for('the ring to be followed', lambda: self.balanced(world, 5), 120)
            self.wait_still(world)
            server.wait_calm(world.pg.database, COUNT)
            rates = server.rates(world.pg.database, 5)
            total, busy = sum(r for r, _, _ in rates), sum(ms for _, ms, _ in rates)
            print(f'\n{COUNT} idle accounts over five relays: {total:.1f} statements/s, {busy:.1f} '
                  'ms of the server a second')
            for rate, ms, name in rates[:8]:
                print(f'  {rate:7.1f}/s {ms:7.2f} ms/s  {name}')
            of = lambda name: sum(rate for rate, _, n in rates if n == name)  # noqa: E731
            # Leadership asks for all accounts at once: renewals and heartbeats every 800..1200 ms,
            # looks every 150..450.
            for name, most in (('leader_renew', 1000 / 800), ('member_heartbeat', 1000 / 800),
                               ('leader_scan', 1000 / 150)):
                self.assertTrue(1 < of(name) <= 5 * most * 1.2, (name, of(name)))
            self.assertTrue(1 < of('leader_due') <= 5 * 1.2, of('leader_due'))
            self.assertLess(of('leader_poll_requests') + of('leader_outbox'), 20,
                            'none asks by itself')
            self.assertLess(total, 100, 'however many accounts there are')

    def test_one_ends_the_session_of_a_hung_leader(self):
        """All four followers see the hung leader within a moment; the first in rank asks for its
        session's end, and leads."""
        server = CountingServer()
        self.addCleanup(server.stop)
        with World(accounts=ACCOUNTS[:1], leadership=FAST, postgres=server) as world:
            relays = [world.relay(n) for n in ('r0', 'r1', 'r2', 'r3', 'r4')]
            asked, took = [], []
            for _ in range(4):
                proc.wait_for('members', lambda: all((r.status() or {}).get('members') == 5
                                                     for r in relays), 60)
                # the thawed relay may not know yet that it has lost its lead
                leader, = proc.wait_for('one leader', lambda: (
                    lambda found: len(found) == 1 and found)([r for r in relays
                                                              if r.leads('a1')]))
                server.query('SELECT pg_stat_statements_reset()')
                when = time.time()
                freeze(leader)
                proc.wait_for('another leader',
                              lambda: any(r.leads('a1') for r in relays if r is not leader), 30)
                took.append(min(at for r in relays if r is not leader
                                for at, _ in stamps(r, 'leader.acquired', when)))
                # and evicts in the same statement
                asked.append(server.calls(world.pg.database).get('lock_holder', 0))
                thaw(leader)
            world.settle()
            print(f'\nhung leader of five, four times: ended after {[f"{t:.1f}" for t in took]} s '
                  f'by {asked} questions')
            self.assertGreaterEqual(min(asked), 1)
            self.assertLessEqual(sum(asked), 5,
                                 'one each, and once the second in rank looked that much earlier')
            self.assertLess(max(took), FAST['expiry_1_ms'] / 1000 + SLOW)

    def wait_still(self, world):
        """No more hand-overs: no new epoch for longer than one takes to begin, on a loaded machine
        too."""
        epochs = lambda: world.pg.value('SELECT sum(epoch) FROM txrelay.leadership')  # noqa: E731
        seen = [epochs(), time.monotonic()]

        def still():
            now = epochs()
            if now != seen[0]:
                seen[:] = [now, time.monotonic()]
            return time.monotonic() - seen[1] > 1.5 * SLOW
        proc.wait_for('hand-overs to end', still, 60)

    def test_rolling_restart_under_load(self):
        """Three relays, one after the other ended by SIGTERM and by txrelay drain: nothing is lost
        or sent twice, and while it goes on at least half as much is done as before."""
        accounts = ACCOUNTS[:12]
        # Ten seconds to settle: a machine that stands still for a moment is no fault, an answer
        # that is lost is one.
        with World('--block-ms', '200', *funded(accounts), accounts=accounts,
                   leadership={**RING, 'handover_ms': 10000}) as world:
            relays = [world.relay(n) for n in ('r0', 'r1', 'r2')]
            # noqa: E731
            led = lambda: None not in set(self.holders(world).values()) and len(
                self.holders(world)) == 12
            proc.wait_for('all to be led', led, 60)
            stop, failed = threading.Event(), []
            load = threading.Thread(target=self.load, args=(world, accounts, stop, failed))
            load.start()
            try:
                # noqa: E731
                done = lambda: world.pg.value('SELECT count(*) FROM txrelay.finished_transactions')
                proc.wait_for('the load to flow', lambda: done() > 50, 60)
                calm = self.rate(done, until=time.monotonic() + 6)
                begun = (done(), time.monotonic())
                drained = []
                for i, relay in enumerate(relays):
                    when = time.monotonic()
                    if i == 1:
                        self.assertIn('draining', cli('drain', '--to', relay.address).stdout)
                        proc.wait_for('it to end', lambda: not relay.alive(), 30)
                    else:
                        self.assertEqual(relay.stop(), 0)
                    drained.append(round((time.monotonic() - when) * 1000))
                    late = re.findall(r'leader.handing_over .* settled=no.*', relay.text())
                    self.assertEqual(late, [])
                    relay.start()
                    proc.wait_for('it to be a member again',
                                  lambda: (relay.status() or {}).get('members') == 3, 60)
                    proc.wait_for('all to be led', led, 60)
                    goal = done() + 150
                    proc.wait_for('the load to flow', lambda: done() >= goal, 60)
                rolling = (done() - begun[0]) / (time.monotonic() - begun[1])
            finally:
                stop.set()
                load.join()
            self.assertEqual(failed, [])
            figures = world.settle()
            print(f'\nrolling restart: {calm:.0f} transactions a second before, {rolling:.0f} '
                  'during; '
                  f'drains took {drained} ms; {figures}')
            self.assertEqual(figures['duplicates'] + figures['missing'], 0)
            self.assertGreater(rolling, calm / 2)

    def rate(self, done, until):
        first, at = done(), time.monotonic()
        proc.wait_for('the time of the measurement', lambda: time.monotonic() >= until, 60)
        return (done() - first) / (time.monotonic() - at)

    def load(self, world, accounts, stop, failed):
        """A pace that the relays can keep, so that what is slower during the restart shows."""
        try:
            db = world.pg.connect()
            with db.cursor() as cur:
                for i in itertools.count():
                    if stop.wait(0.01):
                        break
                    call = remark(f'load {i}')
                    cur.execute('SELECT txrelay.enqueue(%s, %s)',
                                (accounts[i % len(accounts)][0], call))
                    world.committed[call] = cur.fetchone()[0]
            db.close()
        except Exception as error:  # told by the test
            failed.append(error)

    def test_rotation(self):
        """Each leader hands over after so many finalized blocks, to the next: all three have led,
        in turn."""
        accounts = ACCOUNTS[:1]
        with World('--block-ms', '200', *funded(accounts), accounts=accounts,
                   leadership={'rotate_blocks': 5}) as world:
            relays = [world.relay(n) for n in ('r0', 'r1', 'r2')]
            proc.wait_for('members', lambda: all((r.status() or {}).get('members') == 3
                                                 for r in relays), 60)
            turns = []

            def turned():
                holder = self.holders(world).get('a1')
                if holder and (not turns or turns[-1] != holder):
                    turns.append(holder)
                    world.enqueue(f'turn {len(turns)}', 'a1')
                return len(turns) >= 8
            proc.wait_for('seven turns', turned, 90)
            figures = world.settle()
            print(f'\nturns of five blocks: {turns}; {figures}')
            for n in range(1, len(turns) - 3):
                self.assertEqual(len(set(turns[n:n + 3])), 3, turns)


if __name__ == '__main__':
    unittest.main()
