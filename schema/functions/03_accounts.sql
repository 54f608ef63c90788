-- txrelay: accounts: names, registration, and the facts that a leader acts on.

-- Checks the columns that seldom change. It is a trigger because Postgres prepares every CHECK for
-- each statement that updates a row, whatever it updates: ten of them were a fifth of the cost of a
-- small admission.
CREATE OR REPLACE FUNCTION txrelay.accounts_check() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_bad text := CASE
        WHEN NEW.alias !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$' OR NEW.alias ~ '^0x' THEN 'alias'
        WHEN octet_length(NEW.account_id) NOT IN (20, 32) THEN 'account_id'
        WHEN NEW.scheme NOT IN ('sr25519', 'ed25519', 'ecdsa', 'ethereum') THEN 'scheme'
        WHEN octet_length(NEW.genesis) <> 32 THEN 'genesis'
        WHEN length(NEW.address) NOT BETWEEN 1 AND 128 THEN 'address'
        WHEN NEW.paused_by NOT IN ('leader', 'operator')
        OR NEW.paused <> (NEW.paused_by IS NOT NULL) THEN 'paused_by'
        WHEN NEW.suspension NOT IN ('payment', 'reaped', 'signing', 'transaction_version')
            OR CASE WHEN NEW.suspension IS NULL THEN NEW.paused_by = 'leader'
            ELSE NOT NEW.paused END THEN 'suspension' END;
BEGIN
    IF v_bad IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', SCHEMA = 'txrelay', TABLE = 'accounts',
            COLUMN = v_bad,
            CONSTRAINT = 'accounts_check', MESSAGE = format('account %s: %s is not allowed: %s',
                NEW.alias, v_bad,
                coalesce(to_jsonb(NEW) ->> v_bad, 'NULL')),
                HINT = 'The function txrelay.accounts_check says what is.';
    END IF;
    RETURN NEW;
END
$$;

-- Decodes the SS58 address of a 32-byte account: two bytes of prefix (a one-byte prefix gets a
-- leading zero), then the account id. Returns NULL for any other text. The checksum is blake2b,
-- which Postgres lacks, so it is not verified: an id that matches a registered one proves more than
-- two bytes of checksum could.
CREATE OR REPLACE FUNCTION txrelay.ss58_bytes(p_text text) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE STRICT SECURITY DEFINER
SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_number numeric := 0;
    v_bytes bytea := decode(repeat('00', 40), 'hex');
    v_length int;
BEGIN
    IF p_text !~ '^[1-9A-HJ-NP-Za-km-z]{35,50}$' THEN
        RETURN NULL;
    END IF;
    FOR i IN 1..length(p_text) LOOP
        v_number := v_number * 58
            + strpos('123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz',
                     substr(p_text, i, 1)) - 1;
    END LOOP;
    FOR i IN REVERSE 39..0 LOOP
        v_bytes := set_byte(v_bytes, i, mod(v_number, 256)::int);
        v_number := div(v_number, 256);
    END LOOP;
    -- Base58 writes each leading zero byte as one leading 1.
    v_length := length(substring(p_text FROM '^1*')) + 40
        - length(substring(encode(v_bytes, 'hex') FROM '^(?:00)*')) / 2;
    IF v_length = 35 AND get_byte(v_bytes, 5) < 64 THEN
        RETURN decode('00', 'hex') || substr(v_bytes, 6, 33);
    ELSIF v_length = 36 AND get_byte(v_bytes, 4) BETWEEN 64 AND 127 THEN
        RETURN substr(v_bytes, 5, 34);
    END IF;
    RETURN NULL;
END
$$;

