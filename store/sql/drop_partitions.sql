-- $1 days
SELECT txrelay.drop_partitions($1::int * interval '1 day')
