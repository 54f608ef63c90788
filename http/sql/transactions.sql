-- Transactions, newest first: $1 account, $2 state or stage, $3 outcome, $4 key, $5 creator, $6
-- hash, $7 nonce, $8 and $9 enqueued from and before, $10 at most this many rows, $11 only those
-- with lower ids. NULL: any.
--
-- A page looks at about 20,000 rows at most, whatever is asked for, and `next` says where to go on,
-- also if the page is not full. `way` is the one filter by which rows are looked for: a hash, an
-- account and a nonce, a key, an account that has at most 20,000 rows, an outcome that is not ok;
-- else all rows by id. All other filters are compared in `ids`: where no index serves them, a table
-- would be read to its end before enough rows fit. So each branch of `seen` has an index of its
-- own, orders by it where another one might look cheaper, and is skipped before it reads anything
-- unless it is the way. (For a key the tables of what has not ended are read whole: an index would
-- make each enqueue dearer.) Each execution skips for itself, so one plan serves all values:
-- sessions force a generic one. `ids` compares in a CASE and names a constant limit, so that the
-- planner expects to stop early: the branches are merged, not sorted.
WITH given AS MATERIALIZED (
    SELECT a.*, CASE WHEN $6::text IS NOT NULL THEN 'hash' WHEN a.account IS NOT NULL
        AND $7::bigint IS NOT NULL THEN 'nonce'
        WHEN $4::text IS NOT NULL THEN 'key'
        WHEN a.account IS NOT NULL AND (SELECT count(*) FROM (
            (SELECT FROM txrelay.finished_transactions f WHERE f.account = a.account
             ORDER BY f.account, f.nonce LIMIT 20001)
            UNION ALL
            (SELECT FROM txrelay.pending_transactions p WHERE p.account = a.account
             ORDER BY p.account, p.nonce LIMIT 20001)
            UNION ALL
            (SELECT FROM txrelay.outbox o WHERE o.account = a.account AND o.not_before IS NULL
                ORDER BY o.account, o.priority DESC, o.id LIMIT 20001)
            UNION ALL
            (SELECT FROM txrelay.outbox o WHERE o.account = a.account AND o.not_before IS NOT NULL
                ORDER BY o.account, o.not_before LIMIT 20001)) n) <= 20000 THEN 'account'
        WHEN $3::text <> 'ok' THEN 'bad' ELSE 'id' END AS way
    FROM (SELECT CASE WHEN $1::text IS NOT NULL THEN txrelay.account_of($1) END AS account,
            CASE WHEN $6::text IS NOT NULL THEN (SELECT s.id FROM txrelay.status(hash => $6) s) END
            AS id,
            txrelay.http_time('from', $8) AS since, txrelay.http_time('before', $9) AS before,
            coalesce($11::bigint, 9223372036854775807) AS below) a),
outbox AS NOT MATERIALIZED (
    SELECT o.id, 'outbox'::text AS stage, 'queued'::text AS state, NULL::text AS outcome,
        o.account, NULL::bigint AS nonce, o.key, o.creator, o.created_at, o.not_before, o.priority
        FROM txrelay.outbox o
    WHERE $3::text IS NULL AND $7::bigint IS NULL
        AND ($2::text IS NULL OR $2 IN ('outbox', 'queued'))),
presigned AS NOT MATERIALIZED (
    SELECT s.id, 'outbox'::text AS stage, 'queued'::text AS state, NULL::text AS outcome,
        s.account, s.nonce, s.key, s.creator, s.created_at
    FROM txrelay.outbox_presigned s WHERE $3::text IS NULL
        AND ($2::text IS NULL OR $2 IN ('outbox', 'queued'))),
pending AS NOT MATERIALIZED (
    SELECT p.id, 'pending'::text AS stage, p.state::text AS state, NULL::text AS outcome,
        p.account, p.nonce, p.key, p.creator, p.created_at
    FROM txrelay.pending_transactions p
    WHERE $3::text IS NULL AND ($2::text IS NULL OR $2 NOT IN ('outbox', 'queued', 'finished'))
    AND p.id IS NOT NULL),
