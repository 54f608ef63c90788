-- $1 text: leave this token in the session; NULL: only read what an earlier transaction left.
SELECT pg_backend_pid(),
       pg_is_in_recovery(),
       current_setting('transaction_read_only')::boolean,
       CASE WHEN $1::text IS NULL THEN coalesce(current_setting('txrelay.session', true), '')
            ELSE set_config('txrelay.session', $1::text, false) END
