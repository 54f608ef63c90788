-- What ended without effect and was not retried yet, oldest first: $1 account, $2 outcome, $3
-- creator, $4 and $5 enqueued from and before, $6 at most this many rows. NULL: any.
SELECT t.id, t.account, t.outcome, t.creator, t.created_at, t.error
FROM txrelay.transactions t
WHERE t.stage = 'finished' AND t.outcome IN ('failed', 'expired', 'cancelled', 'usurped',
                                             'dispatch_error') AND t.retried_as IS NULL
  AND ($1::text IS NULL OR t.account = (SELECT l.alias FROM txrelay.leaders l
                                        WHERE l.account = txrelay.account_of($1)))
  AND ($2::text IS NULL OR t.outcome = $2) AND ($3::text IS NULL OR t.creator = $3)
  AND ($4::timestamptz IS NULL OR t.created_at >= $4)
  AND ($5::timestamptz IS NULL OR t.created_at < $5)
  AND t.id IS NOT NULL
ORDER BY t.id LIMIT $6::bigint
