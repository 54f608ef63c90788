-- $1 holder, $2 address, $3 digest of its accounts, $4 ttl in ms, $5 this session is the relay's
-- own, $6 leave, $7 best block
SELECT holder, best FROM txrelay.member_heartbeat($1, $2, $3, $4, $5, $6, $7)
