-- $1 account, $2 epoch, $3 holder
SELECT txrelay.leader_release($1, $2, $3)
