-- $1 name.
SELECT format('webhook %s has another secret; for a day the former one signs too', $1::text)
    FROM txrelay.webhook_rotate($1)
