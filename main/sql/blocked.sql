-- Accounts that make no progress. $1 NULL: all.
SELECT b.account, b.code, extract(epoch FROM clock_timestamp() - b.since)::bigint AS age_s, b.nonce, b.id, b.state, b.reason,
       b.since, b.paused, b.paused_by, b.suspension, b.account_id
FROM txrelay.blocked_accounts b
WHERE $1::text IS NULL OR b.account = (SELECT l.alias FROM txrelay.leaders l WHERE l.account = txrelay.account_of($1))
ORDER BY b.since, b.account
