-- $1 lock key of the account
SELECT pg_advisory_unlock($1)
