-- Who led when, latest first: $1 this account, NULL: all; $2 at most this many rows, $3 only those
-- with lower numbers. until: when the next claim of the account came; NULL: it is the last one.
WITH rows AS (
    SELECT h.*, a.alias, (SELECT n.at FROM txrelay.leadership_history n WHERE n.subject = h.subject
        AND n.epoch > h.epoch
        ORDER BY n.epoch LIMIT 1) AS until
    FROM txrelay.leadership_history h JOIN txrelay.accounts a ON a.account = h.subject
    WHERE ($1::text IS NULL OR h.subject = txrelay.account_of($1))
    AND ($3::bigint IS NULL OR h.id < $3)
    ORDER BY h.id DESC LIMIT coalesce($2::bigint, 100))
SELECT json_build_object(
    'leaders',
        coalesce(json_agg(json_build_object('account', r.alias, 'epoch', r.epoch, 'leader',
                                            r.holder,
        'leader_address', r.address, 'since', r.at, 'until', r.until) ORDER BY r.id DESC), '[]'),
    'next', CASE WHEN count(*) = coalesce($2::bigint, 100) THEN min(r.id)::text END) FROM rows r
