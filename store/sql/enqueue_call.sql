-- $1 account (alias, 0x id or address), $2 call, $3 key, $4 priority, $5 creator
SELECT txrelay.enqueue($1, $2, key => $3, priority => $4, creator => $5)
