-- $1 numbers that were taken, $2 one that failed, $3 why, $4 milliseconds until it is due again, $5
-- given up.
SELECT txrelay.leader_webhooks_done($1::bigint[], $2::bigint, $3, $4::bigint, $5::boolean)
