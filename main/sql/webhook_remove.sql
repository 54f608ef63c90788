-- $1 name.
SELECT format('webhook %s is removed, and with it %s deliveries', $1::text, r)
    FROM txrelay.webhook_remove($1) r
