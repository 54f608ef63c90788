-- $1 name, $2 SHA-256 in hexadecimal, $3 scopes and $4 accounts with commas between, $5 how long it
-- is good.
SELECT txrelay.token_create($1, decode($2, 'hex'), string_to_array($3, ','),
                            string_to_array($4, ','), $5::interval)
