-- $1 account, $2 epoch, $3 after this nonce, $4 limit. One row at least: the account's own columns.
-- The hashes of earlier attempts come as one string of bytes, 32 each.
SELECT a.next_nonce, a.paused,
       p.nonce, p.id, p.state::text, p.hash, p.attempt, p.extrinsic, p.call, p.block_hash, p.block_number,
       p.era_birth, p.era_death, p.spec_version, p.tip::text, p.block,
       CASE WHEN cardinality(p.earlier) > 0 THEN
           (SELECT string_agg(e.hash, '' ORDER BY e.n) FROM unnest(p.earlier) WITH ORDINALITY e (hash, n)) END,
       p.guard
FROM txrelay.accounts a LEFT JOIN LATERAL txrelay.leader_snapshot($1, $2, $3, $4) p ON true
WHERE a.account = $1
ORDER BY p.nonce
