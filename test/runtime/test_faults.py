"""What a chain does to transactions that are on their way, on a real runtime: an upgrade, a
reorganisation, a lost pool, eras that end. One account and one relay a test, which is never
restarted; blocks are made one by one. That everything ended once is told by @polkadot/api and by
the harness's own reading of the chain."""
import collections
import json
import time
import unittest

from harness import invariants, proc
from harness.chain import Chopsticks
from harness.postgres import Postgres
from harness.relay import Relay, cli

ACCOUNTS = {'alice-sr': ('sr25519', '//Alice'), 'alice-ed': ('ed25519', '//Alice'),
            'alice-ec': ('ecdsa', '//Alice'),
            'bob': ('sr25519', '//Bob')}
CALLS = 30  # as many as all tests use
DEADLINE_S = 120  # of one stage; a busy machine needs many times what an idle one does
BLOCKS_MAX = 40  # of one stage

Attempt = collections.namedtuple('Attempt', 'nonce hash spec era_birth era_death block reason')


class Faults(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        proc.install_signals()
        cls.dir = proc.make_dir('txrf-')
        cls.chain = Chopsticks(cls.dir, faults=True)
        cls.pg = Postgres(durable=False)
        cli('migrate', '--database', cls.pg.dsn)
        wanted = [['system', 'remark', f'0x{i:08x}'] for i in range(CALLS)]
        texts = cls.chain.tools.run('calls.mjs', cls.chain.ws, stdin=json.dumps(wanted))
        cls.calls = iter([bytes.fromhex(text[2:]) for text in texts])

    @classmethod
    def tearDownClass(cls):
        proc.cleanup()

    def tearDown(self):
        self.chain.rpc('dev_holdFinality', False)
        self.relay.kill()
        self.chain.rpc('dev_clearPool')

    # ---- steps ----

    def lead(self, alias, **manager):
        # A chopsticks pool never holds a future nonce: transactions are submitted one after the
        # other.
        self.alias, self.committed = alias, {}
        self.relay = Relay(self.dir, f'relay-{alias}', self.pg.dsn, [self.chain.ws],
                           [(alias, *ACCOUNTS[alias])],
                           manager={'unanswered': 1, **manager}).start()
        self.wait(f'the leader of {alias}', lambda: self.relay.leads(alias))

    def enqueue(self, count):
        for _ in range(count):
            call = next(self.calls)
            self.committed[call] = self.pg.value('SELECT txrelay.enqueue(%s, %s)',
                                                 (self.alias, call))

    def wait(self, what, condition):
        def look():
            self.assertTrue(self.relay.alive(), 'the relay died')
            return condition()
        try:
            return proc.wait_for(what, look, DEADLINE_S, every=0.1)
        except TimeoutError as error:
            raise TimeoutError(f'{error}\n{self.tail()}') from None

    def tail(self):
        rows = self.rows('nonce, id, state::text, attempts', 'pending_transactions')
        attempts = '\n'.join(map(str, self.attempts()))
        return f'{rows}\n{attempts}\n' + '\n'.join(self.relay.text().splitlines()[-30:])

    def pool(self):
        return self.chain.rpc('author_pendingExtrinsics')

    def wait_pool(self, count):
        return self.wait(f'{count} in the pool', lambda: len(self.pool()) == count and self.pool())

    def block(self):
        self.chain.rpc('dev_newBlock', {'count': 1}, seconds=DEADLINE_S)

    def empty_block(self):
        self.chain.rpc('dev_emptyBlock', seconds=DEADLINE_S)

    def blocks_until(self, what, condition, make):
        """Makes blocks, each when the relay had the time to act upon the one before."""
        for _ in range(BLOCKS_MAX):
            make()
            got = self.acted(condition)
            if got:
                return got
        raise TimeoutError(f'{what}: not within {BLOCKS_MAX} blocks\n{self.tail()}')

    def acted(self, condition):
        """What condition() gives in the end: the relay has the head, and for half a second neither
        the pool nor its records have changed."""
        head, seen, since = int(self.chain.rpc('chain_getHeader')['number'], 16), None, 0.0

        def still():
            nonlocal seen, since
            now = self.pool(), self.states(), len(self.attempts())
            if now != seen or self.relay.status()['node']['best'] < head:
                seen, since = now, time.monotonic()
            return condition() or time.monotonic() - since > 0.5
        self.wait('the relay to be done with a block', still)
        return condition()

    def rows(self, columns, table):
        return self.pg.query(f'SELECT {columns} FROM txrelay.{table} JOIN txrelay.accounts a '
                             'USING (account) '
                             'WHERE alias = %s', (self.alias,))

    def states(self):
        """(state, block hash) by nonce of what is pending."""
        rows = sorted(self.rows('nonce, state::text, block_hash', 'pending_transactions'))
        return [(state, block_hash and '0x' + bytes(block_hash).hex())
                for _, state, block_hash in rows]

    def attempts(self):
        rows = sorted(self.rows('nonce, number, hash, spec_version, era_birth, era_death, block, '
                                'reason', 'attempts'),
                      key=lambda row: row[:2])
        return [Attempt(nonce, bytes(hash_).hex(), *rest) for nonce, _, hash_, *rest in rows]

    def by_nonce(self):
        found = collections.defaultdict(list)
        for attempt in self.attempts():
            found[attempt.nonce].append(attempt)
        return [found[nonce] for nonce in sorted(found)]

    def ended(self):
        return self.pg.value(
            'SELECT count(*) FROM txrelay.finished_transactions WHERE id = ANY(%s)',
                             (list(self.committed.values()),)) == len(self.committed)

    def finish(self):
        """Blocks until everything has ended, then the judgement. What of it the chain holds, by
        nonce."""
        self.blocks_until('every end', self.ended, self.block)
        account, epoch = self.pg.query("""SELECT account_id, epoch FROM txrelay.leaders
                                          WHERE alias = %s""", (self.alias,))[0]
        self.assertTrue(self.relay.alive())
        self.assertEqual(epoch, 1, 'led once')
        report = self.chain.judge(self.dir, [account], self.committed)
        self.assertEqual(report['problems'], [])
        on_chain = report['extrinsics']
        self.assertEqual([(x['call'], x['nonce'], x['outcome']) for x in on_chain],
                         [('0x' + call.hex(), nonce, 'ok')
                          for nonce, call in enumerate(self.committed)])
        figures = invariants.check(self.pg, self.chain, self.committed)
        self.assertEqual(figures['finalized'], len(self.committed))
        for table in ('outbox', 'pending_transactions'):
            self.assertEqual(self.rows('id', table), [], table)
        return on_chain

    # ---- faults ----

    def upgrade(self, spec_version):
        code = self.chain.tools.run('nextspec.mjs', str(spec_version))
        self.assertEqual(self.chain.rpc('dev_setWasm', code, seconds=DEADLINE_S), spec_version)

    def test_upgrade_of_the_runtime(self):
        """The spec version goes from 900 to 901 with five transactions in the pool and five in the
        outbox. Then to 902, which the relay can learn only from refusals: there is no block, and
        without one no word of the upgrade."""
        self.lead('alice-sr', window=5)
        self.enqueue(10)
        self.wait_pool(5)
        self.assertEqual(len(self.rows('id', 'outbox')), 5)
        self.assertEqual([(a.nonce, a.spec) for a in self.attempts()],
                         [(nonce, 900) for nonce in range(5)])
        self.upgrade(901)
        self.blocks_until('every end', self.ended, self.block)
        self.assertEqual(self.specs(), [[900, 901]] * 5 + [[901]] * 5)

        self.upgrade(902)
        head = self.chain.rpc('chain_getBlockHash')
        self.enqueue(3)
        self.wait_pool(3)
        self.assertEqual(self.chain.rpc('chain_getBlockHash'), head)
        self.finish()
        specs = self.specs()[10:]
        self.assertEqual(specs[0], [901, 902])
        self.assertEqual([row[-1] for row in specs], [902] * 3)
        self.assertLessEqual(max(len(row) for row in specs), 2)

    def specs(self):
        return [[a.spec for a in attempts] for attempts in self.by_nonce()]

    def test_reorganisation(self):
        """The block with five transactions goes away, after the node has called it final to
        whoever watched. The other branch holds two of them; the rest is sent again."""
        self.lead('alice-ed', reprobe_blocks=2)
        self.chain.rpc('dev_holdFinality', True)
        self.enqueue(5)
        sent = self.wait_pool(5)
        self.block()
        gone = self.chain.rpc('chain_getBlockHash')
        self.wait('all in the block', lambda: self.states() == [('in_block', gone)] * 5)
        self.chain.rpc('dev_setHead', -1)
        self.chain.rpc('dev_newBlock', {'transactions': sent[:2]})
        self.blocks_until('the rest in the pool', lambda: self.pool() == sent[2:], self.empty_block)
        self.wait('the rest recorded so',
                  lambda: {state for state, _ in self.states()[2:]} <= {'ready', 'broadcast'})
        self.block()
        kept = self.chain.rpc('chain_getBlockHash')
        self.wait('the rest in a block', lambda: self.states()[2:] == [('in_block', kept)] * 3)
        self.assertFalse(self.pg.query('SELECT 1 FROM txrelay.finished_transactions '
                                       'WHERE id = ANY(%s)',
                                       (list(self.committed.values()),)))
        self.chain.rpc('dev_holdFinality', False)
        on_chain = self.finish()
        self.assertNotIn(gone, [x['block_hash'] for x in on_chain])
        self.assertEqual([x['block_hash'] for x in on_chain[2:]], [kept] * 3)
        self.assertEqual([len(attempts) for attempts in self.by_nonce()], [1] * 5)

    def test_cleared_pool(self):
        """The node loses its pool and says nothing: the same bytes are sent again, in the same
        order."""
        self.lead('alice-ec', reprobe_blocks=2)
        self.enqueue(5)
        sent = self.wait_pool(5)
        self.assertEqual(self.chain.rpc('dev_clearPool'), 5)
        self.blocks_until('the same pool', lambda: self.pool() == sent, self.empty_block)
        self.finish()
        self.assertEqual([len(attempts) for attempts in self.by_nonce()], [1] * 5)

    def test_eras_that_end(self):
        """Blocks of others fill four blocks, an era, with five transactions in the pool; then the
        pool is lost as well for as long. Every end of an era costs one signature, at the same
        nonce."""
        self.lead('bob', era_period=4)
        self.enqueue(5)
        first = self.wait_pool(5)
        self.blocks_until('new signatures beside the old ones', lambda: len(self.pool()) == 10,
                          self.empty_block)
        self.assertEqual(self.pool()[:5], first)
        self.assertEqual(self.chain.rpc('dev_clearPool'), 10)
        self.blocks_until('third signatures', lambda: len(self.pool()) == 5, self.empty_block)
        on_chain = self.finish()
        for attempts, x in zip(self.by_nonce(), on_chain):
            self.assertEqual(len(attempts), 3, attempts)
            self.assertEqual('0x' + attempts[-1].hash, x['hash'])
            for old, new in zip(attempts, attempts[1:]):
                self.assertEqual(old.reason, 'era expired')
                self.assertEqual(old.era_death - old.era_birth, 4)
                self.assertGreaterEqual(new.block, old.era_death - 1)


if __name__ == '__main__':
    unittest.main()
