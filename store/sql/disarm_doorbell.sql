-- $1 accounts
SELECT pg_advisory_unlock(9001, u.key::int) FROM unnest($1::bigint[]) WITH ORDINALITY u (key, n)
    ORDER BY u.n
