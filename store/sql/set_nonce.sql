-- $1 account, $2 epoch, $3 next nonce, $4 it may be lower than the stored one, $5 a new life of the
-- account begins
SELECT txrelay.leader_nonce($1, $2, $3, $4, $5)
