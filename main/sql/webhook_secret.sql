-- $1 name: its salt.
SELECT encode(w.salt, 'hex') FROM txrelay.webhook_row($1) w
