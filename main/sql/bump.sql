SELECT txrelay.bump($1::bigint, $2::numeric)
