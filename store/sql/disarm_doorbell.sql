-- $1 account
SELECT pg_advisory_unlock(9001, $1)
