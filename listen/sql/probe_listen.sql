-- Does this session still listen, and how full is the queue? $1 the channels.
SELECT count(*), pg_notification_queue_usage() FROM pg_listening_channels() c WHERE c = ANY ($1::text[])
