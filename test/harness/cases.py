"""The public reports (test/cases.md) as tests: a world with a hand on the chain, the table and the
relays' words."""
import hashlib
import json
import os
import re
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

from . import proc
from .chain import POOL, Extrinsic, remark
from .foreign import Stranger
from .world import World

# twox_128('System') and twox_128('Account'); blake2_128_concat of the account id follows.
ACCOUNT_PREFIX = '0x26aa394eea5630e07c48ae0c9558cef7b99d880ec681799c0cf30e8886371da9'
WORKERS = int(os.environ.get('TXRELAY_CASE_WORKERS', '6'))
SUBMIT = 'author_submitAndWatchExtrinsic'
REFUSALS = {  # of a real node: code, message, data
    1012: ('Transaction is temporarily banned', None),
    1013: ('Transaction Already Imported', 'Any { .. }'),
    1014: ('Priority is too low: (100 vs 100)',
           'The transaction has too low priority to replace another transaction already in '
           'the pool.'),
    1016: ('Immediately Dropped', "The transaction couldn't enter the pool because of the limit"),
    1018: ('Unactionable',
           'The transaction is unactionable since it is not propagable and the local node does not '
           'author blocks'),
}


def refusal(code):
    message, data = REFUSALS[code]
    error = {'code': code, 'message': message}
    if data:
        error['data'] = data
    return {'error': error}


def invalid(data):
    """1010 with this text, without the ban that a verdict of the runtime brings along."""
    return {'error': {'code': 1010, 'message': 'Invalid Transaction', 'data': data}}


def nonce_questions(action):
    """Rules for the questions after an account's next nonce, which count the pool or do not, as
    the node likes."""
    return [{'match': {'method': m, 'times': 0}, 'action': action}
            for m in ('system_accountNextIndex', 'account_nextIndex')]


def on_submit(action, **match):
    return {'match': {'method': SUBMIT, **match}, 'action': action}


