SELECT txrelay.enqueue($1, $2::bytea, $3, $4::int, $5::timestamptz, $6::timestamptz, $7, $8::int)
