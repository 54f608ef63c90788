-- $1 account, $2 epoch, $3 next nonce
SELECT txrelay.leader_nonce($1, $2, $3)
