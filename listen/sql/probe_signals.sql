-- The same for a relay, which also records whether the queue has room, and reads by how many
-- seconds the server's clock is behind. $1 the channels.
SELECT count(*), txrelay.queue_measure(), txrelay.clock_behind() FROM pg_listening_channels() c
    WHERE c = ANY ($1::text[])
