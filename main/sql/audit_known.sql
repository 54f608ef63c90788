-- $1 accounts, $2 nonces, $3 hashes in hexadecimal, of extrinsics of the chain: what is on record
-- about each
SELECT t.nonce IS NOT NULL, t.nonce IS NOT NULL AND p.nonce IS NOT NULL, f.outcome IS NOT NULL,
       f.hash = u.hash, f.block_hash IS NOT NULL, coalesce(f.id, t.id, 0), f.outcome
FROM (SELECT account, nonce, decode(hex, 'hex') AS hash, n
      FROM unnest($1::int[], $2::bigint[], $3::text[]) WITH ORDINALITY AS u(account, nonce, hex,
          n)) u
LEFT JOIN LATERAL (SELECT t.nonce, t.id FROM txrelay.attempts t
                   WHERE t.account = u.account AND t.nonce = u.nonce AND t.hash = u.hash LIMIT 1) t
                   ON true
LEFT JOIN txrelay.pending_transactions p ON p.account = u.account AND p.nonce = u.nonce
-- A reaped account begins its nonces anew: the record of these bytes, else the latest of the nonce.
LEFT JOIN LATERAL (SELECT f.outcome, f.hash, f.block_hash, f.id FROM txrelay.finished_transactions f
                   WHERE f.account = u.account AND f.nonce = u.nonce
                   ORDER BY f.hash = u.hash DESC NULLS LAST, f.finished_at DESC LIMIT 1) f ON true
ORDER BY u.n
