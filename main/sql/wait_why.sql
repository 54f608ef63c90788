-- $1 transaction: why it is not done yet.
SELECT t.waits FROM txrelay.status($1::bigint) t WHERE t.waits IS NOT NULL
