-- $1 account, $2 epoch, $3 nonces, $4 hashes, $5 extrinsics, $6 lengths of their calls, $7 tips
-- (decimal text),
-- $8 era births, $9 era deaths (NULL: immortal), $10 times of their blocks in ms (NULL: none), $11
-- spec version,
-- $12 transaction version, $13 block that comes before all of them, $14 done,
-- $15 all finalized blocks up to this one were read (NULL: the wait is cut short)
SELECT txrelay.leader_adopt($1, $2, $3, $4, $5, $6, $7::text[]::numeric[], $8, $9, $10, $11, $12,
                            $13, $14, $15)
