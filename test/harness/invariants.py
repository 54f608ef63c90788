"""I1, I2, I3, I5, I6, I7 against the chain itself. Every transaction of a test has a call that no
other has.

Three kinds of extrinsics of ours stand in a block without being the end of a transaction as it was
asked for: a filler (a remark; its record has no id), a filler attempt (a remark signed in place of
a transaction that was stopped; its record is the transaction's own, with that outcome), and an
attempt whose dispatch failed and that was tried again (its nonce has a record of its own,
`requeued`). Only what was executed with success counts as an effect."""
from collections import Counter, defaultdict

ON_CHAIN = ('ok', 'dispatch_error')
STOPPED = ('cancelled', 'expired', 'failed')


class Violation(AssertionError):
    pass


def account_ids(pg):
    return {bytes(row[1]): row[0] for row in pg.query('SELECT account, account_id '
                                                      'FROM txrelay.accounts')}


def walk_ours(pg, chain):
    ids = account_ids(pg)
    return [(n, h, i, x) for n, h, i, x in chain.walk() if x.signer in ids]


class Records:
    """What the tables say: ends by id, nonces that were used up without being an end, attempts by
    hash."""

    def __init__(self, pg):
        rows = pg.query('''SELECT id, requeued, hash, block_number, outcome::text, nonce, account
                           FROM txrelay.finished_transactions''')
        self.ends = {row[0]: row for row in rows if row[0] is not None}
        self.requeued = defaultdict(list)
        for row in rows:
            if row[0] is None and row[1] is not None:
                self.requeued[row[1]].append(row)
        self.by_hash = {bytes(row[2]): row for row in rows if row[2]}
        self.attempts = {bytes(row[0]): row for row in pg.query(
            'SELECT hash, id, filler, tip FROM txrelay.attempts')}

    def retried(self, tx):
        """Hashes of the attempts of a transaction that failed on the chain and were tried again."""
        return [bytes(row[2]) for row in self.requeued[tx] if row[4] == 'dispatch_error']


def check(pg, chain, committed, rolled_back=(), submitted=None, foreign=(), lives=1):
    """committed: {call bytes: transaction id}; rolled_back: calls whose transaction was rolled
    back; submitted: hashes that the node saw (I3); foreign: hashes that a test signed with our key
    on purpose (no record, but a nonce each); lives: so often the chain may begin an account's
    nonces anew, the first time counted. Gives figures for a report; raises Violation with every
    finding."""
    found = []
    ours = walk_ours(pg, chain)
    records = Records(pg)
    on_chain = defaultdict(list)
    for _, _, _, x in ours:
        on_chain[x.call].append(x.hash)
    figures = {'finalized': 0, 'failed': 0, 'duplicates': 0, 'missing': 0, 'gaps': 0,
               'rolled_back_sent': 0}

    for call, tx in committed.items():
        found += check_transaction(records, tx, on_chain.get(call, []), figures)
    for call in rolled_back:
        if call in on_chain:
            figures['rolled_back_sent'] += 1
            found.append('a rolled-back transaction is on the chain')
    for number, _, _, x in ours:
        if x.hash not in foreign:
            found += check_extrinsic(records, number, x)
    if submitted is not None and ours and not submitted:
        found.append('I3: the chain holds our extrinsics but the node names no submission: nothing '
                     'was checked')
    for text in submitted or ():
        if bytes.fromhex(text[2:]) not in records.attempts and bytes.fromhex(
            text[2:]) not in foreign:
            found.append(f'I3: the node was sent {text}, which was never stored')
    found += check_nonces(ours, lives, figures)
    if lives == 1:
        found += check_content(pg, ours, submitted or ())
    found += check_history(pg, records, lives)
    if found:
        raise Violation('\n'.join(found[:20])
                        + (f'\n... and {len(found) - 20} more' if len(found) > 20 else ''))
    return figures


def check_transaction(records, tx, hashes, figures):
    """I1: executed once if its record says so, otherwise never; each failed try has a record of
    its own."""
    row, tries = records.ends.get(tx), records.retried(tx)
    found = [f'I1: try 0x{h.hex()} of transaction {tx} is recorded in a block and is not there'
             for h in tries if h not in hashes]
    rest = [h for h in hashes if h not in tries]
    if len(rest) > 1:
        figures['duplicates'] += 1
        found.append(f'I1: transaction {tx} is on the chain {len(rest)} times')
    if row is None:
        figures['missing'] += 1
        return found + [f'transaction {tx} has not ended']
    figures['finalized' if row[4] == 'ok' else 'failed'] += 1
    if row[4] in ON_CHAIN and len(rest) != 1:
        figures['missing'] += not rest
        found.append(f'I1: transaction {tx} is recorded {row[4]} but is on the chain '
                     f'{len(rest)} times')
    if row[4] not in (*ON_CHAIN, 'unknown') and rest:
        found.append(f'I1: transaction {tx} is recorded {row[4]} but is on the chain')
    return found


