-- $1 text: leave this token in the session; NULL: only read what an earlier transaction left.
-- Read-only: also whether that is set for this role alone, which set_session.sql overrules. Names
-- are qualified, as there.
SELECT pg_catalog.pg_backend_pid(),
       pg_catalog.pg_is_in_recovery(),
       pg_catalog.current_setting('transaction_read_only') OPERATOR(pg_catalog.=) 'on',
       CASE WHEN $1::pg_catalog.text IS NULL
       THEN COALESCE(pg_catalog.current_setting('txrelay.session', true), '')
            ELSE pg_catalog.set_config('txrelay.session', $1::pg_catalog.text, false) END,
       CASE WHEN pg_catalog.current_setting('transaction_read_only') OPERATOR(pg_catalog.=) 'on'
           THEN
           (SELECT s.source OPERATOR(pg_catalog.~~) '%user' FROM pg_catalog.pg_settings s
            WHERE s.name OPERATOR(pg_catalog.=) 'default_transaction_read_only') ELSE false END
