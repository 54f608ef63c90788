"""The main job on devchain: large calls, dispatch failures, roles, refusals."""
import json
import unittest

from harness import proc
from harness.chain import put_compact, remark
from harness.relay import cli
from harness.world import ALICE, BOB, World


class MainJob(unittest.TestCase):
    def test_call_of_64_KiB(self):
        """Enqueued, notified, submitted, and watched again by a successor, like any other."""
        with World('--block-ms', '0') as world:
            first = world.relay('first')
            world.wait_leader(first)
            second = world.relay('second')
            second.wait_log('relay.running')
            tail = proc.Process([proc.TXRELAY, 'tail', '--json', '--database', world.pg.dsn],
                                f'{world.dir}/tail.log')
            proc.wait_for('tail to listen', lambda: 'tail.live' in tail.text())
            tx = world.enqueue(b'x' * 65536)
            proc.wait_for('the node to have it',
                          lambda: len(world.chain.rpc('author_pendingExtrinsics')) == 1)
            first.kill()
            world.wait_leader(second)
            proc.wait_for('the successor to be ready', lambda: 'account.ready' in second.text())
            for _ in range(3):
                world.chain.rpc('dev_newBlock', {'count': 1})
            world.settle()
            def states():
                return [r['state'] for r in proc.json_lines(tail.text())
                        if r.get('id') == tx and r.get('state')]
            proc.wait_for('the reader to see it final', lambda: states()[-1:] == ['finalized'])
            self.assertIn('signed', states())
            self.assertEqual(len(world.submitted()), 1, 'one set of bytes only')

    def test_two_accounts_two_schemes_rollbacks(self):
        accounts = (ALICE, BOB, ('carol', 'ed25519', '//Alice'), ('dave', 'ecdsa', '//Alice'))
        with World(accounts=accounts) as world:
            world.relay('one')
            world.relay('two')
            db = world.pg.connect(autocommit=False)
            proc.wait_for('the accounts to exist',
                          lambda: world.pg.value('SELECT count(*) FROM txrelay.accounts') == 4)
            with db.cursor() as cur:
                for i in range(200):
                    call = remark(f'mixed {i}')
                    cur.execute('SELECT txrelay.enqueue(%s, %s)', (accounts[i % 4][0], call))
                    tx = cur.fetchone()[0]
                    if i % 10 == 9:
                        db.rollback()
                        world.rolled_back.append(call)
                    else:
                        db.commit()
                        world.committed[call] = tx
            db.close()
            figures = world.settle()
            self.assertEqual(figures['finalized'], 180)
            self.assertEqual(figures['rolled_back_sent'], 0)

    def test_dispatch_failure_is_recorded_with_pallet_and_error(self):
        """Case 122: a failed dispatch is finalized, uses the nonce, and is not tried again."""
        with World() as world:
            world.relay('one')
            bob = bytes.fromhex('8eaf04151687736326c9fea17e25fc5287613693c912909cb226aa4794f26a48')
            call = b'\x0a\x03\x00' + bob + put_compact(10 ** 30)  # Balances.transfer_keep_alive
            proc.wait_for('the account to exist',
                          lambda: world.pg.value('SELECT count(*) FROM txrelay.accounts'))
            tx = world.enqueue_raw(call)
            ok = world.enqueue('after it')
            figures = world.settle()
            self.assertEqual((figures['finalized'], figures['failed']), (1, 1))
            row = world.pg.query('SELECT outcome, error FROM txrelay.finished_transactions '
                                 'WHERE id = %s', (tx,))[0]
            self.assertEqual(row[0], 'dispatch_error')
            self.assertRegex(row[1], r'^(Balances|Token)\.\w+$')
            self.assertEqual(world.pg.value('SELECT outcome FROM txrelay.finished_transactions '
                                            'WHERE id = %s', (ok,)), 'ok')

    def test_follower_refuses_with_the_leaders_address(self):
        with World() as world:
            leader = world.relay('leader')
            world.wait_leader(leader)
            follower = world.relay('follower')
            follower.wait_log('relay.running')
            proc.wait_for('the follower to know the leader',
                          lambda: follower.status()['accounts'][0][
                              'leader_address'] == leader.address)
            proc.wait_for('the sessions of both', lambda: all(
                s['connections']['listen']['live'] and s['connections']['control']['up']
                and s['connections']['work']['up'] for s in (leader.status(), follower.status())))
            led, followed = leader.status(), follower.status()
            self.assertEqual((led['phase'], led['accounts'][0]['phase'],
                              led['accounts'][0]['election']['state']),
                             ('running', 'leading', 'LEADER'))
            self.assertEqual((followed['accounts'][0]['phase'],
                              followed['accounts'][0]['election']['state']),
                             ('idle', 'FOLLOWER'))
            for status in (led, followed):
                self.assertGreater(status['requests']['started_total'], 0)
            self.assertEqual(led['accounts'][0]['election']['acquired_total'], 1)
            done = cli('enqueue', 'alice', '0x' + remark('for the leader').hex(), '--to',
                       follower.address, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn('NOT_LEADER', done.stderr)
            self.assertIn(leader.address, done.stderr)
            self.assertIn('send.refused', follower.text())
            self.assertEqual([r.status()['accounts'][0]['refused_not_leader_total']
                              for r in (leader, follower)], [0, 1])
            self.assertEqual(world.pg.value('SELECT count(*) FROM txrelay.outbox'), 0)
            done = cli('enqueue', 'alice', '0x' + remark('for the leader').hex(), '--to',
                       leader.address)
            world.committed[remark('for the leader')] = int(done.stdout)
            world.settle()

    def test_lines_about_leadership_have_all_their_fields(self):
        """An operator who reads one line of one relay knows which account, lock, process and epoch
        it is about, and why."""
        import os
        import re
        import socket
        with World() as world:
            old = world.relay('old')
            world.wait_leader(old)
            new = world.relay('new')
            new.wait_log('relay.running')
            scope, holder = world.pg.query('SELECT lock_key, holder FROM txrelay.leadership')[0]
            # Network, relay, host, process and 64 random bits.
            self.assertRegex(
                holder, f'^txrelay-old-{re.escape(socket.gethostname())}-'
                        f'{old.process.child.pid}-[0-9a-f]{{16}}$')
            self.assertEqual(old.control({'cmd': 'drain'}), {'answer': 'draining'})
            new.wait_log('gate.open')
            self.assertEqual(old.process.child.wait(30), 0)
            epoch = 1
            for relay, word, fields in (
                    (old, 'leader.acquired', ''),
                    (old, 'gate.open', ' reason="the claim was granted"'),
                    (old, 'leader.leaving', ' reason="draining"'),
                    (old, 'leader.handing_over', ' settled=yes'),
                    (old, 'gate.shut', ' reason="'), (old, 'leader.lost', ' reason="')):
                with self.subTest(word):
                    relay.wait_log(f'{re.escape(word)} account=alice scope={scope} '
                                   f'holder={re.escape(holder)} epoch={epoch}'
                                   + re.escape(fields))

    def test_unreachable_database_never_sends(self):
        """Configured and out of reach is a follower with the gate shut, never standalone."""
        with World() as world:
            relay = world.relay('alone',
                                dsn=f'host={world.dir}/nowhere dbname=txrelay user=postgres')
            relay.wait_log(r'database\.unreachable .*role=follower sending=never')
            status = proc.wait_for('its control endpoint', relay.status)
            self.assertEqual([a['role'] for a in status['accounts']], ['follower'])
            self.assertFalse(status['database'])
            done = cli('enqueue', 'alice', '0x' + remark('no').hex(), '--to', relay.address,
                       check=False)
            self.assertIn('NOT_LEADER', done.stderr)
            self.assertNotIn('standalone', relay.text())
            self.assertEqual(world.submitted(), set())

    def test_standalone_sends_without_a_database(self):
        import subprocess
        with World() as world:
            relay = world.relay('solo', start=False, dsn=None)
            with open(relay.log, 'w') as log:
                child = subprocess.Popen([proc.TXRELAY, 'run', '--config', relay.config],
                                         stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=log, text=True)
            proc.on_exit(child.kill)
            calls = [remark(f'solo {i}') for i in range(5)]
            for call in calls:
                child.stdin.write(json.dumps({'account': 'alice', 'call': '0x' + call.hex()})
                                  + '\n')
            child.stdin.write(json.dumps({'account': 'nobody', 'call': '0x00'}) + '\n')
            child.stdin.flush()
            ended, errors = {}, []
            while len(ended) < 5:
                line = json.loads(child.stdout.readline())
                if 'error' in line and 'id' not in line:
                    errors.append(line)
                elif line['event'] == 'finished':
                    ended[line['id']] = line['outcome']
            self.assertEqual(set(ended.values()), {'ok'})
            self.assertEqual(len(errors), 1)
            self.assertIn('standalone', relay.text())
            child.terminate()
            self.assertEqual(child.wait(10), 0)
            child.stdin.close()
            child.stdout.close()
            on_chain = [x.call for _, _, _, x in world.chain.walk()]
            self.assertEqual(sorted(on_chain), sorted(calls))

    def test_restart_keeps_the_nonces(self):
        """Restart with transactions in the pool: no nonce is used again, nothing fails (cases 18,
        66)."""
        with World('--block-ms', '0') as world:
            relay = world.relay('one')
            world.wait_leader(relay)
            for i in range(4):
                world.enqueue(f'before {i}')
            proc.wait_for('four in the pool',
                          lambda: len(world.chain.rpc('author_pendingExtrinsics')) == 4)
            relay.kill()
            relay.start()
            proc.wait_for('it to lead again', lambda: relay.leads('alice'))
            for i in range(4):
                world.enqueue(f'after {i}')
            proc.wait_for('eight in the pool',
                          lambda: len(world.chain.rpc('author_pendingExtrinsics')) == 8)
            for _ in range(4):
                world.chain.rpc('dev_newBlock', {'count': 1})
            world.settle()
            self.assertEqual(world.pg.value('SELECT count(*) FROM txrelay.attempts'), 8)


if __name__ == '__main__':
    unittest.main()
