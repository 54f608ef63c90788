-- $1 account, $2 epoch, $3 hold (NULL: end the leader's own), $4 reason
SELECT txrelay.leader_pause($1, $2, $3, $4)
