-- $1 ids as an array, $2 deadline, $3 deadline_block. All or none.
SELECT u.id, txrelay.retry(u.id, $2::timestamptz, $3::bigint) AS new_id
FROM unnest($1::bigint[]) WITH ORDINALITY u (id, n) ORDER BY u.n
