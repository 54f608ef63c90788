-- $1 lock key of the account. The caller never asks for a lock that its session holds: session locks stack.
SELECT pg_try_advisory_lock($1)
