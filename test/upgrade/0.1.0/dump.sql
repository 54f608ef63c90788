--
-- PostgreSQL database dump
--



SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: txrelay; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA txrelay;


--
-- Name: attempt_outcome; Type: TYPE; Schema: txrelay; Owner: -
--

CREATE TYPE txrelay.attempt_outcome AS ENUM (
    'live',
    'unknown',
    'included',
    'replaced',
    'dropped',
    'invalid',
    'usurped',
    'superseded'
);


--
-- Name: earlier_attempts; Type: TYPE; Schema: txrelay; Owner: -
--

CREATE TYPE txrelay.earlier_attempts AS (
	hashes bytea[],
	own integer,
	death bigint
);


--
-- Name: tx_outcome; Type: TYPE; Schema: txrelay; Owner: -
--

CREATE TYPE txrelay.tx_outcome AS ENUM (
    'ok',
    'dispatch_error',
    'expired',
    'cancelled',
    'failed',
    'usurped',
    'unknown'
);


--
-- Name: tx_state; Type: TYPE; Schema: txrelay; Owner: -
--

CREATE TYPE txrelay.tx_state AS ENUM (
    'signed',
    'future',
    'ready',
    'broadcast',
    'in_block',
    'retracted',
    'finality_timeout',
    'finalized',
    'usurped',
    'dropped',
    'invalid'
);


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: accounts; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.accounts (
    account integer NOT NULL,
    alias text NOT NULL,
    account_id bytea NOT NULL,
    scheme text NOT NULL,
    genesis bytea NOT NULL,
    address text NOT NULL,
    watch_only boolean DEFAULT false NOT NULL,
    next_nonce bigint,
    used_nonce bigint,
    used_block bigint,
    seen_block bigint,
    reconcile_from bigint,
    life_since timestamp with time zone,
    reborn boolean DEFAULT false NOT NULL,
    transaction_version bigint,
    paused boolean DEFAULT false NOT NULL,
    paused_by text,
    paused_reason text,
    paused_since timestamp with time zone,
    suspension text,
    policy jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    era_longest integer DEFAULT 0 NOT NULL,
    era_immortal boolean DEFAULT false NOT NULL,
    lost_since timestamp with time zone,
    lost_heard bigint,
    users text[],
    careful boolean DEFAULT false NOT NULL,
    CONSTRAINT accounts_next_nonce_check CHECK ((next_nonce >= 0))
)
WITH (fillfactor='40', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='200', autovacuum_vacuum_cost_delay='0');


--
-- Name: account_facts(txrelay.accounts); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.account_facts(a txrelay.accounts) RETURNS TABLE(paused boolean, suspension text, reborn boolean, transaction_version bigint, tip_start numeric, tip_step numeric, tip_cap numeric, tip_step_percent integer, tip_after_blocks integer, skip_after_blocks integer, requeue_usurped boolean, low_balance numeric, retry_refusals text)
    LANGUAGE sql STABLE ROWS 1
    AS $$ -- inlined into its callers
    SELECT a.paused, a.suspension, a.reborn, a.transaction_version,
        coalesce((a.policy OPERATOR(pg_catalog.->>) 'tip_start')::numeric, 0),
        coalesce((a.policy OPERATOR(pg_catalog.->>) 'tip_step')::numeric, 0),
        (a.policy OPERATOR(pg_catalog.->>) 'tip_cap')::numeric,
        coalesce((a.policy OPERATOR(pg_catalog.->>) 'tip_step_percent')::int, 0),
        coalesce((a.policy OPERATOR(pg_catalog.->>) 'tip_after_blocks')::int, 0),
        coalesce((a.policy OPERATOR(pg_catalog.->>) 'skip_after_blocks')::int, 0),
        coalesce(a.policy OPERATOR(pg_catalog.->>) 'usurped' OPERATOR(pg_catalog.=) 'requeue', false),
        (a.policy OPERATOR(pg_catalog.->>) 'low_balance')::numeric,
        a.policy OPERATOR(pg_catalog.->>) 'retry_refusals'
$$;


--
-- Name: account_fingerprint(txrelay.accounts); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.account_fingerprint(a txrelay.accounts) RETURNS bigint
    LANGUAGE sql STABLE
    AS $$ -- without a search_path, so that it is inlined: one query calls it for thousands of accounts
    SELECT pg_catalog.jsonb_hash_extended(a.policy, COALESCE(a.transaction_version, -1)
            OPERATOR(pg_catalog.#) CASE WHEN a.paused THEN 4611686018427387904 ELSE 0 END
            OPERATOR(pg_catalog.#) CASE WHEN a.reborn THEN 2305843009213693952 ELSE 0 END
            OPERATOR(pg_catalog.#) COALESCE(pg_catalog.hashtextextended(a.suspension, 0), 0))
        OPERATOR(pg_catalog.&) 9223372036854775807
$$;


--
-- Name: account_grant(text, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.account_grant(account text, role text) RETURNS text[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    v_account int := account_of(account_grant.account);
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = account_grant.role) THEN
        PERFORM bad_argument('account_grant', 'role', format('is %s; there is no such role', coalesce('"' || left(account_grant.role,
            80) || '"', 'NULL')), 'Name a login, or a role that logins are members of.');
    END IF;
    UPDATE accounts a SET users = array_append(array_remove(coalesce(a.users, '{}'), account_grant.role), account_grant.role)
        WHERE a.account = v_account;
    PERFORM note_careful(v_account);
    RETURN (SELECT a.users FROM accounts a WHERE a.account = v_account);
END
$$;


--
-- Name: account_of(text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.account_of(p_name text) RETURNS integer
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $_$
DECLARE
    v_found int[];
BEGIN
    SELECT array_agg(a.account ORDER BY a.account) INTO v_found FROM accounts a WHERE a.alias = p_name;
    IF v_found IS NULL AND p_name ~ '^0x([0-9a-fA-F]{2})+$' THEN
        SELECT array_agg(a.account ORDER BY a.account) INTO v_found FROM accounts a
            WHERE a.account_id = decode(substr(p_name, 3), 'hex');
    END IF;
    IF v_found IS NULL THEN
        SELECT array_agg(a.account ORDER BY a.account) INTO v_found FROM accounts a WHERE a.address = p_name;
    END IF;
    IF v_found IS NULL THEN
        SELECT array_agg(a.account ORDER BY a.account) INTO v_found FROM accounts a WHERE a.account_id = substr(ss58_bytes(p_name), 3);
    END IF;
    IF cardinality(v_found) = 1 THEN
        RETURN v_found[1];
    END IF;
    IF cardinality(v_found) > 1 THEN
        PERFORM bad_argument('account', '"' || left(p_name, 80) || '"', 'means more than one account: '
            || (SELECT string_agg(a.alias, ', ' ORDER BY a.alias) FROM accounts a WHERE a.account = ANY (v_found)),
            'The same key is registered for several chains; use the alias.');
    END IF;
    PERFORM account_unknown(p_name);
END
$_$;


--
-- Name: account_pause(text, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.account_pause(p_account text, p_reason text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    UPDATE accounts t SET paused = true, paused_by = 'operator', paused_reason = coalesce(p_reason, 'by ' || session_user),
        paused_since = coalesce(t.paused_since, clock_timestamp())
        WHERE t.account = account_of(p_account);
END
$$;


--
-- Name: account_policy(text, jsonb); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.account_policy(account text, policy jsonb DEFAULT NULL::jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    v_account int := account_of(account_policy.account);
    v_policy jsonb;
    v_given jsonb;
BEGIN
    IF account_policy.policy IS NULL THEN
        RETURN (SELECT t.policy FROM accounts t WHERE t.account = v_account);
    ELSIF jsonb_typeof(account_policy.policy) <> 'object' THEN
        PERFORM bad_argument('account_policy', 'policy', format('is %s; it must be a JSON object',
            left(account_policy.policy::text, 80)), 'For example {"tip_start": 0, "tip_cap": "1000000000"}.');
    END IF;
    SELECT jsonb_object_agg(g.key, CASE WHEN g.value <> 'null' THEN policy_value(g.key, g.value) ELSE g.value END)
        INTO v_given FROM jsonb_each(account_policy.policy) g;
    -- Only a key that exists can be removed.
    PERFORM policy_value(g.key, CASE g.key WHEN 'usurped' THEN '"fail"' WHEN 'order' THEN '"any"'
        WHEN 'retry_refusals' THEN '"Custom"' ELSE '0' END::jsonb)
        FROM jsonb_each(account_policy.policy) g WHERE g.value = 'null';
    SELECT t.policy INTO v_policy FROM accounts t WHERE t.account = v_account FOR NO KEY UPDATE;
    v_policy := jsonb_strip_nulls(v_policy || coalesce(v_given, '{}'));
    IF (v_policy -> 'tip_after_blocks')::int > 0 AND v_policy -> 'tip_cap' IS NULL THEN
        PERFORM bad_argument('account_policy', 'tip_after_blocks', format('is %s, and there is no tip_cap',
            v_policy -> 'tip_after_blocks'), 'Tips that rise by themselves need a bound: set tip_cap, or tip_after_blocks '
            'to 0.');
    ELSIF (v_policy ->> 'tip_start')::numeric > (v_policy ->> 'tip_cap')::numeric THEN
        PERFORM bad_argument('account_policy', 'tip_start', format('is %s; it must not be above tip_cap (%s)',
            v_policy ->> 'tip_start', v_policy ->> 'tip_cap'), 'Lower the one or raise the other.');
    END IF;
    UPDATE accounts t SET policy = v_policy WHERE t.account = v_account;
    PERFORM note_careful(v_account);
    IF queue_has_room() THEN
        PERFORM pg_notify('outbox_wake', v_account::text);
    END IF;
    RETURN v_policy;
END
$$;


--
-- Name: account_reconcile(text, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.account_reconcile(p_account text, p_block bigint DEFAULT NULL::bigint) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    v_account int := account_of(p_account);
    v_seen bigint;
    v_from bigint;
BEGIN
    IF p_block < 0 THEN
        PERFORM bad_argument('account_reconcile', 'p_block', format('is %s; it must be 0 or more', p_block),
            'The last block that was final when the copy was made.');
    END IF;
    UPDATE leadership t SET timeline = 0 WHERE t.subject = v_account
        RETURNING (SELECT c.seen_block FROM claim_times(t) c) INTO v_seen;
    UPDATE accounts t SET reconcile_from = least(t.reconcile_from,
            coalesce(p_block, greatest(t.seen_block, v_seen, t.used_block), 0)),
            lost_since = clock_timestamp(), lost_heard = NULL
        WHERE t.account = v_account RETURNING t.reconcile_from INTO v_from;
    UPDATE attempts t SET block = v_from FROM pending_transactions p
        WHERE p.account = v_account AND t.account = v_account AND t.nonce = p.nonce AND t.number <= p.attempt AND t.block > v_from
        AND p_block IS NOT NULL;
    RETURN v_from;
END
$$;


--
-- Name: account_resume(text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.account_resume(p_account text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    v_account int := account_of(p_account);
BEGIN
    UPDATE accounts t SET paused = false, paused_by = NULL, paused_reason = NULL, paused_since = NULL, suspension = NULL,
        reborn = t.reborn OR t.suspension IS NOT DISTINCT FROM 'reaped',
        transaction_version = CASE WHEN t.suspension IS DISTINCT FROM 'transaction_version' THEN t.transaction_version END
        WHERE t.account = v_account;
    IF queue_has_room() THEN
        PERFORM pg_notify('outbox_wake', v_account::text);
    END IF;
END
$$;


--
-- Name: account_revoke(text, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.account_revoke(account text, role text) RETURNS text[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    v_account int := account_of(account_revoke.account);
    v_users text[] := (SELECT coalesce(a.users, '{txrelay_app}') FROM accounts a WHERE a.account = v_account);
BEGIN
    IF account_revoke.role = ANY (v_users) IS NOT TRUE THEN
        PERFORM bad_argument('account_revoke', 'role', format('is %s, which was not granted the account', coalesce('"'
            || left(account_revoke.role, 80) || '"', 'NULL')), format('It is granted to: %s.', coalesce(nullif(
            array_to_string(v_users, ', '), ''), 'no application')));
    END IF;
    UPDATE accounts a SET users = array_remove(v_users, account_revoke.role) WHERE a.account = v_account;
    PERFORM note_careful(v_account);
    RETURN (SELECT a.users FROM accounts a WHERE a.account = v_account);
END
$$;


--
-- Name: account_rewind(text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.account_rewind(p_account text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_account int := keyed_account('account_rewind', p_account);
    a accounts;
    v_nonce bigint;
BEGIN
    UPDATE leadership t SET epoch = t.epoch + 1 WHERE t.subject = v_account;
    SELECT * INTO a FROM accounts t WHERE t.account = v_account FOR NO KEY UPDATE;
    IF a.reconcile_from IS NOT NULL THEN
        PERFORM bad_argument('account_rewind', 'account', format('is "%s", whose lost commits are looked for from block %s on',
            a.alias, a.reconcile_from), 'Wait until blocked_accounts does not show it any more. If that block is wrong: '
            'account_reconcile(account, block).');
    END IF;
    SELECT p.nonce INTO v_nonce FROM pending_transactions p WHERE p.account = v_account
        AND EXISTS (SELECT FROM attempts t WHERE t.account = v_account AND t.nonce = p.nonce AND t.number <= p.attempt
            AND t.era_death IS NULL AND (NOT p.signed OR t.id = p.id)) ORDER BY p.account, p.nonce LIMIT 1;
    IF FOUND THEN
        PERFORM bad_argument('account_rewind', 'account', format('is "%s", whose pending nonce %s was signed without an era',
            a.alias, v_nonce), 'Its bytes can be included until the chain has used that nonce. Use the nonces up to it '
            'elsewhere, or use another account.');
    END IF;
    UPDATE accounts t SET reborn = true, used_nonce = NULL, used_block = NULL, suspension = NULL,
        paused = t.paused_by IS NOT DISTINCT FROM 'operator',
        paused_by = CASE WHEN t.paused_by = 'operator' THEN t.paused_by END,
        paused_reason = CASE WHEN t.paused_by = 'operator' THEN t.paused_reason END,
        paused_since = CASE WHEN t.paused_by = 'operator' THEN t.paused_since END
        WHERE t.account = v_account;
    IF queue_has_room() THEN
        PERFORM pg_notify('outbox_wake', v_account::text);
    END IF;
END
$$;


--
-- Name: account_unknown(text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.account_unknown(p_name text) RETURNS void
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $_$
DECLARE
    v_id bytea := coalesce(substr(ss58_bytes(p_name), 3),
        CASE WHEN p_name ~ '^0x([0-9a-fA-F]{2})+$' THEN decode(substr(p_name, 3), 'hex') END);
    v_near text;
BEGIN
    SELECT string_agg(near.alias, ', ' ORDER BY near.score DESC, near.alias) INTO v_near FROM (
        SELECT a.alias, greatest(
            (SELECT count(*) FROM generate_series(1, length(a.alias)) i
             WHERE strpos('  ' || lower(p_name) || ' ', substr('  ' || lower(a.alias) || ' ', i, 3)) > 0)
            ::numeric / (length(a.alias) + length(p_name)),
            -- Fewer than three common pieces of an address or bytes of an id are chance.
            (SELECT greatest(count(*) - 2, 0) FROM generate_series(1, length(a.address) - 2) i
             WHERE length(p_name) > 20 AND strpos(p_name, substr(a.address, i, 3)) > 0)::numeric / length(a.address),
            (SELECT greatest(count(*) - 2, 0) FROM generate_series(0, least(octet_length(v_id), octet_length(a.account_id)) - 1) i
             WHERE get_byte(v_id, i) = get_byte(a.account_id, i))::numeric / 32) AS score
        FROM accounts a ORDER BY score DESC, a.alias LIMIT 3) near
    WHERE near.score > 0 OR (SELECT count(*) FROM accounts) <= 3;
    RAISE EXCEPTION USING ERRCODE = 'TR010',
        MESSAGE = format('no such account: %s%s', coalesce('"' || left(p_name, 80) || '"', 'NULL'),
            CASE WHEN ss58_bytes(p_name) IS NOT NULL THEN format(', the address of account id 0x%s', encode(v_id, 'hex'))
                 WHEN p_name ~ '^(?!0x)[0-9A-Za-z]{40,60}$' THEN ', which is no SS58 address of 32 bytes either' ELSE '' END),
        HINT = CASE WHEN v_near IS NOT NULL THEN 'Nearest: ' || v_near || '.'
                    WHEN EXISTS (SELECT FROM accounts) THEN 'The view txrelay.leaders lists the accounts.'
                    ELSE 'No account is registered yet: a relay registers its accounts when it starts.' END;
END
$_$;


--
-- Name: account_waits(integer); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.account_waits(p_account integer) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    RETURN (SELECT CASE WHEN a.paused THEN format('%s: %s', coalesce(a.suspension, 'paused'), a.paused_reason)
            WHEN u.reason IS NOT NULL THEN 'no_leader: ' || u.reason
            WHEN a.reconcile_from IS NOT NULL THEN 'lost_commits: what lost commits have sent may still be included'
            ELSE (SELECT format('%s: %s', o.code, o.detail) FROM leader_obstacle o WHERE o.account = a.account) END
        FROM accounts a LEFT JOIN unled_accounts u ON u.account = a.account WHERE a.account = p_account);
END
$$;


--
-- Name: accounts_check(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.accounts_check() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $_$
DECLARE
    v_bad text := CASE
        WHEN NEW.alias !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$' OR NEW.alias ~ '^0x' THEN 'alias'
        WHEN octet_length(NEW.account_id) NOT IN (20, 32) THEN 'account_id'
        WHEN NEW.scheme NOT IN ('sr25519', 'ed25519', 'ecdsa', 'ethereum') THEN 'scheme'
        WHEN octet_length(NEW.genesis) <> 32 THEN 'genesis'
        WHEN length(NEW.address) NOT BETWEEN 1 AND 128 THEN 'address'
        WHEN NEW.paused_by NOT IN ('leader', 'operator') OR NEW.paused <> (NEW.paused_by IS NOT NULL) THEN 'paused_by'
        WHEN NEW.suspension NOT IN ('payment', 'reaped', 'signing', 'transaction_version')
            OR CASE WHEN NEW.suspension IS NULL THEN NEW.paused_by = 'leader' ELSE NOT NEW.paused END THEN 'suspension' END;
BEGIN
    IF v_bad IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', SCHEMA = 'txrelay', TABLE = 'accounts', COLUMN = v_bad,
            CONSTRAINT = 'accounts_check', MESSAGE = format('account %s: %s is not allowed: %s', NEW.alias, v_bad,
                coalesce(to_jsonb(NEW) ->> v_bad, 'NULL')), HINT = 'The function txrelay.accounts_check says what is.';
    END IF;
    RETURN NEW;
END
$_$;


--
-- Name: accounts_with_work(bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.accounts_with_work(p_most bigint) RETURNS integer[]
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    RETURN ARRAY(
        WITH RECURSIVE found (account, n) AS (
            SELECT -2147483648, 0::bigint
            UNION ALL
            SELECT least(
                (SELECT min(o.account) FROM outbox o WHERE o.account > f.account AND o.not_before IS NULL),
                (SELECT min(o.account) FROM outbox o WHERE o.account > f.account AND o.not_before IS NOT NULL),
                (SELECT min(s.account) FROM outbox_presigned s WHERE s.account > f.account),
                (SELECT min(p.account) FROM pending_transactions p WHERE p.account > f.account AND p.deadline IS NOT NULL),
                (SELECT min(c.account) FROM cancellations c WHERE c.account > f.account),
                (SELECT min(b.account) FROM bumps b WHERE b.account > f.account)), f.n + 1
            FROM found f WHERE f.account IS NOT NULL AND f.n < p_most
        )
        SELECT f.account FROM found f WHERE f.n > 0 AND f.account IS NOT NULL);
END
$$;


--
-- Name: acting_role(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.acting_role() RETURNS text
    LANGUAGE sql STABLE
    AS $$
    SELECT COALESCE(NULLIF(pg_catalog.current_setting('role'), 'none'), session_user::text)
$$;


--
-- Name: attempts_note(integer, bigint[], bytea[], text[], bytea[], bigint[], text[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.attempts_note(p_account integer, p_nonces bigint[], p_hashes bytea[], p_states text[], p_block_hashes bytea[], p_block_numbers bigint[], p_errors text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    UPDATE attempts t SET state = CASE WHEN b.state = 'unknown' THEN t.state ELSE b.state::tx_state END,
        block_hash = b.block_hash, block_number = b.block_number, error = coalesce(b.error, t.error),
        error_at = CASE WHEN b.error IS NOT NULL THEN clock_timestamp() ELSE t.error_at END,
        outcome = CASE WHEN t.number < p.attempt THEN t.outcome ELSE b.outcome END,
        ended_at = CASE WHEN t.number < p.attempt THEN t.ended_at
                        WHEN b.outcome NOT IN ('live', 'unknown') THEN clock_timestamp() END
    FROM (SELECT DISTINCT ON (u.nonce, u.hash) u.*, CASE WHEN u.state IN ('dropped', 'invalid', 'usurped', 'unknown')
              THEN u.state ELSE 'live' END::attempt_outcome AS outcome
          FROM unnest(p_nonces, p_hashes, p_states, p_block_hashes, p_block_numbers, p_errors) WITH ORDINALITY
              u (nonce, hash, state, block_hash, block_number, error, n)
          WHERE u.state NOT IN ('refused', 'tried')
          ORDER BY u.nonce, u.hash, u.n DESC) b
        CROSS JOIN LATERAL (SELECT y.attempt FROM pending_transactions y WHERE y.account = p_account
            AND y.nonce = b.nonce AND (y.hash <> b.hash OR b.outcome <> 'live' OR y.unknown
                                       OR y.state IN ('dropped', 'invalid', 'usurped')) OFFSET 0) p
        CROSS JOIN LATERAL (SELECT x.ctid AS at FROM attempts x WHERE x.account = p_account AND x.nonce = b.nonce
            AND x.hash = b.hash AND (x.number < p.attempt OR x.outcome <> b.outcome) OFFSET 0) x
    WHERE t.ctid = x.at;
END
$$;


--
-- Name: bad_argument(text, text, text, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.bad_argument(p_function text, p_argument text, p_what text, p_hint text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR011', MESSAGE = format('%s: %s %s', p_function, p_argument, p_what),
        HINT = p_hint;
END
$$;


--
-- Name: bad_size(text, text, bytea, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.bad_size(p_function text, p_argument text, p_call bytea, p_hint text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    PERFORM bad_argument(p_function, p_argument, CASE WHEN p_call IS NULL THEN 'is NULL'
        ELSE format('has %s bytes', octet_length(p_call)) END || '; it must have 1 to 1048576 bytes', p_hint);
END
$$;


--
-- Name: batch_changed(text, text, bigint, integer); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.batch_changed(p_function text, p_what text, p_found bigint, p_given integer) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR002',
        MESSAGE = format('%s: %s of %s rows are still in %s', p_function, p_found, p_given, p_what),
        HINT = 'Rows changed since they were read; nothing was written. Read them again and build the batch again.';
END
$$;


--
-- Name: batch_size(text, integer[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.batch_size(p_function text, VARIADIC p_lengths integer[]) RETURNS integer
    LANGUAGE plpgsql
    AS $$ -- without a search_path, as fence: it is a part of its callers
BEGIN
    IF (p_lengths[1] = ALL (p_lengths)) IS NOT TRUE THEN
        PERFORM txrelay.bad_argument(p_function, 'arrays', 'have the lengths ' || array_to_string(p_lengths, ', ', 'NULL')
            || '; they must be the same', 'Give one element per row in every array.');
    END IF;
    RETURN p_lengths[1];
END
$$;


--
-- Name: be_durable(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.be_durable() RETURNS void
    LANGUAGE plpgsql
    AS $$ -- without a search_path, as subject_fence
BEGIN
    IF pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'off' THEN
        PERFORM pg_catalog.set_config('synchronous_commit', 'on', true);
    END IF;
END
$$;


--
-- Name: bump(bigint, numeric); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.bump(id bigint, tip numeric DEFAULT NULL::numeric) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    v_row record;
    v_tip numeric;
BEGIN
    PERFORM check_owner('bump', bump.id);
    PERFORM bump_check(bump.id);
    FOR v_turn IN 1..2 LOOP -- as in cancel
        -- Waits for an admission that is under way. A later admission finds a newer version of the
        -- row than it read and still assigns the lower tip, which is why the row in bumps outlives
        -- it.
        SELECT o.account, o.tip, o.max_tip, a.policy INTO v_row FROM outbox o JOIN accounts a ON a.account = o.account
            WHERE o.id = bump.id FOR UPDATE OF o;
        IF FOUND THEN
            PERFORM check_bounds('bump', (SELECT a.alias FROM accounts a WHERE a.account = v_row.account), 0, coalesce(bump.tip, 1));
            v_tip := bumped_tip(bump.tip, least(coalesce(v_row.tip, (v_row.policy ->> 'tip_start')::numeric, 0),
                v_row.max_tip, (v_row.policy ->> 'tip_cap')::numeric), v_row.max_tip, v_row.policy);
            UPDATE outbox o SET tip = v_tip WHERE o.id = bump.id;
            PERFORM bump_ask(bump.id, v_row.account, v_tip);
            RETURN 'queued';
        END IF;
        SELECT p.account, t.tip, p.max_tip, a.policy INTO v_row FROM pending_of(bump.id) p
            CROSS JOIN LATERAL (SELECT x.policy FROM accounts x WHERE x.account = p.account OFFSET 0) a
            CROSS JOIN LATERAL (SELECT x.tip FROM attempts x WHERE x.account = p.account AND x.nonce = p.nonce
                AND x.number = p.attempt OFFSET 0) t;
        IF FOUND THEN
            PERFORM check_bounds('bump', (SELECT a.alias FROM accounts a WHERE a.account = v_row.account), 0, coalesce(bump.tip, 1));
            PERFORM bump_ask(bump.id, v_row.account, bumped_tip(bump.tip, v_row.tip, v_row.max_tip, v_row.policy));
            PERFORM tell_outbox(v_row.account);
            RETURN 'requested';
        ELSIF EXISTS (SELECT FROM finished_transactions f WHERE f.id = bump.id) THEN
            RETURN 'finished';
        END IF;
    END LOOP;
    PERFORM bad_argument('bump', 'id', format('is %s; there is no such transaction', coalesce(bump.id::text, 'NULL')),
        'Pass an id that enqueue returned; a record is kept for the retention time only.');
END
$$;


--
-- Name: bump_ask(bigint, integer, numeric); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.bump_ask(p_id bigint, p_account integer, p_tip numeric) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
    INSERT INTO bumps AS b (id, account, tip, asked_by) VALUES (p_id, p_account, p_tip, session_user)
        ON CONFLICT (id) DO UPDATE SET tip = excluded.tip, asked_by = excluded.asked_by,
            created_at = excluded.created_at WHERE b.tip < excluded.tip
$$;


--
-- Name: bump_check(bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.bump_check(p_id bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    IF (SELECT s.id FROM outbox_presigned s WHERE s.id = p_id ORDER BY s.id LIMIT 1) IS NOT NULL OR (pending_of(p_id)).signed THEN
        PERFORM bad_argument('bump', 'id', format('is %s, which was signed elsewhere: its tip is signed with it', p_id),
            'Sign another extrinsic with the same nonce and a higher tip and send it to a node.');
    END IF;
END
$$;


--
-- Name: bumped_tip(numeric, numeric, numeric, jsonb); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.bumped_tip(p_tip numeric, p_current numeric, p_max_tip numeric, p_policy jsonb) RETURNS numeric
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    v_policy_cap numeric := p_policy ->> 'tip_cap';
    v_cap numeric := least(p_max_tip, v_policy_cap);
    v_step numeric := greatest(coalesce(nullif((p_policy ->> 'tip_step')::numeric, 0), 1),
        div(p_current * coalesce((p_policy ->> 'tip_step_percent')::numeric, 0), 100));
    v_tip numeric := coalesce(p_tip, p_current + v_step);
BEGIN
    PERFORM check_amount('bump', 'tip', p_tip, 'In the chain''s smallest unit; leave it out for the policy''s next step.');
    IF p_tip <= p_current THEN
        PERFORM bad_argument('bump', 'tip', format('is %s; it must be above the current one (%s)', p_tip, p_current),
            'A pool only takes another extrinsic at the nonce for a higher tip. Leave it out for the policy''s next step.');
    ELSIF p_tip IS NULL AND p_current < v_cap THEN
        RETURN least(v_tip, v_cap);
    ELSIF v_tip > v_cap THEN
        PERFORM bad_argument('bump', 'tip', format('%s %s, above %s (%s)', CASE WHEN p_tip IS NULL THEN 'would be' ELSE 'is' END, v_tip,
            CASE WHEN v_policy_cap <= p_max_tip OR p_max_tip IS NULL THEN 'the account''s tip_cap'
                ELSE 'the transaction''s max_tip' END, v_cap),
            CASE WHEN v_policy_cap <= p_max_tip OR p_max_tip IS NULL THEN 'account_policy raises it, for all of the '
                'account''s transactions.' ELSE 'It was given with enqueue and stays. Cancel it and enqueue it anew.' END);
    END IF;
    PERFORM check_amount('bump', 'tip', v_tip, 'A chain cannot hold more.');
    RETURN v_tip;
END
$$;


--
-- Name: cancel(bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.cancel(id bigint) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_account int;
BEGIN
    PERFORM check_owner('cancel', cancel.id);
    -- Twice: the transaction may return to the outbox between the two reads.
    FOR v_turn IN 1..2 LOOP
        v_account := cancel_waits(cancel.id);
        -- An admission and this DELETE meet at the row's lock: one of them gets the row, the other
        -- finds it gone.
        IF v_account IS NOT NULL THEN
            INSERT INTO cancellations (id, account, asked_by) VALUES (cancel.id, v_account, session_user)
                ON CONFLICT DO NOTHING;
            RETURN 'requested';
        ELSIF outbox_end(NULL, ARRAY[cancel.id], ARRAY['cancelled']::tx_outcome[], ARRAY['cancelled by '
                      || session_user], NULL) = 1 THEN
            RETURN 'cancelled';
        END IF;
        v_account := (pending_of(cancel.id)).account;
        IF v_account IS NOT NULL THEN
            PERFORM cancel_check(cancel.id);
            INSERT INTO cancellations (id, account, asked_by) VALUES (cancel.id, v_account, session_user)
                ON CONFLICT DO NOTHING;
            -- Notify even a leader that is awake: it would otherwise notice at its next poll only.
            PERFORM tell_outbox(v_account);
            RETURN 'requested';
        ELSIF EXISTS (SELECT FROM finished_transactions f WHERE f.id = cancel.id) THEN
            RETURN 'finished';
        END IF;
    END LOOP;
    PERFORM bad_argument('cancel', 'id', format('is %s; there is no such transaction', coalesce(cancel.id::text,
        'NULL')), 'Pass an id that enqueue returned; a record is kept for the retention time only.');
END
$$;


--
-- Name: cancel_check(bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.cancel_check(p_id bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    v_nonce bigint;
BEGIN
    SELECT p.nonce INTO v_nonce FROM pending_of(p_id) p
        CROSS JOIN LATERAL (SELECT x.watch_only FROM accounts x WHERE x.account = p.account OFFSET 0) a
        WHERE p.signed AND a.watch_only;
    IF FOUND THEN
        PERFORM bad_argument('cancel', 'id', format('is %s, which was signed elsewhere and may be in a pool; no relay has a key '
            'to take its nonce with', p_id), format('Sign another extrinsic with nonce %s and a higher tip and send it to a '
            'node, or wait for the end of its era.', v_nonce));
    END IF;
END
$$;


--
-- Name: cancel_waits(bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.cancel_waits(p_id bigint) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_account int;
    v_signed boolean;
BEGIN
    SELECT w.account, w.signed INTO v_account, v_signed FROM (
            (SELECT o.account, false AS signed FROM outbox o WHERE o.id = p_id ORDER BY o.id LIMIT 1) UNION ALL
            (SELECT s.account, true FROM outbox_presigned s WHERE s.id = p_id ORDER BY s.id LIMIT 1)) w
        CROSS JOIN LATERAL (SELECT x.reconcile_from, l.timeline FROM accounts x JOIN leadership l ON l.subject = x.account
            WHERE x.account = w.account OFFSET 0) a
        WHERE a.reconcile_from IS NOT NULL OR NOT a.timeline = ANY (timelines());
    IF v_signed THEN
        PERFORM bad_argument('cancel', 'id', format('is %s, which was signed elsewhere, and which commits that a failover lost '
            'may have sent', p_id), 'Ask again when blocked_accounts does not name its account any more.');
    END IF;
    RETURN v_account;
END
$$;


--
-- Name: change_text(bytea, bigint, bytea, txrelay.tx_state, text, timestamp with time zone, bigint, bytea, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.change_text(p_account_id bytea, p_nonce bigint, p_hash bytea, p_state txrelay.tx_state, p_creator text, p_at timestamp with time zone, p_id bigint, p_block_hash bytea, p_traceparent text) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    SELECT pg_catalog.concat('{"account_id":"0x', pg_catalog.encode(p_account_id, 'hex'), '","nonce":', p_nonce,
        ',"hash":"0x', pg_catalog.encode(p_hash, 'hex'), '","state":"', p_state, '","creator_id":',
        COALESCE(pg_catalog.to_json(p_creator)::text, 'null'), ',"updated_at":"',
        pg_catalog.to_char(pg_catalog.timezone('UTC', p_at), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '","id":',
        COALESCE(p_id::text, 'null'),
        CASE WHEN p_block_hash IS NOT NULL THEN pg_catalog.concat(',"block_hash":"0x', pg_catalog.encode(p_block_hash, 'hex'),
            '"') END,
        CASE WHEN p_traceparent IS NOT NULL THEN pg_catalog.concat(',"traceparent":"', p_traceparent, '"') END, '}')
$$;


--
-- Name: check_amount(text, text, numeric, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.check_amount(p_function text, p_argument text, p_amount numeric, p_hint text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    IF p_amount NOT BETWEEN 0 AND 340282366920938463463374607431768211455 OR p_amount <> trunc(p_amount) THEN
        PERFORM bad_argument(p_function, p_argument, format('is %s; it must be a whole number from 0 to '
            '340282366920938463463374607431768211455', left(p_amount::text, 80)), p_hint);
    END IF;
END
$$;


--
-- Name: check_batch(txrelay.accounts, bytea[], bigint[], bigint[], bigint[], bigint[], numeric[], numeric[], bigint[], bigint[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.check_batch(a txrelay.accounts, p_calls bytea[], p_priorities bigint[], p_not_before bigint[], p_deadlines bigint[], p_guards bigint[], p_tips numeric[], p_max_tips numeric[], p_deadline_blocks bigint[], p_retries bigint[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    c_last CONSTANT bigint := 253402300799999; -- of the year 9999, in ms
    c_amount CONSTANT numeric := 340282366920938463463374607431768211455;
    v_most int := coalesce((a.policy ->> 'priority_max')::int, 100);
    b record;
    v_name text;
BEGIN
    PERFORM check_hex_text(format('call %s of the batch', u.n - 1), 'its bytes', u.call)
        FROM unnest(p_calls) WITH ORDINALITY u (call, n) WHERE substr(u.call, 2, 1) = 'x' ORDER BY u.n;
    SELECT u.* INTO b FROM unnest(p_calls, p_priorities, p_not_before, p_deadlines, p_guards, p_tips, p_max_tips,
            p_deadline_blocks, p_retries) WITH ORDINALITY
            u (call, priority, not_before, deadline, guard, tip, max_tip, deadline_block, retries, n)
        WHERE (size_fits(u.call) AND u.priority BETWEEN -1000 AND v_most AND u.retries BETWEEN 0 AND 100
            AND (u.guard BETWEEN 0 AND 4294967295) IS NOT FALSE AND (u.deadline_block > 0) IS NOT FALSE
            AND (u.not_before BETWEEN 0 AND c_last) IS NOT FALSE AND (u.deadline BETWEEN 0 AND c_last) IS NOT FALSE
            AND (num_nonnulls(u.tip, u.max_tip) = 0 OR a.policy -> 'tip_cap' IS NOT NULL
                AND coalesce(u.tip, 0) BETWEEN 0 AND coalesce(u.max_tip, c_amount) AND coalesce(u.tip, 0) = trunc(coalesce(u.tip, 0))
                AND (u.max_tip BETWEEN 0 AND c_amount AND u.max_tip = trunc(u.max_tip)) IS NOT FALSE)) IS NOT TRUE
        ORDER BY u.n LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    v_name := format('call %s of the batch', b.n - 1);
    IF size_fits(b.call) IS NOT TRUE THEN
        PERFORM bad_size(v_name, 'its bytes', b.call, 'Publish the SCALE-encoded call.');
    END IF;
    PERFORM check_options(v_name, b.priority, NULL, NULL, NULL, b.guard, b.tip, b.max_tip, b.deadline_block, b.retries);
    IF b.priority > v_most THEN
        PERFORM bad_argument(v_name, 'priority', format('is %s; for feeds account %s allows at most %s', b.priority, a.alias, v_most),
            'Leave it out, or let an operator raise the policy''s priority_max.');
    ELSIF num_nonnulls(b.tip, b.max_tip) > 0 AND a.policy -> 'tip_cap' IS NULL THEN
        PERFORM bad_argument(v_name, 'tip or max_tip', format('is given, and account %s has no tip_cap', a.alias),
            'Leave it out, or let an operator set the policy''s tip_cap: it bounds what publishers may pay.');
    END IF;
    PERFORM bad_argument(v_name, 'not_before or deadline', 'is not between the years 1970 and 9999', 'Milliseconds since 1970.');
END
$$;


--
-- Name: check_bounds(text, text, bigint, numeric); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.check_bounds(p_function text, p_account text, p_priority bigint, p_tip numeric) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    a record;
    v_most int;
BEGIN
    IF is_operator() OR NOT (p_priority > 0 OR p_tip > 0) THEN
        RETURN;
    END IF;
    SELECT t.alias, t.policy INTO a FROM accounts t WHERE t.account = account_of(p_account);
    v_most := coalesce((a.policy ->> 'priority_max')::int, 100);
    IF p_priority > v_most THEN
        PERFORM bad_argument(p_function, 'priority', format('is %s; for applications account %s allows at most %s', p_priority,
            a.alias, v_most), 'Leave it out, or let an operator raise the policy''s priority_max.');
    ELSIF p_tip > 0 AND a.policy -> 'tip_cap' IS NULL THEN
        PERFORM bad_argument(p_function, 'tip', format('is %s, and account %s has no tip_cap', left(p_tip::text, 80), a.alias),
            'Leave it out, or let an operator set the policy''s tip_cap: it bounds what applications may pay.');
    END IF;
END
$$;


--
-- Name: check_elements(bytea[], text[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.check_elements(p_calls bytea[], p_keys text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    v_bad record;
BEGIN
    SELECT u.n, u.call INTO v_bad FROM unnest(p_calls) WITH ORDINALITY u (call, n)
        WHERE size_fits(u.call) IS NOT TRUE ORDER BY u.n LIMIT 1;
    IF FOUND THEN
        PERFORM bad_size('enqueue_many', format('calls[%s]', v_bad.n), v_bad.call, 'Pass SCALE-encoded calls.');
    END IF;
    PERFORM check_hex_text('enqueue_many', format('calls[%s]', u.n), u.call) FROM unnest(p_calls) WITH ORDINALITY u (call, n)
        WHERE substr(u.call, 2, 1) = 'x' ORDER BY u.n;
    SELECT u.n, octet_length(u.key) AS bytes INTO v_bad FROM unnest(p_keys) WITH ORDINALITY u (key, n)
        WHERE octet_length(u.key) NOT BETWEEN 1 AND 200 ORDER BY u.n LIMIT 1;
    IF FOUND THEN
        PERFORM bad_argument('enqueue_many', format('keys[%s]', v_bad.n), format('has %s bytes; it must have 1 to 200',
            v_bad.bytes), 'Use NULL for no key, or a hash of a longer one.');
    END IF;
END
$$;


--
-- Name: check_eras(text, txrelay.accounts, bigint[], bigint[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.check_eras(p_function text, a txrelay.accounts, p_births bigint[], p_deaths bigint[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    IF EXISTS (SELECT FROM unnest(p_births, p_deaths) u (birth, death)
            WHERE CASE WHEN u.death >= 0 THEN (u.death - nullif(u.birth, -1) <= a.era_longest) IS NOT TRUE
                ELSE NOT a.era_immortal END) THEN
        PERFORM order_error(format('%s: an era is longer than %s blocks%s, which is the longest of account %s', p_function,
            a.era_longest, CASE WHEN a.era_immortal THEN '' ELSE ', or there is none' END, a.alias),
            'relay_register with the longest era, before anything is signed with it.');
    END IF;
END
$$;


--
-- Name: check_expiry(text, integer, integer); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.check_expiry(p_function text, p_expiry_1_ms integer, p_expiry_2_ms integer) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    IF p_expiry_1_ms IS NULL OR p_expiry_1_ms NOT BETWEEN 1 AND 86400000 THEN
        PERFORM bad_argument(p_function, 'p_expiry_1_ms', format('is %s; it must be 1 to 86400000',
            coalesce(p_expiry_1_ms::text, 'NULL')), 'Milliseconds after which a silent leader may be replaced.');
    ELSIF p_expiry_2_ms IS NULL OR p_expiry_2_ms NOT BETWEEN p_expiry_1_ms AND 86400000 THEN
        PERFORM bad_argument(p_function, 'p_expiry_2_ms', format('is %s; it must be p_expiry_1_ms (%s) to 86400000',
            coalesce(p_expiry_2_ms::text, 'NULL'), p_expiry_1_ms),
            'Longer than the longest submission; equal to p_expiry_1_ms for a single expiry.');
    END IF;
END
$$;


--
-- Name: check_feed_options(jsonb); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.check_feed_options(p_options jsonb) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    o record;
    v_least bigint;
    v_most bigint;
BEGIN
    IF jsonb_typeof(p_options) IS DISTINCT FROM 'object' THEN
        PERFORM bad_argument('feed_create', 'options', format('is %s; it must be a JSON object',
            coalesce(left(p_options::text, 80), 'NULL')), 'For example {"stale_winner_ms": 60000}.');
    END IF;
    FOR o IN SELECT * FROM jsonb_each(p_options) LOOP
        v_least := CASE WHEN o.key IN ('duplicate_skip_window', 'behind_stays_open') THEN 0
            WHEN o.key IN ('batch_calls_max', 'batch_bytes_max') THEN 1 ELSE 100 END;
        v_most := CASE o.key WHEN 'persistence_ack_ms' THEN 3600000 WHEN 'stale_winner_ms' THEN 3600000
            WHEN 'resend_ms' THEN 3600000 WHEN 'duplicate_skip_window' THEN 10 WHEN 'behind_stays_open' THEN 1
            WHEN 'batch_calls_max' THEN 10000 WHEN 'batch_bytes_max' THEN 67108864 END;
        IF v_most IS NULL THEN
            PERFORM bad_argument('feed_create', format('"%s"', left(o.key, 80)), 'is not an option of a feed',
                'The options are persistence_ack_ms, stale_winner_ms, resend_ms, duplicate_skip_window, behind_stays_open, '
                'batch_calls_max and batch_bytes_max.');
        ELSIF jsonb_typeof(o.value) <> 'number' OR (o.value #>> '{}')::numeric NOT BETWEEN v_least AND v_most
              OR (o.value #>> '{}')::numeric <> trunc((o.value #>> '{}')::numeric) THEN
            PERFORM bad_argument('feed_create', o.key, format('is %s; it must be a whole number from %s to %s',
                left(o.value::text, 80), v_least, v_most), 'Leave it out for the default.');
        END IF;
    END LOOP;
END
$$;


--
-- Name: check_full(text, integer); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.check_full(p_function text, p_account integer) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    a record;
    v_role text := acting_role();
BEGIN
    IF is_operator() OR NOT EXISTS (SELECT FROM outbox_full f WHERE f.account = p_account AND f.role = v_role) THEN
        RETURN;
    END IF;
    SELECT t.alias, outbox_most(t.policy) AS most INTO a FROM accounts t WHERE t.account = p_account;
    IF outbox_over(p_account, v_role, a.most - 1) THEN
        RAISE EXCEPTION USING ERRCODE = 'TR013',
            MESSAGE = format('%s: %s transactions of %s wait at account %s already', p_function, a.most, v_role, a.alias),
            HINT = 'Try again when some have been sent, or let an operator raise the policy''s outbox_max.';
    END IF;
    DELETE FROM outbox_full f USING (SELECT x.account, x.role FROM outbox_full x WHERE x.account = p_account AND x.role = v_role
        FOR UPDATE SKIP LOCKED) free WHERE f.account = free.account AND f.role = free.role;
END
$$;


--
-- Name: check_hex_text(text, text, bytea); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.check_hex_text(p_function text, p_argument text, p_call bytea) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $_$
DECLARE
    c_backslash CONSTANT text := chr(92); -- these files hold none: psql has commands that begin with one
    v_text text := replace(encode(p_call, 'escape'), c_backslash || c_backslash, c_backslash);
BEGIN
    IF left(v_text, 2) IN ('0x', c_backslash || 'x') AND substr(v_text, 3) ~ '^([0-9a-fA-F]{2})*$' THEN
        PERFORM bad_argument(p_function, p_argument, format('is the text %s%s and not the bytes that it stands for',
            quote_literal(left(v_text, 20)), CASE WHEN length(v_text) > 20 THEN '...' ELSE '' END),
            'Decode it first: decode(substr(text, 3), ''hex'') in SQL, bytes.fromhex(text[2:]) in Python, '
            'Buffer.from(text.slice(2), ''hex'') in Node.');
    END IF;
END
$_$;


--
-- Name: check_nonces(text, bigint[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.check_nonces(p_function text, p_nonces bigint[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
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


--
-- Name: check_options(text, bigint, text, timestamp with time zone, timestamp with time zone, bigint, numeric, numeric, bigint, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.check_options(p_function text, p_priority bigint, p_creator text, p_not_before timestamp with time zone, p_deadline timestamp with time zone, p_spec_version bigint, p_tip numeric, p_max_tip numeric, p_deadline_block bigint, p_retries bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    IF p_priority IS NULL OR p_priority NOT BETWEEN -1000 AND 1000 THEN
        PERFORM bad_argument(p_function, 'priority', format('is %s; it must be -1000 to 1000',
            coalesce(p_priority::text, 'NULL')), 'Higher goes first; leave it out for 0.');
    ELSIF octet_length(p_creator) > 200 THEN
        PERFORM bad_argument(p_function, 'creator', format('has %s bytes; at most 200', octet_length(p_creator)),
            'It names who asked; leave it out for the session''s user.');
    END IF;
    IF num_nonnulls(p_tip, p_max_tip) > 0 THEN
        PERFORM check_amount(p_function, 'tip', p_tip, 'In the chain''s smallest unit; leave it out for the account''s '
            'policy.');
        PERFORM check_amount(p_function, 'max_tip', p_max_tip, 'In the chain''s smallest unit; leave it out for none but '
            'the account''s tip_cap.');
    END IF;
    IF time_fits(p_not_before) IS FALSE OR time_fits(p_deadline) IS FALSE THEN
        PERFORM bad_argument(p_function, CASE WHEN time_fits(p_not_before) IS FALSE THEN 'not_before' ELSE 'deadline' END,
            format('is %s; it must be before the year 10000', CASE WHEN time_fits(p_not_before) IS FALSE THEN p_not_before
                ELSE p_deadline END), 'Leave it out (NULL) for none.');
    ELSIF p_deadline <= greatest(clock_timestamp(), p_not_before) THEN
        PERFORM bad_argument(p_function, 'deadline', format('is %s; it must be later than now (%s)%s', p_deadline,
            clock_timestamp(), coalesce(' and than not_before (' || p_not_before || ')', '')),
            'Pass a later deadline, or NULL for none.');
    ELSIF p_spec_version NOT BETWEEN 0 AND 4294967295 THEN
        PERFORM bad_argument(p_function, 'spec_version', format('is %s; it must be 0 to 4294967295', p_spec_version),
            'It is the runtime spec version that the call was made for; leave it out to sign under any.');
    ELSIF p_tip > p_max_tip THEN
        PERFORM bad_argument(p_function, 'tip', format('is %s; it must not be above max_tip (%s)', p_tip, p_max_tip),
            'max_tip bounds what it may ever pay, the first time included.');
    ELSIF p_deadline_block <= 0 THEN
        PERFORM bad_argument(p_function, 'deadline_block', format('is %s; it must be above 0', p_deadline_block),
            'It is the number of the last block that may hold it; leave it out for none.');
    ELSIF p_retries IS NULL OR p_retries NOT BETWEEN 0 AND 100 THEN
        PERFORM bad_argument(p_function, 'retries', format('is %s; it must be 0 to 100',
            coalesce(p_retries::text, 'NULL')),
            'It is the number of retries when the chain says that the call failed; leave it out for 0.');
    END IF;
END
$$;


--
-- Name: check_owner(text, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.check_owner(p_function text, p_id bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_role text;
BEGIN
    IF is_operator() THEN
        RETURN;
    END IF;
    v_role := coalesce((SELECT coalesce(o.role, o.creator) FROM outbox o WHERE o.id = p_id),
        (SELECT coalesce(s.role, s.creator) FROM outbox_presigned s WHERE s.id = p_id ORDER BY s.id LIMIT 1),
        (SELECT coalesce(p.role, p.creator) FROM pending_of(p_id) p));
    IF v_role IS NOT NULL AND NOT has_role(v_role) THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('%s: transaction %s belongs to %s, and user %s is no member of it', p_function, p_id, v_role,
                session_user),
            HINT = 'Ask as a member of that role, or let an operator (a member of txrelay_relay) do it.';
    END IF;
END
$$;


--
-- Name: check_publishers(text, bytea[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.check_publishers(p_function text, p_publishers bytea[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    v_bad bytea := (SELECT u.key FROM unnest(p_publishers) u (key) WHERE octet_length(u.key) <> 32 LIMIT 1);
BEGIN
    IF (cardinality(p_publishers) BETWEEN 1 AND 32) IS NOT TRUE THEN
        PERFORM bad_argument(p_function, 'publishers', format('has %s elements; it must have 1 to 32',
            coalesce(cardinality(p_publishers), 0)), 'One ed25519 public key for each copy of the producer.');
    ELSIF v_bad IS NOT NULL OR array_position(p_publishers, NULL) IS NOT NULL THEN
        PERFORM bad_argument(p_function, 'publishers', format('has an element of %s bytes; a key has 32',
            coalesce(octet_length(v_bad), 0)), 'Pass the 32 bytes of an ed25519 public key.');
    ELSIF (SELECT count(DISTINCT u.key) FROM unnest(p_publishers) u (key)) <> cardinality(p_publishers) THEN
        PERFORM bad_argument(p_function, 'publishers', 'has the same key twice', 'Each copy of the producer has a key of its own.');
    END IF;
END
$$;


--
-- Name: check_text(text, text, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.check_text(p_function text, p_argument text, p_text text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    IF NOT text_fits(p_text) THEN
        PERFORM bad_argument(p_function, p_argument, 'is no text in UTF-8', 'This database takes any bytes (SQL_ASCII), and '
            'readers do not: set client_encoding = UTF8 and pass UTF-8.');
    END IF;
END
$$;


--
-- Name: check_trace(text, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.check_trace(p_function text, p_traceparent text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $_$
BEGIN
    IF p_traceparent !~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$' OR p_traceparent ~ '^ff|-0{32}-|-0{16}-' THEN
        PERFORM bad_argument(p_function, 'traceparent', format('is %s; it must be like '
            '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', quote_literal(left(p_traceparent, 80))),
            'Pass the header traceparent of the request as it is (55 characters), or leave it out.');
    END IF;
END
$_$;


--
-- Name: check_use(text, integer); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.check_use(p_function text, p_account integer) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    a record;
BEGIN
    SELECT t.alias, t.users INTO a FROM accounts t WHERE t.account = p_account;
    IF a.users IS NOT NULL AND NOT is_operator() AND NOT EXISTS (SELECT FROM unnest(a.users) u (role) WHERE has_role(u.role)) THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('%s: account %s is used by %s, and user %s is no member of it', p_function, a.alias,
                coalesce(nullif(array_to_string(a.users, ', '), ''), 'no application'), session_user),
            HINT = format('An operator may grant it: SELECT txrelay.account_grant(%L, %L);', a.alias, session_user);
    END IF;
END
$$;


--
-- Name: leadership; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.leadership (
    subject integer NOT NULL,
    kind text NOT NULL,
    lock_key bigint NOT NULL,
    holder text,
    holder_address text,
    lock_held boolean DEFAULT false NOT NULL,
    lock_pid integer,
    epoch bigint DEFAULT 0 NOT NULL,
    expiry_1 timestamp with time zone,
    expiry_2 timestamp with time zone,
    heartbeat timestamp with time zone,
    leased boolean DEFAULT false NOT NULL,
    timeline integer,
    seen_block bigint,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT leadership_claim CHECK (((holder IS NULL) OR (((expiry_2 >= expiry_1) AND (heartbeat IS NOT NULL)) IS TRUE))),
    CONSTRAINT leadership_kind_check CHECK (((octet_length(kind) >= 1) AND (octet_length(kind) <= 40)))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='200', autovacuum_vacuum_cost_delay='0');


--
-- Name: claim_times(txrelay.leadership); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.claim_times(l txrelay.leadership) RETURNS TABLE(expiry_1 timestamp with time zone, expiry_2 timestamp with time zone, seen_block bigint)
    LANGUAGE sql STABLE ROWS 1
    AS $$
    SELECT coalesce(r.expiry_1, l.expiry_1), coalesce(r.expiry_2, l.expiry_2), greatest(l.seen_block, r.seen_block)
    FROM (SELECT) one LEFT JOIN txrelay.relay_leases r ON l.leased AND r.holder OPERATOR(pg_catalog.=) l.holder
$$;


--
-- Name: claims_fingerprint(timestamp with time zone); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.claims_fingerprint(p_now timestamp with time zone) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'on'
    AS $$
BEGIN
    RETURN (SELECT format('%s/%s', sum(g.claims), sum(g.subjects) FILTER (WHERE g.holder IS NOT NULL
            AND (coalesce(r.expiry_1, g.expiry_1) > p_now
                AND (g.lock_pid IS NULL OR EXISTS (SELECT FROM pg_stat_get_activity(g.lock_pid)))) IS NOT TRUE))
        FROM (SELECT l.holder, l.leased, l.lock_pid, CASE WHEN NOT l.leased THEN l.expiry_1 END AS expiry_1,
                  sum(l.subject) AS subjects, sum(2 * l.epoch + (l.holder IS NULL)::int) AS claims
              FROM leadership l GROUP BY 1, 2, 3, 4) g LEFT JOIN relay_leases r ON g.leased AND r.holder = g.holder);
END
$$;


--
-- Name: clock_behind(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.clock_behind() RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RETURN ceil(extract(epoch FROM steady_clock() - clock_timestamp()));
END
$$;


--
-- Name: clock_of(text, timestamp with time zone); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.clock_of(p_function text, p_now timestamp with time zone) RETURNS timestamp with time zone
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    IF p_now IS NULL THEN
        RETURN steady_clock();
    ELSIF EXISTS (SELECT FROM pg_roles r WHERE r.rolname = 'txrelay_clock' AND pg_has_role(session_user, r.oid, 'MEMBER')) THEN
        RETURN p_now;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
        MESSAGE = format('%s: p_now is given, and user %s may not set the clock', p_function, session_user),
        HINT = 'Leave it out: the time is the database''s.';
END
$$;


--
-- Name: counts(text, integer); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.counts(account text DEFAULT NULL::text, most integer DEFAULT 10000) RETURNS TABLE(alias text, stage text, state text, count bigint, more boolean, oldest timestamp with time zone, fee numeric)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
DECLARE
    v_account int;
BEGIN
    IF counts.account IS NOT NULL THEN
        v_account := account_of(counts.account);
    END IF;
    IF most IS NULL OR most NOT BETWEEN 1 AND 1000000 THEN
        PERFORM bad_argument('counts', 'most', format('is %s; it must be 1 to 1000000', coalesce(most::text, 'NULL')),
            'It bounds how many rows of each account are read.');
    END IF;
    RETURN QUERY
        SELECT a.alias, r.stage, r.state, count(*), bool_or(r.total > counts.most), min(r.created_at), sum(r.fee)
        FROM accounts a CROSS JOIN LATERAL (
            SELECT 'outbox' AS stage, 'queued' AS state, w.created_at, NULL::numeric AS fee, row_number() OVER () AS place,
                count(*) OVER () AS total
            FROM (
                (SELECT o.created_at FROM outbox o WHERE o.account = a.account AND o.not_before IS NULL
                    ORDER BY o.account, o.priority DESC, o.id LIMIT counts.most + 1)
                UNION ALL
                (SELECT o.created_at FROM outbox o WHERE o.account = a.account AND o.not_before IS NOT NULL
                    ORDER BY o.account, o.not_before LIMIT counts.most + 1)
                UNION ALL
                (SELECT s.created_at FROM outbox_presigned s WHERE s.account = a.account
                    ORDER BY s.account, s.nonce, s.id LIMIT counts.most + 1)) w
            UNION ALL
            SELECT 'pending', p.state::text, p.created_at, NULL, row_number() OVER (), count(*) OVER ()
            FROM (SELECT t.state, t.created_at FROM pending_transactions t WHERE t.account = a.account AND t.id IS NOT NULL
                ORDER BY t.account, t.nonce LIMIT counts.most + 1) p
            UNION ALL
            SELECT 'finished', f.outcome::text, f.created_at, f.fee, row_number() OVER (), count(*) OVER ()
            FROM (
                (SELECT t.outcome, t.created_at, t.fee FROM finished_transactions t WHERE t.account = a.account AND t.id IS NOT NULL
                    AND t.nonce IS NOT NULL ORDER BY t.account DESC, t.nonce DESC LIMIT counts.most + 1)
                UNION ALL
                (SELECT t.outcome, t.created_at, t.fee FROM finished_transactions t WHERE t.account = a.account
                    AND t.nonce IS NULL LIMIT counts.most + 1)) f) r
        WHERE (v_account IS NULL OR a.account = v_account) AND r.place <= counts.most
        GROUP BY 1, 2, 3
        ORDER BY 1, array_position(ARRAY['outbox', 'pending', 'finished'], r.stage), 3;
END
$$;


--
-- Name: drop_partitions(interval, timestamp with time zone); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.drop_partitions(p_age interval, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET lock_timeout TO '300ms'
    SET "TimeZone" TO 'UTC'
    AS $_$
DECLARE
    v_name text;
    v_dropped int := 0;
BEGIN
    p_now := clock_of('drop_partitions', p_now);
    IF p_age IS NULL OR p_age < interval '1 day' THEN
        PERFORM bad_argument('drop_partitions', 'p_age', format('is %s; at least 1 day', coalesce(p_age::text,
            'NULL')), 'It is how long records of finished transactions are kept.');
    END IF;
    IF NOT pg_try_advisory_xact_lock(9002, 0) THEN
        RETURN 0;
    END IF;
    FOR v_name IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'txrelay.finished_transactions'::regclass AND c.relname ~ '_[0-9]{4}m[0-9]{2}$'
          AND to_timestamp(right(c.relname, 7), 'YYYY"m"MM') + interval '1 month' <= p_now - p_age
    LOOP
        EXECUTE format('DROP TABLE txrelay.%I', v_name);
        v_dropped := v_dropped + 1;
        DELETE FROM retries r WHERE r.created_at < to_timestamp(right(v_name, 7), 'YYYY"m"MM') + interval '1 month'
            AND NOT EXISTS (SELECT FROM finished_transactions f WHERE f.id = r.id);
        INSERT INTO retention AS r (dropped_before)
            VALUES (to_timestamp(right(v_name, 7), 'YYYY"m"MM') + interval '1 month')
            ON CONFLICT (one) DO UPDATE SET dropped_before = greatest(r.dropped_before, excluded.dropped_before);
    END LOOP;
    RETURN v_dropped;
END
$_$;


--
-- Name: enqueue(text, bytea, text, bigint, timestamp with time zone, timestamp with time zone, text, bigint, numeric, numeric, bigint, bigint, interval, interval, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.enqueue(account text, call bytea, key text DEFAULT NULL::text, priority bigint DEFAULT 0, not_before timestamp with time zone DEFAULT NULL::timestamp with time zone, deadline timestamp with time zone DEFAULT NULL::timestamp with time zone, creator text DEFAULT NULL::text, spec_version bigint DEFAULT NULL::bigint, tip numeric DEFAULT NULL::numeric, max_tip numeric DEFAULT NULL::numeric, deadline_block bigint DEFAULT NULL::bigint, retries bigint DEFAULT 0, expires_in interval DEFAULT NULL::interval, delay interval DEFAULT NULL::interval, traceparent text DEFAULT NULL::text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    v_id bigint;
    v_awake boolean;
    v_new boolean; -- by the statement's snapshot, which is older than its id
BEGIN
    -- Options, or a call of a wrong size, take the longer way.
    IF (num_nonnulls(not_before, deadline, creator, spec_version, tip, max_tip, deadline_block, expires_in, delay, traceparent)
        | priority | retries = 0 AND size_fits(call) AND substr(call, 2, 1) <> 'x') IS NOT TRUE THEN
        IF num_nonnulls(expires_in, delay) > 0 THEN
            deadline := time_of_span('enqueue', 'expires_in', expires_in, 'deadline', deadline);
            not_before := time_of_span('enqueue', 'delay', delay, 'not_before', not_before);
        END IF;
        IF priority IS NULL OR priority NOT BETWEEN -1000 AND 1000 OR octet_length(creator) > 200
           OR num_nonnulls(tip, max_tip, deadline_block) > 0 OR retries IS DISTINCT FROM 0 OR spec_version NOT BETWEEN 0 AND 4294967295
           OR deadline <= greatest(clock_timestamp(), not_before) OR (time_fits(deadline) AND time_fits(not_before)) IS FALSE THEN
            PERFORM check_options('enqueue', priority, creator, not_before, deadline, spec_version, tip, max_tip,
                deadline_block, retries);
        END IF;
        IF traceparent IS NOT NULL THEN
            PERFORM check_trace('enqueue', traceparent);
        END IF;
        IF (priority > 0 OR tip > 0) AND NOT is_operator() THEN
            PERFORM check_bounds('enqueue', enqueue.account, priority, tip);
        END IF;
        IF size_fits(call) IS NOT TRUE THEN
            PERFORM bad_size('enqueue', 'call', call, 'Pass the SCALE-encoded call. Split a batch that is too large.');
        ELSIF substr(call, 2, 1) = 'x' THEN
            PERFORM check_hex_text('enqueue', 'call', call);
        END IF;
    END IF;

    IF key IS NULL THEN
        INSERT INTO outbox (account, call, creator, priority, not_before, deadline, guard, tip, max_tip, deadline_block,
                retries, role, traceparent)
            SELECT a.account, enqueue.call, coalesce(enqueue.creator, session_user), enqueue.priority,
                enqueue.not_before, enqueue.deadline, enqueue.spec_version, enqueue.tip, enqueue.max_tip,
                enqueue.deadline_block, enqueue.retries, stored_role(enqueue.creator), enqueue.traceparent
            FROM accounts a WHERE a.alias = enqueue.account AND NOT (a.watch_only OR a.careful)
                AND NOT EXISTS (SELECT FROM outbox_full f WHERE f.account = a.account)
            RETURNING id, pg_try_advisory_xact_lock_shared(9001, account),
                id > (SELECT h.highest_id FROM high_water h WHERE h.one)
            INTO v_id, v_awake, v_new;
    ELSIF octet_length(key) BETWEEN 1 AND 200 THEN
        WITH k AS (
            INSERT INTO idempotency_keys (account, role, key, id, payload_sha256)
                SELECT a.account, key_role(), enqueue.key, nextval('txrelay.transaction_id'), sha256(enqueue.call)
                FROM accounts a WHERE a.alias = enqueue.account AND NOT (a.watch_only OR a.careful)
                AND NOT EXISTS (SELECT FROM outbox_full f WHERE f.account = a.account)
                ON CONFLICT (account, role, key) DO NOTHING RETURNING account, id
        )
        INSERT INTO outbox (id, account, call, key, creator, priority, not_before, deadline, guard, tip, max_tip,
                deadline_block, retries, role, traceparent)
            SELECT k.id, k.account, enqueue.call, enqueue.key, coalesce(enqueue.creator, session_user), enqueue.priority,
                enqueue.not_before, enqueue.deadline, enqueue.spec_version, enqueue.tip, enqueue.max_tip,
                enqueue.deadline_block, enqueue.retries, stored_role(enqueue.creator), enqueue.traceparent
            FROM k RETURNING id, pg_try_advisory_xact_lock_shared(9001, account),
                id > (SELECT h.highest_id FROM high_water h WHERE h.one)
            INTO v_id, v_awake, v_new;
    ELSE
        PERFORM bad_argument('enqueue', 'key', format('has %s bytes; it must have 1 to 200', octet_length(key)),
            'Leave it out (NULL) for no idempotency key, or use a hash of a longer one.');
    END IF;

    IF getdatabaseencoding() = 'SQL_ASCII' THEN
        PERFORM check_text('enqueue', 'creator', creator), check_text('enqueue', 'key', key);
    END IF;
    IF NOT v_new THEN
        PERFORM id_given_again('enqueue', v_id);
    ELSIF v_id & 1023 = 0 THEN
        PERFORM note_full(o.account) FROM outbox o WHERE o.id = v_id;
    END IF;
    IF v_awake THEN
        RETURN v_id;
    ELSIF v_awake IS NULL THEN
        RETURN enqueue_searching(account, call, key, priority, not_before, deadline, creator, spec_version, tip, max_tip,
            deadline_block, retries, traceparent);
    END IF;
    PERFORM tell_outbox_of(v_id); -- ring(), in place
    RETURN v_id;
END
$$;


--
-- Name: enqueue_many(text, bytea[], text[], bigint, text, timestamp with time zone, timestamp with time zone, bigint, numeric, numeric, bigint, bigint, interval, interval, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.enqueue_many(account text, calls bytea[], keys text[] DEFAULT NULL::text[], priority bigint DEFAULT 0, creator text DEFAULT NULL::text, not_before timestamp with time zone DEFAULT NULL::timestamp with time zone, deadline timestamp with time zone DEFAULT NULL::timestamp with time zone, spec_version bigint DEFAULT NULL::bigint, tip numeric DEFAULT NULL::numeric, max_tip numeric DEFAULT NULL::numeric, deadline_block bigint DEFAULT NULL::bigint, retries bigint DEFAULT 0, expires_in interval DEFAULT NULL::interval, delay interval DEFAULT NULL::interval, traceparent text DEFAULT NULL::text) RETURNS bigint[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    v_account int;
    v_given bigint; -- ids up to this one
    v_ids bigint[];
    v_result bigint[];
    v_good bigint;
    v_keys bigint; -- how many are not NULL
    v_stored bigint;
BEGIN
    IF calls IS NULL OR cardinality(calls) > 100000 THEN
        PERFORM bad_argument('enqueue_many', 'calls', CASE WHEN calls IS NULL THEN 'is NULL'
            ELSE format('has %s elements', cardinality(calls)) END || '; it must have 0 to 100000',
            'Use several calls; they may be in one transaction.');
    ELSIF cardinality(keys) <> cardinality(calls) THEN
        PERFORM bad_argument('enqueue_many', 'keys', format('has %s elements and calls has %s', cardinality(keys),
            cardinality(calls)), 'Give one key per call (NULL elements are allowed), or leave keys out.');
    END IF;
    IF (num_nonnulls(not_before, deadline, creator, spec_version, tip, max_tip, deadline_block, expires_in, delay, traceparent)
        | priority | retries = 0) IS NOT TRUE THEN
        PERFORM check_trace('enqueue_many', traceparent);
        deadline := time_of_span('enqueue_many', 'expires_in', expires_in, 'deadline', deadline);
        not_before := time_of_span('enqueue_many', 'delay', delay, 'not_before', not_before);
        PERFORM check_options('enqueue_many', priority, creator, not_before, deadline, spec_version, tip, max_tip,
            deadline_block, retries);
        PERFORM check_bounds('enqueue_many', enqueue_many.account, priority, tip);
    END IF;
    SELECT a.account INTO v_account FROM accounts a WHERE a.alias = enqueue_many.account AND NOT (a.watch_only OR a.careful)
        AND NOT EXISTS (SELECT FROM outbox_full f WHERE f.account = a.account);
    IF NOT FOUND THEN
        v_account := keyed_account('enqueue_many', enqueue_many.account);
        PERFORM check_use('enqueue_many', v_account);
        PERFORM check_full('enqueue_many', v_account);
    END IF;
    PERFORM strict_turn('enqueue_many', a, priority, not_before) FROM accounts a
        WHERE a.account = v_account AND a.policy ->> 'order' = 'strict';
    -- One pass over the arrays draws ids, which ascend in any order of the elements, and counts valid
    -- elements.
    SELECT (SELECT h.highest_id FROM high_water h WHERE h.one), array_agg(nextval('txrelay.transaction_id')), -- any order
            count(*) FILTER (WHERE size_fits(u.call) AND substr(u.call, 2, 1) <> 'x'
                AND octet_length(u.key) <@ int4range(1, 200, '[]') IS NOT FALSE), count(u.key)
        INTO v_given, v_ids, v_good, v_keys FROM unnest(calls, keys) u (call, key);
    IF v_good <> cardinality(calls) THEN
        PERFORM check_elements(calls, keys);
    END IF;
    IF v_ids IS NULL THEN
        RETURN '{}';
    ELSIF v_ids[1] <= v_given THEN
        PERFORM id_given_again('enqueue_many', v_ids[1]);
    END IF;

    IF getdatabaseencoding() = 'SQL_ASCII' THEN
        PERFORM check_text('enqueue_many', 'creator', creator), check_text('enqueue_many', 'keys', array_to_string(keys, ' '));
    END IF;
    v_result := v_ids;
    IF v_keys > 0 THEN
        v_stored := store_keys(v_account, key_role(), calls, keys, v_ids);
        IF v_stored < v_keys THEN
            v_result := ids_of_keys(v_account, key_role(), calls, keys, v_ids);
        END IF;
    END IF;
    INSERT INTO outbox (id, account, call, key, creator, priority, not_before, deadline, guard, tip, max_tip,
            deadline_block, retries, role, traceparent)
        SELECT u.id, v_account, u.call, u.key, coalesce(enqueue_many.creator, session_user), enqueue_many.priority,
            enqueue_many.not_before, enqueue_many.deadline, enqueue_many.spec_version, enqueue_many.tip,
            enqueue_many.max_tip, enqueue_many.deadline_block, enqueue_many.retries, stored_role(enqueue_many.creator),
            enqueue_many.traceparent
        FROM unnest(v_ids, v_result, calls, keys) u (id, result, call, key) WHERE u.id = u.result;
    IF FOUND THEN
        PERFORM note_full(v_account) FROM accounts a WHERE a.account = v_account AND (v_ids[1] / 1024 <> v_ids[cardinality(v_ids)]
            / 1024 OR cardinality(v_ids) >= least(1024, outbox_most(a.policy) / 16));
        PERFORM ring(v_account);
    END IF;
    RETURN v_result;
END
$$;


--
-- Name: enqueue_searching(text, bytea, text, bigint, timestamp with time zone, timestamp with time zone, text, bigint, numeric, numeric, bigint, bigint, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.enqueue_searching(account text, call bytea, key text, priority bigint, not_before timestamp with time zone, deadline timestamp with time zone, creator text, spec_version bigint, tip numeric, max_tip numeric, deadline_block bigint, retries bigint, traceparent text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_variable
DECLARE
    v_account int := keyed_account('enqueue', account);
    v_id bigint;
    v_first bigint;
BEGIN
    PERFORM check_use('enqueue', v_account);
    PERFORM check_full('enqueue', v_account);
    PERFORM strict_turn('enqueue', a, priority, not_before) FROM accounts a
        WHERE a.account = v_account AND a.policy ->> 'order' = 'strict';
    v_id := new_id('enqueue');
    IF key IS NOT NULL THEN
        v_first := id_of_key(v_account, key_role(), key, v_id, sha256(call));
        IF v_first <> v_id THEN
            RETURN v_first;
        END IF;
    END IF;
    INSERT INTO outbox (id, account, call, key, creator, priority, not_before, deadline, guard, tip, max_tip,
            deadline_block, retries, role, traceparent)
        VALUES (v_id, v_account, call, key, coalesce(creator, session_user), priority, not_before, deadline,
            spec_version, tip, max_tip, deadline_block, retries, stored_role(creator), traceparent);
    PERFORM note_full(v_account) FROM accounts a WHERE a.account = v_account
        AND v_id % greatest(1, least(1024, outbox_most(a.policy) / 16)) = 0;
    PERFORM ring(v_account);
    RETURN v_id;
END
$$;


--
-- Name: enqueue_signed(bytea, text, text, text, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.enqueue_signed(extrinsic bytea, key text DEFAULT NULL::text, creator text DEFAULT NULL::text, account text DEFAULT NULL::text, traceparent text DEFAULT NULL::text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    v_body int;
    v_account int;
    v_sha bytea := sha256(extrinsic);
    v_new bigint := new_id('enqueue_signed');
    v_id bigint;
BEGIN
    IF octet_length(key) NOT BETWEEN 1 AND 200 THEN
        PERFORM bad_argument('enqueue_signed', 'key', format('has %s bytes; it must have 1 to 200', octet_length(key)),
            'Leave it out (NULL): the bytes are their own key; or use a hash of a longer one.');
    ELSIF octet_length(creator) > 200 THEN
        PERFORM bad_argument('enqueue_signed', 'creator', format('has %s bytes; at most 200', octet_length(creator)),
            'It names who asked; leave it out for the session''s user.');
    ELSIF size_fits(extrinsic) IS NOT TRUE THEN
        PERFORM bad_size('enqueue_signed', 'extrinsic', extrinsic, 'Pass the whole signed extrinsic.');
    ELSIF substr(extrinsic, 2, 1) = 'x' THEN
        PERFORM check_hex_text('enqueue_signed', 'extrinsic', extrinsic);
    END IF;
    PERFORM check_trace('enqueue_signed', traceparent);
    IF getdatabaseencoding() = 'SQL_ASCII' THEN
        PERFORM check_text('enqueue_signed', 'creator', creator), check_text('enqueue_signed', 'key', key);
    END IF;
    v_body := extrinsic_body(extrinsic);
    IF v_body = 0 THEN
        PERFORM bad_argument('enqueue_signed', 'extrinsic', format('does not begin with its length (%s bytes in all)',
            octet_length(extrinsic)), 'Pass the whole signed extrinsic with the compact length in front, as '
            'author_submitExtrinsic takes it; a call goes to enqueue.');
    ELSIF octet_length(extrinsic) < v_body + 90 OR get_byte(extrinsic, v_body) <> 132 THEN
        PERFORM bad_argument('enqueue_signed', 'extrinsic', CASE WHEN get_byte(extrinsic, v_body) & 128 = 0
            THEN 'is not signed' ELSE format('is of form 0x%s, or too short', to_hex(get_byte(extrinsic, v_body))) END,
            'Signed extrinsics of format v4 are taken (0x84 behind the length).');
    END IF;
    v_account := signer_of(extrinsic, v_body, enqueue_signed.account);
    -- A used nonce is looked up in past blocks, where it may belong to the former life.
    IF EXISTS (SELECT FROM accounts a WHERE a.account = v_account AND a.life_since IS NOT NULL) THEN
        PERFORM bad_argument('enqueue_signed', 'extrinsic', format('is signed by 0x%s, an account that was reaped or rewound once',
            encode((SELECT a.account_id FROM accounts a WHERE a.account = v_account), 'hex')),
            'Blocks of its former life would be taken for this one''s. Use enqueue, or another account.');
    END IF;
    PERFORM check_use('enqueue_signed', v_account);
    PERFORM check_full('enqueue_signed', v_account);
    -- The bytes are a key too. It is stored first, so that the caller's key stands for the first
    -- transaction with these bytes.
    v_id := id_of_key(v_account, '', 'signed 0x' || encode(v_sha, 'hex'), v_new, v_sha);
    IF enqueue_signed.key IS NOT NULL THEN
        v_id := id_of_key(v_account, key_role(), enqueue_signed.key, v_id, v_sha);
    END IF;
    IF v_id = v_new THEN
        INSERT INTO outbox_presigned (id, account, extrinsic, key, creator, role, traceparent) VALUES (v_id, v_account,
            enqueue_signed.extrinsic, enqueue_signed.key, coalesce(enqueue_signed.creator, session_user), stored_role(enqueue_signed.creator),
            enqueue_signed.traceparent);
        PERFORM note_full(v_account) FROM accounts a WHERE a.account = v_account
            AND v_id % greatest(1, least(1024, outbox_most(a.policy) / 16)) = 0;
        PERFORM ring(v_account);
    END IF;
    RETURN v_id;
END
$$;


--
-- Name: ensure_partitions(integer, timestamp with time zone); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.ensure_partitions(p_ahead integer DEFAULT 2, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET lock_timeout TO '2s'
    SET "TimeZone" TO 'UTC'
    AS $_$
DECLARE
    v_from timestamptz;
    v_name text;
    v_made int := 0;
BEGIN
    p_now := clock_of('ensure_partitions', p_now);
    IF p_ahead IS NULL OR p_ahead NOT BETWEEN 0 AND 24 THEN
        PERFORM bad_argument('ensure_partitions', 'p_ahead', format('is %s; it must be 0 to 24',
            coalesce(p_ahead::text, 'NULL')), 'Many partitions make planning slow.');
    END IF;
    FOR v_from IN SELECT generate_series(date_trunc('month', p_now),
                                         date_trunc('month', p_now) + p_ahead * interval '1 month', interval '1 month')
    LOOP
        v_name := 'finished_transactions_' || to_char(v_from, 'YYYY"m"MM');
        CONTINUE WHEN to_regclass('txrelay.' || v_name) IS NOT NULL;
        -- Two callers make one partition. The second check is a query, which sees what the wait was
        -- for; a name cache may not.
        PERFORM pg_advisory_xact_lock(9002, 0);
        CONTINUE WHEN EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'txrelay'::regnamespace
                              AND c.relname = v_name);
        EXECUTE format('CREATE TABLE txrelay.%I (LIKE txrelay.finished_transactions INCLUDING DEFAULTS '
                       'INCLUDING CONSTRAINTS)', v_name);
        -- ATTACH looks for such rows in the default partition, so they must have left before.
        LOCK TABLE txrelay.finished_transactions_default IN ACCESS EXCLUSIVE MODE;
        IF EXISTS (SELECT FROM finished_transactions_default d
                   WHERE d.finished_at >= v_from AND d.finished_at < v_from + interval '1 month') THEN
            ALTER TABLE txrelay.finished_transactions_default DISABLE TRIGGER finished_stays;
            EXECUTE format('WITH gone AS (DELETE FROM txrelay.finished_transactions_default WHERE finished_at >= $1 '
                           'AND finished_at < $2 RETURNING *) INSERT INTO txrelay.%I SELECT * FROM gone', v_name)
                USING v_from, v_from + interval '1 month';
            ALTER TABLE txrelay.finished_transactions_default ENABLE TRIGGER finished_stays;
        END IF;
        EXECUTE format('ALTER TABLE txrelay.%I REPLICA IDENTITY FULL', v_name); -- 0007_moves.sql
        EXECUTE format('ALTER TABLE txrelay.finished_transactions ATTACH PARTITION txrelay.%I FOR VALUES FROM (%L) '
                       'TO (%L)', v_name, v_from, v_from + interval '1 month');
        v_made := v_made + 1;
    END LOOP;
    RETURN v_made;
END
$_$;


--
-- Name: extrinsic_body(bytea); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.extrinsic_body(p_extrinsic bytea) RETURNS integer
    LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    v_mode int := get_byte(p_extrinsic, 0) & 3;
    v_prefix int := 1 << v_mode;
    v_length bigint := 0;
BEGIN
    IF v_mode = 3 OR octet_length(p_extrinsic) < v_prefix THEN
        RETURN 0;
    END IF;
    FOR i IN 0..v_prefix - 1 LOOP
        v_length := v_length | (get_byte(p_extrinsic, i)::bigint << (8 * i));
    END LOOP;
    RETURN CASE WHEN v_length >> 2 = octet_length(p_extrinsic) - v_prefix THEN v_prefix ELSE 0 END;
END
$$;


--
-- Name: feed_create(text, text, bytea[], jsonb, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.feed_create(name text, account text, publishers bytea[], options jsonb DEFAULT '{}'::jsonb, last bigint DEFAULT '-1'::integer) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $_$
#variable_conflict use_column
DECLARE
    v_account int := keyed_account('feed_create', feed_create.account);
BEGIN
    IF (feed_create.name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$') IS NOT TRUE THEN
        PERFORM bad_argument('feed_create', 'name', format('is %s; it must have 1 to 64 letters, digits, dots, dashes and '
            'underscores', coalesce('"' || left(feed_create.name, 80) || '"', 'NULL')), 'For example prices-eth.');
    ELSIF (last BETWEEN -1 AND 9007199254740991) IS NOT TRUE THEN
        PERFORM bad_argument('feed_create', 'last', format('is %s; it must be -1 to 9007199254740991', coalesce(last::text, 'NULL')),
            'The first batch that is taken has the number after it; -1: number 0.');
    END IF;
    PERFORM check_publishers('feed_create', publishers), check_feed_options(options);
    INSERT INTO feeds (name, account, last_number, publishers, options, created_by)
        VALUES (feed_create.name, v_account, last, publishers, options, session_user) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        PERFORM bad_argument('feed_create', 'name', format('is "%s", and there is a feed of that name', feed_create.name),
            'feed_publishers changes its keys; feed_remove removes it.');
    END IF;
END
$_$;


--
-- Name: feed_pause(text, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.feed_pause(name text, reason text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
#variable_conflict use_column
BEGIN
    UPDATE feeds f SET paused_reason = coalesce(left(reason, 200), 'by ' || session_user) WHERE f.name = feed_pause.name;
    IF NOT FOUND THEN
        PERFORM feed_unknown(feed_pause.name);
    END IF;
END
$$;


--
-- Name: feed_publishers(text, bytea[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.feed_publishers(name text, publishers bytea[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
#variable_conflict use_column
BEGIN
    PERFORM check_publishers('feed_publishers', feed_publishers.publishers);
    UPDATE feeds f SET publishers = feed_publishers.publishers WHERE f.name = feed_publishers.name;
    IF NOT FOUND THEN
        PERFORM feed_unknown(feed_publishers.name);
    END IF;
END
$$;


--
-- Name: feed_remove(text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.feed_remove(name text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    v_last bigint;
BEGIN
    DELETE FROM feeds f WHERE f.name = feed_remove.name RETURNING f.last_number INTO v_last;
    IF NOT FOUND THEN
        PERFORM feed_unknown(feed_remove.name);
    END IF;
    DELETE FROM feed_batches b WHERE b.feed = feed_remove.name;
    RETURN v_last;
END
$$;


--
-- Name: feed_resume(text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.feed_resume(name text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
#variable_conflict use_column
BEGIN
    UPDATE feeds f SET paused_reason = NULL WHERE f.name = feed_resume.name;
    IF NOT FOUND THEN
        PERFORM feed_unknown(feed_resume.name);
    END IF;
END
$$;


--
-- Name: feed_unknown(text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.feed_unknown(p_name text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR010', MESSAGE = format('no such feed: %s', coalesce('"' || left(p_name, 80) || '"', 'NULL')),
        HINT = coalesce('There are: ' || (SELECT string_agg(f.name, ', ' ORDER BY f.name) FROM (SELECT t.name FROM feeds t
            ORDER BY t.name LIMIT 10) f) || '.', 'feed_create creates one.');
END
$$;


--
-- Name: fence(integer, bigint, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.fence(p_account integer, p_epoch bigint, p_lock text) RETURNS txrelay.accounts
    LANGUAGE plpgsql
    AS $$
DECLARE
    a txrelay.accounts;
BEGIN
    PERFORM txrelay.subject_fence(p_account, p_epoch, p_lock);
    IF p_lock = 'account' THEN
        SELECT * INTO a FROM txrelay.accounts t WHERE t.account = p_account FOR NO KEY UPDATE;
    ELSE
        SELECT * INTO a FROM txrelay.accounts t WHERE t.account = p_account;
    END IF;
    IF a.account IS NULL THEN
        PERFORM txrelay.subject_unknown(p_account); -- it is a subject of another kind
    END IF;
    RETURN a;
END
$$;


--
-- Name: finished_options(integer, timestamp with time zone, timestamp with time zone, bigint, numeric, numeric, bigint, integer, boolean); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.finished_options(p_priority integer, p_not_before timestamp with time zone, p_deadline timestamp with time zone, p_guard bigint, p_tip numeric, p_max_tip numeric, p_deadline_block bigint, p_retries integer, p_signed boolean) RETURNS jsonb
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RETURN nullif(jsonb_strip_nulls(jsonb_build_object('priority', nullif(p_priority, 0), 'not_before', p_not_before,
        'deadline', p_deadline, 'spec_version', p_guard, 'tip', p_tip, 'max_tip', p_max_tip,
        'deadline_block', p_deadline_block, 'retries', nullif(p_retries, 0), 'signed', nullif(p_signed, false))), '{}');
END
$$;


--
-- Name: follow_position(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.follow_position() RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    v_now timestamptz := steady_clock();
    v_open timestamptz;
BEGIN
    SELECT min(s.xact_start) INTO v_open FROM pg_locks l JOIN pg_stat_activity s ON s.pid = l.pid
        WHERE l.locktype = 'relation' AND l.relation = 'txrelay.finished_transactions'::regclass
          AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
          AND l.mode = 'RowExclusiveLock' AND l.pid <> pg_backend_pid();
    RETURN (extract(epoch FROM least(v_now, v_open)) * 1000000)::bigint;
END
$$;


--
-- Name: has_role(text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.has_role(p_role text) RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RETURN EXISTS (SELECT FROM pg_roles r WHERE r.rolname = p_role AND pg_has_role(session_user, r.oid, 'MEMBER'));
END
$$;


--
-- Name: held_text(bigint[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.held_text(p_ids bigint[]) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    RETURN (SELECT format('transaction %s is %s', u.id, h.who) FROM unnest(p_ids) u (id)
        CROSS JOIN LATERAL (
            (SELECT x.xmax AS held FROM outbox x WHERE x.id = u.id LIMIT 1)
            UNION ALL
            (SELECT x.xmax FROM outbox_presigned x WHERE x.id = u.id ORDER BY x.id LIMIT 1)) o
        CROSS JOIN LATERAL row_holder(o.held) h WHERE o.held <> 0 LIMIT 1);
END
$$;


--
-- Name: highest_id(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.highest_id() RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    RETURN greatest((SELECT h.highest_id FROM high_water h WHERE h.one), (SELECT max(o.id) FROM outbox o),
        (SELECT max(s.id) FROM outbox_presigned s), (SELECT max(p.id) FROM pending_transactions p),
        (SELECT max(f.id) FROM finished_transactions f), 0);
END
$$;


--
-- Name: history(bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.history(id bigint) RETURNS TABLE(nonce bigint, attempt integer, hash text, tip numeric, filler boolean, outcome text, state text, reason text, error text, error_count integer, spec_version bigint, era_death bigint, created_at timestamp with time zone, ended_at timestamp with time zone)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
    WITH place AS (
        SELECT p.account, p.nonce, p.attempt, p.state, p.error FROM pending_of(history.id) p WHERE p.id IS NOT NULL
        UNION ALL
        (SELECT DISTINCT f.account, f.nonce, NULL::int, NULL::tx_state, NULL::text FROM (
            SELECT x.account, x.nonce FROM finished_transactions x WHERE x.id = history.id
            UNION ALL
            SELECT x.account, x.nonce FROM finished_transactions x WHERE x.requeued = history.id) f
        WHERE f.nonce IS DISTINCT FROM (SELECT p.nonce FROM pending_of(history.id) p))
    ), tried AS (
        SELECT t.*, CASE WHEN t.number = p.attempt THEN p.state ELSE t.state END AS last_state,
            CASE WHEN t.number = p.attempt THEN coalesce(p.error, t.error) ELSE t.error END AS last_error
        FROM place p JOIN attempts t ON t.account = p.account AND t.nonce = p.nonce AND t.id = history.id
    )
    SELECT t.nonce, t.number, '0x' || encode(t.hash, 'hex'), t.tip, t.filler IS NOT NULL, t.outcome::text,
        t.last_state::text, t.reason, e.error, e.count, t.spec_version, t.era_death, t.created_at, t.ended_at
    FROM tried t LEFT JOIN LATERAL (
        SELECT r.error, r.count, r.first_at FROM refusals r
            WHERE r.account = t.account AND r.nonce = t.nonce AND r.number = t.number
        UNION ALL
        SELECT t.last_error, 1, coalesce(t.error_at, t.ended_at) WHERE t.last_error IS NOT NULL
            AND NOT EXISTS (SELECT FROM refusals r WHERE r.account = t.account AND r.nonce = t.nonce
                AND r.number = t.number AND r.error = left(t.last_error, 500))) e ON true
    ORDER BY t.created_at, t.nonce, t.number, e.first_at, e.error
$$;


--
-- Name: id_given_again(text, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.id_given_again(p_function text, p_id bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR014',
        MESSAGE = format('%s: id %s was given before: the sequence of ids is behind the records (%s), as after a copy without '
            'its sequences', p_function, p_id, highest_id()),
        HINT = 'Run txrelay migrate, or start a relay: both move it on. Then call again.';
END
$$;


--
-- Name: id_of_key(integer, text, text, bigint, bytea); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.id_of_key(p_account integer, p_role text, p_key text, p_id bigint, p_sha256 bytea) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_first record;
BEGIN
    LOOP
        IF p_role = '' OR NOT EXISTS (SELECT FROM idempotency_keys k WHERE k.account = p_account AND k.role = ''
                AND k.key = p_key) THEN
            INSERT INTO idempotency_keys (account, role, key, id, payload_sha256)
                VALUES (p_account, p_role, p_key, p_id, p_sha256) ON CONFLICT (account, role, key) DO NOTHING;
            IF FOUND THEN
                RETURN p_id;
            END IF;
        END IF;
        SELECT k.id, k.payload_sha256 = p_sha256 AS same INTO v_first FROM idempotency_keys k
            WHERE k.account = p_account AND k.role IN ('', p_role) AND k.key = p_key
            ORDER BY k.account, k.role, k.key LIMIT 1;
        CONTINUE WHEN NOT FOUND; -- retention deleted it between the two statements
        IF NOT v_first.same THEN
            PERFORM key_reused(p_key, v_first.id);
        END IF;
        RETURN v_first.id;
    END LOOP;
END
$$;


--
-- Name: ids_behind(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.ids_behind() RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RETURN greatest(0, highest_id() - coalesce(pg_sequence_last_value('txrelay.transaction_id'), 0));
END
$$;


--
-- Name: ids_of_keys(integer, text, bytea[], text[], bigint[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.ids_of_keys(p_account integer, p_role text, p_calls bytea[], p_keys text[], p_ids bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_bad record;
BEGIN
    -- LATERAL with LIMIT looks keys up one by one, whatever the statistics say (14_admit.sql).
    SELECT u.key, k.id INTO v_bad FROM unnest(p_calls, p_keys) u (call, key)
        CROSS JOIN LATERAL (SELECT x.* FROM idempotency_keys x WHERE x.account = p_account AND x.role IN ('', p_role)
            AND x.key = u.key ORDER BY x.account, x.role, x.key LIMIT 1) k
        WHERE k.payload_sha256 <> sha256(u.call) LIMIT 1;
    IF FOUND THEN
        PERFORM key_reused(v_bad.key, v_bad.id);
    END IF;
    RETURN (SELECT array_agg(coalesce(k.id, u.id) ORDER BY u.n)
        FROM unnest(p_keys, p_ids) WITH ORDINALITY u (key, id, n)
        LEFT JOIN LATERAL (SELECT x.id FROM idempotency_keys x WHERE x.account = p_account AND x.role IN ('', p_role)
            AND x.key = u.key ORDER BY x.account, x.role, x.key LIMIT 1) k ON true);
END
$$;


--
-- Name: is_operator(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.is_operator() RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    SELECT pg_catalog.pg_has_role(session_user, 'txrelay_relay', 'MEMBER')
        OR pg_catalog.pg_has_role(session_user, current_user, 'MEMBER')
$$;


--
-- Name: key_reused(text, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.key_reused(p_key text, p_id bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR012',
        MESSAGE = format('idempotency key "%s" was used before with another call, for transaction %s',
                         left(p_key, 80), p_id),
        HINT = 'Use a new key for a new call, or send the first call again to get its id.';
END
$$;


--
-- Name: key_role(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.key_role() RETURNS text
    LANGUAGE sql STABLE
    AS $$
    SELECT CASE WHEN pg_catalog.pg_has_role(session_user, 'txrelay_relay', 'MEMBER')
            OR pg_catalog.pg_has_role(session_user, current_user, 'MEMBER') THEN 'txrelay_relay'
        ELSE COALESCE(NULLIF(pg_catalog.current_setting('role'), 'none'), session_user::text) END
$$;


--
-- Name: keyed_account(text, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.keyed_account(p_function text, p_name text) RETURNS integer
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    v_account int := account_of(p_name);
BEGIN
    IF (SELECT a.watch_only FROM accounts a WHERE a.account = v_account) THEN
        PERFORM bad_argument(p_function, 'account', format('is "%s", whose key no relay has', left(p_name, 80)),
            'Sign the extrinsic where the key is, and pass it to enqueue_signed.');
    END IF;
    RETURN v_account;
END
$$;


--
-- Name: last_pending(integer); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.last_pending(p_account integer) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    RETURN (SELECT p.nonce FROM pending_transactions p WHERE p.account = p_account
        ORDER BY p.account DESC, p.nonce DESC LIMIT 1);
END
$$;


--
-- Name: leader_account(integer, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_account(p_account integer, p_epoch bigint) RETURNS TABLE(next_nonce bigint, used_nonce bigint, used_block bigint, seen_block bigint, reconcile_from bigint, lost_since_ms bigint, lost_until bigint, era_immortal boolean, paused boolean, suspension text, reborn boolean, transaction_version bigint, tip_start numeric, tip_step numeric, tip_cap numeric, tip_step_percent integer, tip_after_blocks integer, skip_after_blocks integer, requeue_usurped boolean, low_balance numeric, retry_refusals text)
    LANGUAGE plpgsql SECURITY DEFINER ROWS 1
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
BEGIN
    RETURN QUERY SELECT a.next_nonce, a.used_nonce, a.used_block,
        greatest(c.seen_block, a.seen_block, a.used_block), a.reconcile_from,
        floor(extract(epoch FROM a.lost_since) * 1000)::bigint, a.lost_heard + a.era_longest, a.era_immortal, f.*
        FROM account_facts(a) f, leadership l, claim_times(l) c WHERE l.subject = p_account;
END
$$;


--
-- Name: leader_admit(integer, bigint, bigint[], bigint[], bytea[], bytea[], numeric[], bigint[], bigint[], bigint, bigint, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_admit(p_account integer, p_epoch bigint, p_ids bigint[], p_nonces bigint[], p_hashes bytea[], p_extrinsics bytea[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_spec_version bigint, p_transaction_version bigint, p_block bigint) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'account');
    v_count int := batch_size('leader_admit', cardinality(p_ids), cardinality(p_nonces), cardinality(p_hashes),
        cardinality(p_extrinsics), cardinality(p_tips), cardinality(p_births), cardinality(p_deaths));
    v_fresh boolean;
    v_next bigint;
    v_found bigint;
    v_bad record;
BEGIN
    IF v_count = 0 THEN
        RETURN a.next_nonce;
    END IF;
    SELECT u.nonce, p_nonces[1] + u.n - 1 AS due INTO v_bad FROM unnest(p_nonces) WITH ORDINALITY u (nonce, n)
        WHERE u.nonce IS DISTINCT FROM p_nonces[1] + u.n - 1 OR u.nonce < 0 LIMIT 1;
    IF FOUND THEN
        PERFORM order_error(format('leader_admit: nonce %s where %s is due: nonces must go up by one',
            coalesce(v_bad.nonce::text, 'NULL'), coalesce(v_bad.due::text, 'a number')), 'Build the batch again.');
    END IF;
    v_next := coalesce(a.next_nonce, last_pending(p_account) + 1);
    IF p_nonces[1] <> v_next THEN
        PERFORM order_error(format('leader_admit: first nonce is %s, next nonce of account %s is %s', p_nonces[1],
            a.alias, v_next), 'Read the account again; leader_nonce moves its next nonce.');
    END IF;
    IF (SELECT count(DISTINCT u.id) FROM unnest(p_ids) u (id)) <> v_count THEN
        PERFORM order_error('leader_admit: an id is given more than once or is NULL', 'One nonce per transaction.');
    ELSIF a.paused THEN
        PERFORM batch_changed('leader_admit', 'the outbox of a paused account', 0, v_count);
    ELSIF a.transaction_version <> p_transaction_version THEN
        PERFORM other_version('leader_admit', a, p_transaction_version);
    ELSIF a.reconcile_from IS NOT NULL THEN
        PERFORM not_reconciled('leader_admit', a);
    END IF;
    PERFORM check_eras('leader_admit', a, p_births, p_deaths);
    PERFORM wait_briefly();
    -- Nonces that were never used have no attempts; one query finds out for all of them.
    SELECT NOT EXISTS (SELECT FROM attempts t WHERE t.account = p_account
            AND t.nonce BETWEEN p_nonces[1] AND p_nonces[v_count])
        INTO v_fresh;
    WITH moved AS (
        DELETE FROM outbox o USING unnest(p_ids, p_nonces, p_hashes, p_extrinsics, p_tips, p_births, p_deaths)
                b (id, nonce, hash, extrinsic, tip, birth, death)
            CROSS JOIN LATERAL (SELECT x.ctid AS at FROM outbox x WHERE x.id = b.id AND x.account = p_account
                AND (x.deadline IS NULL OR x.deadline > clock_timestamp())
                AND (x.xmax = 0 OR NOT x.xmax = ANY ((SELECT running_xids())::xid[]) AND row_free(x.id)) OFFSET 0) x
        WHERE o.ctid = x.at
        RETURNING o.*, b.nonce, b.hash, b.extrinsic, b.tip AS pays, b.birth, b.death, CASE WHEN v_fresh THEN 1
            ELSE (SELECT coalesce(max(t.number), 0) + 1 FROM attempts t WHERE t.account = p_account AND t.nonce = b.nonce)
            END AS number
    ), pending AS (
        INSERT INTO pending_transactions (account, nonce, account_id, id, call, hash, attempt, attempts, state, epoch,
            key, creator, role, priority, deadline, guard, tip, max_tip, deadline_block, retries, created_at, traceparent)
        SELECT p_account, m.nonce, a.account_id, m.id, m.call, m.hash, m.number, m.attempts + 1, 'signed', p_epoch,
            m.key, m.creator, m.role, m.priority, m.deadline, m.guard, m.tip, m.max_tip, m.deadline_block, m.retries, m.created_at,
            m.traceparent
        FROM moved m ORDER BY m.nonce
    ), tried AS (
        INSERT INTO attempts (account, nonce, number, id, hash, extrinsic, tip, era_birth, era_death, spec_version,
            transaction_version, block, epoch)
        SELECT p_account, m.nonce, m.number, m.id, m.hash, m.extrinsic, coalesce(m.pays, 0), nullif(m.birth, -1),
            nullif(m.death, -1), p_spec_version, p_transaction_version, p_block, p_epoch
        FROM moved m ORDER BY m.nonce
    ), counted AS (
        UPDATE accounts t SET next_nonce = p_nonces[1] + v_count, seen_block = greatest(t.seen_block, p_block),
            transaction_version = coalesce(t.transaction_version, p_transaction_version)
            WHERE t.account = p_account
    )
    SELECT count(*) INTO v_found FROM moved;
    IF v_found <> v_count THEN
        PERFORM batch_changed('leader_admit', 'the outbox' || coalesce(', and ' || held_text(p_ids), ''), v_found, v_count);
    END IF;
    RETURN p_nonces[1] + v_count;
END
$$;


--
-- Name: leader_admit_presigned(integer, bigint, bigint[], bigint[], bytea[], integer[], numeric[], bigint[], bigint[], bigint[], bigint, bigint, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_admit_presigned(p_account integer, p_epoch bigint, p_ids bigint[], p_nonces bigint[], p_hashes bytea[], p_call_lengths integer[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_blocks bigint[], p_spec_version bigint, p_transaction_version bigint, p_next bigint) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'account');
    v_count int := batch_size('leader_admit_presigned', cardinality(p_ids), cardinality(p_nonces), cardinality(p_hashes),
        cardinality(p_call_lengths), cardinality(p_tips), cardinality(p_births), cardinality(p_deaths),
        cardinality(p_blocks));
    v_next bigint := coalesce(a.next_nonce, last_pending(p_account) + 1, p_next);
    v_found int := 0;
    b record;
    s outbox_presigned;
BEGIN
    PERFORM check_nonces('leader_admit_presigned', p_nonces);
    IF v_next IS DISTINCT FROM p_next THEN
        PERFORM order_error(format('leader_admit_presigned: the next nonce is given as %s, and in account %s it is %s',
            coalesce(p_next::text, 'NULL'), a.alias, v_next), 'Read the account again; leader_nonce moves its next nonce.');
    ELSIF a.paused THEN
        PERFORM batch_changed('leader_admit_presigned', 'the outbox of a paused account', 0, v_count);
    ELSIF a.transaction_version <> p_transaction_version THEN
        PERFORM other_version('leader_admit_presigned', a, p_transaction_version);
    ELSIF a.reconcile_from IS NOT NULL THEN
        PERFORM not_reconciled('leader_admit_presigned', a);
    END IF;
    PERFORM wait_briefly();
    FOR b IN SELECT u.* FROM unnest(p_ids, p_nonces, p_hashes, p_call_lengths, p_tips, p_births, p_deaths, p_blocks)
            u (id, nonce, hash, call_length, tip, birth, death, block) ORDER BY u.nonce LOOP
        IF b.nonce > v_next THEN
            PERFORM order_error(format('leader_admit_presigned: nonce %s where %s is next in account %s', b.nonce, v_next,
                a.alias), 'A row waits until its nonce''s turn has come.');
        ELSIF EXISTS (SELECT FROM pending_transactions p WHERE p.account = p_account AND p.nonce = b.nonce) THEN
            PERFORM batch_changed('leader_admit_presigned', 'need of a nonce that is free', v_found, v_count);
        END IF;
        -- Without a row that was cancelled meanwhile, the nonces behind it are no gap of the caller's.
        v_next := greatest(v_next, b.nonce + 1);
        DELETE FROM outbox_presigned x WHERE x.id = b.id AND (x.account = p_account) IS TRUE
            AND (x.xmax = 0 OR NOT x.xmax = ANY ((SELECT running_xids())::xid[]) AND row_free(x.id)) RETURNING x.* INTO s;
        CONTINUE WHEN NOT FOUND;
        PERFORM signed_pend(a, p_epoch, s, b.nonce, b.hash, b.call_length, b.tip, b.birth, b.death, p_spec_version,
            p_transaction_version, b.block);
        v_found := v_found + 1;
    END LOOP;
    IF v_found <> v_count THEN
        PERFORM batch_changed('leader_admit_presigned', 'the outbox' || coalesce(', and ' || held_text(p_ids), ''), v_found,
            v_count);
    END IF;
    UPDATE accounts t SET next_nonce = v_next,
        transaction_version = coalesce(t.transaction_version, p_transaction_version) WHERE t.account = p_account;
    RETURN v_next;
END
$$;


--
-- Name: leader_adopt(integer, bigint, bigint[], bytea[], bytea[], integer[], numeric[], bigint[], bigint[], bigint[], bigint, bigint, bigint, boolean, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_adopt(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_extrinsics bytea[], p_call_lengths integer[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_times bigint[], p_spec_version bigint, p_transaction_version bigint, p_block bigint, p_done boolean, p_read bigint) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'account');
    v_count int := batch_size('leader_adopt', cardinality(p_nonces), cardinality(p_hashes), cardinality(p_extrinsics),
        cardinality(p_call_lengths), cardinality(p_tips), cardinality(p_births), cardinality(p_deaths), cardinality(p_times));
    v_adopted int := 0;
    b record;
    p pending_transactions;
    o outbox;
    s outbox_presigned;
    v_number int;
BEGIN
    PERFORM check_nonces('leader_adopt', ARRAY(SELECT DISTINCT u.nonce FROM unnest(p_nonces) u (nonce)));
    IF a.reconcile_from IS NOT NULL AND (p_done IS NOT TRUE OR p_read < coalesce(a.lost_heard + a.era_longest, p_read + 1)) THEN
        PERFORM not_reconciled('leader_adopt', a);
    ELSIF p_done THEN
        UPDATE accounts t SET reconcile_from = NULL, lost_since = NULL, lost_heard = NULL WHERE t.account = p_account;
    END IF;
    PERFORM wait_briefly();
    FOR b IN SELECT u.*, substr(u.extrinsic, octet_length(u.extrinsic) - u.call_length + 1) AS call
            FROM unnest(p_nonces, p_hashes, p_extrinsics, p_call_lengths, p_tips, p_births, p_deaths, p_times)
                u (nonce, hash, extrinsic, call_length, tip, birth, death, at) ORDER BY u.nonce, u.at, u.hash LOOP
        CONTINUE WHEN EXISTS (SELECT FROM attempts t WHERE t.account = p_account AND t.nonce = b.nonce AND t.hash = b.hash);
        SELECT * INTO p FROM pending_transactions x WHERE x.account = p_account AND x.nonce = b.nonce;
        IF FOUND THEN
            CONTINUE WHEN p.call <> b.call OR p.signed; -- a presigned transaction is never signed again
            -- Such eras are signed by this key.
            UPDATE accounts t SET era_longest = greatest(t.era_longest, b.death - nullif(b.birth, -1)),
                era_immortal = t.era_immortal OR coalesce(b.death, -1) < 0 WHERE t.account = p_account;
            PERFORM leader_attempt(p_account, p_epoch, ARRAY[b.nonce], ARRAY[b.hash], ARRAY[b.extrinsic], ARRAY[b.tip],
                ARRAY[b.birth], ARRAY[b.death], p_spec_version, coalesce(a.transaction_version, p_transaction_version), p_block,
                ARRAY['a later attempt was found, which the database had lost']);
            v_adopted := v_adopted + 1;
            CONTINUE;
        END IF;
        PERFORM must_be_free('leader_adopt', ARRAY(SELECT x.id FROM outbox_presigned x WHERE x.account = p_account
            AND x.extrinsic = b.extrinsic));
        DELETE FROM outbox_presigned x WHERE x.account = p_account AND x.extrinsic = b.extrinsic RETURNING x.* INTO s;
        IF FOUND THEN
            -- Its signer may have sent it long before, so the search starts at its era, or 1024
            -- blocks back if it has none.
            PERFORM signed_pend(a, p_epoch, s, b.nonce, b.hash, b.call_length, b.tip, b.birth, b.death, p_spec_version,
                coalesce(a.transaction_version, p_transaction_version),
                least(p_block, coalesce(nullif(b.birth, -1), greatest(p_block - 1024, 0))));
            UPDATE accounts t SET next_nonce = greatest(t.next_nonce, b.nonce + 1) WHERE t.account = p_account;
            v_adopted := v_adopted + 1;
            CONTINUE;
        END IF;
        SELECT * INTO o FROM outbox y WHERE y.account = p_account AND y.call = b.call
                AND (b.at IS NULL OR y.created_at <= to_timestamp(b.at / 1000.0) + interval '1 min')
            ORDER BY y.priority DESC, y.id LIMIT 1;
        CONTINUE WHEN NOT FOUND;
        PERFORM must_be_free('leader_adopt', ARRAY[o.id]);
        DELETE FROM outbox x WHERE x.id = o.id RETURNING x.* INTO o;
        CONTINUE WHEN NOT FOUND;
        SELECT coalesce(max(t.number), 0) + 1 INTO v_number FROM attempts t
            WHERE t.account = p_account AND t.nonce = b.nonce;
        INSERT INTO pending_transactions (account, nonce, account_id, id, call, hash, attempt, attempts, state, epoch,
            key, creator, role, priority, deadline, guard, tip, max_tip, deadline_block, retries, created_at, traceparent)
            VALUES (p_account, b.nonce, a.account_id, o.id, o.call, b.hash, v_number, o.attempts + 1, 'signed', p_epoch,
            o.key, o.creator, o.role, o.priority, o.deadline, o.guard, o.tip, o.max_tip, o.deadline_block, o.retries, o.created_at,
            o.traceparent);
        INSERT INTO attempts (account, nonce, number, id, hash, extrinsic, tip, era_birth, era_death, spec_version,
            transaction_version, block, epoch)
            VALUES (p_account, b.nonce, v_number, o.id, b.hash, b.extrinsic, b.tip, nullif(b.birth, -1),
            nullif(b.death, -1), p_spec_version, p_transaction_version, p_block, p_epoch);
        UPDATE accounts t SET next_nonce = greatest(t.next_nonce, b.nonce + 1),
            transaction_version = coalesce(t.transaction_version, p_transaction_version) WHERE t.account = p_account;
        v_adopted := v_adopted + 1;
    END LOOP;
    RETURN v_adopted;
END
$$;


--
-- Name: leader_attempt(integer, bigint, bigint[], bytea[], bytea[], numeric[], bigint[], bigint[], bigint, bigint, bigint, text[], integer[], text[], text[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_attempt(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_extrinsics bytea[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_spec_version bigint, p_transaction_version bigint, p_block bigint, p_reasons text[], p_fillers integer[] DEFAULT NULL::integer[], p_outcomes text[] DEFAULT NULL::text[], p_stop_reasons text[] DEFAULT NULL::text[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
    v_count int := batch_size('leader_attempt', cardinality(p_nonces), cardinality(p_hashes),
        cardinality(p_extrinsics), cardinality(p_tips), cardinality(p_births), cardinality(p_deaths),
        cardinality(p_reasons), coalesce(cardinality(p_fillers), cardinality(p_nonces)),
        coalesce(cardinality(p_outcomes), cardinality(p_nonces)),
        coalesce(cardinality(p_stop_reasons), cardinality(p_nonces)));
    v_found bigint;
    v_bad record;
BEGIN
    PERFORM check_nonces('leader_attempt', p_nonces);
    IF a.reconcile_from IS NOT NULL THEN
        PERFORM not_reconciled('leader_attempt', a);
    END IF;
    PERFORM check_eras('leader_attempt', a, p_births, p_deaths);
    SELECT u.nonce, t.number INTO v_bad FROM unnest(p_nonces, p_hashes) u (nonce, hash)
        CROSS JOIN LATERAL (SELECT t.number FROM attempts t WHERE t.account = p_account AND t.nonce = u.nonce
            AND t.hash = u.hash LIMIT 1) t LIMIT 1;
    IF FOUND THEN
        PERFORM order_error(format('leader_attempt: nonce %s has these bytes already, as attempt %s', v_bad.nonce,
            v_bad.number), 'Sending the same bytes again is no new attempt.');
    END IF;
    SELECT u.* INTO v_bad FROM unnest(p_nonces, p_extrinsics, p_fillers, p_outcomes)
            u (nonce, extrinsic, filler, outcome)
        WHERE u.filler IS NOT NULL AND (u.filler NOT BETWEEN 1 AND octet_length(u.extrinsic) OR u.outcome IS NULL
            OR u.outcome NOT IN ('cancelled', 'expired', 'failed')) OR u.filler IS NULL AND u.outcome IS NOT NULL LIMIT 1;
    IF FOUND THEN
        PERFORM order_error(format('leader_attempt: nonce %s with a filler of %s bytes (in %s) cannot end as %s',
            v_bad.nonce, coalesce(v_bad.filler::text, 'no'), octet_length(v_bad.extrinsic),
            coalesce(v_bad.outcome, 'NULL')), 'A filler fits its extrinsic and stops a transaction as cancelled, expired or '
            'failed; its own call names no outcome.');
    END IF;
    SELECT p.nonce, p.id INTO v_bad FROM unnest(p_nonces, p_fillers) u (nonce, filler)
        CROSS JOIN LATERAL (SELECT x.nonce, x.id FROM pending_transactions x WHERE x.account = p_account
            AND x.nonce = u.nonce AND x.signed OFFSET 0) p
        WHERE u.filler IS NULL LIMIT 1;
    IF FOUND THEN
        PERFORM order_error(format('leader_attempt: transaction %s at nonce %s was signed elsewhere', v_bad.id, v_bad.nonce),
            'Its bytes are sent again as they are, or not at all.');
    END IF;
    IF a.transaction_version <> p_transaction_version AND EXISTS (
            SELECT FROM unnest(p_nonces, p_fillers) u (nonce, filler)
            CROSS JOIN LATERAL (SELECT x.id FROM pending_transactions x WHERE x.account = p_account AND x.nonce = u.nonce
                OFFSET 0) p
            WHERE u.filler IS NULL AND p.id IS NOT NULL) THEN
        PERFORM other_version('leader_attempt', a, p_transaction_version);
    END IF;
    -- End the former attempt first, while its number can still be read. An outcome from a status
    -- stays.
    UPDATE attempts t SET outcome = CASE WHEN t.outcome IN ('live', 'unknown') THEN 'replaced' ELSE t.outcome END,
        reason = b.reason, state = p.state, block_hash = p.block_hash, block_number = p.block_number,
        error = coalesce(p.error, t.error),
        ended_at = coalesce(t.ended_at, clock_timestamp())
    FROM unnest(p_nonces, p_reasons) b (nonce, reason)
        CROSS JOIN LATERAL (SELECT * FROM pending_transactions y WHERE y.account = p_account AND y.nonce = b.nonce
            OFFSET 0) p
        CROSS JOIN LATERAL (SELECT x.ctid AS at FROM attempts x WHERE x.account = p_account AND x.nonce = b.nonce
            AND x.number = p.attempt OFFSET 0) x
    WHERE t.ctid = x.at;
    WITH again AS (
        UPDATE pending_transactions p SET hash = b.hash, attempts = p.attempts + 1, state = 'signed', unknown = false,
            attempt = p.attempt + 1, block_hash = NULL, block_number = NULL, error = NULL, epoch = p_epoch,
            stop_outcome = CASE WHEN b.filler IS NULL THEN p.stop_outcome ELSE b.outcome::tx_outcome END,
            stop_reason = CASE WHEN b.filler IS NULL THEN p.stop_reason ELSE b.stop_reason END,
            updated_at = clock_timestamp()
        FROM unnest(p_nonces, p_hashes, p_extrinsics, p_tips, p_births, p_deaths, p_fillers, p_outcomes, p_stop_reasons)
                b (nonce, hash, extrinsic, tip, birth, death, filler, outcome, stop_reason)
            CROSS JOIN LATERAL (SELECT x.ctid AS at FROM pending_transactions x WHERE x.account = p_account
                AND x.nonce = b.nonce OFFSET 0) x
        WHERE p.ctid = x.at
        RETURNING p.nonce, p.attempt, p.id, b.hash, b.extrinsic, b.tip, b.birth, b.death, b.filler
    ), tried AS (
        INSERT INTO attempts (account, nonce, number, id, hash, extrinsic, tip, era_birth, era_death, spec_version,
            transaction_version, block, filler, epoch)
        SELECT p_account, g.nonce, g.attempt, g.id, g.hash, g.extrinsic, coalesce(g.tip, 0), nullif(g.birth, -1),
            nullif(g.death, -1), p_spec_version, p_transaction_version, p_block, g.filler, p_epoch
        FROM again g RETURNING 1
    )
    SELECT count(*) INTO v_found FROM again;
    IF v_found <> v_count THEN
        PERFORM batch_changed('leader_attempt', 'pending_transactions', v_found, v_count);
    END IF;
    RETURN v_found;
END
$$;


--
-- Name: leader_claim(integer, text, text, boolean, integer, integer, timestamp with time zone); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_claim(p_subject integer, p_holder text, p_address text, p_have_lock boolean, p_expiry_1_ms integer, p_expiry_2_ms integer, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(granted boolean, epoch bigint, holder text, holder_address text, lock_held boolean, expiry_1_left_ms bigint, expiry_2_left_ms bigint, mid_submission boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    l leadership;
    v_timeline int; -- of the last claim
    v_seen bigint;
    v_expired_1 boolean;
    v_expired_2 boolean;
BEGIN
    p_now := clock_of('leader_claim', p_now);
    PERFORM check_expiry('leader_claim', p_expiry_1_ms, p_expiry_2_ms);
    IF p_holder IS NULL OR octet_length(p_holder) NOT BETWEEN 1 AND 500 THEN
        PERFORM bad_argument('leader_claim', 'p_holder', format('has %s bytes; it must have 1 to 500',
            octet_length(p_holder)), 'It names this relay process: network, account, host, pid, uuid.');
    ELSIF octet_length(p_address) > 300 THEN
        PERFORM bad_argument('leader_claim', 'p_address', format('has %s bytes; at most 300', octet_length(p_address)),
            'It is where clients reach this relay.');
    END IF;
    p_have_lock := coalesce(p_have_lock, false);
    SELECT * INTO l FROM leadership t WHERE t.subject = p_subject;
    IF NOT FOUND THEN
        PERFORM subject_unknown(p_subject);
    ELSIF p_have_lock AND NOT pg_try_advisory_xact_lock(l.lock_key) THEN
        PERFORM bad_argument('leader_claim', 'p_have_lock', 'is true, and another session has the lock of '
            || subject_name(l), 'Claim in the session that holds the advisory lock.');
    END IF;
    v_timeline := l.timeline;
    granted := false;
    PERFORM be_durable();
    PERFORM repair_ids();
    BEGIN
        IF l.holder <> p_holder AND NOT (l.lock_held AND p_have_lock)
            AND (SELECT c.expiry_1 FROM claim_times(l) c) <= p_now THEN
            PERFORM FROM relay_leases r WHERE l.leased AND r.holder = l.holder FOR SHARE;
            PERFORM FROM leadership t WHERE t.subject = p_subject FOR NO KEY UPDATE;
        END IF;
        SELECT c.expiry_1 <= p_now, c.expiry_2 <= p_now, c.seen_block INTO v_expired_1, v_expired_2, v_seen
            FROM claim_times(l) c;
        UPDATE leadership t SET holder = p_holder, holder_address = p_address,
            lock_held = p_have_lock, lock_pid = CASE WHEN p_have_lock THEN pg_backend_pid() END,
            epoch = t.epoch + 1, heartbeat = p_now, timeline = (timelines())[1],
            seen_block = greatest(t.seen_block, v_seen), leased = false,
            expiry_1 = p_now + p_expiry_1_ms * interval '1 ms', expiry_2 = p_now + p_expiry_2_ms * interval '1 ms'
        WHERE t.subject = p_subject AND (t.holder, t.epoch, t.leased) IS NOT DISTINCT FROM (l.holder, l.epoch, l.leased)
          AND CASE
            WHEN t.holder = p_holder OR (t.lock_held AND p_have_lock) THEN true
            WHEN t.holder IS NULL OR v_expired_2 THEN p_have_lock OR no_relay_has(t.lock_key)
            WHEN NOT v_expired_1 OR mid_submission(t.subject) THEN false
            ELSE p_have_lock OR no_relay_has(t.lock_key) END
        RETURNING t.* INTO l;
        granted := FOUND;
        IF granted AND v_timeline <> l.timeline THEN
            UPDATE accounts t
                SET reconcile_from = coalesce(t.reconcile_from, greatest(t.seen_block, l.seen_block, t.used_block), 0),
                    lost_since = clock_timestamp(), lost_heard = NULL
                WHERE t.account = p_subject;
        END IF;
    EXCEPTION WHEN serialization_failure OR lock_not_available THEN
        granted := false; -- another session claimed it, or is about to
    END;
    IF granted THEN
        PERFORM tell_leader(l);
    ELSE
        SELECT * INTO l FROM leadership t WHERE t.subject = p_subject;
    END IF;
    epoch := l.epoch;
    holder := l.holder;
    holder_address := l.holder_address;
    lock_held := l.lock_held;
    SELECT (extract(epoch FROM c.expiry_1 - p_now) * 1000)::bigint, (extract(epoch FROM c.expiry_2 - p_now) * 1000)::bigint
        INTO expiry_1_left_ms, expiry_2_left_ms FROM claim_times(l) c;
    mid_submission := NOT granted AND expiry_1_left_ms <= 0 AND mid_submission(p_subject);
    RETURN NEXT;
END
$$;


--
-- Name: leader_cleanup(integer, bigint, interval, integer); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_cleanup(p_account integer, p_epoch bigint, p_age interval, p_limit integer DEFAULT 10000) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
    v_before timestamptz := clock_timestamp() - p_age; -- read once, so that an index can be used
    v_attempts bigint;
    v_keys bigint;
    v_batches bigint;
BEGIN
    IF p_age IS NULL OR p_age < interval '1 day' THEN
        PERFORM bad_argument('leader_cleanup', 'p_age', format('is %s; at least 1 day', coalesce(p_age::text,
            'NULL')), 'It is how long attempts and idempotency keys are kept.');
    END IF;
    WITH gone AS (
        DELETE FROM attempts t WHERE t.ctid = ANY (ARRAY(
            SELECT o.at FROM ((SELECT x.ctid AS at, x.nonce, x.ended_at FROM attempts x WHERE x.account = p_account
                               ORDER BY x.account, x.nonce, x.number LIMIT p_limit)
                              UNION
                              (SELECT x.ctid, x.nonce, x.ended_at FROM attempts x
                               WHERE x.account = p_account AND x.nonce >= a.next_nonce
                               ORDER BY x.account, x.nonce, x.number LIMIT p_limit)) o
            WHERE o.ended_at < v_before
              AND NOT EXISTS (SELECT FROM pending_transactions p WHERE p.account = p_account AND p.nonce = o.nonce)))
        RETURNING t.nonce, t.number
    ), said AS (
        DELETE FROM refusals r USING gone g CROSS JOIN LATERAL (SELECT x.ctid AS at FROM refusals x
            WHERE x.account = p_account AND x.nonce = g.nonce AND x.number = g.number OFFSET 0) x
        WHERE r.ctid = x.at
    )
    SELECT count(*) INTO v_attempts FROM gone;
    DELETE FROM idempotency_keys k WHERE k.ctid = ANY (ARRAY(
        SELECT o.ctid FROM idempotency_keys o
        WHERE o.account::bigint = p_account AND o.created_at < v_before
          AND (SELECT b.id FROM outbox b WHERE b.id = o.id LIMIT 1) IS NULL
          AND (SELECT b.id FROM outbox_presigned b WHERE b.id = o.id ORDER BY b.id LIMIT 1) IS NULL
          AND (pending_of(o.id)).id IS NULL
        ORDER BY o.created_at LIMIT p_limit));
    GET DIAGNOSTICS v_keys = ROW_COUNT;
    DELETE FROM feed_batches b WHERE b.ctid = ANY (ARRAY(
        SELECT o.ctid FROM feeds f CROSS JOIN LATERAL (SELECT x.ctid, x.taken_at FROM feed_batches x WHERE x.feed = f.name
            ORDER BY x.feed, x.number LIMIT p_limit) o
        WHERE f.account = p_account AND o.taken_at < v_before LIMIT p_limit));
    GET DIAGNOSTICS v_batches = ROW_COUNT;
    RETURN v_attempts + v_keys + v_batches;
END
$$;


--
-- Name: leader_due(integer[], bigint[], bigint[], integer); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_due(p_accounts integer[], p_epochs bigint[], p_fingerprints bigint[], p_ahead_ms integer) RETURNS TABLE(account integer, lost boolean, has_requests boolean, has_rows boolean, next_ms bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_ahead timestamptz := v_now + p_ahead_ms * interval '1 ms';
    v_timelines int[] := timelines();
    v_most int := batch_size('leader_due', cardinality(p_accounts), cardinality(p_epochs), cardinality(p_fingerprints)) / 2 + 10;
    v_busy int[] := accounts_with_work(v_most);
    v_all boolean := cardinality(v_busy) >= v_most; -- with that many busy accounts, probe all
BEGIN
    RETURN QUERY
    SELECT a.account, NOT a.led, a.led AND (a.changed OR coalesce(d.asked OR d.late, false)),
        a.led AND NOT a.paused AND coalesce(d.has_rows, false),
        CASE WHEN a.led AND d.next <= v_ahead THEN ceil(extract(epoch FROM d.next - v_now) * 1000) END::bigint
    FROM (SELECT b.account, b.n, coalesce(t.led, false) AS led, t.paused, coalesce(t.fingerprint <> b.fingerprint, false) AS changed,
            v_all OR b.account IN (SELECT unnest(v_busy)) AS busy -- hashed once
        FROM unnest(p_accounts, p_epochs, p_fingerprints) WITH ORDINALITY b (account, epoch, fingerprint, n)
        LEFT JOIN LATERAL (SELECT l.epoch = b.epoch AND l.holder IS NOT NULL AND l.timeline = ANY (v_timelines) AS led,
            x.paused, account_fingerprint(x) AS fingerprint FROM accounts x JOIN leadership l ON l.subject = x.account
            WHERE x.account = b.account OFFSET 0) t ON true
        OFFSET 0) a
    LEFT JOIN LATERAL (SELECT
        EXISTS (SELECT FROM cancellations c WHERE c.account = a.account) OR EXISTS (SELECT FROM bumps m
            WHERE m.account = a.account AND NOT EXISTS (SELECT FROM outbox o WHERE o.id = m.id)) AS asked,
        least(q.deadline, p.deadline) <= v_now AS late,
        EXISTS (SELECT FROM outbox o WHERE o.account = a.account AND o.not_before IS NULL
            AND (o.deadline IS NULL OR o.deadline > v_now)) OR EXISTS (SELECT FROM outbox o WHERE o.account = a.account
            AND o.not_before <= v_now AND (o.deadline IS NULL OR o.deadline > v_now))
            OR EXISTS (SELECT FROM outbox_presigned s WHERE s.account = a.account) AS has_rows,
        least(CASE WHEN q.deadline > v_now THEN q.deadline END, CASE WHEN p.deadline > v_now THEN p.deadline END,
            (SELECT min(o.not_before) FROM outbox o WHERE o.account = a.account AND o.not_before > v_now)) AS next
        FROM (SELECT min(o.deadline) AS deadline FROM outbox o WHERE o.account = a.account AND o.deadline IS NOT NULL) q,
            (SELECT min(x.deadline) AS deadline FROM pending_transactions x WHERE x.account = a.account
                AND x.deadline IS NOT NULL) p
        WHERE a.busy OFFSET 0) d ON true
    WHERE NOT a.led OR a.changed OR d.asked OR d.late OR (d.has_rows AND NOT a.paused) OR d.next <= v_ahead
    ORDER BY a.n;
END
$$;


--
-- Name: leader_evict(bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_evict(p_lock_key bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    s leadership;
    c record;
    v_now timestamptz := steady_clock(); -- of leases
    h record;
    v_ended boolean := false;
BEGIN
    SELECT * INTO s FROM leadership t WHERE t.lock_key = p_lock_key;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    SELECT * INTO c FROM claim_times(s);
    IF c.expiry_1 > v_now OR (c.expiry_2 > v_now AND mid_submission(s.subject)) THEN
        RETURN false;
    END IF;
    FOR h IN SELECT l.pid, x.state_change, coalesce(pg_has_role(x.usesysid, 'txrelay_relay', 'MEMBER'), false) AS relay,
            s.holder IS NOT NULL AND s.lock_pid IS NOT DISTINCT FROM l.pid AS claimed
            FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
            LEFT JOIN pg_stat_activity x ON x.pid = l.pid
            WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.pid <> pg_backend_pid()
              AND l.classid::bigint = (p_lock_key >> 32) & 4294967295 AND l.objid::bigint = p_lock_key & 4294967295
            ORDER BY l.granted DESC LOOP
        IF h.relay AND NOT h.claimed AND h.state_change IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = 'its activity is hidden';
        ELSIF h.claimed OR NOT h.relay OR h.state_change < clock_timestamp() - interval '5 s' THEN
            v_ended := pg_terminate_backend(h.pid) OR v_ended;
        END IF;
    END LOOP;
    RETURN v_ended;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
        MESSAGE = format('leader_evict: the lock of %s is held by %s, and user %s may not end that session', subject_name(s),
            session_text(h.pid), current_user),
        HINT = format('Let an administrator run: GRANT pg_signal_backend, pg_read_all_stats TO %I;', current_user);
END
$$;


--
-- Name: leader_feed_take(integer, bigint, text, bigint, bytea, bytea, bytea[], bigint[], bigint[], bigint[], bigint[], numeric[], numeric[], bigint[], bigint[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_feed_take(p_account integer, p_epoch bigint, p_feed text, p_number bigint, p_publisher bytea, p_digest bytea, p_calls bytea[], p_priorities bigint[], p_not_before bigint[], p_deadlines bigint[], p_guards bigint[], p_tips numeric[], p_max_tips numeric[], p_deadline_blocks bigint[], p_retries bigint[]) RETURNS TABLE(outcome text, last_number bigint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
    v_count int := batch_size('leader_feed_take', cardinality(p_calls), cardinality(p_priorities), cardinality(p_not_before),
        cardinality(p_deadlines), cardinality(p_guards), cardinality(p_tips), cardinality(p_max_tips),
        cardinality(p_deadline_blocks), cardinality(p_retries));
    f feeds;
    v_role text := 'feed/' || p_feed;
    v_creator text := format('feed/%s/%s', p_feed, p_number);
    v_most bigint := outbox_most(a.policy);
    v_moved bigint;
    v_stored bigint;
    v_first bigint;
    v_last bigint;
BEGIN
    PERFORM wait_briefly();
    IF EXISTS (SELECT FROM outbox_full t WHERE t.account = p_account AND t.role = v_role) THEN
        IF outbox_over(p_account, v_role, v_most - 1) THEN
            RAISE EXCEPTION USING ERRCODE = 'TR013',
                MESSAGE = format('leader_feed_take: %s transactions of feed %s wait at account %s already', v_most, p_feed, a.alias),
                HINT = 'The batch is taken when some have been sent, or when an operator raises the policy''s outbox_max.';
        END IF;
        DELETE FROM outbox_full t WHERE t.account = p_account AND t.role = v_role;
    END IF;
    IF EXISTS (SELECT FROM feeds t WHERE t.name = p_feed AND t.account = p_account AND t.last_number = p_number - 1
            AND t.paused_reason IS NULL) THEN
        PERFORM check_batch(a, p_calls, p_priorities, p_not_before, p_deadlines, p_guards, p_tips, p_max_tips,
            p_deadline_blocks, p_retries);
        PERFORM strict_turn('leader_feed_take', a, coalesce((SELECT u FROM unnest(p_priorities) u WHERE u <> 0 LIMIT 1), 0),
            (SELECT to_timestamp(u / 1000.0) FROM unnest(p_not_before) u WHERE u IS NOT NULL LIMIT 1))
            WHERE a.policy ->> 'order' = 'strict';
    END IF;
    -- The order of the calls is that of their ids, and nonces follow it.
    WITH moved AS (
        UPDATE feeds t SET last_number = p_number, taken_at = clock_timestamp()
            WHERE t.name = p_feed AND t.account = p_account AND t.last_number = p_number - 1 AND t.paused_reason IS NULL
            RETURNING t.name
    ), rows AS MATERIALIZED (
        SELECT nextval('txrelay.transaction_id') AS id, v_creator || '/' || (u.n - 1) AS key, u.*
        FROM moved, unnest(p_calls, p_priorities, p_not_before, p_deadlines, p_guards, p_tips, p_max_tips, p_deadline_blocks,
            p_retries) WITH ORDINALITY u (call, priority, not_before, deadline, guard, tip, max_tip, deadline_block, retries, n)
    ), keys AS (
        INSERT INTO idempotency_keys (account, role, key, id, payload_sha256)
            SELECT p_account, 'txrelay_relay', r.key, r.id, sha256(r.call) FROM rows r
            ON CONFLICT (account, role, key) DO NOTHING RETURNING id
    ), queued AS (
        INSERT INTO outbox (id, account, call, key, creator, priority, not_before, deadline, guard, tip, max_tip, deadline_block,
                retries, role)
            SELECT r.id, p_account, r.call, r.key, v_creator, r.priority, to_timestamp(r.not_before / 1000.0),
                to_timestamp(r.deadline / 1000.0), r.guard, r.tip, r.max_tip, r.deadline_block, r.retries, v_role
            FROM rows r JOIN keys k ON k.id = r.id ORDER BY r.id RETURNING id
    ), noted AS (
        INSERT INTO feed_batches (feed, number, publisher, digest, calls, first_id, last_id)
            SELECT m.name, p_number, p_publisher, p_digest, v_count, (SELECT min(q.id) FROM queued q), (SELECT max(q.id) FROM queued q)
            FROM moved m
    )
    SELECT (SELECT count(*) FROM moved), count(*), min(q.id), max(q.id) INTO v_moved, v_stored, v_first, v_last FROM queued q;
    IF v_moved = 0 THEN
        SELECT * INTO f FROM feeds t WHERE t.name = p_feed AND t.account = p_account;
        RETURN QUERY SELECT CASE WHEN f.name IS NULL THEN 'removed' WHEN f.last_number = p_number - 1 THEN 'paused'
            ELSE 'elsewhere' END, f.last_number;
        RETURN;
    ELSIF v_stored < v_count THEN -- a feed of this name was there before: its calls stand for these
        PERFORM ids_of_keys(p_account, 'txrelay_relay', p_calls,
            ARRAY(SELECT v_creator || '/' || i FROM generate_series(0, v_count - 1) i ORDER BY i), array_fill(0::bigint, ARRAY[v_count]));
    END IF;
    IF v_stored > 0 THEN
        IF v_first <= (SELECT h.highest_id FROM high_water h WHERE h.one) THEN
            PERFORM id_given_again('leader_feed_take', v_first);
        ELSIF (v_first / 1024 <> v_last / 1024 OR v_stored >= least(1024, v_most / 16)) AND outbox_over(p_account, v_role, v_most - 1) THEN
            INSERT INTO outbox_full (account, role) VALUES (p_account, v_role) ON CONFLICT DO NOTHING;
        END IF;
        PERFORM ring(p_account);
    END IF;
    RETURN QUERY SELECT 'taken', p_number;
END
$$;


--
-- Name: leader_feeds(integer[], text, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_feeds(p_accounts integer[], p_holder text, p_address text) RETURNS TABLE(name text, account integer, last_number bigint, publishers bytea, options jsonb, paused text, leader text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
#variable_conflict use_column
BEGIN
    IF octet_length(p_holder) NOT BETWEEN 1 AND 500 OR octet_length(p_address) NOT BETWEEN 1 AND 300 THEN
        PERFORM bad_argument('leader_feeds', 'p_holder or p_address', 'is empty or too long', 'At most 500 and 300 bytes.');
    ELSIF NOT EXISTS (SELECT FROM feed_servers s WHERE s.holder = p_holder AND s.address = p_address
            AND s.seen_at > clock_timestamp() - interval '10 min') THEN
        DELETE FROM feed_servers s WHERE s.seen_at < clock_timestamp() - interval '1 hour';
        INSERT INTO feed_servers (holder, address) VALUES (p_holder, p_address)
            ON CONFLICT (holder) DO UPDATE SET address = excluded.address, seen_at = clock_timestamp();
    END IF;
    RETURN QUERY SELECT f.name, f.account, f.last_number,
            (SELECT string_agg(p.key, '' ORDER BY p.n) FROM unnest(f.publishers) WITH ORDINALITY p (key, n)), f.options,
            f.paused_reason, s.address
        FROM feeds f JOIN leadership l ON l.subject = f.account LEFT JOIN feed_servers s ON s.holder = l.holder
        WHERE f.account = ANY (p_accounts) ORDER BY f.name;
END
$$;


--
-- Name: leader_fill(integer, bigint, bigint[], bytea[], bytea[], bytea[], numeric[], bigint[], bigint[], bigint, bigint, bigint, text[], text[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_fill(p_account integer, p_epoch bigint, p_nonces bigint[], p_calls bytea[], p_hashes bytea[], p_extrinsics bytea[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_spec_version bigint, p_transaction_version bigint, p_block bigint, p_outcomes text[], p_errors text[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'account');
    v_count int := batch_size('leader_fill', cardinality(p_nonces), cardinality(p_calls), cardinality(p_hashes),
        cardinality(p_extrinsics), cardinality(p_tips), cardinality(p_births), cardinality(p_deaths),
        cardinality(p_outcomes), cardinality(p_errors));
    v_next bigint := a.next_nonce;
    v_above bigint[];
    v_bad record;
BEGIN
    PERFORM check_nonces('leader_fill', p_nonces);
    IF a.reconcile_from IS NOT NULL THEN
        PERFORM not_reconciled('leader_fill', a);
    END IF;
    PERFORM check_eras('leader_fill', a, p_births, p_deaths);
    IF v_next IS NULL THEN
        v_next := last_pending(p_account) + 1;
    END IF;
    v_above := ARRAY(SELECT u.nonce FROM unnest(p_nonces) u (nonce) WHERE u.nonce >= v_next ORDER BY u.nonce);
    IF cardinality(v_above) > 0 THEN
        IF v_above[1] <> v_next OR v_above[cardinality(v_above)] <> v_next + cardinality(v_above) - 1 THEN
            PERFORM order_error(format('leader_fill: nonces %s leave a gap above the next nonce %s of account %s',
                v_above[1:5], v_next, a.alias), 'Read the account again.');
        END IF;
        v_next := v_next + cardinality(v_above);
    ELSIF v_next IS NULL THEN
        SELECT max(u.nonce) + 1 INTO v_next FROM unnest(p_nonces) u (nonce);
    END IF;
    SELECT b.nonce, p.state, b.outcome INTO v_bad FROM unnest(p_nonces, p_outcomes) b (nonce, outcome)
        CROSS JOIN LATERAL (SELECT x.state FROM pending_transactions x WHERE x.account = p_account
            AND x.nonce = b.nonce OFFSET 0) p
        WHERE b.outcome IS NULL OR b.outcome IN ('ok', 'dispatch_error') OR p.state = 'finalized' LIMIT 1;
    IF FOUND THEN
        PERFORM order_error(format('leader_fill: nonce %s (%s) cannot end as %s', v_bad.nonce, v_bad.state,
            coalesce(v_bad.outcome, 'NULL')), 'Give expired, cancelled, failed or usurped; what is finalized stays.');
    END IF;
    UPDATE attempts t SET reason = coalesce(t.reason, 'a filler took the nonce: ' || b.outcome), state = p.state,
        ended_at = coalesce(t.ended_at, clock_timestamp()),
        outcome = CASE WHEN t.outcome IN ('live', 'unknown') THEN 'replaced' ELSE t.outcome END
    FROM unnest(p_nonces, p_outcomes) b (nonce, outcome)
        CROSS JOIN LATERAL (SELECT * FROM pending_transactions y WHERE y.account = p_account AND y.nonce = b.nonce
            OFFSET 0) p
        CROSS JOIN LATERAL (SELECT x.ctid AS at FROM attempts x WHERE x.account = p_account AND x.nonce = b.nonce
            AND x.number = p.attempt OFFSET 0) x
    WHERE t.ctid = x.at;
    PERFORM nonces_end(p_account, p_epoch, p_nonces, array_fill(NULL::bytea, ARRAY[v_count]),
        array_fill(NULL::bytea, ARRAY[v_count]), array_fill(NULL::bigint, ARRAY[v_count]),
        array_fill(NULL::int, ARRAY[v_count]), p_outcomes, p_errors, array_fill(NULL::numeric, ARRAY[v_count]));
    WITH batch AS MATERIALIZED (
        SELECT u.*, coalesce((SELECT max(t.number) FROM attempts t
                              WHERE t.account = p_account AND t.nonce = u.nonce), 0) + 1 AS number
        FROM unnest(p_nonces, p_calls, p_hashes, p_extrinsics, p_tips, p_births, p_deaths)
            u (nonce, call, hash, extrinsic, tip, birth, death)
    ), filler AS (
        INSERT INTO pending_transactions (account, nonce, account_id, call, hash, attempt, attempts, state, epoch,
            created_at)
        SELECT p_account, b.nonce, a.account_id, b.call, b.hash, b.number, 1, 'signed', p_epoch, clock_timestamp()
        FROM batch b ORDER BY b.nonce
    )
    INSERT INTO attempts (account, nonce, number, hash, extrinsic, tip, era_birth, era_death, spec_version,
        transaction_version, block, epoch)
    SELECT p_account, b.nonce, b.number, b.hash, b.extrinsic, coalesce(b.tip, 0), nullif(b.birth, -1),
        nullif(b.death, -1), p_spec_version, p_transaction_version, p_block, p_epoch
    FROM batch b ORDER BY b.nonce;
    UPDATE accounts t SET next_nonce = v_next WHERE t.account = p_account AND t.next_nonce IS DISTINCT FROM v_next;
    RETURN v_next;
END
$$;


--
-- Name: leader_finish(integer, bigint, bigint[], bytea[], bytea[], bigint[], integer[], text[], text[], numeric[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_finish(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_block_hashes bytea[], p_block_numbers bigint[], p_indexes integer[], p_outcomes text[], p_errors text[], p_fees numeric[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'account');
    v_count int := batch_size('leader_finish', cardinality(p_nonces), cardinality(p_hashes),
        cardinality(p_block_hashes), cardinality(p_block_numbers), cardinality(p_indexes), cardinality(p_outcomes),
        cardinality(p_errors), cardinality(p_fees));
    v_ended bigint[];
    v_bad record;
BEGIN
    PERFORM check_nonces('leader_finish', p_nonces);
    SELECT u.* INTO v_bad FROM unnest(p_nonces, p_block_hashes, p_outcomes) u (nonce, block_hash, outcome)
        WHERE u.outcome IS NULL OR (u.block_hash IS NULL AND u.outcome IN ('ok', 'dispatch_error')) LIMIT 1;
    IF FOUND THEN
        PERFORM bad_argument('leader_finish', CASE WHEN v_bad.outcome IS NULL THEN 'p_outcomes' ELSE 'p_block_hashes'
            END, format('is NULL for nonce %s', v_bad.nonce), 'ok and dispatch_error name the finalized block.');
    ELSIF a.reconcile_from IS NOT NULL AND array_position(p_block_hashes, NULL) IS NOT NULL THEN
        PERFORM not_reconciled('leader_finish', a);
    END IF;
    v_ended := nonces_end(p_account, p_epoch, p_nonces, p_hashes, p_block_hashes, p_block_numbers, p_indexes, p_outcomes,
        p_errors, p_fees);
    IF cardinality(v_ended) <> v_count THEN
        SELECT u.*, p.state, f.outcome, t.number, t.filler INTO v_bad FROM unnest(p_nonces, p_hashes, p_outcomes)
                u (nonce, hash, given)
            LEFT JOIN LATERAL (SELECT x.number, x.filler FROM attempts x WHERE x.account = p_account
                AND x.nonce = u.nonce AND x.hash = u.hash ORDER BY x.number DESC LIMIT 1) t ON true
            LEFT JOIN LATERAL (SELECT x.state FROM pending_transactions x WHERE x.account = p_account
                AND x.nonce = u.nonce LIMIT 1) p ON true
            LEFT JOIN LATERAL (SELECT x.outcome FROM finished_transactions x WHERE x.account = p_account
                AND x.nonce = u.nonce AND (a.life_since IS NULL OR x.finished_at > a.life_since)
                ORDER BY x.finished_at DESC LIMIT 1) f ON true
            WHERE u.nonce <> ALL (v_ended) AND (p.state IS NOT NULL OR f.outcome IS NOT NULL) LIMIT 1;
        IF v_bad.state = 'finalized' THEN
            PERFORM order_error(format('leader_finish: nonce %s is finalized and cannot end as %s with 0x%s', v_bad.nonce,
                v_bad.given, coalesce(encode(v_bad.hash, 'hex'), 'NULL')), 'What is finalized stays.');
        ELSIF v_bad.state IS NOT NULL AND v_bad.number IS NOT NULL THEN
            PERFORM order_error(format('leader_finish: attempt %s at nonce %s has %s and cannot end as %s', v_bad.number,
                v_bad.nonce, CASE WHEN v_bad.filler IS NULL THEN 'the transaction''s own call' ELSE 'a filler''s call' END,
                v_bad.given), 'The own call ends as ok, dispatch_error or unknown, a filler never.');
        ELSIF v_bad.state IS NOT NULL THEN
            PERFORM order_error(format('leader_finish: nonce %s has no attempt 0x%s', v_bad.nonce,
                coalesce(encode(v_bad.hash, 'hex'), 'NULL')), 'Nothing may be sent that was not recorded first.');
        ELSIF v_bad.outcome IS NOT NULL THEN
            PERFORM order_error(format('leader_finish: nonce %s has ended before, as %s', v_bad.nonce, v_bad.outcome),
                'A terminal record never changes.');
        END IF;
        PERFORM batch_changed('leader_finish', 'pending_transactions', cardinality(v_ended), v_count);
    END IF;
    PERFORM nonces_used(p_account, p_nonces, p_block_hashes, p_block_numbers, p_outcomes);
    RETURN v_count;
END
$$;


--
-- Name: leader_heard(integer, bigint, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_heard(p_account integer, p_epoch bigint, p_block bigint) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'account');
BEGIN
    IF p_block IS NULL OR p_block < 0 THEN
        PERFORM bad_argument('leader_heard', 'p_block', format('is %s; it must be 0 or more', coalesce(p_block::text, 'NULL')),
            'The highest block that this or another relay has heard of.');
    ELSIF a.reconcile_from IS NULL THEN
        PERFORM order_error(format('leader_heard: account %s is reconciled', a.alias), 'Read the account again.');
    END IF;
    UPDATE accounts t SET lost_heard = coalesce(t.lost_heard, p_block) WHERE t.account = p_account RETURNING t.* INTO a;
    RETURN a.lost_heard + a.era_longest;
END
$$;


--
-- Name: leader_nonce(integer, bigint, bigint, boolean, boolean); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_nonce(p_account integer, p_epoch bigint, p_next bigint, p_lower boolean DEFAULT false, p_reborn boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'account');
    v_last bigint := last_pending(p_account);
BEGIN
    IF a.reconcile_from IS NOT NULL THEN
        PERFORM not_reconciled('leader_nonce', a);
    ELSIF p_next IS NULL OR p_next < 0 OR (p_next <= v_last AND p_reborn IS NOT TRUE) THEN
        PERFORM order_error(format('leader_nonce: next nonce %s for account %s, whose last pending nonce is %s',
            coalesce(p_next::text, 'NULL'), a.alias, coalesce(v_last::text, 'none')),
            'The next nonce is above every pending one.');
    ELSIF p_reborn AND v_last IS NOT NULL THEN
        PERFORM order_error(format('leader_nonce: account %s cannot begin a new life while nonce %s is pending', a.alias,
            v_last), 'leader_requeue or leader_finish for what belongs to the former one.');
    ELSIF p_reborn AND NOT a.reborn THEN
        PERFORM order_error(format('leader_nonce: no operator has ordered a new life of account %s', a.alias),
            'leader_pause with reaped; account_resume is the order.');
    ELSIF p_reborn THEN
        PERFORM must_be_free('leader_nonce', ARRAY(SELECT o.id FROM outbox_presigned o WHERE o.account = p_account));
        UPDATE accounts t SET next_nonce = p_next, used_nonce = NULL, used_block = NULL, reborn = false,
            life_since = steady_clock() WHERE t.account = p_account;
        PERFORM outbox_end(p_account, s.ids, array_fill('failed'::tx_outcome, ARRAY[cardinality(s.ids)]),
            array_fill('the account was reaped or rewound: it may be of the former life'::text, ARRAY[cardinality(s.ids)]), p_epoch)
            FROM (SELECT array_agg(o.id ORDER BY o.id) AS ids FROM outbox_presigned o WHERE o.account = p_account) s WHERE s.ids IS NOT NULL;
        RETURN;
    ELSIF p_next < a.next_nonce AND p_lower IS NOT TRUE THEN
        PERFORM order_error(format('leader_nonce: next nonce %s for account %s is lower than %s', p_next, a.alias,
            a.next_nonce), 'A node that lags? p_lower => true where nonces were given back.');
    ELSIF p_next < a.used_nonce THEN
        RAISE EXCEPTION USING ERRCODE = 'TR002',
            MESSAGE = format('leader_nonce: nonce %s of account %s was used in a finalized block, by what is on record',
                             a.used_nonce - 1, a.alias),
            HINT = 'The node lags: wait for it. Or the account was reaped: that is for an operator to judge.';
    END IF;
    UPDATE accounts t SET next_nonce = p_next WHERE t.account = p_account AND t.next_nonce IS DISTINCT FROM p_next;
END
$$;


--
-- Name: leader_note(integer, bigint, bigint[], bigint[], bytea[], bigint[], bigint[], text[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_note(p_account integer, p_epoch bigint, p_ids bigint[], p_nonces bigint[], p_hashes bytea[], p_deaths bigint[], p_wait_blocks bigint[], p_texts text[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
    v_count int := batch_size('leader_note', cardinality(p_ids), cardinality(p_nonces), cardinality(p_hashes),
        cardinality(p_deaths), cardinality(p_wait_blocks), cardinality(p_texts));
    v_found bigint;
BEGIN
    PERFORM wait_briefly();
    UPDATE outbox_presigned s SET nonce = nullif(b.nonce, -1), hash = b.hash, era_death = nullif(b.death, -1),
        wait_block = nullif(b.wait_block, -1), waits = b.text, waits_since = coalesce(s.waits_since, clock_timestamp())
    FROM unnest(p_ids, p_nonces, p_hashes, p_deaths, p_wait_blocks, p_texts) b (id, nonce, hash, death, wait_block, text)
        CROSS JOIN LATERAL (SELECT x.ctid AS at FROM outbox_presigned x WHERE x.id = b.id
            AND (x.xmax = 0 OR NOT x.xmax = ANY ((SELECT running_xids())::xid[]) AND row_free(x.id)) ORDER BY x.id LIMIT 1) x
    WHERE s.ctid = x.at AND (s.account = p_account) IS TRUE; -- in a form that no index fits
    GET DIAGNOSTICS v_found = ROW_COUNT;
    RETURN v_found;
END
$$;


--
-- Name: leader_obstacles(integer[], bigint[], text[], text[], bigint[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_obstacles(p_accounts integer[], p_epochs bigint[], p_codes text[], p_details text[], p_lasted_ms bigint[]) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_timeline int := timeline();
    v_count int := batch_size('leader_obstacles', cardinality(p_accounts), cardinality(p_epochs), cardinality(p_codes),
        cardinality(p_details), cardinality(p_lasted_ms));
BEGIN
    WITH led AS (
        SELECT DISTINCT ON (b.account) b.account, b.epoch, left(b.code, 40) AS code, coalesce(left(b.detail, 500), '') AS detail,
            v_now - least(greatest(b.lasted_ms, 0), 86400000) * interval '1 ms' AS since
        FROM unnest(p_accounts, p_epochs, p_codes, p_details, p_lasted_ms) WITH ORDINALITY b (account, epoch, code, detail, lasted_ms, n)
        JOIN leadership l ON l.subject = b.account AND l.epoch = b.epoch AND l.holder IS NOT NULL AND l.timeline = v_timeline
        ORDER BY b.account, b.n DESC
    ), gone AS (
        DELETE FROM obstacles o USING led WHERE o.account = led.account AND led.code IS NULL RETURNING o.account
    ), kept AS (
        INSERT INTO obstacles AS o (account, epoch, code, detail, since)
        SELECT led.account, led.epoch, led.code, led.detail, led.since FROM led WHERE led.code IS NOT NULL
        ON CONFLICT (account) DO UPDATE SET epoch = excluded.epoch, code = excluded.code, detail = excluded.detail,
            since = excluded.since
        WHERE o.epoch <= excluded.epoch
        RETURNING o.account
    )
    SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM kept) INTO v_count;
    RETURN v_count;
END
$$;


--
-- Name: leader_outbox(integer, bigint, integer); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_outbox(p_account integer, p_epoch bigint, p_limit integer) RETURNS TABLE(id bigint, call bytea, priority integer, deadline timestamp with time zone, creator text, created_at timestamp with time zone, attempts integer, guard bigint, tip numeric, max_tip numeric, deadline_block bigint, retries integer, traceparent text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    a accounts := fence(p_account, p_epoch, 'read');
    v_now timestamptz := clock_timestamp();
BEGIN
    IF a.paused THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH has_rows AS MATERIALIZED (
        (SELECT o.* FROM outbox o WHERE o.account = p_account AND o.not_before IS NULL
            AND (o.deadline IS NULL OR o.deadline > v_now)
            AND (o.xmax = 0 OR NOT o.xmax = ANY ((SELECT running_xids())::xid[]) AND row_free(o.id)) ORDER BY o.account, o.priority DESC, o.id LIMIT p_limit)
        UNION ALL
        (SELECT o.* FROM outbox o WHERE o.account = p_account AND o.not_before <= v_now
            AND (o.deadline IS NULL OR o.deadline > v_now)
            AND (o.xmax = 0 OR NOT o.xmax = ANY ((SELECT running_xids())::xid[]) AND row_free(o.id)) ORDER BY o.priority DESC, o.id LIMIT p_limit)
    ), row_of AS (
        SELECT r.*, sum(octet_length(r.call)) OVER (ORDER BY r.priority DESC, r.id) - octet_length(r.call) AS before
        FROM has_rows r
    )
    SELECT r.id, r.call, r.priority, CASE WHEN time_fits(r.deadline) THEN r.deadline END, r.creator, r.created_at, r.attempts, r.guard, r.tip, r.max_tip,
        r.deadline_block, r.retries, r.traceparent FROM row_of r
        WHERE r.before < 16777216 ORDER BY r.priority DESC, r.id LIMIT p_limit;
    IF current_setting('txrelay.held', true) = '1' THEN
        RETURN QUERY SELECT o.id, NULL::bytea, 0, NULL::timestamptz, h.who, o.created_at, 0, NULL::bigint, NULL::numeric,
            NULL::numeric, NULL::bigint, 0, NULL::text
        FROM (SELECT x.id, x.created_at, x.xmax AS held FROM outbox x WHERE x.account = p_account
              ORDER BY x.account, x.not_before IS NOT NULL, x.priority DESC, x.id LIMIT p_limit + 1000) o
            CROSS JOIN LATERAL row_holder(o.held) h WHERE o.held <> 0 LIMIT 1;
    END IF;
END
$$;


--
-- Name: leader_pause(integer, bigint, text, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_pause(p_account integer, p_epoch bigint, p_suspension text, p_reason text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'account');
BEGIN
    IF p_suspension NOT IN ('payment', 'reaped', 'signing', 'transaction_version') THEN
        PERFORM bad_argument('leader_pause', 'p_suspension', format('is "%s"; it must be payment, reaped, signing, '
            'transaction_version or NULL', p_suspension), 'NULL ends the leader''s own pause.');
    ELSIF a.paused_by = 'operator' THEN
        UPDATE accounts t SET suspension = p_suspension, reborn = t.reborn AND p_suspension IS DISTINCT FROM 'reaped'
            WHERE t.account = p_account;
    ELSIF p_suspension IS NULL THEN
        UPDATE accounts t SET suspension = NULL, paused = false, paused_by = NULL, paused_reason = NULL, paused_since = NULL
            WHERE t.account = p_account;
    ELSE
        UPDATE accounts t SET suspension = p_suspension, reborn = t.reborn AND p_suspension <> 'reaped', paused = true,
            paused_by = 'leader', paused_reason = coalesce(p_reason, p_suspension),
            paused_since = CASE WHEN t.suspension = p_suspension THEN t.paused_since ELSE clock_timestamp() END
            WHERE t.account = p_account;
    END IF;
END
$$;


--
-- Name: leader_poll_requests(integer, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_poll_requests(p_account integer, p_epoch bigint) RETURNS TABLE(nonce bigint, id bigint, outcome text, error text, tip numeric, has_rows boolean, next_ms bigint, fingerprint bigint, paused boolean, suspension text, reborn boolean, transaction_version bigint, tip_start numeric, tip_step numeric, tip_cap numeric, tip_step_percent integer, tip_after_blocks integer, skip_after_blocks integer, requeue_usurped boolean, low_balance numeric, retry_refusals text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    a accounts := fence(p_account, p_epoch, 'read');
    v_now timestamptz := clock_timestamp();
    v_ids bigint[];
    v_outcomes tx_outcome[];
    v_errors text[];
    v_cap numeric := (a.policy ->> 'tip_cap')::numeric;
    v_tips numeric[];
    v_asked boolean;
    v_has_rows boolean;
    v_next timestamptz;
    v_more boolean; -- there may be more that is late than one call ends
BEGIN
    SELECT x.asked, x.has_rows, x.next INTO v_asked, v_has_rows, v_next FROM request_times(p_account, v_now) x;
    IF NOT v_asked AND (v_next > v_now) IS NOT FALSE THEN -- nearly always
        RETURN QUERY SELECT NULL::bigint, NULL::bigint, NULL, NULL, NULL::numeric, v_has_rows AND NOT a.paused,
            left_ms(v_next), account_fingerprint(a), f.* FROM account_facts(a) f;
        RETURN;
    END IF;
    SELECT array_agg(e.id ORDER BY e.id), array_agg(e.outcome ORDER BY e.id), array_agg(e.error ORDER BY e.id)
        INTO v_ids, v_outcomes, v_errors FROM (
        SELECT c.id, 'cancelled'::tx_outcome AS outcome, 'cancelled by ' || c.asked_by AS error
        FROM cancellations c CROSS JOIN LATERAL (SELECT FROM outbox x WHERE x.id = c.id
            AND (x.xmax = 0 OR NOT x.xmax = ANY ((SELECT running_xids())::xid[]) AND row_free(x.id)) LIMIT 1) o
        WHERE c.account = p_account
        UNION ALL
        (SELECT o.id, 'expired'::tx_outcome, format('the deadline %s passed before it was sent', o.deadline)
        FROM outbox o WHERE o.account = p_account AND o.deadline <= v_now
            AND (o.xmax = 0 OR NOT o.xmax = ANY ((SELECT running_xids())::xid[]) AND row_free(o.id))
            AND NOT EXISTS (SELECT FROM cancellations c WHERE c.id = o.id)
        ORDER BY o.account, o.deadline LIMIT 1000)) e WHERE a.reconcile_from IS NULL;
    v_more := cardinality(v_ids) >= 1000;
    IF v_ids IS NOT NULL THEN
        PERFORM fence(p_account, p_epoch, 'update');
        PERFORM wait_briefly();
        PERFORM outbox_end(p_account, v_ids, v_outcomes, v_errors, p_epoch);
    END IF;
    v_ids := ARRAY(SELECT c.id FROM cancellations c WHERE c.account = p_account AND (pending_of(c.id)).id IS NULL
        AND (SELECT x.id FROM outbox x WHERE x.id = c.id LIMIT 1) IS NULL);
    IF cardinality(v_ids) > 0 THEN
        PERFORM fence(p_account, p_epoch, 'update');
        DELETE FROM cancellations c WHERE c.id = ANY (v_ids);
    END IF;
    -- Remove a bump once it is paid, as far as the caps allow, or once its transaction has ended.
    -- One that was raised since it was read stays.
    SELECT array_agg(b.id ORDER BY b.id), array_agg(b.tip ORDER BY b.id) INTO v_ids, v_tips FROM bumps b
        CROSS JOIN LATERAL (SELECT p.max_tip, (SELECT t.tip FROM attempts t WHERE t.account = p.account
            AND t.nonce = p.nonce AND t.number = p.attempt) AS tip FROM pending_of(b.id) p OFFSET 0) p
        WHERE b.account = p_account AND CASE WHEN p.tip IS NOT NULL THEN p.tip >= least(b.tip, p.max_tip, v_cap)
            ELSE (SELECT x.id FROM outbox x WHERE x.id = b.id LIMIT 1) IS NULL END;
    IF v_ids IS NOT NULL THEN
        PERFORM fence(p_account, p_epoch, 'update');
        DELETE FROM bumps b USING (SELECT x.id FROM unnest(v_ids, v_tips) d (id, tip) JOIN bumps x ON x.id = d.id
            AND x.tip = d.tip FOR UPDATE OF x SKIP LOCKED) d WHERE b.id = d.id;
    END IF;
    -- What is late and was left counts only if the next poll can end it: a row that an application
    -- holds must not make the caller poll again at once.
    SELECT x.has_rows, least(CASE WHEN v_more OR a.reconcile_from IS NOT NULL THEN x.next_outbox ELSE least(
            (SELECT min(o.deadline) FROM outbox o WHERE o.account = p_account AND o.deadline > v_now),
            (SELECT min(o.not_before) FROM outbox o WHERE o.account = p_account AND o.not_before > v_now)) END,
        (SELECT min(p.deadline) FROM pending_transactions p WHERE p.account = p_account AND p.deadline > v_now))
        INTO v_has_rows, v_next FROM request_times(p_account, v_now) x;
    IF a.reconcile_from IS NOT NULL AND v_next < v_now + interval '1 s' THEN
        v_next := v_now + interval '1 s';
    END IF;
    RETURN QUERY
    SELECT s.nonce, s.id, s.outcome, s.error, s.tip, v_has_rows AND NOT a.paused, left_ms(v_next), account_fingerprint(a), f.*
    FROM account_facts(a) f LEFT JOIN (
        SELECT p.nonce, p.id, 'cancelled' AS outcome, 'cancelled by ' || c.asked_by AS error, NULL::numeric AS tip
        FROM cancellations c CROSS JOIN LATERAL pending_of(c.id) p WHERE c.account = p_account AND p.id IS NOT NULL
        UNION ALL
        SELECT p.nonce, p.id, 'expired', format('the deadline %s passed before it was included', p.deadline), NULL
        FROM (SELECT x.* FROM pending_transactions x WHERE x.account = p_account AND x.deadline <= v_now
              ORDER BY x.account, x.deadline OFFSET 0) p
        WHERE p.id IS NOT NULL AND (SELECT c.id FROM cancellations c WHERE c.id = p.id LIMIT 1) IS NULL
        UNION ALL
        SELECT p.nonce, p.id, NULL, NULL, p.least
        FROM bumps b CROSS JOIN LATERAL (SELECT p.nonce, p.id, least(b.tip, p.max_tip, v_cap) AS least,
            (SELECT t.tip FROM attempts t WHERE t.account = p.account AND t.nonce = p.nonce AND t.number = p.attempt) AS tip
            FROM pending_of(b.id) p OFFSET 0) p
        WHERE b.account = p_account AND p.tip < p.least) s ON true
    ORDER BY s.nonce, s.outcome;
END
$$;


--
-- Name: leader_presigned(integer, bigint, integer, bigint, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_presigned(p_account integer, p_epoch bigint, p_limit integer, p_next bigint, p_block bigint) RETURNS TABLE(id bigint, extrinsic bytea, creator text, created_at timestamp with time zone, waited boolean, traceparent text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    a accounts := fence(p_account, p_epoch, 'read');
BEGIN
    IF a.paused THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH due AS MATERIALIZED (
        SELECT s.id, s.nonce - p_next < dense_rank() OVER (ORDER BY s.nonce) AS turn
        FROM (SELECT x.id, x.nonce FROM outbox_presigned x WHERE x.account = p_account AND x.nonce >= p_next
                AND (x.xmax = 0 OR NOT x.xmax = ANY ((SELECT running_xids())::xid[]) AND row_free(x.id))
                AND (x.wait_block IS NULL OR x.wait_block <= p_block) ORDER BY x.account, x.nonce, x.id LIMIT p_limit) s
    ), row_of AS (
        (SELECT s.id FROM outbox_presigned s WHERE s.account = p_account AND s.nonce IS NULL
            AND (s.wait_block IS NULL OR s.wait_block <= p_block) ORDER BY s.id LIMIT p_limit)
        UNION
        (SELECT s.id FROM outbox_presigned s WHERE s.account = p_account AND s.nonce < p_next
            AND (s.wait_block IS NULL OR s.wait_block <= p_block) ORDER BY s.account, s.nonce, s.id LIMIT p_limit)
        UNION
        SELECT d.id FROM due d WHERE d.turn
        UNION
        (SELECT s.id FROM outbox_presigned s WHERE s.account = p_account AND coalesce(s.wait_block, s.era_death) <= p_block
            ORDER BY s.account, s.nonce, s.id LIMIT p_limit)
    )
    SELECT s.id, s.extrinsic, s.creator, s.created_at, s.wait_block IS NOT NULL, s.traceparent FROM row_of r
        CROSS JOIN LATERAL (SELECT * FROM outbox_presigned x WHERE x.id = r.id
            AND (x.xmax = 0 OR NOT x.xmax = ANY ((SELECT running_xids())::xid[]) AND row_free(x.id)) ORDER BY x.id LIMIT 1) s
        ORDER BY s.nonce NULLS LAST, s.id LIMIT p_limit;
END
$$;


--
-- Name: leader_record_status(integer, bigint, bigint[], bytea[], text[], bytea[], bigint[], text[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_record_status(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_states text[], p_block_hashes bytea[], p_block_numbers bigint[], p_errors text[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
    v_count int := batch_size('leader_record_status', cardinality(p_nonces), cardinality(p_hashes), cardinality(p_states),
        cardinality(p_block_hashes), cardinality(p_block_numbers), cardinality(p_errors));
    v_changed bigint;
    v_refused bigint := 0;
    v_wrong boolean;
    v_other boolean;
    v_ends boolean;
    v_twice boolean;
    v_leaves boolean;
    v_at tid[];
    v_said tx_state[];
    v_bad record;
BEGIN
    -- One pass finds the rows and whether the batch holds anything unusual. Usual is one status for
    -- each current attempt that lives. The arrays keep the order of the batch.
    SELECT bool_or(u.state IS NULL OR u.state = 'signed' OR u.block_hash IS NULL
            AND u.state IN ('in_block', 'retracted', 'finality_timeout', 'finalized')),
        bool_or(p.hash IS DISTINCT FROM u.hash AND p.hash IS NOT NULL),
        bool_or(p.unknown OR u.state IN ('dropped', 'invalid', 'usurped', 'unknown')
            OR p.state IN ('dropped', 'invalid', 'usurped')),
        (SELECT count(DISTINCT d.nonce) FROM unnest(p_nonces) d (nonce)) < v_count,
        bool_or(u.state = 'retracted' OR p.block_hash <> u.block_hash),
        array_agg(CASE WHEN p.hash = u.hash AND u.state NOT IN ('refused', 'tried') THEN p.at END ORDER BY u.n),
        array_agg(CASE WHEN u.state NOT IN ('unknown', 'refused', 'tried', 'signed') THEN u.state::tx_state END ORDER BY u.n)
        INTO v_wrong, v_other, v_ends, v_twice, v_leaves, v_at, v_said
    FROM unnest(p_nonces, p_hashes, p_states, p_block_hashes) WITH ORDINALITY u (nonce, hash, state, block_hash, n)
        LEFT JOIN LATERAL (SELECT x.ctid AS at, x.hash, x.state, x.unknown, x.block_hash FROM pending_transactions x
            WHERE x.account = p_account AND x.nonce = u.nonce OFFSET 0) p ON true;
    IF v_wrong THEN
        SELECT u.* INTO v_bad FROM unnest(p_nonces, p_states, p_block_hashes) u (nonce, state, block_hash)
            WHERE u.state IS NULL OR u.state = 'signed' OR (u.block_hash IS NULL
                AND u.state IN ('in_block', 'retracted', 'finality_timeout', 'finalized')) LIMIT 1;
        IF v_bad.state IS NOT DISTINCT FROM 'signed' THEN
            PERFORM order_error(format('leader_record_status: nonce %s cannot go back to signed', v_bad.nonce),
                'leader_attempt records new bytes.');
        END IF;
        PERFORM bad_argument('leader_record_status', 'p_block_hashes', format('is NULL for nonce %s with state %s', v_bad.nonce,
            coalesce(v_bad.state, 'NULL')), 'in_block, retracted, finality_timeout and finalized name their block.');
    END IF;
    IF v_other THEN
        SELECT u.* INTO v_bad FROM unnest(p_nonces, p_hashes) u (nonce, hash)
            CROSS JOIN LATERAL (SELECT FROM pending_transactions p WHERE p.account = p_account AND p.nonce = u.nonce
                AND p.hash IS DISTINCT FROM u.hash OFFSET 0) p
            LEFT JOIN LATERAL (SELECT t.number FROM attempts t WHERE t.account = p_account AND t.nonce = u.nonce
                AND t.hash = u.hash LIMIT 1) t ON true
            WHERE t.number IS NULL LIMIT 1;
        IF FOUND THEN
            PERFORM order_error(format('leader_record_status: nonce %s has no attempt 0x%s', v_bad.nonce,
                coalesce(encode(v_bad.hash, 'hex'), 'NULL')), 'Nothing may be sent that was not recorded first.');
        END IF;
    END IF;
    IF v_other OR v_ends THEN
        PERFORM attempts_note(p_account, p_nonces, p_hashes, p_states, p_block_hashes, p_block_numbers, p_errors);
    END IF;
    IF v_leaves THEN
        PERFORM retractions_note(p_account, p_nonces, p_hashes, p_states, p_block_hashes);
    END IF;
    IF v_twice THEN
        v_at := ARRAY(SELECT CASE WHEN row_number() OVER (PARTITION BY u.at ORDER BY u.n DESC) = 1 THEN u.at END
            FROM unnest(v_at) WITH ORDINALITY u (at, n) ORDER BY u.n);
    END IF;
    UPDATE pending_transactions p SET
        state = coalesce(b.said, p.state), unknown = b.said IS NULL,
        block_hash = CASE WHEN b.said IS NULL THEN p.block_hash ELSE b.block_hash END,
        block_number = CASE WHEN b.said IS NULL THEN p.block_number ELSE b.block_number END,
        error = b.error, epoch = p_epoch, updated_at = clock_timestamp(),
        blocked_since = CASE WHEN b.said IN ('ready', 'broadcast', 'in_block', 'finalized') THEN NULL
                             ELSE p.blocked_since END,
        in_block_at = coalesce(p.in_block_at, CASE WHEN b.said IN ('in_block', 'finalized') THEN clock_timestamp() END)
    FROM unnest(v_at, v_said, p_nonces, p_hashes, p_block_hashes, p_block_numbers, p_errors)
        b (at, said, nonce, hash, block_hash, block_number, error)
    WHERE p.ctid = b.at AND (p.nonce, p.hash) IS NOT DISTINCT FROM (b.nonce, b.hash) -- in a form that no index fits
      AND (p.unknown <> (b.said IS NULL) OR p.error IS DISTINCT FROM b.error OR b.said IS NOT NULL AND
           (p.state, p.block_hash, p.block_number) IS DISTINCT FROM (b.said, b.block_hash, b.block_number));
    GET DIAGNOSTICS v_changed = ROW_COUNT;
    IF NOT p_states && '{refused,tried,unknown}' THEN
        -- This commit does not wait for the disk: if the server crashes, the chain reports these
        -- states again. A node's answer, or that it gave none, comes only once.
        PERFORM set_config('synchronous_commit', 'off', true);
    ELSIF p_states && '{refused,tried}' THEN
        v_refused := refusals_note(p_account, p_epoch, p_nonces, p_hashes, p_states, p_errors);
    END IF;
    RETURN v_changed + v_refused;
END
$$;


--
-- Name: leader_reject(integer, bigint, bigint[], text[], text[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_reject(p_account integer, p_epoch bigint, p_ids bigint[], p_outcomes text[], p_errors text[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
    v_count int := batch_size('leader_reject', cardinality(p_ids), cardinality(p_outcomes), cardinality(p_errors));
    v_found bigint;
BEGIN
    IF a.reconcile_from IS NOT NULL THEN
        PERFORM not_reconciled('leader_reject', a);
    ELSIF p_outcomes && ARRAY['ok', 'dispatch_error', 'unknown'] THEN
        PERFORM order_error('leader_reject: ok, dispatch_error and unknown are outcomes of the chain',
            'A transaction without a nonce ends as expired, cancelled, failed or usurped.');
    END IF;
    PERFORM wait_briefly();
    v_found := outbox_end(p_account, p_ids, p_outcomes::tx_outcome[], p_errors, p_epoch);
    IF v_found <> v_count THEN
        PERFORM batch_changed('leader_reject', 'the outbox' || coalesce(', and ' || held_text(p_ids), ''), v_found, v_count);
    END IF;
    RETURN v_found;
END
$$;


--
-- Name: leader_release(integer, bigint, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_release(p_subject integer, p_epoch bigint, p_holder text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    l leadership;
BEGIN
    UPDATE leadership t SET holder = NULL, holder_address = NULL, lock_held = false, lock_pid = NULL,
        expiry_1 = NULL, expiry_2 = NULL, leased = false, seen_block = (SELECT c.seen_block FROM claim_times(t) c)
        WHERE t.subject = p_subject AND t.epoch = p_epoch AND t.holder = p_holder RETURNING t.* INTO l;
    IF FOUND THEN
        PERFORM tell_leader(l);
        RETURN true;
    END IF;
    RETURN false;
END
$$;


--
-- Name: leader_renew(text, integer[], bigint[], integer, integer, timestamp with time zone, bigint, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_renew(p_holder text, p_subjects integer[], p_epochs bigint[], p_expiry_1_ms integer, p_expiry_2_ms integer, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, p_block bigint DEFAULT NULL::bigint, p_fingerprint text DEFAULT NULL::text) RETURNS TABLE(subject integer, renewed boolean, unchanged boolean, fingerprint text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    v_timelines int[] := timelines();
    v_lease relay_leases;
    v_named int[];
    v_turns int[];
    v_mine int[];
    v_fingerprint text;
BEGIN
    p_now := clock_of('leader_renew', p_now);
    PERFORM check_expiry('leader_renew', p_expiry_1_ms, p_expiry_2_ms);
    IF p_subjects IS NULL OR p_epochs IS NULL OR cardinality(p_subjects) <> cardinality(p_epochs) THEN
        PERFORM bad_argument('leader_renew', 'p_epochs', format('has %s elements and p_subjects has %s',
            coalesce(cardinality(p_epochs), 0), coalesce(cardinality(p_subjects), 0)), 'Give one epoch per subject.');
    END IF;
    SELECT * INTO v_lease FROM relay_leases r WHERE r.holder = p_holder FOR NO KEY UPDATE;
    IF p_fingerprint <> '' THEN
        v_fingerprint := (SELECT format('%s/%s', count(*), sum(hashint8extended(t.epoch, t.subject))) FROM leadership t
            WHERE t.holder = p_holder AND t.leased AND t.timeline = ANY (v_timelines));
    END IF;
    INSERT INTO relay_leases AS r (holder, heartbeat, expiry_1, expiry_2, seen_block)
        VALUES (p_holder, p_now, p_now + p_expiry_1_ms * interval '1 ms', p_now + p_expiry_2_ms * interval '1 ms', p_block)
        ON CONFLICT (holder) DO UPDATE SET heartbeat = excluded.heartbeat, expiry_1 = excluded.expiry_1,
            expiry_2 = excluded.expiry_2, seen_block = greatest(r.seen_block, excluded.seen_block);
    IF v_fingerprint = p_fingerprint THEN
        RETURN QUERY SELECT NULL::int, NULL::boolean, true, v_fingerprint;
        RETURN;
    END IF;
    -- Arrays, and an IN that is no join (IS TRUE): both are hashed. Joins would be planned for a
    -- few rows.
    v_named := ARRAY(SELECT t.subject FROM leadership t WHERE t.holder = p_holder AND t.timeline = ANY (v_timelines)
        AND ((t.subject, t.epoch) IN (SELECT b.subject, b.epoch FROM unnest(p_subjects, p_epochs) b (subject, epoch))) IS TRUE);
    v_turns := ARRAY(SELECT t.subject FROM leadership t
        WHERE t.holder = p_holder AND t.leased <> (t.subject = ANY (v_named)));
    IF cardinality(v_turns) > 0 THEN
        BEGIN
            PERFORM FROM leadership t WHERE t.subject = ANY (v_turns) FOR NO KEY UPDATE;
        EXCEPTION WHEN lock_not_available THEN
            v_turns := ARRAY(SELECT t.subject FROM leadership t WHERE t.subject = ANY (v_turns)
                FOR NO KEY UPDATE SKIP LOCKED);
        END;
        UPDATE leadership t SET leased = NOT t.leased, heartbeat = coalesce(v_lease.heartbeat, t.heartbeat),
                expiry_1 = coalesce(v_lease.expiry_1, t.expiry_1), expiry_2 = coalesce(v_lease.expiry_2, t.expiry_2),
                seen_block = greatest(t.seen_block, v_lease.seen_block)
            WHERE t.subject = ANY (v_turns) AND t.holder = p_holder AND t.leased <> (t.subject = ANY (v_named));
    END IF;
    SELECT array_agg(t.subject ORDER BY t.subject), format('%s/%s', count(*), sum(hashint8extended(t.epoch, t.subject))) INTO v_mine, v_fingerprint
        FROM leadership t WHERE t.holder = p_holder AND t.leased AND t.timeline = ANY (v_timelines) AND t.subject = ANY (v_named);
    DELETE FROM relay_leases r USING (SELECT o.holder FROM relay_leases o WHERE o.expiry_2 <= p_now AND o.holder <> p_holder
            AND NOT EXISTS (SELECT FROM leadership t WHERE t.holder = o.holder) FOR UPDATE SKIP LOCKED) gone
        WHERE r.holder = gone.holder;
    RETURN QUERY SELECT b.subject, b.subject IN (SELECT unnest(v_mine)), false, CASE WHEN p_fingerprint IS NOT NULL THEN v_fingerprint END
        FROM unnest(p_subjects) WITH ORDINALITY b (subject, n) ORDER BY b.n;
END
$$;


--
-- Name: leader_requeue(integer, bigint, bigint[], bytea[], bytea[], bigint[], integer[], text[], text[], numeric[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_requeue(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_block_hashes bytea[], p_block_numbers bigint[], p_indexes integer[], p_outcomes text[], p_errors text[], p_fees numeric[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'account');
    v_count int := batch_size('leader_requeue', cardinality(p_nonces), cardinality(p_hashes),
        cardinality(p_block_hashes), cardinality(p_block_numbers), cardinality(p_indexes), cardinality(p_outcomes),
        cardinality(p_errors), cardinality(p_fees));
    v_tell boolean := queue_has_room();
    v_found bigint;
    v_told bigint;
    v_bad record;
BEGIN
    PERFORM check_nonces('leader_requeue', p_nonces);
    SELECT u.* INTO v_bad FROM unnest(p_nonces, p_block_hashes, p_outcomes) u (nonce, block_hash, outcome)
        WHERE u.outcome IS NULL OR u.outcome NOT IN ('usurped', 'dispatch_error', 'failed')
           OR u.outcome = 'dispatch_error' AND u.block_hash IS NULL
           OR u.outcome = 'failed' AND u.block_hash IS NOT NULL LIMIT 1;
    IF FOUND AND v_bad.outcome IN ('dispatch_error', 'failed') THEN
        PERFORM bad_argument('leader_requeue', 'p_block_hashes', format('is %s for nonce %s with outcome %s',
            CASE WHEN v_bad.block_hash IS NULL THEN 'NULL' ELSE 'given' END, v_bad.nonce, v_bad.outcome),
            'dispatch_error names the finalized block; failed has none: no block of this life used the nonce.');
    ELSIF FOUND THEN
        PERFORM order_error(format('leader_requeue: nonce %s cannot be used up as %s', v_bad.nonce,
            coalesce(v_bad.outcome, 'NULL')), 'usurped, dispatch_error or failed; other ends are leader_finish''s.');
    ELSIF a.reconcile_from IS NOT NULL AND 'failed' = ANY (p_outcomes) THEN
        PERFORM not_reconciled('leader_requeue', a);
    END IF;
    SELECT u.nonce, u.outcome, p.state, p.retries, p.signed, t.number, t.filler INTO v_bad
        FROM unnest(p_nonces, p_hashes, p_outcomes) u (nonce, hash, outcome)
        CROSS JOIN LATERAL (SELECT x.state, x.retries, x.signed FROM pending_transactions x WHERE x.account = p_account
            AND x.nonce = u.nonce AND coalesce(x.id, 0) <> 0 OFFSET 0) p -- in a form that the index of ids does not fit
        LEFT JOIN LATERAL (SELECT x.number, x.filler FROM attempts x WHERE x.account = p_account AND x.nonce = u.nonce
            AND x.hash = u.hash ORDER BY x.number DESC LIMIT 1) t ON true
        WHERE p.signed OR CASE WHEN u.outcome = 'dispatch_error' THEN p.retries = 0 OR t.number IS NULL OR t.filler IS NOT NULL
            ELSE p.state = 'finalized' END LIMIT 1;
    IF FOUND THEN
        PERFORM order_error(format('leader_requeue: nonce %s (%s) %s', v_bad.nonce, v_bad.state, CASE
            WHEN v_bad.signed THEN 'was signed elsewhere, for this nonce'
            WHEN v_bad.outcome <> 'dispatch_error' THEN 'is in a finalized block'
            WHEN v_bad.number IS NULL THEN 'has no attempt with this hash'
            WHEN v_bad.filler IS NOT NULL THEN format('has a filler''s call in attempt %s', v_bad.number)
            ELSE 'has no retries left' END),
            'leader_finish ends it.');
    END IF;
    WITH gone AS (
        DELETE FROM pending_transactions p USING unnest(p_nonces, p_hashes, p_block_hashes, p_block_numbers, p_indexes,
                p_outcomes, p_errors, p_fees) b (nonce, hash, block_hash, block_number, index, outcome, error, fee)
            CROSS JOIN LATERAL (SELECT x.ctid AS at FROM pending_transactions x WHERE x.account = p_account
                AND x.nonce = b.nonce AND coalesce(x.id, 0) <> 0 OFFSET 0) x
        WHERE p.ctid = x.at
        RETURNING p.*, b.index, b.fee, b.block_hash AS end_block,
            CASE WHEN b.block_hash IS NOT NULL THEN b.block_number END AS end_number, b.error AS end_error,
            b.outcome::tx_outcome AS end_outcome, CASE WHEN b.outcome = 'dispatch_error' THEN b.hash END AS included
    ), tried AS (
        UPDATE attempts t SET ended_at = coalesce(t.ended_at, clock_timestamp()),
            state = CASE WHEN t.hash = g.included THEN 'finalized' WHEN t.number = g.attempt THEN g.state
                         ELSE t.state END,
            block_hash = CASE WHEN t.hash = g.included THEN g.end_block ELSE t.block_hash END,
            block_number = CASE WHEN t.hash = g.included THEN g.end_number ELSE t.block_number END,
            error = coalesce(CASE WHEN t.hash = g.included THEN g.end_error WHEN t.number = g.attempt THEN g.error END,
                             t.error),
            reason = CASE WHEN t.hash = g.included THEN t.reason ELSE coalesce(t.reason, g.end_error) END,
            outcome = CASE WHEN t.hash = g.included THEN 'included'
                           WHEN t.outcome NOT IN ('live', 'unknown') THEN t.outcome
                           WHEN g.end_outcome = 'dispatch_error' THEN 'superseded'
                           WHEN g.end_outcome = 'usurped' THEN 'usurped' ELSE 'dropped' END::attempt_outcome
        FROM gone g CROSS JOIN LATERAL (SELECT x.ctid AS at FROM attempts x WHERE x.account = p_account
            AND x.nonce = g.nonce AND (x.outcome IN ('live', 'unknown') OR x.hash = g.included OR x.number = g.attempt)
            OFFSET 0) x
        WHERE t.ctid = x.at
    ), record AS (
        INSERT INTO finished_transactions (requeued, account, nonce, hash, block_hash, block_number, extrinsic_index,
            state, outcome, error, fee, attempts, epoch, creator, created_at, admitted_at, in_block_at, finished_at)
        SELECT g.id, g.account, g.nonce, coalesce(g.included, g.hash), g.end_block, g.end_number, g.index,
            CASE g.end_outcome WHEN 'dispatch_error' THEN 'finalized' WHEN 'usurped' THEN 'usurped' ELSE g.state END,
            g.end_outcome, g.end_error, g.fee, g.attempts, p_epoch, g.creator, g.created_at, g.admitted_at,
            coalesce(g.in_block_at, CASE WHEN g.included IS NOT NULL THEN clock_timestamp() END), (SELECT steady_clock())
        FROM gone g ORDER BY g.nonce
    ), back AS (
        INSERT INTO outbox (id, account, call, key, creator, role, priority, deadline, guard, tip, max_tip, deadline_block,
            retries, attempts, created_at, traceparent)
        SELECT g.id, g.account, g.call, g.key, g.creator, g.role, g.priority, g.deadline, g.guard, g.tip, g.max_tip,
            g.deadline_block, g.retries - (g.included IS NOT NULL)::int, g.attempts, g.created_at, g.traceparent
        FROM gone g
    )
    SELECT count(*), count(CASE WHEN v_tell
            THEN pg_notify('pending_tx_removed', removal_text(g.account_id, g.nonce, g.id, NULL, g.traceparent))::text END)
        INTO v_found, v_told FROM gone g;
    IF v_found <> v_count THEN
        PERFORM batch_changed('leader_requeue', 'pending_transactions', v_found, v_count);
    END IF;
    PERFORM nonces_used(p_account, p_nonces, p_block_hashes, p_block_numbers, p_outcomes);
    RETURN v_found;
END
$$;


--
-- Name: leader_scan(integer[], bigint[], timestamp with time zone, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_scan(p_subjects integer[], p_epochs bigint[] DEFAULT NULL::bigint[], p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, p_fingerprint text DEFAULT NULL::text) RETURNS TABLE(subject integer, taken boolean, holder text, holder_address text, epoch bigint, lock_held boolean, expiry_1_left_ms bigint, expiry_2_left_ms bigint, fingerprint text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    v_fingerprint text;
BEGIN
    p_now := clock_of('leader_scan', p_now);
    IF p_subjects IS NULL OR (p_epochs IS NOT NULL AND cardinality(p_subjects) <> cardinality(p_epochs)) THEN
        PERFORM bad_argument('leader_scan', 'p_epochs', format('has %s elements and p_subjects has %s',
            coalesce(cardinality(p_epochs), 0), coalesce(cardinality(p_subjects), 0)), 'Give one epoch per subject, or none.');
    END IF;
    IF p_fingerprint IS NOT NULL THEN
        v_fingerprint := claims_fingerprint(p_now);
    END IF;
    fingerprint := v_fingerprint;
    IF v_fingerprint = p_fingerprint THEN
        RETURN NEXT;
        RETURN;
    END IF;
    RETURN QUERY
    WITH locks AS MATERIALIZED (
        SELECT l.classid::bigint << 32 | l.objid::bigint AS lock_key
        FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
        WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
    ), held AS MATERIALIZED ( -- claim_times, for thousands at once
        SELECT r.holder, r.expiry_1, r.expiry_2 FROM relay_leases r
        ORDER BY r.holder -- by its key: with sequential scans off, one would be costly enough to be compiled
    ), rows AS (
        SELECT b.n, b.known, t.subject, t.holder, t.holder_address, t.epoch, t.lock_held,
            coalesce(h.expiry_1, t.expiry_1) AS expiry_1, coalesce(h.expiry_2, t.expiry_2) AS expiry_2,
            t.lock_key IN (SELECT l.lock_key FROM locks l) AS taken -- hashed once
        FROM unnest(p_subjects, coalesce(p_epochs, '{}')) WITH ORDINALITY b (subject, known, n)
            JOIN leadership t ON t.subject = b.subject LEFT JOIN held h ON t.leased AND h.holder = t.holder
    )
    SELECT r.subject, r.taken, r.holder, r.holder_address, r.epoch, r.lock_held,
        (extract(epoch FROM r.expiry_1 - p_now) * 1000)::bigint, (extract(epoch FROM r.expiry_2 - p_now) * 1000)::bigint,
        v_fingerprint
    FROM rows r
    WHERE (r.holder IS NOT NULL AND r.expiry_1 > p_now AND (r.taken OR NOT r.lock_held) AND r.epoch = r.known) IS NOT TRUE
    ORDER BY r.n;
    IF NOT FOUND AND p_fingerprint IS NOT NULL THEN
        RETURN NEXT;
    END IF;
END
$$;


--
-- Name: leader_snapshot(integer, bigint, bigint, integer); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.leader_snapshot(p_account integer, p_epoch bigint, p_after_nonce bigint, p_limit integer) RETURNS TABLE(nonce bigint, id bigint, state text, hash bytea, attempt integer, extrinsic bytea, call bytea, block_hash bytea, block_number bigint, era_birth bigint, era_death bigint, spec_version bigint, transaction_version bigint, tip numeric, block bigint, earlier bytea[], earlier_own integer, earlier_death bigint, unknown boolean, priority integer, deadline timestamp with time zone, creator text, created_at timestamp with time zone, admitted_at timestamp with time zone, guard bigint, max_tip numeric, deadline_block bigint, retries integer, filler integer, stop_outcome text, stop_reason text, signed boolean, traceparent text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
BEGIN
    PERFORM fence(p_account, p_epoch, 'update');
    RETURN QUERY
    SELECT p.nonce, p.id, p.state::text, p.hash, p.attempt, t.extrinsic, p.call, p.block_hash, p.block_number,
           t.era_birth, t.era_death, t.spec_version, t.transaction_version, t.tip, t.block,
           coalesce((p.earlier).hashes, '{}'), coalesce((p.earlier).own, 0), coalesce((p.earlier).death, 0),
           p.unknown, p.priority, p.deadline, p.creator, p.created_at, p.admitted_at, p.guard,
           p.max_tip, p.deadline_block, p.retries, t.filler, p.stop_outcome::text, p.stop_reason, p.signed, p.traceparent
    FROM (SELECT x.*, CASE WHEN x.attempt > 1 THEN -- few rows: the others do not pay for them
            (SELECT ROW(array_agg(t.hash ORDER BY t.filler IS NOT NULL, t.number), count(*) FILTER (WHERE t.filler IS NULL),
                 CASE WHEN bool_or(t.era_death IS NULL) THEN -1 ELSE max(t.era_death) END)::earlier_attempts FROM attempts t
             WHERE t.account = p_account AND t.nonce = x.nonce AND t.number < x.attempt
                 AND (NOT x.signed OR t.id = x.id)) END AS earlier
          FROM pending_transactions x WHERE x.account = p_account AND x.nonce > p_after_nonce
          ORDER BY x.account, x.nonce LIMIT p_limit) p
    CROSS JOIN LATERAL (SELECT * FROM attempts x WHERE x.account = p_account AND x.nonce = p.nonce
        AND x.number = p.attempt OFFSET 0) t
    ORDER BY p.nonce;
END
$$;


--
-- Name: left_ms(timestamp with time zone); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.left_ms(p_time timestamp with time zone) RETURNS bigint
    LANGUAGE sql
    AS $$
    SELECT CASE WHEN txrelay.time_fits(p_time) THEN pg_catalog.int8(GREATEST(0, pg_catalog.ceil(EXTRACT(epoch FROM
        p_time OPERATOR(pg_catalog.-) pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 1000))) END
$$;


--
-- Name: lock_holder(bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.lock_holder(p_lock_key bigint) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RETURN (SELECT session_text(h.pid) FROM leadership l JOIN lock_holders h ON h.lock_key = l.lock_key
        WHERE l.lock_key = p_lock_key AND h.pid IS DISTINCT FROM l.lock_pid LIMIT 1);
END
$$;


--
-- Name: member_heartbeat(text, text, bigint, integer, boolean, boolean, bigint, timestamp with time zone); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.member_heartbeat(p_holder text, p_address text, p_serves bigint, p_ttl_ms integer, p_session boolean DEFAULT false, p_leave boolean DEFAULT false, p_best bigint DEFAULT NULL::bigint, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(holder text, address text, best bigint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    v_ttl interval := p_ttl_ms * interval '1 ms';
BEGIN
    IF p_now IS NULL THEN
        PERFORM note_high_water();
    END IF;
    p_now := clock_of('member_heartbeat', p_now);
    PERFORM check_expiry('member_heartbeat', p_ttl_ms, p_ttl_ms);
    IF p_holder IS NULL OR octet_length(p_holder) NOT BETWEEN 1 AND 500 THEN
        PERFORM bad_argument('member_heartbeat', 'p_holder', format('has %s bytes; it must have 1 to 500',
            octet_length(p_holder)), 'It names this relay process: network, account, host, pid, uuid.');
    ELSIF octet_length(p_address) > 300 THEN
        PERFORM bad_argument('member_heartbeat', 'p_address', format('has %s bytes; at most 300', octet_length(p_address)),
            'It is where clients reach this relay.');
    ELSIF p_serves IS NULL THEN
        PERFORM bad_argument('member_heartbeat', 'p_serves', 'is NULL', 'A digest of the accounts of this relay.');
    END IF;
    IF p_leave THEN
        UPDATE members m SET pid = 0 WHERE m.holder = p_holder; -- of no session
    ELSE
        INSERT INTO members AS m (holder, address, serves, pid, best, heartbeat)
            VALUES (p_holder, p_address, p_serves, CASE WHEN p_session THEN pg_backend_pid() END, p_best, p_now)
            ON CONFLICT (holder) DO UPDATE SET address = excluded.address, serves = excluded.serves, pid = excluded.pid,
                best = excluded.best, heartbeat = excluded.heartbeat;
    END IF;
    DELETE FROM members m USING (SELECT o.holder FROM members o
        WHERE o.heartbeat <= p_now - greatest(2 * v_ttl, interval '1 minute')
        FOR UPDATE SKIP LOCKED) old WHERE m.holder = old.holder;
    RETURN QUERY SELECT m.holder, m.address, (SELECT max(o.best) FROM members o WHERE o.serves = p_serves) FROM members m
        WHERE m.heartbeat > p_now - v_ttl AND m.serves = p_serves
        AND (m.pid IS NULL OR EXISTS (SELECT FROM pg_stat_get_activity(m.pid)))
        ORDER BY m.holder COLLATE "C";
END
$$;


--
-- Name: mid_submission(integer); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.mid_submission(p_subject integer) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    PERFORM FROM pending_transactions p WHERE p.account = p_subject AND (p.state = 'signed' OR p.unknown)
        ORDER BY p.nonce DESC LIMIT 1;
    RETURN FOUND;
END
$$;


--
-- Name: must_be_free(text, bigint[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.must_be_free(p_function text, p_ids bigint[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    v_held text := held_text(p_ids);
BEGIN
    IF v_held IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'lock_not_available', MESSAGE = format('%s: %s', p_function, v_held),
            HINT = 'End that transaction or its session; the leader tries again by itself.';
    END IF;
END
$$;


--
-- Name: new_id(text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.new_id(p_function text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    v_id bigint;
    v_given bigint;
BEGIN
    SELECT nextval('txrelay.transaction_id'), (SELECT h.highest_id FROM high_water h WHERE h.one) INTO v_id, v_given;
    IF v_id <= v_given THEN
        PERFORM id_given_again(p_function, v_id);
    END IF;
    RETURN v_id;
END
$$;


--
-- Name: no_relay_has(bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.no_relay_has(p_lock_key bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RETURN pg_try_advisory_xact_lock(p_lock_key) OR NOT EXISTS (SELECT FROM lock_holders h
        JOIN pg_stat_activity x ON x.pid = h.pid WHERE h.lock_key = p_lock_key
            AND pg_has_role(x.usesysid, 'txrelay_relay', 'MEMBER'));
END
$$;


--
-- Name: nonces_end(integer, bigint, bigint[], bytea[], bytea[], bigint[], integer[], text[], text[], numeric[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.nonces_end(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_block_hashes bytea[], p_block_numbers bigint[], p_indexes integer[], p_outcomes text[], p_errors text[], p_fees numeric[]) RETURNS bigint[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_tell boolean := queue_has_room();
    v_ended bigint[];
BEGIN
    WITH gone AS (
        DELETE FROM pending_transactions p
        USING unnest(p_nonces, p_hashes, p_block_hashes, p_block_numbers, p_indexes, p_outcomes, p_errors, p_fees)
                b (nonce, hash, block, number, index, outcome, error, fee)
            CROSS JOIN LATERAL (SELECT x.ctid AS at FROM pending_transactions x WHERE x.account = p_account
                AND x.nonce = b.nonce OFFSET 0) x
            LEFT JOIN LATERAL (SELECT t.number, t.filler, t.id FROM attempts t WHERE t.account = p_account
                AND t.nonce = b.nonce AND t.hash = b.hash AND b.block IS NOT NULL ORDER BY t.number DESC LIMIT 1) t ON true
        WHERE p.ctid = x.at
          AND (b.block IS NULL OR t.number IS NOT NULL AND (NOT p.signed OR t.id = p.id)
               AND (p.id IS NULL OR (t.filler IS NULL) = (b.outcome IN ('ok', 'dispatch_error', 'unknown'))))
          AND (p.state <> 'finalized' OR (p.hash, p.block_hash) IS NOT DISTINCT FROM (b.hash, b.block))
        RETURNING p.account, p.nonce, p.account_id, p.id, p.hash, p.attempt, p.attempts, p.state, p.block_hash, p.error, p.key,
            p.creator, p.role, CASE WHEN b.outcome <> 'ok' AND p.id IS NOT NULL THEN p.call END AS call,
            CASE WHEN b.outcome <> 'ok' AND p.id IS NOT NULL THEN finished_options(p.priority, NULL, p.deadline, p.guard, p.tip,
                p.max_tip, p.deadline_block, p.retries, p.signed) END AS options, p.traceparent, p.created_at, p.admitted_at,
            p.in_block_at, b.block, CASE WHEN b.block IS NOT NULL THEN b.number END AS number, b.index,
            b.outcome::tx_outcome AS outcome, b.error AS ended_by, b.fee,
            CASE WHEN b.block IS NOT NULL THEN b.hash ELSE p.hash END AS last,
            CASE WHEN b.block IS NOT NULL THEN 'finalized' WHEN b.outcome = 'usurped' THEN 'usurped' ELSE p.state END
                AS becomes
    ), tried AS (
        UPDATE attempts t SET ended_at = coalesce(t.ended_at, v_now),
            state = CASE WHEN t.hash = g.last THEN g.becomes WHEN t.number = g.attempt THEN g.state ELSE t.state END,
            block_hash = CASE WHEN t.hash = g.last THEN g.block ELSE t.block_hash END,
            block_number = CASE WHEN t.hash = g.last THEN g.number ELSE t.block_number END,
            error = coalesce(CASE WHEN g.block IS NULL THEN NULL WHEN t.hash <> g.last AND t.number = g.attempt THEN g.error
                                  WHEN t.hash = g.last AND t.filler IS NULL THEN g.ended_by END, t.error),
            outcome = CASE WHEN g.block IS NOT NULL AND t.hash = g.last THEN 'included'
                           WHEN t.outcome NOT IN ('live', 'unknown') THEN t.outcome
                           WHEN g.block IS NOT NULL THEN 'superseded'
                           WHEN g.outcome = 'usurped' THEN 'usurped' WHEN g.outcome = 'unknown' THEN 'unknown'
                           ELSE 'dropped' END::attempt_outcome
        FROM gone g CROSS JOIN LATERAL (SELECT x.ctid AS at FROM attempts x WHERE x.account = p_account
            AND x.nonce = g.nonce AND (x.outcome IN ('live', 'unknown') OR x.hash = g.last OR x.number = g.attempt)
            OFFSET 0) x
        WHERE t.ctid = x.at
    ), retracted AS ( -- as in retractions_note
        INSERT INTO refusals AS r (account, nonce, number, error, count, first_at, last_at)
        SELECT g.account, g.nonce, g.attempt, format('block 0x%s was retracted', encode(g.block_hash, 'hex')), 1, v_now, v_now
        FROM gone g WHERE g.state IN ('in_block', 'finality_timeout') AND g.block_hash <> g.block
        ON CONFLICT (account, nonce, number, error) DO UPDATE SET count = r.count + 1, last_at = excluded.last_at
    ), ended AS (
        INSERT INTO finished_transactions (id, account, nonce, hash, block_hash, block_number, extrinsic_index, state,
            outcome, error, fee, attempts, epoch, key, creator, role, options, call, traceparent, created_at, admitted_at,
            in_block_at, finished_at)
        SELECT g.id, g.account, g.nonce, g.last, g.block, g.number, g.index, g.becomes, g.outcome,
            coalesce((SELECT format('the attempt that was included belongs to transaction %s, which had ended before', t.id)
                      FROM attempts t WHERE g.id IS NULL AND g.block IS NOT NULL AND t.account = p_account
                      AND t.nonce = g.nonce AND t.hash = g.last AND t.id IS NOT NULL LIMIT 1)
                     || coalesce(': ' || g.ended_by, ''), g.ended_by),
            g.fee, g.attempts, p_epoch, g.key, g.creator, g.role, g.options, g.call,
            g.traceparent, g.created_at, g.admitted_at, coalesce(g.in_block_at, CASE WHEN g.block IS NOT NULL THEN v_now END),
            (SELECT steady_clock()) -- one time for all rows, so one entry in the index; read after the table is locked,
        FROM gone g ORDER BY g.nonce   -- because follow_position looks for that lock
    ), told AS (
        SELECT g.nonce, CASE WHEN v_tell AND (g.becomes, g.last, g.block) IS DISTINCT FROM (g.state, g.hash, g.block_hash)
                THEN pg_notify('pending_tx_update', change_text(g.account_id, g.nonce, g.last, g.becomes, g.creator, v_now,
                    g.id, g.block, g.traceparent))::text END,
            CASE WHEN v_tell THEN pg_notify('pending_tx_removed', removal_text(g.account_id, g.nonce, g.id, g.outcome,
                g.traceparent))::text
                END
        FROM gone g
    )
    SELECT array_agg(t.nonce ORDER BY t.nonce) INTO v_ended FROM told t;
    RETURN coalesce(v_ended, '{}');
END
$$;


--
-- Name: nonces_used(integer, bigint[], bytea[], bigint[], text[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.nonces_used(p_account integer, p_nonces bigint[], p_block_hashes bytea[], p_block_numbers bigint[], p_outcomes text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    v_nonce bigint;
    v_number bigint;
BEGIN
    SELECT max(b.nonce), max(b.number) INTO v_nonce, v_number
        FROM unnest(p_nonces, p_block_hashes, p_block_numbers, p_outcomes) b (nonce, block_hash, number, outcome)
        WHERE b.block_hash IS NOT NULL OR b.outcome IN ('usurped', 'unknown');
    UPDATE accounts t SET used_nonce = greatest(t.used_nonce, v_nonce + 1), used_block = greatest(t.used_block, v_number)
        WHERE t.account = p_account AND (v_nonce >= coalesce(t.used_nonce, 0) OR v_number > coalesce(t.used_block, -1));
END
$$;


--
-- Name: not_reconciled(text, txrelay.accounts); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.not_reconciled(p_function text, a txrelay.accounts) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    PERFORM order_error(format('%s: account %s is not reconciled with the chain from block %s on%s', p_function, a.alias,
            a.reconcile_from, coalesce(', up to block ' || (a.lost_heard + a.era_longest)::text, '')),
        'Commits may be lost, and what they sent may still be included. leader_adopt what the chain and the pools hold '
        'once all finalized blocks of the wait are read.');
END
$$;


--
-- Name: note_careful(integer); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.note_careful(p_account integer) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
    UPDATE accounts a SET careful = a.users IS NOT NULL OR (a.policy ->> 'order') IS NOT DISTINCT FROM 'strict'
            OR a.policy ? 'outbox_max' OR EXISTS (SELECT FROM idempotency_keys k WHERE k.account = p_account AND k.role = '')
        WHERE a.account = p_account
$$;


--
-- Name: note_full(integer); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.note_full(p_account integer) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    IF NOT is_operator() AND outbox_over(p_account, acting_role(),
            (SELECT outbox_most(a.policy) - 1 FROM accounts a WHERE a.account = p_account)) THEN
        INSERT INTO outbox_full (account, role) VALUES (p_account, acting_role()) ON CONFLICT DO NOTHING;
    END IF;
END
$$;


--
-- Name: note_high_water(timestamp with time zone); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.note_high_water(p_clock timestamp with time zone DEFAULT clock_timestamp()) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    v_given bigint := pg_sequence_last_value('txrelay.transaction_id');
BEGIN
    UPDATE high_water h SET reached = greatest(h.reached, p_clock + h.clock_offset),
        clock_offset = CASE WHEN p_clock + h.clock_offset < h.reached THEN h.reached - p_clock ELSE greatest('0',
            h.clock_offset - 0.1 * least(p_clock + h.clock_offset - h.reached, interval '1 s')) END,
        highest_id = greatest(h.highest_id, v_given)
    FROM (SELECT x.one FROM high_water x WHERE x.one FOR UPDATE SKIP LOCKED) o WHERE h.one AND o.one;
END
$$;


--
-- Name: order_error(text, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.order_error(p_message text, p_hint text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR003', MESSAGE = p_message, HINT = p_hint;
END
$$;


--
-- Name: other_version(text, txrelay.accounts, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.other_version(p_function text, a txrelay.accounts, p_version bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR002',
        MESSAGE = format('%s: signed under transaction version %s, and account %s signs under %s', p_function, p_version,
            a.alias, a.transaction_version),
        HINT = 'Calls that were made before may mean something else now. leader_pause with transaction_version; an '
            'operator judges, and account_resume accepts the new one.';
END
$$;


--
-- Name: outbox_end(integer, bigint[], txrelay.tx_outcome[], text[], bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.outbox_end(p_account integer, p_ids bigint[], p_outcomes txrelay.tx_outcome[], p_errors text[], p_epoch bigint) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
    WITH given AS (
        SELECT u.id, u.outcome, u.error FROM unnest(p_ids, p_outcomes, p_errors) u (id, outcome, error)
    ), unsigned AS (
        DELETE FROM outbox o USING given b
            CROSS JOIN LATERAL (SELECT x.ctid AS at FROM outbox x WHERE x.id = b.id
                AND (p_account IS NULL OR x.account = p_account AND (x.xmax = 0 OR NOT x.xmax = ANY ((SELECT running_xids())::xid[]) AND row_free(x.id))) OFFSET 0) x
        WHERE o.ctid = x.at
        RETURNING o.id, o.account, b.outcome, b.error, o.attempts, o.key, o.creator, o.role, o.call, o.traceparent, o.created_at,
            finished_options(o.priority, o.not_before, o.deadline, o.guard, o.tip, o.max_tip, o.deadline_block, o.retries, false)
                AS options
    ), signed AS (
        DELETE FROM outbox_presigned o USING given b
            CROSS JOIN LATERAL (SELECT x.ctid AS at FROM outbox_presigned x WHERE x.id = b.id
                AND (p_account IS NULL OR x.account = p_account AND (x.xmax = 0 OR NOT x.xmax = ANY ((SELECT running_xids())::xid[]) AND row_free(x.id))) ORDER BY x.id LIMIT 1) x
        WHERE o.ctid = x.at
        RETURNING o.id, o.account, b.outcome, b.error, 0 AS attempts, o.key, o.creator, o.role, o.extrinsic AS call, o.traceparent,
            o.created_at,
            jsonb '{"signed": true}' AS options
    ), gone AS (
        SELECT * FROM unsigned UNION ALL SELECT * FROM signed
    ), ended AS (
        INSERT INTO finished_transactions (id, account, outcome, error, attempts, epoch, key, creator, role, options, call,
            traceparent, created_at, finished_at)
        SELECT g.id, g.account, g.outcome, g.error, g.attempts, p_epoch, g.key, g.creator, g.role, g.options, g.call,
            g.traceparent, g.created_at, (SELECT steady_clock())
        FROM gone g RETURNING 1
    ), told AS (
        SELECT CASE WHEN (SELECT queue_has_room()) THEN pg_notify('pending_tx_removed', concat('{"account_id":"0x',
            (SELECT encode(a.account_id, 'hex') FROM accounts a WHERE a.account = g.account),
            '","nonce":null,"id":', g.id, ',"outcome":"', g.outcome, '"', ',"traceparent":"' || g.traceparent || '"', '}')) END
        FROM gone g
    )
    SELECT count(*) FROM told
$$;


--
-- Name: outbox_most(jsonb); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.outbox_most(p_policy jsonb) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT COALESCE((p_policy OPERATOR(pg_catalog.->>) 'outbox_max')::bigint, 100000)
$$;


--
-- Name: outbox_over(integer, text, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.outbox_over(p_account integer, p_role text, p_most bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    RETURN (SELECT count(*) FROM (
        (SELECT FROM outbox o WHERE o.account = p_account AND o.not_before IS NULL AND coalesce(o.role, o.creator) = p_role)
        UNION ALL
        (SELECT FROM outbox o WHERE o.account = p_account AND o.not_before IS NOT NULL AND coalesce(o.role, o.creator) = p_role)
        UNION ALL
        (SELECT FROM outbox_presigned s WHERE s.account = p_account AND coalesce(s.role, s.creator) = p_role)
        LIMIT p_most + 1) w) > p_most;
END
$$;


--
-- Name: pending_new(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.pending_new() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    IF queue_has_room() THEN
        PERFORM pg_notify('pending_tx_new', change_text(n.account_id, n.nonce, n.hash, n.state, n.creator, n.updated_at,
            n.id, NULL, n.traceparent))
        FROM new_rows n;
    END IF;
    RETURN NULL;
END
$$;


--
-- Name: pending_transactions; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.pending_transactions (
    account integer NOT NULL,
    nonce bigint NOT NULL,
    account_id bytea NOT NULL,
    id bigint,
    call bytea NOT NULL,
    hash bytea NOT NULL,
    attempt integer NOT NULL,
    attempts integer NOT NULL,
    state txrelay.tx_state NOT NULL,
    unknown boolean DEFAULT false NOT NULL,
    block_hash bytea,
    block_number bigint,
    error text,
    epoch bigint NOT NULL,
    key text,
    creator text,
    priority integer DEFAULT 0 NOT NULL,
    deadline timestamp with time zone,
    guard bigint,
    tip numeric(39,0),
    max_tip numeric(39,0),
    deadline_block bigint,
    retries integer DEFAULT 0 NOT NULL,
    stop_outcome txrelay.tx_outcome,
    stop_reason text,
    signed boolean DEFAULT false NOT NULL,
    blocked_since timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    admitted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    in_block_at timestamp with time zone,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    role text,
    traceparent text,
    CONSTRAINT pending_transactions_block_hash_check CHECK ((octet_length(block_hash) = 32)),
    CONSTRAINT pending_transactions_hash_check CHECK ((octet_length(hash) = 32)),
    CONSTRAINT pending_transactions_nonce_check CHECK ((nonce >= 0))
)
WITH (fillfactor='40', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000', autovacuum_analyze_scale_factor='0.05', autovacuum_vacuum_cost_delay='0');


--
-- Name: pending_of(bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.pending_of(p_id bigint) RETURNS txrelay.pending_transactions
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    p pending_transactions;
BEGIN
    SELECT * INTO p FROM pending_transactions x WHERE x.id = p_id ORDER BY x.id LIMIT 1;
    RETURN p;
END
$$;


--
-- Name: pending_update(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.pending_update() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_nestloop TO 'off'
    AS $$
BEGIN
    IF queue_has_room() THEN
        PERFORM pg_notify('pending_tx_update', change_text(n.account_id, n.nonce, n.hash, n.state, n.creator, n.updated_at,
            n.id, n.block_hash, n.traceparent))
        FROM new_rows n JOIN old_rows o USING (account, nonce)
        WHERE n.state <> o.state OR n.hash <> o.hash OR n.block_hash IS DISTINCT FROM o.block_hash
           OR n.id IS DISTINCT FROM o.id;
    END IF;
    RETURN NULL;
END
$$;


--
-- Name: policy_value(text, jsonb); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.policy_value(p_key text, p_value jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $_$
DECLARE
    v_text text := p_value #>> '{}';
    v_number numeric := CASE WHEN jsonb_typeof(p_value) = 'number' OR (jsonb_typeof(p_value) = 'string'
        AND v_text ~ '^[0-9]{1,50}$') THEN v_text::numeric END;
    v_most numeric := CASE WHEN p_key IN ('tip_start', 'tip_step', 'tip_cap', 'low_balance')
            THEN 340282366920938463463374607431768211455
        WHEN p_key = 'tip_step_percent' THEN 1000
        WHEN p_key = 'tip_after_blocks' THEN 100000
        WHEN p_key = 'skip_after_blocks' THEN 1000000
        WHEN p_key = 'priority_max' THEN 1000
        WHEN p_key = 'outbox_max' THEN 1000000 END;
BEGIN
    IF p_key = 'order' THEN
        IF p_value NOT IN ('"any"', '"strict"') THEN
            PERFORM bad_argument('account_policy', 'order', format('is %s; it must be "any" or "strict"',
                left(p_value::text, 80)), 'strict: nonces follow the order of commits, and writers wait for one another.');
        END IF;
        RETURN p_value;
    ELSIF p_key = 'usurped' THEN
        IF p_value NOT IN ('"fail"', '"requeue"') THEN
            PERFORM bad_argument('account_policy', 'usurped', format('is %s; it must be "fail" or "requeue"',
                left(p_value::text, 80)), 'What becomes of a transaction whose nonce somebody else used.');
        END IF;
        RETURN p_value;
    ELSIF p_key = 'retry_refusals' THEN
        IF jsonb_typeof(p_value) <> 'string' OR length(v_text) > 120
           OR v_text !~ '^(ExhaustsResources|Custom(:[0-9]{1,3})?)(,(ExhaustsResources|Custom(:[0-9]{1,3})?))*$' THEN
            PERFORM bad_argument('account_policy', 'retry_refusals', format('is %s; it must be a list like '
                '"ExhaustsResources,Custom:6" of at most 120 characters', left(p_value::text, 80)),
                'A transaction that the chain refuses so is submitted again; Custom alone means every number.');
        END IF;
        RETURN p_value;
    ELSIF v_most IS NULL THEN
        PERFORM bad_argument('account_policy', format('"%s"', left(p_key, 80)), 'is not a key of a policy',
            'The keys are tip_start, tip_step, tip_step_percent, tip_cap, tip_after_blocks, skip_after_blocks, low_balance, '
            'usurped, order, retry_refusals, priority_max and outbox_max.');
    ELSIF v_number IS NULL OR v_number NOT BETWEEN 0 AND v_most OR v_number <> trunc(v_number)
          OR (jsonb_typeof(p_value) = 'string' AND p_key LIKE '%blocks') OR (jsonb_typeof(p_value) = 'string'
          AND p_key = 'tip_step_percent') THEN
        PERFORM bad_argument('account_policy', p_key, format('is %s; it must be a whole number from 0 to %s%s',
            left(p_value::text, 80), v_most, CASE WHEN v_most > 1000000 THEN ', or a string of its digits' ELSE '' END),
            CASE WHEN v_most > 1000000 THEN 'In the chain''s smallest unit. ' ELSE '' END || 'JSON null removes the key.');
    END IF;
    RETURN CASE WHEN v_most > 1000000 THEN to_jsonb(trunc(v_number)::text) ELSE to_jsonb(v_number::int) END;
END
$_$;


--
-- Name: queue_has_room(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.queue_has_room() RETURNS boolean
    LANGUAGE plpgsql
    AS $$ -- called with every notification, so it sets no search_path and no rights: it has its callers'
BEGIN
    RETURN NOT EXISTS (SELECT FROM txrelay.notify_queue q WHERE q.one AND q.shut);
END
$$;


--
-- Name: queue_measure(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.queue_measure() RETURNS double precision
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    v_usage float8 := pg_notification_queue_usage();
BEGIN
    UPDATE notify_queue q SET shut = NOT q.shut, since = clock_timestamp() WHERE q.one AND q.shut <> (v_usage >= 0.25);
    RETURN v_usage;
END
$$;


--
-- Name: refusals_note(integer, bigint, bigint[], bytea[], text[], text[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.refusals_note(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_states text[], p_errors text[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_changed bigint;
BEGIN
    INSERT INTO refusals AS r (account, nonce, number, error, count, first_at, last_at)
    SELECT p_account, b.nonce, t.number, b.error, b.count, v_now, v_now
    FROM (SELECT u.nonce, u.hash, left(coalesce(u.error, 'refused'), 500) AS error, count(*) AS count
          FROM unnest(p_nonces, p_hashes, p_states, p_errors) u (nonce, hash, state, error)
          WHERE u.state IN ('refused', 'tried') GROUP BY 1, 2, 3) b
        CROSS JOIN LATERAL (SELECT FROM pending_transactions y WHERE y.account = p_account AND y.nonce = b.nonce
            OFFSET 0) p
        CROSS JOIN LATERAL (SELECT x.number FROM attempts x WHERE x.account = p_account AND x.nonce = b.nonce
            AND x.hash = b.hash ORDER BY x.number DESC LIMIT 1) t
    ON CONFLICT (account, nonce, number, error) DO UPDATE SET count = r.count + excluded.count,
        last_at = excluded.last_at;
    UPDATE attempts t SET error = b.error, error_at = v_now
    FROM (SELECT DISTINCT ON (u.nonce, u.hash) u.nonce, u.hash, coalesce(u.error, 'refused') AS error
          FROM unnest(p_nonces, p_hashes, p_states, p_errors) WITH ORDINALITY u (nonce, hash, state, error, n)
          WHERE u.state = 'refused' ORDER BY u.nonce, u.hash, u.n DESC) b
        CROSS JOIN LATERAL (SELECT FROM pending_transactions y WHERE y.account = p_account AND y.nonce = b.nonce
            OFFSET 0) p
        CROSS JOIN LATERAL (SELECT x.ctid AS at FROM attempts x WHERE x.account = p_account AND x.nonce = b.nonce
            AND x.hash = b.hash ORDER BY x.number DESC LIMIT 1) x
    WHERE t.ctid = x.at;
    UPDATE pending_transactions p SET error = b.error, blocked_since = coalesce(p.blocked_since, v_now),
        epoch = p_epoch, updated_at = v_now
    FROM (SELECT DISTINCT ON (u.nonce, u.hash) u.nonce, u.hash, u.state, coalesce(u.error, 'refused') AS error
          FROM unnest(p_nonces, p_hashes, p_states, p_errors) WITH ORDINALITY u (nonce, hash, state, error, n)
          WHERE u.state <> 'tried' ORDER BY u.nonce, u.hash, u.n DESC) b
        CROSS JOIN LATERAL (SELECT x.ctid AS at FROM pending_transactions x WHERE x.account = p_account
            AND x.nonce = b.nonce AND x.hash = b.hash AND x.state <> 'finalized' OFFSET 0) x
    WHERE p.ctid = x.at AND b.state = 'refused';
    GET DIAGNOSTICS v_changed = ROW_COUNT;
    RETURN v_changed;
END
$$;


--
-- Name: refuse_change(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.refuse_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR003',
        MESSAGE = format('%s on txrelay.%s is refused: %s', TG_OP, TG_TABLE_NAME, TG_ARGV[0]), HINT = TG_ARGV[1];
END
$$;


--
-- Name: relay_obstacle(text, text, text, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.relay_obstacle(p_holder text, p_code text, p_detail text, p_lasted_ms bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    UPDATE members m SET obstacle = left(p_code, 40), obstacle_text = left(p_detail, 500),
        obstacle_since = clock_timestamp() - least(greatest(p_lasted_ms, 0), 86400000) * interval '1 ms'
    WHERE m.holder = p_holder AND (m.obstacle, m.obstacle_text) IS DISTINCT FROM (left(p_code, 40), left(p_detail, 500));
END
$$;


--
-- Name: relay_register(text, bytea, text, bytea, text, bigint, boolean, integer, boolean, text[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.relay_register(p_alias text, p_account_id bytea, p_scheme text, p_genesis bytea, p_address text, p_lock_key bigint, p_watch_only boolean DEFAULT false, p_era integer DEFAULT 4096, p_immortal boolean DEFAULT true, p_beside text[] DEFAULT '{}'::text[]) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $_$
DECLARE
    a record;
    v_bad text;
    v_subject int;
BEGIN
    v_bad := CASE
        WHEN p_alias IS NULL OR p_alias !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$' OR p_alias ~ '^0x' THEN 'p_alias'
        WHEN p_account_id IS NULL OR octet_length(p_account_id) NOT IN (20, 32) THEN 'p_account_id'
        WHEN p_scheme IS NULL OR p_scheme NOT IN ('sr25519', 'ed25519', 'ecdsa', 'ethereum') THEN 'p_scheme'
        WHEN p_genesis IS NULL OR octet_length(p_genesis) <> 32 THEN 'p_genesis'
        WHEN p_address IS NULL OR length(p_address) NOT BETWEEN 1 AND 128 THEN 'p_address'
        WHEN p_lock_key IS NULL THEN 'p_lock_key'
        WHEN p_era IS NULL OR p_era NOT BETWEEN 4 AND 4096 THEN 'p_era'
        WHEN p_immortal IS NULL THEN 'p_immortal'
        WHEN p_beside IS NULL THEN 'p_beside' END;
    IF v_bad IS NOT NULL THEN
        PERFORM bad_argument('relay_register', v_bad, CASE v_bad
            WHEN 'p_alias' THEN format('is "%s"; 1 to 64 letters, digits, ".", "_", "-", not beginning with 0x', p_alias)
            WHEN 'p_account_id' THEN format('has %s bytes; it must have 20 or 32', octet_length(p_account_id))
            WHEN 'p_scheme' THEN format('is "%s"; it must be sr25519, ed25519, ecdsa or ethereum', p_scheme)
            WHEN 'p_genesis' THEN format('has %s bytes; it must have 32', octet_length(p_genesis))
            WHEN 'p_address' THEN format('has %s characters; 1 to 128', length(p_address))
            WHEN 'p_era' THEN format('is %s; it must be 4 to 4096', coalesce(p_era::text, 'NULL'))
            ELSE 'is NULL' END, 'See docs/sql.md.');
    END IF;
    PERFORM repair_ids();
    SELECT t.*, l.lock_key INTO a FROM accounts t JOIN leadership l ON l.subject = t.account WHERE t.alias = p_alias;
    IF NOT FOUND THEN
        SELECT t.* INTO a FROM accounts t WHERE t.alias = ANY (p_beside) AND t.genesis <> p_genesis ORDER BY t.account LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'TR015',
                MESSAGE = format('account %s is new, and %s of the same relay is registered for the chain with genesis 0x%s, '
                    'not for the one with 0x%s', p_alias, a.alias, encode(a.genesis, 'hex'), encode(p_genesis, 'hex')),
                HINT = 'Correct chain.endpoints or chain.genesis in the configuration; a relay has the accounts of one chain.';
        END IF;
        BEGIN
            -- With the timeline: the first claim may be among the commits that a failover loses.
            INSERT INTO leadership (kind, lock_key, timeline) VALUES ('account', p_lock_key, (timelines())[1])
                ON CONFLICT DO NOTHING RETURNING subject INTO v_subject;
            IF FOUND THEN
                INSERT INTO accounts (account, alias, account_id, scheme, genesis, address, watch_only, era_longest,
                    era_immortal)
                    VALUES (v_subject, p_alias, p_account_id, p_scheme, p_genesis, p_address, p_watch_only, p_era, p_immortal);
                RETURN v_subject;
            END IF;
        EXCEPTION WHEN unique_violation THEN
            NULL; -- the account has another lock key or alias; the new subject is rolled back
        END;
        SELECT t.*, l.lock_key INTO a FROM leadership l LEFT JOIN accounts t ON t.account = l.subject
            WHERE t.alias = p_alias OR l.lock_key = p_lock_key OR (t.genesis = p_genesis AND t.account_id = p_account_id)
            ORDER BY (t.alias = p_alias) IS TRUE DESC, (t.genesis = p_genesis AND t.account_id = p_account_id) IS TRUE DESC
            LIMIT 1;
    END IF;
    IF a.account IS NULL THEN
        PERFORM bad_argument('relay_register', 'p_lock_key', format('is %s for %s, and %s has the same', p_lock_key,
            p_alias, (SELECT subject_name(l) FROM leadership l WHERE l.lock_key = p_lock_key)),
            'Two subjects with one lock could not have different leaders: choose another key.');
    ELSIF a.alias <> p_alias AND a.lock_key = p_lock_key AND a.account_id <> p_account_id THEN
        PERFORM bad_argument('relay_register', 'p_lock_key', format('is %s for %s, and %s has the same', p_lock_key,
            p_alias, a.alias), 'Two accounts with one lock could not have different leaders: choose another key.');
    ELSIF a.alias <> p_alias THEN
        PERFORM bad_argument('relay_register', 'p_alias', format('is "%s", and this account is registered as "%s"',
            p_alias, a.alias), 'Use the registered alias in the configuration of every relay.');
    ELSIF a.account_id = p_account_id AND a.genesis <> p_genesis THEN
        RAISE EXCEPTION USING ERRCODE = 'TR015',
            MESSAGE = format('account %s is registered for the chain with genesis 0x%s, not for the one with 0x%s', p_alias,
                encode(a.genesis, 'hex'), encode(p_genesis, 'hex')),
            HINT = 'Correct chain.endpoints or chain.genesis in the configuration, or use another alias for another chain.';
    ELSIF a.account_id <> p_account_id THEN
        PERFORM bad_argument('relay_register', 'p_alias', format('"%s" is registered for id 0x%s, not for 0x%s', p_alias,
            encode(a.account_id, 'hex'), encode(p_account_id, 'hex')),
            'Use another alias, or correct the key in the configuration.');
    ELSIF a.scheme <> p_scheme THEN
        PERFORM bad_argument('relay_register', 'p_scheme', format('is %s, and %s is registered with %s', p_scheme,
            p_alias, a.scheme), 'Correct the key in the configuration.');
    ELSIF a.lock_key <> p_lock_key THEN
        PERFORM bad_argument('relay_register', 'p_lock_key', format('is %s, and %s is registered with %s', p_lock_key,
            p_alias, a.lock_key), 'Relays with different lock keys would not see each other. Use the same everywhere; '
            'to change it, stop all relays and update txrelay.leadership as the owner.');
    ELSIF a.watch_only <> p_watch_only THEN
        PERFORM bad_argument('relay_register', 'p_watch_only', format('is %s, and %s is registered %s a key',
            p_watch_only, p_alias, CASE WHEN a.watch_only THEN 'without' ELSE 'with' END),
            'Give every relay the key, or none; to change it, stop all relays and update txrelay.accounts as the owner.');
    ELSIF a.address <> p_address THEN
        UPDATE accounts t SET address = p_address WHERE t.account = a.account; -- another prefix, the same key
    END IF;
    UPDATE accounts t SET era_longest = greatest(t.era_longest, p_era), era_immortal = t.era_immortal OR p_immortal
        WHERE t.account = a.account AND (t.era_longest < p_era OR p_immortal AND NOT t.era_immortal);
    RETURN a.account;
END
$_$;


--
-- Name: removal_text(bytea, bigint, bigint, txrelay.tx_outcome, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.removal_text(p_account_id bytea, p_nonce bigint, p_id bigint, p_outcome txrelay.tx_outcome, p_traceparent text) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    SELECT pg_catalog.concat('{"account_id":"0x', pg_catalog.encode(p_account_id, 'hex'), '","nonce":', p_nonce, ',"id":',
        COALESCE(p_id::text, 'null'),
        CASE WHEN p_outcome IS NOT NULL THEN pg_catalog.concat(',"outcome":"', p_outcome, '"') END,
        CASE WHEN p_traceparent IS NOT NULL THEN pg_catalog.concat(',"traceparent":"', p_traceparent, '"') END, '}')
$$;


--
-- Name: repair_ids(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.repair_ids() RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    v_behind bigint := ids_behind();
    v_subject bigint := (SELECT max(l.subject) FROM leadership l);
    v_numbers text := pg_get_serial_sequence('txrelay.leadership', 'subject');
BEGIN
    IF v_behind > 0 THEN
        PERFORM setval('txrelay.transaction_id', highest_id() + 1024);
    END IF;
    IF v_subject IS NOT NULL AND v_subject > coalesce(pg_sequence_last_value(v_numbers::regclass), 0) THEN
        PERFORM setval(v_numbers::regclass, v_subject);
    END IF;
    RETURN v_behind;
END
$$;


--
-- Name: request_times(integer, timestamp with time zone); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.request_times(p_account integer, p_now timestamp with time zone) RETURNS TABLE(asked boolean, has_rows boolean, next timestamp with time zone, next_outbox timestamp with time zone)
    LANGUAGE sql STABLE ROWS 1
    AS $$
    SELECT EXISTS (SELECT FROM txrelay.cancellations c WHERE c.account OPERATOR(pg_catalog.=) p_account)
            OR EXISTS (SELECT FROM txrelay.bumps b WHERE b.account OPERATOR(pg_catalog.=) p_account),
        EXISTS (SELECT FROM txrelay.outbox o WHERE o.account OPERATOR(pg_catalog.=) p_account
            AND o.not_before OPERATOR(pg_catalog.<=) p_now
            AND (o.deadline IS NULL OR o.deadline OPERATOR(pg_catalog.>) p_now)),
        LEAST(t.next, (SELECT pg_catalog.min(p.deadline) FROM txrelay.pending_transactions p
            WHERE p.account OPERATOR(pg_catalog.=) p_account AND p.deadline IS NOT NULL)), t.next
    FROM (SELECT LEAST((SELECT pg_catalog.min(o.deadline) FROM txrelay.outbox o
            WHERE o.account OPERATOR(pg_catalog.=) p_account AND o.deadline IS NOT NULL),
        (SELECT pg_catalog.min(o.not_before) FROM txrelay.outbox o WHERE o.account OPERATOR(pg_catalog.=) p_account
            AND o.not_before OPERATOR(pg_catalog.>) p_now)) AS next) t
$$;


--
-- Name: retractions_note(integer, bigint[], bytea[], text[], bytea[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.retractions_note(p_account integer, p_nonces bigint[], p_hashes bytea[], p_states text[], p_block_hashes bytea[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    INSERT INTO refusals AS r (account, nonce, number, error, count, first_at, last_at)
    SELECT p_account, b.nonce, b.attempt, format('block 0x%s was retracted', encode(b.block, 'hex')), 1, clock_timestamp(),
        clock_timestamp()
    FROM (SELECT DISTINCT u.nonce, p.attempt, CASE WHEN u.state = 'retracted' THEN u.block_hash ELSE p.block_hash END AS block
          FROM unnest(p_nonces, p_hashes, p_states, p_block_hashes) u (nonce, hash, state, block_hash)
              CROSS JOIN LATERAL (SELECT x.attempt, x.state, x.block_hash FROM pending_transactions x
                  WHERE x.account = p_account AND x.nonce = u.nonce AND x.hash = u.hash OFFSET 0) p
          WHERE CASE WHEN u.state = 'retracted' THEN p.state <> 'retracted' OR p.block_hash <> u.block_hash
                     ELSE u.state IN ('in_block', 'finalized', 'finality_timeout')
                         AND p.state IN ('in_block', 'finality_timeout') AND p.block_hash <> u.block_hash END) b
    ON CONFLICT (account, nonce, number, error) DO UPDATE SET count = r.count + 1, last_at = excluded.last_at;
END
$$;


--
-- Name: retry(bigint, timestamp with time zone, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.retry(id bigint, deadline timestamp with time zone DEFAULT NULL::timestamp with time zone, deadline_block bigint DEFAULT NULL::bigint) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    f finished_transactions;
    a record;
    v_new bigint;
    v_deadline timestamptz;
    v_block bigint;
BEGIN
    SELECT * INTO f FROM finished_transactions x WHERE x.id = retry.id ORDER BY x.id LIMIT 1;
    IF f.id IS NULL THEN
        PERFORM bad_argument('retry', 'id', CASE WHEN EXISTS (SELECT FROM status(retry.id))
                THEN format('is %s, which has not ended', retry.id)
                ELSE format('is %s; there is no such transaction', coalesce(retry.id::text, 'NULL')) END,
            'Pass the id of a transaction that ended without effect; a record is kept for the retention time only.');
    END IF;
    PERFORM retry_check(f);
    -- A concurrent retry of the same transaction waits here.
    INSERT INTO retries (id, asked_by, created_at) VALUES (f.id, session_user, steady_clock()) ON CONFLICT (id) DO NOTHING;
    IF NOT FOUND THEN
        RETURN (SELECT r.new_id FROM retries r WHERE r.id = f.id);
    END IF;
    SELECT x.alias, greatest(l.seen_block, c.seen_block) AS block INTO a FROM accounts x JOIN leadership l ON l.subject = x.account
        LEFT JOIN relay_leases c ON l.leased AND c.holder = l.holder WHERE x.account = f.account;
    v_deadline := nullif(coalesce(retry.deadline, (f.options ->> 'deadline')::timestamptz), 'infinity');
    v_block := nullif(coalesce(retry.deadline_block, (f.options ->> 'deadline_block')::bigint), 0);
    IF retry.deadline IS NULL AND v_deadline <= clock_timestamp() THEN
        PERFORM bad_argument('retry', 'deadline', format('of transaction %s was %s', f.id, v_deadline),
            'Pass deadline => a later time, or ''infinity'' for none.');
    ELSIF retry.deadline_block IS NULL AND v_block <= a.block THEN
        PERFORM bad_argument('retry', 'deadline_block', format('of transaction %s was %s, and block %s is final', f.id, v_block,
            a.block), 'Pass deadline_block => a later block, or 0 for none.');
    END IF;
    v_new := enqueue(a.alias, f.call, priority => coalesce((f.options ->> 'priority')::bigint, 0),
        not_before => CASE WHEN (f.options ->> 'not_before')::timestamptz > clock_timestamp()
            THEN (f.options ->> 'not_before')::timestamptz END,
        deadline => v_deadline, creator => f.creator, spec_version => (f.options ->> 'spec_version')::bigint,
        tip => (f.options ->> 'tip')::numeric, max_tip => (f.options ->> 'max_tip')::numeric, deadline_block => v_block,
        retries => coalesce((f.options ->> 'retries')::bigint, 0), traceparent => f.traceparent);
    UPDATE outbox o SET role = f.role WHERE o.id = v_new AND o.role IS DISTINCT FROM f.role;
    UPDATE retries r SET new_id = v_new WHERE r.id = f.id;
    RETURN v_new;
END
$$;


--
-- Name: finished_transactions; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.finished_transactions (
    id bigint,
    requeued bigint,
    account integer NOT NULL,
    nonce bigint,
    hash bytea,
    block_hash bytea,
    block_number bigint,
    extrinsic_index integer,
    state txrelay.tx_state,
    outcome txrelay.tx_outcome NOT NULL,
    error text,
    fee numeric(39,0),
    attempts integer DEFAULT 0 NOT NULL,
    epoch bigint,
    key text,
    creator text,
    call bytea,
    created_at timestamp with time zone NOT NULL,
    admitted_at timestamp with time zone,
    in_block_at timestamp with time zone,
    finished_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    role text,
    options jsonb,
    traceparent text
)
PARTITION BY RANGE (finished_at);

ALTER TABLE ONLY txrelay.finished_transactions REPLICA IDENTITY FULL;


--
-- Name: retry_check(txrelay.finished_transactions); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.retry_check(f txrelay.finished_transactions) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    IF NOT is_operator() AND NOT has_role(coalesce(f.role, f.creator)) THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('retry: transaction %s belongs to %s, and user %s is no member of it', f.id,
                coalesce(f.role, f.creator), session_user),
            HINT = 'Ask as a member of that role, or let an operator (a member of txrelay_relay) do it.';
    ELSIF f.outcome = 'ok' THEN
        PERFORM bad_argument('retry', 'id', format('is %s, which took effect', f.id), 'To send its call once more, enqueue it.');
    ELSIF f.outcome = 'unknown' THEN
        PERFORM bad_argument('retry', 'id', format('is %s, and nobody can tell whether it took effect', f.id),
            'Find out on the chain. If it did not, enqueue its call anew.');
    ELSIF f.options ? 'signed' THEN
        PERFORM bad_argument('retry', 'id', format('is %s, which was signed elsewhere', f.id),
            'Sign another extrinsic and pass it to enqueue_signed.');
    END IF;
END
$$;


--
-- Name: ring(integer); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.ring(p_account integer) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock_shared(9001, p_account) THEN
        PERFORM tell_outbox(p_account);
    END IF;
END
$$;


--
-- Name: row_free(bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.row_free(p_id bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    PERFORM FROM outbox x WHERE x.id = p_id FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        PERFORM FROM outbox_presigned x WHERE x.id = p_id ORDER BY x.id LIMIT 1 FOR UPDATE SKIP LOCKED;
    END IF;
    RETURN FOUND;
END
$$;


--
-- Name: row_holder(xid); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.row_holder(p_xmax xid) RETURNS TABLE(since timestamp with time zone, who text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 1
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RETURN QUERY SELECT coalesce(s.xact_start, p.prepared, clock_timestamp()),
        'blocked by ' || CASE WHEN l.pid IS NOT NULL THEN session_text(l.pid)
            ELSE format('the prepared transaction "%s" of user %s', left(p.gid, 80), p.owner) END
        || ', whose open transaction holds its row'
        FROM pg_locks l LEFT JOIN pg_stat_activity s ON s.pid = l.pid LEFT JOIN pg_prepared_xacts p ON p.transaction = p_xmax
        WHERE l.locktype = 'transactionid' AND l.transactionid = p_xmax AND l.granted
            AND l.pid IS DISTINCT FROM pg_backend_pid() LIMIT 1;
END
$$;


--
-- Name: running_xids(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.running_xids() RETURNS xid[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    PERFORM set_config('txrelay.held', '1', true);
    RETURN ARRAY(SELECT s::xid FROM pg_snapshot_xip(pg_current_snapshot()) s);
END
$$;


--
-- Name: session_text(integer); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.session_text(p_pid integer) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RETURN coalesce((SELECT format('backend %s (user %s%s%s)', p_pid, s.usename,
            coalesce(', application ' || nullif(left(regexp_replace(s.application_name, '[^ -~]', '?', 'g'), 60), ''), ''),
            coalesce(format(', %s for %s s', s.state, extract(epoch FROM clock_timestamp() - s.state_change)::bigint), ''))
        FROM pg_stat_activity s WHERE s.pid = p_pid), 'backend ' || p_pid, 'a prepared transaction');
END
$$;


--
-- Name: transaction_id; Type: SEQUENCE; Schema: txrelay; Owner: -
--

CREATE SEQUENCE txrelay.transaction_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: outbox_presigned; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.outbox_presigned (
    id bigint DEFAULT nextval('txrelay.transaction_id'::regclass) NOT NULL,
    account integer NOT NULL,
    extrinsic bytea NOT NULL,
    key text,
    creator text,
    nonce bigint,
    hash bytea,
    era_death bigint,
    wait_block bigint,
    waits text,
    waits_since timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    role text,
    traceparent text,
    CONSTRAINT outbox_presigned_creator_check CHECK ((octet_length(creator) <= 200)),
    CONSTRAINT outbox_presigned_extrinsic_check CHECK ((octet_length(extrinsic) > 0)),
    CONSTRAINT outbox_presigned_hash_check CHECK ((octet_length(hash) = 32)),
    CONSTRAINT outbox_presigned_key_check CHECK (((octet_length(key) >= 1) AND (octet_length(key) <= 200))),
    CONSTRAINT outbox_presigned_nonce_check CHECK ((nonce >= 0))
);


--
-- Name: signed_pend(txrelay.accounts, bigint, txrelay.outbox_presigned, bigint, bytea, integer, numeric, bigint, bigint, bigint, bigint, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.signed_pend(a txrelay.accounts, p_epoch bigint, s txrelay.outbox_presigned, p_nonce bigint, p_hash bytea, p_call_length integer, p_tip numeric, p_birth bigint, p_death bigint, p_spec_version bigint, p_transaction_version bigint, p_block bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_number int := (SELECT coalesce(max(t.number), 0) + 1 FROM attempts t WHERE t.account = a.account AND t.nonce = p_nonce);
BEGIN
    INSERT INTO pending_transactions (account, nonce, account_id, id, call, hash, attempt, attempts, state, epoch, key,
        creator, role, signed, created_at, traceparent)
        VALUES (a.account, p_nonce, a.account_id, s.id, substr(s.extrinsic, octet_length(s.extrinsic) - p_call_length + 1),
        p_hash, v_number, 1, 'signed', p_epoch, s.key, s.creator, s.role, true, s.created_at, s.traceparent);
    INSERT INTO attempts (account, nonce, number, id, hash, extrinsic, tip, era_birth, era_death, spec_version,
        transaction_version, block, epoch)
        VALUES (a.account, p_nonce, v_number, s.id, p_hash, s.extrinsic, p_tip, nullif(p_birth, -1), nullif(p_death, -1),
        p_spec_version, p_transaction_version, p_block, p_epoch);
END
$$;


--
-- Name: signer_of(bytea, integer, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.signer_of(p_extrinsic bytea, p_body integer, p_name text) RETURNS integer
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
DECLARE
    v_found int[];
    v_id bytea := substr(p_extrinsic, p_body + 3, 32);
    v_expected int := CASE WHEN p_name IS NOT NULL THEN account_of(p_name) END;
BEGIN
    SELECT array_agg(a.account ORDER BY a.account) INTO v_found FROM accounts a
        WHERE get_byte(p_extrinsic, p_body + 1) = 0 AND a.account_id = v_id
           OR a.account_id IN (substr(p_extrinsic, p_body + 2, 32), substr(p_extrinsic, p_body + 2, 20));
    IF v_expected = ANY (v_found) OR v_expected IS NULL AND cardinality(v_found) = 1 THEN
        RETURN coalesce(v_expected, v_found[1]);
    ELSIF v_expected IS NOT NULL THEN
        PERFORM bad_argument('enqueue_signed', 'account', format('is "%s", and the extrinsic is signed by 0x%s',
            left(p_name, 80), encode(v_id, 'hex')), 'Leave the account out, or name the one that signed.');
    ELSIF v_found IS NOT NULL THEN
        PERFORM bad_argument('enqueue_signed', 'extrinsic', 'is signed by a key that is registered for several chains: '
            || (SELECT string_agg(a.alias, ', ' ORDER BY a.alias) FROM accounts a WHERE a.account = ANY (v_found)),
            'Name the account: account => alias.');
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'TR010', MESSAGE = format('no such account: the extrinsic is signed by 0x%s',
            encode(v_id, 'hex')),
        HINT = 'List it in the relays'' configuration, with its address and without a key_file where they have no key.';
END
$$;


--
-- Name: size_fits(bytea); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.size_fits(p_call bytea) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT pg_catalog.octet_length(p_call) OPERATOR(pg_catalog.<@) pg_catalog.int4range(1, 1048576, '[]')
$$;


--
-- Name: ss58_bytes(text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.ss58_bytes(p_text text) RETURNS bytea
    LANGUAGE plpgsql IMMUTABLE STRICT SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $_$
DECLARE
    v_number numeric := 0;
    v_bytes bytea := decode(repeat('00', 40), 'hex');
    v_length int;
BEGIN
    IF p_text !~ '^[1-9A-HJ-NP-Za-km-z]{35,50}$' THEN
        RETURN NULL;
    END IF;
    FOR i IN 1..length(p_text) LOOP
        v_number := v_number * 58 + strpos('123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz', substr(p_text, i, 1)) - 1;
    END LOOP;
    FOR i IN REVERSE 39..0 LOOP
        v_bytes := set_byte(v_bytes, i, mod(v_number, 256)::int);
        v_number := div(v_number, 256);
    END LOOP;
    -- Base58 writes each leading zero byte as one leading 1.
    v_length := length(substring(p_text FROM '^1*')) + 40 - length(substring(encode(v_bytes, 'hex') FROM '^(?:00)*')) / 2;
    IF v_length = 35 AND get_byte(v_bytes, 5) < 64 THEN
        RETURN decode('00', 'hex') || substr(v_bytes, 6, 33);
    ELSIF v_length = 36 AND get_byte(v_bytes, 4) BETWEEN 64 AND 127 THEN
        RETURN substr(v_bytes, 5, 34);
    END IF;
    RETURN NULL;
END
$_$;


--
-- Name: start_sign(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.start_sign() RETURNS integer
    LANGUAGE sql STABLE
    AS $$
    SELECT pg_catalog.int4(-2 OPERATOR(pg_catalog.-) pg_catalog.int8(pg_catalog.floor(EXTRACT(epoch FROM
        pg_catalog.pg_postmaster_start_time()) OPERATOR(pg_catalog.*) 1000)) OPERATOR(pg_catalog.%) 2147483646)
$$;


--
-- Name: turn_waits(integer, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.turn_waits(p_account integer, p_id bigint) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_most CONSTANT int := 1000;
    v_priority CONSTANT int := (SELECT x.priority FROM outbox x WHERE x.id = p_id);
    v_before bigint;
    v_pending bigint;
BEGIN
    SELECT count(*) INTO v_before FROM ( -- each of the two is a range of outbox_order
        (SELECT FROM outbox o WHERE o.account = p_account AND o.not_before IS NULL AND o.priority > v_priority LIMIT v_most)
        UNION ALL
        (SELECT FROM outbox o WHERE o.account = p_account AND o.not_before IS NULL AND o.priority = v_priority AND o.id < p_id
            LIMIT v_most) LIMIT v_most) b;
    SELECT count(*) INTO v_pending FROM (SELECT FROM pending_transactions p WHERE p.account = p_account LIMIT v_most) n;
    RETURN format('turn: %s%s of its account come before it, and %s%s have a nonce and are not done; the leader takes the next ones '
        'as its window has room', v_before, CASE WHEN v_before = v_most THEN ' or more' END, v_pending,
        CASE WHEN v_pending = v_most THEN ' or more' END);
END
$$;


--
-- Name: attempts; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.attempts (
    account integer NOT NULL,
    nonce bigint NOT NULL,
    number integer NOT NULL,
    id bigint,
    hash bytea NOT NULL,
    extrinsic bytea NOT NULL,
    tip numeric(39,0) NOT NULL,
    era_birth bigint,
    era_death bigint,
    spec_version bigint NOT NULL,
    transaction_version bigint NOT NULL,
    block bigint NOT NULL,
    filler integer,
    epoch bigint NOT NULL,
    outcome txrelay.attempt_outcome DEFAULT 'live'::txrelay.attempt_outcome NOT NULL,
    state txrelay.tx_state,
    block_hash bytea,
    block_number bigint,
    reason text,
    error text,
    error_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT attempts_extrinsic_check CHECK ((octet_length(extrinsic) > 0)),
    CONSTRAINT attempts_filler_check CHECK ((filler > 0)),
    CONSTRAINT attempts_hash_check CHECK ((octet_length(hash) = 32)),
    CONSTRAINT attempts_tip_check CHECK ((tip >= (0)::numeric))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000', autovacuum_analyze_scale_factor='0.05', autovacuum_vacuum_cost_delay='0');


--
-- Name: outbox; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.outbox (
    id bigint DEFAULT nextval('txrelay.transaction_id'::regclass) NOT NULL,
    account integer NOT NULL,
    call bytea NOT NULL,
    key text,
    creator text,
    priority integer DEFAULT 0 NOT NULL,
    not_before timestamp with time zone,
    deadline timestamp with time zone,
    guard bigint,
    tip numeric(39,0),
    max_tip numeric(39,0),
    deadline_block bigint,
    retries integer DEFAULT 0 NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    role text,
    traceparent text
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_insert_scale_factor='0.2', autovacuum_analyze_scale_factor='0.05', autovacuum_vacuum_cost_delay='0');


--
-- Name: retries; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.retries (
    id bigint NOT NULL,
    new_id bigint,
    asked_by text NOT NULL,
    created_at timestamp with time zone NOT NULL
);


--
-- Name: transactions; Type: VIEW; Schema: txrelay; Owner: -
--

CREATE VIEW txrelay.transactions AS
 SELECT o.id,
    a.alias AS account,
    ('0x'::text || encode(a.account_id, 'hex'::text)) AS account_id,
    'outbox'::text AS stage,
    'queued'::text AS state,
    NULL::bigint AS nonce,
    NULL::text AS hash,
    NULL::text AS block_hash,
    NULL::bigint AS block_number,
    NULL::text AS outcome,
        CASE
            WHEN (o.xmax <> 0) THEN ( SELECT h.who
               FROM txrelay.row_holder(o.xmax) h(since, who))
            ELSE NULL::text
        END AS error,
    o.attempts,
    o.creator,
    o.key,
    o.created_at,
    o.created_at AS updated_at,
    (o.tip)::numeric AS tip,
    COALESCE(
        CASE
            WHEN (o.xmax <> 0) THEN ('row_held: '::text || ( SELECT h.who
               FROM txrelay.row_holder(o.xmax) h(since, who)))
            ELSE NULL::text
        END,
        CASE
            WHEN (o.not_before > clock_timestamp()) THEN ('not_before: it is not sent before '::text || o.not_before)
            ELSE COALESCE(txrelay.account_waits(o.account), txrelay.turn_waits(o.account, o.id))
        END) AS waits,
    NULL::numeric AS fee,
    ( SELECT r.id
           FROM txrelay.retries r
          WHERE (r.new_id = o.id)) AS retry_of,
    NULL::bigint AS retried_as,
    o.traceparent
   FROM (txrelay.outbox o
     JOIN txrelay.accounts a USING (account))
UNION ALL
 SELECT s.id,
    a.alias AS account,
    ('0x'::text || encode(a.account_id, 'hex'::text)) AS account_id,
    'outbox'::text AS stage,
    'queued'::text AS state,
    s.nonce,
    ('0x'::text || encode(s.hash, 'hex'::text)) AS hash,
    NULL::text AS block_hash,
    NULL::bigint AS block_number,
    NULL::text AS outcome,
    COALESCE(
        CASE
            WHEN (s.xmax <> 0) THEN ( SELECT h.who
               FROM txrelay.row_holder(s.xmax) h(since, who))
            ELSE NULL::text
        END, s.waits) AS error,
    0 AS attempts,
    s.creator,
    s.key,
    s.created_at,
    COALESCE(s.waits_since, s.created_at) AS updated_at,
    NULL::numeric AS tip,
    COALESCE(('presigned: '::text || s.waits), txrelay.account_waits(s.account), 'turn: it was signed elsewhere, and the leader compares its nonce with the account''s next'::text) AS waits,
    NULL::numeric AS fee,
    NULL::bigint AS retry_of,
    NULL::bigint AS retried_as,
    s.traceparent
   FROM (txrelay.outbox_presigned s
     JOIN txrelay.accounts a USING (account))
UNION ALL
 SELECT p.id,
    a.alias AS account,
    ('0x'::text || encode(a.account_id, 'hex'::text)) AS account_id,
    'pending'::text AS stage,
    (p.state)::text AS state,
    p.nonce,
    ('0x'::text || encode(p.hash, 'hex'::text)) AS hash,
    ('0x'::text || encode(p.block_hash, 'hex'::text)) AS block_hash,
    p.block_number,
    NULL::text AS outcome,
    p.error,
    p.attempts,
    p.creator,
    p.key,
    p.created_at,
    p.updated_at,
    ( SELECT t.tip
           FROM txrelay.attempts t
          WHERE ((t.account = p.account) AND (t.nonce = p.nonce) AND (t.number = p.attempt))) AS tip,
    COALESCE(txrelay.account_waits(p.account),
        CASE
            WHEN (p.blocked_since IS NOT NULL) THEN ('refused: '::text || p.error)
            ELSE NULL::text
        END,
        CASE p.state
            WHEN 'signed'::txrelay.tx_state THEN 'sent: no endpoint has said yet that its pool took it; lower nonces go first'::text
            WHEN 'future'::txrelay.tx_state THEN 'sent: a pool holds it, and waits for a lower nonce'::text
            WHEN 'in_block'::txrelay.tx_state THEN (('final: it is in block '::text || COALESCE((p.block_number)::text, ('0x'::text || encode(p.block_hash, 'hex'::text)), '(unknown)'::text)) || ', which is not final yet'::text)
            WHEN 'ready'::txrelay.tx_state THEN 'block: a pool holds it, and no block has taken it yet'::text
            WHEN 'broadcast'::txrelay.tx_state THEN 'block: a pool holds it, and no block has taken it yet'::text
            WHEN 'finalized'::txrelay.tx_state THEN 'final: a final block holds it, and its end is being stored'::text
            ELSE format('search: a node said %s; the leader asks where it is, and submits it again if it is nowhere'::text, p.state)
        END) AS waits,
    NULL::numeric AS fee,
    ( SELECT r.id
           FROM txrelay.retries r
          WHERE (r.new_id = p.id)) AS retry_of,
    NULL::bigint AS retried_as,
    p.traceparent
   FROM (txrelay.pending_transactions p
     JOIN txrelay.accounts a USING (account))
UNION ALL
 SELECT f.id,
    a.alias AS account,
    ('0x'::text || encode(a.account_id, 'hex'::text)) AS account_id,
    'finished'::text AS stage,
    (f.state)::text AS state,
    f.nonce,
    ('0x'::text || encode(f.hash, 'hex'::text)) AS hash,
    ('0x'::text || encode(f.block_hash, 'hex'::text)) AS block_hash,
    f.block_number,
    (f.outcome)::text AS outcome,
    f.error,
    f.attempts,
    f.creator,
    f.key,
    f.created_at,
    f.finished_at AS updated_at,
    ( SELECT t.tip
           FROM txrelay.attempts t
          WHERE ((t.account = f.account) AND (t.nonce = f.nonce) AND (t.hash = f.hash))
          ORDER BY t.number DESC
         LIMIT 1) AS tip,
    NULL::text AS waits,
    f.fee,
    ( SELECT r.id
           FROM txrelay.retries r
          WHERE (r.new_id = f.id)) AS retry_of,
    ( SELECT r.new_id
           FROM txrelay.retries r
          WHERE (r.id = f.id)) AS retried_as,
    f.traceparent
   FROM (txrelay.finished_transactions f
     JOIN txrelay.accounts a USING (account));


--
-- Name: status(bigint, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.status(id bigint DEFAULT NULL::bigint, hash text DEFAULT NULL::text) RETURNS SETOF txrelay.transactions
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $_$
DECLARE
    v_hash bytea;
    v_attempt attempts;
BEGIN
    IF status.hash IS NULL THEN
        RETURN QUERY SELECT * FROM transactions t WHERE t.id = status.id;
        RETURN;
    ELSIF status.id IS NOT NULL THEN
        PERFORM bad_argument('status', 'hash', 'is given, and so is id', 'Give one of the two.');
    ELSIF status.hash !~* '^0x[0-9a-f]{64}$' THEN
        PERFORM bad_argument('status', 'hash', format('is %s; it must be 0x and 64 hexadecimal digits',
            quote_literal(left(status.hash, 80))), 'It is the hash of an extrinsic. A transaction''s id is a number.');
    END IF;
    v_hash := decode(substr(status.hash, 3), 'hex');
    SELECT * INTO v_attempt FROM attempts t WHERE t.hash = v_hash ORDER BY t.created_at DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN QUERY SELECT * FROM transactions t
            WHERE t.id = (SELECT s.id FROM outbox_presigned s WHERE s.hash = v_hash LIMIT 1);
    ELSIF v_attempt.id IS NOT NULL THEN
        RETURN QUERY SELECT * FROM transactions t WHERE t.id = v_attempt.id;
    ELSE -- a filler
        RETURN QUERY SELECT * FROM transactions t WHERE t.id IS NULL AND t.nonce = v_attempt.nonce
            AND t.account = (SELECT a.alias FROM accounts a WHERE a.account = v_attempt.account);
    END IF;
END
$_$;


--
-- Name: steady_clock(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.steady_clock() RETURNS timestamp with time zone
    LANGUAGE sql
    AS $$
    SELECT GREATEST(pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) (SELECT h.clock_offset FROM txrelay.high_water h
            WHERE h.one),
        (SELECT h.reached FROM txrelay.high_water h WHERE h.one))
$$;


--
-- Name: store_keys(integer, text, bytea[], text[], bigint[]); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.store_keys(p_account integer, p_role text, p_calls bytea[], p_keys text[], p_ids bigint[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    v_stored bigint;
BEGIN
    INSERT INTO idempotency_keys (account, role, key, id, payload_sha256)
        SELECT p_account, p_role, u.key, u.id, sha256(u.call) FROM unnest(p_calls, p_keys, p_ids) u (call, key, id)
        WHERE u.key IS NOT NULL AND (SELECT x.id FROM idempotency_keys x WHERE x.account = p_account AND x.role = ''
            AND x.key = u.key ORDER BY x.account, x.role, x.key LIMIT 1) IS NULL
        ORDER BY u.key, u.id
        ON CONFLICT (account, role, key) DO NOTHING;
    GET DIAGNOSTICS v_stored = ROW_COUNT;
    RETURN v_stored;
END
$$;


--
-- Name: stored_role(text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.stored_role(p_creator text) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    SELECT NULLIF(COALESCE(NULLIF(pg_catalog.current_setting('role'), 'none'), session_user::text),
        COALESCE(p_creator, session_user::text))
$$;


--
-- Name: strict_turn(text, txrelay.accounts, bigint, timestamp with time zone); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.strict_turn(p_function text, a txrelay.accounts, p_priority bigint, p_not_before timestamp with time zone) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    IF p_priority <> 0 THEN
        PERFORM bad_argument(p_function, 'priority', format('is %s, and account %s keeps the order of commits (policy order: '
            'strict)', p_priority, a.alias), 'Leave it out, or use another account for what may overtake.');
    ELSIF p_not_before IS NOT NULL THEN
        PERFORM bad_argument(p_function, 'not_before', format('is %s, and account %s keeps the order of commits (policy order: '
            'strict)', p_not_before, a.alias), 'Leave it out: those behind it would overtake it, or wait as long.');
    END IF;
    IF NOT pg_has_role(session_user, 'txrelay_relay', 'MEMBER') OR pg_has_role(session_user, current_user, 'MEMBER') THEN
        PERFORM pg_advisory_xact_lock(9003, a.account);
    ELSIF NOT pg_try_advisory_xact_lock(9003, a.account) THEN
        RAISE lock_not_available;
    END IF;
EXCEPTION WHEN lock_not_available THEN
    RAISE EXCEPTION USING ERRCODE = 'lock_not_available', MESSAGE = format('%s: account %s keeps the order of commits, and '
        'another transaction that enqueued for it is still open', p_function, a.alias), HINT = 'Try again when it has ended.';
END
$$;


--
-- Name: subject_elsewhere(txrelay.leadership, bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.subject_elsewhere(l txrelay.leadership, p_epoch bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR001',
        MESSAGE = format('stale epoch %s for %s: it was claimed on timeline %s of the database, and this is timeline %s', p_epoch,
            subject_name(l), l.timeline, (timelines())[1]),
        HINT = 'A failover came between, and may have lost commits. Claim again, and reconcile.';
END
$$;


--
-- Name: subject_fence(integer, bigint, text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.subject_fence(p_subject integer, p_epoch bigint, p_lock text) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    l txrelay.leadership;
BEGIN
    IF p_lock = 'read' THEN
        SELECT * INTO l FROM txrelay.leadership t WHERE t.subject = p_subject;
    ELSE
        PERFORM txrelay.be_durable();
        SELECT * INTO l FROM txrelay.leadership t WHERE t.subject = p_subject FOR NO KEY UPDATE;
    END IF;
    IF l.subject IS NULL THEN
        PERFORM txrelay.subject_unknown(p_subject);
    ELSIF l.holder IS NULL OR p_epoch IS NULL OR l.epoch <> p_epoch THEN
        RAISE EXCEPTION USING ERRCODE = 'TR001',
            MESSAGE = format('stale epoch %s for %s: it is at epoch %s, held by %s', coalesce(p_epoch::text, 'NULL'),
                             txrelay.subject_name(l), l.epoch, coalesce(l.holder, 'nobody')),
            HINT = 'Another relay leads, or the claim was released. Stop all work for it.';
    ELSIF l.timeline <= 0 THEN -- no CASE: Postgres checks the right to all that an expression may call
        IF l.timeline <> txrelay.start_sign() THEN
            PERFORM txrelay.subject_elsewhere(l, p_epoch);
        END IF;
    ELSIF l.timeline <> txrelay.timeline() THEN
        PERFORM txrelay.subject_elsewhere(l, p_epoch);
    END IF;
END
$$;


--
-- Name: subject_name(txrelay.leadership); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.subject_name(l txrelay.leadership) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RETURN l.kind || ' ' || coalesce((SELECT a.alias FROM accounts a WHERE a.account = l.subject), l.subject::text);
END
$$;


--
-- Name: subject_unknown(integer); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.subject_unknown(p_subject integer) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR010',
        MESSAGE = format('no such account or other subject: number %s', coalesce(p_subject::text, 'NULL')),
        HINT = 'relay_register returns the number of an account.';
END
$$;


--
-- Name: tell_leader(txrelay.leadership); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.tell_leader(l txrelay.leadership) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    IF NOT queue_has_room() THEN
        RETURN;
    ELSIF l.kind = 'account' THEN
        PERFORM pg_notify('leader_change', json_build_object('account', a.account,
            'account_id', '0x' || encode(a.account_id, 'hex'), 'holder', l.holder, 'address', l.holder_address,
            'epoch', l.epoch)::text) FROM accounts a WHERE a.account = l.subject;
    ELSE
        PERFORM pg_notify('leader_change', json_build_object('kind', l.kind, 'subject', l.subject, 'holder', l.holder,
            'address', l.holder_address, 'epoch', l.epoch)::text);
    END IF;
END
$$;


--
-- Name: tell_outbox(integer); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.tell_outbox(p_account integer) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    IF current_setting('txrelay.notify', true) IS DISTINCT FROM 'off' AND queue_has_room() THEN
        PERFORM pg_notify('outbox_wake', p_account::text);
    END IF;
END
$$;


--
-- Name: tell_outbox_of(bigint); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.tell_outbox_of(p_id bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    PERFORM tell_outbox(o.account) FROM outbox o WHERE o.id = p_id;
END
$$;


--
-- Name: text_fits(text); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.text_fits(p_text text) RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    PERFORM convert_from(convert_to(p_text, 'SQL_ASCII'), 'UTF8');
    RETURN true;
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
    RETURN false;
END
$$;


--
-- Name: time_fits(timestamp with time zone); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.time_fits(p_time timestamp with time zone) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT p_time OPERATOR(pg_catalog.<) timestamptz '10000-01-01 00:00:00+00' AND p_time OPERATOR(pg_catalog.>)
        timestamptz '-infinity'
$$;


--
-- Name: time_of_span(text, text, interval, text, timestamp with time zone); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.time_of_span(p_function text, p_argument text, p_span interval, p_other text, p_time timestamp with time zone) RETURNS timestamp with time zone
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    IF p_span IS NULL THEN
        RETURN p_time;
    ELSIF p_time IS NOT NULL THEN
        PERFORM bad_argument(p_function, p_argument, format('is %s, and %s is given too', p_span, p_other), 'Give one of the two.');
    ELSIF p_span <= interval '0' OR p_span > interval '1000 years' THEN
        PERFORM bad_argument(p_function, p_argument, format('is %s; it must be above 0 and at most 1000 years', p_span),
            format('It counts from now. For a time: %s.', p_other));
    END IF;
    RETURN clock_timestamp() + p_span;
END
$$;


--
-- Name: timeline(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.timeline() RETURNS integer
    LANGUAGE sql
    AS $$
    SELECT pg_catalog.int4(('x' OPERATOR(pg_catalog.||) pg_catalog.left(pg_catalog.pg_walfile_name(
        pg_catalog.pg_current_wal_lsn()), 8))::pg_catalog.bit(32))
$$;


--
-- Name: timeline_known(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.timeline_known() RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'txrelay', 'pg_temp'
    AS $$
BEGIN
    RETURN cardinality(timelines()) = 2;
END
$$;


--
-- Name: timelines(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.timelines() RETURNS integer[]
    LANGUAGE plpgsql
    AS $$ -- without a search_path, as subject_fence
BEGIN
    RETURN ARRAY[txrelay.timeline(), txrelay.start_sign()];
EXCEPTION WHEN feature_not_supported OR insufficient_privilege OR undefined_function THEN
    RETURN ARRAY[txrelay.start_sign()];
END
$$;


--
-- Name: wait_briefly(); Type: FUNCTION; Schema: txrelay; Owner: -
--

CREATE FUNCTION txrelay.wait_briefly() RETURNS text
    LANGUAGE sql
    AS $$
    SELECT pg_catalog.set_config('lock_timeout', '50ms', true)
$$;


--
-- Name: high_water; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.high_water (
    one boolean DEFAULT true NOT NULL,
    highest_id bigint DEFAULT 0 NOT NULL,
    reached timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    clock_offset interval DEFAULT '00:00:00'::interval NOT NULL,
    CONSTRAINT high_water_clock_offset_check CHECK ((clock_offset >= '00:00:00'::interval)),
    CONSTRAINT high_water_one_check CHECK (one)
)
WITH (fillfactor='10', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='200', autovacuum_vacuum_cost_delay='0');


--
-- Name: obstacles; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.obstacles (
    account integer NOT NULL,
    epoch bigint NOT NULL,
    code text NOT NULL,
    detail text NOT NULL,
    since timestamp with time zone NOT NULL
);


--
-- Name: relay_leases; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.relay_leases (
    holder text NOT NULL,
    heartbeat timestamp with time zone NOT NULL,
    expiry_1 timestamp with time zone NOT NULL,
    expiry_2 timestamp with time zone NOT NULL,
    seen_block bigint,
    CONSTRAINT relay_leases_check CHECK ((expiry_2 >= expiry_1)),
    CONSTRAINT relay_leases_holder_check CHECK (((octet_length(holder) >= 1) AND (octet_length(holder) <= 500)))
)
WITH (fillfactor='10', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='200', autovacuum_vacuum_cost_delay='0');


--
-- Name: leader_obstacle; Type: VIEW; Schema: txrelay; Owner: -
--

CREATE VIEW txrelay.leader_obstacle AS
 SELECT o.account,
    o.code,
    o.detail,
    o.since
   FROM ((txrelay.obstacles o
     JOIN txrelay.leadership l ON (((l.subject = o.account) AND (l.epoch = o.epoch) AND (l.holder IS NOT NULL))))
     LEFT JOIN txrelay.relay_leases r ON ((l.leased AND (r.holder = l.holder))))
  WHERE ((COALESCE(r.expiry_2, l.expiry_2) > ( SELECT GREATEST((clock_timestamp() + h.clock_offset), h.reached) AS "greatest"
           FROM txrelay.high_water h
          WHERE h.one)) AND (o.code <> ALL (ARRAY['suspended'::text, 'lost_commits'::text])));


--
-- Name: lock_holders; Type: VIEW; Schema: txrelay; Owner: -
--

CREATE VIEW txrelay.lock_holders AS
 SELECT (((l.classid)::bigint << 32) | (l.objid)::bigint) AS lock_key,
    l.pid
   FROM (pg_locks l
     JOIN pg_database d ON (((d.oid = l.database) AND (d.datname = current_database()))))
  WHERE ((l.locktype = 'advisory'::text) AND (l.objsubid = 1) AND l.granted);


--
-- Name: refusals; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.refusals (
    account integer NOT NULL,
    nonce bigint NOT NULL,
    number integer NOT NULL,
    error text NOT NULL,
    count integer NOT NULL,
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL,
    CONSTRAINT refusals_error_check CHECK ((length(error) <= 500))
)
WITH (fillfactor='70');


--
-- Name: unled_accounts; Type: VIEW; Schema: txrelay; Owner: -
--

CREATE VIEW txrelay.unled_accounts AS
 SELECT a.account,
    COALESCE(r.expiry_2, l.expiry_2, a.created_at) AS since,
    ('no relay that has this account runs and reaches this database'::text || COALESCE(('; the last leader was '::text || l.holder), ''::text)) AS reason
   FROM ((txrelay.accounts a
     JOIN txrelay.leadership l ON ((l.subject = a.account)))
     LEFT JOIN txrelay.relay_leases r ON ((l.leased AND (r.holder = l.holder))))
  WHERE (COALESCE(r.expiry_2, l.expiry_2, a.created_at) < (( SELECT GREATEST((clock_timestamp() + h.clock_offset), h.reached) AS "greatest"
           FROM txrelay.high_water h
          WHERE h.one) - '00:00:05'::interval));


--
-- Name: blocked_accounts; Type: VIEW; Schema: txrelay; Owner: -
--

CREATE VIEW txrelay.blocked_accounts AS
 SELECT a.alias AS account,
    ('0x'::text || encode(a.account_id, 'hex'::text)) AS account_id,
    LEAST(a.paused_since, a.lost_since, p.blocked_since, s.waits_since, k.since, u.since, h.since, w.since) AS since,
    COALESCE(p.nonce, s.nonce) AS nonce,
        CASE
            WHEN (p.blocked_since IS NULL) THEN COALESCE(s.id, h.id, p.id)
            ELSE p.id
        END AS id,
    COALESCE((p.state)::text, 'queued'::text) AS state,
    COALESCE(a.paused_reason, k.reason, u.reason,
        CASE
            WHEN (a.reconcile_from IS NOT NULL) THEN ('commits may be lost, and what they sent may still be included: nothing is admitted, signed or ended before '::text ||
            CASE
                WHEN (a.lost_heard IS NULL) THEN 'it is known how far eras may reach'::text
                ELSE ( SELECT format('block %s is final and read; %s blocks are left'::text, (a.lost_heard + a.era_longest), GREATEST(((a.lost_heard + a.era_longest) - GREATEST(l.seen_block, r.seen_block, a.lost_heard)), (0)::bigint)) AS format
                   FROM (txrelay.leadership l
                     LEFT JOIN txrelay.relay_leases r ON ((l.leased AND (r.holder = l.holder))))
                  WHERE (l.subject = a.account))
            END)
            ELSE NULL::text
        END,
        CASE
            WHEN (w.code <> ALL (ARRAY['head'::text, 'gap'::text])) THEN w.detail
            ELSE NULL::text
        END,
        CASE
            WHEN ((p.blocked_since IS NULL) AND (s.id IS NULL)) THEN h.who
            ELSE NULL::text
        END, p.error,
        CASE
            WHEN (p.blocked_since IS NULL) THEN s.waits
            ELSE NULL::text
        END,
        CASE
            WHEN (p.blocked_since IS NOT NULL) THEN ( SELECT r.error
               FROM txrelay.refusals r
              WHERE ((r.account = a.account) AND (r.nonce = p.nonce))
              ORDER BY r.last_at DESC
             LIMIT 1)
            ELSE NULL::text
        END, w.detail) AS reason,
    a.paused,
    a.paused_by,
    a.suspension,
        CASE
            WHEN a.paused THEN COALESCE(a.suspension, 'paused'::text)
            WHEN (k.reason IS NOT NULL) THEN 'foreign_lock'::text
            WHEN (u.reason IS NOT NULL) THEN 'no_leader'::text
            WHEN (a.reconcile_from IS NOT NULL) THEN 'lost_commits'::text
            WHEN (w.code <> ALL (ARRAY['head'::text, 'gap'::text])) THEN w.code
            WHEN ((p.blocked_since IS NULL) AND (s.id IS NULL) AND (h.id IS NOT NULL)) THEN 'row_held'::text
            WHEN (p.blocked_since IS NOT NULL) THEN 'refused'::text
            WHEN (s.id IS NOT NULL) THEN 'presigned'::text
            ELSE w.code
        END AS code
   FROM ((((((txrelay.accounts a
     LEFT JOIN LATERAL ( SELECT x.nonce,
            x.id,
            x.state,
            x.error,
            x.blocked_since
           FROM txrelay.pending_transactions x
          WHERE (x.account = a.account)
          ORDER BY x.account, x.nonce
         LIMIT 1) p ON (true))
     LEFT JOIN LATERAL ( SELECT x.nonce,
            x.id,
            x.waits,
            x.waits_since
           FROM txrelay.outbox_presigned x
          WHERE ((x.account = a.account) AND (x.nonce > COALESCE(a.next_nonce, ('-1'::integer)::bigint)) AND (x.waits IS NOT NULL))
          ORDER BY x.account, x.nonce
         LIMIT 1) s ON (true))
     LEFT JOIN LATERAL ( SELECT COALESCE(r.expiry_2, l.expiry_2, a.created_at) AS since,
            ('nobody leads it: its lock is held by '::text || txrelay.session_text(x.pid)) AS reason
           FROM ((txrelay.leadership l
             JOIN txrelay.lock_holders x ON ((x.lock_key = l.lock_key)))
             LEFT JOIN txrelay.relay_leases r ON ((l.leased AND (r.holder = l.holder))))
          WHERE ((l.subject = a.account) AND (COALESCE(r.expiry_2, l.expiry_2, '-infinity'::timestamp with time zone) < ( SELECT GREATEST((clock_timestamp() + h_1.clock_offset), h_1.reached) AS "greatest"
                   FROM txrelay.high_water h_1
                  WHERE h_1.one)))
         LIMIT 1) k ON (true))
     LEFT JOIN LATERAL ( SELECT n.since,
            ('nobody leads it: '::text || n.reason) AS reason
           FROM txrelay.unled_accounts n
          WHERE ((n.account = a.account) AND ((p.nonce IS NOT NULL) OR (EXISTS ( SELECT
                   FROM txrelay.outbox o
                  WHERE (o.account = a.account))) OR (EXISTS ( SELECT
                   FROM txrelay.outbox_presigned o
                  WHERE (o.account = a.account)))))) u ON (true))
     LEFT JOIN LATERAL ( SELECT x.id,
            w_1.since,
            w_1.who
           FROM (( SELECT o.id,
                    o.xmax AS held
                   FROM txrelay.outbox o
                  WHERE ((o.account = a.account) AND (o.not_before IS NULL))
                  ORDER BY o.account, o.priority DESC, o.id
                 LIMIT 100) x
             CROSS JOIN LATERAL txrelay.row_holder(x.held) w_1(since, who))
          WHERE ((x.held <> 0) AND (w_1.since < (clock_timestamp() - '00:00:03'::interval)))
         LIMIT 1) h ON (true))
     LEFT JOIN txrelay.leader_obstacle w ON ((w.account = a.account)))
  WHERE (a.paused OR (a.reconcile_from IS NOT NULL) OR (p.blocked_since IS NOT NULL) OR (s.id IS NOT NULL) OR (k.reason IS NOT NULL) OR (u.reason IS NOT NULL) OR (h.id IS NOT NULL) OR (w.code IS NOT NULL));


--
-- Name: members; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.members (
    holder text NOT NULL,
    address text,
    serves bigint NOT NULL,
    pid integer,
    best bigint,
    heartbeat timestamp with time zone NOT NULL,
    obstacle text,
    obstacle_text text,
    obstacle_since timestamp with time zone,
    CONSTRAINT members_address_check CHECK ((octet_length(address) <= 300)),
    CONSTRAINT members_holder_check CHECK (((octet_length(holder) >= 1) AND (octet_length(holder) <= 500)))
);


--
-- Name: notify_queue; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.notify_queue (
    one boolean DEFAULT true NOT NULL,
    shut boolean DEFAULT false NOT NULL,
    since timestamp with time zone,
    CONSTRAINT notify_queue_one_check CHECK (one)
)
WITH (fillfactor='10');


--
-- Name: blocked_relays; Type: VIEW; Schema: txrelay; Owner: -
--

CREATE VIEW txrelay.blocked_relays AS
 SELECT m.holder AS relay,
    m.obstacle_since AS since,
    m.obstacle AS code,
    m.obstacle_text AS reason
   FROM (txrelay.members m
     JOIN txrelay.high_water h ON (h.one))
  WHERE ((m.obstacle <> ALL (ARRAY['queue'::text, 'clock'::text])) AND (m.pid IS DISTINCT FROM 0) AND (m.heartbeat > (GREATEST((clock_timestamp() + h.clock_offset), h.reached) - '00:00:10'::interval)))
UNION ALL
 SELECT NULL::text AS relay,
    q.since,
    'queue'::text AS code,
    'the server''s notification queue is more than a quarter full, because a session that listens stays in a transaction; nothing is notified, so leaders poll once a second and readers scan every ten seconds'::text AS reason
   FROM txrelay.notify_queue q
  WHERE q.shut
UNION ALL
 SELECT NULL::text AS relay,
    NULL::timestamp with time zone AS since,
    'clock'::text AS code,
    format('the server''s clock is %s s behind the time that it had reached; leases, ends and positions go on from that time, and come back to the clock by 0.1 s a second'::text, ceil(EXTRACT(epoch FROM (GREATEST((clock_timestamp() + h.clock_offset), h.reached) - clock_timestamp())))) AS reason
   FROM txrelay.high_water h
  WHERE (h.one AND (GREATEST((clock_timestamp() + h.clock_offset), h.reached) > (clock_timestamp() + '00:00:05'::interval)));


--
-- Name: bumps; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.bumps (
    id bigint NOT NULL,
    account integer NOT NULL,
    tip numeric(39,0) NOT NULL,
    asked_by text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


--
-- Name: cancellations; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.cancellations (
    id bigint NOT NULL,
    account integer NOT NULL,
    asked_by text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


--
-- Name: feed_batches; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.feed_batches (
    feed text NOT NULL,
    number bigint NOT NULL,
    publisher bytea NOT NULL,
    digest bytea NOT NULL,
    calls integer NOT NULL,
    first_id bigint,
    last_id bigint,
    taken_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


--
-- Name: feed_servers; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.feed_servers (
    holder text NOT NULL,
    address text NOT NULL,
    seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


--
-- Name: feeds; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.feeds (
    name text NOT NULL,
    account integer NOT NULL,
    last_number bigint DEFAULT '-1'::integer NOT NULL,
    publishers bytea[] NOT NULL,
    options jsonb DEFAULT '{}'::jsonb NOT NULL,
    paused_reason text,
    taken_at timestamp with time zone,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT feeds_last_number_check CHECK ((last_number >= '-1'::integer))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');


--
-- Name: feed_cursors; Type: VIEW; Schema: txrelay; Owner: -
--

CREATE VIEW txrelay.feed_cursors AS
 SELECT f.name,
    a.alias AS account,
    f.last_number,
    f.taken_at,
    w.waiting,
    w.oldest,
    ( SELECT array_agg(('0x'::text || encode(p.key, 'hex'::text)) ORDER BY p.n) AS array_agg
           FROM unnest(f.publishers) WITH ORDINALITY p(key, n)) AS publishers,
    f.options,
    f.paused_reason AS paused,
    s.address AS leader_address,
    f.created_by,
    f.created_at
   FROM ((((txrelay.feeds f
     JOIN txrelay.accounts a USING (account))
     JOIN txrelay.leadership l ON ((l.subject = f.account)))
     LEFT JOIN txrelay.feed_servers s ON ((s.holder = l.holder)))
     CROSS JOIN LATERAL ( SELECT count(*) AS waiting,
            min(o.created_at) AS oldest
           FROM txrelay.outbox o
          WHERE ((o.account = f.account) AND (o.role = ('feed/'::text || f.name)))) w);


--
-- Name: finished_transactions_2026m11; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.finished_transactions_2026m11 (
    id bigint,
    requeued bigint,
    account integer NOT NULL,
    nonce bigint,
    hash bytea,
    block_hash bytea,
    block_number bigint,
    extrinsic_index integer,
    state txrelay.tx_state,
    outcome txrelay.tx_outcome NOT NULL,
    error text,
    fee numeric(39,0),
    attempts integer DEFAULT 0 NOT NULL,
    epoch bigint,
    key text,
    creator text,
    call bytea,
    created_at timestamp with time zone NOT NULL,
    admitted_at timestamp with time zone,
    in_block_at timestamp with time zone,
    finished_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    role text,
    options jsonb,
    traceparent text
);

ALTER TABLE ONLY txrelay.finished_transactions_2026m11 REPLICA IDENTITY FULL;


--
-- Name: finished_transactions_2026m12; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.finished_transactions_2026m12 (
    id bigint,
    requeued bigint,
    account integer NOT NULL,
    nonce bigint,
    hash bytea,
    block_hash bytea,
    block_number bigint,
    extrinsic_index integer,
    state txrelay.tx_state,
    outcome txrelay.tx_outcome NOT NULL,
    error text,
    fee numeric(39,0),
    attempts integer DEFAULT 0 NOT NULL,
    epoch bigint,
    key text,
    creator text,
    call bytea,
    created_at timestamp with time zone NOT NULL,
    admitted_at timestamp with time zone,
    in_block_at timestamp with time zone,
    finished_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    role text,
    options jsonb,
    traceparent text
);

ALTER TABLE ONLY txrelay.finished_transactions_2026m12 REPLICA IDENTITY FULL;


--
-- Name: finished_transactions_2027m01; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.finished_transactions_2027m01 (
    id bigint,
    requeued bigint,
    account integer NOT NULL,
    nonce bigint,
    hash bytea,
    block_hash bytea,
    block_number bigint,
    extrinsic_index integer,
    state txrelay.tx_state,
    outcome txrelay.tx_outcome NOT NULL,
    error text,
    fee numeric(39,0),
    attempts integer DEFAULT 0 NOT NULL,
    epoch bigint,
    key text,
    creator text,
    call bytea,
    created_at timestamp with time zone NOT NULL,
    admitted_at timestamp with time zone,
    in_block_at timestamp with time zone,
    finished_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    role text,
    options jsonb,
    traceparent text
);

ALTER TABLE ONLY txrelay.finished_transactions_2027m01 REPLICA IDENTITY FULL;


--
-- Name: finished_transactions_default; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.finished_transactions_default (
    id bigint,
    requeued bigint,
    account integer NOT NULL,
    nonce bigint,
    hash bytea,
    block_hash bytea,
    block_number bigint,
    extrinsic_index integer,
    state txrelay.tx_state,
    outcome txrelay.tx_outcome NOT NULL,
    error text,
    fee numeric(39,0),
    attempts integer DEFAULT 0 NOT NULL,
    epoch bigint,
    key text,
    creator text,
    call bytea,
    created_at timestamp with time zone NOT NULL,
    admitted_at timestamp with time zone,
    in_block_at timestamp with time zone,
    finished_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    role text,
    options jsonb,
    traceparent text
);

ALTER TABLE ONLY txrelay.finished_transactions_default REPLICA IDENTITY FULL;


--
-- Name: follow_accounts; Type: VIEW; Schema: txrelay; Owner: -
--

CREATE VIEW txrelay.follow_accounts AS
 SELECT a.account,
    a.alias,
    a.account_id,
    a.address
   FROM txrelay.accounts a;


--
-- Name: follow_finished; Type: VIEW; Schema: txrelay; Owner: -
--

CREATE VIEW txrelay.follow_finished AS
 SELECT f.account,
    f.nonce,
    f.id,
    f.hash,
    f.state,
    f.block_hash,
    f.block_number,
    f.outcome,
    f.error,
    f.creator,
    f.finished_at
   FROM txrelay.finished_transactions f
  WHERE (f.requeued IS NULL);


--
-- Name: retention; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.retention (
    one boolean DEFAULT true NOT NULL,
    dropped_before timestamp with time zone NOT NULL,
    CONSTRAINT retention_one_check CHECK (one)
);


--
-- Name: follow_kept; Type: VIEW; Schema: txrelay; Owner: -
--

CREATE VIEW txrelay.follow_kept AS
 SELECT r.dropped_before
   FROM txrelay.retention r;


--
-- Name: follow_pending; Type: VIEW; Schema: txrelay; Owner: -
--

CREATE VIEW txrelay.follow_pending AS
 SELECT p.account,
    p.nonce,
    p.id,
    p.hash,
    p.state,
    p.block_hash,
    p.block_number,
    p.error,
    p.creator,
    p.updated_at
   FROM txrelay.pending_transactions p;


--
-- Name: follow_sources; Type: VIEW; Schema: txrelay; Owner: -
--

CREATE VIEW txrelay.follow_sources AS
 SELECT s.pid
   FROM pg_stat_get_activity(NULL::integer) s(datid, pid, usesysid, application_name, state, query, wait_event_type, wait_event, xact_start, query_start, backend_start, state_change, client_addr, client_hostname, client_port, backend_xid, backend_xmin, backend_type, ssl, sslversion, sslcipher, sslbits, ssl_client_dn, ssl_client_serial, ssl_issuer_dn, gss_auth, gss_princ, gss_enc, leader_pid, query_id)
  WHERE ((s.datid = ( SELECT d.oid
           FROM pg_database d
          WHERE (d.datname = current_database()))) AND pg_has_role(s.usesysid, 'txrelay_relay'::name, 'MEMBER'::text));


--
-- Name: idempotency_keys; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.idempotency_keys (
    account integer NOT NULL,
    key text NOT NULL,
    id bigint NOT NULL,
    payload_sha256 bytea NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    role text DEFAULT ''::text NOT NULL
);


--
-- Name: leaders; Type: VIEW; Schema: txrelay; Owner: -
--

CREATE VIEW txrelay.leaders AS
 SELECT a.alias,
    ('0x'::text || encode(a.account_id, 'hex'::text)) AS account_id,
    l.epoch,
    l.holder,
    l.holder_address AS address,
    l.lock_held,
    COALESCE(r.heartbeat, l.heartbeat) AS heartbeat,
    COALESCE(r.expiry_1, l.expiry_1) AS expiry_1,
    COALESCE(r.expiry_2, l.expiry_2) AS expiry_2,
    (GREATEST((clock_timestamp() + h.clock_offset), h.reached) - COALESCE(r.heartbeat, l.heartbeat)) AS heartbeat_age,
    a.next_nonce,
    a.paused,
    a.paused_by,
    a.paused_reason,
    a.account,
    a.address AS account_address,
    a.suspension,
    a.paused_since,
    a.reborn,
    a.life_since
   FROM (((txrelay.accounts a
     JOIN txrelay.leadership l ON ((l.subject = a.account)))
     LEFT JOIN txrelay.relay_leases r ON ((l.leased AND (r.holder = l.holder))))
     JOIN txrelay.high_water h ON (h.one));


--
-- Name: leadership_subject_seq; Type: SEQUENCE; Schema: txrelay; Owner: -
--

ALTER TABLE txrelay.leadership ALTER COLUMN subject ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME txrelay.leadership_subject_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: outbox_full; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.outbox_full (
    account integer NOT NULL,
    role text NOT NULL
);


--
-- Name: schema_functions; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.schema_functions (
    one boolean DEFAULT true NOT NULL,
    checksum text NOT NULL,
    digest text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT schema_functions_one_check CHECK (one)
);


--
-- Name: schema_version; Type: TABLE; Schema: txrelay; Owner: -
--

CREATE TABLE txrelay.schema_version (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


--
-- Name: finished_transactions_2026m11; Type: TABLE ATTACH; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.finished_transactions ATTACH PARTITION txrelay.finished_transactions_2026m11 FOR VALUES FROM ('2026-11-01 00:00:00+00') TO ('2026-12-01 00:00:00+00');


--
-- Name: finished_transactions_2026m12; Type: TABLE ATTACH; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.finished_transactions ATTACH PARTITION txrelay.finished_transactions_2026m12 FOR VALUES FROM ('2026-12-01 00:00:00+00') TO ('2027-01-01 00:00:00+00');


--
-- Name: finished_transactions_2027m01; Type: TABLE ATTACH; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.finished_transactions ATTACH PARTITION txrelay.finished_transactions_2027m01 FOR VALUES FROM ('2027-01-01 00:00:00+00') TO ('2027-02-01 00:00:00+00');


--
-- Name: finished_transactions_default; Type: TABLE ATTACH; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.finished_transactions ATTACH PARTITION txrelay.finished_transactions_default DEFAULT;


--
-- Data for Name: accounts; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.accounts (account, alias, account_id, scheme, genesis, address, watch_only, next_nonce, used_nonce, used_block, seen_block, reconcile_from, life_since, reborn, transaction_version, paused, paused_by, paused_reason, paused_since, suspension, policy, created_at, era_longest, era_immortal, lost_since, lost_heard, users, careful) FROM stdin;
\.


--
-- Data for Name: attempts; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.attempts (account, nonce, number, id, hash, extrinsic, tip, era_birth, era_death, spec_version, transaction_version, block, filler, epoch, outcome, state, block_hash, block_number, reason, error, error_at, created_at, ended_at) FROM stdin;
\.


--
-- Data for Name: bumps; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.bumps (id, account, tip, asked_by, created_at) FROM stdin;
\.


--
-- Data for Name: cancellations; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.cancellations (id, account, asked_by, created_at) FROM stdin;
\.


--
-- Data for Name: feed_batches; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.feed_batches (feed, number, publisher, digest, calls, first_id, last_id, taken_at) FROM stdin;
\.


--
-- Data for Name: feed_servers; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.feed_servers (holder, address, seen_at) FROM stdin;
\.


--
-- Data for Name: feeds; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.feeds (name, account, last_number, publishers, options, paused_reason, taken_at, created_by, created_at) FROM stdin;
\.


--
-- Data for Name: finished_transactions_2026m11; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.finished_transactions_2026m11 (id, requeued, account, nonce, hash, block_hash, block_number, extrinsic_index, state, outcome, error, fee, attempts, epoch, key, creator, call, created_at, admitted_at, in_block_at, finished_at, role, options, traceparent) FROM stdin;
\.


--
-- Data for Name: finished_transactions_2026m12; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.finished_transactions_2026m12 (id, requeued, account, nonce, hash, block_hash, block_number, extrinsic_index, state, outcome, error, fee, attempts, epoch, key, creator, call, created_at, admitted_at, in_block_at, finished_at, role, options, traceparent) FROM stdin;
\.


--
-- Data for Name: finished_transactions_2027m01; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.finished_transactions_2027m01 (id, requeued, account, nonce, hash, block_hash, block_number, extrinsic_index, state, outcome, error, fee, attempts, epoch, key, creator, call, created_at, admitted_at, in_block_at, finished_at, role, options, traceparent) FROM stdin;
\.


--
-- Data for Name: finished_transactions_default; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.finished_transactions_default (id, requeued, account, nonce, hash, block_hash, block_number, extrinsic_index, state, outcome, error, fee, attempts, epoch, key, creator, call, created_at, admitted_at, in_block_at, finished_at, role, options, traceparent) FROM stdin;
\.


--
-- Data for Name: high_water; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.high_water (one, highest_id, reached, clock_offset) FROM stdin;
t	0	1970-01-01 00:00:00+00	00:00:00
\.


--
-- Data for Name: idempotency_keys; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.idempotency_keys (account, key, id, payload_sha256, created_at, role) FROM stdin;
\.


--
-- Data for Name: leadership; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.leadership (subject, kind, lock_key, holder, holder_address, lock_held, lock_pid, epoch, expiry_1, expiry_2, heartbeat, leased, timeline, seen_block, created_at) FROM stdin;
\.


--
-- Data for Name: members; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.members (holder, address, serves, pid, best, heartbeat, obstacle, obstacle_text, obstacle_since) FROM stdin;
\.


--
-- Data for Name: notify_queue; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.notify_queue (one, shut, since) FROM stdin;
t	f	\N
\.


--
-- Data for Name: obstacles; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.obstacles (account, epoch, code, detail, since) FROM stdin;
\.


--
-- Data for Name: outbox; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.outbox (id, account, call, key, creator, priority, not_before, deadline, guard, tip, max_tip, deadline_block, retries, attempts, created_at, role, traceparent) FROM stdin;
\.


--
-- Data for Name: outbox_full; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.outbox_full (account, role) FROM stdin;
\.


--
-- Data for Name: outbox_presigned; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.outbox_presigned (id, account, extrinsic, key, creator, nonce, hash, era_death, wait_block, waits, waits_since, created_at, role, traceparent) FROM stdin;
\.


--
-- Data for Name: pending_transactions; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.pending_transactions (account, nonce, account_id, id, call, hash, attempt, attempts, state, unknown, block_hash, block_number, error, epoch, key, creator, priority, deadline, guard, tip, max_tip, deadline_block, retries, stop_outcome, stop_reason, signed, blocked_since, created_at, admitted_at, in_block_at, updated_at, role, traceparent) FROM stdin;
\.


--
-- Data for Name: refusals; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.refusals (account, nonce, number, error, count, first_at, last_at) FROM stdin;
\.


--
-- Data for Name: relay_leases; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.relay_leases (holder, heartbeat, expiry_1, expiry_2, seen_block) FROM stdin;
\.


--
-- Data for Name: retention; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.retention (one, dropped_before) FROM stdin;
\.


--
-- Data for Name: retries; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.retries (id, new_id, asked_by, created_at) FROM stdin;
\.


--
-- Data for Name: schema_functions; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.schema_functions (one, checksum, digest, applied_at) FROM stdin;
t	0d1ce08425526519155f5e7dc3199c0749d24be18c96fda04d53021e5a7b87dc	15:c38f8ffb5bcc94ca88c13bcb12e61a02d34ba4b4d884f4fa2457e4037b9c6c61	2026-11-29 20:24:47.894303+00
\.


--
-- Data for Name: schema_version; Type: TABLE DATA; Schema: txrelay; Owner: -
--

COPY txrelay.schema_version (version, name, checksum, applied_at) FROM stdin;
1	0001_init.sql	f3aa342b77578344b8b223ee55436d5aba84c01f15e5092d7fca44d4f95368af	2026-11-29 20:24:47.778114+00
2	0002_lost_commits.sql	c165fab5b930af3e10c178be568e191bbe96e044c48c7623b78a298c44f44c6c	2026-11-29 20:24:47.778634+00
3	0003_hashes.sql	2a2a4883e0b9daa9db9c263dc306fe5c5a3b4fbf48e25d3959774a1661b5a201	2026-11-29 20:24:47.780093+00
4	0004_applications.sql	9383a75a013a0fae4eda908507f009ba891076369bfa09a683588c93f3305605	2026-11-29 20:24:47.785114+00
5	0005_unknown.sql	abfbfef885f1cfc7f6570f85e073462ddb0259d2192599b2f8be307fa43e639b	2026-11-29 20:24:47.78521+00
6	0006_obstacles.sql	152cd1a53d22d7a017f6a222aaffe69859ca7d0e90a32ce600cdfcd4ba93b949	2026-11-29 20:24:47.787667+00
7	0007_moves.sql	b667036db2c284897b4256bd142b43fc138e4ab388a7b5b0e5a456de46f19b4f	2026-11-29 20:24:47.789948+00
8	0008_audit.sql	a8c6a7f9318f21a1bbd4c4ab564123cbedd0e1634a50392ab1852fa696f2a33f	2026-11-29 20:24:47.791382+00
9	0009_retries.sql	004cf1c0071bdd0414bd9eb842966b8e05436ecfa00153bbe33d3750cb6711d6	2026-11-29 20:24:47.794425+00
10	0010_relay_obstacles.sql	18e3463042589246f195e591edd32604ae5775ec75965797a891f05282adab9a	2026-11-29 20:24:47.794647+00
11	0011_traces.sql	715ab3e6809513ba4f71750c3444ebd7959ccd35d8f504d24eb4f1bb3c391116	2026-11-29 20:24:47.794967+00
12	0012_feeds.sql	e6e2b8acacbbc87e3d15f777f8dea674d49cd6636d0f7900e89f14a2f3152325	2026-11-29 20:24:47.802356+00
\.


--
-- Name: leadership_subject_seq; Type: SEQUENCE SET; Schema: txrelay; Owner: -
--

SELECT pg_catalog.setval('txrelay.leadership_subject_seq', 1, false);


--
-- Name: transaction_id; Type: SEQUENCE SET; Schema: txrelay; Owner: -
--

SELECT pg_catalog.setval('txrelay.transaction_id', 1, false);


--
-- Name: accounts accounts_account_id_genesis_key; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.accounts
    ADD CONSTRAINT accounts_account_id_genesis_key UNIQUE (account_id, genesis);


--
-- Name: accounts accounts_alias_key; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.accounts
    ADD CONSTRAINT accounts_alias_key UNIQUE (alias);


--
-- Name: accounts accounts_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (account);


--
-- Name: attempts attempts_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (account, nonce, number);


--
-- Name: bumps bumps_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.bumps
    ADD CONSTRAINT bumps_pkey PRIMARY KEY (id);


--
-- Name: cancellations cancellations_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.cancellations
    ADD CONSTRAINT cancellations_pkey PRIMARY KEY (id);


--
-- Name: feed_batches feed_batches_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.feed_batches
    ADD CONSTRAINT feed_batches_pkey PRIMARY KEY (feed, number);


--
-- Name: feed_servers feed_servers_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.feed_servers
    ADD CONSTRAINT feed_servers_pkey PRIMARY KEY (holder);


--
-- Name: feeds feeds_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.feeds
    ADD CONSTRAINT feeds_pkey PRIMARY KEY (name);


--
-- Name: high_water high_water_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.high_water
    ADD CONSTRAINT high_water_pkey PRIMARY KEY (one);


--
-- Name: idempotency_keys idempotency_keys_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (account, role, key);


--
-- Name: leadership leadership_lock_key_key; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.leadership
    ADD CONSTRAINT leadership_lock_key_key UNIQUE (lock_key);


--
-- Name: leadership leadership_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.leadership
    ADD CONSTRAINT leadership_pkey PRIMARY KEY (subject);


--
-- Name: members members_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.members
    ADD CONSTRAINT members_pkey PRIMARY KEY (holder);


--
-- Name: notify_queue notify_queue_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.notify_queue
    ADD CONSTRAINT notify_queue_pkey PRIMARY KEY (one);


--
-- Name: obstacles obstacles_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.obstacles
    ADD CONSTRAINT obstacles_pkey PRIMARY KEY (account);


--
-- Name: outbox_full outbox_full_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.outbox_full
    ADD CONSTRAINT outbox_full_pkey PRIMARY KEY (account, role);


--
-- Name: outbox outbox_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);


--
-- Name: outbox_presigned outbox_presigned_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.outbox_presigned
    ADD CONSTRAINT outbox_presigned_pkey PRIMARY KEY (id);


--
-- Name: pending_transactions pending_transactions_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.pending_transactions
    ADD CONSTRAINT pending_transactions_pkey PRIMARY KEY (account, nonce);


--
-- Name: refusals refusals_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.refusals
    ADD CONSTRAINT refusals_pkey PRIMARY KEY (account, nonce, number, error);


--
-- Name: relay_leases relay_leases_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.relay_leases
    ADD CONSTRAINT relay_leases_pkey PRIMARY KEY (holder);


--
-- Name: retention retention_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.retention
    ADD CONSTRAINT retention_pkey PRIMARY KEY (one);


--
-- Name: retries retries_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.retries
    ADD CONSTRAINT retries_pkey PRIMARY KEY (id);


--
-- Name: schema_functions schema_functions_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.schema_functions
    ADD CONSTRAINT schema_functions_pkey PRIMARY KEY (one);


--
-- Name: schema_version schema_version_pkey; Type: CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.schema_version
    ADD CONSTRAINT schema_version_pkey PRIMARY KEY (version);


--
-- Name: accounts_address; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX accounts_address ON txrelay.accounts USING btree (address);


--
-- Name: attempts_hash; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX attempts_hash ON txrelay.attempts USING hash (hash);


--
-- Name: bumps_account; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX bumps_account ON txrelay.bumps USING btree (account);


--
-- Name: cancellations_account; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX cancellations_account ON txrelay.cancellations USING btree (account);


--
-- Name: feeds_account; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX feeds_account ON txrelay.feeds USING btree (account);


--
-- Name: finished_transactions_nonce; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_nonce ON ONLY txrelay.finished_transactions USING btree (account, nonce);


--
-- Name: finished_transactions_2026m11_account_nonce_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_2026m11_account_nonce_idx ON txrelay.finished_transactions_2026m11 USING btree (account, nonce);


--
-- Name: finished_transactions_block; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_block ON ONLY txrelay.finished_transactions USING brin (block_number);


--
-- Name: finished_transactions_2026m11_block_number_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_2026m11_block_number_idx ON txrelay.finished_transactions_2026m11 USING brin (block_number);


--
-- Name: finished_transactions_time; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_time ON ONLY txrelay.finished_transactions USING brin (finished_at);


--
-- Name: finished_transactions_2026m11_finished_at_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_2026m11_finished_at_idx ON txrelay.finished_transactions_2026m11 USING brin (finished_at);


--
-- Name: finished_transactions_id; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_id ON ONLY txrelay.finished_transactions USING btree (id);


--
-- Name: finished_transactions_2026m11_id_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_2026m11_id_idx ON txrelay.finished_transactions_2026m11 USING btree (id);


--
-- Name: finished_transactions_requeued; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_requeued ON ONLY txrelay.finished_transactions USING btree (requeued) WHERE (requeued IS NOT NULL);


--
-- Name: finished_transactions_2026m11_requeued_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_2026m11_requeued_idx ON txrelay.finished_transactions_2026m11 USING btree (requeued) WHERE (requeued IS NOT NULL);


--
-- Name: finished_transactions_2026m12_account_nonce_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_2026m12_account_nonce_idx ON txrelay.finished_transactions_2026m12 USING btree (account, nonce);


--
-- Name: finished_transactions_2026m12_block_number_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_2026m12_block_number_idx ON txrelay.finished_transactions_2026m12 USING brin (block_number);


--
-- Name: finished_transactions_2026m12_finished_at_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_2026m12_finished_at_idx ON txrelay.finished_transactions_2026m12 USING brin (finished_at);


--
-- Name: finished_transactions_2026m12_id_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_2026m12_id_idx ON txrelay.finished_transactions_2026m12 USING btree (id);


--
-- Name: finished_transactions_2026m12_requeued_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_2026m12_requeued_idx ON txrelay.finished_transactions_2026m12 USING btree (requeued) WHERE (requeued IS NOT NULL);


--
-- Name: finished_transactions_2027m01_account_nonce_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_2027m01_account_nonce_idx ON txrelay.finished_transactions_2027m01 USING btree (account, nonce);


--
-- Name: finished_transactions_2027m01_block_number_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_2027m01_block_number_idx ON txrelay.finished_transactions_2027m01 USING brin (block_number);


--
-- Name: finished_transactions_2027m01_finished_at_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_2027m01_finished_at_idx ON txrelay.finished_transactions_2027m01 USING brin (finished_at);


--
-- Name: finished_transactions_2027m01_id_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_2027m01_id_idx ON txrelay.finished_transactions_2027m01 USING btree (id);


--
-- Name: finished_transactions_2027m01_requeued_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_2027m01_requeued_idx ON txrelay.finished_transactions_2027m01 USING btree (requeued) WHERE (requeued IS NOT NULL);


--
-- Name: finished_transactions_default_account_nonce_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_default_account_nonce_idx ON txrelay.finished_transactions_default USING btree (account, nonce);


--
-- Name: finished_transactions_default_block_number_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_default_block_number_idx ON txrelay.finished_transactions_default USING brin (block_number);


--
-- Name: finished_transactions_default_finished_at_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_default_finished_at_idx ON txrelay.finished_transactions_default USING brin (finished_at);


--
-- Name: finished_transactions_default_id_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_default_id_idx ON txrelay.finished_transactions_default USING btree (id);


--
-- Name: finished_transactions_default_requeued_idx; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX finished_transactions_default_requeued_idx ON txrelay.finished_transactions_default USING btree (requeued) WHERE (requeued IS NOT NULL);


--
-- Name: idempotency_keys_age; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX idempotency_keys_age ON txrelay.idempotency_keys USING btree (((account)::bigint), created_at);


--
-- Name: leadership_holder; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX leadership_holder ON txrelay.leadership USING btree (holder) WHERE (holder IS NOT NULL);


--
-- Name: outbox_deadline; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX outbox_deadline ON txrelay.outbox USING btree (account, deadline) WHERE (deadline IS NOT NULL);


--
-- Name: outbox_later; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX outbox_later ON txrelay.outbox USING btree (account, not_before) WHERE (not_before IS NOT NULL);


--
-- Name: outbox_order; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX outbox_order ON txrelay.outbox USING btree (account, priority DESC, id) WHERE (not_before IS NULL);


--
-- Name: outbox_presigned_hash; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX outbox_presigned_hash ON txrelay.outbox_presigned USING hash (hash);


--
-- Name: outbox_signed_nonce; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX outbox_signed_nonce ON txrelay.outbox_presigned USING btree (account, nonce, id);


--
-- Name: pending_transactions_deadline; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE INDEX pending_transactions_deadline ON txrelay.pending_transactions USING btree (account, deadline) WHERE (deadline IS NOT NULL);


--
-- Name: pending_transactions_id; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE UNIQUE INDEX pending_transactions_id ON txrelay.pending_transactions USING btree (id);


--
-- Name: retries_new_id; Type: INDEX; Schema: txrelay; Owner: -
--

CREATE UNIQUE INDEX retries_new_id ON txrelay.retries USING btree (new_id);


--
-- Name: finished_transactions_2026m11_account_nonce_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_nonce ATTACH PARTITION txrelay.finished_transactions_2026m11_account_nonce_idx;


--
-- Name: finished_transactions_2026m11_block_number_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_block ATTACH PARTITION txrelay.finished_transactions_2026m11_block_number_idx;


--
-- Name: finished_transactions_2026m11_finished_at_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_time ATTACH PARTITION txrelay.finished_transactions_2026m11_finished_at_idx;


--
-- Name: finished_transactions_2026m11_id_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_id ATTACH PARTITION txrelay.finished_transactions_2026m11_id_idx;


--
-- Name: finished_transactions_2026m11_requeued_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_requeued ATTACH PARTITION txrelay.finished_transactions_2026m11_requeued_idx;


--
-- Name: finished_transactions_2026m12_account_nonce_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_nonce ATTACH PARTITION txrelay.finished_transactions_2026m12_account_nonce_idx;


--
-- Name: finished_transactions_2026m12_block_number_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_block ATTACH PARTITION txrelay.finished_transactions_2026m12_block_number_idx;


--
-- Name: finished_transactions_2026m12_finished_at_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_time ATTACH PARTITION txrelay.finished_transactions_2026m12_finished_at_idx;


--
-- Name: finished_transactions_2026m12_id_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_id ATTACH PARTITION txrelay.finished_transactions_2026m12_id_idx;


--
-- Name: finished_transactions_2026m12_requeued_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_requeued ATTACH PARTITION txrelay.finished_transactions_2026m12_requeued_idx;


--
-- Name: finished_transactions_2027m01_account_nonce_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_nonce ATTACH PARTITION txrelay.finished_transactions_2027m01_account_nonce_idx;


--
-- Name: finished_transactions_2027m01_block_number_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_block ATTACH PARTITION txrelay.finished_transactions_2027m01_block_number_idx;


--
-- Name: finished_transactions_2027m01_finished_at_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_time ATTACH PARTITION txrelay.finished_transactions_2027m01_finished_at_idx;


--
-- Name: finished_transactions_2027m01_id_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_id ATTACH PARTITION txrelay.finished_transactions_2027m01_id_idx;


--
-- Name: finished_transactions_2027m01_requeued_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_requeued ATTACH PARTITION txrelay.finished_transactions_2027m01_requeued_idx;


--
-- Name: finished_transactions_default_account_nonce_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_nonce ATTACH PARTITION txrelay.finished_transactions_default_account_nonce_idx;


--
-- Name: finished_transactions_default_block_number_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_block ATTACH PARTITION txrelay.finished_transactions_default_block_number_idx;


--
-- Name: finished_transactions_default_finished_at_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_time ATTACH PARTITION txrelay.finished_transactions_default_finished_at_idx;


--
-- Name: finished_transactions_default_id_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_id ATTACH PARTITION txrelay.finished_transactions_default_id_idx;


--
-- Name: finished_transactions_default_requeued_idx; Type: INDEX ATTACH; Schema: txrelay; Owner: -
--

ALTER INDEX txrelay.finished_transactions_requeued ATTACH PARTITION txrelay.finished_transactions_default_requeued_idx;


--
-- Name: accounts accounts_check; Type: TRIGGER; Schema: txrelay; Owner: -
--

CREATE TRIGGER accounts_check BEFORE INSERT OR UPDATE OF alias, account_id, scheme, genesis, address, paused, paused_by, suspension ON txrelay.accounts FOR EACH ROW EXECUTE FUNCTION txrelay.accounts_check();


--
-- Name: accounts accounts_stay; Type: TRIGGER; Schema: txrelay; Owner: -
--

CREATE TRIGGER accounts_stay BEFORE DELETE ON txrelay.accounts FOR EACH ROW EXECUTE FUNCTION txrelay.refuse_change('accounts stay', 'Pause it instead: txrelay.account_pause.');


--
-- Name: finished_transactions finished_kept; Type: TRIGGER; Schema: txrelay; Owner: -
--

CREATE TRIGGER finished_kept BEFORE TRUNCATE ON txrelay.finished_transactions FOR EACH STATEMENT EXECUTE FUNCTION txrelay.refuse_change('a terminal record never changes', 'Old ones leave with their partition: txrelay.drop_partitions.');


--
-- Name: finished_transactions finished_stays; Type: TRIGGER; Schema: txrelay; Owner: -
--

CREATE TRIGGER finished_stays BEFORE DELETE OR UPDATE ON txrelay.finished_transactions FOR EACH ROW EXECUTE FUNCTION txrelay.refuse_change('a terminal record never changes', 'Old ones leave with their partition: txrelay.drop_partitions.');


--
-- Name: leadership leadership_epoch; Type: TRIGGER; Schema: txrelay; Owner: -
--

CREATE TRIGGER leadership_epoch BEFORE UPDATE OF epoch ON txrelay.leadership FOR EACH ROW WHEN (((new.epoch <> old.epoch) AND (new.epoch <> (old.epoch + 1)))) EXECUTE FUNCTION txrelay.refuse_change('an epoch goes up by one', 'Old leaders would pass the fence.');


--
-- Name: leadership leadership_stay; Type: TRIGGER; Schema: txrelay; Owner: -
--

CREATE TRIGGER leadership_stay BEFORE DELETE ON txrelay.leadership FOR EACH ROW EXECUTE FUNCTION txrelay.refuse_change('subjects stay', 'Release the claim: a subject without a leader is idle.');


--
-- Name: pending_transactions pending_final; Type: TRIGGER; Schema: txrelay; Owner: -
--

CREATE TRIGGER pending_final BEFORE UPDATE ON txrelay.pending_transactions FOR EACH ROW WHEN (((old.state = 'finalized'::txrelay.tx_state) AND ((new.state IS DISTINCT FROM old.state) OR (new.hash IS DISTINCT FROM old.hash) OR (new.block_hash IS DISTINCT FROM old.block_hash)))) EXECUTE FUNCTION txrelay.refuse_change('what is finalized stays', 'A relay that saw it change has a fault.');


--
-- Name: pending_transactions pending_new; Type: TRIGGER; Schema: txrelay; Owner: -
--

CREATE TRIGGER pending_new AFTER INSERT ON txrelay.pending_transactions REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION txrelay.pending_new();


--
-- Name: pending_transactions pending_update; Type: TRIGGER; Schema: txrelay; Owner: -
--

CREATE TRIGGER pending_update AFTER UPDATE ON txrelay.pending_transactions REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION txrelay.pending_update();


--
-- Name: accounts accounts_account_fkey; Type: FK CONSTRAINT; Schema: txrelay; Owner: -
--

ALTER TABLE ONLY txrelay.accounts
    ADD CONSTRAINT accounts_account_fkey FOREIGN KEY (account) REFERENCES txrelay.leadership(subject);


--
-- Name: SCHEMA txrelay; Type: ACL; Schema: -; Owner: -
--

GRANT USAGE ON SCHEMA txrelay TO txrelay_follower;
GRANT USAGE ON SCHEMA txrelay TO txrelay_app;
GRANT USAGE ON SCHEMA txrelay TO txrelay_relay;


--
-- Name: TABLE accounts; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.accounts TO txrelay_relay;


--
-- Name: FUNCTION account_facts(a txrelay.accounts); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.account_facts(a txrelay.accounts) FROM PUBLIC;


--
-- Name: FUNCTION account_fingerprint(a txrelay.accounts); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.account_fingerprint(a txrelay.accounts) FROM PUBLIC;


--
-- Name: FUNCTION account_grant(account text, role text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.account_grant(account text, role text) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.account_grant(account text, role text) TO txrelay_relay;


--
-- Name: FUNCTION account_of(p_name text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.account_of(p_name text) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.account_of(p_name text) TO txrelay_follower;
GRANT ALL ON FUNCTION txrelay.account_of(p_name text) TO txrelay_app;
GRANT ALL ON FUNCTION txrelay.account_of(p_name text) TO txrelay_relay;


--
-- Name: FUNCTION account_pause(p_account text, p_reason text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.account_pause(p_account text, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.account_pause(p_account text, p_reason text) TO txrelay_relay;


--
-- Name: FUNCTION account_policy(account text, policy jsonb); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.account_policy(account text, policy jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.account_policy(account text, policy jsonb) TO txrelay_relay;


--
-- Name: FUNCTION account_reconcile(p_account text, p_block bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.account_reconcile(p_account text, p_block bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.account_reconcile(p_account text, p_block bigint) TO txrelay_relay;


--
-- Name: FUNCTION account_resume(p_account text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.account_resume(p_account text) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.account_resume(p_account text) TO txrelay_relay;


--
-- Name: FUNCTION account_revoke(account text, role text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.account_revoke(account text, role text) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.account_revoke(account text, role text) TO txrelay_relay;


--
-- Name: FUNCTION account_rewind(p_account text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.account_rewind(p_account text) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.account_rewind(p_account text) TO txrelay_relay;


--
-- Name: FUNCTION account_unknown(p_name text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.account_unknown(p_name text) FROM PUBLIC;


--
-- Name: FUNCTION account_waits(p_account integer); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.account_waits(p_account integer) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.account_waits(p_account integer) TO txrelay_follower;
GRANT ALL ON FUNCTION txrelay.account_waits(p_account integer) TO txrelay_app;
GRANT ALL ON FUNCTION txrelay.account_waits(p_account integer) TO txrelay_relay;


--
-- Name: FUNCTION accounts_check(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.accounts_check() FROM PUBLIC;


--
-- Name: FUNCTION accounts_with_work(p_most bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.accounts_with_work(p_most bigint) FROM PUBLIC;


--
-- Name: FUNCTION acting_role(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.acting_role() FROM PUBLIC;


--
-- Name: FUNCTION attempts_note(p_account integer, p_nonces bigint[], p_hashes bytea[], p_states text[], p_block_hashes bytea[], p_block_numbers bigint[], p_errors text[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.attempts_note(p_account integer, p_nonces bigint[], p_hashes bytea[], p_states text[], p_block_hashes bytea[], p_block_numbers bigint[], p_errors text[]) FROM PUBLIC;


--
-- Name: FUNCTION bad_argument(p_function text, p_argument text, p_what text, p_hint text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.bad_argument(p_function text, p_argument text, p_what text, p_hint text) FROM PUBLIC;


--
-- Name: FUNCTION bad_size(p_function text, p_argument text, p_call bytea, p_hint text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.bad_size(p_function text, p_argument text, p_call bytea, p_hint text) FROM PUBLIC;


--
-- Name: FUNCTION batch_changed(p_function text, p_what text, p_found bigint, p_given integer); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.batch_changed(p_function text, p_what text, p_found bigint, p_given integer) FROM PUBLIC;


--
-- Name: FUNCTION batch_size(p_function text, VARIADIC p_lengths integer[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.batch_size(p_function text, VARIADIC p_lengths integer[]) FROM PUBLIC;


--
-- Name: FUNCTION be_durable(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.be_durable() FROM PUBLIC;


--
-- Name: FUNCTION bump(id bigint, tip numeric); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.bump(id bigint, tip numeric) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.bump(id bigint, tip numeric) TO txrelay_app;
GRANT ALL ON FUNCTION txrelay.bump(id bigint, tip numeric) TO txrelay_relay;


--
-- Name: FUNCTION bump_ask(p_id bigint, p_account integer, p_tip numeric); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.bump_ask(p_id bigint, p_account integer, p_tip numeric) FROM PUBLIC;


--
-- Name: FUNCTION bump_check(p_id bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.bump_check(p_id bigint) FROM PUBLIC;


--
-- Name: FUNCTION bumped_tip(p_tip numeric, p_current numeric, p_max_tip numeric, p_policy jsonb); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.bumped_tip(p_tip numeric, p_current numeric, p_max_tip numeric, p_policy jsonb) FROM PUBLIC;


--
-- Name: FUNCTION cancel(id bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.cancel(id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.cancel(id bigint) TO txrelay_app;
GRANT ALL ON FUNCTION txrelay.cancel(id bigint) TO txrelay_relay;


--
-- Name: FUNCTION cancel_check(p_id bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.cancel_check(p_id bigint) FROM PUBLIC;


--
-- Name: FUNCTION cancel_waits(p_id bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.cancel_waits(p_id bigint) FROM PUBLIC;


--
-- Name: FUNCTION change_text(p_account_id bytea, p_nonce bigint, p_hash bytea, p_state txrelay.tx_state, p_creator text, p_at timestamp with time zone, p_id bigint, p_block_hash bytea, p_traceparent text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.change_text(p_account_id bytea, p_nonce bigint, p_hash bytea, p_state txrelay.tx_state, p_creator text, p_at timestamp with time zone, p_id bigint, p_block_hash bytea, p_traceparent text) FROM PUBLIC;


--
-- Name: FUNCTION check_amount(p_function text, p_argument text, p_amount numeric, p_hint text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.check_amount(p_function text, p_argument text, p_amount numeric, p_hint text) FROM PUBLIC;


--
-- Name: FUNCTION check_batch(a txrelay.accounts, p_calls bytea[], p_priorities bigint[], p_not_before bigint[], p_deadlines bigint[], p_guards bigint[], p_tips numeric[], p_max_tips numeric[], p_deadline_blocks bigint[], p_retries bigint[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.check_batch(a txrelay.accounts, p_calls bytea[], p_priorities bigint[], p_not_before bigint[], p_deadlines bigint[], p_guards bigint[], p_tips numeric[], p_max_tips numeric[], p_deadline_blocks bigint[], p_retries bigint[]) FROM PUBLIC;


--
-- Name: FUNCTION check_bounds(p_function text, p_account text, p_priority bigint, p_tip numeric); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.check_bounds(p_function text, p_account text, p_priority bigint, p_tip numeric) FROM PUBLIC;


--
-- Name: FUNCTION check_elements(p_calls bytea[], p_keys text[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.check_elements(p_calls bytea[], p_keys text[]) FROM PUBLIC;


--
-- Name: FUNCTION check_eras(p_function text, a txrelay.accounts, p_births bigint[], p_deaths bigint[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.check_eras(p_function text, a txrelay.accounts, p_births bigint[], p_deaths bigint[]) FROM PUBLIC;


--
-- Name: FUNCTION check_expiry(p_function text, p_expiry_1_ms integer, p_expiry_2_ms integer); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.check_expiry(p_function text, p_expiry_1_ms integer, p_expiry_2_ms integer) FROM PUBLIC;


--
-- Name: FUNCTION check_feed_options(p_options jsonb); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.check_feed_options(p_options jsonb) FROM PUBLIC;


--
-- Name: FUNCTION check_full(p_function text, p_account integer); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.check_full(p_function text, p_account integer) FROM PUBLIC;


--
-- Name: FUNCTION check_hex_text(p_function text, p_argument text, p_call bytea); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.check_hex_text(p_function text, p_argument text, p_call bytea) FROM PUBLIC;


--
-- Name: FUNCTION check_nonces(p_function text, p_nonces bigint[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.check_nonces(p_function text, p_nonces bigint[]) FROM PUBLIC;


--
-- Name: FUNCTION check_options(p_function text, p_priority bigint, p_creator text, p_not_before timestamp with time zone, p_deadline timestamp with time zone, p_spec_version bigint, p_tip numeric, p_max_tip numeric, p_deadline_block bigint, p_retries bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.check_options(p_function text, p_priority bigint, p_creator text, p_not_before timestamp with time zone, p_deadline timestamp with time zone, p_spec_version bigint, p_tip numeric, p_max_tip numeric, p_deadline_block bigint, p_retries bigint) FROM PUBLIC;


--
-- Name: FUNCTION check_owner(p_function text, p_id bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.check_owner(p_function text, p_id bigint) FROM PUBLIC;


--
-- Name: FUNCTION check_publishers(p_function text, p_publishers bytea[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.check_publishers(p_function text, p_publishers bytea[]) FROM PUBLIC;


--
-- Name: FUNCTION check_text(p_function text, p_argument text, p_text text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.check_text(p_function text, p_argument text, p_text text) FROM PUBLIC;


--
-- Name: FUNCTION check_trace(p_function text, p_traceparent text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.check_trace(p_function text, p_traceparent text) FROM PUBLIC;


--
-- Name: FUNCTION check_use(p_function text, p_account integer); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.check_use(p_function text, p_account integer) FROM PUBLIC;


--
-- Name: TABLE leadership; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.leadership TO txrelay_relay;


--
-- Name: FUNCTION claim_times(l txrelay.leadership); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.claim_times(l txrelay.leadership) FROM PUBLIC;


--
-- Name: FUNCTION claims_fingerprint(p_now timestamp with time zone); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.claims_fingerprint(p_now timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION clock_behind(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.clock_behind() FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.clock_behind() TO txrelay_relay;


--
-- Name: FUNCTION clock_of(p_function text, p_now timestamp with time zone); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.clock_of(p_function text, p_now timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION counts(account text, most integer); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.counts(account text, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.counts(account text, most integer) TO txrelay_follower;
GRANT ALL ON FUNCTION txrelay.counts(account text, most integer) TO txrelay_app;
GRANT ALL ON FUNCTION txrelay.counts(account text, most integer) TO txrelay_relay;


--
-- Name: FUNCTION drop_partitions(p_age interval, p_now timestamp with time zone); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.drop_partitions(p_age interval, p_now timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.drop_partitions(p_age interval, p_now timestamp with time zone) TO txrelay_relay;


--
-- Name: FUNCTION enqueue(account text, call bytea, key text, priority bigint, not_before timestamp with time zone, deadline timestamp with time zone, creator text, spec_version bigint, tip numeric, max_tip numeric, deadline_block bigint, retries bigint, expires_in interval, delay interval, traceparent text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.enqueue(account text, call bytea, key text, priority bigint, not_before timestamp with time zone, deadline timestamp with time zone, creator text, spec_version bigint, tip numeric, max_tip numeric, deadline_block bigint, retries bigint, expires_in interval, delay interval, traceparent text) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.enqueue(account text, call bytea, key text, priority bigint, not_before timestamp with time zone, deadline timestamp with time zone, creator text, spec_version bigint, tip numeric, max_tip numeric, deadline_block bigint, retries bigint, expires_in interval, delay interval, traceparent text) TO txrelay_app;
GRANT ALL ON FUNCTION txrelay.enqueue(account text, call bytea, key text, priority bigint, not_before timestamp with time zone, deadline timestamp with time zone, creator text, spec_version bigint, tip numeric, max_tip numeric, deadline_block bigint, retries bigint, expires_in interval, delay interval, traceparent text) TO txrelay_relay;


--
-- Name: FUNCTION enqueue_many(account text, calls bytea[], keys text[], priority bigint, creator text, not_before timestamp with time zone, deadline timestamp with time zone, spec_version bigint, tip numeric, max_tip numeric, deadline_block bigint, retries bigint, expires_in interval, delay interval, traceparent text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.enqueue_many(account text, calls bytea[], keys text[], priority bigint, creator text, not_before timestamp with time zone, deadline timestamp with time zone, spec_version bigint, tip numeric, max_tip numeric, deadline_block bigint, retries bigint, expires_in interval, delay interval, traceparent text) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.enqueue_many(account text, calls bytea[], keys text[], priority bigint, creator text, not_before timestamp with time zone, deadline timestamp with time zone, spec_version bigint, tip numeric, max_tip numeric, deadline_block bigint, retries bigint, expires_in interval, delay interval, traceparent text) TO txrelay_app;
GRANT ALL ON FUNCTION txrelay.enqueue_many(account text, calls bytea[], keys text[], priority bigint, creator text, not_before timestamp with time zone, deadline timestamp with time zone, spec_version bigint, tip numeric, max_tip numeric, deadline_block bigint, retries bigint, expires_in interval, delay interval, traceparent text) TO txrelay_relay;


--
-- Name: FUNCTION enqueue_searching(account text, call bytea, key text, priority bigint, not_before timestamp with time zone, deadline timestamp with time zone, creator text, spec_version bigint, tip numeric, max_tip numeric, deadline_block bigint, retries bigint, traceparent text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.enqueue_searching(account text, call bytea, key text, priority bigint, not_before timestamp with time zone, deadline timestamp with time zone, creator text, spec_version bigint, tip numeric, max_tip numeric, deadline_block bigint, retries bigint, traceparent text) FROM PUBLIC;


--
-- Name: FUNCTION enqueue_signed(extrinsic bytea, key text, creator text, account text, traceparent text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.enqueue_signed(extrinsic bytea, key text, creator text, account text, traceparent text) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.enqueue_signed(extrinsic bytea, key text, creator text, account text, traceparent text) TO txrelay_app;
GRANT ALL ON FUNCTION txrelay.enqueue_signed(extrinsic bytea, key text, creator text, account text, traceparent text) TO txrelay_relay;


--
-- Name: FUNCTION ensure_partitions(p_ahead integer, p_now timestamp with time zone); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.ensure_partitions(p_ahead integer, p_now timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.ensure_partitions(p_ahead integer, p_now timestamp with time zone) TO txrelay_relay;


--
-- Name: FUNCTION extrinsic_body(p_extrinsic bytea); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.extrinsic_body(p_extrinsic bytea) FROM PUBLIC;


--
-- Name: FUNCTION feed_create(name text, account text, publishers bytea[], options jsonb, last bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.feed_create(name text, account text, publishers bytea[], options jsonb, last bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.feed_create(name text, account text, publishers bytea[], options jsonb, last bigint) TO txrelay_relay;


--
-- Name: FUNCTION feed_pause(name text, reason text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.feed_pause(name text, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.feed_pause(name text, reason text) TO txrelay_relay;


--
-- Name: FUNCTION feed_publishers(name text, publishers bytea[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.feed_publishers(name text, publishers bytea[]) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.feed_publishers(name text, publishers bytea[]) TO txrelay_relay;


--
-- Name: FUNCTION feed_remove(name text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.feed_remove(name text) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.feed_remove(name text) TO txrelay_relay;


--
-- Name: FUNCTION feed_resume(name text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.feed_resume(name text) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.feed_resume(name text) TO txrelay_relay;


--
-- Name: FUNCTION feed_unknown(p_name text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.feed_unknown(p_name text) FROM PUBLIC;


--
-- Name: FUNCTION fence(p_account integer, p_epoch bigint, p_lock text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.fence(p_account integer, p_epoch bigint, p_lock text) FROM PUBLIC;


--
-- Name: FUNCTION finished_options(p_priority integer, p_not_before timestamp with time zone, p_deadline timestamp with time zone, p_guard bigint, p_tip numeric, p_max_tip numeric, p_deadline_block bigint, p_retries integer, p_signed boolean); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.finished_options(p_priority integer, p_not_before timestamp with time zone, p_deadline timestamp with time zone, p_guard bigint, p_tip numeric, p_max_tip numeric, p_deadline_block bigint, p_retries integer, p_signed boolean) FROM PUBLIC;


--
-- Name: FUNCTION follow_position(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.follow_position() FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.follow_position() TO txrelay_follower;
GRANT ALL ON FUNCTION txrelay.follow_position() TO txrelay_app;
GRANT ALL ON FUNCTION txrelay.follow_position() TO txrelay_relay;


--
-- Name: FUNCTION has_role(p_role text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.has_role(p_role text) FROM PUBLIC;


--
-- Name: FUNCTION held_text(p_ids bigint[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.held_text(p_ids bigint[]) FROM PUBLIC;


--
-- Name: FUNCTION highest_id(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.highest_id() FROM PUBLIC;


--
-- Name: FUNCTION history(id bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.history(id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.history(id bigint) TO txrelay_follower;
GRANT ALL ON FUNCTION txrelay.history(id bigint) TO txrelay_app;
GRANT ALL ON FUNCTION txrelay.history(id bigint) TO txrelay_relay;


--
-- Name: FUNCTION id_given_again(p_function text, p_id bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.id_given_again(p_function text, p_id bigint) FROM PUBLIC;


--
-- Name: FUNCTION id_of_key(p_account integer, p_role text, p_key text, p_id bigint, p_sha256 bytea); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.id_of_key(p_account integer, p_role text, p_key text, p_id bigint, p_sha256 bytea) FROM PUBLIC;


--
-- Name: FUNCTION ids_behind(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.ids_behind() FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.ids_behind() TO txrelay_relay;


--
-- Name: FUNCTION ids_of_keys(p_account integer, p_role text, p_calls bytea[], p_keys text[], p_ids bigint[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.ids_of_keys(p_account integer, p_role text, p_calls bytea[], p_keys text[], p_ids bigint[]) FROM PUBLIC;


--
-- Name: FUNCTION is_operator(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.is_operator() FROM PUBLIC;


--
-- Name: FUNCTION key_reused(p_key text, p_id bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.key_reused(p_key text, p_id bigint) FROM PUBLIC;


--
-- Name: FUNCTION key_role(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.key_role() FROM PUBLIC;


--
-- Name: FUNCTION keyed_account(p_function text, p_name text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.keyed_account(p_function text, p_name text) FROM PUBLIC;


--
-- Name: FUNCTION last_pending(p_account integer); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.last_pending(p_account integer) FROM PUBLIC;


--
-- Name: FUNCTION leader_account(p_account integer, p_epoch bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_account(p_account integer, p_epoch bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_account(p_account integer, p_epoch bigint) TO txrelay_relay;


--
-- Name: FUNCTION leader_admit(p_account integer, p_epoch bigint, p_ids bigint[], p_nonces bigint[], p_hashes bytea[], p_extrinsics bytea[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_spec_version bigint, p_transaction_version bigint, p_block bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_admit(p_account integer, p_epoch bigint, p_ids bigint[], p_nonces bigint[], p_hashes bytea[], p_extrinsics bytea[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_spec_version bigint, p_transaction_version bigint, p_block bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_admit(p_account integer, p_epoch bigint, p_ids bigint[], p_nonces bigint[], p_hashes bytea[], p_extrinsics bytea[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_spec_version bigint, p_transaction_version bigint, p_block bigint) TO txrelay_relay;


--
-- Name: FUNCTION leader_admit_presigned(p_account integer, p_epoch bigint, p_ids bigint[], p_nonces bigint[], p_hashes bytea[], p_call_lengths integer[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_blocks bigint[], p_spec_version bigint, p_transaction_version bigint, p_next bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_admit_presigned(p_account integer, p_epoch bigint, p_ids bigint[], p_nonces bigint[], p_hashes bytea[], p_call_lengths integer[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_blocks bigint[], p_spec_version bigint, p_transaction_version bigint, p_next bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_admit_presigned(p_account integer, p_epoch bigint, p_ids bigint[], p_nonces bigint[], p_hashes bytea[], p_call_lengths integer[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_blocks bigint[], p_spec_version bigint, p_transaction_version bigint, p_next bigint) TO txrelay_relay;


--
-- Name: FUNCTION leader_adopt(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_extrinsics bytea[], p_call_lengths integer[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_times bigint[], p_spec_version bigint, p_transaction_version bigint, p_block bigint, p_done boolean, p_read bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_adopt(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_extrinsics bytea[], p_call_lengths integer[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_times bigint[], p_spec_version bigint, p_transaction_version bigint, p_block bigint, p_done boolean, p_read bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_adopt(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_extrinsics bytea[], p_call_lengths integer[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_times bigint[], p_spec_version bigint, p_transaction_version bigint, p_block bigint, p_done boolean, p_read bigint) TO txrelay_relay;


--
-- Name: FUNCTION leader_attempt(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_extrinsics bytea[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_spec_version bigint, p_transaction_version bigint, p_block bigint, p_reasons text[], p_fillers integer[], p_outcomes text[], p_stop_reasons text[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_attempt(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_extrinsics bytea[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_spec_version bigint, p_transaction_version bigint, p_block bigint, p_reasons text[], p_fillers integer[], p_outcomes text[], p_stop_reasons text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_attempt(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_extrinsics bytea[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_spec_version bigint, p_transaction_version bigint, p_block bigint, p_reasons text[], p_fillers integer[], p_outcomes text[], p_stop_reasons text[]) TO txrelay_relay;


--
-- Name: FUNCTION leader_claim(p_subject integer, p_holder text, p_address text, p_have_lock boolean, p_expiry_1_ms integer, p_expiry_2_ms integer, p_now timestamp with time zone); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_claim(p_subject integer, p_holder text, p_address text, p_have_lock boolean, p_expiry_1_ms integer, p_expiry_2_ms integer, p_now timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_claim(p_subject integer, p_holder text, p_address text, p_have_lock boolean, p_expiry_1_ms integer, p_expiry_2_ms integer, p_now timestamp with time zone) TO txrelay_relay;


--
-- Name: FUNCTION leader_cleanup(p_account integer, p_epoch bigint, p_age interval, p_limit integer); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_cleanup(p_account integer, p_epoch bigint, p_age interval, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_cleanup(p_account integer, p_epoch bigint, p_age interval, p_limit integer) TO txrelay_relay;


--
-- Name: FUNCTION leader_due(p_accounts integer[], p_epochs bigint[], p_fingerprints bigint[], p_ahead_ms integer); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_due(p_accounts integer[], p_epochs bigint[], p_fingerprints bigint[], p_ahead_ms integer) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_due(p_accounts integer[], p_epochs bigint[], p_fingerprints bigint[], p_ahead_ms integer) TO txrelay_relay;


--
-- Name: FUNCTION leader_evict(p_lock_key bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_evict(p_lock_key bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_evict(p_lock_key bigint) TO txrelay_relay;


--
-- Name: FUNCTION leader_feed_take(p_account integer, p_epoch bigint, p_feed text, p_number bigint, p_publisher bytea, p_digest bytea, p_calls bytea[], p_priorities bigint[], p_not_before bigint[], p_deadlines bigint[], p_guards bigint[], p_tips numeric[], p_max_tips numeric[], p_deadline_blocks bigint[], p_retries bigint[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_feed_take(p_account integer, p_epoch bigint, p_feed text, p_number bigint, p_publisher bytea, p_digest bytea, p_calls bytea[], p_priorities bigint[], p_not_before bigint[], p_deadlines bigint[], p_guards bigint[], p_tips numeric[], p_max_tips numeric[], p_deadline_blocks bigint[], p_retries bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_feed_take(p_account integer, p_epoch bigint, p_feed text, p_number bigint, p_publisher bytea, p_digest bytea, p_calls bytea[], p_priorities bigint[], p_not_before bigint[], p_deadlines bigint[], p_guards bigint[], p_tips numeric[], p_max_tips numeric[], p_deadline_blocks bigint[], p_retries bigint[]) TO txrelay_relay;


--
-- Name: FUNCTION leader_feeds(p_accounts integer[], p_holder text, p_address text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_feeds(p_accounts integer[], p_holder text, p_address text) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_feeds(p_accounts integer[], p_holder text, p_address text) TO txrelay_relay;


--
-- Name: FUNCTION leader_fill(p_account integer, p_epoch bigint, p_nonces bigint[], p_calls bytea[], p_hashes bytea[], p_extrinsics bytea[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_spec_version bigint, p_transaction_version bigint, p_block bigint, p_outcomes text[], p_errors text[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_fill(p_account integer, p_epoch bigint, p_nonces bigint[], p_calls bytea[], p_hashes bytea[], p_extrinsics bytea[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_spec_version bigint, p_transaction_version bigint, p_block bigint, p_outcomes text[], p_errors text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_fill(p_account integer, p_epoch bigint, p_nonces bigint[], p_calls bytea[], p_hashes bytea[], p_extrinsics bytea[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_spec_version bigint, p_transaction_version bigint, p_block bigint, p_outcomes text[], p_errors text[]) TO txrelay_relay;


--
-- Name: FUNCTION leader_finish(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_block_hashes bytea[], p_block_numbers bigint[], p_indexes integer[], p_outcomes text[], p_errors text[], p_fees numeric[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_finish(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_block_hashes bytea[], p_block_numbers bigint[], p_indexes integer[], p_outcomes text[], p_errors text[], p_fees numeric[]) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_finish(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_block_hashes bytea[], p_block_numbers bigint[], p_indexes integer[], p_outcomes text[], p_errors text[], p_fees numeric[]) TO txrelay_relay;


--
-- Name: FUNCTION leader_heard(p_account integer, p_epoch bigint, p_block bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_heard(p_account integer, p_epoch bigint, p_block bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_heard(p_account integer, p_epoch bigint, p_block bigint) TO txrelay_relay;


--
-- Name: FUNCTION leader_nonce(p_account integer, p_epoch bigint, p_next bigint, p_lower boolean, p_reborn boolean); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_nonce(p_account integer, p_epoch bigint, p_next bigint, p_lower boolean, p_reborn boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_nonce(p_account integer, p_epoch bigint, p_next bigint, p_lower boolean, p_reborn boolean) TO txrelay_relay;


--
-- Name: FUNCTION leader_note(p_account integer, p_epoch bigint, p_ids bigint[], p_nonces bigint[], p_hashes bytea[], p_deaths bigint[], p_wait_blocks bigint[], p_texts text[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_note(p_account integer, p_epoch bigint, p_ids bigint[], p_nonces bigint[], p_hashes bytea[], p_deaths bigint[], p_wait_blocks bigint[], p_texts text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_note(p_account integer, p_epoch bigint, p_ids bigint[], p_nonces bigint[], p_hashes bytea[], p_deaths bigint[], p_wait_blocks bigint[], p_texts text[]) TO txrelay_relay;


--
-- Name: FUNCTION leader_obstacles(p_accounts integer[], p_epochs bigint[], p_codes text[], p_details text[], p_lasted_ms bigint[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_obstacles(p_accounts integer[], p_epochs bigint[], p_codes text[], p_details text[], p_lasted_ms bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_obstacles(p_accounts integer[], p_epochs bigint[], p_codes text[], p_details text[], p_lasted_ms bigint[]) TO txrelay_relay;


--
-- Name: FUNCTION leader_outbox(p_account integer, p_epoch bigint, p_limit integer); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_outbox(p_account integer, p_epoch bigint, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_outbox(p_account integer, p_epoch bigint, p_limit integer) TO txrelay_relay;


--
-- Name: FUNCTION leader_pause(p_account integer, p_epoch bigint, p_suspension text, p_reason text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_pause(p_account integer, p_epoch bigint, p_suspension text, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_pause(p_account integer, p_epoch bigint, p_suspension text, p_reason text) TO txrelay_relay;


--
-- Name: FUNCTION leader_poll_requests(p_account integer, p_epoch bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_poll_requests(p_account integer, p_epoch bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_poll_requests(p_account integer, p_epoch bigint) TO txrelay_relay;


--
-- Name: FUNCTION leader_presigned(p_account integer, p_epoch bigint, p_limit integer, p_next bigint, p_block bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_presigned(p_account integer, p_epoch bigint, p_limit integer, p_next bigint, p_block bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_presigned(p_account integer, p_epoch bigint, p_limit integer, p_next bigint, p_block bigint) TO txrelay_relay;


--
-- Name: FUNCTION leader_record_status(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_states text[], p_block_hashes bytea[], p_block_numbers bigint[], p_errors text[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_record_status(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_states text[], p_block_hashes bytea[], p_block_numbers bigint[], p_errors text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_record_status(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_states text[], p_block_hashes bytea[], p_block_numbers bigint[], p_errors text[]) TO txrelay_relay;


--
-- Name: FUNCTION leader_reject(p_account integer, p_epoch bigint, p_ids bigint[], p_outcomes text[], p_errors text[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_reject(p_account integer, p_epoch bigint, p_ids bigint[], p_outcomes text[], p_errors text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_reject(p_account integer, p_epoch bigint, p_ids bigint[], p_outcomes text[], p_errors text[]) TO txrelay_relay;


--
-- Name: FUNCTION leader_release(p_subject integer, p_epoch bigint, p_holder text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_release(p_subject integer, p_epoch bigint, p_holder text) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_release(p_subject integer, p_epoch bigint, p_holder text) TO txrelay_relay;


--
-- Name: FUNCTION leader_renew(p_holder text, p_subjects integer[], p_epochs bigint[], p_expiry_1_ms integer, p_expiry_2_ms integer, p_now timestamp with time zone, p_block bigint, p_fingerprint text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_renew(p_holder text, p_subjects integer[], p_epochs bigint[], p_expiry_1_ms integer, p_expiry_2_ms integer, p_now timestamp with time zone, p_block bigint, p_fingerprint text) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_renew(p_holder text, p_subjects integer[], p_epochs bigint[], p_expiry_1_ms integer, p_expiry_2_ms integer, p_now timestamp with time zone, p_block bigint, p_fingerprint text) TO txrelay_relay;


--
-- Name: FUNCTION leader_requeue(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_block_hashes bytea[], p_block_numbers bigint[], p_indexes integer[], p_outcomes text[], p_errors text[], p_fees numeric[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_requeue(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_block_hashes bytea[], p_block_numbers bigint[], p_indexes integer[], p_outcomes text[], p_errors text[], p_fees numeric[]) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_requeue(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_block_hashes bytea[], p_block_numbers bigint[], p_indexes integer[], p_outcomes text[], p_errors text[], p_fees numeric[]) TO txrelay_relay;


--
-- Name: FUNCTION leader_scan(p_subjects integer[], p_epochs bigint[], p_now timestamp with time zone, p_fingerprint text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_scan(p_subjects integer[], p_epochs bigint[], p_now timestamp with time zone, p_fingerprint text) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_scan(p_subjects integer[], p_epochs bigint[], p_now timestamp with time zone, p_fingerprint text) TO txrelay_relay;


--
-- Name: FUNCTION leader_snapshot(p_account integer, p_epoch bigint, p_after_nonce bigint, p_limit integer); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.leader_snapshot(p_account integer, p_epoch bigint, p_after_nonce bigint, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.leader_snapshot(p_account integer, p_epoch bigint, p_after_nonce bigint, p_limit integer) TO txrelay_relay;


--
-- Name: FUNCTION left_ms(p_time timestamp with time zone); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.left_ms(p_time timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION lock_holder(p_lock_key bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.lock_holder(p_lock_key bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.lock_holder(p_lock_key bigint) TO txrelay_relay;


--
-- Name: FUNCTION member_heartbeat(p_holder text, p_address text, p_serves bigint, p_ttl_ms integer, p_session boolean, p_leave boolean, p_best bigint, p_now timestamp with time zone); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.member_heartbeat(p_holder text, p_address text, p_serves bigint, p_ttl_ms integer, p_session boolean, p_leave boolean, p_best bigint, p_now timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.member_heartbeat(p_holder text, p_address text, p_serves bigint, p_ttl_ms integer, p_session boolean, p_leave boolean, p_best bigint, p_now timestamp with time zone) TO txrelay_relay;


--
-- Name: FUNCTION mid_submission(p_subject integer); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.mid_submission(p_subject integer) FROM PUBLIC;


--
-- Name: FUNCTION must_be_free(p_function text, p_ids bigint[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.must_be_free(p_function text, p_ids bigint[]) FROM PUBLIC;


--
-- Name: FUNCTION new_id(p_function text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.new_id(p_function text) FROM PUBLIC;


--
-- Name: FUNCTION no_relay_has(p_lock_key bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.no_relay_has(p_lock_key bigint) FROM PUBLIC;


--
-- Name: FUNCTION nonces_end(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_block_hashes bytea[], p_block_numbers bigint[], p_indexes integer[], p_outcomes text[], p_errors text[], p_fees numeric[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.nonces_end(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_block_hashes bytea[], p_block_numbers bigint[], p_indexes integer[], p_outcomes text[], p_errors text[], p_fees numeric[]) FROM PUBLIC;


--
-- Name: FUNCTION nonces_used(p_account integer, p_nonces bigint[], p_block_hashes bytea[], p_block_numbers bigint[], p_outcomes text[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.nonces_used(p_account integer, p_nonces bigint[], p_block_hashes bytea[], p_block_numbers bigint[], p_outcomes text[]) FROM PUBLIC;


--
-- Name: FUNCTION not_reconciled(p_function text, a txrelay.accounts); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.not_reconciled(p_function text, a txrelay.accounts) FROM PUBLIC;


--
-- Name: FUNCTION note_careful(p_account integer); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.note_careful(p_account integer) FROM PUBLIC;


--
-- Name: FUNCTION note_full(p_account integer); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.note_full(p_account integer) FROM PUBLIC;


--
-- Name: FUNCTION note_high_water(p_clock timestamp with time zone); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.note_high_water(p_clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION order_error(p_message text, p_hint text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.order_error(p_message text, p_hint text) FROM PUBLIC;


--
-- Name: FUNCTION other_version(p_function text, a txrelay.accounts, p_version bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.other_version(p_function text, a txrelay.accounts, p_version bigint) FROM PUBLIC;


--
-- Name: FUNCTION outbox_end(p_account integer, p_ids bigint[], p_outcomes txrelay.tx_outcome[], p_errors text[], p_epoch bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.outbox_end(p_account integer, p_ids bigint[], p_outcomes txrelay.tx_outcome[], p_errors text[], p_epoch bigint) FROM PUBLIC;


--
-- Name: FUNCTION outbox_most(p_policy jsonb); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.outbox_most(p_policy jsonb) FROM PUBLIC;


--
-- Name: FUNCTION outbox_over(p_account integer, p_role text, p_most bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.outbox_over(p_account integer, p_role text, p_most bigint) FROM PUBLIC;


--
-- Name: FUNCTION pending_new(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.pending_new() FROM PUBLIC;


--
-- Name: TABLE pending_transactions; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.pending_transactions TO txrelay_relay;


--
-- Name: FUNCTION pending_of(p_id bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.pending_of(p_id bigint) FROM PUBLIC;


--
-- Name: FUNCTION pending_update(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.pending_update() FROM PUBLIC;


--
-- Name: FUNCTION policy_value(p_key text, p_value jsonb); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.policy_value(p_key text, p_value jsonb) FROM PUBLIC;


--
-- Name: FUNCTION queue_has_room(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.queue_has_room() FROM PUBLIC;


--
-- Name: FUNCTION queue_measure(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.queue_measure() FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.queue_measure() TO txrelay_relay;


--
-- Name: FUNCTION refusals_note(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_states text[], p_errors text[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.refusals_note(p_account integer, p_epoch bigint, p_nonces bigint[], p_hashes bytea[], p_states text[], p_errors text[]) FROM PUBLIC;


--
-- Name: FUNCTION refuse_change(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.refuse_change() FROM PUBLIC;


--
-- Name: FUNCTION relay_obstacle(p_holder text, p_code text, p_detail text, p_lasted_ms bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.relay_obstacle(p_holder text, p_code text, p_detail text, p_lasted_ms bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.relay_obstacle(p_holder text, p_code text, p_detail text, p_lasted_ms bigint) TO txrelay_relay;


--
-- Name: FUNCTION relay_register(p_alias text, p_account_id bytea, p_scheme text, p_genesis bytea, p_address text, p_lock_key bigint, p_watch_only boolean, p_era integer, p_immortal boolean, p_beside text[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.relay_register(p_alias text, p_account_id bytea, p_scheme text, p_genesis bytea, p_address text, p_lock_key bigint, p_watch_only boolean, p_era integer, p_immortal boolean, p_beside text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.relay_register(p_alias text, p_account_id bytea, p_scheme text, p_genesis bytea, p_address text, p_lock_key bigint, p_watch_only boolean, p_era integer, p_immortal boolean, p_beside text[]) TO txrelay_relay;


--
-- Name: FUNCTION removal_text(p_account_id bytea, p_nonce bigint, p_id bigint, p_outcome txrelay.tx_outcome, p_traceparent text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.removal_text(p_account_id bytea, p_nonce bigint, p_id bigint, p_outcome txrelay.tx_outcome, p_traceparent text) FROM PUBLIC;


--
-- Name: FUNCTION repair_ids(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.repair_ids() FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.repair_ids() TO txrelay_relay;


--
-- Name: FUNCTION request_times(p_account integer, p_now timestamp with time zone); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.request_times(p_account integer, p_now timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION retractions_note(p_account integer, p_nonces bigint[], p_hashes bytea[], p_states text[], p_block_hashes bytea[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.retractions_note(p_account integer, p_nonces bigint[], p_hashes bytea[], p_states text[], p_block_hashes bytea[]) FROM PUBLIC;


--
-- Name: FUNCTION retry(id bigint, deadline timestamp with time zone, deadline_block bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.retry(id bigint, deadline timestamp with time zone, deadline_block bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.retry(id bigint, deadline timestamp with time zone, deadline_block bigint) TO txrelay_app;
GRANT ALL ON FUNCTION txrelay.retry(id bigint, deadline timestamp with time zone, deadline_block bigint) TO txrelay_relay;


--
-- Name: TABLE finished_transactions; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.finished_transactions TO txrelay_relay;


--
-- Name: FUNCTION retry_check(f txrelay.finished_transactions); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.retry_check(f txrelay.finished_transactions) FROM PUBLIC;


--
-- Name: FUNCTION ring(p_account integer); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.ring(p_account integer) FROM PUBLIC;


--
-- Name: FUNCTION row_free(p_id bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.row_free(p_id bigint) FROM PUBLIC;


--
-- Name: FUNCTION row_holder(p_xmax xid); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.row_holder(p_xmax xid) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.row_holder(p_xmax xid) TO txrelay_follower;
GRANT ALL ON FUNCTION txrelay.row_holder(p_xmax xid) TO txrelay_app;
GRANT ALL ON FUNCTION txrelay.row_holder(p_xmax xid) TO txrelay_relay;


--
-- Name: FUNCTION running_xids(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.running_xids() FROM PUBLIC;


--
-- Name: FUNCTION session_text(p_pid integer); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.session_text(p_pid integer) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.session_text(p_pid integer) TO txrelay_follower;
GRANT ALL ON FUNCTION txrelay.session_text(p_pid integer) TO txrelay_app;
GRANT ALL ON FUNCTION txrelay.session_text(p_pid integer) TO txrelay_relay;


--
-- Name: TABLE outbox_presigned; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.outbox_presigned TO txrelay_relay;


--
-- Name: FUNCTION signed_pend(a txrelay.accounts, p_epoch bigint, s txrelay.outbox_presigned, p_nonce bigint, p_hash bytea, p_call_length integer, p_tip numeric, p_birth bigint, p_death bigint, p_spec_version bigint, p_transaction_version bigint, p_block bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.signed_pend(a txrelay.accounts, p_epoch bigint, s txrelay.outbox_presigned, p_nonce bigint, p_hash bytea, p_call_length integer, p_tip numeric, p_birth bigint, p_death bigint, p_spec_version bigint, p_transaction_version bigint, p_block bigint) FROM PUBLIC;


--
-- Name: FUNCTION signer_of(p_extrinsic bytea, p_body integer, p_name text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.signer_of(p_extrinsic bytea, p_body integer, p_name text) FROM PUBLIC;


--
-- Name: FUNCTION size_fits(p_call bytea); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.size_fits(p_call bytea) FROM PUBLIC;


--
-- Name: FUNCTION ss58_bytes(p_text text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.ss58_bytes(p_text text) FROM PUBLIC;


--
-- Name: FUNCTION start_sign(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.start_sign() FROM PUBLIC;


--
-- Name: FUNCTION turn_waits(p_account integer, p_id bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.turn_waits(p_account integer, p_id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.turn_waits(p_account integer, p_id bigint) TO txrelay_follower;
GRANT ALL ON FUNCTION txrelay.turn_waits(p_account integer, p_id bigint) TO txrelay_app;
GRANT ALL ON FUNCTION txrelay.turn_waits(p_account integer, p_id bigint) TO txrelay_relay;


--
-- Name: TABLE attempts; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.attempts TO txrelay_relay;


--
-- Name: TABLE outbox; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.outbox TO txrelay_relay;


--
-- Name: TABLE transactions; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.transactions TO txrelay_follower;
GRANT SELECT ON TABLE txrelay.transactions TO txrelay_app;
GRANT SELECT ON TABLE txrelay.transactions TO txrelay_relay;


--
-- Name: FUNCTION status(id bigint, hash text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.status(id bigint, hash text) FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.status(id bigint, hash text) TO txrelay_follower;
GRANT ALL ON FUNCTION txrelay.status(id bigint, hash text) TO txrelay_app;
GRANT ALL ON FUNCTION txrelay.status(id bigint, hash text) TO txrelay_relay;


--
-- Name: FUNCTION steady_clock(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.steady_clock() FROM PUBLIC;


--
-- Name: FUNCTION store_keys(p_account integer, p_role text, p_calls bytea[], p_keys text[], p_ids bigint[]); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.store_keys(p_account integer, p_role text, p_calls bytea[], p_keys text[], p_ids bigint[]) FROM PUBLIC;


--
-- Name: FUNCTION stored_role(p_creator text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.stored_role(p_creator text) FROM PUBLIC;


--
-- Name: FUNCTION strict_turn(p_function text, a txrelay.accounts, p_priority bigint, p_not_before timestamp with time zone); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.strict_turn(p_function text, a txrelay.accounts, p_priority bigint, p_not_before timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION subject_elsewhere(l txrelay.leadership, p_epoch bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.subject_elsewhere(l txrelay.leadership, p_epoch bigint) FROM PUBLIC;


--
-- Name: FUNCTION subject_fence(p_subject integer, p_epoch bigint, p_lock text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.subject_fence(p_subject integer, p_epoch bigint, p_lock text) FROM PUBLIC;


--
-- Name: FUNCTION subject_name(l txrelay.leadership); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.subject_name(l txrelay.leadership) FROM PUBLIC;


--
-- Name: FUNCTION subject_unknown(p_subject integer); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.subject_unknown(p_subject integer) FROM PUBLIC;


--
-- Name: FUNCTION tell_leader(l txrelay.leadership); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.tell_leader(l txrelay.leadership) FROM PUBLIC;


--
-- Name: FUNCTION tell_outbox(p_account integer); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.tell_outbox(p_account integer) FROM PUBLIC;


--
-- Name: FUNCTION tell_outbox_of(p_id bigint); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.tell_outbox_of(p_id bigint) FROM PUBLIC;


--
-- Name: FUNCTION text_fits(p_text text); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.text_fits(p_text text) FROM PUBLIC;


--
-- Name: FUNCTION time_fits(p_time timestamp with time zone); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.time_fits(p_time timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION time_of_span(p_function text, p_argument text, p_span interval, p_other text, p_time timestamp with time zone); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.time_of_span(p_function text, p_argument text, p_span interval, p_other text, p_time timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION timeline(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.timeline() FROM PUBLIC;


--
-- Name: FUNCTION timeline_known(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.timeline_known() FROM PUBLIC;
GRANT ALL ON FUNCTION txrelay.timeline_known() TO txrelay_relay;


--
-- Name: FUNCTION timelines(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.timelines() FROM PUBLIC;


--
-- Name: FUNCTION wait_briefly(); Type: ACL; Schema: txrelay; Owner: -
--

REVOKE ALL ON FUNCTION txrelay.wait_briefly() FROM PUBLIC;


--
-- Name: TABLE obstacles; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.obstacles TO txrelay_relay;


--
-- Name: TABLE relay_leases; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.relay_leases TO txrelay_relay;


--
-- Name: TABLE refusals; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.refusals TO txrelay_relay;


--
-- Name: TABLE blocked_accounts; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.blocked_accounts TO txrelay_follower;
GRANT SELECT ON TABLE txrelay.blocked_accounts TO txrelay_app;
GRANT SELECT ON TABLE txrelay.blocked_accounts TO txrelay_relay;


--
-- Name: TABLE members; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.members TO txrelay_relay;


--
-- Name: TABLE blocked_relays; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.blocked_relays TO txrelay_follower;
GRANT SELECT ON TABLE txrelay.blocked_relays TO txrelay_app;
GRANT SELECT ON TABLE txrelay.blocked_relays TO txrelay_relay;


--
-- Name: TABLE bumps; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.bumps TO txrelay_relay;


--
-- Name: TABLE cancellations; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.cancellations TO txrelay_relay;


--
-- Name: TABLE feed_batches; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.feed_batches TO txrelay_relay;


--
-- Name: TABLE feed_servers; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.feed_servers TO txrelay_relay;


--
-- Name: TABLE feeds; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.feeds TO txrelay_relay;


--
-- Name: TABLE feed_cursors; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.feed_cursors TO txrelay_follower;
GRANT SELECT ON TABLE txrelay.feed_cursors TO txrelay_app;
GRANT SELECT ON TABLE txrelay.feed_cursors TO txrelay_relay;


--
-- Name: TABLE follow_accounts; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.follow_accounts TO txrelay_follower;
GRANT SELECT ON TABLE txrelay.follow_accounts TO txrelay_app;
GRANT SELECT ON TABLE txrelay.follow_accounts TO txrelay_relay;


--
-- Name: TABLE follow_finished; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.follow_finished TO txrelay_follower;
GRANT SELECT ON TABLE txrelay.follow_finished TO txrelay_app;
GRANT SELECT ON TABLE txrelay.follow_finished TO txrelay_relay;


--
-- Name: TABLE follow_kept; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.follow_kept TO txrelay_follower;
GRANT SELECT ON TABLE txrelay.follow_kept TO txrelay_app;
GRANT SELECT ON TABLE txrelay.follow_kept TO txrelay_relay;


--
-- Name: TABLE follow_pending; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.follow_pending TO txrelay_follower;
GRANT SELECT ON TABLE txrelay.follow_pending TO txrelay_app;
GRANT SELECT ON TABLE txrelay.follow_pending TO txrelay_relay;


--
-- Name: TABLE follow_sources; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.follow_sources TO txrelay_follower;
GRANT SELECT ON TABLE txrelay.follow_sources TO txrelay_app;
GRANT SELECT ON TABLE txrelay.follow_sources TO txrelay_relay;


--
-- Name: TABLE leaders; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.leaders TO txrelay_follower;
GRANT SELECT ON TABLE txrelay.leaders TO txrelay_app;
GRANT SELECT ON TABLE txrelay.leaders TO txrelay_relay;


--
-- Name: TABLE schema_functions; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.schema_functions TO txrelay_follower;
GRANT SELECT ON TABLE txrelay.schema_functions TO txrelay_app;
GRANT SELECT ON TABLE txrelay.schema_functions TO txrelay_relay;


--
-- Name: TABLE schema_version; Type: ACL; Schema: txrelay; Owner: -
--

GRANT SELECT ON TABLE txrelay.schema_version TO txrelay_follower;
GRANT SELECT ON TABLE txrelay.schema_version TO txrelay_app;
GRANT SELECT ON TABLE txrelay.schema_version TO txrelay_relay;


--
-- PostgreSQL database dump complete
--


