-- $1 holder, $2 accounts, $3 epochs, $4 and $5 expiries in ms, $6 finalized block (NULL: not
-- known), $7 the fingerprint of the last renewal, which renewed the same ones; '': none. Does not
-- verify the locks: renew_claims.sql does.
SELECT renewed, unchanged, fingerprint FROM txrelay.leader_renew($1, $2, $3, $4, $5, p_block => $6,
    p_fingerprint => $7)
