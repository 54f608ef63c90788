-- $1 transaction, $2 tip (decimal text; NULL: the next step of the account's policy)
SELECT txrelay.bump($1, $2::text::numeric)
