"""Following: wait and tail with an application's rights, positions, and what is told while the
database is away."""
import json
import os
import re
import signal
import unittest

from harness import proc
from harness.proxy import Proxy
from harness.relay import cli
from harness.world import World

ENDED_ELSE, LATE = 4, 3


class Tail:
    """A `txrelay tail --json` in the background."""
    serial = 0

    def __init__(self, world, dsn, *options):
        Tail.serial += 1
        self.path = f'{world.dir}/tail-{Tail.serial}.json'
        self.out = open(self.path, 'wb')
        self.process = proc.Process([proc.TXRELAY, 'tail', '--json', '--database', dsn, *options],
                                    f'{world.dir}/tail-{Tail.serial}.log', stdout=self.out)
        self.out.close()

    def lines(self, event=None):
        with open(self.path) as file:
            rows = [json.loads(line) for line in file.read().split('\n')[:-1]]
        return [r for r in rows if event is None or r['event'] == event]

    def wait(self, what, condition, seconds=60):
        try:
            return proc.wait_for(what, lambda: condition(self.lines()), seconds)
        except TimeoutError as error:
            raise TimeoutError(
                f'{error}\n{self.process.text()[-2000:]}\n{self.lines()[-5:]}') from None

    def wait_live(self):
        self.wait('the follower to be live', lambda rows: any(r['event'] == 'live' for r in rows))
        return self

    def stop(self):
        return self.process.stop()


class Base(unittest.TestCase):
    def world(self, *options, **kwargs):
        world = World(*options, **kwargs)
        self.addCleanup(world.close)
        return world

    def login(self, world, name, role):
        """The connection string of a login that has the role and no more."""
        name = f'{name}_{world.number}'
        with world.pg.connect() as db, db.cursor() as cur:
            cur.execute(f'CREATE ROLE {name} LOGIN IN ROLE {role}')
        db.close()
        return world.pg.dsn_of(world.pg.database, name)

    def mine(self, world, blocks=1):
        for _ in range(blocks):
            world.chain.rpc('dev_newBlock', {'count': 1})


