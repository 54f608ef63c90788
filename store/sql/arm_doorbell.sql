-- $1 accounts. True when no open transaction has enqueued for it; from then on enqueue sends
-- outbox_wake.
SELECT pg_try_advisory_lock(9001, u.key::int) FROM unnest($1::bigint[]) WITH ORDINALITY u (key, n)
    ORDER BY u.n
