-- $1 name, $2 number of a delivery or NULL.
SELECT format('%s deliveries of webhook %s are due again', r, $1::text)
    FROM txrelay.webhook_again($1, $2::bigint) r
