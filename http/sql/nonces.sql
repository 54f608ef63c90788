-- $1 an account: its nonces in use, in order, at most $2 of them from the lowest one on (or from
-- $3), each with its transaction or as a filler. `gaps`: nonces between the first of these and the
-- last that no row has.
WITH account AS (SELECT l.alias, l.account, l.next_nonce FROM txrelay.leaders l
                 WHERE l.account = txrelay.account_of($1)),
rows AS (
    SELECT p.* FROM txrelay.pending_transactions p JOIN account USING (account)
    WHERE $3::bigint IS NULL OR p.nonce >= $3 ORDER BY p.account,
    p.nonce LIMIT coalesce($2::bigint, 256)),
gaps AS (
    SELECT r.nonce + 1 AS first, r.after - 1 AS last
    FROM (SELECT x.nonce, lead(x.nonce) OVER (ORDER BY x.nonce) AS after FROM rows x) r
    WHERE r.after > r.nonce + 1)
SELECT json_build_object('account', a.alias, 'next_nonce', a.next_nonce,
    'nonces',
    coalesce((SELECT json_agg(json_build_object('nonce', r.nonce, 'id', r.id, 'state', r.state,
        'filler', r.id IS NULL,
        'hash', '0x' || encode(r.hash, 'hex'), 'block_number', r.block_number, 'error', r.error,
        'blocked_since', r.blocked_since,
        'updated_at', r.updated_at) ORDER BY r.nonce) FROM rows r), '[]'),
    'gaps', coalesce((SELECT json_agg(json_build_object('first', g.first, 'last', g.last)
                                      ORDER BY g.first) FROM gaps g), '[]'))
FROM account a
