-- txrelay: checks of arguments that several functions share.

-- Accepts whole numbers below 2^128, which is what a chain can hold, and NULL. NaN and the
-- infinities are refused.
CREATE OR REPLACE FUNCTION txrelay.check_amount(p_function text, p_argument text, p_amount numeric,
                                                p_hint text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF p_amount NOT BETWEEN 0 AND 340282366920938463463374607431768211455
        OR p_amount <> trunc(p_amount) THEN
        PERFORM bad_argument(p_function, p_argument,
            format('is %s; it must be a whole number from 0 to '
            '340282366920938463463374607431768211455', left(p_amount::text, 80)), p_hint);
    END IF;
END
$$;

-- False for a time that is infinite or beyond what all readers can represent; NULL for NULL.
-- Postgres inlines it.
CREATE OR REPLACE FUNCTION txrelay.time_fits(p_time timestamptz) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT p_time OPERATOR(pg_catalog.<) timestamptz '10000-01-01 00:00:00+00'
        AND p_time OPERATOR(pg_catalog.>)
        timestamptz '-infinity'
$$;

-- False for a text that no session with another encoding could read. Only a database whose encoding
-- is SQL_ASCII stores one.
CREATE OR REPLACE FUNCTION txrelay.text_fits(p_text text) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    PERFORM convert_from(convert_to(p_text, 'SQL_ASCII'), 'UTF8');
    RETURN true;
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
    RETURN false;
END
$$;

-- Refuses such a text as an argument. Callers ask for the encoding first.
CREATE OR REPLACE FUNCTION txrelay.check_text(p_function text, p_argument text, p_text text)
    RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF NOT text_fits(p_text) THEN
        PERFORM bad_argument(p_function, p_argument, 'is no text in UTF-8',
            'This database takes any bytes (SQL_ASCII), and '
            'readers do not: set client_encoding = UTF8 and pass UTF-8.');
    END IF;
END
$$;

-- Refuses what is no traceparent as W3C's Trace Context (level 1) has it: version, trace, parent,
-- flags.
CREATE OR REPLACE FUNCTION txrelay.check_trace(p_function text, p_traceparent text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF p_traceparent !~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'
        OR p_traceparent ~ '^ff|-0{32}-|-0{16}-' THEN
        PERFORM bad_argument(p_function, 'traceparent', format('is %s; it must be like '
            '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
            quote_literal(left(p_traceparent, 80))),
            'Pass the header traceparent of the request as it is (55 characters), or leave it '
            'out.');
    END IF;
END
$$;

-- Checks the options of both enqueue functions. Their callers test the options first and call this
-- only if one may be wrong: entering a function costs more than all of these comparisons.
CREATE OR REPLACE FUNCTION txrelay.check_options(p_function text, p_priority bigint,
    p_creator text, p_not_before timestamptz, p_deadline timestamptz, p_spec_version bigint,
    p_tip numeric, p_max_tip numeric, p_deadline_block bigint, p_retries bigint)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF p_priority IS NULL OR p_priority NOT BETWEEN -1000 AND 1000 THEN
        PERFORM bad_argument(p_function, 'priority', format('is %s; it must be -1000 to 1000',
            coalesce(p_priority::text, 'NULL')), 'Higher goes first; leave it out for 0.');
    ELSIF octet_length(p_creator) > 200 THEN
        PERFORM bad_argument(p_function, 'creator',
            format('has %s bytes; at most 200', octet_length(p_creator)),
            'It names who asked; leave it out for the session''s user.');
    END IF;
    IF num_nonnulls(p_tip, p_max_tip) > 0 THEN
        PERFORM check_amount(p_function, 'tip', p_tip,
            'In the chain''s smallest unit; leave it out for the account''s '
            'policy.');
        PERFORM check_amount(p_function, 'max_tip', p_max_tip,
            'In the chain''s smallest unit; leave it out for none but '
            'the account''s tip_cap.');
    END IF;
    IF time_fits(p_not_before) IS FALSE OR time_fits(p_deadline) IS FALSE THEN
        PERFORM bad_argument(p_function, CASE WHEN time_fits(p_not_before) IS FALSE
            THEN 'not_before' ELSE 'deadline' END,
            format('is %s; it must be before the year 10000', CASE
                WHEN time_fits(p_not_before) IS FALSE THEN p_not_before
                ELSE p_deadline END), 'Leave it out (NULL) for none.');
    ELSIF p_deadline <= greatest(clock_timestamp(), p_not_before) THEN
        PERFORM bad_argument(p_function, 'deadline',
            format('is %s; it must be later than now (%s)%s', p_deadline,
            clock_timestamp(), coalesce(' and than not_before (' || p_not_before || ')', '')),
            'Pass a later deadline, or NULL for none.');
    ELSIF p_spec_version NOT BETWEEN 0 AND 4294967295 THEN
        PERFORM bad_argument(p_function, 'spec_version',
            format('is %s; it must be 0 to 4294967295', p_spec_version),
            'It is the runtime spec version that the call was made for; leave it out to sign '
            'under any.');
    ELSIF p_tip > p_max_tip THEN
        PERFORM bad_argument(p_function, 'tip', format('is %s; it must not be above max_tip (%s)',
                                                       p_tip, p_max_tip),
            'max_tip bounds what it may ever pay, the first time included.');
    ELSIF p_deadline_block <= 0 THEN
        PERFORM bad_argument(p_function, 'deadline_block',
            format('is %s; it must be above 0', p_deadline_block),
            'It is the number of the last block that may hold it; leave it out for none.');
    ELSIF p_retries IS NULL OR p_retries NOT BETWEEN 0 AND 100 THEN
        PERFORM bad_argument(p_function, 'retries', format('is %s; it must be 0 to 100',
            coalesce(p_retries::text, 'NULL')),
            'It is the number of retries when the chain says that the call failed; leave it out '
            'for 0.');
    END IF;
END
$$;

-- The process that calls, and where clients reach it.
CREATE OR REPLACE FUNCTION txrelay.check_relay(p_function text, p_holder text, p_address text)
    RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF p_holder IS NULL OR octet_length(p_holder) NOT BETWEEN 1 AND 500 THEN
        PERFORM bad_argument(p_function, 'p_holder', format('has %s bytes; it must have 1 to 500',
            octet_length(p_holder)),
            'It names this relay process: network, account, host, pid, uuid.');
    ELSIF octet_length(p_address) > 300 THEN
        PERFORM bad_argument(p_function, 'p_address',
            format('has %s bytes; at most 300', octet_length(p_address)),
            'It is where clients reach this relay.');
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION txrelay.check_expiry(p_function text, p_expiry_1_ms int,
                                                p_expiry_2_ms int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF p_expiry_1_ms IS NULL OR p_expiry_1_ms NOT BETWEEN 1 AND 86400000 THEN
        PERFORM bad_argument(p_function, 'p_expiry_1_ms', format('is %s; it must be 1 to 86400000',
            coalesce(p_expiry_1_ms::text, 'NULL')),
            'Milliseconds after which a silent leader may be replaced.');
    ELSIF p_expiry_2_ms IS NULL OR p_expiry_2_ms NOT BETWEEN p_expiry_1_ms AND 86400000 THEN
        PERFORM bad_argument(p_function, 'p_expiry_2_ms',
            format('is %s; it must be p_expiry_1_ms (%s) to 86400000',
            coalesce(p_expiry_2_ms::text, 'NULL'), p_expiry_1_ms),
            'Longer than the longest submission; equal to p_expiry_1_ms for a single expiry.');
    END IF;
END
$$;

-- The clock of leases, of the ends of transactions, and of readers' positions. It never goes back:
-- after a step back of the server's clock (a failover to a server whose clock is behind) it goes on
-- from the time that it had reached, and comes back to the server's by a tenth of a second per
-- second. Postgres inlines it.
CREATE OR REPLACE FUNCTION txrelay.steady_clock() RETURNS timestamptz
LANGUAGE sql AS $$
    SELECT GREATEST(pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) (SELECT h.clock_offset
            FROM txrelay.high_water h
            WHERE h.one),
        (SELECT h.reached FROM txrelay.high_water h WHERE h.one))
$$;

-- The time that a function of leadership or retention works at. Tests set it; the login that does
-- so needs the role txrelay_clock, which no migration makes.
CREATE OR REPLACE FUNCTION txrelay.clock_of(p_function text, p_now timestamptz) RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF p_now IS NULL THEN
        RETURN steady_clock();
    ELSIF EXISTS (SELECT FROM pg_roles r WHERE r.rolname = 'txrelay_clock'
                  AND pg_has_role(session_user, r.oid, 'MEMBER')) THEN
        RETURN p_now;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
        MESSAGE = format('%s: p_now is given, and user %s may not set the clock', p_function,
                         session_user),
        HINT = 'Leave it out: the time is the database''s.';
END
$$;

-- Returns the length of all arrays, which must be the same. A NULL array counts as another length.
CREATE OR REPLACE FUNCTION txrelay.batch_size(p_function text, VARIADIC p_lengths int[]) RETURNS int
LANGUAGE plpgsql AS $$ -- without a search_path, as fence: it is a part of its callers
BEGIN
    IF (p_lengths[1] = ALL (p_lengths)) IS NOT TRUE THEN
        PERFORM txrelay.bad_argument(p_function, 'arrays',
            'have the lengths ' || array_to_string(p_lengths, ', ', 'NULL')
            || '; they must be the same', 'Give one element per row in every array.');
    END IF;
    RETURN p_lengths[1];
END
$$;

-- Refuses a nonce that is NULL or given twice.
CREATE OR REPLACE FUNCTION txrelay.check_nonces(p_function text, p_nonces bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_nonce bigint;
BEGIN
    SELECT u.nonce INTO v_nonce FROM unnest(p_nonces) u (nonce) GROUP BY u.nonce
        HAVING count(*) > 1 OR u.nonce IS NULL LIMIT 1;
    IF FOUND THEN
        PERFORM order_error(format('%s: nonce %s is given more than once or is NULL', p_function,
            coalesce(v_nonce::text, 'NULL')), 'One element per nonce.');
    END IF;
END
$$;

-- True if a call, or a whole presigned extrinsic, has an allowed size. The bound is ours, not a
-- chain's: a block takes at most 5 MiB, usually less for one class, and notifications never carry
-- the bytes. Postgres inlines it into its callers.
CREATE OR REPLACE FUNCTION txrelay.size_fits(p_call bytea) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT pg_catalog.octet_length(p_call) OPERATOR(pg_catalog.<@) pg_catalog.int4range(1, 1048576,
        '[]')
$$;

-- Refuses bytes that are a text of hexadecimal digits: a driver makes them of a call that it was
-- given as a string. Its callers have seen that the second byte is an x.
CREATE OR REPLACE FUNCTION txrelay.check_hex_text(p_function text, p_argument text, p_call bytea)
    RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    -- these files hold none: psql has commands that begin with one
    c_backslash CONSTANT text := chr(92);
    v_text text := replace(encode(p_call, 'escape'), c_backslash || c_backslash, c_backslash);
BEGIN
    IF left(v_text, 2) IN ('0x', c_backslash || 'x') AND substr(v_text, 3) ~ '^([0-9a-fA-F]{2})*$'
        THEN
        PERFORM bad_argument(p_function, p_argument,
            format('is the text %s%s and not the bytes that it stands for',
            quote_literal(left(v_text, 20)), CASE WHEN length(v_text) > 20 THEN '...' ELSE '' END),
            'Decode it first: decode(substr(text, 3), ''hex'') in SQL, bytes.fromhex(text[2:]) in '
            'Python, '
            'Buffer.from(text.slice(2), ''hex'') in Node.');
    END IF;
END
$$;

-- The times of a transaction whose caller gave a span instead: expires_in for deadline, delay for
-- not_before. They count from now, by the clock that deadlines are compared with.
CREATE OR REPLACE FUNCTION txrelay.time_of_span(p_function text, p_argument text, p_span interval,
    p_other text, p_time timestamptz) RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF p_span IS NULL THEN
        RETURN p_time;
    ELSIF p_time IS NOT NULL THEN
        PERFORM bad_argument(p_function, p_argument, format('is %s, and %s is given too', p_span,
            p_other), 'Give one of the two.');
    ELSIF p_span <= interval '0' OR p_span > interval '1000 years' THEN
        PERFORM bad_argument(p_function, p_argument,
            format('is %s; it must be above 0 and at most 1000 years', p_span),
            format('It counts from now. For a time: %s.', p_other));
    END IF;
    RETURN clock_timestamp() + p_span;
END
$$;

-- Raises the error for an argument that size_fits refuses.
CREATE OR REPLACE FUNCTION txrelay.bad_size(p_function text, p_argument text, p_call bytea,
                                            p_hint text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    PERFORM bad_argument(p_function, p_argument, CASE WHEN p_call IS NULL THEN 'is NULL'
        ELSE format('has %s bytes', octet_length(p_call))
        END || '; it must have 1 to 1048576 bytes', p_hint);
END
$$;

-- Raises the error for the first call or key of enqueue_many that is not allowed, with its index.
CREATE OR REPLACE FUNCTION txrelay.check_elements(p_calls bytea[], p_keys text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_bad record;
BEGIN
    SELECT u.n, u.call INTO v_bad FROM unnest(p_calls) WITH ORDINALITY u (call, n)
        WHERE size_fits(u.call) IS NOT TRUE ORDER BY u.n LIMIT 1;
    IF FOUND THEN
        PERFORM bad_size('enqueue_many', format('calls[%s]', v_bad.n), v_bad.call,
                         'Pass SCALE-encoded calls.');
    END IF;
    PERFORM check_hex_text('enqueue_many', format('calls[%s]', u.n), u.call)
        FROM unnest(p_calls) WITH ORDINALITY u (call, n)
        WHERE substr(u.call, 2, 1) = 'x' ORDER BY u.n;
    SELECT u.n, octet_length(u.key) AS bytes INTO v_bad
        FROM unnest(p_keys) WITH ORDINALITY u (key, n)
        WHERE octet_length(u.key) NOT BETWEEN 1 AND 200 ORDER BY u.n LIMIT 1;
    IF FOUND THEN
        PERFORM bad_argument('enqueue_many', format('keys[%s]', v_bad.n),
            format('has %s bytes; it must have 1 to 200',
            v_bad.bytes), 'Use NULL for no key, or a hash of a longer one.');
    END IF;
END
$$;
