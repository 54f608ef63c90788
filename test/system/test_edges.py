"""Where an application, a relay or a follower is connected to what it cannot use: a transaction
pooler, a standby, a login with another role. And calls as large as they may be. What each of them
is told (README, "what fails")."""
import os
import unittest

import psycopg2

from harness import bouncer, proc
from harness.chain import put_compact, remark
from harness.foreign import Stranger
from harness.leadership import Server
from harness.relay import cli
from harness.world import World
from system.test_follow import LATE, Base, Tail
from system.test_follow_library import Installed, Program
from system.test_prepared import ASLEEP
from system.test_standby import Standby

MIB = 1 << 20


class Edges(Base):
    @classmethod
    def setUpClass(cls):
        cls.installed = Installed()

    def library(self, world, name, dsn):
        return Program(self.installed, f'{name}-{world.number}', dsn, 'alice',
                       os.path.join(world.dir, f'{name}.position'))

    def ask(self, dsn, sql, *args):
        """As an application does it; psycopg2 begins a transaction."""
        db = psycopg2.connect(dsn)
        try:
            with db, db.cursor() as cur:
                cur.execute(sql, args)
                return cur.fetchone()[0]
        finally:
            db.close()

    def enqueue_all_ways(self, world, dsn, signer, text):
        one, many = remark(f'{text} one'), [remark(f'{text} {i}') for i in range(3)]
        world.committed[one] = self.ask(dsn, "SELECT txrelay.enqueue('alice', %s, key => %s)", one,
                                        text)
        ids = self.ask(dsn, "SELECT txrelay.enqueue_many('alice', %s::bytea[])", many)
        world.committed.update(zip(many, ids))
        world.settle()
        signed = signer.extrinsic(world.chain.rpc('system_accountNextIndex',
                                                  world.pg.value(
                                                      'SELECT address FROM txrelay.accounts')),
                                  remark(f'{text} signed'))
        world.committed[signed.call] = self.ask(dsn, 'SELECT txrelay.enqueue_signed(%s)',
                                                signed.raw)
        world.settle()

    def refused_all_ways(self, dsn, signer, sqlstate):
        """The three ways in; nothing is stored."""
        raw = signer.extrinsic(0, remark('no')).raw
        for sql, args in (("SELECT txrelay.enqueue('alice', %s)", (remark('no'),)),
                          ("SELECT txrelay.enqueue_many('alice', %s::bytea[])", ([remark('no')],)),
                          ('SELECT txrelay.enqueue_signed(%s)', (raw,))):
            with self.subTest(sql=sql), self.assertRaises(psycopg2.Error) as caught:
                self.ask(dsn, sql, *args)
            self.assertEqual(caught.exception.pgcode, sqlstate, str(caught.exception))

    def asleep(self, world):
        proc.wait_for('the leader to fall asleep', lambda: world.pg.value(ASLEEP), 30)


class Pooler(Edges):
    def test_an_application_may_go_through_one_and_a_follower_may_not(self):
        world = self.world()
        process, url = bouncer.start(world)
        self.addCleanup(process.kill)
        world.wait_leader(world.relay('one'))
        signer = Stranger(world.chain)
        self.enqueue_all_ways(world, url, signer, 'awake or not')
        self.asleep(world)  # nothing of the application's is left on the pooler's session
        self.enqueue_all_ways(world, url, signer, 'rings')
        tx = int(cli('enqueue', 'alice', '0x' + remark('by hand').hex(), '--database', url).stdout)
        world.committed[remark('by hand')] = tx
        world.settle()
        self.assertIn('finalized', cli('status', str(tx), '--database', url).stdout)
        for done in (cli('tail', '--database', url, check=False),
                     cli('wait', str(tx), '--database', url, check=False)):
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r'is a connection pooler .*locks and LISTEN need a '
                                          r'direct connection to the server')
        program = self.library(world, 'pooled', url)
        program.wait(r'^stale age_ms=\d+ code=DB_POOLER text=.*connection pooler')
        self.assertTrue(program.process.alive())
        self.assertEqual(program.end(), 0)


