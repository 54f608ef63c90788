-- Which accounts there are, and the database's clock: everything that is read later is at least as new.
SELECT a.account, a.alias, encode(a.account_id, 'hex'), a.address,
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM (SELECT 1) AS one LEFT JOIN txrelay.accounts a ON true
ORDER BY a.account
