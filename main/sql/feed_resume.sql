-- $1 name.
SELECT format('feed %s takes batches again', $1::text) FROM txrelay.feed_resume($1)
