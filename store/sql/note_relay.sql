-- $1 holder, $2 code, $3 text, $4 since how many ms; code NULL: nothing
SELECT txrelay.relay_obstacle($1, $2, $3, $4)
