-- $1 transaction, $2 hash: were these bytes signed to take the transaction's place?
SELECT filler FROM txrelay.history($1) WHERE hash = $2 LIMIT 1
