-- The feeds, and how far their accounts are behind.
SELECT f.name, f.account, f.last_number, f.taken_at, f.waiting,
       extract(epoch FROM clock_timestamp() - f.oldest)::bigint AS oldest_age_s,
       cardinality(f.publishers) AS publishers, f.paused, f.leader_address
FROM txrelay.feed_cursors f ORDER BY 1
