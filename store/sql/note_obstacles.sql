-- $1 accounts, $2 their epochs, $3 codes, $4 texts, $5 since how many ms; code NULL: nothing
SELECT txrelay.leader_obstacles($1, $2, $3, $4, $5)
