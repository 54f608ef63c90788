-- $1 account, $2 epoch, $3 state, $4 who coordinates (-1: nobody), $5 since this height, $6 why, $7
-- a bit for each site that is away
SELECT txrelay.leader_site_note($1, $2, $3, $4, $5, $6, $7)
