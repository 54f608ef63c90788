-- $1 account, $2 epoch, $3 calls, $4 the times of their blocks (ms since 1970)
SELECT s.id, s.equals FROM txrelay.leader_site_match($1, $2, $3, $4) s
