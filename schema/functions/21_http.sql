-- txrelay: the HTTP interface: who may use it, and what operators do through it.

-- Makes a token: its SHA-256, what it is good for, and for which accounts it may enqueue. NULL: for
-- all that were not granted to roles; with the scope operate, for all. expires NULL: never.
CREATE OR REPLACE FUNCTION txrelay.token_create(name text, hash bytea, scopes text[],
    accounts text[] DEFAULT NULL, expires interval DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_bad text := (SELECT u.scope FROM unnest(token_create.scopes) u (scope)
        WHERE u.scope IS NULL OR u.scope NOT IN ('read', 'enqueue', 'operate')
        ORDER BY u.scope LIMIT 1);
    v_accounts int[];
BEGIN
    IF (token_create.name ~ '^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$') IS NOT TRUE THEN
        PERFORM bad_argument('token_create', 'name',
            format('is %s; it must have 1 to 64 letters, digits, dots, dashes, '
            'underscores and @', coalesce('"' || left(token_create.name, 80) || '"', 'NULL')),
            'For example shop or alice@example.');
    ELSIF octet_length(token_create.hash) IS DISTINCT FROM 32 THEN
        PERFORM bad_argument('token_create', 'hash', format('has %s bytes; a SHA-256 has 32',
            coalesce(octet_length(token_create.hash)::text, 'no')),
            'txrelay token create makes the token and its hash.');
    ELSIF coalesce(cardinality(token_create.scopes), 0) = 0 OR v_bad IS NOT NULL
          OR array_position(token_create.scopes, NULL) IS NOT NULL THEN
        PERFORM bad_argument('token_create', 'scopes',
            format('has %s', coalesce('"' || left(v_bad, 80) || '"', 'none')),
            'The scopes are read, enqueue and operate.');
    ELSIF expires <= interval '0' THEN
        PERFORM bad_argument('token_create', 'expires',
            format('is %s; it must be a span from now on', expires),
            'For example 90 days. NULL: it does not expire.');
    ELSIF token_create.accounts IS NOT NULL
        AND (NOT 'enqueue' = ANY (token_create.scopes) OR cardinality(token_create.accounts) = 0)
    THEN
        PERFORM bad_argument('token_create', 'accounts',
            'is given without the scope enqueue, or is empty',
            'Accounts limit what the token may enqueue for.');
    END IF;
    IF token_create.accounts IS NOT NULL THEN
        v_accounts := ARRAY(SELECT DISTINCT account_of(u.a)
                            FROM unnest(token_create.accounts) u (a) ORDER BY 1);
    END IF;
    INSERT INTO tokens (name, hash, scopes, accounts, created_by, expires_at)
        VALUES (token_create.name, token_create.hash,
            ARRAY(SELECT DISTINCT u.s FROM unnest(token_create.scopes) u (s) ORDER BY 1),
            v_accounts, session_user, clock_timestamp() + expires) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        PERFORM bad_argument('token_create', 'name',
            format('is "%s", and there is a token of that name', token_create.name),
            'A name is used once, also after its token was revoked, because operations record it.');
    END IF;
    PERFORM operation_note('token_create', NULL, NULL, token_create.name, '{}', NULL, 'created');
END
$$;

-- From now on nobody gets in with it. A second call changes nothing.
CREATE OR REPLACE FUNCTION txrelay.token_revoke(name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_before jsonb := operation_before('token_revoke', NULL, NULL, token_revoke.name);
BEGIN
    UPDATE tokens t SET revoked_at = coalesce(t.revoked_at, clock_timestamp()),
        revoked_by = coalesce(t.revoked_by, session_user)
        WHERE t.name = token_revoke.name;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'TR010', MESSAGE = format('no such token: %s',
                coalesce('"' || left(token_revoke.name, 80) || '"', 'NULL')),
            HINT = 'txrelay token list lists them.';
    END IF;
    PERFORM operation_note('token_revoke', NULL, NULL, token_revoke.name, '{}', v_before,
                           'revoked');
END
$$;

-- Whose token it is, and whether it is good for this: the scope and, for enqueue, the account
-- (NULL: for any). No row: there is no such token, or it has expired or was revoked.
CREATE OR REPLACE FUNCTION txrelay.token_use(p_hash bytea, p_scope text, p_account text)
    RETURNS TABLE (name text, allowed boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    t tokens;
BEGIN
    SELECT * INTO t FROM tokens x WHERE x.hash = p_hash AND x.revoked_at IS NULL
        AND (x.expires_at IS NULL OR x.expires_at > clock_timestamp());
    IF FOUND THEN
        name := t.name;
        -- account_of is asked last: who may not enqueue at all learns nothing about accounts.
        allowed := p_scope = ANY (t.scopes);
        IF allowed AND p_scope = 'enqueue' AND p_account IS NOT NULL THEN
            allowed := token_may(t.name, account_of(p_account));
        END IF;
        RETURN NEXT;
    END IF;
END
$$;

-- A time or a span that a request has as a text; one that is none is refused by the name of its
-- parameter or field.
CREATE OR REPLACE FUNCTION txrelay.http_time(p_name text, p_text text) RETURNS timestamptz
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RETURN p_text::timestamptz;
EXCEPTION WHEN data_exception THEN
    PERFORM bad_argument('http', p_name, format('is "%s", which is no time', left(p_text, 80)),
                         'For example 2026-11-30T12:00:00Z.');
END
$$;

CREATE OR REPLACE FUNCTION txrelay.http_span(p_name text, p_text text) RETURNS interval
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RETURN p_text::interval;
EXCEPTION WHEN data_exception THEN
    PERFORM bad_argument('http', p_name, format('is "%s", which is no span of time',
                                                left(p_text, 80)), 'For example 90 minutes.');
END
$$;

-- Does what an operator asked for over HTTP, as the token p_who. p_id or p_account is given, as the
-- action wants. The actions write the record (operation_note). Returns the action's own answer.
CREATE OR REPLACE FUNCTION txrelay.operate(p_who text, p_action text, p_id bigint, p_account text,
                                           p_arguments jsonb) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    PERFORM set_config('txrelay.operator', p_who, true);
    CASE p_action
        WHEN 'cancel' THEN RETURN cancel(p_id);
        WHEN 'bump' THEN RETURN bump(p_id, (p_arguments ->> 'tip')::numeric);
        WHEN 'retry' THEN RETURN retry(p_id, http_time('deadline', p_arguments ->> 'deadline'),
                                       (p_arguments ->> 'deadline_block')::bigint);
        WHEN 'pause' THEN
            PERFORM account_pause(p_account, coalesce(p_arguments ->> 'reason', 'by ' || p_who));
            RETURN 'paused';
        WHEN 'resume' THEN
            PERFORM account_resume(p_account);
            RETURN 'resumed';
        WHEN 'policy' THEN RETURN account_policy(p_account, p_arguments);
        WHEN 'webhook_again' THEN RETURN webhook_again(p_arguments ->> 'webhook',
                                                       (p_arguments ->> 'number')::bigint);
        WHEN 'webhook_pause' THEN
            PERFORM webhook_pause(p_arguments ->> 'webhook');
            RETURN 'paused';
        WHEN 'webhook_resume' THEN
            PERFORM webhook_resume(p_arguments ->> 'webhook');
            RETURN 'resumed';
        WHEN 'register' THEN
            PERFORM relay_register(p_account, decode(p_arguments ->> 'id', 'hex'),
                p_arguments ->> 'scheme',
                decode(p_arguments ->> 'genesis', 'hex'), p_arguments ->> 'address',
                (p_arguments ->> 'lock_key')::bigint,
                (p_arguments ->> 'watch_only')::boolean, (p_arguments ->> 'era')::int,
                (p_arguments ->> 'immortal')::boolean);
            RETURN 'registered';
        WHEN 'drain' THEN
            PERFORM relay_drained(p_arguments ->> 'relay');
            RETURN 'draining';
        ELSE
            PERFORM bad_argument('operate', 'action', format('is "%s"', left(p_action, 80)),
                'The actions are cancel, bump, retry, pause, resume, policy, register, '
                'webhook_again, webhook_pause, webhook_resume and '
                'drain.');
    END CASE;
END
$$;

-- The same for many transactions, each for itself: one that is refused does not stop the others.
-- Returns a list of {id, answer} and {id, error}.
CREATE OR REPLACE FUNCTION txrelay.operate_many(p_who text, p_action text, p_ids bigint[],
                                                p_arguments jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_id bigint;
    v_answer text;
    v_done jsonb := '[]';
BEGIN
    IF p_action NOT IN ('cancel', 'bump', 'retry') OR cardinality(p_ids) NOT BETWEEN 1 AND 500 THEN
        PERFORM bad_argument('operate_many', 'p_ids',
            format('has %s elements; 1 to 500, for cancel, bump or retry',
            cardinality(p_ids)), 'Ask several times.');
    END IF;
    FOREACH v_id IN ARRAY p_ids LOOP
        BEGIN
            v_answer := operate(p_who, p_action, v_id, NULL, p_arguments);
            v_done := v_done || jsonb_build_object('id', v_id, 'answer', v_answer);
        EXCEPTION WHEN SQLSTATE 'TR010' OR SQLSTATE 'TR011' THEN
            v_done := v_done || jsonb_build_object('id', v_id, 'error', SQLERRM);
        END;
    END LOOP;
    RETURN v_done;
END
$$;

-- Records that an operator drains a relay, over HTTP or its control endpoint. p_who: the user at
-- that endpoint; '': the login.
CREATE OR REPLACE FUNCTION txrelay.relay_drained(p_relay text, p_who text DEFAULT '') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF p_who <> '' THEN
        PERFORM set_config('txrelay.operator', p_who, true);
    END IF;
    PERFORM operation_note('drain', NULL, NULL, p_relay, '{}', NULL, 'draining');
END
$$;

-- Records that p_who, the user at a relay's control endpoint, enqueued this one in the name of
-- another. Returns its id.
CREATE OR REPLACE FUNCTION txrelay.relay_sent(p_id bigint, p_who text, p_creator text)
    RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    PERFORM set_config('txrelay.operator', p_who, true);
    PERFORM operation_note('send', p_id, NULL, NULL,
                           jsonb_build_object('creator', p_creator), NULL, p_id::text);
    RETURN p_id;
END
$$;

-- Removes what is of no use any more: records of operations that are older than p_age, and tokens
-- that ended before then and that no record names. Returns the number of rows.
CREATE OR REPLACE FUNCTION txrelay.http_cleanup(p_age interval) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_before timestamptz := clock_timestamp() - p_age;
    v_operations bigint;
    v_tokens bigint;
BEGIN
    IF p_age IS NULL OR p_age < interval '1 day' THEN
        PERFORM bad_argument('http_cleanup', 'p_age',
            format('is %s; at least 1 day', coalesce(p_age::text, 'NULL')),
            'It is how long operations are kept.');
    END IF;
    DELETE FROM operations o WHERE o.id IN (SELECT x.id FROM operations x WHERE x.at < v_before
                                            ORDER BY x.at LIMIT 10000);
    GET DIAGNOSTICS v_operations = ROW_COUNT;
    DELETE FROM tokens t WHERE least(t.revoked_at, t.expires_at) < v_before
        AND NOT EXISTS (SELECT FROM operations o WHERE t.name IN (o.who, o.subject));
    GET DIAGNOSTICS v_tokens = ROW_COUNT;
    RETURN v_operations + v_tokens;
END
$$;
