"""The promises over all sites of an account, against the chain: what each database has on record,
what it saw being written (WATCH, from the beginning on), and what the node was sent. Every
transaction of a test has a call that no other has.

A filler, which a coordinator signs for a nonce that no transaction needed, is a remark without
content, and is on record only while it can be included."""
from collections import defaultdict

from . import invariants
from .chain import remark
from .leadership import AUDIT

WATCH = AUDIT + '''
CREATE TRIGGER audit AFTER INSERT
OR UPDATE ON txrelay.site_transactions FOR EACH ROW EXECUTE FUNCTION public.audit_epoch();
CREATE TRIGGER audit AFTER INSERT ON txrelay.site_dispatches FOR EACH ROW EXECUTE FUNCTION
public.audit_epoch();
CREATE TABLE public.changed_ends (at timestamptz DEFAULT clock_timestamp(), what text);
CREATE FUNCTION public.watch_ends() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO public.changed_ends (what) VALUES (format('%s %s: %s', TG_OP, OLD.id, OLD.outcome));
    RETURN NULL;
END
$$;
CREATE TRIGGER watch AFTER UPDATE
OR DELETE ON txrelay.finished_transactions FOR EACH ROW EXECUTE FUNCTION public.watch_ends();
CREATE TABLE public.fillers (hash bytea PRIMARY KEY);
CREATE FUNCTION public.watch_fillers() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO public.fillers SELECT NEW.hash WHERE NEW.id < 0 ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
CREATE TRIGGER watch AFTER INSERT ON txrelay.site_dispatches FOR EACH ROW EXECUTE FUNCTION
public.watch_fillers();
'''


def check(sites, alias):
    """Figures for a report; raises Violation with every finding."""
    account = bytes(
        sites.all[0].pg.value('SELECT account_id FROM txrelay.accounts WHERE alias = %s', (alias,)))
    ours = [(n, h, i, x) for n, h, i, x in sites.chain.walk() if x.signer == account]
    sent = sites.chain.sent(sites.all[0].pg)
    figures = {'transactions': 0, 'duplicates': 0, 'fillers': 0, 'gaps': 0, 'given up': 0}
    on_chain = defaultdict(list)
    for number, block_hash, _, x in ours:
        on_chain[x.call].append((number, x.hash))
    fillers = {bytes(row[0]) for site in sites.all
               for row in site.pg.query('SELECT hash FROM public.fillers')}
    found, granted = [], set()
    for site in sites.all:
        records = invariants.Records(site.pg)
        granted |= set(records.attempts)
        for call, tx in site.committed.items():
            blocks = on_chain.pop(call, [])
            found += check_transaction(site, records, tx, blocks)
            figures['duplicates'] += len(blocks) > 1
            figures['transactions'] += 1
        found += [f'a rolled-back transaction of site {site.name} is on the chain'
                  for call in site.rolled_back if on_chain.pop(call, [])]
        found += check_site(site, ours, sent)
        figures['given up'] += sum(len(rows) for rows in records.requeued.values())
    for number, hash_ in on_chain.pop(remark(''), []):
        figures['fillers'] += 1
        if hash_ not in fillers:
            found.append(f'I2: the filler 0x{hash_.hex()} in block {number} was never dispatched')
    found += [f'I1: a call is on the chain that nobody enqueued: {call.hex()}' for call in on_chain]
    if ours and not sent:
        found.append('S-I3: the chain holds our extrinsics but the node names no submission: '
                     'nothing was checked')
    found += [f'S-I3: the node was sent {text}, which was never stored' for text in sent
              if bytes.fromhex(text[2:]) not in granted | fillers]
    found += invariants.check_nonces(ours, 1, figures)
    if found:
        raise invariants.Violation('\n'.join(found[:20])
                                   + (f'\n... and {len(found) - 20} more' if len(found) > 20
                                      else ''))
    return figures


def check_transaction(site, records, tx, blocks):
    """I1, I2: once, where its record says."""
    end = records.ends.get(tx)
    name = f'transaction {tx} of site {site.name}'
    if end is None:
        return [f'I2: {name} has not ended, and is on the chain {len(blocks)} times']
    _, _, hash_, number, outcome = end[:5]
    if outcome not in invariants.ON_CHAIN:
        return [f'I1: {name} is recorded {outcome}, and is in block {n}' for n, _ in blocks]
    if blocks != [(number, bytes(hash_))]:
        return [f'I1: {name} is recorded {outcome} in block {number}, and is on the chain in '
                f'{[n for n, _ in blocks]}']
    return []


def check_site(site, ours, sent):
    """I4, S-I5, I7 of one database."""
    found = [f'I4: site {site.name}: {row}'
             for row in site.pg.query('SELECT * FROM public.old_writes')]
    found += [f'I7: site {site.name}: {row}'
              for row in site.pg.query('SELECT * FROM public.changed_ends')]
    missing = site.pg.query('''SELECT f.id FROM txrelay.finished_transactions f
                               WHERE f.hash IS NOT NULL AND NOT EXISTS
                               (SELECT FROM txrelay.attempts a WHERE a.account = f.account
                               AND a.nonce = f.nonce AND a.hash = f.hash)''')
    found += [f'I7: site {site.name}: transaction {row[0]} has no attempt on record'
              for row in missing]
    return found + [f'site {site.name}: {text}' for text in invariants.check_content(site.pg, ours,
                                                                                     sent)]
