-- $1 transaction, $2 who asks ('': the login)
SELECT CASE WHEN set_config('txrelay.operator', $2, true) IS NOT NULL THEN txrelay.cancel($1) END
