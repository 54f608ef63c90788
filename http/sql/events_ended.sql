-- Ends as lines of JSON, in order: $1 .. $4 after this time (microseconds since 1970), account,
-- nonce (-1: none) and id (0: filler),
-- $5 and before this time, $6 rows, $7 account or 0, $8 transaction or 0, $9 state or outcome or
-- NULL.
SELECT f.account, coalesce(f.nonce, -1), coalesce(f.id, 0),
    (extract(epoch FROM f.finished_at) * 1000000)::bigint,
    json_strip_nulls(json_build_object('event', 'finished', 'account', a.alias, 'account_id',
        '0x' || encode(a.account_id, 'hex'),
        'id', f.id, 'nonce', f.nonce, 'state', f.state, 'outcome', f.outcome, 'hash',
        '0x' || encode(f.hash, 'hex'),
        'block_hash', '0x' || encode(f.block_hash, 'hex'), 'block_number', f.block_number, 'error',
        nullif(f.error, ''),
        'creator_id', nullif(f.creator, ''), 'traceparent', nullif(f.traceparent, ''),
        'updated_at', to_char(f.finished_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'from_scan', true))
FROM txrelay.follow_finished f JOIN txrelay.follow_accounts a USING (account)
WHERE f.finished_at >= timestamptz 'epoch' + $1::bigint * interval '1 microsecond'
  AND (f.finished_at, f.account, coalesce(f.nonce, -1), coalesce(f.id, 0))
      > (timestamptz 'epoch' + $1::bigint * interval '1 microsecond', $2::int, $3::bigint,
         $4::bigint)
  AND f.finished_at < timestamptz 'epoch' + $5::bigint * interval '1 microsecond'
  AND ($7::int = 0 OR f.account = $7::int) AND ($8::bigint = 0 OR f.id = $8::bigint)
  AND ($9::text IS NULL OR $9 IN (f.state::text, f.outcome::text))
ORDER BY f.finished_at, f.account, coalesce(f.nonce, -1), coalesce(f.id, 0)
LIMIT $6::int
