-- $1 account, $2 epoch, $3 nonces, $4 hashes, $5 states, $6 block hashes, $7 block numbers, $8
-- errors
SELECT txrelay.leader_record_status($1, $2, $3, $4, $5, $6, $7, $8)
