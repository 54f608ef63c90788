-- $1 alias, $2 account id, $3 scheme, $4 genesis, $5 address, $6 lock key, $7 without a key,
-- $8 longest era in blocks, $9 it may sign without an era, $10 aliases of the relay's other
-- accounts
SELECT txrelay.relay_register($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
