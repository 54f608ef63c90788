SELECT txrelay.cancel($1::bigint)
