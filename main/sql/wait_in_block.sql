-- $1 transaction, $2 hash: no row unless the table has these bytes in a block now; otherwise
-- whether they were signed to take the transaction's place.
SELECT coalesce((SELECT bool_or(h.filler) FROM txrelay.history($1::bigint) h
                 WHERE h.hash = s.hash), false)
FROM txrelay.status($1::bigint) s
WHERE s.hash = $2 AND s.state IN ('in_block', 'finality_timeout', 'finalized')
AND coalesce(s.outcome, 'ok') = 'ok'
