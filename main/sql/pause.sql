-- $1 account, $2 reason.
SELECT format('%s is paused: nothing gets a nonce until txrelay resume', l.alias)
FROM txrelay.account_pause($1, $2) CROSS JOIN txrelay.leaders l
WHERE l.account = txrelay.account_of($1)
