-- $1 transactions; $2, $3 accounts and nonces of fillers
SELECT f.account, f.nonce, f.id, encode(f.hash, 'hex'), f.state, encode(f.block_hash, 'hex'),
       f.block_number, f.outcome, f.error, f.creator,
       (extract(epoch FROM f.finished_at) * 1000000)::bigint, f.traceparent
FROM txrelay.follow_finished f
WHERE f.id = ANY ($1::bigint[])
UNION ALL
SELECT f.account, f.nonce, f.id, encode(f.hash, 'hex'), f.state, encode(f.block_hash, 'hex'),
f.block_number,
       f.outcome, f.error, f.creator, (extract(epoch FROM f.finished_at) * 1000000)::bigint,
       f.traceparent
FROM unnest($2::int[], $3::bigint[]) AS filler (account, nonce)
JOIN txrelay.follow_finished f ON f.account = filler.account AND f.nonce = filler.nonce
AND f.id IS NULL
