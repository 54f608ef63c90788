-- The tokens of the HTTP interface, without their hashes.
SELECT t.name, to_jsonb(t.scopes) AS scopes,
       (SELECT jsonb_agg(a.alias ORDER BY a.alias) FROM txrelay.accounts a
        WHERE a.account = ANY (t.accounts)) AS accounts,
       CASE WHEN t.revoked_at IS NOT NULL THEN 'revoked' WHEN t.expires_at <= clock_timestamp()
           THEN 'expired' ELSE 'good' END AS state,
       t.created_at, t.created_by, t.expires_at, t.revoked_at, t.revoked_by
FROM txrelay.tokens t ORDER BY t.name
