"""txrelay on a real Substrate runtime: Asset Hub (statemine 900) under chopsticks, three relays,
three accounts of three schemes, 60 transactions, a leader killed with kill -9 and Postgres
restarted while they run. What happened is told by @polkadot/api, which reads the finalized chain
and shares no code with us."""
import collections
import json
import os
import random
import threading
import time
import unittest

import psycopg2

from harness import invariants, proc
from harness.chain import Chopsticks, NodeTools
from harness.postgres import Postgres
from harness.relay import Relay, cli

ACCOUNTS = [('alice-sr', 'sr25519', '//Alice'), ('alice-ed', 'ed25519', '//Alice'),
            ('alice-ec', 'ecdsa', '//Alice')]
ALIASES = [alias for alias, _, _ in ACCOUNTS]
BOB = '5FHneW46xGXgs5mUiveU4sbTyGBzmstUspZC92UhjJM694ty'
TRANSACTIONS = 60
ROLLED_BACK = 8
IN_FLIGHT = 15  # what the application has open at most: blocks stay small, faults always meet work
MORE_THAN_ALL = str(2 * 10 ** 18)
# Dispatched, finalized, failed: by a pallet, by the origin, and inside of a batch that itself
# succeeds.
FAILING = [
    (['balances', 'transferKeepAlive', BOB, MORE_THAN_ALL], 'Balances.InsufficientBalance'),
    (['system', 'setHeapPages', 17], 'BadOrigin'),
    (['utility', 'batch',
      {'calls': [['system', 'remark', '0x01'],
                 ['balances', 'transferKeepAlive', BOB, MORE_THAN_ALL]]}],
     'Utility.BatchInterrupted[1]: Balances.InsufficientBalance'),
]
SIGNATURES = 300
DEADLINE_S = 400  # of one stage; a busy machine needs many times what an idle one does


def wanted_calls(count, draw):
    """Remarks of 5 bytes to 3 kB and transfers; no two are alike."""
    for i in range(count):
        if i % 3 == 2:
            yield ['balances', 'transferKeepAlive', BOB, str(10 ** 12 + i)]
        else:
            length = {0: 5, 1: 3000}.get(i) or int(5 * 600 ** draw.random())
            yield ['system', 'remark', '0x' + f'{i:010x}' + draw.randbytes(length - 5).hex()]


def ended(pg):
    return pg.value('SELECT count(*) FROM txrelay.finished_transactions WHERE id IS NOT NULL')


class Application(threading.Thread):
    """Writes its own row and enqueues in one transaction, as the role that applications have. Some
    it rolls back. A transaction whose commit was cut off by the restart of Postgres is run again,
    with the same idempotency key."""

    def __init__(self, pg, work):
        super().__init__(daemon=True)
        self.pg, self.work = pg, work
        self.committed, self.rolled_back, self.retries, self.error = {}, [], 0, None

    def run(self):
        try:
            db = self.pg.connect(autocommit=False, user='shop')
            for number, (alias, call, keep) in enumerate(self.work):
                proc.wait_for('earlier transactions to end', self.has_room, DEADLINE_S, every=0.1)
                while not self.transact(db, number, alias, call, keep):
                    self.retries += 1
                    db = proc.wait_for('Postgres to be back', self.connect)
            db.close()
        except Exception as error:
            self.error = error

    def has_room(self):
        try:
            return len(self.committed) - ended(self.pg) < IN_FLIGHT
        except psycopg2.OperationalError:
            return False

    def connect(self):
        try:
            return self.pg.connect(autocommit=False, user='shop')
        except psycopg2.OperationalError:
            return None

    def transact(self, db, number, alias, call, keep):
        """False when the connection was lost, and with it the answer."""
        try:
            with db.cursor() as cur:
                cur.execute('INSERT INTO orders (number) VALUES (%s) ON CONFLICT DO NOTHING',
                            (number,))
                cur.execute('SELECT txrelay.enqueue(account => %s, call => %s, key => %s)',
                            (alias, call, f'order {number}' if keep else None))
                tx = cur.fetchone()[0]
            if keep:
                db.commit()
                self.committed[call] = tx
            else:
                db.rollback()
                self.rolled_back.append(call)
            return True
        except (psycopg2.OperationalError, psycopg2.InterfaceError):
            return False