class CaseWorld(World):
    """One relay named 'one' leads unless start=False. `stranger` signs with the first account's
    key."""

    def __init__(self, *options, start=True, call_timeout_ms=None, **kwargs):
        super().__init__(*options, **kwargs)
        self.chain_section = {'call_timeout_ms': call_timeout_ms} if call_timeout_ms else None
        self.ends = {}  # terminal rows as they were first seen (I7)
        if start:
            self.wait_leader(self.relay('one'))
            self.ready(self.relays[0])
        self.tail = proc.Process([proc.TXRELAY, 'tail', '--json', '--database', self.pg.dsn],
                                 f'{self.dir}/tail.log')
        proc.wait_for('the follower to listen', lambda: 'tail.live' in self.tail.text())

    def relay(self, name, start=True, **kwargs):
        kwargs.setdefault('chain', self.chain_section)
        return super().relay(name, start, **kwargs)

    def ready(self, relay, alias='alice'):
        relay.wait_log(f'account.ready.*account={alias}')
        return relay

    @property
    def stranger(self):
        alias, scheme, uri = self.accounts[0]
        return Stranger(self.chain, scheme, uri)

    def foreign_send(self, nonce, call, tip=0):
        found = self.stranger.send(nonce, call, tip)
        self.foreign.add(found)
        return found

    # ---- the chain ----

    def close(self):
        self.tail.kill()
        super().close()

    def script(self, *rules):
        return self.chain.rpc('dev_script', {'rules': list(rules)})['ids']

    def script_fired(self, rule):
        return next(r['fired'] for r in self.chain.rpc('dev_listScript') if r['id'] == rule)

    def set(self, **options):
        return self.chain.rpc('dev_set', options)

    def best(self):
        return self.chain.rpc('dev_stats', {})['best']

    def blocks(self, count=1, **options):
        return self.chain.rpc('dev_newBlock', {'count': count, **options})

    def pool(self):
        """Extrinsics of the ready queue."""
        return [Extrinsic(bytes.fromhex(x[2:])) for x in self.chain.rpc('author_pendingExtrinsics')]

    def wait_pool(self, count):
        proc.wait_for(f'{count} in the pool', lambda: self.ready_count() == count)
        return self.pool()

    def ready_count(self):
        return self.chain.rpc('dev_stats', {})['ready']

    def wait_blocks(self, count):
        start = self.best()
        proc.wait_for(f'{count} blocks', lambda: self.best() >= start + count)

    def seen(self, hash_):
        """Was this extrinsic submitted by anybody?"""
        return '0x' + hash_.hex() in self.submitted()

    def account_key(self, alias='alice'):
        """The storage key of the account's System.Account."""
        account_id = bytes(self.pg.value('SELECT account_id FROM txrelay.accounts WHERE alias = %s',
                                         (alias,)))
        return ACCOUNT_PREFIX + hashlib.blake2b(account_id,
                                                digest_size=16).hexdigest() + account_id.hex()

    def address(self, alias='alice'):
        return self.pg.value('SELECT address FROM txrelay.accounts WHERE alias = %s', (alias,))

    def fund(self, free, alias='alice', **options):
        """The account's free balance from the next block on, which is made now and is empty."""
        self.chain.rpc('dev_setBalance',
                       {'account': self.address(alias), 'free': str(free), **options})

    def reap(self, alias='alice', free=10 ** 18):
        """The account dies in one block and is funded again in the next: a new life, whose nonces
        begin at 0."""
        self.fund(0, alias)
        self.fund(free, alias)
        self.lives += 1

    def submits(self):
        """What came over the relays' watched submissions and ours, in order."""
        return [s for s in self.chain.submits() if s.get('signer')]

    def results(self):
        return self.chain.rpc('dev_stats', {})['results']

    # ---- the table ----

    def rows(self, sql, *args):
        return self.pg.query(sql, args)

    def enqueue_many(self, contents, alias='alice'):
        return [self.enqueue(c, alias) for c in contents]

    def put(self, content, alias='alice', **options):
        """enqueue with options; a value that is a tuple is (SQL expression,)."""
        call, names, values = remark(content) if isinstance(content, str) else content, '', []
        for name, value in options.items():
            names += f', {name} => {value[0] if isinstance(value, tuple) else "%s"}'
            values += [] if isinstance(value, tuple) else [value]
        tx = self.pg.value(f'SELECT txrelay.enqueue(%s, %s{names})', [alias, call, *values])
        self.committed[call] = tx
        return tx

    def cancel(self, tx):
        return self.pg.value('SELECT txrelay.cancel(%s)', (tx,))

    def bump(self, tx, tip=None):
        return self.pg.value('SELECT txrelay.bump(%s, %s)', (tx, tip))

    def policy(self, alias='alice', **keys):
        """Sets the account's policy; gives the whole of it. None removes a key."""
        return self.pg.value('SELECT txrelay.account_policy(%s, %s)', (alias, json.dumps(keys)))

    def collect(self, alias='alice'):
        """Enqueued while this is open is admitted at once."""
        return Collecting(self, alias)

    def resume(self, alias='alice'):
        self.pg.value('SELECT txrelay.account_resume(%s)', (alias,))

    def history(self, tx):
        """Rows of history(id) as dicts."""
        names = ('nonce', 'attempt', 'hash', 'tip', 'filler', 'outcome', 'state', 'reason', 'error',
                 'error_count',
                 'spec_version', 'era_death', 'created_at', 'ended_at')
        return [dict(zip(names, row)) for row in self.rows(
            f'SELECT {", ".join(names)} FROM txrelay.history(%s)', tx)]

    def tips(self, tx):
        """Of its attempts, in order, without a filler's."""
        return [int(t) for t, in self.rows('''SELECT tip FROM txrelay.attempts WHERE id = %s
                                              AND filler IS NULL
                                              ORDER BY created_at, nonce, number''', tx)]

    def suspension(self, alias='alice'):
        return self.pg.value('SELECT suspension FROM txrelay.accounts WHERE alias = %s', (alias,))

    def wait_suspension(self, suspension, alias='alice', seconds=30):
        proc.wait_for(f'{alias} to be suspended: {suspension}',
                      lambda: self.suspension(alias) == suspension, seconds)

    def blocked(self, alias='alice'):
        """The account's row of blocked_accounts as a dict, or None."""
        names = ('nonce', 'id', 'state', 'reason', 'paused', 'paused_by', 'suspension')
        found = self.rows(f'SELECT {", ".join(names)} FROM txrelay.blocked_accounts '
                          'WHERE account = %s', alias)
        return dict(zip(names, found[0])) if found else None

    def wait_reason(self, text, alias='alice'):
        proc.wait_for(f'the view to say: {text}',
                      lambda: text in ((self.blocked(alias) or {}).get('reason') or ''))

    def given_up(self, tx):
        """[(nonce, outcome, error)] of the nonces that a transaction lost before its end."""
        return self.rows('''SELECT nonce, outcome::text, error FROM txrelay.finished_transactions
                            WHERE id IS NULL AND requeued = %s ORDER BY finished_at, nonce''', tx)

    def row(self, tx):
        found = self.rows('SELECT stage, state, nonce, outcome, error, attempts '
                          'FROM txrelay.transactions WHERE id = %s', tx)
        return dict(zip(('stage', 'state', 'nonce', 'outcome', 'error', 'attempts'), found[0]))

    def end(self, tx):
        return self.row(tx)['outcome'], self.row(tx)['error']

    def wait_end(self, tx):
        proc.wait_for(f'transaction {tx} to end', lambda: self.row(tx)['stage'] == 'finished')
        return self.end(tx)

    def wait_state(self, tx, *states):
        proc.wait_for(f'transaction {tx} to be {states}', lambda: self.row(tx)['state'] in states)

    def attempts(self, nonce=None):
        """[(nonce, number, id, hash, outcome, reason, extrinsic)] in order."""
        found = self.rows('''SELECT nonce, number, id, hash, outcome::text, reason, extrinsic
                             FROM txrelay.attempts
                             ORDER BY nonce, number''')
        return [(n, k, i, bytes(h), o, r, bytes(x)) for n, k, i, h, o, r, x in found
                if nonce in (None, n)]

    def next_nonce(self, alias='alice'):
        return self.pg.value('SELECT next_nonce FROM txrelay.accounts WHERE alias = %s', (alias,))

    # ---- the relays' words ----

    def alerts(self):
        return [line for relay in self.relays for line in relay.text().splitlines()
                if 'account.alert' in line]

    def wait_alert(self, pattern):
        return proc.wait_for(f'an alert like /{pattern}/',
                             lambda: [a for a in self.alerts() if re.search(pattern, a)])

    def told(self, tx):
        """The states of a transaction that the follower was told, in order."""
        return [r['state'] for r in self.heard() if r.get('id') == tx and r.get('state')]

    def heard(self):
        """What the follower has printed."""
        return proc.json_lines(self.tail.text())

    def follower_differs(self):
        """Ids whose last state at the follower is not the table's (I8)."""
        last = {row['id']: row['state'] for row in self.heard()
                if row.get('id') and row.get('state')}
        table = self.rows('SELECT id, state::text FROM txrelay.finished_transactions '
                          'WHERE id IS NOT NULL AND nonce IS NOT NULL')
        return {tx: (last.get(tx), state) for tx, state in table if last.get(tx) != state}

    # ---- the end of every case ----

    def settle(self, seconds=60):
        """Every transaction ended, nothing pending (fillers too), the invariants hold, ends that
        were seen before are the same, the history has an attempt for each nonce that was used."""
        figures = super().settle(seconds)
        proc.wait_for('nothing pending',
                      lambda: not self.pg.value(
                          'SELECT count(*) FROM txrelay.pending_transactions'), seconds)
        figures = self.check()
        ends = {r[0]: r for r in self.rows('''SELECT id, outcome::text, error, nonce, hash::text,
                                              block_number
                                              FROM txrelay.finished_transactions
                                              WHERE id IS NOT NULL''')}
        for tx, row in self.ends.items():
            assert ends.get(tx) == row, f'I7: the end of {tx} was {row} and is {ends.get(tx)}'
        self.ends.update(ends)
        try:
            proc.wait_for('the follower to agree', lambda: not self.follower_differs(), 60)
        except TimeoutError:
            raise AssertionError(
                f'I8: follower and table differ: {self.follower_differs()}') from None
        crashed = [r.name for r in self.relays if r.process and not r.alive()
                   and r.process.child.returncode not in (0, -9)]
        assert not crashed, f'{crashed}: a relay died by itself'
        bugs = [line for r in self.relays for line in r.text().splitlines()
                if 'event=internal.bug' in line]
        assert not bugs, bugs
        return figures


