-- $1 accounts, $2 how many rows of an account are looked at: counts beyond that are cut, and ages
-- are of these rows
SELECT a.id, w.n + l.n + p.n, s.n,
       coalesce(extract(epoch FROM clock_timestamp() - least(w.oldest, l.oldest, p.oldest)),
                0)::float8,
       coalesce(extract(epoch FROM clock_timestamp() - s.oldest), 0)::float8
FROM unnest($1::int[]) AS a(id)
CROSS JOIN LATERAL (SELECT count(*) AS n, min(x.created_at) AS oldest FROM (
    SELECT o.created_at FROM txrelay.outbox o WHERE o.account = a.id AND o.not_before IS NULL
    ORDER BY o.priority DESC, o.id LIMIT $2::int) x) w
CROSS JOIN LATERAL (SELECT count(*) AS n, min(x.created_at) AS oldest FROM (
    SELECT o.created_at FROM txrelay.outbox o WHERE o.account = a.id
        AND o.not_before <= clock_timestamp()
    ORDER BY o.not_before LIMIT $2::int) x) l
CROSS JOIN LATERAL (SELECT count(*) AS n, min(x.created_at) AS oldest FROM (
    SELECT o.created_at FROM txrelay.outbox_presigned o WHERE o.account = a.id ORDER BY o.nonce,
        o.id LIMIT $2::int) x) p
CROSS JOIN LATERAL (SELECT count(*) AS n, min(x.created_at) AS oldest FROM (
    SELECT t.created_at FROM txrelay.pending_transactions t WHERE t.account = a.id
        AND t.id IS NOT NULL
    ORDER BY t.nonce LIMIT $2::int) x) s
