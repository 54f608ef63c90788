-- txrelay: the errors that several functions raise.
--
-- An application can cause TR010 to TR014. Their text names the argument, the value, the bound and
-- the way out.
--
-- Postgres adds a line of context for each function between the error and the caller, and clients
-- print these. So a function that applications call raises its errors itself: the context is then
-- one line, with the name that the caller wrote. It calls checks that raise only in a block that
-- catches (SQLSTATE 'TR000' is the whole class) and raises the same error again. Such a block is a
-- subtransaction. It costs an id of its own, and a place in the server's cache of subtransactions,
-- only if it writes: so these blocks read. The one statement of enqueue is in none
-- (test/schema/test_errors.py).

CREATE OR REPLACE FUNCTION txrelay.bad_argument(p_function text, p_argument text, p_what text,
                                                p_hint text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR011', MESSAGE = format('%s: %s %s', p_function, p_argument,
        p_what), HINT = p_hint;
END
$$;

CREATE OR REPLACE FUNCTION txrelay.order_error(p_message text, p_hint text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR003', MESSAGE = p_message, HINT = p_hint;
END
$$;

CREATE OR REPLACE FUNCTION txrelay.batch_changed(p_function text, p_what text, p_found bigint,
                                                 p_given int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR002',
        MESSAGE = format('%s: %s of %s rows are still in %s', p_function, p_found, p_given, p_what),
        HINT = 'Rows changed since they were read; nothing was written. Read them again and build '
               'the batch again.';
END
$$;

CREATE OR REPLACE FUNCTION txrelay.other_version(p_function text, a txrelay.accounts,
                                                 p_version bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR002',
        MESSAGE = format('%s: signed under transaction version %s, and account %s signs under %s',
            p_function, p_version, a.alias, a.transaction_version),
        HINT = 'Calls that were made before may mean something else now. leader_pause with '
               'transaction_version; an '
            'operator judges, and account_resume accepts the new one.';
END
$$;

-- An idempotency key stands for one call. Options are not part of the comparison, because a retry
-- may compute another deadline.
CREATE OR REPLACE FUNCTION txrelay.key_reused_text(p_key text, p_id bigint) RETURNS text
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
    SELECT format('idempotency key "%s" was used before with another call, for transaction %s',
                  left(p_key, 80), p_id)
$$;

CREATE OR REPLACE FUNCTION txrelay.key_reused_hint() RETURNS text
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
    SELECT 'Use a new key for a new call, or send the first call again to get its id.'
$$;
