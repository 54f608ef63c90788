-- The webhooks, and what each still has to deliver or has given up (at most 10000 are counted).
SELECT w.name, w.url, (SELECT jsonb_agg(a.alias ORDER BY a.alias) FROM txrelay.accounts a
                       WHERE a.account = ANY (w.accounts)) AS accounts,
       to_jsonb(w.outcomes) AS outcomes, CASE WHEN w.paused THEN 'paused'
           ELSE 'active' END AS state,
       (SELECT count(*) FROM (SELECT FROM txrelay.webhook_deliveries d WHERE d.webhook = w.name
                              AND d.dead_at IS NULL LIMIT 10000) x) AS waiting,
       (SELECT count(*) FROM (SELECT FROM txrelay.webhook_deliveries d WHERE d.webhook = w.name
                              AND d.dead_at IS NOT NULL LIMIT 10000) x) AS dead,
       w.created_at, w.created_by, w.rotated_at
FROM txrelay.webhooks w ORDER BY w.name
