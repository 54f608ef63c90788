-- $1 transaction, $2 tip (decimal text; NULL: the next step of the account's policy), $3 who asks
-- ('': the login)
SELECT CASE WHEN set_config('txrelay.operator', $3, true) IS NOT NULL THEN txrelay.bump($1,
    $2::text::numeric) END
