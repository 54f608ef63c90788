-- $1 name, $2 URL, $3 accounts and $4 outcomes with commas between, NULL: all.
SELECT format('webhook %s is created; its receiver needs the secret: txrelay webhook secret %s',
              $1::text, $1::text)
FROM txrelay.webhook_create($1, $2, string_to_array($3, ','), string_to_array($4, ','))
