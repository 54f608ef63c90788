-- $1 transaction
SELECT txrelay.cancel($1)
