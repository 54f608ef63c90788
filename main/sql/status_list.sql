SELECT * FROM txrelay.transactions WHERE ($1::text IS NULL OR account = $1) ORDER BY id DESC LIMIT $2::int
