-- $1 account (alias, 0x id or address)
SELECT txrelay.account_resume($1)
