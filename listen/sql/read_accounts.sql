-- The accounts; the position (all later reads see what ended before it); and the retention horizon,
-- before which records were removed (0: none were).
SELECT a.account, a.alias, encode(a.account_id, 'hex'), a.address, one.position, one.kept
FROM (SELECT txrelay.follow_position() AS position,
             coalesce((SELECT (extract(epoch FROM k.dropped_before) * 1000000)::bigint
                       FROM txrelay.follow_kept k), 0) AS kept
     ) AS one LEFT JOIN txrelay.follow_accounts a ON true
ORDER BY a.account
