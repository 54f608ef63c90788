-- $1 account, $2 epoch, $3 reason
SELECT txrelay.leader_pause($1, $2, $3)
