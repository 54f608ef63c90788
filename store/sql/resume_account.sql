-- $1 account (alias, 0x id or address), $2 who asks ('': the login)
SELECT CASE WHEN set_config('txrelay.operator', $2, true) IS NOT NULL
    THEN txrelay.account_resume($1) END
