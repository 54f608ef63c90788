-- $1 SHA-256 of the token in hexadecimal, $2 scope, $3 account or NULL.
SELECT t.name, t.allowed FROM txrelay.token_use(decode($1, 'hex'), $2, $3) t
