-- $1 account, $2 epoch. Pending transactions to stop or to bump, in nonce order; then those that
-- ended without a nonce (nonce NULL); at least one row.
SELECT paused, suspension, reborn, transaction_version, tip_start::text, tip_step::text,
       tip_cap::text, tip_step_percent, tip_after_blocks, skip_after_blocks, requeue_usurped,
       low_balance::text, retry_refusals, has_rows, next_ms, fingerprint, nonce, id, outcome,
       error, tip::text, traceparent
FROM txrelay.leader_poll_requests($1, $2)
