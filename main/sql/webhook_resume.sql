-- $1 name.
SELECT format('webhook %s goes on', $1::text) FROM txrelay.webhook_resume($1)
