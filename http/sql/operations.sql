-- What operators did, newest first: $1 at most this many rows, $2 only those with lower numbers.
WITH rows AS (
    SELECT o.*, a.alias FROM txrelay.operations o LEFT JOIN txrelay.accounts a USING (account)
    WHERE $2::bigint IS NULL OR o.id < $2 ORDER BY o.id DESC LIMIT coalesce($1::bigint, 50))
SELECT json_build_object(
    'operations',
        coalesce(json_agg(json_build_object('number', r.id, 'at', r.at, 'who', r.who, 'login',
                                            r.login, 'via', r.via,
        'action', r.action, 'id', r.transaction, 'account', r.alias, 'subject', r.subject,
            'arguments', r.arguments, 'before', r.before,
        'after', r.after, 'answer', r.answer) ORDER BY r.id DESC), '[]'),
    'next', CASE WHEN count(*) = coalesce($1::bigint, 50) THEN min(r.id)::text END) FROM rows r
