-- Each account with its waiting transactions and the reason if it is blocked, the longest wait
-- first.
SELECT l.alias AS account, coalesce(w.queued, 0) AS queued, coalesce(w.pending, 0) AS pending,
       w.oldest_age_s, l.next_nonce, l.holder AS leader,
       extract(epoch FROM l.heartbeat_age)::bigint AS heartbeat_age_s, b.code AS blocked, b.reason
FROM txrelay.leaders l
LEFT JOIN (SELECT t.account, count(*) FILTER (WHERE t.stage = 'outbox') AS queued,
           count(*) FILTER (WHERE t.stage = 'pending') AS pending,
                  extract(epoch FROM clock_timestamp() - min(t.created_at))::bigint AS oldest_age_s
           FROM txrelay.transactions t WHERE t.stage <> 'finished' AND t.id IS NOT NULL
               GROUP BY t.account) w ON w.account = l.alias
LEFT JOIN txrelay.blocked_accounts b ON b.account = l.alias
ORDER BY w.oldest_age_s DESC NULLS LAST, l.alias LIMIT 40
