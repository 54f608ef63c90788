-- $1 account. Succeeds when no open transaction has enqueued for it; from then on enqueue sends outbox_wake.
SELECT pg_try_advisory_lock(9001, $1)
