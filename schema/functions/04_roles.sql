-- txrelay: what an application may do: whose accounts, whose transactions, how much of what.
--
-- An application is a login that is a member of txrelay_app and of neither txrelay_relay nor the
-- role that owns the schema, or a token of HTTP without the scope operate. The others act for
-- operators, and nothing here binds them.

-- The role of the token for which a relay enqueues (http/sql/enqueue.sql), if the token is an
-- application; it has no members. NULL: there is no token, or it has the scope operate. Only relays
-- act for tokens.
CREATE OR REPLACE FUNCTION txrelay.token_role() RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_name text := nullif(current_setting('txrelay.token', true), '');
BEGIN
    RETURN CASE WHEN v_name IS NOT NULL AND (pg_has_role(session_user, 'txrelay_relay', 'MEMBER')
            OR pg_has_role(session_user, current_user, 'MEMBER'))
        AND NOT EXISTS (SELECT FROM tokens t WHERE t.name = v_name AND 'operate' = ANY (t.scopes))
            THEN 'token/' || v_name END;
END
$$;

-- True if this token may enqueue for the account. One that was made for no accounts uses those that
-- every application uses.
CREATE OR REPLACE FUNCTION txrelay.token_may(p_name text, p_account int) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM tokens t, accounts a WHERE t.name = p_name AND a.account = p_account
        AND (a.account = ANY (t.accounts) OR t.accounts IS NULL
            AND ('operate' = ANY (t.scopes) OR coalesce('txrelay_app' = ANY (a.users), true))));
END
$$;

-- The role that a session enqueues as: its login, or the role that it chose with SET ROLE, or its
-- token's. Members of one role that all choose it are one application. Postgres inlines these four
-- functions.
CREATE OR REPLACE FUNCTION txrelay.acting_role() RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT COALESCE(txrelay.token_role(), NULLIF(pg_catalog.current_setting('role'), 'none'),
                    session_user::text)
$$;

-- What the column role of a transaction stores: NULL if its creator says it already. It knows no
-- tokens, because each enqueue pays for it: their rows are written by enqueue_searching.
CREATE OR REPLACE FUNCTION txrelay.stored_role(p_creator text) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT NULLIF(COALESCE(NULLIF(pg_catalog.current_setting('role'), 'none'), session_user::text),
        COALESCE(p_creator, session_user::text))
$$;

-- True for who acts for operators. Its callers have the owner's rights.
CREATE OR REPLACE FUNCTION txrelay.is_operator() RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT (pg_catalog.pg_has_role(session_user, 'txrelay_relay', 'MEMBER')
        OR pg_catalog.pg_has_role(session_user, current_user, 'MEMBER'))
        AND (COALESCE(pg_catalog.current_setting('txrelay.token', true), '') = ''
             OR txrelay.token_role() IS NULL)
$$;

-- Who asks for what is recorded: whom a relay names for its statement (txrelay.operator: a token of
-- HTTP, the user at its control endpoint), or else the login. The setting of another login counts
-- for nothing.
CREATE OR REPLACE FUNCTION txrelay.asker() RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT COALESCE(CASE WHEN pg_catalog.pg_has_role(session_user, 'txrelay_relay', 'MEMBER')
            OR pg_catalog.pg_has_role(session_user, current_user, 'MEMBER')
        THEN NULLIF(pg_catalog.current_setting('txrelay.operator', true), '') END,
            session_user::text)
$$;

-- Whose idempotency keys a session uses. All relays and operators share theirs, because a client
-- may repeat its request through another relay. For a token of HTTP a relay sets txrelay.token for
-- the statement, and each token has keys of its own; nobody else's setting counts.
CREATE OR REPLACE FUNCTION txrelay.key_role() RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN pg_catalog.pg_has_role(session_user, 'txrelay_relay', 'MEMBER')
            OR pg_catalog.pg_has_role(session_user, current_user, 'MEMBER') THEN COALESCE('token/'
            || NULLIF(pg_catalog.current_setting('txrelay.token', true), ''), 'txrelay_relay')
        ELSE COALESCE(NULLIF(pg_catalog.current_setting('role'), 'none'), session_user::text) END
$$;

-- True if the session's login is a member of this role. A role that was dropped has no members.
CREATE OR REPLACE FUNCTION txrelay.has_role(p_role text) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM pg_roles r WHERE r.rolname = p_role
                   AND pg_has_role(session_user, r.oid, 'MEMBER'));
END
$$;

CREATE OR REPLACE FUNCTION txrelay.other_owner_hint() RETURNS text
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
    SELECT 'Ask as a member of that role, or let an operator (a member of txrelay_relay) do it.'
$$;

