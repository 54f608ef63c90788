"""The doors for tips, deadlines, retries and policies: command line, control endpoint, standard
input."""
import datetime
import json
import subprocess
import unittest

from harness import proc
from harness.chain import remark
from harness.relay import cli
from harness.world import World


def later(seconds):
    return (datetime.datetime.now(datetime.timezone.utc)
            + datetime.timedelta(seconds=seconds)).isoformat()


class Options(unittest.TestCase):
    def test_every_option_reaches_the_outbox(self):
        """By SQL and by way of a relay the same row."""
        options = ['--key', 'k', '--priority', '-3', '--not-before', '2040-01-01T00:00:00Z',
                   '--deadline', '2040-01-02T00:00:00Z', '--creator', 'me', '--spec-version', '77',
                   '--tip', '5',
                   '--max-tip', '340282366920938463463374607431768211455', '--deadline-block',
                   '5000000000', '--retries', '9']
        with World() as world:
            relay = world.relay('one')
            world.wait_leader(relay)
            rows = []
            for to in (('--database', world.pg.dsn), ('--to', relay.address)):
                tx = int(cli('enqueue', 'alice', '0x' + remark('all').hex(), *options, *to).stdout)
                rows.append(world.pg.query(
                    '''SELECT key, priority, not_before, deadline, creator, guard, tip, max_tip,
                    deadline_block, retries
                       FROM txrelay.outbox WHERE id = %s''', (tx,))[0])
                options[1] = 'k2'
            self.assertEqual(rows[0][1:], rows[1][1:])
            self.assertEqual([str(v) for v in rows[0][4:]],
                             ['me', '77', '5', '340282366920938463463374607431768211455',
                              '5000000000', '9'])
            self.assertEqual(rows[0][3].year, 2040)
            for to in (('--database', world.pg.dsn), ('--to', relay.address)):
                tx = int(cli('enqueue', 'alice', '0x' + remark('spans').hex(), '--delay', '2h',
                             '--expires-in', '7d', *to).stdout)
                self.assertEqual(world.pg.query('''SELECT date_trunc('hour', not_before -
                    created_at + interval '1 minute'),
                    date_trunc('hour', deadline - created_at + interval '1 minute')
                    FROM txrelay.outbox WHERE id = %s''', (tx,))[0],
                                 (datetime.timedelta(hours=2), datetime.timedelta(days=7)), to)

    def test_bump_policy_history_blocked(self):
        with World() as world:
            relay = world.relay('one')
            world.wait_leader(relay)
            database = ('--database', world.pg.dsn)
            self.assertEqual(cli('policy', 'alice', *database).stdout, 'no policy is set\n')
            shown = cli('policy', 'alice', 'tip_start=3', 'tip_cap=9', *database).stdout
            self.assertEqual(sorted(shown.split()), ['tip_cap=9', 'tip_start=3'])
            self.assertEqual(json.loads(cli('policy', 'alice', 'tip_start=', '--json',
                                            *database).stdout), {'tip_cap': '9'})
            self.assertEqual(cli('blocked', '--json', *database).stdout, '')
            world.pg.query("SELECT txrelay.account_pause('alice', 'lunch')")
            self.assertIn('lunch', cli('blocked', *database).stdout)
            tx = int(cli('enqueue', 'alice', '0x' + remark('bumped').hex(), *database).stdout)
            world.committed[remark('bumped')] = tx
            self.assertEqual(cli('bump', str(tx), '--tip', '7', *database).stdout, 'queued\n')
            done = cli('bump', str(tx), '--tip', '10', *database, check=False)
            self.assertIn('tip_cap', done.stderr)
            self.assertEqual(relay.control({'cmd': 'bump', 'id': tx}), {'answer': 'queued'})
            self.assertEqual(relay.control({'cmd': 'resume', 'account': 'alice'}), {'answer': ''})
            world.settle()
            self.assertEqual(cli('bump', str(tx), *database).stdout, 'finished\n')
            self.assertEqual(relay.control({'cmd': 'cancel', 'id': tx}), {'answer': 'finished'})
            lines = [json.loads(x) for x in cli('history', str(tx), '--json',
                                                *database).stdout.splitlines()]
            self.assertEqual([(x['attempt'], x['outcome'], x['tip']) for x in lines],
                             [(1, 'included', '8')])
            text = cli('history', str(tx), *database).stdout
            self.assertIn(lines[0]['hash'], text)
            self.assertIn('tip 8', text)

    def test_register_before_the_first_relay(self):
        """Applications can enqueue as soon as `register` has ended; a key that is not the alias's
        is refused with both."""
        with World() as world:
            relay = world.relay('later', start=False)
            early = cli('enqueue', 'alice', '0x00000c6f6e65', '--config', relay.config, check=False)
            self.assertEqual(early.returncode, 1)
            self.assertIn('no such account', early.stderr)
            for _ in range(2):  # the second time changes nothing
                done = cli('register', '--config', relay.config)
                self.assertEqual((done.returncode, done.stdout.split()[0]), (0, 'alice'),
                                 done.stderr)
            self.assertEqual(world.pg.query('SELECT alias FROM txrelay.leaders '
                                            'WHERE holder IS NOT NULL'), [])
            tx = int(cli('enqueue', 'alice', '0x00000c6f6e65', '--config', relay.config).stdout)
            with open(relay.config) as file:
                text = file.read()
            other = relay.config + '.other'
            with open(other, 'w') as file:
                file.write(text.replace('alias: alice', 'alias: another'))
            done = cli('register', '--config', other, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn('registered as "alice"', done.stderr)
            relay.start()
            proc.wait_for('it to end', lambda: world.pg.query(
                "SELECT id FROM txrelay.finished_transactions WHERE id = %s AND outcome = 'ok'",
                (tx,)))

    def test_standalone_ends_with_its_input(self):
        """In a pipe: it stops by itself, and not before everything is finalized. With a control
        endpoint it goes on."""
        with World() as world:
            for control in (False, True):
                relay = world.relay('control' if control else 'pipe', start=False, dsn=None)
                if not control:
                    with open(relay.config) as file:
                        kept = [line for line in file if not line.startswith('control:')]
                    with open(relay.config, 'w') as file:
                        file.writelines(kept)
                with open(relay.log, 'w') as log:
                    child = subprocess.Popen([proc.TXRELAY, 'run', '--config', relay.config],
                                             stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, stderr=log, text=True)
                proc.on_exit(child.kill)
                for note in 'one', 'two', 'one':  # the second 'one' has the first one's key
                    child.stdin.write(json.dumps({'account': 'alice',
                                                  'call': '0x' + remark(f'{note} {control}').hex(),
                                                  'key': note}) + '\n')
                child.stdin.write('no JSON\n')
                child.stdin.close()
                ended = []
                for line in map(json.loads, iter(child.stdout.readline, '')):
                    if line.get('event') == 'finished':
                        ended.append(line['outcome'])
                    if control and len(ended) == 2:
                        break
                self.assertEqual(ended, ['ok', 'ok'])
                if control:
                    self.assertIsNone(child.poll())
                    self.assertTrue(relay.status())
                    child.terminate()
                self.assertEqual(child.wait(60), 0)
                child.stdout.close()
            calls = [x.call for _, _, _, x in world.chain.walk()]
            self.assertEqual(sorted(calls),
                             sorted(remark(f'{note} {control}') for control in (False, True)
                                    for note in ('one', 'two')))

    def test_standalone_knows_times(self):
        """Without a database too: a time to wait for, a last block, a cancellation, a bump, clear
        errors."""
        with World() as world:
            relay = world.relay('solo', start=False, dsn=None)
            with open(relay.log, 'w') as log:
                child = subprocess.Popen([proc.TXRELAY, 'run', '--config', relay.config],
                                         stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=log, text=True)
            proc.on_exit(child.kill)

            ended = {}

            def say(**request):
                if 'account' in request:
                    request['call'] = '0x' + remark(request.pop('note')).hex()
                child.stdin.write(json.dumps(request) + '\n')
                child.stdin.flush()

            def hear(wanted):
                while True:
                    line = json.loads(child.stdout.readline())
                    if line.get('event') == 'finished':
                        ended[line['id']] = line['outcome']
                    if wanted(line):
                        return line

            say(account='alice', note='never', not_before=later(3000), deadline=later(1))
            self.assertIn('not_before', hear(lambda x: 'error' in x)['text'])
            say(account='alice', note='too late', deadline_block=1)
            late = hear(lambda x: x.get('event') == 'accepted')['id']
            say(account='alice', note='in time', not_before=later(1))
            early = hear(lambda x: x.get('event') == 'accepted')['id']
            say(account='alice', note='waits', not_before=later(3000))
            waits = hear(lambda x: x.get('event') == 'accepted')['id']
            say(cmd='bump', id=waits, tip=5)
            self.assertEqual(hear(lambda x: x.get('event') == 'answer')['answer'], 'queued')
            say(cmd='cancel', id=waits)
            self.assertEqual(hear(lambda x: x.get('id') == waits
                                  and x['event'] == 'finished')['outcome'], 'cancelled')
            self.assertEqual(hear(lambda x: x.get('event') == 'answer')['answer'], 'cancelled')
            while not {early, late} <= set(ended):
                hear(lambda x: x.get('id') in (early, late) and x['event'] == 'finished')
            self.assertEqual(ended[early], 'ok')
            self.assertEqual(ended[late], 'expired')
            child.terminate()
            self.assertEqual(child.wait(10), 0)
            child.stdin.close()
            child.stdout.close()
            on_chain = [x.call for _, _, _, x in world.chain.walk()]
            self.assertIn(remark('in time'), on_chain)
            self.assertNotIn(remark('waits'), on_chain)


if __name__ == '__main__':
    unittest.main()
