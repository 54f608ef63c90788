"""I1, I2, I3, I6, I7 against the chain itself. Every transaction of a test has a call that no other has."""
from collections import Counter, defaultdict


class Violation(AssertionError):
    pass


def account_ids(pg):
    return {bytes(row[1]): row[0] for row in pg.query('SELECT account, account_id FROM txrelay.accounts')}


def walk_ours(pg, chain):
    ids = account_ids(pg)
    return [(n, h, i, x) for n, h, i, x in chain.walk() if x.signer in ids]


def check(pg, chain, committed, rolled_back=(), submitted=None, foreign=()):
    """committed: {call bytes: transaction id}; rolled_back: calls whose transaction was rolled back; submitted: hashes
    that the node saw (I3); foreign: hashes that a test signed with our key on purpose (no record, but a nonce each).
    Gives figures for a report; raises Violation with every finding."""
    found = []
    ours = walk_ours(pg, chain)
    calls = Counter(x.call for _, _, _, x in ours)
    finished = {row[0]: row for row in pg.query(
        'SELECT id, hash, block_number, outcome, nonce, account FROM txrelay.finished_transactions WHERE id IS NOT NULL')}
    by_hash = {bytes(row[0]): row[1] for row in pg.query(
        'SELECT hash, outcome FROM txrelay.finished_transactions WHERE hash IS NOT NULL')}
    attempts = {bytes(row[0]) for row in pg.query('SELECT hash FROM txrelay.attempts')}
    on_chain_outcomes = ('ok', 'dispatch_error')
    figures = {'finalized': 0, 'failed': 0, 'duplicates': 0, 'missing': 0, 'gaps': 0, 'rolled_back_sent': 0}

    for call, tx in committed.items():
        times = calls.get(call, 0)
        row = finished.get(tx)
        if times > 1:
            figures['duplicates'] += 1
            found.append(f'I1: transaction {tx} is on the chain {times} times')
        if row is None:
            figures['missing'] += 1
            found.append(f'transaction {tx} has not ended')
        elif row[3] in on_chain_outcomes:
            figures['finalized' if row[3] == 'ok' else 'failed'] += 1
            if times != 1:
                figures['missing'] += times == 0
                found.append(f'I1: transaction {tx} is recorded {row[3]} but is on the chain {times} times')
        else:
            figures['failed'] += 1
            if times:
                found.append(f'I1: transaction {tx} is recorded {row[3]} but is on the chain')
    for call in rolled_back:
        if calls.get(call):
            figures['rolled_back_sent'] += 1
            found.append('a rolled-back transaction is on the chain')

    for number, _, index, x in ours:
        if x.hash in foreign:
            continue
        if by_hash.get(x.hash) not in on_chain_outcomes:
            found.append(f'I2: extrinsic 0x{x.hash.hex()} in block {number} has no record with its outcome')
        if x.hash not in attempts:
            found.append(f'I3: extrinsic 0x{x.hash.hex()} in block {number} has no stored attempt')
    if submitted is not None and ours and not submitted:
        found.append('I3: the chain holds our extrinsics but the node names no submission: nothing was checked')
    for text in submitted or ():
        if bytes.fromhex(text[2:]) not in attempts and bytes.fromhex(text[2:]) not in foreign:
            found.append(f'I3: the node was sent {text}, which was never stored')

    nonces = defaultdict(list)
    for _, _, _, x in ours:
        nonces[x.signer].append(x.nonce)
    for signer, got in nonces.items():
        want = list(range(min(got), min(got) + len(got)))
        if got != want:
            figures['gaps'] += len(set(want) - set(got)) or 1
            found.append(f'I6: nonces of 0x{signer.hex()[:16]} on the chain are not contiguous')

    rows = pg.query('''SELECT count(*) FROM txrelay.finished_transactions f WHERE f.hash IS NOT NULL AND NOT EXISTS
                       (SELECT FROM txrelay.attempts a WHERE a.account = f.account AND a.nonce = f.nonce)''')
    if rows[0][0]:
        found.append(f'I7: {rows[0][0]} finished transactions have no attempt on record')
    if found:
        raise Violation('\n'.join(found[:20]) + (f'\n... and {len(found) - 20} more' if len(found) > 20 else ''))
    return figures