-- The message for a transaction that belongs to another role; NULL: it does not. One that has
-- ended, or that there is not, is its callers' to report.
CREATE OR REPLACE FUNCTION txrelay.other_owner(p_function text, p_id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
DECLARE
    v_role text;
BEGIN
    IF is_operator() THEN
        RETURN NULL;
    END IF;
    v_role := coalesce((SELECT coalesce(o.role, o.creator) FROM outbox o WHERE o.id = p_id),
        (SELECT coalesce(s.role, s.creator) FROM outbox_presigned s WHERE s.id = p_id
         ORDER BY s.id LIMIT 1),
        (SELECT coalesce(p.role, p.creator) FROM pending_of(p_id) p),
        (SELECT coalesce(t.role, t.creator) FROM site_transactions t WHERE t.id = p_id));
    IF v_role IS NOT NULL AND NOT has_role(v_role) THEN
        RETURN format('%s: transaction %s belongs to %s, and user %s is no member of it',
                      p_function, p_id, v_role, session_user);
    END IF;
    RETURN NULL;
END
$$;

-- Refuses an account that other roles use.
CREATE OR REPLACE FUNCTION txrelay.check_use(p_function text, p_account int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    a record;
    v_token text := token_role();
BEGIN
    SELECT t.alias, t.users INTO a FROM accounts t WHERE t.account = p_account;
    IF a.users IS NULL OR is_operator() THEN
        RETURN;
    ELSIF v_token IS NOT NULL THEN
        IF NOT token_may(current_setting('txrelay.token', true), p_account) THEN
            RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
                MESSAGE = format('%s: account %s is used by %s, and %s was not made for it',
                    p_function, a.alias,
                    coalesce(nullif(array_to_string(a.users, ', '), ''), 'no application'),
                    v_token),
                HINT = format('An operator may make one that is: txrelay token create NAME '
                              '--scope enqueue --for %s.', a.alias);
        END IF;
    ELSIF NOT EXISTS (SELECT FROM unnest(a.users) u (role) WHERE has_role(u.role)) THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('%s: account %s is used by %s, and user %s is no member of it',
                p_function, a.alias,
                coalesce(nullif(array_to_string(a.users, ', '), ''), 'no application'),
                session_user),
            HINT = format('An operator may grant it: SELECT txrelay.account_grant(%L, %L);',
                          a.alias, session_user);
    END IF;
END
$$;

-- Refuses a priority or a tip that the account's policy does not allow to applications.
CREATE OR REPLACE FUNCTION txrelay.check_bounds(p_function text, p_account text, p_priority bigint,
                                                p_tip numeric) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
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
        PERFORM bad_argument(p_function, 'priority',
            format('is %s; for applications account %s allows at most %s', p_priority,
            a.alias, v_most), 'Leave it out, or let an operator raise the policy''s priority_max.');
    ELSIF p_tip > 0 AND a.policy -> 'tip_cap' IS NULL THEN
        PERFORM bad_argument(p_function, 'tip',
            format('is %s, and account %s has no tip_cap', left(p_tip::text, 80), a.alias),
            'Leave it out, or let an operator set the policy''s tip_cap: it bounds what '
            'applications may pay.');
    END IF;
END
$$;

-- How many transactions a role may have waiting at an account. Postgres inlines it, which it would
-- not if this were IMMUTABLE: then each plan of enqueue would call it.
CREATE OR REPLACE FUNCTION txrelay.outbox_most(p_policy jsonb) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT COALESCE((p_policy OPERATOR(pg_catalog.->>) 'outbox_max')::bigint, 100000)
$$;

-- How many transactions of the role wait, and no more than p_most.
CREATE OR REPLACE FUNCTION txrelay.outbox_waiting(p_account int, p_role text, p_most bigint)
    RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
BEGIN
    RETURN (SELECT count(*) FROM (
        (SELECT FROM outbox o WHERE o.account = p_account AND o.not_before IS NULL
         AND coalesce(o.role, o.creator) = p_role)
        UNION ALL
        (SELECT FROM outbox o WHERE o.account = p_account AND o.not_before IS NOT NULL
         AND coalesce(o.role, o.creator) = p_role)
        UNION ALL
        (SELECT FROM outbox_presigned s WHERE s.account = p_account
         AND coalesce(s.role, s.creator) = p_role)
        LIMIT p_most) w);
END
$$;

-- Removes what outbox_room says of ids below p_id, or of another bound. It waits for nobody.
CREATE OR REPLACE FUNCTION txrelay.drop_rooms(p_account int, p_role text, p_most bigint,
                                              p_id bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
BEGIN
    DELETE FROM outbox_room r USING (SELECT x.account, x.role, x.most, x.until, x.id
        FROM outbox_room x WHERE x.account = p_account
        AND x.role = p_role AND (x.most <> p_most OR x.until < p_id) FOR UPDATE SKIP LOCKED) o
        WHERE (r.account, r.role, r.most, r.until, r.id) = (o.account, o.role, o.most, o.until,
            o.id);
END
$$;

-- Counts what waits of a role, after rows with the ids p_first to p_last were stored, unless a
-- count that this transaction sees goes for these ids too. If it finds too many it returns what its
-- caller has to refuse them with; p_spare: how many of them may be above the bound. Otherwise it
-- notes up to which id the role may go on: as many more as the bound leaves, and at least a 16th of
-- it or 1024. A note that is rolled back is missed by the next row, so no rollback spares a count.
-- It returns the refusal, because a block that catches an error and has written takes a transaction
-- id.
CREATE OR REPLACE FUNCTION txrelay.take_room(p_function text, p_account int, p_role text,
    p_first bigint, p_last bigint, p_bound boolean, p_spare bigint DEFAULT 0) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    a record;
    v_waiting bigint := 0;
BEGIN
    SELECT t.alias, outbox_most(t.policy) AS most INTO a FROM accounts t
        WHERE t.account = p_account;
    IF EXISTS (SELECT FROM outbox_room r WHERE r.account = p_account AND r.role = p_role
               AND r.most = a.most AND r.until >= p_last) THEN
        RETURN NULL;
    ELSIF p_bound THEN
        v_waiting := outbox_waiting(p_account, p_role, a.most + p_spare + 1);
        IF v_waiting > a.most + p_spare THEN
            RETURN format(CASE WHEN p_first = p_last
                OR p_spare > 0 THEN '%s: %s transactions of %s wait at account %s already'
                ELSE '%s: with these calls more than %s transactions of %s would wait at account '
                     '%s' END, p_function, a.most, p_role, a.alias);
        END IF;
    END IF;
    IF current_setting('transaction_isolation') = 'read committed' THEN
        PERFORM drop_rooms(p_account, p_role, a.most, p_first);
    ELSE
        BEGIN
            PERFORM drop_rooms(p_account, p_role, a.most, p_first);
        EXCEPTION WHEN serialization_failure THEN
            NULL; -- another transaction did so
        END;
    END IF;
    INSERT INTO outbox_room (account, role, most, until, id) VALUES (p_account, p_role, a.most,
        p_last + greatest(a.most - v_waiting, least(1024, a.most / 16) - 1, 0), p_first);
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION txrelay.full_hint() RETURNS text
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
    SELECT 'Try again when some have been sent, or let an operator raise the policy''s outbox_max.'
$$;

-- Notes in the account whether enqueue has more to check than its one statement does.
CREATE OR REPLACE FUNCTION txrelay.note_careful(p_account int) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
    UPDATE accounts a SET careful = a.users IS NOT NULL
            OR (a.policy ->> 'order') IS NOT DISTINCT FROM 'strict'
            OR a.policy ? 'outbox_max'
            OR EXISTS (SELECT FROM idempotency_keys k WHERE k.account = p_account AND k.role = '')
        WHERE a.account = p_account
$$;

-- Lets the members of a role use an account, beside those who were granted it before.
-- Granted to txrelay_app it is every application's again. Returns the roles.
CREATE OR REPLACE FUNCTION txrelay.account_grant(account text, role text) RETURNS text[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_account int := account_of(account_grant.account);
    v_before jsonb := operation_before('grant', NULL, v_account, NULL);
    v_users text[];
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = account_grant.role) THEN
        PERFORM bad_argument('account_grant', 'role',
            format('is %s; there is no such role', coalesce('"' || left(account_grant.role,
            80) || '"', 'NULL')), 'Name a login, or a role that logins are members of.');
    END IF;
    UPDATE accounts a SET users = array_append(array_remove(coalesce(a.users, '{}'),
        account_grant.role), account_grant.role)
        WHERE a.account = v_account;
    PERFORM note_careful(v_account);
    v_users := (SELECT a.users FROM accounts a WHERE a.account = v_account);
    PERFORM operation_note('grant', NULL, v_account, NULL,
                           jsonb_build_object('role', account_grant.role), v_before, v_users::text);
    RETURN v_users;
END
$$;

-- Takes the account from a role. What its members enqueued before stays. Returns the roles that may
-- still use it; none: only operators.
CREATE OR REPLACE FUNCTION txrelay.account_revoke(account text, role text) RETURNS text[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_account int := account_of(account_revoke.account);
    v_before jsonb := operation_before('revoke', NULL, v_account, NULL);
    v_users text[] := (SELECT coalesce(a.users, '{txrelay_app}') FROM accounts a
                       WHERE a.account = v_account);
BEGIN
    IF account_revoke.role = ANY (v_users) IS NOT TRUE THEN
        PERFORM bad_argument('account_revoke', 'role',
            format('is %s, which was not granted the account', coalesce('"'
            || left(account_revoke.role, 80) || '"', 'NULL')),
            format('It is granted to: %s.', coalesce(nullif(
            array_to_string(v_users, ', '), ''), 'no application')));
    END IF;
    UPDATE accounts a SET users = array_remove(v_users, account_revoke.role)
        WHERE a.account = v_account;
    PERFORM note_careful(v_account);
    v_users := (SELECT a.users FROM accounts a WHERE a.account = v_account);
    PERFORM operation_note('revoke', NULL, v_account, NULL,
                           jsonb_build_object('role', account_revoke.role), v_before,
                           v_users::text);
    RETURN v_users;
END
$$;