sited AS NOT MATERIALIZED (
    SELECT t.id, 'pending'::text AS stage, t.state::text AS state, NULL::text AS outcome,
        t.account, t.nonce, t.key, t.creator, t.created_at
    FROM txrelay.site_transactions t WHERE $3::text IS NULL
        AND ($2::text IS NULL OR $2 NOT IN ('outbox', 'queued', 'finished'))),
finished AS NOT MATERIALIZED (
    SELECT f.id, 'finished'::text AS stage, f.state::text AS state, f.outcome::text AS outcome,
        f.account, f.nonce, f.key, f.creator,
        f.created_at, f.outcome <> 'ok' AS bad FROM txrelay.finished_transactions f
    WHERE ($2::text IS NULL OR $2 NOT IN ('outbox', 'queued', 'pending')) AND f.id IS NOT NULL),
seen AS NOT MATERIALIZED (
    SELECT x.* FROM (
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM outbox x WHERE (SELECT g.way FROM given g) = 'hash'
            AND x.id = (SELECT g.id FROM given g) AND x.id < (SELECT g.below FROM given g))
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM presigned x WHERE (SELECT g.way FROM given g) = 'hash'
            AND x.id = (SELECT g.id FROM given g) AND x.id < (SELECT g.below FROM given g))
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM pending x WHERE (SELECT g.way FROM given g) = 'hash'
            AND x.id = (SELECT g.id FROM given g) AND x.id < (SELECT g.below FROM given g))
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM sited x WHERE (SELECT g.way FROM given g) = 'hash'
            AND x.id = (SELECT g.id FROM given g) AND x.id < (SELECT g.below FROM given g))
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM finished x WHERE (SELECT g.way FROM given g) = 'hash'
            AND x.id = (SELECT g.id FROM given g) AND x.id < (SELECT g.below FROM given g))
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM presigned x WHERE (SELECT g.way FROM given g) = 'nonce'
            AND x.account = (SELECT g.account FROM given g) AND x.nonce = $7::bigint
            AND x.id < (SELECT g.below FROM given g))
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM pending x WHERE (SELECT g.way FROM given g) = 'nonce'
            AND x.account = (SELECT g.account FROM given g) AND x.nonce = $7::bigint
            AND x.id < (SELECT g.below FROM given g))
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM sited x WHERE (SELECT g.way FROM given g) = 'nonce' AND x.account = (SELECT g.account
            FROM given g) AND x.nonce = $7::bigint AND x.id < (SELECT g.below FROM given g))
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM finished x WHERE (SELECT g.way FROM given g) = 'nonce'
            AND x.account = (SELECT g.account FROM given g) AND x.nonce = $7::bigint
            AND x.id < (SELECT g.below FROM given g))
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM outbox x WHERE (SELECT g.way FROM given g) = 'key' AND x.key = $4::text)
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM presigned x WHERE (SELECT g.way FROM given g) = 'key' AND x.key = $4::text)
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM pending x WHERE (SELECT g.way FROM given g) = 'key' AND x.key = $4::text)
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM sited x WHERE (SELECT g.way FROM given g) = 'key' AND x.key = $4::text)
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM finished x WHERE (SELECT g.way FROM given g) = 'key' AND x.key = $4::text)
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM outbox x WHERE (SELECT g.way FROM given g) = 'account'
            AND x.account = (SELECT g.account FROM given g) AND x.not_before IS NULL
        ORDER BY x.account, x.priority DESC, x.id LIMIT 20000)
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM outbox x WHERE (SELECT g.way FROM given g) = 'account'
            AND x.account = (SELECT g.account FROM given g) AND x.not_before IS NOT NULL
        ORDER BY x.account, x.not_before LIMIT 20000)
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM presigned x WHERE (SELECT g.way FROM given g) = 'account'
            AND x.account = (SELECT g.account FROM given g)
        ORDER BY x.account, x.nonce LIMIT 20000)
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM pending x WHERE (SELECT g.way FROM given g) = 'account'
            AND x.account = (SELECT g.account FROM given g)
        ORDER BY x.account, x.nonce LIMIT 20000)
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM sited x WHERE (SELECT g.way FROM given g) = 'account'
            AND x.account = (SELECT g.account FROM given g)
        ORDER BY x.account, x.nonce LIMIT 20000)
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM finished x WHERE (SELECT g.way FROM given g) = 'account'
            AND x.account = (SELECT g.account FROM given g)
        ORDER BY x.account, x.nonce LIMIT 20000)
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM finished x WHERE (SELECT g.way FROM given g) = 'bad' AND x.bad
            AND x.id < (SELECT g.below FROM given g)
        ORDER BY x.id DESC LIMIT 20000)
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM outbox x WHERE (SELECT g.way FROM given g) = 'id'
            AND x.id < (SELECT g.below FROM given g) ORDER BY x.id DESC LIMIT 20000)
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM presigned x WHERE (SELECT g.way FROM given g) = 'id'
            AND x.id < (SELECT g.below FROM given g) ORDER BY x.id DESC LIMIT 20000)
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM pending x WHERE (SELECT g.way FROM given g) = 'id'
            AND x.id < (SELECT g.below FROM given g) ORDER BY x.id DESC LIMIT 20000)
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM sited x WHERE (SELECT g.way FROM given g) = 'id'
            AND x.id < (SELECT g.below FROM given g) ORDER BY x.id DESC LIMIT 20000)
        UNION ALL
        (SELECT x.id, x.stage, x.state, x.outcome, x.account, x.nonce, x.key, x.creator,
         x.created_at
        FROM finished x WHERE (SELECT g.way FROM given g) = 'id'
            AND x.id < (SELECT g.below FROM given g) ORDER BY x.id DESC LIMIT 20000)) x
    WHERE x.id < (SELECT g.below FROM given g) ORDER BY x.id DESC LIMIT 20000),
