"""The same rows written without a relay and without a chain, in the batches that the relay made,
by as many sessions as there are accounts, four at most (a session waits for each commit, so that
one alone is bound by the disk):

  functions   the very leader_* functions of the schema, with dummy bytes: what the database alone
  allows today plain       the same inserts, updates and deletes as plain statements on copies of
  the tables that have their indexes
              and constraints, but no trigger, no fence, no check: the floor of these tables
"""
import os
import time
from concurrent.futures import ThreadPoolExecutor

from .stand import cpu_s

SESSIONS = 4
SIGNED_BYTES = 145  # what an extrinsic has beside its call

FUNCTIONS = '''
PREPARE b_outbox(int, bigint, int) AS SELECT id, call FROM txrelay.leader_outbox($1, $2, $3);
PREPARE b_admit(int, bigint, bigint[], bigint[], bytea[], bytea[], numeric[], bigint[], bigint[]) AS
    SELECT txrelay.leader_admit($1, $2, $3, $4, $5, $6, $7, $8, $9, 100, 1, 1);
PREPARE b_state(int, bigint, bigint[], bytea[], text[], bytea[], bigint[], text[]) AS
    SELECT txrelay.leader_record_status($1, $2, $3, $4, $5, $6, $7, $8);
PREPARE b_finish(int, bigint, bigint[], bytea[], bytea[], bigint[], int[], text[], text[],
numeric[]) AS
    SELECT txrelay.leader_finish($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);
'''
TABLES = '''
CREATE SCHEMA bench;
CREATE TABLE bench.outbox (LIKE txrelay.outbox INCLUDING ALL);
CREATE TABLE bench.pending (LIKE txrelay.pending_transactions INCLUDING ALL)
    WITH (fillfactor = 40);
CREATE TABLE bench.attempts (LIKE txrelay.attempts INCLUDING ALL) WITH (fillfactor = 80);
CREATE TABLE bench.finished (LIKE txrelay.finished_transactions INCLUDING ALL);
'''
PLAIN = '''
PREPARE b_outbox(int, bigint, int) AS SELECT id, call FROM bench.outbox WHERE account = $1
AND not_before IS NULL
    ORDER BY account, priority DESC, id LIMIT $3;
PREPARE b_admit(int, bigint, bigint[], bigint[], bytea[], bytea[], numeric[], bigint[], bigint[]) AS
    WITH moved AS (
        DELETE FROM bench.outbox o
        USING unnest($3, $4, $5, $6, $7, $8, $9) b (id, nonce, hash, extrinsic, tip, birth, death)
        WHERE o.id = b.id
        RETURNING o.id, o.account, o.call, o.key, o.creator, o.created_at, b.nonce, b.hash,
        b.extrinsic, b.tip, b.birth, b.death
    ), pending AS (
        INSERT INTO bench.pending (account, nonce, account_id, id, call, hash, attempt, attempts,
        state, epoch, key,
            creator, created_at)
        SELECT account, nonce, hash, id, call, hash, 1, 1, 'signed', $2, key, creator, created_at
        FROM moved
    )
    INSERT INTO bench.attempts (account, nonce, number, id, hash, extrinsic, tip, era_birth,
    era_death, spec_version,
        transaction_version, block, epoch)
    SELECT account, nonce, 1, id, hash, extrinsic, tip, birth, death, 100, 1, 1, $2 FROM moved;
PREPARE b_state(int, bigint, bigint[], bytea[], text[], bytea[], bigint[], text[]) AS
    UPDATE bench.pending p SET state = b.state::txrelay.tx_state, block_hash = b.block_hash,
    block_number = b.block_number,
        epoch = $2, updated_at = clock_timestamp(), in_block_at = coalesce(p.in_block_at,
        clock_timestamp())
    FROM unnest($3, $4, $5, $6, $7, $8) b (nonce, hash, state, block_hash, block_number, error)
    WHERE p.account = $1 AND p.nonce = b.nonce AND p.hash = b.hash;
PREPARE b_finish(int, bigint, bigint[], bytea[], bytea[], bigint[], int[], text[], text[],
numeric[]) AS
    WITH gone AS (
        DELETE FROM bench.pending p
        USING unnest($3, $5, $6, $7, $8, $10) b (nonce, block_hash, number, index, outcome, fee)
        WHERE p.account = $1 AND p.nonce = b.nonce
        RETURNING p.*, b.block_hash AS block, b.number, b.index, b.outcome AS ended, b.fee
    ), tried AS (
        UPDATE bench.attempts t SET ended_at = clock_timestamp(), state = 'finalized', block_hash =
        g.block,
            block_number = g.number, outcome = 'included'
        FROM gone g WHERE t.account = $1 AND t.nonce = g.nonce AND t.hash = g.hash
    )
    INSERT INTO bench.finished (id, account, nonce, hash, block_hash, block_number,
    extrinsic_index, state, outcome, fee,
        attempts, epoch, key, creator, created_at, admitted_at, in_block_at)
    SELECT id, account, nonce, hash, block, number, index, 'finalized', ended::txrelay.tx_outcome,
    fee, attempts, $2, key,
        creator, created_at, admitted_at, in_block_at FROM gone;
'''
LSN = "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"


def literal(values):
    """The text of an array: numbers, NULL, or \\x and hex."""
    return '{' + ','.join('NULL' if v is None else '"\\\\x' + v.hex() + '"' if isinstance(v, bytes)
                          else str(v)
                          for v in values) + '}'


