-- $1 name, $2 reason.
SELECT format('feed %s takes no batch until txrelay feed resume', $1::text)
    FROM txrelay.feed_pause($1, $2)
