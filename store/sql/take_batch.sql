-- $1 account, $2 epoch, $3 feed, $4 number, $5 publisher, $6 digest, $7 calls, $8 priorities, $9
-- not before and $10 deadlines (ms since 1970), $11 runtime spec versions, $12 tips and $13 their
-- limits (decimal text), $14 last blocks, $15 retries
SELECT t.outcome, t.last_number FROM txrelay.leader_feed_take($1, $2, $3, $4, $5, $6, $7, $8, $9,
    $10, $11, $12::text[]::numeric[], $13::text[]::numeric[], $14, $15) t
