-- The accounts: who leads them, and what keeps them from going on. $1 only this one; NULL: all. $2
-- with aliases after this one,
-- $3 at most this many.
WITH rows AS (
    SELECT l.* FROM txrelay.leaders l
    WHERE ($1::text IS NULL OR l.account = txrelay.account_of($1))
    AND ($2::text IS NULL OR l.alias > $2)
    ORDER BY l.alias LIMIT coalesce($3::bigint, 100))
SELECT json_build_object(
    'accounts',
        coalesce(json_agg(json_build_object('alias', r.alias, 'account_id', r.account_id,
                                            'address', r.account_address,
        'next_nonce', r.next_nonce, 'epoch', r.epoch, 'leader', r.holder, 'leader_address',
            r.address,
        'heartbeat_age_s', extract(epoch FROM r.heartbeat_age)::bigint, 'paused', r.paused,
            'paused_by', r.paused_by,
        'paused_reason', r.paused_reason, 'paused_since', r.paused_since, 'suspension',
            r.suspension,
        'blocked', CASE WHEN b.code IS NOT NULL THEN json_build_object('code', b.code, 'reason',
            b.reason, 'since', b.since,
            'nonce', b.nonce, 'id', b.id) END) ORDER BY r.alias), '[]'),
    'next', CASE WHEN count(*) = coalesce($3::bigint, 100) THEN max(r.alias) END)
FROM rows r LEFT JOIN txrelay.account_blocks(ARRAY(SELECT x.account FROM rows x)) b
    ON b.account = r.alias
