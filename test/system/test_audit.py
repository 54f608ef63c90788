"""`txrelay audit` against a real chain: silent where all is right, and it names each kind of wrong
record."""
import csv
import io
import json
import re
import unittest

from harness import proc
from harness.cases import CaseTest, load_tests  # noqa: F401
from harness.chain import remark
from harness.relay import cli

INSUFFICIENT = {'fail': [10, 2]}  # Balances.InsufficientBalance
OTHER = "decode(repeat('ab', 32), 'hex')"
RECORD = 'UPDATE txrelay.finished_transactions SET {} WHERE id = {}'

# What an owner of the tables could do to the record of a transaction that ended as ok, and what the
# audit says of it.
WRONG = (
    (f'block_hash = {OTHER}', 'the record names block 0x(ab){32}, and the final block of this '
                              'height is 0x'),
    (f'hash = {OTHER}', 'the record names extrinsic 0x(ab){32}, which is not in the block'),
    ('block_number = block_number - 1',
     'the record names block 0x[0-9a-f]{64}, and the final block of this height is 0x'),
    ('extrinsic_index = extrinsic_index + 1',
     r'the record says extrinsic \d+ of the block, it is \d+'),
    ("outcome = 'dispatch_error'", 'the record says dispatch_error, and the call succeeded'),
    ('fee = fee + 1', r'the record says a fee of \d+, the chain took \d+'),
    ('fee = NULL', r'the record says a fee of nothing, the chain took \d+'),
    ('nonce = nonce + 1000', r"extrinsic 0x[0-9a-f]{64} is alice's at nonce \d+"),
    ("outcome = 'expired', block_hash = NULL, block_number = NULL, extrinsic_index = NULL",
     'the record says expired, in no block, and extrinsic 0x[0-9a-f]{64} took effect'),
    (f"outcome = 'usurped', hash = {OTHER}, block_hash = NULL, block_number = NULL",
     'the record says usurped of other bytes, and the attempt 0x[0-9a-f]{64} took effect'),
)


class Audit(CaseTest):
    def audit(self, world, *args, code=0):
        done = cli('audit', *args, '--database', world.pg.dsn, '--endpoint', world.chain.ws,
                   check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def found(self, world, code):
        return json.loads(self.audit(world, '--json', code=code).stdout)['findings']

    def test_audit(self):
        world = self.world('--finality-lag', '2')
        world.pg.value("SELECT txrelay.account_policy('alice', '{\"usurped\": \"requeue\"}')")
        ok = [world.put(f'ok {i}', creator='shop "a", b' if i else None) for i in range(4)]
        world.settle()
        world.script({'match': {'dispatch': True, 'times': 3}, 'action': INSUFFICIENT})
        self.assertEqual(world.wait_end(world.put('fails, and then not', retries=3)), ('ok', None))
        world.set(paused=True)
        world.enqueue('behind a stranger')
        world.wait_pool(1)
        world.foreign_send(world.next_nonce() - 1, remark('a stranger'), tip=10 ** 9)
        world.set(paused=False)
        world.settle()
        rules = world.script({'match': {'status': '*', 'times': 0}, 'action': 'omit'})
        world.set(paused=True)
        never = world.enqueue('never')
        world.wait_pool(1)
        self.assertEqual(world.cancel(never), 'requested')
        proc.wait_for('a filler', lambda: world.pg.value(
            'SELECT count(*) FROM txrelay.attempts WHERE id = %s AND filler IS NOT NULL', (never,)))
        for rule in rules:
            world.chain.rpc('dev_clearScript', {'id': rule})
        world.set(paused=False)
        world.settle()
        self.assertEqual(world.end(never)[0], 'cancelled')
        self.right(world, ok)
        self.wrong(world, ok[2])

    def right(self, world, ok):
        found = json.loads(self.audit(world, '--json').stdout)
        self.assertEqual(found['findings'], [])
        extrinsics = [x for _, _, _, x in world.chain.walk() if x.signed]
        self.assertEqual(found['extrinsics'], len(extrinsics))
        total = {k: sum(s[k] for s in found['sums']) for k in ('ok', 'dispatch_error', 'filler',
                                                               'foreign', 'open')}
        self.assertEqual(total, {'ok': 6, 'dispatch_error': 3, 'filler': 1, 'foreign': 1,
                                 'open': 0})
        fees = sum(int(s['fees']) for s in found['sums'])
        self.assertEqual(fees, int(world.pg.value('SELECT sum(fee) FROM '
                                                  'txrelay.finished_transactions')))
        by_creator = {s['creator']: s for s in found['sums']}
        self.assertEqual(by_creator['shop "a", b']['ok'], 3)
        self.assertGreater(sum(int(s['foreign_fees']) for s in found['sums']), 0)

        rows = list(csv.DictReader(io.StringIO(self.audit(world, '--csv').stdout)))
        self.assertEqual([(r['creator'], int(r['ok']), r['fees']) for r in rows],
                         [(s['creator'] or '', s['ok'], s['fees']) for s in found['sums']])
        text = self.audit(world, 'alice', '--days', '1').stdout
        self.assertIn('nothing is wrong', text)
        self.assertIn(f'{len(extrinsics)} extrinsics of 1 accounts', text)
        half = world.pg.value(
            'SELECT block_number FROM txrelay.finished_transactions WHERE id = %s', (ok[3],))
        self.assertEqual(json.loads(self.audit(world, '--json', '--to', str(half)).stdout)['to'],
                         half)
        self.assertIn('not final yet', self.audit(world, '--to', '99999999', code=1).stderr)
        self.assertIn("alias 'nobody'", self.audit(world, 'nobody', code=1).stderr)

    def wrong(self, world, tx):
        """Each kind alone, by the owner, past the triggers that keep records as they are."""
        world.pg.query('CREATE TABLE public.kept AS SELECT * FROM txrelay.finished_transactions')
        for change, says in WRONG:
            with self.subTest(change=change):
                self.owner(world, RECORD.format(change, tx))
                found = self.found(world, 4)
                self.assertTrue(any(re.search(says, f['text']) and f['account'] == 'alice'
                                    for f in found), (says, found))
                self.assertLessEqual(len(found), 2, found)
                self.restore(world)
        with self.subTest(change='no record'):
            self.owner(world, f'DELETE FROM txrelay.finished_transactions WHERE id = {tx}')
            self.assertRegex(self.found(world, 4)[0]['text'],
                             'took effect, and its nonce has no record')
            self.restore(world)
        with self.subTest(change='two records'):
            self.owner(world, f'UPDATE txrelay.finished_transactions SET id = {tx} '
                              f'WHERE id = {tx} + 1')
            self.assertEqual(self.found(world, 4)[0]['text'], '2 records say that it took effect')
            self.restore(world)
        self.assertIn('nothing is wrong', self.audit(world).stdout)

    def owner(self, world, statement):
        world.pg.query(f'SET session_replication_role = replica; {statement}; RESET '
                       'session_replication_role')

    def restore(self, world):
        self.owner(world, 'DELETE FROM txrelay.finished_transactions; '
                   'INSERT INTO txrelay.finished_transactions SELECT * FROM public.kept')


if __name__ == '__main__':
    unittest.main()
