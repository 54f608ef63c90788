-- $1 the genesis in hexadecimal
SELECT account, alias, encode(account_id, 'hex') FROM txrelay.accounts
    WHERE genesis = decode($1, 'hex') ORDER BY alias
