-- $1 name.
SELECT format('webhook %s is paused', $1::text) FROM txrelay.webhook_pause($1)
