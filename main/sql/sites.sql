-- The sites of each account, and who coordinates it, as the leader of this database's site sees it.
-- $1 NULL: all, else one account.
SELECT s.account, m.site, m.self, m.coordinates, m.away, s.since_height AS since, s.reason,
       s.coordinator, s.state, s.policy, s.range_blocks, s.era_blocks, s.approvals,
       s.silence_is_down, s.own_keys, m.address, m.key, m.next_nonce, s.final, s.wait_until,
       s.granted, s.dispatched, s.noted_at
FROM txrelay.sites s JOIN txrelay.site_members m ON m.account = s.account
WHERE $1::text IS NULL OR s.account = (SELECT l.alias FROM txrelay.leaders l
                                       WHERE l.account = txrelay.account_of($1))
ORDER BY s.account, m.member
