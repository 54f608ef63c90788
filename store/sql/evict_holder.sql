-- $1 lock key of the subject. leader_evict looks at the claim itself; the rest is what the row said
-- before it, and which session has the lock without the claim, which must be asked for before it
-- ends.
SELECT txrelay.lock_holder($1), txrelay.leader_evict($1), l.holder, l.holder_address, l.epoch,
       (extract(epoch FROM coalesce(r.expiry_1, l.expiry_1) - clock_timestamp()) * 1000)::bigint
FROM txrelay.leadership l LEFT JOIN txrelay.relay_leases r ON l.leased AND r.holder = l.holder
WHERE l.lock_key = $1
