-- txrelay: webhooks: who gets which outcomes, what is still to be delivered, and what was given up.

CREATE OR REPLACE FUNCTION txrelay.webhook_row(p_name text) RETURNS txrelay.webhooks
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    w webhooks;
BEGIN
    SELECT * INTO w FROM webhooks x WHERE x.name = p_name;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'TR010',
            MESSAGE = format('no such webhook: %s',
                             coalesce('"' || left(p_name, 80) || '"', 'NULL')),
            HINT = 'txrelay webhook list lists them.';
    END IF;
    RETURN w;
END
$$;

-- Makes a webhook: the ends of these accounts (NULL: all) with these outcomes (NULL: all) from now
-- on are posted to the URL.
CREATE OR REPLACE FUNCTION txrelay.webhook_create(name text, url text,
                                                  accounts text[] DEFAULT NULL,
                                                  outcomes text[] DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_bad text := (SELECT u.o FROM unnest(webhook_create.outcomes) u (o) WHERE u.o IS NULL
        OR u.o <> ALL (enum_range(NULL::tx_outcome)::text[]) ORDER BY u.o NULLS FIRST LIMIT 1);
    v_accounts int[];
BEGIN
    IF (webhook_create.name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$') IS NOT TRUE THEN
        PERFORM bad_argument('webhook_create', 'name',
            format('is %s; it must have 1 to 64 letters, digits, dots, dashes and '
            'underscores', coalesce('"' || left(webhook_create.name, 80) || '"', 'NULL')),
            'For example shop.');
    ELSIF (webhook_create.url ~ '^https?://[][A-Za-z0-9]' AND webhook_create.url !~ '[^!-~]'
           AND webhook_create.url !~ '#'
           AND octet_length(webhook_create.url) <= 2000) IS NOT TRUE THEN
        PERFORM bad_argument('webhook_create', 'url',
            format('is %s; it must be https://HOST[:PORT]/PATH, of at most 2000 characters',
            coalesce('"' || left(webhook_create.url, 80) || '"', 'NULL')),
            'Escape other characters as %XX.');
    ELSIF webhook_create.url ~ '^https?://[^/?]*@' THEN
        PERFORM bad_argument('webhook_create', 'url', 'has a user or password',
                             'The receiver checks the signature instead.');
    ELSIF cardinality(webhook_create.accounts) = 0 OR cardinality(webhook_create.outcomes) = 0
          OR array_position(webhook_create.outcomes, NULL) IS NOT NULL OR v_bad IS NOT NULL THEN
        PERFORM bad_argument('webhook_create', CASE WHEN cardinality(webhook_create.accounts) = 0
            THEN 'accounts' ELSE 'outcomes' END,
            CASE WHEN v_bad IS NULL THEN 'is empty, or has a NULL'
            ELSE format('has "%s"', left(v_bad, 80)) END,
            'NULL: all. The outcomes are ' || array_to_string(enum_range(NULL::tx_outcome),
                ', ') || '.');
    END IF;
    IF webhook_create.accounts IS NOT NULL THEN
        v_accounts := ARRAY(SELECT DISTINCT account_of(u.a)
                            FROM unnest(webhook_create.accounts) u (a) ORDER BY 1);
    END IF;
    -- Ends of the last webhook's time are not those of this one.
    PERFORM FROM webhook_position p FOR UPDATE;
    IF NOT EXISTS (SELECT FROM webhooks) THEN
        UPDATE webhook_position p SET read_to = steady_clock();
    END IF;
    INSERT INTO webhooks (name, url, accounts, outcomes, salt, created_by, created_at)
        VALUES (webhook_create.name, webhook_create.url, v_accounts, webhook_create.outcomes,
            decode(replace(gen_random_uuid()::text, '-', ''), 'hex'), session_user, steady_clock())
            ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        PERFORM bad_argument('webhook_create', 'name',
            format('is "%s", and there is a webhook of that name', webhook_create.name),
            'webhook_remove removes it.');
    END IF;
    PERFORM operation_note('webhook_create', NULL, NULL, webhook_create.name, '{}', NULL,
                           'created');
END
$$;

-- Removes a webhook and what it has not delivered. Returns how many deliveries that were.
CREATE OR REPLACE FUNCTION txrelay.webhook_remove(name text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    w webhooks := webhook_row(webhook_remove.name);
    v_before jsonb := operation_before('webhook_remove', NULL, NULL, w.name);
    v_count bigint;
BEGIN
    DELETE FROM webhook_deliveries d WHERE d.webhook = w.name;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    DELETE FROM webhooks x WHERE x.name = w.name;
    PERFORM operation_note('webhook_remove', NULL, NULL, w.name, '{}', v_before, v_count::text);
    RETURN v_count;
END
$$;

-- Delivers nothing until webhook_resume. Ends are kept meanwhile.
CREATE OR REPLACE FUNCTION txrelay.webhook_pause(name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    w webhooks := webhook_row(webhook_pause.name);
    v_before jsonb := operation_before('webhook_pause', NULL, NULL, w.name);
BEGIN
    UPDATE webhooks x SET paused = true WHERE x.name = w.name;
    PERFORM operation_note('webhook_pause', NULL, NULL, w.name, '{}', v_before, 'paused');
END
$$;

CREATE OR REPLACE FUNCTION txrelay.webhook_resume(name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    w webhooks := webhook_row(webhook_resume.name);
    v_before jsonb := operation_before('webhook_resume', NULL, NULL, w.name);
BEGIN
    UPDATE webhooks x SET paused = false WHERE x.name = w.name;
    UPDATE webhook_deliveries d SET due_at = clock_timestamp() WHERE d.webhook = w.name
        AND d.dead_at IS NULL
        AND d.due_at > clock_timestamp();
    PERFORM operation_note('webhook_resume', NULL, NULL, w.name, '{}', v_before, 'resumed');
END
$$;

-- Gives a webhook another secret. For a day its deliveries are signed with both.
CREATE OR REPLACE FUNCTION txrelay.webhook_rotate(name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    w webhooks := webhook_row(webhook_rotate.name);
    v_before jsonb := operation_before('webhook_rotate', NULL, NULL, w.name);
BEGIN
    UPDATE webhooks x SET salt_before = x.salt,
        salt = decode(replace(gen_random_uuid()::text, '-', ''), 'hex'),
        rotated_at = clock_timestamp() WHERE x.name = w.name;
    PERFORM operation_note('webhook_rotate', NULL, NULL, w.name, '{}', v_before, 'rotated');
END
$$;

-- Delivers again what was given up: all of it, or that of one number. Each goes in the order of its
-- number, and so before newer ones of its account. Returns how many.
CREATE OR REPLACE FUNCTION txrelay.webhook_again(name text, number bigint DEFAULT NULL)
    RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    w webhooks := webhook_row(webhook_again.name);
    v_before jsonb := operation_before('webhook_again', NULL, NULL, w.name);
    v_count bigint;
BEGIN
    UPDATE webhook_deliveries d SET dead_at = NULL, attempts = 0, due_at = clock_timestamp()
        WHERE d.webhook = w.name AND d.dead_at IS NOT NULL
        AND (webhook_again.number IS NULL OR d.number = webhook_again.number);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count = 0 AND webhook_again.number IS NOT NULL THEN
        PERFORM bad_argument('webhook_again', 'number',
            format('is %s, and webhook %s has not given up such a delivery',
            webhook_again.number, w.name), 'txrelay webhook dead lists them.');
    END IF;
    PERFORM operation_note('webhook_again', NULL, NULL, w.name,
        jsonb_build_object('number', webhook_again.number), v_before,
        v_count::text);
    RETURN v_count;
END
$$;

-- Makes the deliveries of ends that nobody has looked at: at most 1000 ends, in the order in which
-- readers see them. If another session is about it, it does nothing. An end before the creation of
-- a webhook is not delivered.
CREATE OR REPLACE FUNCTION txrelay.webhook_look() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
DECLARE
    v_most CONSTANT int := 1000;
    v_from timestamptz;
    v_to timestamptz;
    v_end timestamptz;
    v_last timestamptz;
BEGIN
    IF NOT EXISTS (SELECT FROM webhooks) THEN
        RETURN;
    END IF;
    SELECT p.read_to INTO v_from FROM webhook_position p FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    v_end := timestamptz 'epoch' + follow_position() * interval '1 microsecond';
    -- Five minutes at a time, so that what is sorted stays small.
    LOOP
        v_to := least(v_end, v_from + interval '5 min');
        EXIT WHEN v_to >= v_end OR EXISTS (SELECT FROM finished_transactions f
                                           WHERE f.finished_at >= v_from AND f.finished_at < v_to);
        v_from := v_to;
    END LOOP;
    SELECT f.finished_at INTO v_last FROM finished_transactions f WHERE f.finished_at >= v_from
        AND f.finished_at < v_to
        ORDER BY f.finished_at OFFSET v_most LIMIT 1;
    IF FOUND AND v_last > v_from THEN
        v_to := v_last; -- a batch of one time stays whole
    ELSIF FOUND THEN
        v_to := v_last + interval '1 microsecond';
    END IF;
    INSERT INTO webhook_deliveries (webhook, account, id, body)
    SELECT w.name, f.account, f.id, json_build_object('type', 'transaction.ended', 'timestamp',
            f.finished_at, 'data',
            json_build_object('id', f.id, 'account', a.alias, 'outcome', f.outcome, 'nonce',
                f.nonce,
                'hash', '0x' || encode(f.hash, 'hex'), 'block_number', f.block_number,
                'block_hash', '0x' || encode(f.block_hash, 'hex'),
                'extrinsic_index', f.extrinsic_index, 'fee', f.fee::text, 'error', f.error, 'key',
                f.key, 'creator', f.creator,
                'created_at', f.created_at))::text
    FROM finished_transactions f JOIN accounts a ON a.account = f.account JOIN webhooks w
        ON (w.accounts IS NULL OR f.account = ANY (w.accounts))
        AND (w.outcomes IS NULL OR f.outcome::text = ANY (w.outcomes))
        AND f.finished_at >= w.created_at
    WHERE f.finished_at >= v_from AND f.finished_at < v_to AND f.id IS NOT NULL
    ORDER BY f.finished_at, f.account, coalesce(f.nonce, -1), f.id, w.name;
    UPDATE webhook_position p SET read_to = v_to WHERE p.read_to < v_to;
END
$$;

-- What a relay may deliver now: for each webhook at most p_accounts accounts that it leads whose
-- first delivery is due, and the next deliveries of each in order, at most p_each. Where it begins
-- among the accounts is chance, so that none is kept waiting by the others. First it looks for new
-- ends. The last row has no webhook. due_ms: until the first one of those that wait is due; NULL:
-- none waits. live: how many webhooks there are.
CREATE OR REPLACE FUNCTION txrelay.leader_webhooks(p_holder text, p_each int, p_accounts int)
RETURNS TABLE (webhook text, account int, number bigint, id bigint, attempts int, url text,
    salt bytea, salt_before bytea, body text, due_ms bigint, live bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz;
    v_due timestamptz;
    v_start int;
    v_account int;
    v_taken int;
    v_turned boolean;
    w record;
    d record;
BEGIN
    PERFORM webhook_look();
    v_now := clock_timestamp();
    v_start := floor(random() * (SELECT coalesce(max(a.account), 0) FROM accounts a));
    FOR w IN SELECT x.*, x.rotated_at > v_now - interval '1 day' AS both_salts FROM webhooks x
        WHERE NOT x.paused ORDER BY x.name
    LOOP
        v_account := v_start;
        v_taken := 0;
        v_turned := false;
        WHILE v_taken < p_accounts LOOP
            -- The next account of which something waits: one probe of the index each.
            SELECT x.account, x.due_at INTO d FROM webhook_deliveries x
                WHERE x.webhook = w.name AND x.dead_at IS NULL AND x.account > v_account
                ORDER BY x.webhook, x.account, x.number LIMIT 1;
            IF NOT FOUND AND NOT v_turned THEN
                v_account := -1;
                v_turned := true;
                CONTINUE;
            END IF;
            EXIT WHEN NOT FOUND OR (v_turned AND d.account > v_start);
            v_account := d.account;
            CONTINUE WHEN NOT EXISTS (SELECT FROM leadership l WHERE l.subject = v_account
                                      AND l.holder = p_holder);
            IF d.due_at > v_now THEN
                v_due := least(v_due, d.due_at);
                CONTINUE;
            END IF;
            v_taken := v_taken + 1;
            RETURN QUERY SELECT x.webhook, x.account, x.number, x.id, x.attempts, w.url, w.salt,
                CASE WHEN w.both_salts THEN w.salt_before END, x.body, NULL::bigint, NULL::bigint
                FROM webhook_deliveries x WHERE x.webhook = w.name AND x.account = v_account
                AND x.dead_at IS NULL
                ORDER BY x.webhook, x.account, x.number LIMIT p_each;
        END LOOP;
    END LOOP;
    webhook := NULL;
    due_ms := (extract(epoch FROM v_due - v_now) * 1000)::bigint;
    live := (SELECT count(*) FROM webhooks);
    RETURN NEXT;
END
$$;

-- What became of deliveries: those that were taken leave; one that failed is due again after its
-- delay, or is given up. An answer stays true under any leader, so no epoch is asked for. Returns
-- how many rows there were.
CREATE OR REPLACE FUNCTION txrelay.leader_webhooks_done(p_taken bigint[], p_failed bigint,
                                                        p_error text, p_delay_ms bigint,
                                                        p_dead boolean)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
DECLARE
    v_taken bigint;
    v_failed bigint;
BEGIN
    DELETE FROM webhook_deliveries d WHERE d.number = ANY (p_taken);
    GET DIAGNOSTICS v_taken = ROW_COUNT;
    UPDATE webhook_deliveries d SET attempts = d.attempts + 1, error = left(p_error, 300),
        due_at = clock_timestamp() + coalesce(p_delay_ms, 0) * interval '1 ms',
        dead_at = CASE WHEN p_dead THEN clock_timestamp() END
        WHERE d.number = p_failed AND d.dead_at IS NULL;
    GET DIAGNOSTICS v_failed = ROW_COUNT;
    RETURN v_taken + v_failed;
END
$$;
