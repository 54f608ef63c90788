-- The webhooks by name, and what each still has to deliver or has given up (at most 10000 are
-- counted): $1 at most this many rows,
-- $2 only names after this one.
WITH rows AS (
    SELECT w.* FROM txrelay.webhooks w WHERE $2::text IS NULL OR w.name > $2
        ORDER BY w.name LIMIT coalesce($1::bigint, 100))
SELECT json_build_object(
    'webhooks', coalesce(json_agg(json_build_object('name', r.name, 'url', r.url,
        'accounts', (SELECT json_agg(a.alias ORDER BY a.alias) FROM txrelay.accounts a
                     WHERE a.account = ANY (r.accounts)),
        'outcomes', to_json(r.outcomes), 'paused', r.paused,
        'waiting', (SELECT count(*) FROM (SELECT FROM txrelay.webhook_deliveries d
            WHERE d.webhook = r.name AND d.dead_at IS NULL LIMIT 10000) x),
        'dead', (SELECT count(*) FROM (SELECT FROM txrelay.webhook_deliveries d
            WHERE d.webhook = r.name AND d.dead_at IS NOT NULL LIMIT 10000) x),
        'created_at', r.created_at, 'created_by', r.created_by, 'rotated_at', r.rotated_at)
            ORDER BY r.name), '[]'),
    'next', CASE WHEN count(*) = coalesce($1::bigint, 100) THEN max(r.name) END) FROM rows r
