-- $1 accounts, $2 the epochs that are known of them, $3 the fingerprint of the last answer, which
-- had nothing to say; '': none
SELECT subject, taken, holder, holder_address, epoch, lock_held, expiry_1_left_ms,
    expiry_2_left_ms, fingerprint
FROM txrelay.leader_scan($1, $2, p_fingerprint => $3)