-- Returns message and hint of TR010, with the most similar names. Two names are similar if they
-- share three-letter pieces of alias or address, or bytes of the id. With three accounts or fewer
-- it lists all of them.
CREATE OR REPLACE FUNCTION txrelay.account_unknown(p_name text) RETURNS text[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_id bytea := coalesce(substr(ss58_bytes(p_name), 3),
        CASE WHEN p_name ~ '^0x([0-9a-fA-F]{2})+$' THEN decode(substr(p_name, 3), 'hex') END);
    v_near text;
BEGIN
    SELECT string_agg(near.alias, ', ' ORDER BY near.score DESC, near.alias) INTO v_near FROM (
        SELECT a.alias, greatest(
            (SELECT count(*) FROM generate_series(1, length(a.alias)) i
             WHERE strpos('  ' || lower(p_name) || ' ',
                          substr('  ' || lower(a.alias) || ' ', i, 3)) > 0)
            ::numeric / (length(a.alias) + length(p_name)),
            -- Fewer than three common pieces of an address or bytes of an id are chance.
            (SELECT greatest(count(*) - 2, 0) FROM generate_series(1, length(a.address) - 2) i
             WHERE length(p_name) > 20 AND strpos(p_name, substr(a.address, i, 3)) > 0)::numeric
             / length(a.address),
            (SELECT greatest(count(*) - 2, 0)
             FROM generate_series(0, least(octet_length(v_id), octet_length(a.account_id)) - 1) i
             WHERE get_byte(v_id, i) = get_byte(a.account_id, i))::numeric / 32) AS score
        FROM accounts a ORDER BY score DESC, a.alias LIMIT 3) near
    WHERE near.score > 0 OR (SELECT count(*) FROM accounts) <= 3;
    RETURN ARRAY[format('no such account: %s%s', coalesce('"' || left(p_name, 80) || '"', 'NULL'),
            CASE WHEN ss58_bytes(p_name) IS NOT NULL
            THEN format(', the address of account id 0x%s', encode(v_id, 'hex'))
                 WHEN p_name ~ '^(?!0x)[0-9A-Za-z]{40,60}$'
                 THEN ', which is no SS58 address of 32 bytes either' ELSE '' END),
        CASE WHEN v_near IS NOT NULL THEN 'Nearest: ' || v_near || '.'
             WHEN EXISTS (SELECT FROM accounts) THEN 'The view txrelay.leaders lists the accounts.'
             ELSE 'No account is registered yet: run txrelay register, or start a relay, with the '
                  'configuration that has it.' END];
END
$$;

-- Finds the account by alias, by 0x and the hex of its id, by its registered address, or by its
-- address with the prefix of another chain.
CREATE OR REPLACE FUNCTION txrelay.account_of(p_name text) RETURNS int
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_found int[];
    v_unknown text[];
BEGIN
    SELECT array_agg(a.account ORDER BY a.account) INTO v_found FROM accounts a
        WHERE a.alias = p_name;
    IF v_found IS NULL AND p_name ~ '^0x([0-9a-fA-F]{2})+$' THEN
        SELECT array_agg(a.account ORDER BY a.account) INTO v_found FROM accounts a
            WHERE a.account_id = decode(substr(p_name, 3), 'hex');
    END IF;
    IF v_found IS NULL THEN
        SELECT array_agg(a.account ORDER BY a.account) INTO v_found FROM accounts a
            WHERE a.address = p_name;
    END IF;
    IF v_found IS NULL THEN
        SELECT array_agg(a.account ORDER BY a.account) INTO v_found FROM accounts a
            WHERE a.account_id = substr(ss58_bytes(p_name), 3);
    END IF;
    IF cardinality(v_found) = 1 THEN
        RETURN v_found[1];
    END IF;
    IF cardinality(v_found) > 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'TR011',
                MESSAGE = format('account: "%s" means more than one account: %s', left(p_name, 80),
                (SELECT string_agg(a.alias, ', ' ORDER BY a.alias) FROM accounts a
                 WHERE a.account = ANY (v_found))),
            HINT = 'The same key is registered for several chains; use the alias.';
    END IF;
    v_unknown := account_unknown(p_name);
    RAISE EXCEPTION USING ERRCODE = 'TR010', MESSAGE = v_unknown[1], HINT = v_unknown[2];
END
$$;

-- As account_of; refuses an account whose key no relay has.
CREATE OR REPLACE FUNCTION txrelay.keyed_account(p_function text, p_name text) RETURNS int
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_account int := account_of(p_name);
BEGIN
    IF (SELECT a.watch_only FROM accounts a WHERE a.account = v_account) THEN
        PERFORM bad_argument(p_function, 'account',
            format('is "%s", whose key no relay has', left(p_name, 80)),
            'Sign the extrinsic where the key is, and pass it to enqueue_signed.');
    END IF;
    RETURN v_account;
END
$$;

-- p_era, p_immortal: the longest era that the caller may sign with, and whether it may sign without
-- one. The highest of all relays counts: after lost commits it says for how many blocks what they
-- sent can be included.
-- p_beside: the aliases of the caller's other accounts. All of them are on one chain, so a new one
-- is refused where another one is registered for another chain: the endpoint is the wrong one.
CREATE OR REPLACE FUNCTION txrelay.relay_register(p_alias text, p_account_id bytea, p_scheme text,
    p_genesis bytea, p_address text, p_lock_key bigint, p_watch_only boolean DEFAULT false,
    p_era int DEFAULT 4096,
    p_immortal boolean DEFAULT true, p_beside text[] DEFAULT '{}') RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    a record;
    v_bad text;
    v_subject int;
BEGIN
    v_bad := CASE
        WHEN p_alias IS NULL OR p_alias !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'
        OR p_alias ~ '^0x' THEN 'p_alias'
        WHEN p_account_id IS NULL OR octet_length(p_account_id) NOT IN (20, 32) THEN 'p_account_id'
        WHEN p_scheme IS NULL OR p_scheme NOT IN ('sr25519', 'ed25519', 'ecdsa', 'ethereum')
        THEN 'p_scheme'
        WHEN p_genesis IS NULL OR octet_length(p_genesis) <> 32 THEN 'p_genesis'
        WHEN p_address IS NULL OR length(p_address) NOT BETWEEN 1 AND 128 THEN 'p_address'
        WHEN p_lock_key IS NULL THEN 'p_lock_key'
        WHEN p_era IS NULL OR p_era NOT BETWEEN 4 AND 4096 THEN 'p_era'
        WHEN p_immortal IS NULL THEN 'p_immortal'
        WHEN p_beside IS NULL THEN 'p_beside' END;
    IF v_bad IS NOT NULL THEN
        PERFORM bad_argument('relay_register', v_bad, CASE v_bad
            WHEN 'p_alias'
            THEN format('is "%s"; 1 to 64 letters, digits, ".", "_", "-", not beginning with 0x',
                        p_alias)
            WHEN 'p_account_id' THEN format('has %s bytes; it must have 20 or 32',
                                            octet_length(p_account_id))
            WHEN 'p_scheme' THEN format('is "%s"; it must be sr25519, ed25519, ecdsa or ethereum',
                                        p_scheme)
            WHEN 'p_genesis' THEN format('has %s bytes; it must have 32', octet_length(p_genesis))
            WHEN 'p_address' THEN format('has %s characters; 1 to 128', length(p_address))
            WHEN 'p_era' THEN format('is %s; it must be 4 to 4096', coalesce(p_era::text, 'NULL'))
            ELSE 'is NULL' END, 'See docs/sql.md.');
    END IF;
    PERFORM repair_ids();
    SELECT t.*, l.lock_key INTO a FROM accounts t JOIN leadership l ON l.subject = t.account
        WHERE t.alias = p_alias;
    IF NOT FOUND THEN
        SELECT t.* INTO a FROM accounts t WHERE t.alias = ANY (p_beside) AND t.genesis <> p_genesis
            ORDER BY t.account LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'TR015',
                MESSAGE = format('account %s is new, and %s of the same relay is registered for '
                                 'the chain with genesis 0x%s, '
                    'not for the one with 0x%s', p_alias, a.alias, encode(a.genesis, 'hex'),
                        encode(p_genesis, 'hex')),
                HINT = 'Correct chain.endpoints or chain.genesis in the configuration; a relay '
                       'has the accounts of one chain.';
        END IF;
        BEGIN
            -- With the timeline: the first claim may be among the commits that a failover loses.
            INSERT INTO leadership (kind, lock_key, timeline)
                VALUES ('account', p_lock_key, (timelines())[1])
                ON CONFLICT DO NOTHING RETURNING subject INTO v_subject;
            IF FOUND THEN
                INSERT INTO accounts (account, alias, account_id, scheme, genesis, address,
                    watch_only, era_longest, era_immortal)
                    VALUES (v_subject, p_alias, p_account_id, p_scheme, p_genesis, p_address,
                            p_watch_only, p_era, p_immortal);
                PERFORM operation_note('register', NULL, v_subject, NULL,
                    jsonb_build_object('address', p_address), NULL, v_subject::text);
                RETURN v_subject;
            END IF;
        EXCEPTION WHEN unique_violation THEN
            NULL; -- the account has another lock key or alias; the new subject is rolled back
        END;
        SELECT t.*, l.lock_key INTO a FROM leadership l LEFT
            JOIN accounts t ON t.account = l.subject
            WHERE t.alias = p_alias OR l.lock_key = p_lock_key
            OR (t.genesis = p_genesis AND t.account_id = p_account_id)
            ORDER BY (t.alias = p_alias) IS TRUE DESC,
            (t.genesis = p_genesis AND t.account_id = p_account_id) IS TRUE DESC
            LIMIT 1;
    END IF;
    IF a.account IS NULL THEN
        PERFORM bad_argument('relay_register', 'p_lock_key',
            format('is %s for %s, and %s has the same', p_lock_key, p_alias,
                   (SELECT subject_name(l) FROM leadership l WHERE l.lock_key = p_lock_key)),
            'Two subjects with one lock could not have different leaders: choose another key.');
    ELSIF a.alias <> p_alias AND a.lock_key = p_lock_key AND a.account_id <> p_account_id THEN
        PERFORM bad_argument('relay_register', 'p_lock_key',
            format('is %s for %s, and %s has the same', p_lock_key,
            p_alias, a.alias),
            'Two accounts with one lock could not have different leaders: choose another key.');
    ELSIF a.alias <> p_alias THEN
        PERFORM bad_argument('relay_register', 'p_alias',
            format('is "%s", and this account is registered as "%s"',
            p_alias, a.alias), 'Use the registered alias in the configuration of every relay.');
    ELSIF a.account_id = p_account_id AND a.genesis <> p_genesis THEN
        RAISE EXCEPTION USING ERRCODE = 'TR015',
            MESSAGE = format('account %s is registered for the chain with genesis 0x%s, not for '
                             'the one with 0x%s', p_alias,
                encode(a.genesis, 'hex'), encode(p_genesis, 'hex')),
            HINT = 'Correct chain.endpoints or chain.genesis in the configuration, or use another '
                   'alias for another chain.';
    ELSIF a.account_id <> p_account_id THEN
        PERFORM bad_argument('relay_register', 'p_alias',
            format('"%s" is registered for id 0x%s, not for 0x%s', p_alias,
            encode(a.account_id, 'hex'), encode(p_account_id, 'hex')),
            'Use another alias, or correct the key in the configuration.');
    ELSIF a.scheme <> p_scheme THEN
        PERFORM bad_argument('relay_register', 'p_scheme',
            format('is %s, and %s is registered with %s', p_scheme,
            p_alias, a.scheme), 'Correct the key in the configuration.');
    ELSIF a.lock_key <> p_lock_key THEN
        PERFORM bad_argument('relay_register', 'p_lock_key',
            format('is %s, and %s is registered with %s', p_lock_key,
            p_alias, a.lock_key),
            'Relays with different lock keys would not see each other. Use the same everywhere; '
            'to change it, stop all relays and update txrelay.leadership as the owner.');
    ELSIF a.watch_only <> p_watch_only THEN
        PERFORM bad_argument('relay_register', 'p_watch_only',
            format('is %s, and %s is registered %s a key',
            p_watch_only, p_alias, CASE WHEN a.watch_only THEN 'without' ELSE 'with' END),
            'Give every relay the key, or none; to change it, stop all relays and update '
            'txrelay.accounts as the owner.');
    ELSIF a.address <> p_address THEN
        -- another prefix, the same key
        UPDATE accounts t SET address = p_address WHERE t.account = a.account;
    END IF;
    UPDATE accounts t SET era_longest = greatest(t.era_longest, p_era),
        era_immortal = t.era_immortal OR p_immortal
        WHERE t.account = a.account
        AND (t.era_longest < p_era OR p_immortal AND NOT t.era_immortal);
    RETURN a.account;
END
$$;

-- The facts that a leader acts on, with defaults for keys that the policy does not set. For
-- requeue_usurped and the limits in blocks, false and 0 mean never.
CREATE OR REPLACE FUNCTION txrelay.account_facts(a txrelay.accounts)
RETURNS TABLE (paused boolean, suspension text, reborn boolean, transaction_version bigint,
    tip_start numeric, tip_step numeric, tip_cap numeric, tip_step_percent int,
    tip_after_blocks int, skip_after_blocks int, requeue_usurped boolean,
    low_balance numeric, retry_refusals text)
LANGUAGE sql STABLE ROWS 1 AS $$ -- inlined into its callers
    SELECT a.paused, a.suspension, a.reborn, a.transaction_version,
        coalesce((a.policy OPERATOR(pg_catalog.->>) 'tip_start')::numeric, 0),
        coalesce((a.policy OPERATOR(pg_catalog.->>) 'tip_step')::numeric, 0),
        (a.policy OPERATOR(pg_catalog.->>) 'tip_cap')::numeric,
        coalesce((a.policy OPERATOR(pg_catalog.->>) 'tip_step_percent')::int, 0),
        coalesce((a.policy OPERATOR(pg_catalog.->>) 'tip_after_blocks')::int, 0),
        coalesce((a.policy OPERATOR(pg_catalog.->>) 'skip_after_blocks')::int, 0),
        coalesce(a.policy OPERATOR(pg_catalog.->>) 'usurped' OPERATOR(pg_catalog.=) 'requeue',
                 false),
        (a.policy OPERATOR(pg_catalog.->>) 'low_balance')::numeric,
        a.policy OPERATOR(pg_catalog.->>) 'retry_refusals'
$$;

-- A fingerprint of the account's facts (63 bits). It differs when they differ.
CREATE OR REPLACE FUNCTION txrelay.account_fingerprint(a txrelay.accounts) RETURNS bigint
-- without a search_path, so that it is inlined: one query calls it for thousands of accounts
LANGUAGE sql STABLE AS $$
    SELECT pg_catalog.jsonb_hash_extended(a.policy, COALESCE(a.transaction_version, -1)
            OPERATOR(pg_catalog.#) CASE WHEN a.paused THEN 4611686018427387904 ELSE 0 END
            OPERATOR(pg_catalog.#) CASE WHEN a.reborn THEN 2305843009213693952 ELSE 0 END
            OPERATOR(pg_catalog.#) COALESCE(pg_catalog.hashtextextended(a.suspension, 0), 0))
        OPERATOR(pg_catalog.&) 9223372036854775807
$$;
