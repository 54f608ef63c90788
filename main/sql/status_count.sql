-- How many transactions there are, and for how long the oldest has been there: $1 to $7 as in
-- status_list.sql.
SELECT t.account, t.stage, coalesce(t.outcome, t.state) AS state, count(*) AS count, false AS more,
       extract(epoch FROM clock_timestamp() - min(t.created_at))::bigint AS oldest_age_s,
       sum(t.fee) AS fee
FROM txrelay.transactions t
WHERE t.id IS NOT NULL
  AND ($1::text IS NULL OR t.account = (SELECT l.alias FROM txrelay.leaders l
                                        WHERE l.account = txrelay.account_of($1)))
  AND ($2::text IS NULL OR $2 IN (t.state, t.stage)) AND ($3::text IS NULL OR t.outcome = $3)
  AND ($4::text IS NULL OR t.key = $4) AND ($5::text IS NULL OR t.creator = $5)
  AND ($6::timestamptz IS NULL OR t.created_at >= $6)
  AND ($7::timestamptz IS NULL OR t.created_at < $7)
GROUP BY 1, 2, 3 ORDER BY 1, array_position(ARRAY['outbox', 'pending', 'finished'], t.stage), 3
