-- $1 relay, $2 who drains it ('': the login)
SELECT txrelay.relay_drained($1, $2)
