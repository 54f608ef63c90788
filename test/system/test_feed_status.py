"""What a running relay says about its feeds: the control socket's status, health, the metrics B50
to B55 by their names, and the session ids of the log (B56)."""
import json
import os
import re
import subprocess
import unittest

from harness import proc
from harness.chain import remark
from harness.relay import cli
from harness.world import World

FEED, NUMBERS, CALLS = 'payouts', 5, 2


class FeedStatus(unittest.TestCase):
    def relay(self, world, name, **more):
        return world.relay(name, **more, extra=f'feeds:\n  listen: unix:{self.door(world, name)}\n '
                                               f' address: {name}.test:9944\n')

    def door(self, world, name):
        return f'{world.dir}/{name}.feeds'

    def feed_of(self, relay):
        status = relay.status()
        return next((f for f in status['feeds']['feeds'] if f['feed'] == FEED), None)

    def tells(self, relay, wanted):
        """In the end: what it says changes in several steps."""
        try:
            proc.wait_for('what the status says of the feed', lambda: self.feed_of(relay) == wanted)
        except TimeoutError:
            self.assertEqual(self.feed_of(relay), wanted)
            raise

    def key(self, world, name):
        path = os.path.join(world.dir, f'{name}.ed25519')
        return path, re.search(r'public key +0x([0-9a-f]{64})',
                               cli('keys', 'new', path, '--scheme', 'ed25519').stdout)[1]

    def lines(self, numbers, first=0):
        return ''.join(json.dumps({'number': n,
                                   'calls': ['0x' + remark(f'{n} {i}').hex()
                                             for i in range(CALLS)]}) + '\n'
                       for n in range(first, numbers))

    def push(self, key, door, lines, check=True):
        return cli('feed', 'push', FEED, '--to', f'unix:{door}', '--key', key, stdin=lines,
                   check=check)

    def sample(self, relay, name, **labels):
        text = relay.control({'cmd': 'metrics'})['text']
        label = '{' + ','.join(f'{k}="{v}"' for k, v in {'feed': FEED,
                                              **labels}.items()) + '}' if labels is not None else ''
        found = re.search(rf'^{name}{re.escape(label)} (\S+)$', text, re.M)
        return float(found[1]) if found else None

    def test_status_of_the_leader_and_of_a_follower(self):
        with World() as world:
            relays = [self.relay(world, name) for name in ('one', 'two')]
            leader = proc.wait_for('a leader',
                                   lambda: next((r for r in relays if r.leads('alice')), None))
            other = next(r for r in relays if r is not leader)
            key, public = self.key(world, 'publisher')
            cli('feed', 'create', FEED, 'alice', public, '--database', world.pg.dsn)
            proc.wait_for('both to know the feed', lambda: all(self.feed_of(r) for r in relays))
            proc.wait_for('the follower to know the leader\'s address',
                          lambda: self.feed_of(other)['leader_address'] != '')
            self.push(key, self.door(world, leader.name), self.lines(NUMBERS))
            want = {'feed': FEED, 'account': 'alice', 'served': True, 'paused': False,
                    'phase': 'free', 'last': NUMBERS - 1,
                    'sessions': 0, 'primary': None, 'leader_address': f'{leader.name}.test:9944'}
            self.tells(leader, want)
            self.assertEqual(leader.status()['feeds']['address'], f'{leader.name}.test:9944')
            self.tells(other, {**want, 'served': False, 'phase': 'idle'})
            shown = cli('feed', 'show', FEED, '--database', world.pg.dsn).stdout
            self.assertIn(f'{leader.name}.test:9944', shown)
            for relay in relays:
                self.assertEqual(cli('health', '--to', f'unix:{relay.socket}').stdout, 'ready\n')
            cli('feed', 'pause', FEED, 'the oracle is being upgraded', '--database', world.pg.dsn)
            proc.wait_for('the pause', lambda: (
                lambda feed: feed['paused'] and not feed['served'])(self.feed_of(leader)))

    def test_feeds_that_cannot_be_read_are_an_error(self):
        """An operator takes a right away: the streams stay, and the log and the health say so
        once."""
        with World() as world:
            world.pg.query('DROP ROLE IF EXISTS bounded')
            world.pg.query('CREATE ROLE bounded LOGIN IN ROLE txrelay_relay')
            relay = self.relay(world, 'one', dsn=world.pg.dsn_of(world.pg.database, 'bounded'))
            world.wait_leader(relay)
            _, public = self.key(world, 'publisher')
            cli('feed', 'create', FEED, 'alice', public, '--database', world.pg.dsn)
            relay.wait_log(r'event=feed\.served')
            reads = 'FUNCTION txrelay.leader_feeds(int[], text, text)'
            world.pg.query(f'REVOKE EXECUTE ON {reads} FROM PUBLIC, txrelay_relay')
            relay.wait_log(r'level=error event=feed\.list_failed code=\S+ sqlstate=42501 text="')
            proc.wait_for('its health to say so', lambda: (
                'the feeds cannot be read from the database'
                in cli('health', '--to', f'unix:{relay.socket}', check=False).stdout))
            world.pg.query(f'GRANT EXECUTE ON {reads} TO txrelay_relay')
            relay.wait_log(r'level=info event=feed\.list_read feeds=1')
            proc.wait_for('health', lambda: cli('health', '--to', f'unix:{relay.socket}',
                                                check=False).stdout == 'ready\n')
            self.assertEqual(relay.text().count('event=feed.list_failed'), 1)

    def test_to_b55_metrics_by_their_names(self):
        with World() as world:
            relay = self.relay(world, 'one')
            world.wait_leader(relay)
            door = self.door(world, 'one')
            (key, public), (other, another) = self.key(world, 'publisher'), self.key(world, 'other')
            cli('feed', 'create', FEED, 'alice', public, another, '--database', world.pg.dsn)
            relay.wait_log(r'event=feed\.served')
            # A publisher that stays: B50 counts it while it is there.
            stays = proc.Process([proc.TXRELAY, 'feed', 'push', FEED, '--to', f'unix:{door}',
                                  '--key', key], f'{world.dir}/stays.log',
                                 stdin=subprocess.PIPE)
            stays.child.stdin.write(self.lines(NUMBERS).encode())
            stays.child.stdin.flush()
            proc.wait_for('its batches to be taken',
                          lambda: self.feed_of(relay)['last'] == NUMBERS - 1)
            sessions = 'txrelay_active_publish_sessions'
            self.assertEqual(float(re.search(rf'^{sessions} (\S+)$',
                                             relay.control({'cmd': 'metrics'})['text'], re.M)[1]),
                                             1)
            self.assertEqual(relay.status()['feeds']['sessions'], 1)
            stays.child.stdin.close()
            self.assertEqual(stays.child.wait(60), 0)
            # Others: one that is behind, a duplicate of the last number, a number that is too high,
            # a batch that is no call.
            self.push(other, door, self.lines(NUMBERS))
            self.push(other, door, self.lines(NUMBERS, NUMBERS - 1))
            late = proc.Process([proc.TXRELAY, 'feed', 'push', FEED, '--to', f'unix:{door}',
                                 '--key', other], f'{world.dir}/late.log',
                                stdin=subprocess.PIPE)
            late.child.stdin.write(self.lines(NUMBERS + 9, NUMBERS + 8).encode())
            late.child.stdin.close()
            proc.wait_for('BEHIND', lambda: self.sample(
                relay, 'txrelay_publish_responses_sent_total', type='BEHIND'))
            late.kill()
            self.assertEqual(
                self.push(key, door, json.dumps({'number': NUMBERS, 'calls': ['0xff00']}) + '\n',
                          check=False).returncode, 1)
            proc.wait_for('every stream to end', lambda: relay.status()['feeds']['sessions'] == 0)
            duration = 'txrelay_publish_persistence_duration_seconds_count'
            for name, labels, least in (
                    ('txrelay_publish_items_processed_total', {}, NUMBERS * CALLS + 1),
                    ('txrelay_publish_blocks_received_total', {'status': 'primary'}, NUMBERS + 1),
                    ('txrelay_publish_blocks_received_total', {'status': 'duplicate'}, 1),
                    ('txrelay_publish_blocks_received_total', {'status': 'future_block'}, 1),
                    ('txrelay_publish_blocks_received_total', {'status': 'behind'}, 1),
                    ('txrelay_publish_responses_sent_total', {'type': 'acknowledgement'}, NUMBERS),
                    ('txrelay_publish_responses_sent_total', {'type': 'DUPLICATE_BLOCK'}, 2),
                    ('txrelay_publish_responses_sent_total', {'type': 'BAD_BLOCK_PROOF'}, 1),
                    (duration, {'outcome': 'acknowledged'}, NUMBERS),
                    (duration, {'outcome': 'timeout'}, 0),
                    (duration, {'outcome': 'verification_failed'}, 1),
                    ('txrelay_blocks_acknowledged_total', {}, NUMBERS)):
                with self.subTest(name, **labels):
                    got = self.sample(relay, name, **labels)
                    self.assertIsNotNone(got)
                    self.assertGreaterEqual(got, least)
            self.assertEqual(self.sample(relay, 'txrelay_blocks_acknowledged_total'), NUMBERS)
            self.assertEqual(float(re.search(rf'^{sessions} (\S+)$',
                                             relay.control({'cmd': 'metrics'})['text'], re.M)[1]),
                                             0)
            self.log_lines(relay)

    def log_lines(self, relay):
        """B56: connect, primary, published and the end of each session, with its id; what went
        wrong is a warning with it."""
        lines = re.findall(r'level=(\w+) event=feed\.(\w+)(.*)', relay.text())
        ids = {}
        for level, event, rest in lines:
            session = re.search(r' session=(\d+)', rest)
            if session:
                ids.setdefault(int(session[1]), []).append((level, event))
        self.assertGreaterEqual(len(ids), 5)
        for session, events in ids.items():
            self.assertEqual(events[0], ('info', 'connected'), session)
            self.assertEqual(events[-1], ('info', 'disconnected'), session)
        first = [event for _, event in ids[1]]
        self.assertEqual((first.count('primary'), first.count('published'), first.count('closed')),
                         (NUMBERS, NUMBERS, 1))
        for status in ('DUPLICATE_BLOCK', 'BEHIND', 'BAD_BLOCK_PROOF'):
            self.assertTrue(any(level == 'warn' and event == 'ended'
                                and re.search(rf' session=\d+ .*status={status} ', rest)
                                for level, event, rest in lines), status)


if __name__ == '__main__':
    unittest.main()
