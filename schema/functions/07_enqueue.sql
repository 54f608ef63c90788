-- txrelay: enqueue and enqueue_many.
--
-- They work at every isolation level. Under REPEATABLE READ and SERIALIZABLE, a call that meets a
-- concurrent one with the same idempotency key or id may fail with 40001, as any write may there:
-- run the transaction again. So may two of one role under SERIALIZABLE that both count what waits
-- (take_room).

-- Returns the transaction that an idempotency key of p_role stands for: p_id if the key is new,
-- otherwise the first one; with a minus if that has another payload. A key with an empty role holds
-- for all. A concurrent call with the same key waits until the first one ends. Key and row are
-- written in one transaction, so no key exists without its transaction.
CREATE OR REPLACE FUNCTION txrelay.id_of_key(p_account int, p_role text, p_key text, p_id bigint,
                                             p_sha256 bytea) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    v_first record;
BEGIN
    LOOP
        IF p_role = '' OR NOT EXISTS (SELECT FROM idempotency_keys k WHERE k.account = p_account
                AND k.role = ''
                AND k.key = p_key) THEN
            INSERT INTO idempotency_keys (account, role, key, id, payload_sha256)
                VALUES (p_account, p_role, p_key, p_id, p_sha256) ON CONFLICT (account, role,
                    key) DO NOTHING;
            IF FOUND THEN
                RETURN p_id;
            END IF;
        END IF;
        SELECT k.id, k.payload_sha256 = p_sha256 AS same INTO v_first FROM idempotency_keys k
            WHERE k.account = p_account AND k.role IN ('', p_role) AND k.key = p_key
            ORDER BY k.account, k.role, k.key LIMIT 1;
        CONTINUE WHEN NOT FOUND; -- retention deleted it between the two statements
        RETURN CASE WHEN v_first.same THEN v_first.id ELSE -v_first.id END;
    END LOOP;
END
$$;

-- The account of this name, after all checks that depend on it. For strict order it waits for other
-- writers.
CREATE OR REPLACE FUNCTION txrelay.enqueue_account(p_function text, p_account text,
                                                   p_priority bigint, p_not_before timestamptz)
RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
DECLARE
    v_account int := keyed_account(p_function, p_account);
BEGIN
    PERFORM check_use(p_function, v_account);
    PERFORM strict_turn(p_function, a, p_priority, p_not_before) FROM accounts a
        WHERE a.account = v_account AND a.policy ->> 'order' = 'strict';
    RETURN v_account;
END
$$;

