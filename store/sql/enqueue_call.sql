-- $1 account (alias, 0x id or address), $2 call, $3 key, $4 priority, $5 creator, $6 not before and
-- $7 deadline (ms since
-- 1970), $8 runtime spec version, $9 tip and $10 its limit (decimal text), $11 last block, $12
-- retries, $13 delay and $14 expires_in (ms), $15 traceparent, $16 who sends it in the creator's
-- name (NULL: nobody else does). An application's open transaction (the same key, strict order) is
-- not waited for for long (set_session.sql): the leader's writes wait behind this.
SELECT CASE WHEN $16::text IS NULL THEN e.id ELSE txrelay.relay_sent(e.id, $16, $5) END FROM (
    SELECT txrelay.enqueue($1, $2, key => $3, priority => $4::int, creator => $5,
        not_before => to_timestamp($6::double precision / 1000),
        deadline => to_timestamp($7::double precision / 1000), spec_version => $8::bigint,
        tip => $9::text::numeric, max_tip => $10::text::numeric, deadline_block => $11,
        retries => $12::bigint, delay => $13::bigint * interval '1 ms',
        expires_in => $14::bigint * interval '1 ms', traceparent => $15) AS id OFFSET 0) e
