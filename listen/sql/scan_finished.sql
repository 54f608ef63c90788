-- $1 .. $4 after this time (microseconds since 1970), account, nonce (-1: none) and id (0: filler),
-- $5 rows,
-- $6 account or NULL, $7 transaction or NULL
SELECT f.account, f.nonce, f.id, encode(f.hash, 'hex'), f.state, encode(f.block_hash, 'hex'),
       f.block_number, f.outcome, f.error, f.creator,
       (extract(epoch FROM f.finished_at) * 1000000)::bigint, f.traceparent
FROM txrelay.follow_finished f
WHERE f.finished_at >= timestamptz 'epoch' + $1::bigint * interval '1 microsecond'
  AND (f.finished_at, f.account, coalesce(f.nonce, -1), coalesce(f.id, 0))
      > (timestamptz 'epoch' + $1::bigint * interval '1 microsecond', $2::int, $3::bigint,
         $4::bigint)
  AND ($6::int IS NULL OR f.account = $6::int)
  AND ($7::bigint IS NULL OR f.id = $7::bigint)
ORDER BY f.finished_at, f.account, coalesce(f.nonce, -1), coalesce(f.id, 0)
LIMIT $5::int
