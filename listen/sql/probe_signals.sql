-- The same for a relay, which also records whether the queue has room. $1 the channels.
SELECT count(*), txrelay.queue_measure() FROM pg_listening_channels() c WHERE c = ANY ($1::text[])
