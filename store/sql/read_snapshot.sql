-- $1 account, $2 epoch, $3 after this nonce, $4 limit. One row at least: the account's own columns.
SELECT a.next_nonce, a.paused,
       p.nonce, p.id, p.state::text, p.hash, p.attempt, p.extrinsic, p.call, p.block_hash, p.block_number,
       p.era_birth, p.era_death, p.spec_version, p.tip::text, p.block, p.earlier
FROM txrelay.accounts a LEFT JOIN LATERAL txrelay.leader_snapshot($1, $2, $3, $4) p ON true
WHERE a.account = $1
ORDER BY p.nonce
