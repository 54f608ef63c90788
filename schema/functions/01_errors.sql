-- txrelay: the errors that several functions raise.
--
-- An application can cause TR010 to TR012. Their text names the argument, the value, the bound and the way out.

CREATE OR REPLACE FUNCTION txrelay.bad_argument(p_function text, p_argument text, p_what text, p_hint text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR011', MESSAGE = format('%s: %s %s', p_function, p_argument, p_what),
        HINT = p_hint;
END
$$;

CREATE OR REPLACE FUNCTION txrelay.order_error(p_message text, p_hint text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR003', MESSAGE = p_message, HINT = p_hint;
END
$$;

CREATE OR REPLACE FUNCTION txrelay.batch_changed(p_function text, p_what text, p_found bigint, p_given int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR002',
        MESSAGE = format('%s: %s of %s rows are still in %s', p_function, p_found, p_given, p_what),
        HINT = 'Rows changed since they were read; nothing was written. Read them again and build the batch again.';
END
$$;

CREATE OR REPLACE FUNCTION txrelay.other_version(p_function text, a txrelay.accounts, p_version bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR002',
        MESSAGE = format('%s: signed under transaction version %s, and account %s signs under %s', p_function, p_version,
            a.alias, a.transaction_version),
        HINT = 'Calls that were made before may mean something else now. leader_pause with transaction_version; an '
            'operator judges, and account_resume accepts the new one.';
END
$$;

-- An idempotency key stands for one call. Options are not part of the comparison, because a retry
-- may compute another deadline.
CREATE OR REPLACE FUNCTION txrelay.key_reused(p_key text, p_id bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR012',
        MESSAGE = format('idempotency key "%s" was used before with another call, for transaction %s',
                         left(p_key, 80), p_id),
        HINT = 'Use a new key for a new call, or send the first call again to get its id.';
END
$$;
