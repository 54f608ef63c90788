-- $1 this relay, $2 deliveries of one webhook and account, $3 accounts of one webhook, at most.
SELECT w.webhook, w.account, w.number, w.id, w.attempts, w.url, encode(w.salt, 'hex'),
    encode(w.salt_before, 'hex'), w.body, w.due_ms, w.live
FROM txrelay.leader_webhooks($1, $2::int, $3::int) w
