-- $1 account, $2 epoch. Pending transactions to stop, in nonce order; at least one row (nonce NULL).
SELECT ripe, next_ms, nonce, id, outcome, error
FROM txrelay.leader_look($1, $2)
