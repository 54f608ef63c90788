-- Transactions, newest first: $1 account, $2 state or stage, $3 outcome, $4 key, $5 creator, $6 hash, $7 nonce, $8 and $9 enqueued
-- from and before, $10 at most this many rows, $11 only those with lower ids. NULL: any. Each table gives its newest ids that fit, in
-- the order of its index on them, and the view is asked for these alone. A page takes as long however many rows there are, unless few
-- of them fit. OFFSET 0: ends are read in that order, and no more than it takes, whatever the planner expects of the filters.
WITH given AS MATERIALIZED (
    SELECT CASE WHEN $1::text IS NOT NULL THEN txrelay.account_of($1) END AS account,
        CASE WHEN $6::text IS NULL THEN 0 ELSE coalesce((SELECT s.id FROM txrelay.status(hash => $6) s), 0) END AS low,
        least($11::bigint - 1, CASE WHEN $6::text IS NULL THEN 9223372036854775807
            ELSE coalesce((SELECT s.id FROM txrelay.status(hash => $6) s), -1) END) AS high,
        txrelay.http_time('from', $8) AS since, txrelay.http_time('before', $9) AS before),
ids AS (
    SELECT u.id FROM (
        (SELECT o.id FROM txrelay.outbox o
         WHERE ($1::text IS NULL OR o.account = (SELECT g.account FROM given g))
           AND o.id BETWEEN (SELECT g.low FROM given g) AND (SELECT g.high FROM given g)
           AND ($2::text IS NULL OR $2 IN ('queued', 'outbox')) AND $3::text IS NULL AND $7::bigint IS NULL
           AND ($4::text IS NULL OR o.key = $4) AND ($5::text IS NULL OR o.creator = $5)
           AND ($8::text IS NULL OR o.created_at >= (SELECT g.since FROM given g))
           AND ($9::text IS NULL OR o.created_at < (SELECT g.before FROM given g))
         ORDER BY o.id DESC LIMIT coalesce($10::bigint, 50))
        UNION ALL
        (SELECT s.id FROM txrelay.outbox_presigned s
         WHERE ($1::text IS NULL OR s.account = (SELECT g.account FROM given g))
           AND s.id BETWEEN (SELECT g.low FROM given g) AND (SELECT g.high FROM given g)
           AND ($2::text IS NULL OR $2 IN ('queued', 'outbox')) AND $3::text IS NULL AND ($7::bigint IS NULL OR s.nonce = $7)
           AND ($4::text IS NULL OR s.key = $4) AND ($5::text IS NULL OR s.creator = $5)
           AND ($8::text IS NULL OR s.created_at >= (SELECT g.since FROM given g))
           AND ($9::text IS NULL OR s.created_at < (SELECT g.before FROM given g))
         ORDER BY s.id DESC LIMIT coalesce($10::bigint, 50))
        UNION ALL
        (SELECT p.id FROM txrelay.pending_transactions p
         WHERE ($1::text IS NULL OR p.account = (SELECT g.account FROM given g))
           AND p.id BETWEEN (SELECT g.low FROM given g) AND (SELECT g.high FROM given g)
           AND ($2::text IS NULL OR $2 IN (p.state::text, 'pending')) AND $3::text IS NULL AND ($7::bigint IS NULL OR p.nonce = $7)
           AND ($4::text IS NULL OR p.key = $4) AND ($5::text IS NULL OR p.creator = $5)
           AND ($8::text IS NULL OR p.created_at >= (SELECT g.since FROM given g))
           AND ($9::text IS NULL OR p.created_at < (SELECT g.before FROM given g))
         ORDER BY p.id DESC LIMIT coalesce($10::bigint, 50))
        UNION ALL
        (SELECT x.id FROM txrelay.site_transactions x
         WHERE ($1::text IS NULL OR x.account = (SELECT g.account FROM given g))
           AND x.id BETWEEN (SELECT g.low FROM given g) AND (SELECT g.high FROM given g)
           AND ($2::text IS NULL OR $2 IN (x.state::text, 'pending')) AND $3::text IS NULL AND ($7::bigint IS NULL OR x.nonce = $7)
           AND ($4::text IS NULL OR x.key = $4) AND ($5::text IS NULL OR x.creator = $5)
           AND ($8::text IS NULL OR x.created_at >= (SELECT g.since FROM given g))
           AND ($9::text IS NULL OR x.created_at < (SELECT g.before FROM given g))
         ORDER BY x.id DESC LIMIT coalesce($10::bigint, 50))
        UNION ALL
        (SELECT f.id FROM (SELECT * FROM txrelay.finished_transactions x
             WHERE x.id BETWEEN (SELECT g.low FROM given g) AND (SELECT g.high FROM given g)
               AND ($2::text IS NULL OR $2 NOT IN ('queued', 'outbox', 'pending')) ORDER BY x.id DESC OFFSET 0) f
         WHERE ($1::text IS NULL OR f.account = (SELECT g.account FROM given g))
           AND ($2::text IS NULL OR $2 IN (f.state::text, 'finished')) AND ($3::text IS NULL OR f.outcome::text = $3)
           AND ($7::bigint IS NULL OR f.nonce = $7)
           AND ($4::text IS NULL OR f.key = $4) AND ($5::text IS NULL OR f.creator = $5)
           AND ($8::text IS NULL OR f.created_at >= (SELECT g.since FROM given g))
           AND ($9::text IS NULL OR f.created_at < (SELECT g.before FROM given g))
         ORDER BY f.id DESC LIMIT coalesce($10::bigint, 50))) u
    ORDER BY u.id DESC LIMIT coalesce($10::bigint, 50)),
rows AS (SELECT t.* FROM txrelay.transactions t WHERE t.id = ANY (ARRAY(SELECT i.id FROM ids i)))
SELECT json_build_object(
    'transactions', coalesce(json_agg(json_build_object('id', r.id, 'account', r.account, 'account_id', r.account_id,
        'stage', r.stage, 'state', r.state, 'outcome', r.outcome, 'nonce', r.nonce, 'attempts', r.attempts, 'hash', r.hash,
        'block_number', r.block_number, 'block_hash', r.block_hash, 'tip', r.tip::text, 'fee', r.fee::text, 'error', r.error,
        'key', r.key, 'creator', r.creator, 'created_at', r.created_at, 'updated_at', r.updated_at,
        'retry_of', r.retry_of, 'retried_as', r.retried_as, 'traceparent', r.traceparent) ORDER BY r.id DESC), '[]'),
    'next', CASE WHEN count(*) = coalesce($10::bigint, 50) THEN min(r.id)::text END) FROM rows r
