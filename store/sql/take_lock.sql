-- $1 lock keys of accounts. The caller never asks for a lock that its session holds: session locks
-- stack.
SELECT pg_try_advisory_lock(u.key) FROM unnest($1::bigint[]) WITH ORDINALITY u (key, n) ORDER BY u.n
