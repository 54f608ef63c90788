SELECT t.id, t.account, t.account_id, t.stage, t.state, t.outcome, t.nonce, t.attempts,
       extract(epoch FROM clock_timestamp() - t.created_at)::bigint AS age_s, t.tip, t.fee,
       t.waits, t.error, t.key, t.creator, t.hash, t.block_number, t.block_hash, t.created_at,
       t.updated_at, t.retry_of, t.retried_as, t.traceparent
FROM txrelay.status(hash => $1) t
