-- Transactions, newest first: $1 account, $2 state or stage, $3 outcome, $4 key, $5 creator, $6 and
-- $7 enqueued from and before,
-- $8 at most this many rows. NULL: any.
SELECT t.id, t.account, t.account_id, t.stage, t.state, t.outcome, t.nonce, t.attempts,
       extract(epoch FROM clock_timestamp() - t.created_at)::bigint AS age_s, t.tip, t.fee,
       t.waits, t.error, t.key, t.creator, t.hash, t.block_number, t.block_hash, t.created_at,
       t.updated_at, t.retry_of, t.retried_as, t.traceparent
FROM txrelay.transactions t
WHERE t.id IS NOT NULL
  AND ($1::text IS NULL OR t.account = (SELECT l.alias FROM txrelay.leaders l
                                        WHERE l.account = txrelay.account_of($1)))
  AND ($2::text IS NULL OR $2 IN (t.state, t.stage)) AND ($3::text IS NULL OR t.outcome = $3)
  AND ($4::text IS NULL OR t.key = $4) AND ($5::text IS NULL OR t.creator = $5)
  AND ($6::timestamptz IS NULL OR t.created_at >= $6)
  AND ($7::timestamptz IS NULL OR t.created_at < $7)
ORDER BY t.id DESC LIMIT $8::bigint