def check_extrinsic(records, number, x):
    """I2, I3 of one extrinsic in a finalized block."""
    attempt, end = records.attempts.get(x.hash), records.by_hash.get(x.hash)
    name = f'extrinsic 0x{x.hash.hex()} in block {number}'
    if attempt is None:
        return [f'I3: {name} has no stored attempt']
    if end is None:
        return [f'I2: {name} has no record with its outcome']
    found = []
    if attempt[2] is None and end[4] not in (*ON_CHAIN, 'unknown'):
        found.append(f'I2: {name} has no record with its outcome, but one that says {end[4]}')
    if attempt[2] is not None:
        if end[4] not in STOPPED or end[0] != attempt[1]:
            found.append(f'I2: filler {name} stands for transaction {attempt[1]}; the record is of '
                         f'{end[0]}: {end[4]}')
        if x.call[:2] != b'\x00\x00' or attempt[2] != len(x.call):
            found.append(f'I2: filler {name} is no remark of {attempt[2]} bytes')
    if end[3] != number and (end[4], end[3]) != ('unknown', None):
        found.append(f'I2: {name} is recorded in block {end[3]}')
    if attempt[3] != x.tip:
        found.append(f'I2: {name} pays a tip of {x.tip}, its attempt says {attempt[3]}')
    return found


def check_content(pg, ours, submitted):
    """I5: when a transaction was signed at another nonce, no block could include what a node had
    of it at the first one: its era was over, or a final block had that nonce. An attempt names the
    final block that was read when it was signed."""
    used = {(x.signer, x.nonce): number for number, _, _, x in ours}
    seen = {bytes.fromhex(text[2:]) for text in submitted}
    attempts = pg.query('''SELECT t.id, c.account_id, t.nonce, t.hash, t.era_death, t.block
                           FROM txrelay.attempts t
                           JOIN txrelay.accounts c USING (account) WHERE t.id IS NOT NULL
                           AND t.filler IS NULL
                           ORDER BY t.created_at, t.nonce, t.number''')
    found, earlier = [], defaultdict(list)
    for tx, signer, nonce, hash_, era_death, block in attempts:
        for old, old_death in earlier[tx]:
            over = old_death is not None and old_death <= block
            if old != nonce and not over and used.get((bytes(signer), old), block + 1) > block:
                found.append(f'I5: transaction {tx} is signed at nonce {nonce} at block {block}; '
                             f'its bytes at nonce {old} live '
                             f'until {old_death}, and that nonce is used in block '
                             f'{used.get((bytes(signer), old))}')
        if bytes(hash_) in seen:
            earlier[tx].append((nonce, era_death))
    return found


def check_nonces(ours, lives, figures):
    """I6: without a gap, in each life of the account."""
    found, runs = [], defaultdict(list)
    for _, _, _, x in ours:
        of_signer = runs[x.signer]
        if not of_signer or x.nonce <= of_signer[-1][-1]:
            of_signer.append([])
        of_signer[-1].append(x.nonce)
    for signer, lists in runs.items():
        name = f'I6: nonces of 0x{signer.hex()[:16]} on the chain'
        if len(lists) > lives:
            found.append(f'{name} begin {len(lists)} times')
        for got in lists:
            want = list(range(got[0], got[0] + len(got)))
            if got != want:
                figures['gaps'] += len(set(want) - set(got)) or 1
                found.append(f'{name} are not contiguous')
    return found


def check_history(pg, records, lives):
    """I7: what ended with a nonce has its attempts, and a requeued nonce names a transaction that
    there is."""
    found = []
    missing = pg.query('''SELECT count(*) FROM txrelay.finished_transactions f
                          WHERE f.hash IS NOT NULL AND NOT EXISTS
                          (SELECT FROM txrelay.attempts a WHERE a.account = f.account
                          AND a.nonce = f.nonce)''')[0][0]
    if missing:
        found.append(f'I7: {missing} finished transactions have no attempt on record')
    nonces = Counter((row[6], row[5]) for row in records.ends.values() if row[5] is not None)
    for tx, rows in records.requeued.items():
        for row in rows:
            if row[4] not in ('usurped', 'dispatch_error', 'failed'):
                found.append(f'I7: nonce {row[5]} of transaction {tx} was given up as {row[4]}')
            if lives == 1 and nonces[row[6], row[5]]:
                found.append(f'I7: nonce {row[5]} is recorded as given up by {tx} and as the end '
                             'of another')
    return found
