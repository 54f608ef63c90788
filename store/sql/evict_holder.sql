-- $1 lock key of the account. leader_evict looks at the claim itself; the rest is what the row said before it.
SELECT txrelay.leader_evict($1), a.claimant, a.claimant_address, a.epoch,
       (extract(epoch FROM coalesce(l.expiry_1, a.expiry_1) - clock_timestamp()) * 1000)::bigint
FROM txrelay.accounts a LEFT JOIN txrelay.leases l ON a.leased AND l.holder = a.claimant
WHERE a.lock_key = $1
