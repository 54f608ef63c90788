SELECT * FROM txrelay.status($1::text)
