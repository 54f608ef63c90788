-- $1 transaction: is it known at all?
SELECT FROM txrelay.status($1::bigint)