class Wait(Base):
    def test_goals_and_exit_codes(self):
        world = self.world('--block-ms', '0')
        app = self.login(world, 'shop', 'txrelay_app')
        wait = lambda *args: cli('wait', *args, '--database', app, check=False)  # noqa: E731
        relay = world.relay('one')
        world.wait_leader(relay)
        tx = world.enqueue('one')
        proc.wait_for('the node to have it', lambda: world.chain.rpc('author_pendingExtrinsics'))
        done = wait(str(tx), '--timeout', '2', '--json')
        self.assertEqual(done.returncode, LATE)
        self.assertIn('not finalized after 2 s', done.stderr)
        row = json.loads(done.stdout)
        self.assertEqual((row['result'], row['for'], row['id']), ('timeout', 'finalized', tx))
        self.assertEqual(row['status']['id'], tx)

        waiting = {goal: proc.Process([proc.TXRELAY, 'wait', str(tx), '--for', goal, '--json',
                                       '--timeout', '60', '--database',
                                       app], f'{world.dir}/wait-{goal}.log')
                                       for goal in ('in_block', 'finalized', 'ended')}
        for goal, process in waiting.items():
            proc.wait_for(f'{goal} to listen', lambda: 'wait.live' in process.text())
        self.mine(world)
        self.assertEqual(waiting['in_block'].child.wait(20), 0, waiting['in_block'].text())
        self.assertTrue(waiting['finalized'].alive() and waiting['ended'].alive())
        self.mine(world, 2)
        for goal in ('finalized', 'ended'):
            self.assertEqual(waiting[goal].child.wait(20), 0, waiting[goal].text())
        rows = {goal: json.loads(p.text().splitlines()[-1]) for goal, p in waiting.items()}
        self.assertEqual([rows[g]['result'] for g in rows], ['reached'] * 3)
        self.assertEqual(rows['in_block']['status']['state'], 'in_block')
        self.assertEqual(rows['finalized']['status']['outcome'], 'ok')
        # It has ended before anybody asks.
        for goal in waiting:
            self.assertEqual(wait(str(tx), '--for', goal).returncode, 0)
        self.assertRegex(wait(str(tx)).stdout, rf'id={tx} .* finished finalized outcome=ok')
        world.settle()

    def test_what_ends_otherwise(self):
        world = self.world('--block-ms', '0')
        app = self.login(world, 'shop', 'txrelay_app')
        relay = world.relay('one')
        world.wait_leader(relay)
        relay.stop()
        tx = world.pg.value("SELECT txrelay.enqueue('alice', '\\x00000478', deadline => now() + "
                            "interval '1 h')")
        waiting = proc.Process([proc.TXRELAY, 'wait', str(tx), '--database', app],
                               f'{world.dir}/wait.log')
        proc.wait_for('it to listen', lambda: 'wait.live' in waiting.text())
        self.assertTrue(waiting.alive())
        self.assertEqual(world.pg.value('SELECT txrelay.cancel(%s)', (tx,)), 'cancelled')
        self.assertEqual(waiting.child.wait(20), ENDED_ELSE, waiting.text())
        self.assertIn('outcome=cancelled', waiting.text())
        self.assertEqual(cli('wait', str(tx), '--for', 'in_block', '--database', app,
                             check=False).returncode, ENDED_ELSE)
        self.assertEqual(cli('wait', str(tx), '--for', 'ended', '--database', app,
                             check=False).returncode, 0)

    def test_only_the_table_ends_it(self):
        """It is notified to be in a block, by a session that readers believe, and is in none."""
        world = self.world('--block-ms', '0')
        app = self.login(world, 'shop', 'txrelay_app')
        world.wait_leader(world.relay('one'))
        tx = world.enqueue('one')
        proc.wait_for('the node to have it', lambda: world.chain.rpc('author_pendingExtrinsics'))
        waiting = proc.Process([proc.TXRELAY, 'wait', str(tx), '--for', 'in_block', '--json',
                                '--database', app],
                               f'{world.dir}/wait.log')
        proc.wait_for('it to listen', lambda: 'wait.live' in waiting.text())
        db = world.pg.connect()
        self.addCleanup(db.close)

        def asked():
            with db.cursor() as cur:
                cur.execute('''SELECT pg_notify('pending_tx_update',
                    json_build_object('account_id', '0x' ||
                    encode(p.account_id, 'hex'), 'nonce', p.nonce, 'id', p.id, 'hash', '0x' ||
                    encode(p.hash, 'hex'), 'state',
                    'in_block', 'block_hash', '0x' || repeat('77', 32), 'updated_at',
                    to_char(clock_timestamp() AT TIME ZONE
                    'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))::text)
                    FROM txrelay.pending_transactions p''')
            return 'wait.not_in_block' in waiting.text() or not waiting.alive()
        proc.wait_for('it to ask the table', asked)
        self.assertTrue(waiting.alive(), waiting.text())
        self.mine(world)
        self.assertEqual(waiting.child.wait(20), 0, waiting.text())
        status = json.loads(re.search(r'^\{.*', waiting.text(), re.M).group())['status']
        self.assertEqual((status['state'], status['block_hash'] == '0x' + '77' * 32),
                         ('in_block', False))
        self.mine(world, 3)
        world.settle()

    def test_a_filler_in_a_block_is_not_the_transaction(self):
        """Cancelled in the pool: the filler's block is no in_block of the transaction."""
        world = self.world('--block-ms', '0')
        app = self.login(world, 'shop', 'txrelay_app')
        relay = world.relay('one')
        world.wait_leader(relay)
        world.pg.query("""SELECT txrelay.account_policy('alice', '{"tip_cap": 1000000}')""")
        tx = world.enqueue('never')
        proc.wait_for('the node to have it', lambda: world.chain.rpc('author_pendingExtrinsics'))
        waiting = proc.Process([proc.TXRELAY, 'wait', str(tx), '--for', 'in_block', '--json',
                                '--database', app],
                               f'{world.dir}/wait.log')
        proc.wait_for('it to listen', lambda: 'wait.live' in waiting.text())
        world.pg.query('SELECT txrelay.cancel(%s)', (tx,))
        filler = "SELECT hash FROM txrelay.history(%s) WHERE filler AND state = 'ready'"
        proc.wait_for('the filler to be in the pool', lambda: world.pg.query(filler, (tx,)))
        self.mine(world)
        proc.wait_for('it to see whose bytes they are', lambda: 'wait.filler' in waiting.text()
                      or not waiting.alive())
        self.assertTrue(waiting.alive(), waiting.text())
        self.mine(world, 3)
        self.assertEqual(waiting.child.wait(20), ENDED_ELSE, waiting.text())
        self.assertEqual(json.loads(re.search(r'^\{.*', waiting.text(),
                                              re.M).group())['status']['outcome'], 'cancelled')

    def test_wrong_usage_and_unknown(self):
        world = self.world()
        app = self.login(world, 'shop', 'txrelay_app')
        done = cli('wait', '4711', '--database', app, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn('there is no transaction 4711', done.stderr)
        for args in ((), ('x',), ('0',), ('1', '2'), ('1', '--for', 'ever'),
                     ('1', '--timeout', '-1'), ('1', '--timeout', 'x')):
            self.assertNotIn(cli('wait', *args, '--database', app, check=False).returncode,
                             (0, 1, LATE, ENDED_ELSE), args)
        nobody = self.login(world, 'nobody', 'pg_monitor')
        done = cli('wait', '1', '--timeout', '20', '--database', nobody, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn('permission denied', done.stderr)


class Positions(Base):
    def test_resume_at_every_position_misses_nothing(self):
        """Whatever line a reader stopped at: from its position on it hears of every end that it
        had not heard of."""
        world = self.world()
        follower = self.login(world, 'dash', 'txrelay_follower')
        relay = world.relay('one')
        world.wait_leader(relay)
        first = Tail(world, follower).wait_live()
        ids = [world.enqueue(f'tx {i}') for i in range(12)]
        first.wait('every end', lambda rows: len([r for r in rows if r.get('outcome')]) == 12)
        self.assertEqual(first.stop(), 0)
        rows = first.lines()
        self.assertTrue(all('position' in r for r in rows))
        self.assertEqual([r['position'] for r in rows], sorted(r['position'] for r in rows))
        for cut in (0, len(rows) // 2, len(rows) - 1):
            told = {r['id'] for r in rows[:cut + 1] if r.get('outcome')}
            again = Tail(world, follower, '--since', rows[cut]['position'])
            again.wait('the rest',
                       lambda got: {r['id'] for r in got if r.get('outcome')} >= set(ids) - told)
            again.stop()
        other = self.login(world, 'shop', 'txrelay_app')
        one = Tail(world, other, '--since', '1', '--id', str(ids[3]), '--account', 'alice')
        one.wait_live().stop()
        self.assertEqual([(r['id'], r['outcome']) for r in one.lines() if 'id' in r],
                         [(ids[3], 'ok')])
        none = Tail(world, other).wait_live()
        none.stop()
        self.assertEqual([r for r in none.lines() if 'id' in r], [])
        self.assertNotEqual(cli('tail', '--since', 'yesterday', '--database', other,
                                check=False).returncode, 0)

    def test_an_end_that_is_committed_late_is_not_missed(self):
        """Cancelled in a transaction that stays open while the reader is away and comes back."""
        world = self.world()
        follower = self.login(world, 'dash', 'txrelay_follower')
        world.wait_leader(world.relay('one'))
        world.relays[0].stop()
        tx = world.pg.value("SELECT txrelay.enqueue('alice', '\\x00000478')")
        db = world.pg.connect(autocommit=False)
        with db.cursor() as cur:
            cur.execute('SELECT txrelay.cancel(%s)', (tx,))
        first = Tail(world, follower).wait_live()
        position = first.lines()[-1]['position']
        first.stop()
        db.commit()
        db.close()
        again = Tail(world, follower, '--since', position)
        again.wait('the end', lambda rows: [r for r in rows if r.get('id') == tx
                                            and r.get('outcome') == 'cancelled'])
        again.stop()


class Gap(Base):
    def test_a_position_older_than_what_is_kept_is_told(self):
        world = self.world()
        follower = self.login(world, 'dash', 'txrelay_follower')
        world.wait_leader(world.relay('one'))
        world.pg.query("SELECT txrelay.ensure_partitions(0, '2020-01-15')")
        world.pg.query("SELECT txrelay.drop_partitions(interval '30 days')")
        tx = world.enqueue('still here')
        world.settle()
        for since, gaps in (('2020-01-20T00:00:00Z',
                             [('2020-01-20T00:00:00.000000Z', '2020-02-01T00:00:00.000000Z')]),
                            ('2020-02-01T00:00:00Z', []), ('1', [])):
            tail = Tail(world, follower, '--since', since).wait_live()
            self.assertEqual(tail.stop(), 0)
            self.assertEqual([(r['from'], r['to']) for r in tail.lines('gap')], gaps)
            self.assertEqual('tail.gap' in tail.process.text(), bool(gaps))
            self.assertEqual([r['id'] for r in tail.lines('finished')], [tx])


class Stale(Base):
    """Loud, stale with its age, never promoted, recovers by itself."""

    def test_database_stopped_and_started(self):
        world = self.world(own_postgres=True)
        app = self.login(world, 'shop', 'txrelay_app')
        leader = world.relay('leader')
        world.wait_leader(leader)
        follower = world.relay('follower')
        follower.wait_log('relay.running')
        tail = Tail(world, app).wait_live()
        before = world.enqueue('before')
        tail.wait('the first end',
                  lambda rows: [r for r in rows if r.get('id') == before and r.get('outcome')])
        tx = world.pg.value("SELECT txrelay.enqueue('alice', '\\x00000478', not_before => now() + "
                            "interval '8 s')")
        waiting = proc.Process([proc.TXRELAY, 'wait', str(tx), '--timeout', '120', '--json',
                                '--database', app],
                               f'{world.dir}/wait.log')
        proc.wait_for('wait to listen', lambda: 'wait.live' in waiting.text())
        world.pg.stop()
        stale = tail.wait('to be told that it is stale',
                          lambda rows: [r for r in rows if r['event'] == 'stale'])[0]
        self.assertEqual(stale['code'], 'DB_UNAVAILABLE')
        again = tail.wait('to be told again',
                          lambda rows: [r for r in rows if r['event'] == 'stale'][1:], 30)[0]
        self.assertGreaterEqual(again['age_ms'], stale['age_ms'] + 9000)
        for reader, line in ((tail.process, r'level=error event=tail\.stale role=follower '
                                            r'age_s=\d+ code=DB_UNAVAILABLE text="'),
                             (waiting, r'level=error event=wait\.stale role=follower age_s=\d+')):
            proc.wait_for(line, lambda: re.search(line, reader.text()))
        self.assertTrue(waiting.alive())
        for relay in (leader, follower):
            self.assertIn('database.unreachable', relay.text())
            status = relay.status()
            self.assertEqual([a['role'] for a in status['accounts']], ['follower'])
            self.assertFalse(status['database'])
            self.assertGreater(status['stale_ms'], 5000)
        sent = len(world.chain.submits())
        proc.run([os.path.join(proc.ROOT, 'test', 'harness', 'pg.sh'), 'restart', world.pg.dir])
        self.assertEqual(waiting.child.wait(90), 0, waiting.text())
        ended = tail.wait('the end', lambda rows: [r for r in rows if r.get('id') == tx
                                                   and r.get('outcome')])
        self.assertEqual(ended[0]['outcome'], 'ok')
        # noqa: E731
        words = lambda rows: [r['event'] for r in rows if r['event'] in ('live', 'stale')]
        tail.wait('to be live again', lambda rows: words(rows)[-1] == 'live')
        order = words(tail.lines())
        self.assertEqual(order[0], 'live')
        self.assertEqual(order.count('live'), 2, 'stale once, and live again')
        self.assertGreater(len(world.chain.submits()), sent)
        world.committed[b'\x00\x00\x04\x78'] = tx
        world.settle()
        proc.wait_for('both relays to be back',
                      lambda: [r.status()['stale_ms'] for r in (leader, follower)] == [0, 0])
        self.assertEqual(tail.stop(), 0)

    def test_black_hole(self):
        """No end of the connection is told: the probe finds it, and the age counts from the last
        proof."""
        world = self.world(accounts=(('alice', 'sr25519', '//Alice'),))
        app = self.login(world, 'shop', 'txrelay_app')
        parts = dict(p.split('=', 1) for p in app.split())
        proxy = Proxy(os.path.join(parts['host'], f".s.PGSQL.{parts.get('port', '5432')}"))
        self.addCleanup(proxy.close)
        through = ' '.join(f'{k}={v}' for k, v in {**parts, 'host': '127.0.0.1',
                                                   'port': str(proxy.port)}.items())
        world.wait_leader(world.relay('one'))
        tail = Tail(world, through).wait_live()
        proxy.set('hole')
        missed = [world.enqueue(f'missed {i}') for i in range(5)]
        world.settle()
        stale = tail.wait('to be told', lambda rows: [r for r in rows if r['event'] == 'stale'],
                          40)[0]
        self.assertEqual(stale['code'], 'TIMEOUT')
        self.assertGreater(stale['age_ms'], 4000)
        self.assertEqual([r for r in tail.lines() if r.get('id')], [])
        proxy.set('pass')
        tail.wait('what was missed',
                  lambda rows: {r['id'] for r in rows if r.get('outcome')} >= set(missed), 60)
        tail.wait('to be live again', lambda rows: rows[-1]['event'] == 'live')
        tail.stop()

    def test_wait_interrupted(self):
        world = self.world()
        app = self.login(world, 'shop', 'txrelay_app')
        world.wait_leader(world.relay('one'))
        tx = world.pg.value("SELECT txrelay.enqueue('alice', '\\x00000478', not_before => now() + "
                            "interval '1 h')")
        waiting = proc.Process([proc.TXRELAY, 'wait', str(tx), '--database', app],
                               f'{world.dir}/wait.log')
        proc.wait_for('wait to listen', lambda: 'wait.live' in waiting.text())
        waiting.child.send_signal(signal.SIGINT)
        self.assertEqual(waiting.child.wait(10), 1)


if __name__ == '__main__':
    unittest.main()
