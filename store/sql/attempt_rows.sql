-- $1 account, $2 epoch, $3 nonces, $4 hashes, $5 extrinsics, $6 tips (decimal text), $7 era births,
-- $8 era deaths (NULL: immortal), $9 spec version, $10 transaction version, $11 finalized height,
-- $12 reasons,
-- $13 lengths of fillers' calls (NULL: the transaction's own), $14 and $15 how its transaction ends
-- if a filler gets in
SELECT txrelay.leader_attempt($1, $2, $3, $4, $5, $6::text[]::numeric[], $7, $8, $9, $10, $11, $12,
                              $13, $14, $15)
