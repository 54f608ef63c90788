-- $1 transaction, $2 deadline (ms since 1970), $3 last block, $4 who asks ('': the login). Of $2
-- and $3: NULL for its own, the largest bigint for none.
SELECT CASE WHEN set_config('txrelay.operator', $4, true) IS NOT NULL THEN
    txrelay.retry($1::bigint, CASE WHEN $2::bigint = 9223372036854775807 THEN timestamptz 'infinity'
        ELSE to_timestamp($2::bigint::double precision / 1000) END,
    CASE WHEN $3::bigint = 9223372036854775807 THEN 0 ELSE $3::bigint END)::text END
