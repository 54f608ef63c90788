-- $1 lock keys of accounts
SELECT pg_advisory_unlock(u.key) FROM unnest($1::bigint[]) WITH ORDINALITY u (key, n) ORDER BY u.n
