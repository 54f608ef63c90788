-- Transactions, newest first: $1 account, $2 state or stage, $3 outcome, $4 key, $5 creator, $6 hash, $7 nonce, $8 and $9 enqueued
-- from and before, $10 at most this many rows, $11 only those with lower ids. NULL: any.
--
-- `seen` is what is looked at: an index has the filters in it, or it ends after 20,000 rows. So a page takes a bounded time however
-- many rows there are and however few of them fit; `next` says where to go on, also if the page is not full. What is compared with a
-- constant there leaves whole tables out. The view is asked for the rows of the page alone.
WITH given AS MATERIALIZED (
    SELECT CASE WHEN $1::text IS NOT NULL THEN txrelay.account_of($1) END AS account,
        CASE WHEN $6::text IS NOT NULL THEN (SELECT s.id FROM txrelay.status(hash => $6) s) END AS id,
        txrelay.http_time('from', $8) AS since, txrelay.http_time('before', $9) AS before),
seen AS NOT MATERIALIZED (
    SELECT x.* FROM (
        SELECT o.id, 'outbox'::text AS stage, 'queued'::text AS state, NULL::text AS outcome, false AS bad, o.account,
            NULL::bigint AS nonce, o.key, o.creator, o.created_at FROM txrelay.outbox o
        UNION ALL
        SELECT s.id, 'outbox'::text, 'queued'::text, NULL::text, false, s.account, s.nonce, s.key, s.creator, s.created_at
        FROM txrelay.outbox_presigned s
        UNION ALL
        SELECT p.id, 'pending'::text, p.state::text, NULL::text, false, p.account, p.nonce, p.key, p.creator, p.created_at
        FROM txrelay.pending_transactions p
        UNION ALL
        SELECT t.id, 'pending'::text, t.state::text, NULL::text, false, t.account, t.nonce, t.key, t.creator, t.created_at
        FROM txrelay.site_transactions t
        UNION ALL
        SELECT f.id, 'finished'::text, f.state::text, f.outcome::text, f.outcome <> 'ok', f.account, f.nonce, f.key, f.creator,
            f.created_at FROM txrelay.finished_transactions f) x
    WHERE x.id IS NOT NULL AND ($11::bigint IS NULL OR x.id < $11) AND ($6::text IS NULL OR x.id = (SELECT g.id FROM given g))
      AND ($1::text IS NULL OR x.account = (SELECT g.account FROM given g))
      AND ($7::bigint IS NULL OR x.nonce = $7) AND ($4::text IS NULL OR x.key = $4)
      AND ($2::text IS NULL OR CASE WHEN $2 IN ('outbox', 'queued') THEN x.stage = 'outbox'
           WHEN $2 IN ('pending', 'finished') THEN x.stage = $2 ELSE x.stage <> 'outbox' END)
      AND ($3::text IS NULL OR CASE WHEN $3 = 'ok' THEN x.stage = 'finished' ELSE x.bad END)
    ORDER BY x.id DESC LIMIT 20000),
ids AS (
    SELECT s.id FROM seen s
    WHERE ($2::text IS NULL OR $2 IN (s.stage, s.state)) AND ($3::text IS NULL OR s.outcome = $3)
      AND ($5::text IS NULL OR s.creator = $5)
      AND ($8::text IS NULL OR s.created_at >= (SELECT g.since FROM given g))
      AND ($9::text IS NULL OR s.created_at < (SELECT g.before FROM given g))
    ORDER BY s.id DESC LIMIT coalesce($10::bigint, 50)),
rows AS (SELECT t.* FROM txrelay.transactions t WHERE t.id = ANY (ARRAY(SELECT i.id FROM ids i)))
SELECT json_build_object(
    'transactions', coalesce(json_agg(json_build_object('id', r.id, 'account', r.account, 'account_id', r.account_id,
        'stage', r.stage, 'state', r.state, 'outcome', r.outcome, 'nonce', r.nonce, 'attempts', r.attempts, 'hash', r.hash,
        'block_number', r.block_number, 'block_hash', r.block_hash, 'tip', r.tip::text, 'fee', r.fee::text, 'error', r.error,
        'key', r.key, 'creator', r.creator, 'created_at', r.created_at, 'updated_at', r.updated_at,
        'retry_of', r.retry_of, 'retried_as', r.retried_as, 'traceparent', r.traceparent) ORDER BY r.id DESC), '[]'),
    'next', CASE WHEN count(*) = coalesce($10::bigint, 50) THEN min(r.id)::text
        ELSE (SELECT min(s.id)::text FROM (SELECT x.id FROM seen x) s HAVING count(*) = 20000) END) FROM rows r
