-- $1 name, $2 account, $3 keys (hexadecimal, with commas between), $4 options, $5 number before the
-- first batch.
SELECT format('feed %s of %s takes batch %s next', $1::text, $2::text, $5::bigint + 1)
    FROM txrelay.feed_create($1, $2,
    ARRAY(SELECT decode(k, 'hex') FROM unnest(string_to_array($3, ',')) WITH ORDINALITY u (k, n)
          ORDER BY n), $4::jsonb, $5::bigint)
