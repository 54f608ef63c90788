-- $1 account, $2 epoch, $3 ids, $4 nonces, $5 hashes, $6 extrinsics, $7 tips (decimal text), $8 era
-- births,
-- $9 era deaths (NULL: immortal), $10 spec version, $11 transaction version, $12 finalized height
SELECT txrelay.leader_admit($1, $2, $3, $4, $5, $6, $7::text[]::numeric[], $8, $9, $10, $11, $12)
