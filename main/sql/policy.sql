SELECT txrelay.account_policy($1, $2::jsonb)
