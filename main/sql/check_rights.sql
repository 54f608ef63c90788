SELECT current_user AS login,
       current_setting('server_version') AS server,
       pg_is_in_recovery() AS standby,
       (SELECT pg_has_role(current_user, r.oid, 'MEMBER') FROM pg_roles r
        WHERE r.rolname = 'txrelay_relay') AS may_relay,
       to_regnamespace('txrelay') IS NOT NULL AS has_schema