class OnStandby(Edges):
    def test_nothing_is_written_or_followed_there_until_it_is_promoted(self):
        server = Server()
        self.addCleanup(server.stop)
        world = self.world(postgres=server)
        signer = Stranger(world.chain)
        first = world.relay('first')
        world.wait_leader(first)
        before = world.enqueue('before')
        world.settle()
        standby = Standby(world.pg)
        self.addCleanup(standby.stop)
        standby.caught_up(world.pg)

        self.refused_all_ways(standby.dsn, signer, '25006')
        done = cli('enqueue', 'alice', '0x' + remark('no').hex(), '--database', standby.dsn,
                   check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn('read-only transaction', done.stderr)
        # to read is allowed
        self.assertIn('finalized', cli('status', str(before), '--database', standby.dsn).stdout)
        tail, program = Tail(world, standby.dsn), self.library(world, 'standby', standby.dsn)
        stale = tail.wait('to be told', lambda rows: [r for r in rows if r['event'] == 'stale'])[0]
        self.assertEqual(stale['code'], 'DB_READONLY')
        self.assertRegex(tail.process.text(),
                         r'is a standby: name the primary too, or wait for its promotion')
        program.wait(r'^stale age_ms=\d+ code=DB_READONLY text=.*is a standby')
        self.assertEqual(cli('wait', str(before), '--timeout', '1', '--database', standby.dsn,
                             check=False).returncode, LATE)
        second = world.relay('second', dsn=standby.dsn, leadership={'lost_commits': 'search'})
        second.wait_log(r'database\.down code=DB_READONLY text=".*is a standby')
        status = proc.wait_for('its control endpoint', second.status)
        self.assertEqual((status['database'], [a['role'] for a in status['accounts']]),
                         (False, ['follower']))
        self.assertIn('this server is a standby',
                      cli('check', '--config', second.config, check=False).stdout)
        self.assertTrue(tail.process.alive() and program.process.alive())

        sent = world.submitted()
        first.kill()
        standby.promote()
        world.pg = standby
        world.wait_leader(second)
        tail.wait_live()
        program.wait('^live')
        tx = world.enqueue('after')
        world.settle()
        tail.wait('the end', lambda rows: [r for r in rows if r.get('id') == tx
                                           and r.get('outcome') == 'ok'])
        program.wait(rf'^finished account=alice id={tx} .* outcome=ok$')
        self.assertEqual(len(world.submitted() - sent), 1)
        self.assertEqual((tail.stop(), program.end()), (0, 0))


class WrongRole(Edges):
    def test_each_is_told_and_goes_on_when_it_has_the_right_one(self):
        world = self.world()
        signer = Stranger(world.chain)
        relay = world.relay('one')
        world.wait_leader(relay)
        shop, dashboard, nobody = (self.login(world, name, role) for name, role in (
            ('shop', 'txrelay_app'), ('dashboard', 'txrelay_follower'), ('nobody', 'pg_monitor')))
        for dsn in (dashboard, nobody):
            self.refused_all_ways(dsn, signer, '42501')
        self.assertEqual(world.pg.value('SELECT count(*) FROM txrelay.outbox'), 0)

        for dsn in (shop, dashboard, nobody):
            wrong = world.relay(f'as-{dsn.split("user=")[1].split("_")[0]}', dsn=dsn)
            self.assertEqual(wrong.process.child.wait(20), 1, wrong.text())
            self.assertRegex(wrong.text(), r'code=DB_DENIED|permission denied')
            world.relays.remove(wrong)
            self.assertIn('GRANT txrelay_relay',
                          cli('check', '--config', wrong.config, check=False).stdout)

        done = cli('tail', '--database', nobody, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn('permission denied', done.stderr)
        program = self.library(world, 'nobody', nobody)
        program.wait(r'^stale age_ms=\d+ code=DB_DENIED text=.*permission denied')
        world.pg.query(f'GRANT txrelay_follower TO nobody_{world.number}')
        program.wait('^live')
        self.assertEqual(program.end(), 0)

    def test_a_relay_whose_right_is_taken_sends_no_more_until_it_is_given_back(self):
        world = self.world()
        login = self.login(world, 'worker', 'txrelay_relay')
        relay = world.relay('one', dsn=login)
        world.wait_leader(relay)
        world.enqueue('before')
        world.settle()
        world.pg.query(f'REVOKE txrelay_relay FROM worker_{world.number}')
        sent = world.submitted()
        world.enqueue('without')
        relay.wait_log(r'DB_DENIED.*permission denied|permission denied.*DB_DENIED')
        self.assertTrue(relay.alive())
        self.assertEqual(world.submitted(), sent)
        world.pg.query(f'GRANT txrelay_relay TO worker_{world.number}')
        world.settle()


class Large(Edges):
    def test_64_KiB_and_1_MiB_by_every_way_and_one_byte_more(self):
        """Stored, sent, finalized and told like any other; no notification has the bytes."""
        world = self.world()
        signer = Stranger(world.chain)
        world.wait_leader(world.relay('one'))
        dsn = self.login(world, 'shop', 'txrelay_app')
        ear = world.pg.connect()
        with ear.cursor() as cur:
            cur.execute('; '.join(f'LISTEN {c}' for c in ('outbox_wake', 'pending_tx_new',
                                                          'pending_tx_update',
                                                          'pending_tx_removed')))
        tail = Tail(world, dsn).wait_live()

        named = b'\x01' * (64 << 10)
        text = '["0x' + named.hex() + '"]'
        node = ('--node', world.chain.ws)
        encoded = cli('encode', 'System', 'remark', '-', *node, stdin=text).stdout.strip()
        self.assertEqual(bytes.fromhex(encoded[2:]), b'\x00\x00' + put_compact(len(named)) + named)
        self.assertIn('remark', cli('decode', '-', *node, stdin=encoded).stdout)
        calls = [remark(bytes([n]) * (64 << 10))
                 for n in range(2, 6)] + [remark(b'\x06' * (MIB - 6))]
        self.assertEqual(len(calls[-1]), MIB)
        world.committed[bytes.fromhex(encoded[2:])] = int(cli('encode', 'System', 'remark', '-',
                                                              *node, '--enqueue', 'alice',
                                                              '--database', dsn, stdin=text).stdout)
        world.committed[calls[0]] = int(cli('enqueue', 'alice', '-', '--database', dsn,
                                            stdin='0x' + calls[0].hex() + '\n').stdout)
        world.committed[calls[1]] = self.ask(dsn, "SELECT txrelay.enqueue('alice', %s)", calls[1])
        world.committed.update(zip(calls[2:4],
                    self.ask(dsn, "SELECT txrelay.enqueue_many('alice', %s::bytea[])", calls[2:4])))
        world.committed[calls[4]] = self.ask(dsn, "SELECT txrelay.enqueue('alice', %s)", calls[4])
        world.settle()
        signed = signer.extrinsic(6, remark(b'\x07' * (64 << 10)))
        world.committed[signed.call] = self.ask(dsn, 'SELECT txrelay.enqueue_signed(%s)',
                                                signed.raw)
        self.assertEqual(world.settle()['finalized'], 7)
        tail.wait('every end',
                  lambda rows: {r['id'] for r in rows
                                if r.get('outcome') == 'ok'} == set(world.committed.values()))
        self.assertEqual({r['state'] for r in tail.lines() if r.get('outcome')}, {'finalized'})
        tail.stop()
        with ear.cursor() as cur:
            cur.execute('SELECT 1')  # its answer comes after all that was told before
        self.assertGreater(len(ear.notifies), 14)
        self.assertLess(max(len(n.payload) for n in ear.notifies), 600)
        ear.close()

        more = b'\0' * (MIB + 1)
        for sql, arg, place in (("SELECT txrelay.enqueue('alice', %s)", more, 'call'),
            ("SELECT txrelay.enqueue_many('alice', ARRAY['\\x00', %s]::bytea[])", more, 'calls[2]'),
                                ('SELECT txrelay.enqueue_signed(%s)', more, 'extrinsic')):
            with self.subTest(place=place), self.assertRaises(psycopg2.Error) as caught:
                self.ask(dsn, sql, arg)
            self.assertEqual(caught.exception.pgcode, 'TR011')
            for word in (place, f'{MIB + 1} bytes', f'1 to {MIB}'):
                self.assertIn(word, str(caught.exception))
        done = cli('enqueue', 'alice', '-', '--database', dsn, stdin=more.hex(), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f'call has {MIB + 1} bytes; it must have 1 to {MIB} bytes', done.stderr)


if __name__ == '__main__':
    unittest.main()
