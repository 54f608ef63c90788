-- txrelay: where a transaction is, and every attempt at it.

-- A pending row by its id, and the last nonce in use. After VACUUM saw a table empty, the planner
-- finds every index equally cheap, and a session keeps its plans: a plan with the wrong index later
-- reads every row. The ORDER BY matches only the right index (test/schema/test_plans.py).
CREATE OR REPLACE FUNCTION txrelay.pending_of(p_id bigint) RETURNS txrelay.pending_transactions
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
DECLARE
    p pending_transactions;
BEGIN
    SELECT * INTO p FROM pending_transactions x WHERE x.id = p_id ORDER BY x.id LIMIT 1;
    RETURN p;
END
$$;

CREATE OR REPLACE FUNCTION txrelay.last_pending(p_account int) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
BEGIN
    RETURN (SELECT p.nonce FROM pending_transactions p WHERE p.account = p_account
        ORDER BY p.account DESC, p.nonce DESC LIMIT 1);
END
$$;

-- At which of its places a transaction is. Each probe has one index that it can use, so this is
-- planned once.
CREATE OR REPLACE FUNCTION txrelay.places_of(p_id bigint, OUT outbox boolean,
    OUT presigned boolean, OUT pending boolean, OUT site boolean,
    OUT finished boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    SELECT EXISTS (SELECT FROM outbox o WHERE o.id = p_id),
        EXISTS (SELECT FROM outbox_presigned o WHERE o.id = p_id),
        EXISTS (SELECT FROM pending_transactions p WHERE p.id = p_id),
        EXISTS (SELECT FROM site_transactions p WHERE p.id = p_id),
        EXISTS (SELECT FROM finished_transactions f WHERE f.id = p_id)
        INTO places_of.outbox, places_of.presigned, places_of.pending, places_of.site,
        places_of.finished;
END
$$;

-- A transaction by its id, or by the hash of any extrinsic that was signed for it (0x and 64
-- hexadecimal digits). Its row shows the hash of the current attempt, which may be another one. No
-- row: this database has no such transaction, or no attempt with that hash (any more). One function
-- with two names of arguments, because with two functions Postgres takes status($1) of a driver
-- that sends no type for the one with a text.
--
-- This and history are planned at each call. A plan that was made while tables were empty would
-- read all of their rows later. Applications ask again and again, and to plan the view transactions
-- takes several times as long as to read a row: so this plans only the place where the row is.
CREATE OR REPLACE FUNCTION txrelay.status(id bigint DEFAULT NULL, hash text DEFAULT NULL)
    RETURNS SETOF txrelay.transactions
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    v_id bigint := status.id;
    v_hash bytea;
    v_attempt attempts;
    w record;
BEGIN
    IF status.hash IS NOT NULL THEN
        IF status.id IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'TR011',
                MESSAGE = 'status: hash is given, and so is id', HINT = 'Give one of the two.';
        ELSIF status.hash !~* '^0x[0-9a-f]{64}$' THEN
            RAISE EXCEPTION USING ERRCODE = 'TR011',
                MESSAGE = format('status: hash is %s; it must be 0x and 64 hexadecimal digits',
                quote_literal(left(status.hash, 80))),
                HINT = 'It is the hash of an extrinsic. A transaction''s id is a number.';
        END IF;
        v_hash := decode(substr(status.hash, 3), 'hex');
        SELECT * INTO v_attempt FROM attempts t WHERE t.hash = v_hash
            ORDER BY t.created_at DESC LIMIT 1;
        IF NOT FOUND THEN
            v_id := (SELECT s.id FROM outbox_presigned s WHERE s.hash = v_hash LIMIT 1);
        ELSIF v_attempt.id IS NOT NULL THEN
            v_id := v_attempt.id;
        ELSE -- a filler
            RETURN QUERY SELECT * FROM transactions t WHERE t.id IS NULL
                AND t.nonce = v_attempt.nonce
                AND t.account = (SELECT a.alias FROM accounts a
                                 WHERE a.account = v_attempt.account);
            RETURN;
        END IF;
    END IF;
    w := places_of(v_id);
    IF w.outbox THEN
        RETURN QUERY SELECT * FROM place_outbox t WHERE t.id = v_id;
    END IF;
    IF w.presigned THEN
        RETURN QUERY SELECT * FROM place_presigned t WHERE t.id = v_id;
    END IF;
    IF w.pending THEN
        RETURN QUERY SELECT * FROM place_pending t WHERE t.id = v_id;
    END IF;
    IF w.site THEN
        RETURN QUERY SELECT * FROM place_site t WHERE t.id = v_id;
    END IF;
    IF w.finished THEN
        RETURN QUERY SELECT * FROM place_finished t WHERE t.id = v_id;
    END IF;
END
$$;

-- Every attempt at a transaction, at whatever nonce, oldest first. Each attempt has one row for
-- every different answer to a submission that was no acceptance, with their number, for every error
-- that the chain reported, and for every block that held it and was retracted.
CREATE OR REPLACE FUNCTION txrelay.history(id bigint)
RETURNS TABLE (nonce bigint, attempt int, hash text, tip numeric, filler boolean, outcome text,
    state text, reason text, error text, error_count int, spec_version bigint, era_death bigint,
    created_at timestamptz, ended_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off
SET plan_cache_mode = force_custom_plan AS $$
    WITH place AS (
        SELECT p.account, p.nonce, p.attempt, p.state, p.error FROM pending_of(history.id) p
            WHERE p.id IS NOT NULL
        UNION ALL
        SELECT s.account, s.nonce, s.attempt, s.state, s.error FROM site_transactions s
        WHERE s.id = history.id
        UNION ALL
        (SELECT DISTINCT f.account, f.nonce, NULL::int, NULL::tx_state, NULL::text FROM (
            SELECT x.account, x.nonce FROM finished_transactions x WHERE x.id = history.id
            UNION ALL
            SELECT x.account, x.nonce FROM finished_transactions x WHERE x.requeued = history.id) f
        WHERE f.nonce IS DISTINCT FROM coalesce((SELECT p.nonce FROM pending_of(history.id) p),
            (SELECT s.nonce FROM site_transactions s WHERE s.id = history.id)))
    ), tried AS (
        SELECT t.*, CASE WHEN t.number = p.attempt THEN p.state ELSE t.state END AS last_state,
            CASE WHEN t.number = p.attempt THEN coalesce(p.error, t.error)
            ELSE t.error END AS last_error
        FROM place p JOIN attempts t ON t.account = p.account AND t.nonce = p.nonce
            AND t.id = history.id
    )
    SELECT t.nonce, t.number, '0x' || encode(t.hash, 'hex'), t.tip, t.filler IS NOT NULL,
    t.outcome::text,
        t.last_state::text, t.reason, e.error, e.count, t.spec_version, t.era_death, t.created_at,
        t.ended_at
    FROM tried t LEFT JOIN LATERAL (
        SELECT r.error, r.count, r.first_at FROM refusals r
            WHERE r.account = t.account AND r.nonce = t.nonce AND r.number = t.number
        UNION ALL
        SELECT t.last_error, 1, coalesce(t.error_at, t.ended_at) WHERE t.last_error IS NOT NULL
            AND NOT EXISTS (SELECT FROM refusals r WHERE r.account = t.account AND r.nonce = t.nonce
                AND r.number = t.number AND r.error = left(t.last_error, 500))) e ON true
    ORDER BY t.created_at, t.nonce, t.number, e.first_at, e.error
$$;

-- How many transactions of an account (NULL: of each) are where, when the oldest of those that were
-- counted was enqueued, and what they paid. Of each account this counts at most `most` rows that
-- wait, as many that have a nonce, and as many of the latest ends, each by an index, so it takes
-- the same time whatever the tables hold; `more`: there are more. What waits is counted in the
-- order of its admission.
CREATE OR REPLACE FUNCTION txrelay.counts(account text DEFAULT NULL, most int DEFAULT 10000)
RETURNS TABLE (alias text, stage text, state text, count bigint, more boolean, oldest timestamptz,
               fee numeric)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    v_account int;
    v_hint text;
BEGIN
    IF counts.account IS NOT NULL THEN
        BEGIN
            v_account := account_of(counts.account);
        EXCEPTION WHEN SQLSTATE 'TR000' THEN
            GET STACKED DIAGNOSTICS v_hint = PG_EXCEPTION_HINT;
            RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = SQLERRM, HINT = v_hint;
        END;
    END IF;
    IF most IS NULL OR most NOT BETWEEN 1 AND 1000000 THEN
        RAISE EXCEPTION USING ERRCODE = 'TR011',
            MESSAGE = format('counts: most is %s; it must be 1 to 1000000',
            coalesce(most::text, 'NULL')),
            HINT = 'It bounds how many rows of each account are read.';
    END IF;
    RETURN QUERY
        SELECT a.alias, r.stage, r.state, count(*), bool_or(r.total > counts.most),
        min(r.created_at), sum(r.fee)
        FROM accounts a CROSS JOIN LATERAL (
            SELECT 'outbox' AS stage, 'queued' AS state, w.created_at, NULL::numeric AS fee,
                row_number() OVER () AS place, count(*) OVER () AS total
            FROM (
                (SELECT o.created_at FROM outbox o WHERE o.account = a.account
                    AND o.not_before IS NULL
                    ORDER BY o.account, o.priority DESC, o.id LIMIT counts.most + 1)
                UNION ALL
                (SELECT o.created_at FROM outbox o WHERE o.account = a.account
                    AND o.not_before IS NOT NULL
                    ORDER BY o.account, o.not_before LIMIT counts.most + 1)
                UNION ALL
                (SELECT s.created_at FROM outbox_presigned s WHERE s.account = a.account
                    ORDER BY s.account, s.nonce, s.id LIMIT counts.most + 1)) w
            UNION ALL
            SELECT 'pending', p.state::text, p.created_at, NULL, row_number() OVER (),
            count(*) OVER ()
            FROM (
                (SELECT t.state, t.created_at FROM pending_transactions t
                    WHERE t.account = a.account AND t.id IS NOT NULL
                    ORDER BY t.account, t.nonce LIMIT counts.most + 1)
                UNION ALL
                (SELECT t.state, t.created_at FROM site_transactions t WHERE t.account = a.account
                    ORDER BY t.account, t.nonce LIMIT counts.most + 1)) p
            UNION ALL
            SELECT 'finished', f.outcome::text, f.created_at, f.fee, row_number() OVER (),
            count(*) OVER ()
            FROM (
                (SELECT t.outcome, t.created_at, t.fee FROM finished_transactions t
                    WHERE t.account = a.account AND t.id IS NOT NULL
                    AND t.nonce IS NOT NULL ORDER BY t.account DESC,
                    t.nonce DESC LIMIT counts.most + 1)
                UNION ALL
                (SELECT t.outcome, t.created_at, t.fee FROM finished_transactions t
                    WHERE t.account = a.account
                    AND t.nonce IS NULL LIMIT counts.most + 1)) f) r
        WHERE (v_account IS NULL OR a.account = v_account) AND r.place <= counts.most
        GROUP BY 1, 2, 3
        ORDER BY 1, array_position(ARRAY['outbox', 'pending', 'finished'], r.stage), 3;
END
$$;
