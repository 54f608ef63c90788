-- $1 account, $2 call in hexadecimal, then the options of txrelay.enqueue; $16 the token's hash. No
-- row: it is good no more. NULL: it is not good for this account. Its keys are its own
-- (txrelay.key_role).
SELECT CASE WHEN u.allowed AND set_config('txrelay.token', u.name, true) IS NOT NULL THEN
    json_build_object('id', txrelay.enqueue($1, decode($2, 'hex'), key => $3,
                                            creator => coalesce($4, u.name),
    traceparent => $5, tip => $6::numeric, max_tip => $7::numeric,
        not_before => txrelay.http_time('not_before', $8),
    deadline => txrelay.http_time('deadline', $9),
    delay => txrelay.http_span('delay', $10), expires_in => txrelay.http_span('expires_in', $11),
    priority => coalesce($12::bigint, 0), spec_version => $13::bigint,
    retries => coalesce($14::bigint, 0), deadline_block => $15::bigint)) END
FROM txrelay.token_use(decode($16, 'hex'), 'enqueue', $1) u
