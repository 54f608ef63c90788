-- $1 accounts, $2 their epochs, $3 the fingerprints that are known of them, $4 how far ahead in ms
SELECT account, lost, has_requests, has_rows, next_ms
FROM txrelay.leader_due($1, $2, $3, $4)
