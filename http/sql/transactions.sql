-- Transactions, newest first: $1 account, $2 state or stage, $3 outcome, $4 key, $5 creator, $6 hash, $7 nonce, $8 and $9 enqueued
-- from and before, $10 at most this many rows, $11 only those with lower ids. NULL: any.
WITH rows AS (
    SELECT t.* FROM txrelay.transactions t
    WHERE t.id IS NOT NULL
      AND ($1::text IS NULL OR t.account = (SELECT l.alias FROM txrelay.leaders l WHERE l.account = txrelay.account_of($1)))
      AND ($2::text IS NULL OR $2 IN (t.state, t.stage)) AND ($3::text IS NULL OR t.outcome = $3)
      AND ($4::text IS NULL OR t.key = $4) AND ($5::text IS NULL OR t.creator = $5)
      AND ($6::text IS NULL OR t.id = (SELECT s.id FROM txrelay.status(hash => $6) s)) AND ($7::bigint IS NULL OR t.nonce = $7)
      AND ($8::text IS NULL OR t.created_at >= (SELECT txrelay.http_time('from', $8))) AND ($9::text IS NULL OR t.created_at < (SELECT txrelay.http_time('before', $9)))
      AND ($11::bigint IS NULL OR t.id < $11)
    ORDER BY t.id DESC LIMIT coalesce($10::bigint, 50))
SELECT json_build_object(
    'transactions', coalesce(json_agg(json_build_object('id', r.id, 'account', r.account, 'account_id', r.account_id,
        'stage', r.stage, 'state', r.state, 'outcome', r.outcome, 'nonce', r.nonce, 'attempts', r.attempts, 'hash', r.hash,
        'block_number', r.block_number, 'block_hash', r.block_hash, 'tip', r.tip::text, 'fee', r.fee::text, 'error', r.error,
        'key', r.key, 'creator', r.creator, 'created_at', r.created_at, 'updated_at', r.updated_at,
        'retry_of', r.retry_of, 'retried_as', r.retried_as, 'traceparent', r.traceparent) ORDER BY r.id DESC), '[]'),
    'next', CASE WHEN count(*) = coalesce($10::bigint, 50) THEN min(r.id)::text END) FROM rows r
