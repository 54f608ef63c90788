-- $1 name.
SELECT f.name, f.account, f.last_number, f.taken_at, f.waiting,
       extract(epoch FROM clock_timestamp() - f.oldest)::bigint AS oldest_age_s,
       to_jsonb(f.publishers) AS publishers, f.options, f.paused, f.leader_address, f.created_by,
       f.created_at
FROM txrelay.feed_cursors f WHERE f.name = $1