class Driver:
    """One session with a leader's view of its accounts."""

    def __init__(self, pg, statements, accounts, batches, call):
        self.db = pg.connect()
        self.cur = self.db.cursor()
        self.cur.execute("SET jit = off")
        self.cur.execute(statements)
        self.call = call
        self.accounts, self.batches = accounts, batches  # {account: epoch}, {'admit': n, ...}
        self.next = dict.fromkeys(accounts, 0)
        self.pending = {a: [] for a in accounts}  # (nonce, hash) admitted, no status yet
        self.included = {a: [] for a in accounts}
        self.statements = 0

    def execute(self, name, *args):
        self.statements += 1
        self.cur.execute(f'EXECUTE {name} (' + ', '.join(['%s'] * len(args)) + ')', args)

    def admit(self, account):
        self.execute('b_outbox', account, self.accounts[account], self.batches['admit'])
        ids = [r[0] for r in self.cur.fetchall()]
        if not ids:
            return False
        first, n = self.next[account], len(ids)
        nonces = range(first, first + n)
        hashes = [os.urandom(32) for _ in ids]
        bodies = [h * 5 + self.call for h in hashes]
        self.execute('b_admit', account, self.accounts[account], literal(ids), literal(nonces),
                     literal(hashes),
                     literal(b[160 - SIGNED_BYTES:] for b in bodies), literal([0] * n),
                     literal([1] * n), literal([64] * n))
        self.next[account] = first + n
        self.pending[account] += zip(nonces, hashes)
        return True

    def state(self, account):
        batch = self.pending[account][:self.batches['state']]
        del self.pending[account][:len(batch)]
        n = len(batch)
        if n:
            self.execute('b_state', account, self.accounts[account], literal(b[0] for b in batch),
                         literal(b[1] for b in batch), literal(['in_block'] * n),
                         literal([b'\7' * 32] * n),
                         literal([7] * n), literal([None] * n))
            self.included[account] += batch

    def finish(self, account):
        batch = self.included[account][:self.batches['finish']]
        del self.included[account][:len(batch)]
        n = len(batch)
        if n:
            self.execute('b_finish', account, self.accounts[account], literal(b[0] for b in batch),
                         literal(b[1] for b in batch), literal([b'\7' * 32] * n), literal([7] * n),
                         literal(range(n)), literal(['ok'] * n), literal([None] * n),
                         literal([100000000] * n))

    def run(self):
        live = set(self.accounts)
        while live:
            for a in list(live):
                more = self.admit(a)
                while len(self.pending[a]) >= self.batches['state'] or (not more
                                                                        and self.pending[a]):
                    self.state(a)
                while len(self.included[a]) >= self.batches['finish'] or (not more
                                                                          and self.included[a]):
                    self.finish(a)
                if not more:
                    live.discard(a)

    def backend_cpu_s(self):
        return cpu_s(self.db.get_backend_pid())


def register(pg, count):
    """{account: epoch} of accounts led by nobody but us."""
    found = {}
    for i in range(count):
        account = pg.value('''SELECT txrelay.relay_register(%s, decode(%s, 'hex'), 'sr25519',
            decode(repeat('22', 32), 'hex'), %s, %s)''', (f'bench{i}', f'{i:064x}', f'address{i}',
            1000 + i))
        granted, epoch = pg.query('''SELECT granted, epoch
                                     FROM txrelay.leader_claim(%s, 'bench', NULL, false, 3600000,
                                     3600000)''', (account,))[0]
        assert granted
        found[account] = epoch
    return found


def preload(pg, table, accounts, count, call):
    pg.query(f'''INSERT INTO {table} (account, call, creator)
                 SELECT (%s::int[])[1 + n %% %s], %s, 'bench'
                 FROM generate_series(0, %s) n''', (list(accounts), len(accounts), call, count - 1))


def rate(server, kind, account_count, count, batches, call):
    """Transactions per second, the share of one core that the drivers took, and the CPU of their
    backends."""
    pg = server.fresh()
    accounts = register(pg, account_count)
    if kind == 'plain':
        pg.query(TABLES)
    preload(pg, 'bench.outbox' if kind == 'plain' else 'txrelay.outbox', accounts, count, call)
    pg.query('VACUUM ANALYZE')
    pg.query('CHECKPOINT')
    start = pg.value(LSN)
    n = min(SESSIONS, account_count)
    drivers = [Driver(pg, PLAIN if kind == 'plain' else FUNCTIONS,
                      dict(list(accounts.items())[i::n]), batches, call)
               for i in range(n)]
    before, cpu, begun = sum(d.backend_cpu_s()
                             for d in drivers), time.process_time(), time.monotonic()
    with ThreadPoolExecutor(n) as pool:
        for one in [pool.submit(d.run) for d in drivers]:
            one.result()
    seconds, cpu = time.monotonic() - begun, time.process_time() - cpu
    backend = sum(d.backend_cpu_s() for d in drivers) - before
    for d in drivers:
        d.db.close()
    wal = pg.value(LSN) - start
    done = pg.value('SELECT count(*) FROM '
                    + ('bench.finished' if kind == 'plain' else 'txrelay.finished_transactions'))
    assert done == count, f'{kind}: {done} of {count}'
    return {'tx_per_s': count / seconds, 'driver_cpu_share': cpu / seconds,
            'backend_us_per_tx': backend * 1e6 / count,
            'wal_bytes_per_tx': int(wal) / count,
            'statements_per_tx': sum(d.statements for d in drivers) / count, 'sessions': n}
