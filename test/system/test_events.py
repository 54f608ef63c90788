"""Events over HTTP: nothing is lost and nothing comes twice, whoever dies; many readers share one
LISTEN; who does not read is closed, and holds nothing."""
import collections
import json
import os
import re
import threading
import unittest

import jsonschema

from harness import proc
from harness.certificates import Certificates
from harness.events import Events
from harness.chain import remark
from harness.relay import cli
from harness.world import ALICE, BOB, World

EXTRA = 'http:\n  listen: tcp:127.0.0.1:0\n  rate: 100000\n'
with open(os.path.join(proc.ROOT, 'http', 'openapi.json')) as _file:
    DOCUMENT = json.load(_file)
EVENT = jsonschema.Draft202012Validator({'$ref': '#/components/schemas/Event'},
                                        resolver=jsonschema.RefResolver('', DOCUMENT),
                                        format_checker=jsonschema.FormatChecker())


def token(world, name='reads'):
    return cli('token', 'create', name, '--scope', 'read', '--database',
               world.pg.dsn).stdout.strip()


def address(relay):
    return relay.wait_log(r'http.listening .*address=tcp:(\S+)').group(1)


class EventsTest(unittest.TestCase):
    def stream(self, relay, good, query='', **kwargs):
        """Its first answers may come before the relay's sessions are there."""
        where = address(relay)

        def opened():
            stream = Events(where, good, query, **kwargs)
            if stream.status == 503:
                stream.close()
                return None
            return stream
        stream = proc.wait_for('a stream', opened, 30)
        self.addCleanup(stream.close)
        return stream

    def live(self, *args, **kwargs):
        stream = self.stream(*args, **kwargs)
        self.assertEqual(stream.status, 200)
        proc.wait_for('live', stream.is_live, 60)
        return stream

    def writer(self, world, count, pause):
        stop = threading.Event()

        def write():
            db = world.pg.connect()
            with db.cursor() as cur:
                for i in range(count):
                    call = remark(f'w{i}')
                    cur.execute('SELECT txrelay.enqueue(%s, %s)', ('alice', call))
                    world.committed[call] = cur.fetchone()[0]
                    stop.wait(pause)  # the pace of the application
            db.close()
        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        return thread

    def test_a_reader_resumes_over_a_killed_relay(self):
        with World(leadership={'expiry_1_ms': 3000, 'heartbeat_ms': 300}) as world:
            first, second = world.relay('first', extra=EXTRA), world.relay('second', start=False,
                                                                           extra=EXTRA)
            world.wait_leader(first)
            second.start()
            good = token(world)
            before = world.enqueue('before')
            world.settle()
            streams = [self.live(first, good)]
            self.assertEqual(streams[0].ends(), [])  # from now on
            writer = self.writer(world, 240, 0.02)
            proc.wait_for('some ends', lambda: len(streams[0].ends()) > 20)
            # the reader loses its connection: the same relay goes on right after its id
            streams[0].close()
            streams.append(self.live(first, good, last=streams[0].last))
            proc.wait_for('some more', lambda: len(streams[1].ends()) > 20)
            # Readers that read the tables meanwhile: the ring has older states of what these show.
            others = [self.stream(first, good, '?since=2026-01-01T00:00:00Z') for _ in range(30)]
            first.kill()
            proc.wait_for('the end of the stream', lambda: streams[1].over, 30)
            streams.append(self.live(second, good, last=streams[1].last))
            writer.join()
            world.settle()
            mine = set(world.committed.values()) - {before}
            proc.wait_for('every end', lambda: {i for s in streams for i in s.ends()} >= mine, 60)
            # None twice but those that say so, and no end that differs from the first one.
            told = collections.Counter(i for s in streams
                                       for i in [e['id'] for e in s.of('finished')
                                                 if not e['from_scan']])
            self.assertEqual([i for i, n in told.items() if n > 1], [])
            self.assertEqual([e for e in streams[1].of('finished') if e['from_scan']], [])
            for stream in streams:
                self.assertEqual(max(collections.Counter(stream.ends()).values()), 1)
                for event in stream.events:
                    EVENT.validate({k: v for k, v in event.items() if k != '_id'})
            ends = collections.defaultdict(set)
            for e in (e for s in streams for e in s.of('finished')):
                ends[e['id']].add((e['outcome'], e['hash'], e['updated_at']))
            self.assertEqual({i: v for i, v in ends.items() if len(v) > 1}, {})
            rows = dict(world.pg.query('SELECT id, outcome::text FROM '
                                       'txrelay.finished_transactions WHERE id IS NOT NULL'))
            self.assertEqual({i: next(iter(v))[0] for i, v in ends.items() if i in mine},
                             {i: rows[i] for i in mine})
            # After its end nothing comes of it; before that it goes forward.
            self.assertTrue(any(e['from_scan'] for s in others for e in s.of('new')))
            for stream in [*streams, *others]:
                ended, at = set(), {}
                for e in (e for e in stream.events if 'id' in e and 'updated_at' in e):
                    self.assertNotIn(e['id'], ended, e)
                    self.assertGreaterEqual(e['updated_at'], at.get(e['id'], ''), e)
                    at[e['id']] = e['updated_at']
                    if e['event'] == 'finished':
                        ended.add(e['id'])
            # A stream may also begin at a position of `tail` or at a time. It then shows what has
            # ended since.
            for since in ('2026-01-01T00:00:00Z', streams[0].of('live')[0]['position']):
                whole = self.live(second, good, f'?since={since}')
                self.assertEqual(len(whole.ends()), len(set(whole.ends())))
                self.assertLessEqual(mine, set(whole.ends()))

    def test_many_readers_share_one_listen_and_filter(self):
        with World(accounts=(ALICE, BOB)) as world:
            relay = world.relay('one', extra=EXTRA)
            world.wait_leader(relay)
            world.wait_leader(relay, 'bob')
            good = token(world)
            listening = ("SELECT count(*) FROM pg_stat_activity "
                         "WHERE application_name = 'txrelay http listen' AND datname = %s")
            # until somebody reads
            self.assertEqual(world.pg.value(listening, (world.pg.database,)), 0)
            streams = [self.live(relay, good)]
            streams += [self.stream(relay, good) for _ in range(199)]
            proc.wait_for('all to be live', lambda: all(s.is_live() for s in streams), 60)
            self.assertEqual(world.pg.value(listening, (world.pg.database,)), 1)
            only = {query: self.live(relay, good, query) for query in ('?account=bob', '?state=ok',
                                                                       '?state=in_block')}
            ids = [world.enqueue(f'a{i}') for i in range(20)] + [world.enqueue(f'b{i}', 'bob')
                                                                 for i in range(20)]
            one = self.live(relay, good, f'?since=2026-01-01T00:00:00Z&id={ids[3]}')
            world.settle()
            proc.wait_for('every end at every reader',
                          lambda: all(len(s.ends()) >= len(ids) for s in streams), 60)
            for stream in streams:
                self.assertEqual(sorted(stream.ends()), sorted(ids))
            proc.wait_for('filtered ends', lambda: len(only['?account=bob'].ends()) == 20
                          and len(only['?state=ok'].ends()) == 40
                          and one.ends() == [ids[3]])
            self.assertEqual({e['account'] for e in only['?account=bob'].events if 'account' in e},
                             {'bob'})
            self.assertEqual({e['event'] for e in only['?state=ok'].events} - {'live'},
                             {'finished'})
            self.assertEqual({e['state'] for e in only['?state=in_block'].events if 'state' in e},
                             {'in_block'})
            for query, status in (('?account=nobody', 404), ('?id=x', 400), ('?x=1', 400),
                                  ('?since=never', 400), ('?state=' + 'x' * 40, 400)):
                self.assertEqual(self.stream(relay, good, query).status, status, query)
            self.assertEqual(self.stream(relay, good, last='9' * 18 + '-00000001-1').status, 400)
            self.assertEqual(self.stream(relay, 'txr_' + '0' * 64).status, 401)
            # There are 300 readers at most; the next one is sent to another relay.
            streams += [self.stream(relay, good) for _ in range(300 - len(streams) - len(only) - 1)]
            for _ in range(2):
                refused = Events(address(relay), good)
                self.addCleanup(refused.close)
                self.assertEqual(refused.status, 503)
            # Silence is filled; a token that is revoked is no longer good, also for whom it let in.
            proc.wait_for('a comment', lambda: 'still here' in streams[0].comments, 30)
            cli('token', 'revoke', 'reads', '--database', world.pg.dsn)
            proc.wait_for('the end of all streams',
                          lambda: all(s.over for s in [*streams, *only.values(), one]), 30)
            self.assertTrue(all('revoked' in s.comments[-1] for s in streams))
            # A stream of another token goes on until the relay stops, which its last comment says.
            other = self.live(relay, token(world, 'other'))
            self.assertEqual(relay.stop(), 0)
            proc.wait_for('its end', lambda: other.over, 30)
            self.assertIn('the relay stops', other.comments[-1])

    def test_a_reader_that_is_too_slow_is_closed_and_misses_nothing(self):
        count = 6000
        with World('--block-ms', '50', '--block-max-extrinsics', '2000') as world:
            relay = world.relay('one', extra=EXTRA, manager={'era_period': 4096})
            world.wait_leader(relay)
            good = token(world)
            fast = self.live(relay, good)
            slow = self.stream(relay, good, receive_buffer=4096, read=False)
            calls = [remark(f'{"x" * 20}{i}') for i in range(count)]
            ids = world.pg.query('SELECT unnest(txrelay.enqueue_many(%s, %s::bytea[]))',
                                 ('alice', calls))
            world.committed.update(zip(calls, [i for i, in ids]))
            world.settle(240)
            proc.wait_for('every end', lambda: len(fast.ends()) == count, 60)
            slow.read()
            proc.wait_for('its end', lambda: slow.over, 60)
            self.assertIn('too slow', slow.comments[-1])
            self.assertLess(len(slow.ends()), count)
            again = self.live(relay, good, last=slow.last or fast.of('live')[0]['_id'])
            proc.wait_for('the rest',
                          lambda: set(slow.ends()) | set(again.ends()) == set(fast.ends()), 60)
            with open(f'/proc/{relay.process.pid}/status') as file:
                peak = next(int(line.split()[1]) for line in file if line.startswith('VmHWM:'))
            self.assertLess(peak, 200_000)  # kB; an ASan build has more than that, and no such test

    def test_tail_reads_a_relay_by_its_unix_socket(self):
        with World() as world:
            path = f'{world.dir}/http.sock'
            relay = world.relay('one', extra=f'http:\n  listen: unix:{path}\n  rate: 100000\n')
            world.wait_leader(relay)
            relay.wait_log('http.listening')
            file = f'{world.dir}/token'
            with open(file, 'w') as f:
                f.write(token(world) + '\n')
            command = [proc.TXRELAY, 'tail', '--http', f'unix:{path}', '--token-file', file]
            refused = lambda *args: proc.run([*command, *args], check=False, seconds=30).stderr
            self.assertIn('can be read by others: chmod 600', refused())
            os.chmod(file, 0o600)
            self.assertIn('no such account: "nobody"',
                          proc.wait_for('a session',
                                        lambda: (text := refused('--account', 'nobody'))
                                        and '503' not in text and text, 30))
            before = world.enqueue('before')
            world.settle()
            lines = proc.Process([*command, '--json', '--since', '2026-01-01T00:00:00Z'],
                                 f'{world.dir}/lines.log')
            people = proc.Process([*command, '--account', 'alice'], f'{world.dir}/people.log')
            for process in (lines, people):
                self.addCleanup(process.kill)
                proc.wait_for('live', lambda p=process: 'tail.live' in p.text(), 30)
            ended = lambda: [e['id'] for e in proc.json_lines(lines.text())
                             if e['event'] == 'finished']
            mine = [world.enqueue('one')]
            proc.wait_for('its end', lambda: ended() == [before, *mine], 60)
            # The relay is killed, and comes again: the readers resume by themselves and miss
            # nothing.
            relay.kill()
            for process in (lines, people):
                proc.wait_for('to notice it', lambda p=process: 'tail.stale' in p.text(), 30)
            relay.start()
            world.wait_leader(relay)
            mine.append(world.enqueue('two'))
            world.settle()
            proc.wait_for('both ends', lambda: set(ended()) == {before, *mine}, 60)
            proc.wait_for('the same for people',
                          lambda: re.search(
                              rf' alice id={mine[1]} nonce=2 finished finalized outcome=ok hash=0x',
                              people.text()), 60)
            self.assertNotIn(f'id={before} ', people.text())
            cli('token', 'revoke', 'reads', '--database', world.pg.dsn)
            proc.wait_for('its end', lambda: lines.child.poll() == 1, 60)
            self.assertIn('the relay answers 401', lines.text())

    def test_tail_reads_over_tls(self):
        files = Certificates()
        for name in ('ca', 'other'):
            files.authority(name)
        files.certificate('relay', 'localhost')
        files.certificate('reader', 'reader.test')
        with World() as world:
            relay = world.relay('one', extra='http:\n  listen: tcp:127.0.0.1:0\n' + ''.join(
                f'  {key}: {files.path(name)}\n'
                for key, name in (('cert_file', 'relay.pem'), ('key_file', 'relay.key'),
                                  ('ca_file', 'ca.pem'))))
            world.wait_leader(relay)
            file = f'{world.dir}/token'
            with open(file, 'w', opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
                f.write(token(world) + '\n')
            port = address(relay).rsplit(':', 1)[1]
            command = [proc.TXRELAY, 'tail', '--token-file', file, '--json', '--http']
            here, ca = f'https://localhost:{port}', ['--ca', files.path('ca.pem')]
            own = ['--cert', files.path('reader.pem'), '--cert-key', files.path('reader.key')]
            for n, (wrong, words) in enumerate((([here], 'certificate'),
                                                ([here, '--ca', files.path('other.pem'), *own],
                                                 'certificate'),
                                                 ([here, *ca], 'certificate required'),
                                 ([f'https://127.0.0.1:{port}', *ca, *own], 'certificate'))):
                process = proc.Process([*command, *wrong], f'{world.dir}/wrong-{n}.log')
                self.addCleanup(process.kill)
                proc.wait_for('its trouble', lambda p=process: 'tail.stale' in p.text(), 30)
                process.kill()
                self.assertIn(words, process.text(), wrong)
                self.assertNotIn('"event":"live"', process.text())
            for wrong, words in ((['http://relay.example:1'], 'in cleartext'),
                                 (['http://127.evil.example:1'], 'in cleartext'),
                                 (['ftp://localhost'], 'is none of'),
                                 ([here, *own[:2]], 'belong together'),
                                 ([f'http://localhost:{port}', *ca], 'are for'),
                                 ([here, '--ca', '/none'], '/none')):
                done = proc.run([*command, *wrong], check=False, seconds=30)
                self.assertIn(words, done.stderr, wrong)
                self.assertEqual(done.returncode, 2, wrong)
            process = proc.Process([*command, here, *ca, *own], f'{world.dir}/good.log')
            self.addCleanup(process.kill)
            proc.wait_for('live', lambda: '"event":"live"' in process.text(), 30)
            mine = world.enqueue('over TLS')
            proc.wait_for('its end', lambda: '"event":"finished"' in process.text()
                          and f'"id":{mine},' in process.text(), 60)
            world.settle()

    def test_readers_learn_that_the_database_is_away(self):
        with World(own_postgres=True) as world:
            relay = world.relay('one', extra=EXTRA)
            world.wait_leader(relay)
            good = token(world)
            stream = self.live(relay, good)
            world.enqueue('one')
            world.settle()
            proc.wait_for('its end', lambda: len(stream.ends()) == 1)
            world.pg.restart()
            proc.wait_for('stale, and live again',
                          lambda: [e['event'] for e in stream.events
                                   if e['event'] in ('live', 'stale')]
                          == ['live', 'stale', 'live'], 60)
            world.enqueue('two')
            world.settle()
            proc.wait_for('its end', lambda: len(stream.ends()) == 2)
            self.assertFalse(stream.over)
