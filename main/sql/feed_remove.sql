-- $1 name.
SELECT format('feed %s is removed; its last batch was %s', $1::text, r)
    FROM txrelay.feed_remove($1) r
