-- Which accounts there are, and the position: what ended before it is seen by everything that is read later.
SELECT a.account, a.alias, encode(a.account_id, 'hex'), a.address, one.position
FROM (SELECT txrelay.follow_position() AS position) AS one LEFT JOIN txrelay.follow_accounts a ON true
ORDER BY a.account
