-- $1 account, $2 epoch, $3 ids, $4 nonces, $5 hashes, $6 lengths of the calls, $7 tips (decimal
-- text), $8 era births,
-- $9 era deaths (NULL: immortal), $10 no block up to this one holds it, $11 spec version, $12
-- transaction version,
-- $13 the next nonce before it
SELECT txrelay.leader_admit_presigned($1, $2, $3, $4, $5, $6, $7::text[]::numeric[], $8, $9, $10,
                                      $11, $12, $13)
