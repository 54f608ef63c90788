-- $1 account, $2 epoch, $3 nonces, $4 hashes, $5 extrinsics, $6 tips (decimal text), $7 era births,
-- $8 era deaths (NULL: immortal), $9 spec version, $10 transaction version, $11 finalized height, $12 reasons
SELECT txrelay.leader_attempt($1, $2, $3, $4, $5, $6::text[]::numeric[], $7, $8, $9, $10, $11, $12)
