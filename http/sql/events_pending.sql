-- Pending rows as lines of JSON, in order: $1, $2 after this account and nonce, $3 rows, $4 account
-- or 0, $5 transaction or 0,
-- $6 state or NULL.
SELECT p.account, p.nonce, coalesce(p.id, 0), (extract(epoch FROM p.updated_at) * 1000000)::bigint,
    json_strip_nulls(json_build_object('event', 'new', 'account', a.alias, 'account_id',
        '0x' || encode(a.account_id, 'hex'),
        'id', p.id, 'nonce', p.nonce, 'state', p.state, 'hash', '0x' || encode(p.hash, 'hex'),
        'block_hash', '0x' || encode(p.block_hash, 'hex'), 'block_number', p.block_number, 'error',
        nullif(p.error, ''),
        'creator_id', nullif(p.creator, ''), 'traceparent', nullif(p.traceparent, ''),
        'updated_at', to_char(p.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'from_scan', true))
FROM txrelay.follow_pending p JOIN txrelay.follow_accounts a USING (account)
WHERE (p.account, p.nonce) > ($1::int, $2::bigint)
  AND ($4::int = 0 OR p.account = $4::int) AND ($5::bigint = 0 OR p.id = $5::bigint)
  AND ($6::text IS NULL OR p.state::text = $6)
ORDER BY p.account, p.nonce
LIMIT $3::int
