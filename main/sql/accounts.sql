-- The accounts, and who leads them. $1 NULL: all.
SELECT l.alias, l.account_id, l.account_address, l.epoch, l.holder, l.address, l.lock_held,
       l.heartbeat, extract(epoch FROM l.heartbeat_age)::bigint AS heartbeat_age_s, l.expiry_1,
       l.expiry_2, l.next_nonce, l.paused, l.paused_by, l.suspension, l.paused_reason,
       l.paused_since, l.reborn, l.life_since, l.account
FROM txrelay.leaders l WHERE $1::text IS NULL OR l.account = txrelay.account_of($1) ORDER BY 1
