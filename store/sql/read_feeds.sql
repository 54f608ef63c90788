-- $1 accounts, $2 this relay, $3 where it takes feeds
SELECT f.name, f.account, f.last_number, f.publishers, f.options::text, f.paused IS NOT NULL,
    f.leader
FROM txrelay.leader_feeds($1::int[], $2, $3) f
