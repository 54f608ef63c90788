-- $1 account, $2 holder, $3 address, $4 have lock, $5 and $6 expiries in ms
SELECT granted, epoch, holder, holder_address, lock_held, mid_submission, expiry_1_left_ms, expiry_2_left_ms
FROM txrelay.leader_claim($1, $2, $3, $4, $5, $6)
