-- $1 account, $2 epoch, $3 ids, $4 outcomes, $5 errors
SELECT txrelay.leader_reject($1, $2, $3, $4, $5)
