-- $1 lock key of the account
SELECT txrelay.leader_evict($1)
