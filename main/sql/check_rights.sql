SELECT current_user AS login,
       current_setting('server_version') AS server,
       pg_is_in_recovery() AS standby,
       pg_has_role(current_user, 'txrelay_relay', 'MEMBER') AS may_relay,
       pg_has_role(current_user, 'txrelay_app', 'MEMBER') AS may_enqueue