class RealRuntime(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        proc.install_signals()
        cls.dir = proc.make_dir('txrt-')
        cls.chain = Chopsticks(cls.dir)
        cls.pg = Postgres(os.path.join(cls.dir, 'pg'))
        cli('migrate', '--database', cls.pg.dsn)
        for sql in ('CREATE TABLE orders (number int PRIMARY KEY)',
                    'CREATE ROLE shop LOGIN IN ROLE txrelay_app',
                    'GRANT SELECT, INSERT ON orders TO shop',
                    'CREATE ROLE relay LOGIN IN ROLE txrelay_relay'):
            cls.pg.query(sql)

    @classmethod
    def tearDownClass(cls):
        proc.cleanup()

    # ---- the run ----

    def relay(self, name):
        # A chopsticks pool never holds a future nonce: transactions of an account are submitted one
        # after the other. It makes up its roots.
        return Relay(self.dir, name, self.pg.dsn_of(self.pg.database, user='relay'),
                     [self.chain.ws], ACCOUNTS,
                     manager={'unanswered': 1})

    def leader(self, alias):
        return next((r for r in self.relays if r.leads(alias)), None)

    def wait_led(self, aliases=ALIASES):
        proc.wait_for(f'leaders of {aliases}',
                      lambda: self.all_well() and all(self.leader(a) for a in aliases), DEADLINE_S)

    def all_well(self):
        """Nothing ended that should run; else waiting is for nothing."""
        for error in (self.chain.error, self.app and self.app.error):
            if error:
                raise error
        for relay in self.relays:
            if relay.process and relay is not self.victim and not relay.alive():
                raise AssertionError(f'{relay.name} died:\n'
                                     + '\n'.join(relay.text().splitlines()[-25:]))
        return True

    def wait_ended(self, count):
        def enough():
            self.all_well()
            return ended(self.pg) >= count
        try:
            proc.wait_for(f'{count} to end', enough, DEADLINE_S, every=0.1)
        except TimeoutError as error:
            rows = self.pg.query('SELECT account, nonce, id, state, attempts '
                                 'FROM txrelay.pending_transactions '
                                 'ORDER BY account, nonce LIMIT 12')
            logs = '\n'.join(f'--- {r.name}\n' + '\n'.join(r.text().splitlines()[-25:])
                             for r in self.relays)
            raise TimeoutError(f'{error}; {ended(self.pg)} have; pending {rows}\n{logs}') from None

    def wait_on_the_way(self):
        """The node has transactions of every account that are in no block yet."""
        proc.wait_for('work on its way', lambda: self.pg.value("""SELECT count(DISTINCT account) = 3
            FROM txrelay.pending_transactions WHERE state IN ('ready', 'broadcast')"""), DEADLINE_S)

    def make_work(self):
        draw = random.Random(os.environ.get('TXRELAY_SEED', 'runtime'))
        plain = list(wanted_calls(TRANSACTIONS - len(FAILING) + ROLLED_BACK, draw))
        failing = [call for call, _ in FAILING]
        calls = [bytes.fromhex(c[2:]) for c in self.chain.tools.run('calls.mjs', self.chain.ws,
                                                                    stdin=json.dumps(plain
                                                                                     + failing))]
        self.failing = dict(zip(calls[len(plain):], (error for _, error in FAILING)))
        kept, dropped = calls[:len(plain) - ROLLED_BACK], calls[len(plain) - ROLLED_BACK:len(plain)]
        kept[20:20] = calls[len(plain):]
        work = [(call, True) for call in kept]
        for i, call in enumerate(dropped):
            work.insert(8 * i + 4, (call, False))
        return [(ALIASES[i % 3], call, keep) for i, (call, keep) in enumerate(work)]

    def start_tail(self):
        with open(f'{self.dir}/tail.json', 'wb') as out:
            tail = proc.Process([proc.TXRELAY, 'tail', '--json', '--database', self.pg.dsn],
                                f'{self.dir}/tail.log',
                                stdout=out)
        proc.wait_for('tail to listen', lambda: 'tail.live' in tail.text())

    def kill_the_leader(self):
        """kill -9 of the relay that leads, with transactions of its accounts on their way. Seconds
        until all are led."""
        victim = self.victim = self.leader(ALIASES[0])
        led = [a for a in ALIASES if victim.leads(a)]
        self.wait_on_the_way()
        victim.kill()
        start = time.monotonic()
        self.wait_led(led)
        took = time.monotonic() - start
        victim.start()
        self.victim = None
        return victim.name, led, took

    def test_main_job(self):
        self.relays, self.app, self.victim = [self.relay(f'relay-{c}') for c in 'abc'], None, None
        check = cli('check', '--config', self.relays[0].config)
        self.assertIn('statemine/900', check.stdout)
        self.relays[0].start()
        self.wait_led()
        for relay in self.relays[1:]:
            relay.start()
        self.start_tail()
        work = self.make_work()
        self.app = Application(self.pg, work)
        self.app.start()
        self.chain.mine()
        start = time.monotonic()

        self.wait_ended(TRANSACTIONS // 3)
        name, led, took = self.kill_the_leader()
        self.wait_ended(2 * TRANSACTIONS // 3)
        self.wait_on_the_way()
        self.pg.restart()
        self.wait_ended(TRANSACTIONS)
        self.app.join(DEADLINE_S)
        seconds = time.monotonic() - start
        report = self.judge()
        print(f'\n  {len(self.app.committed)} committed and {len(self.app.rolled_back)} rolled '
              f'back in {seconds:.0f} s, '
              f'{report["finalized"]} blocks; kill -9 {name} ({", ".join(led)}): led again after '
              f'{took * 1000:.0f} ms; '
              f'{self.app.retries} retries of the application over the restart of Postgres; '
              f'{self.figures}')

    # ---- the judgement ----

    def judge(self):
        committed, rolled_back = self.app.committed, self.app.rolled_back
        self.assertEqual((len(committed), len(rolled_back)), (TRANSACTIONS, ROLLED_BACK))
        report = self.ask_the_chain(committed, rolled_back)
        self.assertEqual(report['problems'], [])
        self.assertEqual(len(report['extrinsics']), TRANSACTIONS)
        self.assertEqual(len({x['signer'] for x in report['extrinsics']}), len(ACCOUNTS))
        self.check_the_judge(list(committed))
        self.check_table(report)
        self.check_failures(report)
        self.check_tail()
        self.figures = invariants.check(self.pg, self.chain, committed, rolled_back)
        for table in ('outbox', 'pending_transactions'):
            self.assertEqual(self.pg.value(f'SELECT count(*) FROM txrelay.{table}'), 0, table)
        self.assertEqual(self.pg.value('SELECT count(*) FROM orders'), TRANSACTIONS)
        return report

    def ask_the_chain(self, committed, rolled_back):
        ids = self.pg.query("SELECT '0x' || encode(account_id, 'hex') FROM txrelay.accounts "
                            "ORDER BY account")
        return self.chain.judge(self.dir, [row[0] for row in ids], committed, rolled_back,
                                DEADLINE_S)

    def check_the_judge(self, calls):
        """It must be able to say no: one call is missing, one was rolled back and is there, so
        nobody committed it."""
        problems = self.ask_the_chain(calls[1:] + [b'never sent'], calls[:1])['problems']
        self.assertEqual(len(problems), 3, problems)
        for problem in ('is there 0 times', 'rolled-back call', 'nobody committed'):
            self.assertIn(problem, '\n'.join(problems))

    def check_table(self, report):
        """Every terminal record says what the chain says."""
        rows = self.pg.query("""SELECT f.id, '0x' || encode(a.account_id, 'hex'), f.nonce, '0x' ||
                encode(f.hash, 'hex'),
                '0x' || encode(f.block_hash, 'hex'), f.block_number, f.extrinsic_index,
                f.state::text, f.outcome::text,
                f.error FROM txrelay.finished_transactions f JOIN txrelay.accounts a USING (account)
                ORDER BY f.id""")
        want = []
        for x in report['extrinsics']:
            ok = x['outcome'] == 'ok'
            want.append((self.app.committed[bytes.fromhex(x['call'][2:])], x['signer'], x['nonce'],
                         x['hash'],
                         x['block_hash'], x['block'], x['index'], 'finalized',
                         'ok' if ok else 'dispatch_error',
                         None if ok else x['outcome']))
        self.assertEqual(rows, sorted(want))

    def check_failures(self, report):
        failed = {bytes.fromhex(x['call'][2:]): x['outcome'] for x in report['extrinsics']
                  if x['outcome'] != 'ok'}
        self.assertEqual(failed, self.failing)

    def tail_lines(self):
        with open(f'{self.dir}/tail.json') as file:
            return [row for row in proc.json_lines(file.read())
                    if row['event'] not in ('live', 'stale')]

    def check_tail(self):
        """One follower ran through all of it: what it printed last about each transaction is the
        record, and no status came after the end."""
        ids = set(self.app.committed.values())
        proc.wait_for('tail to print every end',
                      lambda: ids <= {t.get('id') for t in self.tail_lines() if t.get('outcome')})
        by_id = collections.defaultdict(list)
        for line in self.tail_lines():
            by_id[line['id']].append(line)
        self.assertEqual(set(by_id), ids)
        rows = self.pg.query("""SELECT id, account, account_id, nonce, hash, block_hash,
                                block_number, state, outcome,
                                error, creator FROM txrelay.transactions ORDER BY id""")
        fields = ('id', 'account', 'account_id', 'nonce', 'hash', 'block_hash', 'block_number',
                  'state', 'outcome', 'error',
                  'creator_id')
        self.assertEqual([tuple(by_id[row[0]][-1].get(f) for f in fields) for row in rows], rows)
        for tx, lines in by_id.items():
            ends = [i for i, line in enumerate(lines) if line.get('outcome')]
            self.assertEqual(ends, list(range(ends[0], len(lines))),
                             f'transaction {tx}: a status after its end')


class Signatures(unittest.TestCase):
    def test_another_implementation_takes_our_signatures(self):
        tool = os.path.join(proc.BUILD, 'test', 'vectors', 'sign_tool')
        report = NodeTools.get().run('signatures.mjs', tool, str(SIGNATURES))
        self.assertEqual(report['problems'], [])
        self.assertEqual(report['lines'], SIGNATURES)
        self.assertEqual(sum(report['checked'].values()), SIGNATURES)
        print(f'\n  keys and signatures checked: {report["checked"]}')


if __name__ == '__main__':
    unittest.main()
