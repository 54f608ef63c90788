-- $1 account, $2 epoch, $3 kinds, $4 members, $5 ids, $6 hashes, $7 keys, $8 nonces, $9 era births,
-- $10 era deaths, $11 extrinsics,
-- $12 tips (decimal text), $13 runtime spec versions, $14 transaction versions, $15 outcomes, $16
-- errors, $17 block hashes,
-- $18 block numbers, $19 places in them, $20 fees (decimal text), $21 the nonce of each key
SELECT txrelay.leader_site_store($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
    $12::text[]::numeric[], $13, $14, $15, $16, $17, $18, $19, $20::text[]::numeric[], $21)
