-- $1 account, $2 epoch, $3 a block not lower than any that was known when commits were lost
SELECT txrelay.leader_heard($1, $2, $3)
