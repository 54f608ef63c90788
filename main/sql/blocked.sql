-- Accounts that make no progress, then relays that do not do their work. $1 NULL: all, else one
-- account.
SELECT b.account, b.code, extract(epoch FROM clock_timestamp() - b.since)::bigint AS age_s,
       b.nonce, b.id, b.state, b.reason, b.since, b.paused, b.paused_by, b.suspension,
       b.account_id, NULL::text AS relay
FROM txrelay.account_blocks(CASE WHEN $1::text IS NOT NULL THEN ARRAY[txrelay.account_of($1)] END) b
UNION ALL
SELECT NULL, r.code, extract(epoch FROM clock_timestamp() - r.since)::bigint, NULL, NULL, NULL,
r.reason, r.since, NULL, NULL,
       NULL, NULL, r.relay
FROM txrelay.blocked_relays r WHERE $1::text IS NULL
ORDER BY since, account