class Collecting:
    """An operator's pause around several enqueues."""

    def __init__(self, world, alias):
        self.world, self.alias = world, alias

    def __enter__(self):
        self.world.pg.value("SELECT txrelay.account_pause(%s, 'the test collects')", (self.alias,))

    def __exit__(self, *_):
        self.world.resume(self.alias)


class CaseTest(unittest.TestCase):
    shapes = ()  # devchain options of this run

    def world(self, *options, **kwargs):
        world = CaseWorld(*options, *self.shapes, **kwargs)
        self.addCleanup(self.ended, world)
        return world

    def ended(self, world):
        result = self._outcome.result
        if any(test is self for test, _ in result.failures + result.errors):
            world.tell()
        world.close()

    def assert_once(self, world, figures=None):
        """Every transaction finalized ok, each exactly once."""
        figures = figures or world.settle()
        self.assertEqual(figures['finalized'], len(world.committed), figures)

    def assert_one_hash_each(self, world):
        """The node never saw two different extrinsics with one nonce."""
        self.assertEqual(world.chain.rpc('dev_stats', {})['max_hashes_per_nonce'], 1)


def chopsticks(case):
    """A second class: the same tests with statuses and errors in chopsticks' form."""
    name = case.__name__ + 'Chopsticks'
    return type(name, (case,), {'shapes': ('--chopsticks-shapes',), '__module__': case.__module__,
                                '__doc__': case.__doc__})


class Parallel(unittest.TestSuite):
    """Runs its tests in threads: they wait for blocks most of the time. Each has its own world."""

    def run(self, result, debug=False):
        lock = threading.Lock()
        tests = list(flatten(self))

        def one(test):
            if result.shouldStop:
                return
            own = unittest.TestResult()
            test.run(own)
            with lock:
                result.startTest(test)
                for kind, add in (('failures', result.addFailure), ('errors', result.addError)):
                    for _, text in getattr(own, kind):
                        add(test, (AssertionError, AssertionError('\n' + text), None))
                for _, reason in own.skipped:
                    result.addSkip(test, reason)
                if own.wasSuccessful() and not own.skipped:
                    result.addSuccess(test)
                result.stopTest(test)

        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(one, tests))
        return result


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


def load_tests(_loader, tests, _pattern):
    """What chopsticks says has nothing to do with the pool that devchain has: its forms run with
    one of the two."""
    return Parallel([t for t in flatten(tests) if POOL == 'single-state'
                     or not getattr(t, 'shapes', ())])
