"""Feeds, from the publisher's command to the finalized block."""
import json
import os
import re
import subprocess
import unittest

from harness import proc
from harness.chain import remark
from harness.relay import cli
from harness.world import World


class Feeds(unittest.TestCase):
    def key(self, world, name):
        """A publisher's key file, and its public key in hexadecimal."""
        path = os.path.join(world.dir, f'{name}.key')
        shown = cli('keys', 'new', path, '--scheme', 'ed25519').stdout
        return path, re.search(r'public key +0x([0-9a-f]{64})', shown).group(1)

    def relay(self, world, name):
        listen = f'unix:{world.dir}/{name}.feeds'
        return world.relay(name, extra=f'feeds:\n  listen: {listen}\n'), listen

    def create(self, world, *keys):
        cli('feed', 'create', 'payouts', 'alice', *keys, '--database', world.pg.dsn)

    def push(self, key, to, lines, *options, more=False):
        """A publisher that runs beside the test. more: its input stays open."""
        p = subprocess.Popen([proc.TXRELAY, 'feed', 'push', 'payouts', '--to', to, '--key', key,
                              *options], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.reap, p)
        p.stdin.write(lines)
        p.stdin.flush()
        if not more:
            self.all_said(p)
        return p

    def all_said(self, p):
        p.stdin.close()
        p.stdin = None  # communicate() would flush it

    def reap(self, p):
        p.kill()
        p.wait()
        for pipe in (p.stdout, p.stderr):
            pipe.close()

    def finish(self, p, seconds=60):
        out, err = p.communicate(timeout=seconds)
        self.assertEqual(p.returncode, 0, err)
        return out

    def batches(self, count, calls):
        content = [[remark(f'batch {n} call {i}') for i in range(calls)] for n in range(count)]
        return content, ''.join(json.dumps(['0x' + c.hex() for c in batch]) + '\n'
                                for batch in content)

    def commit(self, world, content):
        """What the feed put into the outbox is what was pushed: each call once, under the key of
        its place."""
        ids = dict(world.pg.query('SELECT key, id FROM txrelay.idempotency_keys'))
        places = {f'feed/payouts/{n}/{i}': c for n, batch in enumerate(content)
                  for i, c in enumerate(batch)}
        self.assertEqual(sorted(ids), sorted(places))
        world.committed = {places[key]: tx for key, tx in ids.items()}
        self.assertEqual(world.pg.value("SELECT last_number FROM txrelay.feeds "
                                        "WHERE name = 'payouts'"), len(content) - 1)

    def test_a_pushed_batch_is_finalized(self):
        content, lines = self.batches(5, 3)
        with World() as world:
            relay, listen = self.relay(world, 'one')
            world.wait_leader(relay)
            key, public = self.key(world, 'publisher')
            self.create(world, public)
            self.assertEqual(self.finish(self.push(key, listen, lines)), '4\n')
            self.commit(world, content)
            world.settle()
            # Once more: every number is stored, and nothing is taken twice.
            self.assertEqual(self.finish(self.push(key, listen, lines)), '4\n')
            self.commit(world, content)

    def test_the_leader_looks_at_its_outbox_after_a_batch(self):
        """A batch rings no doorbell. A row with a time needs a request poll too."""
        with World() as world:
            listen = f'unix:{world.dir}/one.feeds'
            relay = world.relay('one', extra=f'log_level: debug\nfeeds:\n  listen: {listen}\n')
            world.wait_leader(relay)
            key, public = self.key(world, 'publisher')
            self.create(world, public)
            relay.wait_log(r'event=feed\.served')
            call = '0x' + remark('a call').hex()
            for number, row, reason in ((0, call, 'query=outbox reason=requeued'),
                                        (1, {'call': call, 'not_before_ms': 1},
                                         'query=requests reason=rang')):
                self.assertNotIn(reason, relay.text())
                self.finish(self.push(key, listen, json.dumps({'number': number, 'calls': [row]})
                                      + '\n'))
                relay.wait_log(f'event=poll.sent account=alice {reason}')

    def test_of_three_publishers_each_number_is_taken_once(self):
        content, lines = self.batches(30, 2)
        with World() as world:
            relay, listen = self.relay(world, 'one')
            world.wait_leader(relay)
            keys = [self.key(world, f'publisher{i}') for i in range(3)]
            self.create(world, *[public for _, public in keys])
            pushes = [self.push(key, listen, lines) for key, _ in keys]
            for p in pushes:
                self.assertEqual(self.finish(p), '29\n')
            self.commit(world, content)
            world.settle()

    def test_a_publisher_whose_key_is_not_the_feed_s_is_refused(self):
        _, lines = self.batches(1, 1)
        with World() as world:
            relay, listen = self.relay(world, 'one')
            world.wait_leader(relay)
            _, public = self.key(world, 'publisher')
            stranger, _ = self.key(world, 'stranger')
            self.create(world, public)
            p = self.push(stranger, listen, lines)
            _, err = p.communicate(timeout=60)
            self.assertEqual(p.returncode, 1)
            self.assertIn('refused', err)
            self.assertEqual(world.pg.value('SELECT count(*) FROM txrelay.outbox'), 0)

    def test_acknowledged_batches_survive_kill_9_of_the_leader(self):
        content, lines = self.batches(400, 1)
        with World() as world:
            relays = [self.relay(world, name) for name in ('one', 'two')]
            proc.wait_for('a leader', lambda: any(r.leads('alice') for r, _ in relays), 20)
            key, public = self.key(world, 'publisher')
            self.create(world, public)
            to = ','.join(listen for _, listen in relays)
            half = lines.index('\n', len(lines) // 2) + 1  # so that some are left at the kill
            p = self.push(key, to, lines[:half], '--json', more=True)
            acked = -1
            while acked < 5:
                acked = json.loads(p.stdout.readline())['acknowledged']
            leader = next(r for r, _ in relays if r.leads('alice'))
            leader.kill()
            p.stdin.write(lines[half:])
            self.all_said(p)
            stored = world.pg.value("SELECT last_number FROM txrelay.feeds WHERE name = 'payouts'")
            self.assertGreaterEqual(stored, acked)
            leader.start()
            out = p.stdout.read()
            self.assertEqual(p.wait(120), 0, p.stderr.read())
            self.assertEqual(json.loads(out.splitlines()[-1]), {'acknowledged': 399})
            self.commit(world, content)
            world.settle()
