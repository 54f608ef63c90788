-- $1 holder, $2 address, $3 digest of its accounts, $4 ttl in ms, $5 leave
SELECT holder, address FROM txrelay.member_beat($1, $2, $3, $4, $5)
