-- $1 account, $2 epoch, $3 names, $4 addresses, $5 keys, $6 this site, $7 own keys, $8 sticky, $9
-- silence is down,
-- $10 blocks of a range, $11 blocks of an era, $12 approvals, $13 finalized block, $14 the nonce of
-- each key after it
SELECT txrelay.leader_site_setup($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
