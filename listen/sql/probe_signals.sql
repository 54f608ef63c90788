-- The same for a relay, which also notes whether there is room to notify. $1 the channels.
SELECT count(*), txrelay.queue_look() FROM pg_listening_channels() c WHERE c = ANY ($1::text[])