ids AS (
    SELECT i.id FROM (
        SELECT s.id FROM seen s
        WHERE CASE WHEN ($1::text IS NULL OR s.account = (SELECT g.account FROM given g))
        AND ($7::bigint IS NULL OR s.nonce = $7)
            AND ($2::text IS NULL OR $2 IN (s.stage, s.state))
            AND ($3::text IS NULL OR s.outcome = $3)
            AND ($4::text IS NULL OR s.key = $4) AND ($5::text IS NULL OR s.creator = $5)
            AND ($8::text IS NULL OR s.created_at >= (SELECT g.since FROM given g))
            AND ($9::text IS NULL OR s.created_at < (SELECT g.before FROM given g)) THEN true END
        ORDER BY s.id DESC LIMIT 500) i
    ORDER BY i.id DESC LIMIT coalesce($10::bigint, 50)),
rows AS (SELECT t.* FROM txrelay.transactions t WHERE t.id = ANY (ARRAY(SELECT i.id FROM ids i)))
SELECT json_build_object(
    'transactions',
        coalesce(json_agg(json_build_object('id', r.id, 'account', r.account, 'account_id',
                                            r.account_id,
        'stage', r.stage, 'state', r.state, 'outcome', r.outcome, 'nonce', r.nonce, 'attempts',
            r.attempts, 'hash', r.hash,
        'block_number', r.block_number, 'block_hash', r.block_hash, 'tip', r.tip::text, 'fee',
            r.fee::text, 'error', r.error,
        'key', r.key, 'creator', r.creator, 'created_at', r.created_at, 'updated_at', r.updated_at,
        'retry_of', r.retry_of, 'retried_as', r.retried_as, 'traceparent', r.traceparent)
        ORDER BY r.id DESC), '[]'),
    'next', CASE WHEN count(*) = coalesce($10::bigint, 50) THEN min(r.id)::text
        ELSE (SELECT min(s.id)::text FROM (SELECT x.id FROM seen x) s HAVING count(*) = 20000) END)
        FROM rows r
