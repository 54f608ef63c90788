-- $1 name.
SELECT format('%s is revoked', $1::text) FROM txrelay.token_revoke($1)
