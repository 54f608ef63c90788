-- $1 name, $2 keys (hexadecimal, with commas between).
SELECT format('feed %s has %s publishers', $1::text, cardinality(string_to_array($2, ',')))
    FROM txrelay.feed_publishers($1,
    ARRAY(SELECT decode(k, 'hex') FROM unnest(string_to_array($2, ',')) WITH ORDINALITY u (k, n)
          ORDER BY n))
