-- $1 account, $2 epoch, $3 days, $4 rows of each kind
SELECT txrelay.leader_cleanup($1::int, $2::bigint, $3::int * interval '1 day', $4::int)
