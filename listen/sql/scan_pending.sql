-- $1, $2 after this account and nonce, $3 rows, $4 account or NULL, $5 transaction or NULL
SELECT p.account, p.nonce, p.id, encode(p.hash, 'hex'), p.state, encode(p.block_hash, 'hex'),
       p.block_number, NULL AS outcome, p.error, p.creator,
       (extract(epoch FROM p.updated_at) * 1000000)::bigint, p.traceparent
FROM txrelay.follow_pending p
WHERE (p.account, p.nonce) > ($1::int, $2::bigint)
  AND ($4::int IS NULL OR p.account = $4::int)
  AND ($5::bigint IS NULL OR p.id = $5::bigint)
ORDER BY p.account, p.nonce
LIMIT $3::int
