-- $1 account, $2 epoch, $3 nonces, $4 hashes, $5 block hashes, $6 block numbers, $7 extrinsic
-- indexes, $8 outcomes,
-- $9 errors, $10 fees (decimal text)
SELECT txrelay.leader_finish($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text[]::numeric[])
