-- $1 name: the deliveries that it has given up, oldest first, at most 1000.
SELECT d.number, a.alias AS account, d.id, d.attempts, d.dead_at, d.error, d.created_at
FROM txrelay.webhook_row($1) w JOIN txrelay.webhook_deliveries d ON d.webhook = w.name
AND d.dead_at IS NOT NULL
JOIN txrelay.accounts a USING (account) ORDER BY d.number LIMIT 1000
