-- $1 account, $2 epoch, $3 ids, $4 nonces, $5 hashes, $6 era deaths (NULL: immortal), $7 not before
-- this block, $8 texts
SELECT txrelay.leader_note($1, $2, $3, $4, $5, $6, $7, $8)
