-- Which accounts there are; the position: what ended before it is seen by everything that is read later; and what
-- retention took: records from before that are gone (0: nothing).
SELECT a.account, a.alias, encode(a.account_id, 'hex'), a.address, one.position, one.kept
FROM (SELECT txrelay.follow_position() AS position,
             coalesce((SELECT (extract(epoch FROM k.dropped_before) * 1000000)::bigint FROM txrelay.follow_kept k), 0) AS kept
     ) AS one LEFT JOIN txrelay.follow_accounts a ON true
ORDER BY a.account
