-- txrelay 0002: what applications use: enqueue, enqueue_many, cancel, bump, status, history, and the views.
--
-- Errors that an application can cause carry TR010..TR012 and name the argument, the value, the bound and the way
-- out. Isolation: all of this works at every level. Under REPEATABLE READ and SERIALIZABLE a call that meets a
-- concurrent one about the same idempotency key or the same id may end with 40001, as Postgres does for any write
-- there: run the transaction again.

CREATE FUNCTION txrelay.bad_argument(p_function text, p_argument text, p_what text, p_hint text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR011', MESSAGE = format('%s: %s %s', p_function, p_argument, p_what),
        HINT = p_hint;
END
$$;

-- The account that a text means: alias, 0x and the hex of its id, its address as it was registered, or its address with the
-- prefix of any chain.
CREATE FUNCTION txrelay.account_of(p_name text) RETURNS int
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_found int[];
BEGIN
    SELECT array_agg(a.account) INTO v_found FROM accounts a WHERE a.alias = p_name;
    IF v_found IS NULL AND p_name ~ '^0x([0-9a-fA-F]{2})+$' THEN
        SELECT array_agg(a.account) INTO v_found FROM accounts a
            WHERE a.account_id = decode(substr(p_name, 3), 'hex');
    END IF;
    IF v_found IS NULL THEN
        SELECT array_agg(a.account) INTO v_found FROM accounts a WHERE a.address = p_name;
    END IF;
    IF v_found IS NULL THEN
        SELECT array_agg(a.account) INTO v_found FROM accounts a WHERE a.account_id = substr(ss58_bytes(p_name), 3);
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
$$;

-- What an SS58 address of a 32-byte account holds: its prefix in two bytes (the shorter form after a zero) and the account's
-- id; NULL where the text is no such address. Its checksum is blake2b, which Postgres does not have: it stays unchecked, and
-- an id that is one of the registered ones proves more than two bytes of it could.
CREATE FUNCTION txrelay.ss58_bytes(p_text text) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
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
    -- Each leading zero byte is written as a 1 of its own, and there are no others.
    v_length := length(substring(p_text FROM '^1*')) + 40 - length(substring(encode(v_bytes, 'hex') FROM '^(?:00)*')) / 2;
    IF v_length = 35 AND get_byte(v_bytes, 5) < 64 THEN
        RETURN decode('00', 'hex') || substr(v_bytes, 6, 33);
    ELSIF v_length = 36 AND get_byte(v_bytes, 4) BETWEEN 64 AND 127 THEN
        RETURN substr(v_bytes, 5, 34);
    END IF;
    RETURN NULL;
END
$$;

-- TR010 with the names that look most like it: shared three-letter pieces of alias or address (all of them when there are
-- three accounts or less), and ids that have bytes in common.
CREATE FUNCTION txrelay.account_unknown(p_name text) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
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
            -- Three pieces of an address, three bytes of an id are more than chance.
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
                    WHEN EXISTS (SELECT FROM accounts) THEN 'The view txrelay.leader_state lists the accounts.'
                    ELSE 'No account is registered yet: a relay registers its accounts when it starts.' END;
END
$$;

-- The same, for what a relay has to sign.
CREATE FUNCTION txrelay.keyed_account(p_function text, p_name text) RETURNS int
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
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

-- The server has one notification queue, of 8 GiB, for all databases, and keeps what the slowest listener has not read:
-- one that sits in a transaction fills it for everybody, and a commit that notifies fails when it is full. Whatever is
-- told here is found without as well, by polls and scans. So from a quarter on nobody is told anything; the rest is the
-- room for transactions that stay open. Relays look (queue_look) and leave what they saw here: to ask for the usage may
-- mean to remove the files that were read at last, which is not a writer's to wait for.
CREATE TABLE txrelay.notify_queue (
    one  boolean PRIMARY KEY DEFAULT true CHECK (one),
    shut boolean NOT NULL DEFAULT false
) WITH (fillfactor = 10);
INSERT INTO txrelay.notify_queue DEFAULT VALUES;

-- By its key: some who ask have sequential scans off, and a plan with one would be dear enough to be compiled.
CREATE FUNCTION txrelay.queue_has_room() RETURNS boolean
LANGUAGE plpgsql AS $$ -- asked with every notification: a part of its callers, whose search_path and rights it has
BEGIN
    RETURN NOT EXISTS (SELECT FROM txrelay.notify_queue q WHERE q.one AND q.shut);
END
$$;

-- How full it is, asked by each relay's listener every ten seconds.
CREATE FUNCTION txrelay.queue_look() RETURNS float8
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_usage float8 := pg_notification_queue_usage();
BEGIN
    UPDATE notify_queue q SET shut = NOT q.shut WHERE q.one AND q.shut <> (v_usage >= 0.25);
    RETURN v_usage;
END
$$;

-- The doorbell (README). The lock says whether the leader is awake: no flag, no snapshot, no race. Shared and until
-- the end of the transaction, so an open transaction keeps its leader awake; taken again by a second enqueue it
-- costs no further lock. Outside of a sleeping leader's first wake-up no commit carries a NOTIFY.
-- A session may order silence (SET txrelay.notify = off): the leader then finds the row at its slow poll, within a second.
-- For what may not carry a NOTIFY, as a transaction that is to be prepared.
CREATE FUNCTION txrelay.tell_outbox(p_account int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF current_setting('txrelay.notify', true) IS DISTINCT FROM 'off' AND queue_has_room() THEN
        PERFORM pg_notify('outbox_wake', p_account::text);
    END IF;
END
$$;

CREATE FUNCTION txrelay.tell_outbox_of(p_id bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
BEGIN
    PERFORM tell_outbox(o.account) FROM outbox o WHERE o.id = p_id;
END
$$;

CREATE FUNCTION txrelay.ring(p_account int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock_shared(9001, p_account) THEN
        PERFORM tell_outbox(p_account);
    END IF;
END
$$;

-- The payload that an idempotency key stands for is the call. Options are not part of it: a retry computes its
-- deadline anew.
CREATE FUNCTION txrelay.key_reused(p_key text, p_id bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR012',
        MESSAGE = format('idempotency key "%s" was used before with another call, for transaction %s',
                         left(p_key, 80), p_id),
        HINT = 'Use a new key for a new call, or send the first call again to get its id.';
END
$$;

-- An amount that the chain can hold: a whole number below 2^128. NaN and the infinities are not; NULL is.
CREATE FUNCTION txrelay.check_amount(p_function text, p_argument text, p_amount numeric, p_hint text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF p_amount NOT BETWEEN 0 AND 340282366920938463463374607431768211455 OR p_amount <> trunc(p_amount) THEN
        PERFORM bad_argument(p_function, p_argument, format('is %s; it must be a whole number from 0 to '
            '340282366920938463463374607431768211455', p_amount), p_hint);
    END IF;
END
$$;

-- The options of both enqueue functions. Those ask only where something may be wrong: to enter a function costs more than
-- all that is compared in it.
CREATE FUNCTION txrelay.check_options(p_function text, p_priority int, p_creator text, p_not_before timestamptz,
    p_deadline timestamptz, p_spec_version int, p_tip numeric, p_max_tip numeric, p_deadline_block bigint, p_retries int)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
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
    IF p_deadline <= greatest(clock_timestamp(), p_not_before) THEN
        PERFORM bad_argument(p_function, 'deadline', format('is %s; it must be later than now (%s)%s', p_deadline,
            clock_timestamp(), coalesce(format(' and than not_before (%s)', p_not_before), '')),
            'Pass a later deadline, or NULL for none.');
    ELSIF p_spec_version < 0 THEN
        PERFORM bad_argument(p_function, 'spec_version', format('is %s; it must not be negative', p_spec_version),
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
            'So often it is tried again when the chain says that the call failed; leave it out for 0.');
    END IF;
END
$$;

-- enqueue where its one statement found nothing to do: the account by any of its names, one that keeps a strict order, and
-- keys that are taken.
CREATE FUNCTION txrelay.enqueue_searching(account text, call bytea, key text, priority int, not_before timestamptz,
    deadline timestamptz, creator text, spec_version int, tip numeric, max_tip numeric, deadline_block bigint,
    retries int) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
#variable_conflict use_variable
DECLARE
    v_account int := keyed_account('enqueue', account);
    v_id bigint;
    v_first record;
BEGIN
    PERFORM strict_turn('enqueue', a, priority, not_before) FROM accounts a
        WHERE a.account = v_account AND a.policy ->> 'order' = 'strict';
    v_id := nextval('txrelay.transaction_id');
    -- A concurrent call with the same key waits here for the first one's end. The key and the row are written by one
    -- transaction: there is no key without its transaction.
    WHILE key IS NOT NULL LOOP
        INSERT INTO idempotency_keys AS k (account, key, id, payload_sha256) VALUES (v_account, key, v_id, sha256(call))
            ON CONFLICT ON CONSTRAINT idempotency_keys_pkey DO NOTHING;
        EXIT WHEN FOUND;
        SELECT k.id, k.payload_sha256 = sha256(call) AS same INTO v_first FROM idempotency_keys k
            WHERE k.account = v_account AND k.key = enqueue_searching.key ORDER BY k.account, k.key LIMIT 1;
        CONTINUE WHEN NOT FOUND; -- deleted by the retention between the two statements
        IF NOT v_first.same THEN
            PERFORM key_reused(key, v_first.id);
        END IF;
        RETURN v_first.id;
    END LOOP;
    INSERT INTO outbox (id, account, call, key, creator, priority, not_before, deadline, guard, tip, max_tip,
            deadline_block, retries)
        VALUES (v_id, v_account, call, key, coalesce(creator, session_user), priority, not_before, deadline,
            spec_version, tip, max_tip, deadline_block, retries);
    PERFORM ring(v_account);
    RETURN v_id;
END
$$;

-- One statement writes row and key and tries the doorbell, where the account is given by its alias. Every node of an
-- expression is paid in every transaction anew: README, "What enqueue costs".
CREATE FUNCTION txrelay.enqueue(account text, call bytea, key text DEFAULT NULL, priority int DEFAULT 0,
    not_before timestamptz DEFAULT NULL, deadline timestamptz DEFAULT NULL, creator text DEFAULT NULL,
    spec_version int DEFAULT NULL, tip numeric DEFAULT NULL, max_tip numeric DEFAULT NULL,
    deadline_block bigint DEFAULT NULL, retries int DEFAULT 0) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_id bigint;
    v_awake boolean;
BEGIN
    -- Anything but a call of the right size without options is looked at.
    IF (num_nonnulls(not_before, deadline, creator, spec_version, tip, max_tip, deadline_block) | priority | retries = 0
        AND octet_length(call) <@ int4range(1, 1048576, '[]')) IS NOT TRUE THEN
        IF priority IS NULL OR priority NOT BETWEEN -1000 AND 1000 OR octet_length(creator) > 200
           OR num_nonnulls(tip, max_tip, deadline_block) > 0 OR retries IS DISTINCT FROM 0 OR spec_version < 0
           OR deadline <= greatest(clock_timestamp(), not_before) THEN
            PERFORM check_options('enqueue', priority, creator, not_before, deadline, spec_version, tip, max_tip,
                deadline_block, retries);
        END IF;
        IF call IS NULL OR octet_length(call) NOT BETWEEN 1 AND 1048576 THEN
            PERFORM bad_argument('enqueue', 'call', CASE WHEN call IS NULL THEN 'is NULL'
                ELSE format('has %s bytes', octet_length(call)) END || '; it must have 1 to 1048576 bytes',
                'Pass the SCALE-encoded call. Split a batch that is too large.');
        END IF;
    END IF;

    IF key IS NULL THEN
        INSERT INTO outbox (account, call, creator, priority, not_before, deadline, guard, tip, max_tip, deadline_block,
                retries)
            SELECT a.account, enqueue.call, coalesce(enqueue.creator, session_user), enqueue.priority,
                enqueue.not_before, enqueue.deadline, enqueue.spec_version, enqueue.tip, enqueue.max_tip,
                enqueue.deadline_block, enqueue.retries
            FROM accounts a WHERE a.alias = enqueue.account AND NOT a.watch_only AND a.policy ->> 'order' IS DISTINCT FROM 'strict'
            RETURNING id, pg_try_advisory_xact_lock_shared(9001, account) INTO v_id, v_awake;
    ELSIF octet_length(key) BETWEEN 1 AND 200 THEN
        WITH k AS (
            INSERT INTO idempotency_keys (account, key, id, payload_sha256)
                SELECT a.account, enqueue.key, nextval('txrelay.transaction_id'), sha256(enqueue.call)
                FROM accounts a WHERE a.alias = enqueue.account AND NOT a.watch_only AND a.policy ->> 'order' IS DISTINCT FROM 'strict'
                ON CONFLICT (account, key) DO NOTHING RETURNING account, id
        )
        INSERT INTO outbox (id, account, call, key, creator, priority, not_before, deadline, guard, tip, max_tip,
                deadline_block, retries)
            SELECT k.id, k.account, enqueue.call, enqueue.key, coalesce(enqueue.creator, session_user), enqueue.priority,
                enqueue.not_before, enqueue.deadline, enqueue.spec_version, enqueue.tip, enqueue.max_tip,
                enqueue.deadline_block, enqueue.retries
            FROM k RETURNING id, pg_try_advisory_xact_lock_shared(9001, account) INTO v_id, v_awake;
    ELSE
        PERFORM bad_argument('enqueue', 'key', format('has %s bytes; it must have 1 to 200', octet_length(key)),
            'Leave it out (NULL) for no idempotency key, or use a hash of a longer one.');
    END IF;

    IF v_awake THEN
        RETURN v_id;
    ELSIF v_awake IS NULL THEN
        RETURN enqueue_searching(account, call, key, priority, not_before, deadline, creator, spec_version, tip, max_tip,
            deadline_block, retries);
    END IF;
    PERFORM tell_outbox_of(v_id); -- ring(), in place
    RETURN v_id;
END
$$;

-- enqueue_many where a call or a key is not as it must be: the first one that is not, with its place.
CREATE FUNCTION txrelay.check_elements(p_calls bytea[], p_keys text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_bad record;
BEGIN
    SELECT u.n, octet_length(u.call) AS bytes INTO v_bad FROM unnest(p_calls) WITH ORDINALITY u (call, n)
        WHERE u.call IS NULL OR octet_length(u.call) NOT BETWEEN 1 AND 1048576 ORDER BY u.n LIMIT 1;
    IF FOUND THEN
        PERFORM bad_argument('enqueue_many', format('calls[%s]', v_bad.n), coalesce('has '
            || v_bad.bytes || ' bytes', 'is NULL') || '; each must have 1 to 1048576 bytes', 'Pass SCALE-encoded calls.');
    END IF;
    SELECT u.n, octet_length(u.key) AS bytes INTO v_bad FROM unnest(p_keys) WITH ORDINALITY u (key, n)
        WHERE octet_length(u.key) NOT BETWEEN 1 AND 200 ORDER BY u.n LIMIT 1;
    IF FOUND THEN
        PERFORM bad_argument('enqueue_many', format('keys[%s]', v_bad.n), format('has %s bytes; it must have 1 to 200',
            v_bad.bytes), 'Use NULL for no key, or a hash of a longer one.');
    END IF;
END
$$;

-- The ids that calls get by their keys, once these are stored: each the one that its key stands for, else its own.
CREATE FUNCTION txrelay.ids_of_keys(p_account int, p_calls bytea[], p_keys text[], p_ids bigint[]) RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
DECLARE
    v_bad record;
BEGIN
    -- LATERAL with LIMIT: looked up by key, one by one, whatever the statistics say (0004).
    SELECT u.key, k.id INTO v_bad FROM unnest(p_calls, p_keys) u (call, key)
        CROSS JOIN LATERAL (SELECT x.* FROM idempotency_keys x WHERE x.account = p_account AND x.key = u.key
            ORDER BY x.account, x.key LIMIT 1) k
        WHERE k.payload_sha256 <> sha256(u.call) LIMIT 1;
    IF FOUND THEN
        PERFORM key_reused(v_bad.key, v_bad.id);
    END IF;
    RETURN (SELECT array_agg(coalesce(k.id, u.id) ORDER BY u.n)
        FROM unnest(p_keys, p_ids) WITH ORDINALITY u (key, id, n)
        LEFT JOIN LATERAL (SELECT x.id FROM idempotency_keys x WHERE x.account = p_account AND x.key = u.key
            ORDER BY x.account, x.key LIMIT 1) k ON true);
END
$$;

-- Ids in the order of the calls, nonces too. A key that appears twice in one array gives one transaction. The options
-- are those of every call.
CREATE FUNCTION txrelay.enqueue_many(account text, calls bytea[], keys text[] DEFAULT NULL, priority int DEFAULT 0,
    creator text DEFAULT NULL, not_before timestamptz DEFAULT NULL, deadline timestamptz DEFAULT NULL,
    spec_version int DEFAULT NULL, tip numeric DEFAULT NULL, max_tip numeric DEFAULT NULL,
    deadline_block bigint DEFAULT NULL, retries int DEFAULT 0) RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_account int;
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
    IF (num_nonnulls(not_before, deadline, creator, spec_version, tip, max_tip, deadline_block) | priority | retries = 0)
       IS NOT TRUE THEN
        PERFORM check_options('enqueue_many', priority, creator, not_before, deadline, spec_version, tip, max_tip,
            deadline_block, retries);
    END IF;
    SELECT a.account INTO v_account FROM accounts a WHERE a.alias = enqueue_many.account AND NOT a.watch_only;
    IF NOT FOUND THEN
        v_account := keyed_account('enqueue_many', enqueue_many.account);
    END IF;
    PERFORM strict_turn('enqueue_many', a, priority, not_before) FROM accounts a
        WHERE a.account = v_account AND a.policy ->> 'order' = 'strict';
    -- One pass over the arrays: ids, and whether everything is as it must be.
    SELECT array_agg(nextval('txrelay.transaction_id')),
            count(*) FILTER (WHERE octet_length(u.call) <@ int4range(1, 1048576, '[]')
                AND octet_length(u.key) <@ int4range(1, 200, '[]') IS NOT FALSE), count(u.key)
        INTO v_ids, v_good, v_keys FROM unnest(calls, keys) u (call, key);
    IF v_good <> cardinality(calls) THEN
        PERFORM check_elements(calls, keys);
    ELSIF v_ids IS NULL THEN
        RETURN '{}';
    END IF;

    v_result := v_ids;
    IF v_keys > 0 THEN
        -- In the order of the keys, so that two calls with the same keys in other orders cannot deadlock.
        INSERT INTO idempotency_keys (account, key, id, payload_sha256)
            SELECT v_account, u.key, u.id, sha256(u.call) FROM unnest(calls, keys, v_ids) u (call, key, id)
            WHERE u.key IS NOT NULL ORDER BY u.key, u.id
            ON CONFLICT (account, key) DO NOTHING;
        GET DIAGNOSTICS v_stored = ROW_COUNT;
        IF v_stored < v_keys THEN
            v_result := ids_of_keys(v_account, calls, keys, v_ids);
        END IF;
    END IF;
    INSERT INTO outbox (id, account, call, key, creator, priority, not_before, deadline, guard, tip, max_tip,
            deadline_block, retries)
        SELECT u.id, v_account, u.call, u.key, coalesce(enqueue_many.creator, session_user), enqueue_many.priority,
            enqueue_many.not_before, enqueue_many.deadline, enqueue_many.spec_version, enqueue_many.tip,
            enqueue_many.max_tip, enqueue_many.deadline_block, enqueue_many.retries
        FROM unnest(v_ids, v_result, calls, keys) u (id, result, call, key) WHERE u.id = u.result;
    IF FOUND THEN
        PERFORM ring(v_account);
    END IF;
    RETURN v_result;
END
$$;

-- End transactions that still are in the outbox. Those who listen hear of it as of any other end, without a nonce.
-- Returns how many of the ids were there.
-- A pending row by its id; the last nonce in use. Of a table that VACUUM knows as empty each index costs the planner the
-- same, and a session keeps its plans: one that walks the other index reads every row once there are some. An order that
-- only the right index has decides it (test/schema/test_plans.py).
CREATE FUNCTION txrelay.pending_of(p_id bigint) RETURNS txrelay.pending_transactions
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
DECLARE
    p pending_transactions;
BEGIN
    SELECT * INTO p FROM pending_transactions x WHERE x.id = p_id ORDER BY x.id LIMIT 1;
    RETURN p;
END
$$;

CREATE FUNCTION txrelay.last_pending(p_account int) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
BEGIN
    RETURN (SELECT p.nonce FROM pending_transactions p WHERE p.account = p_account
        ORDER BY p.account DESC, p.nonce DESC LIMIT 1);
END
$$;

CREATE FUNCTION txrelay.outbox_end(p_account int, p_ids bigint[], p_outcomes txrelay.tx_outcome[], p_errors text[],
    p_epoch bigint) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
    WITH gone AS (
        DELETE FROM outbox o USING unnest(p_ids, p_outcomes, p_errors) b (id, outcome, error)
            CROSS JOIN LATERAL (SELECT x.ctid AS at FROM outbox x WHERE x.id = b.id
                AND (p_account IS NULL OR x.account = p_account) OFFSET 0) x
        WHERE o.ctid = x.at RETURNING o.*, b.outcome, b.error
    ), ended AS (
        INSERT INTO finished_transactions (id, account, outcome, error, attempts, epoch, key, creator, call, created_at)
        SELECT g.id, g.account, g.outcome, g.error, g.attempts, p_epoch, g.key, g.creator, g.call, g.created_at
        FROM gone g RETURNING 1
    ), told AS (
        SELECT CASE WHEN (SELECT queue_has_room()) THEN pg_notify('pending_tx_removed', json_build_object('account_id',
            (SELECT '0x' || encode(a.account_id, 'hex') FROM accounts a WHERE a.account = g.account),
            'nonce', NULL, 'id', g.id, 'outcome', g.outcome)::text) END
        FROM gone g
    )
    SELECT count(*) FROM told
$$;

-- One row a transaction, wherever it is now: "where is it?" is one query by id. Fillers have no id, nor has the record
-- of a nonce whose transaction got another one. tip: asked for while it waits, then what the attempt pays that has the
-- hash; looked up by the reader who asks for it.
CREATE VIEW txrelay.transactions AS
    SELECT o.id, a.alias AS account, '0x' || encode(a.account_id, 'hex') AS account_id, 'outbox' AS stage,
           'queued' AS state, NULL::bigint AS nonce, NULL::text AS hash, NULL::text AS block_hash,
           NULL::bigint AS block_number, NULL::text AS outcome, NULL::text AS error, o.attempts, o.creator, o.key,
           o.created_at, o.created_at AS updated_at, o.tip::numeric AS tip
    FROM txrelay.outbox o JOIN txrelay.accounts a USING (account)
    UNION ALL
    SELECT s.id, a.alias, '0x' || encode(a.account_id, 'hex'), 'outbox', 'queued', s.nonce, '0x' || encode(s.hash, 'hex'),
           NULL, NULL, NULL, s.waits, 0, s.creator, s.key, s.created_at, coalesce(s.waits_since, s.created_at), NULL
    FROM txrelay.outbox_signed s JOIN txrelay.accounts a USING (account)
    UNION ALL
    SELECT p.id, a.alias, '0x' || encode(a.account_id, 'hex'), 'pending', p.state::text, p.nonce,
           '0x' || encode(p.hash, 'hex'), '0x' || encode(p.block_hash, 'hex'), p.block_number, NULL, p.error,
           p.attempts, p.creator, p.key, p.created_at, p.updated_at,
           (SELECT t.tip FROM txrelay.attempts t WHERE t.account = p.account AND t.nonce = p.nonce
            AND t.number = p.attempt)
    FROM txrelay.pending_transactions p JOIN txrelay.accounts a USING (account)
    UNION ALL
    SELECT f.id, a.alias, '0x' || encode(a.account_id, 'hex'), 'finished', f.state::text, f.nonce,
           '0x' || encode(f.hash, 'hex'), '0x' || encode(f.block_hash, 'hex'), f.block_number, f.outcome::text, f.error,
           f.attempts, f.creator, f.key, f.created_at, f.finished_at,
           (SELECT t.tip FROM txrelay.attempts t WHERE t.account = f.account AND t.nonce = f.nonce AND t.hash = f.hash
            ORDER BY t.number DESC LIMIT 1)
    FROM txrelay.finished_transactions f JOIN txrelay.accounts a USING (account);

CREATE VIEW txrelay.leader_state AS
    SELECT a.alias, '0x' || encode(a.account_id, 'hex') AS account_id, a.epoch, a.claimant AS holder,
           a.claimant_address AS address, a.lock_held, coalesce(l.heartbeat, a.heartbeat) AS heartbeat,
           coalesce(l.expiry_1, a.expiry_1) AS expiry_1, coalesce(l.expiry_2, a.expiry_2) AS expiry_2,
           clock_timestamp() - coalesce(l.heartbeat, a.heartbeat) AS heartbeat_age, a.next_nonce, a.paused, a.paused_by, a.paused_reason,
           a.account, a.address AS account_address, a.hold, a.paused_since, a.reborn, a.life_since
    FROM txrelay.accounts a LEFT JOIN txrelay.leases l ON a.leased AND l.holder = a.claimant; -- claim_times

-- Accounts that do not move, and for how long: paused by whomever, nodes refuse what is first in line, or what was signed
-- elsewhere waits for nonces below its own. Two probes of an index an account.
CREATE VIEW txrelay.blocked_accounts AS
    SELECT a.alias AS account, '0x' || encode(a.account_id, 'hex') AS account_id,
           least(a.paused_since, p.blocked_since, s.waits_since) AS since, coalesce(p.nonce, s.nonce) AS nonce,
           coalesce(p.id, s.id) AS id, coalesce(p.state::text, 'queued') AS state,
           coalesce(a.paused_reason, p.error, CASE WHEN p.blocked_since IS NULL THEN s.waits END,
               (SELECT r.error FROM txrelay.refusals r WHERE r.account = a.account AND r.nonce = p.nonce
                ORDER BY r.last_at DESC LIMIT 1)) AS reason, a.paused, a.paused_by, a.hold
    FROM txrelay.accounts a LEFT JOIN LATERAL (SELECT x.nonce, x.id, x.state, x.error, x.blocked_since
        FROM txrelay.pending_transactions x WHERE x.account = a.account ORDER BY x.account, x.nonce LIMIT 1) p ON true
    LEFT JOIN LATERAL (SELECT x.nonce, x.id, x.waits, x.waits_since FROM txrelay.outbox_signed x
        WHERE x.account = a.account AND x.nonce > coalesce(a.next_nonce, -1) AND x.waits IS NOT NULL
        ORDER BY x.account, x.nonce LIMIT 1) s ON true
    WHERE a.paused OR p.blocked_since IS NOT NULL OR s.id IS NOT NULL;

CREATE FUNCTION txrelay.status(id bigint) RETURNS SETOF txrelay.transactions
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
    SELECT * FROM transactions t WHERE t.id = status.id
$$;

-- cancelled: it was in the outbox and has ended. requested: it has a nonce; its leader signs nothing new for it, puts a
-- filler in its place once its bytes cannot be included any more, and records cancelled; if it gets in first the
-- record is what the chain says. finished: it had ended before.
CREATE FUNCTION txrelay.cancel(id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
DECLARE
    v_account int;
BEGIN
    -- Twice: it may go back to the outbox between the looks at the one and at the other table.
    FOR v_turn IN 1..2 LOOP
        -- Admission and this delete meet on the row's lock: one of them gets it, the other one sees that it is gone.
        IF outbox_end(NULL, ARRAY[cancel.id], ARRAY['cancelled']::tx_outcome[], ARRAY['cancelled by '
                      || session_user], NULL) = 1
           OR signed_end(NULL, ARRAY[cancel.id], ARRAY['cancelled']::tx_outcome[], ARRAY['cancelled by '
                         || session_user], NULL) = 1 THEN
            RETURN 'cancelled';
        END IF;
        v_account := (pending_of(cancel.id)).account;
        IF v_account IS NOT NULL THEN
            PERFORM cancel_check(cancel.id);
            INSERT INTO cancellations (id, account, asked_by) VALUES (cancel.id, v_account, session_user)
                ON CONFLICT DO NOTHING;
            -- Whether its leader sleeps or not: a leader that is busy would only look at its next poll.
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

-- The tip that a bump leads to, checked. p_current: what it pays, or would pay, now.
CREATE FUNCTION txrelay.bumped_tip(p_tip numeric, p_current numeric, p_max_tip numeric, p_policy jsonb) RETURNS numeric
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
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

-- A higher tip. queued: it waits in the outbox and will pay it from its first attempt on. requested: it has a nonce; its
-- leader signs it anew at the nonce, unless its bytes get in first. finished: it had ended before. tip NULL: the next
-- step of the account's policy, cut at the cap.
CREATE FUNCTION txrelay.bump(id bigint, tip numeric DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    v_row record;
    v_tip numeric;
BEGIN
    PERFORM bump_check(bump.id);
    FOR v_turn IN 1..2 LOOP -- as in cancel
        -- An admission that is under way is waited for. One that comes later finds another version of the row than it
        -- read, and still gives it the lower tip: the row in bumps outlives it.
        SELECT o.account, o.tip, o.max_tip, a.policy INTO v_row FROM outbox o JOIN accounts a ON a.account = o.account
            WHERE o.id = bump.id FOR UPDATE OF o;
        IF FOUND THEN
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

-- The highest tip that was asked for stays.
CREATE FUNCTION txrelay.bump_ask(p_id bigint, p_account int, p_tip numeric) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
    INSERT INTO bumps AS b (id, account, tip, asked_by) VALUES (p_id, p_account, p_tip, session_user)
        ON CONFLICT (id) DO UPDATE SET tip = excluded.tip, asked_by = excluded.asked_by,
            created_at = excluded.created_at WHERE b.tip < excluded.tip
$$;

-- Every attempt that was signed for a transaction, at whatever nonce, oldest first, with all that nodes or the chain had
-- against it: one row for each attempt and different error.
CREATE FUNCTION txrelay.history(id bigint)
RETURNS TABLE (nonce bigint, attempt int, hash text, tip numeric, filler boolean, outcome text, state text, reason text,
    error text, error_count int, spec_version bigint, era_death bigint, created_at timestamptz, ended_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
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

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA txrelay FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA txrelay FROM PUBLIC;
GRANT EXECUTE ON FUNCTION txrelay.queue_look TO txrelay_relay;
GRANT SELECT ON txrelay.transactions, txrelay.leader_state, txrelay.blocked_accounts TO txrelay_app, txrelay_relay;
GRANT EXECUTE ON FUNCTION txrelay.enqueue, txrelay.enqueue_many, txrelay.cancel, txrelay.bump, txrelay.status,
    txrelay.history TO txrelay_app, txrelay_relay;
