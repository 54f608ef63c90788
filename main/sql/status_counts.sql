-- How many transactions of an account there are ($1; NULL: of each), in constant time.
SELECT c.alias AS account, c.stage, c.state, c.count, c.more,
       extract(epoch FROM clock_timestamp() - c.oldest)::bigint AS oldest_age_s,
       c.fee
FROM txrelay.counts($1) c
