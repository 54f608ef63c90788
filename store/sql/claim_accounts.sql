-- $1 accounts, $2 holder, $3 address, $4 have their locks, $5 and $6 expiries in ms. In the order
-- of the question.
SELECT c.granted, c.epoch, c.holder, c.holder_address, c.lock_held, c.mid_submission,
       c.expiry_1_left_ms, c.expiry_2_left_ms
FROM unnest($1::int[]) WITH ORDINALITY u (account, n),
    txrelay.leader_claim(u.account, $2, $3, $4, $5, $6) c
ORDER BY u.n