-- The rest of enqueue, for what its one statement does not handle: an account that is not named by
-- its alias, a key that exists already, tokens, and accounts that are careful: strict order, users,
-- bounds. Returns the id; with a minus that of another call with this key.
CREATE OR REPLACE FUNCTION txrelay.enqueue_searching(p_account int, p_id bigint, call bytea,
    key text, priority bigint, not_before timestamptz, deadline timestamptz, creator text,
    spec_version bigint, tip numeric, max_tip numeric, deadline_block bigint,
    retries bigint, traceparent text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
#variable_conflict use_variable
DECLARE
    v_first bigint;
BEGIN
    IF key IS NOT NULL THEN
        v_first := id_of_key(p_account, key_role(), key, p_id, sha256(call));
        IF v_first <> p_id THEN
            RETURN v_first;
        END IF;
    END IF;
    INSERT INTO outbox (id, account, call, key, creator, priority, not_before, deadline, guard,
            tip, max_tip, deadline_block, retries, role, traceparent)
        VALUES (p_id, p_account, call, key, coalesce(creator, session_user), priority, not_before,
            deadline, spec_version, tip, max_tip, deadline_block, retries,
            coalesce(token_role(), stored_role(creator)), traceparent);
    PERFORM ring(p_account);
    RETURN p_id;
END
$$;

-- One statement finds the account by its alias, writes row and key, and tries the doorbell. Every
-- transaction pays for every node of an expression again (docs/speed.md).
CREATE OR REPLACE FUNCTION txrelay.enqueue(account text, call bytea, key text DEFAULT NULL,
    priority bigint DEFAULT 0, not_before timestamptz DEFAULT NULL,
    deadline timestamptz DEFAULT NULL, creator text DEFAULT NULL,
    spec_version bigint DEFAULT NULL, tip numeric DEFAULT NULL, max_tip numeric DEFAULT NULL,
    deadline_block bigint DEFAULT NULL, retries bigint DEFAULT 0, expires_in interval DEFAULT NULL,
    delay interval DEFAULT NULL, traceparent text DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_account int;
    v_id bigint;
    v_first bigint;
    v_awake boolean;
    v_room boolean; -- take_room need not count
    v_full text;
    v_new boolean; -- by the statement's snapshot, which is older than its id
    v_hint text;
BEGIN
    -- Options, or a call of a wrong size, take the longer way.
    IF (num_nonnulls(not_before, deadline, creator, spec_version, tip, max_tip, deadline_block,
                     expires_in, delay, traceparent)
        | priority | retries = 0 AND size_fits(call) AND substr(call, 2, 1) <> 'x') IS NOT TRUE THEN
        BEGIN
            IF num_nonnulls(expires_in, delay) > 0 THEN
                deadline := time_of_span('enqueue', 'expires_in', expires_in, 'deadline', deadline);
                not_before := time_of_span('enqueue', 'delay', delay, 'not_before', not_before);
            END IF;
            IF priority IS NULL OR priority NOT BETWEEN -1000 AND 1000
               OR octet_length(creator) > 200
               OR num_nonnulls(tip, max_tip, deadline_block) > 0 OR retries IS DISTINCT FROM 0
               OR spec_version NOT BETWEEN 0 AND 4294967295
               OR deadline <= greatest(clock_timestamp(), not_before)
               OR (time_fits(deadline) AND time_fits(not_before)) IS FALSE THEN
                PERFORM check_options('enqueue', priority, creator, not_before, deadline,
                    spec_version, tip, max_tip, deadline_block, retries);
            END IF;
            IF traceparent IS NOT NULL THEN
                PERFORM check_trace('enqueue', traceparent);
            END IF;
            IF (priority > 0 OR tip > 0) AND NOT is_operator() THEN
                PERFORM check_bounds('enqueue', enqueue.account, priority, tip);
            END IF;
            IF size_fits(call) IS NOT TRUE THEN
                PERFORM bad_size('enqueue', 'call', call,
                                 'Pass the SCALE-encoded call. Split a batch that is too large.');
            ELSIF substr(call, 2, 1) = 'x' THEN
                PERFORM check_hex_text('enqueue', 'call', call);
            END IF;
            -- A relay that enqueues for a token gives a creator. The one statement below knows no
            -- tokens.
            IF creator IS NOT NULL AND coalesce(current_setting('txrelay.token', true), '') <> ''
               AND (octet_length(key) BETWEEN 1 AND 200) IS NOT FALSE
               AND token_role() IS NOT NULL THEN
                v_account := enqueue_account('enqueue', account, priority, not_before);
            END IF;
        EXCEPTION WHEN SQLSTATE 'TR000' OR insufficient_privilege OR lock_not_available THEN
            GET STACKED DIAGNOSTICS v_hint = PG_EXCEPTION_HINT;
            RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = SQLERRM, HINT = v_hint;
        END;
    END IF;

    IF key IS NULL AND v_account IS NULL THEN
        INSERT INTO outbox (account, call, creator, priority, not_before, deadline, guard, tip,
                max_tip, deadline_block, retries, role, traceparent)
            SELECT a.account, enqueue.call, coalesce(enqueue.creator, session_user),
                enqueue.priority, enqueue.not_before, enqueue.deadline, enqueue.spec_version,
                enqueue.tip, enqueue.max_tip, enqueue.deadline_block, enqueue.retries,
                stored_role(enqueue.creator), enqueue.traceparent
            FROM accounts a WHERE a.alias = enqueue.account AND NOT (a.watch_only OR a.careful)
            RETURNING account, id, pg_try_advisory_xact_lock_shared(9001, account),
                id > (SELECT h.highest_id FROM high_water h WHERE h.one),
                EXISTS (SELECT FROM outbox_room r WHERE r.account = outbox.account
                    AND r.role = coalesce(outbox.role, outbox.creator)
                    AND r.most = outbox_most('{}') AND r.until >= outbox.id)
            INTO v_account, v_id, v_awake, v_new, v_room;
    ELSIF octet_length(key) BETWEEN 1 AND 200 AND v_account IS NULL THEN
        WITH k AS (
            INSERT INTO idempotency_keys (account, role, key, id, payload_sha256)
                SELECT a.account, key_role(), enqueue.key, nextval('txrelay.transaction_id'),
                sha256(enqueue.call)
                FROM accounts a WHERE a.alias = enqueue.account AND NOT (a.watch_only OR a.careful)
                ON CONFLICT (account, role, key) DO NOTHING RETURNING account, id
        )
        INSERT INTO outbox (id, account, call, key, creator, priority, not_before, deadline, guard,
                tip, max_tip, deadline_block, retries, role, traceparent)
            SELECT k.id, k.account, enqueue.call, enqueue.key,
                coalesce(enqueue.creator, session_user), enqueue.priority, enqueue.not_before,
                enqueue.deadline, enqueue.spec_version, enqueue.tip, enqueue.max_tip,
                enqueue.deadline_block, enqueue.retries, stored_role(enqueue.creator),
                enqueue.traceparent
            FROM k RETURNING account, id, pg_try_advisory_xact_lock_shared(9001, account),
                id > (SELECT h.highest_id FROM high_water h WHERE h.one),
                EXISTS (SELECT FROM outbox_room r WHERE r.account = outbox.account
                    AND r.role = coalesce(outbox.role, outbox.creator)
                    AND r.most = outbox_most('{}') AND r.until >= outbox.id)
            INTO v_account, v_id, v_awake, v_new, v_room;
    ELSIF v_account IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'TR011',
            MESSAGE = format('enqueue: key has %s bytes; it must have 1 to 200', octet_length(key)),
            HINT = 'Leave it out (NULL) for no idempotency key, or use a hash of a longer one.';
    END IF;

    IF NOT v_new OR v_awake IS NULL OR getdatabaseencoding() = 'SQL_ASCII' THEN
        BEGIN
            IF getdatabaseencoding() = 'SQL_ASCII' THEN
                PERFORM check_text('enqueue', 'creator', creator),
                    check_text('enqueue', 'key', key);
            END IF;
            IF NOT v_new THEN
                PERFORM id_given_again('enqueue', v_id);
            ELSIF v_awake IS NULL THEN
                v_account := coalesce(v_account,
                                      enqueue_account('enqueue', account, priority, not_before));
                v_id := new_id('enqueue');
            END IF;
        EXCEPTION WHEN SQLSTATE 'TR000' OR insufficient_privilege OR lock_not_available THEN
            GET STACKED DIAGNOSTICS v_hint = PG_EXCEPTION_HINT;
            RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = SQLERRM, HINT = v_hint;
        END;
        IF v_awake IS NULL THEN
            v_first := enqueue_searching(v_account, v_id, call, key, priority, not_before,
                deadline, creator, spec_version, tip, max_tip, deadline_block, retries,
                traceparent);
            IF v_first < 0 THEN
                RAISE EXCEPTION USING ERRCODE = 'TR012', MESSAGE = key_reused_text(key, -v_first),
                    HINT = key_reused_hint();
            ELSIF v_first <> v_id THEN
                RETURN v_first;
            END IF;
        END IF;
    END IF;
    IF v_room IS NOT TRUE THEN
        v_full := take_room('enqueue', v_account, acting_role(), v_id, v_id, NOT is_operator());
        IF v_full IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'TR013', MESSAGE = v_full, HINT = full_hint();
        END IF;
    END IF;
    IF v_awake IS NOT FALSE THEN -- NULL: enqueue_searching rang
        RETURN v_id;
    END IF;
    PERFORM tell_outbox_of(v_id); -- ring(), in place
    RETURN v_id;
END
$$;

-- Stores the keys of p_role that are new, and returns how many it stored. A key with an empty role
-- holds for all. They are sorted, so that two calls with the same keys in different orders cannot
-- deadlock.
CREATE OR REPLACE FUNCTION txrelay.store_keys(p_account int, p_role text, p_calls bytea[],
                                              p_keys text[], p_ids bigint[])
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
DECLARE
    v_stored bigint;
BEGIN
    INSERT INTO idempotency_keys (account, role, key, id, payload_sha256)
        SELECT p_account, p_role, u.key, u.id, sha256(u.call)
        FROM unnest(p_calls, p_keys, p_ids) u (call, key, id)
        WHERE u.key IS NOT NULL
        AND (SELECT x.id FROM idempotency_keys x WHERE x.account = p_account AND x.role = ''
            AND x.key = u.key ORDER BY x.account, x.role, x.key LIMIT 1) IS NULL
        ORDER BY u.key, u.id
        ON CONFLICT (account, role, key) DO NOTHING;
    GET DIAGNOSTICS v_stored = ROW_COUNT;
    RETURN v_stored;
END
$$;

-- Returns the id of each call once the keys of p_role are stored: the one that its key stands for,
-- otherwise its own.
CREATE OR REPLACE FUNCTION txrelay.ids_of_keys(p_account int, p_role text, p_calls bytea[],
                                               p_keys text[], p_ids bigint[])
RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
DECLARE
    v_bad record;
BEGIN
    -- LATERAL with LIMIT looks keys up one by one, whatever the statistics say (14_admit.sql).
    SELECT u.key, k.id INTO v_bad FROM unnest(p_calls, p_keys) u (call, key)
        CROSS JOIN LATERAL (SELECT x.* FROM idempotency_keys x WHERE x.account = p_account
            AND x.role IN ('', p_role)
            AND x.key = u.key ORDER BY x.account, x.role, x.key LIMIT 1) k
        WHERE k.payload_sha256 <> sha256(u.call) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'TR012', MESSAGE = key_reused_text(v_bad.key, v_bad.id),
            HINT = key_reused_hint();
    END IF;
    RETURN (SELECT array_agg(coalesce(k.id, u.id) ORDER BY u.n)
        FROM unnest(p_keys, p_ids) WITH ORDINALITY u (key, id, n)
        LEFT JOIN LATERAL (SELECT x.id FROM idempotency_keys x WHERE x.account = p_account
            AND x.role IN ('', p_role)
            AND x.key = u.key ORDER BY x.account, x.role, x.key LIMIT 1) k ON true);
END
$$;

-- Returns ids in the order of the calls, and nonces follow the same order. A key that appears twice
-- in the array gives one transaction. The options hold for every call.
CREATE OR REPLACE FUNCTION txrelay.enqueue_many(account text, calls bytea[],
    keys text[] DEFAULT NULL, priority bigint DEFAULT 0, creator text DEFAULT NULL,
    not_before timestamptz DEFAULT NULL, deadline timestamptz DEFAULT NULL,
    spec_version bigint DEFAULT NULL, tip numeric DEFAULT NULL, max_tip numeric DEFAULT NULL,
    deadline_block bigint DEFAULT NULL, retries bigint DEFAULT 0, expires_in interval DEFAULT NULL,
    delay interval DEFAULT NULL, traceparent text DEFAULT NULL) RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_account int;
    v_given bigint; -- ids up to this one
    v_ids bigint[];
    v_result bigint[];
    v_good bigint;
    v_keys bigint; -- how many are not NULL
    v_stored bigint;
    v_most bigint; -- NULL: take_room knows the bound
    v_full text;
    v_hint text;
BEGIN
    IF calls IS NULL OR cardinality(calls) > 100000 THEN
        RAISE EXCEPTION USING ERRCODE = 'TR011', MESSAGE = 'enqueue_many: calls ' || CASE
            WHEN calls IS NULL THEN 'is NULL'
            ELSE format('has %s elements', cardinality(calls)) END || '; it must have 0 to 100000',
            HINT = 'Use several calls; they may be in one transaction.';
    ELSIF cardinality(keys) <> cardinality(calls) THEN
        RAISE EXCEPTION USING ERRCODE = 'TR011',
            MESSAGE = format('enqueue_many: keys has %s elements and calls has %s',
            cardinality(keys), cardinality(calls)),
            HINT = 'Give one key per call (NULL elements are allowed), or leave keys out.';
    END IF;
    BEGIN
        IF (num_nonnulls(not_before, deadline, creator, spec_version, tip, max_tip, deadline_block,
                         expires_in, delay, traceparent)
            | priority | retries = 0) IS NOT TRUE THEN
            PERFORM check_trace('enqueue_many', traceparent);
            deadline := time_of_span('enqueue_many', 'expires_in', expires_in, 'deadline',
                                     deadline);
            not_before := time_of_span('enqueue_many', 'delay', delay, 'not_before', not_before);
            PERFORM check_options('enqueue_many', priority, creator, not_before, deadline,
                spec_version, tip, max_tip, deadline_block, retries);
            PERFORM check_bounds('enqueue_many', enqueue_many.account, priority, tip);
        END IF;
        SELECT a.account, outbox_most('{}') INTO v_account, v_most FROM accounts a
            WHERE a.alias = enqueue_many.account AND NOT (a.watch_only OR a.careful);
        IF NOT FOUND THEN
            v_account := enqueue_account('enqueue_many', enqueue_many.account, priority,
                                         not_before);
        END IF;
        -- One pass over the arrays draws ids, which ascend in any order of the elements, and counts
        -- valid elements.
        -- any order
        SELECT (SELECT h.highest_id FROM high_water h WHERE h.one),
                array_agg(nextval('txrelay.transaction_id')),
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
            PERFORM check_text('enqueue_many', 'creator', creator),
                check_text('enqueue_many', 'keys', array_to_string(keys, ' '));
        END IF;
    EXCEPTION WHEN SQLSTATE 'TR000' OR insufficient_privilege OR lock_not_available THEN
        GET STACKED DIAGNOSTICS v_hint = PG_EXCEPTION_HINT;
        RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = SQLERRM, HINT = v_hint;
    END;
    v_result := v_ids;
    IF v_keys > 0 THEN
        v_stored := store_keys(v_account, key_role(), calls, keys, v_ids);
        IF v_stored < v_keys THEN
            BEGIN
                v_result := ids_of_keys(v_account, key_role(), calls, keys, v_ids);
            EXCEPTION WHEN SQLSTATE 'TR000' THEN
                GET STACKED DIAGNOSTICS v_hint = PG_EXCEPTION_HINT;
                RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = SQLERRM, HINT = v_hint;
            END;
        END IF;
    END IF;
    INSERT INTO outbox (id, account, call, key, creator, priority, not_before, deadline, guard,
            tip, max_tip, deadline_block, retries, role, traceparent)
        SELECT u.id, v_account, u.call, u.key, coalesce(enqueue_many.creator, session_user),
            enqueue_many.priority, enqueue_many.not_before, enqueue_many.deadline,
            enqueue_many.spec_version, enqueue_many.tip, enqueue_many.max_tip,
            enqueue_many.deadline_block, enqueue_many.retries, stored_role(enqueue_many.creator),
            enqueue_many.traceparent
        FROM unnest(v_ids, v_result, calls, keys) u (id, result, call, key) WHERE u.id = u.result;
    IF FOUND THEN
        IF v_most IS NULL OR NOT EXISTS (SELECT FROM outbox_room r WHERE r.account = v_account
                AND r.most = v_most
                AND r.role = coalesce(stored_role(enqueue_many.creator), enqueue_many.creator,
                                      session_user)
                AND r.until >= v_ids[cardinality(v_ids)]) THEN
            v_full := take_room('enqueue_many', v_account,
                coalesce(stored_role(enqueue_many.creator), enqueue_many.creator, session_user),
                v_ids[1], v_ids[cardinality(v_ids)], NOT is_operator());
            IF v_full IS NOT NULL THEN
                RAISE EXCEPTION USING ERRCODE = 'TR013', MESSAGE = v_full, HINT = full_hint();
            END IF;
        END IF;
        PERFORM ring(v_account);
    END IF;
    RETURN v_result;
END
$$;
