-- $1 an account: the same as of accounts.sql, and how many of its transactions are in each state
-- (at most 10000 of a stage are counted). An unknown one raises TR010.
SELECT json_build_object('alias', r.alias, 'account_id', r.account_id, 'address', r.account_address,
    'next_nonce', r.next_nonce, 'epoch', r.epoch, 'leader', r.holder, 'leader_address', r.address,
    'heartbeat_age_s', extract(epoch FROM r.heartbeat_age)::bigint, 'paused', r.paused,
    'paused_by', r.paused_by,
    'paused_reason', r.paused_reason, 'paused_since', r.paused_since, 'suspension', r.suspension,
    'blocked',
    (SELECT json_build_object('code', b.code, 'reason', b.reason, 'since', b.since, 'nonce',
                              b.nonce, 'id', b.id)
                FROM txrelay.account_blocks(ARRAY[r.account]) b),
    'policy', (SELECT a.policy FROM txrelay.accounts a WHERE a.account = r.account),
    'counts',
    coalesce((SELECT json_agg(json_build_object('stage', c.stage, 'state', c.state, 'count',
        c.count, 'more', c.more,
        'oldest', c.oldest, 'fee', c.fee::text) ORDER BY c.ordinality)
        FROM txrelay.counts(r.alias) WITH ORDINALITY c), '[]'))
FROM txrelay.leaders r WHERE r.account = txrelay.account_of($1)
