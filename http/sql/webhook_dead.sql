-- $1 a webhook: the deliveries that it has given up, oldest first; $2 at most this many rows, $3
-- only those with higher numbers. An unknown webhook raises TR010.
WITH hook AS (SELECT (txrelay.webhook_row($1)).name),
rows AS (
    SELECT d.*, a.alias FROM hook w JOIN txrelay.webhook_deliveries d ON d.webhook = w.name
        AND d.dead_at IS NOT NULL
    JOIN txrelay.accounts a USING (account) WHERE $3::bigint IS NULL OR d.number > $3
        ORDER BY d.number LIMIT coalesce($2::bigint, 100))
SELECT json_build_object('webhook', w.name,
    'dead', coalesce((SELECT json_agg(json_build_object('number', r.number, 'id', r.id, 'account',
        r.alias, 'attempts', r.attempts,
        'error', r.error, 'created_at', r.created_at, 'dead_at', r.dead_at, 'body', r.body::json)
        ORDER BY r.number) FROM rows r), '[]'),
    'next', (SELECT CASE WHEN count(*) = coalesce($2::bigint, 100) THEN max(r.number)::text END
             FROM rows r)) FROM hook w
