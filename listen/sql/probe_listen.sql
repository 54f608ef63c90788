-- On how many of the channels $1 this session listens, and the usage of the queue.
SELECT count(*), pg_notification_queue_usage() FROM pg_listening_channels() c
    WHERE c = ANY ($1::text[])
