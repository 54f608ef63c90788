-- txrelay 0004: the leader's reads and writes. All take the epoch and begin with the fence (0003).
--
-- Writes are set-based: parallel arrays, one element a row, thousands of rows a call. A batch is all or nothing: a row
-- that is not there any more is TR002 (read again, build again), what would break an order is TR003 (a relay's bug).
-- NULL or -1 in p_births and p_deaths: immortal.
--
-- A session keeps its plans for hours, and one that was made while a table was empty must still fit at a million rows
-- (a plain join of array and table did not: 5,000 rows took 44 s). So the plan is given by the statement: the array is
-- the outer side, LATERAL with OFFSET 0 or LIMIT looks each row up by its key, the row is then written by its ctid.
-- Nobody moves the row in between: the fence lets in one writer. Only bump may, in the outbox: then the row is not found
-- and the batch is built again (TR002).

CREATE FUNCTION txrelay.order_error(p_message text, p_hint text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR003', MESSAGE = p_message, HINT = p_hint;
END
$$;

CREATE FUNCTION txrelay.batch_changed(p_function text, p_what text, p_found bigint, p_given int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR002',
        MESSAGE = format('%s: %s of %s rows are still in %s', p_function, p_found, p_given, p_what),
        HINT = 'Rows changed since they were read; nothing was written. Read them again and build the batch again.';
END
$$;

CREATE FUNCTION txrelay.other_version(p_function text, a txrelay.accounts, p_version bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR002',
        MESSAGE = format('%s: signed under transaction version %s, and account %s signs under %s', p_function, p_version,
            a.alias, a.transaction_version),
        HINT = 'Calls that were made before may mean something else now. leader_pause with transaction_version; an '
            'operator judges, and account_resume accepts the new one.';
END
$$;

-- The length that all of the arrays have. A NULL array counts as another length.
CREATE FUNCTION txrelay.batch_size(p_function text, VARIADIC p_lengths int[]) RETURNS int
LANGUAGE plpgsql AS $$ -- as fence: a part of its callers
BEGIN
    IF (p_lengths[1] = ALL (p_lengths)) IS NOT TRUE THEN
        PERFORM txrelay.bad_argument(p_function, 'arrays', 'have the lengths ' || array_to_string(p_lengths, ', ', 'NULL')
            || '; they must be the same', 'Give one element per row in every array.');
    END IF;
    RETURN p_lengths[1];
END
$$;

-- One element per nonce, no nonce twice.
CREATE FUNCTION txrelay.check_nonces(p_function text, p_nonces bigint[]) RETURNS void
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

-- What followers are told: text by hand, because json_build_object looks up how to write each of its arguments for every
-- row (a third of a status update's time). Without a search_path of their own they are a part of their caller.
CREATE FUNCTION txrelay.change_text(p_account_id bytea, p_nonce bigint, p_hash bytea, p_state txrelay.tx_state,
    p_creator text, p_at timestamptz, p_id bigint, p_block_hash bytea) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT pg_catalog.concat('{"account_id":"0x', pg_catalog.encode(p_account_id, 'hex'), '","nonce":', p_nonce,
        ',"hash":"0x', pg_catalog.encode(p_hash, 'hex'), '","state":"', p_state, '","creator_id":',
        COALESCE(pg_catalog.to_json(p_creator)::text, 'null'), ',"updated_at":"',
        pg_catalog.to_char(pg_catalog.timezone('UTC', p_at), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '","id":',
        COALESCE(p_id::text, 'null'),
        CASE WHEN p_block_hash IS NOT NULL THEN pg_catalog.concat(',"block_hash":"0x', pg_catalog.encode(p_block_hash, 'hex'),
            '"') END, '}')
$$;

-- p_outcome NULL: it goes on elsewhere.
CREATE FUNCTION txrelay.removal_text(p_account_id bytea, p_nonce bigint, p_id bigint, p_outcome txrelay.tx_outcome)
RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT pg_catalog.concat('{"account_id":"0x', pg_catalog.encode(p_account_id, 'hex'), '","nonce":', p_nonce, ',"id":',
        COALESCE(p_id::text, 'null'),
        CASE WHEN p_outcome IS NOT NULL THEN pg_catalog.concat(',"outcome":"', p_outcome, '"') END, '}')
$$;

-- The account's own facts for a load. This and leader_snapshot take the row's lock: a write of a session that is gone may
-- still be on its way to its commit, and would come after the reading. What they read is read after the wait.
CREATE FUNCTION txrelay.leader_account(p_account int, p_epoch bigint)
RETURNS TABLE (next_nonce bigint, used_nonce bigint, used_block bigint, seen_block bigint, reconcile_from bigint, paused boolean, hold text, reborn boolean,
    transaction_version bigint, tip_start numeric, tip_step numeric, tip_cap numeric, tip_step_percent int,
    tip_after_blocks int, skip_after_blocks int, requeue_usurped boolean, low_balance numeric)
LANGUAGE plpgsql SECURITY DEFINER ROWS 1 SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
BEGIN
    RETURN QUERY SELECT a.next_nonce, a.used_nonce, a.used_block,
        greatest(c.seen_block, a.used_block), a.reconcile_from, f.* FROM account_facts(a) f, claim_times(a) c;
END
$$;

-- Pending rows above p_after_nonce (-1: all) in nonce order, with the bytes of the current attempt and the hashes of
-- the other attempts at the same nonce, which may still be the ones that get in: first those with a call of their own
-- (so many: earlier_own), then the fillers that were to stop one. earlier_death: where the last of their eras ends, -1: one
-- is immortal. Those of a row that was signed elsewhere are its own alone: it may be at a nonce that another one used.
CREATE TYPE txrelay.earlier_attempts AS (hashes bytea[], own int, death bigint);
CREATE FUNCTION txrelay.leader_snapshot(p_account int, p_epoch bigint, p_after_nonce bigint, p_limit int)
RETURNS TABLE (nonce bigint, id bigint, state text, hash bytea, attempt int, extrinsic bytea, call bytea,
    block_hash bytea, block_number bigint, era_birth bigint, era_death bigint, spec_version bigint,
    transaction_version bigint, tip numeric, block bigint, earlier bytea[], earlier_own int, earlier_death bigint,
    unknown boolean,
    priority int, deadline timestamptz, creator text, created_at timestamptz, admitted_at timestamptz, guard bigint,
    max_tip numeric, deadline_block bigint, retries int, filler int, stop_outcome text, stop_reason text, signed boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    PERFORM fence(p_account, p_epoch, 'update');
    RETURN QUERY
    SELECT p.nonce, p.id, p.state::text, p.hash, p.attempt, t.extrinsic, p.call, p.block_hash, p.block_number,
           t.era_birth, t.era_death, t.spec_version, t.transaction_version, t.tip, t.block,
           coalesce((p.earlier).hashes, '{}'), coalesce((p.earlier).own, 0), coalesce((p.earlier).death, 0),
           p.unknown, p.priority, p.deadline, p.creator, p.created_at, p.admitted_at, p.guard,
           p.max_tip, p.deadline_block, p.retries, t.filler, p.stop_outcome::text, p.stop_reason, p.signed
    FROM (SELECT x.*, CASE WHEN x.attempt > 1 THEN -- few rows: what they cost is not for all to pay
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

-- Rows that may get a nonce now, in the order in which they should: priority, then id. None while the account is
-- paused, none whose deadline has passed. At most 16 MiB of calls at a time, but always one row: less than p_limit does
-- not mean that this was all.
CREATE FUNCTION txrelay.leader_outbox(p_account int, p_epoch bigint, p_limit int)
RETURNS TABLE (id bigint, call bytea, priority int, deadline timestamptz, creator text, created_at timestamptz,
    attempts int, guard bigint, tip numeric, max_tip numeric, deadline_block bigint, retries int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    a accounts := fence(p_account, p_epoch, 'read');
    v_now timestamptz := clock_timestamp();
BEGIN
    IF a.paused THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH ripe AS MATERIALIZED (
        (SELECT o.* FROM outbox o WHERE o.account = p_account AND o.not_before IS NULL
            AND (o.deadline IS NULL OR o.deadline > v_now) ORDER BY o.account, o.priority DESC, o.id LIMIT p_limit)
        UNION ALL
        (SELECT o.* FROM outbox o WHERE o.account = p_account AND o.not_before <= v_now
            AND (o.deadline IS NULL OR o.deadline > v_now) ORDER BY o.priority DESC, o.id LIMIT p_limit)
    ), row_of AS (
        SELECT r.*, sum(octet_length(r.call)) OVER (ORDER BY r.priority DESC, r.id) - octet_length(r.call) AS before
        FROM ripe r
    )
    SELECT r.id, r.call, r.priority, r.deadline, r.creator, r.created_at, r.attempts, r.guard, r.tip, r.max_tip,
        r.deadline_block, r.retries FROM row_of r
        WHERE r.before < 16777216 ORDER BY r.priority DESC, r.id LIMIT p_limit;
END
$$;

-- The account's facts in a number (63 bits): another one says that they changed.
CREATE FUNCTION txrelay.account_mark(a txrelay.accounts) RETURNS bigint
LANGUAGE sql STABLE AS $$ -- asked for thousands at once: without a search_path of its own it is a part of its caller
    SELECT pg_catalog.jsonb_hash_extended(a.policy, COALESCE(a.transaction_version, -1)
            OPERATOR(pg_catalog.#) CASE WHEN a.paused THEN 4611686018427387904 ELSE 0 END
            OPERATOR(pg_catalog.#) CASE WHEN a.reborn THEN 2305843009213693952 ELSE 0 END
            OPERATOR(pg_catalog.#) COALESCE(pg_catalog.hashtextextended(a.hold, 0), 0))
        OPERATOR(pg_catalog.&) 9223372036854775807
$$;

-- Until then, in ms that are over when it has come. A part of its callers, as the next one is.
CREATE FUNCTION txrelay.left_ms(p_time timestamptz) RETURNS bigint
LANGUAGE sql AS $$
    SELECT CASE WHEN p_time IS NOT NULL THEN pg_catalog.int8(GREATEST(0, pg_catalog.ceil(EXTRACT(epoch FROM
        p_time OPERATOR(pg_catalog.-) pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 1000))) END
$$;

-- Whether anybody cancelled or bumped; whether a row that had waited for its time may be admitted now; and when the next
-- deadline (one that has passed, too) or not_before comes, of all and of what waits in the outbox.
CREATE FUNCTION txrelay.look_times(p_account int, p_now timestamptz)
RETURNS TABLE (asked boolean, ripe boolean, next timestamptz, next_outbox timestamptz)
LANGUAGE sql STABLE ROWS 1 AS $$
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

-- What the database's clock and the applications say. Outbox rows whose deadline has passed end as expired here, as do
-- cancelled ones that came back from a lost nonce. One row for each pending transaction that is to be stopped, with
-- the outcome it ends with if none of its bytes gets in, and one (outcome NULL) for each that is to pay a higher tip,
-- with the least that its next attempt is to pay; at least one row (nonce NULL), because every row also says whether a
-- row that had waited for its time may be admitted now (ripe), in how many ms the next deadline or not_before comes
-- (next_ms, NULL: none), the account's facts, and their mark. Writes only when there is something to end.
CREATE FUNCTION txrelay.leader_look(p_account int, p_epoch bigint)
RETURNS TABLE (nonce bigint, id bigint, outcome text, error text, tip numeric, ripe boolean, next_ms bigint, mark bigint,
    paused boolean, hold text, reborn boolean, transaction_version bigint, tip_start numeric, tip_step numeric,
    tip_cap numeric, tip_step_percent int, tip_after_blocks int, skip_after_blocks int, requeue_usurped boolean,
    low_balance numeric)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
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
    v_ripe boolean;
    v_next timestamptz;
BEGIN
    SELECT x.asked, x.ripe, x.next INTO v_asked, v_ripe, v_next FROM look_times(p_account, v_now) x;
    IF NOT v_asked AND (v_next > v_now) IS NOT FALSE THEN -- nearly always
        RETURN QUERY SELECT NULL::bigint, NULL::bigint, NULL, NULL, NULL::numeric, v_ripe AND NOT a.paused,
            left_ms(v_next), account_mark(a), f.* FROM account_facts(a) f;
        RETURN;
    END IF;
    SELECT array_agg(e.id), array_agg(e.outcome), array_agg(e.error) INTO v_ids, v_outcomes, v_errors FROM (
        SELECT c.id, 'cancelled'::tx_outcome AS outcome, 'cancelled by ' || c.asked_by AS error
        FROM cancellations c CROSS JOIN LATERAL (SELECT FROM outbox x WHERE x.id = c.id LIMIT 1) o
        WHERE c.account = p_account
        UNION ALL
        (SELECT o.id, 'expired'::tx_outcome, format('the deadline %s passed before it was sent', o.deadline)
        FROM outbox o WHERE o.account = p_account AND o.deadline <= v_now
            AND NOT EXISTS (SELECT FROM cancellations c WHERE c.id = o.id)
        ORDER BY o.account, o.deadline LIMIT 1000)) e;
    IF v_ids IS NOT NULL THEN
        PERFORM fence(p_account, p_epoch, 'update');
        PERFORM outbox_end(p_account, v_ids, v_outcomes, v_errors, p_epoch);
    END IF;
    v_ids := ARRAY(SELECT c.id FROM cancellations c WHERE c.account = p_account AND (pending_of(c.id)).id IS NULL
        AND (SELECT x.id FROM outbox x WHERE x.id = c.id LIMIT 1) IS NULL);
    IF cardinality(v_ids) > 0 THEN
        PERFORM fence(p_account, p_epoch, 'update');
        DELETE FROM cancellations c WHERE c.id = ANY (v_ids);
    END IF;
    -- A bump is done with when it is paid, as far as the caps let it be, or when its transaction has ended. One that was
    -- raised since it was read stays.
    SELECT array_agg(b.id), array_agg(b.tip) INTO v_ids, v_tips FROM bumps b
        CROSS JOIN LATERAL (SELECT p.max_tip, (SELECT t.tip FROM attempts t WHERE t.account = p.account
            AND t.nonce = p.nonce AND t.number = p.attempt) AS tip FROM pending_of(b.id) p OFFSET 0) p
        WHERE b.account = p_account AND CASE WHEN p.tip IS NOT NULL THEN p.tip >= least(b.tip, p.max_tip, v_cap)
            ELSE (SELECT x.id FROM outbox x WHERE x.id = b.id LIMIT 1) IS NULL END;
    IF v_ids IS NOT NULL THEN
        PERFORM fence(p_account, p_epoch, 'update');
        DELETE FROM bumps b USING unnest(v_ids, v_tips) d (id, tip) WHERE b.id = d.id AND b.tip = d.tip;
    END IF;
    SELECT x.ripe, least(x.next_outbox, (SELECT min(p.deadline) FROM pending_transactions p WHERE p.account = p_account
        AND p.deadline > v_now)) INTO v_ripe, v_next FROM look_times(p_account, v_now) x;
    RETURN QUERY
    SELECT s.nonce, s.id, s.outcome, s.error, s.tip, v_ripe AND NOT a.paused, left_ms(v_next), account_mark(a), f.*
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

-- The accounts that have anything that leader_outbox or leader_look read, from the lowest number on, p_most of them: one
-- probe of each index for each such account, however many accounts and rows there are. outbox_deadline holds none that the
-- other two indexes of the outbox do not.
CREATE FUNCTION txrelay.accounts_with_work(p_most bigint) RETURNS int[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
BEGIN
    RETURN ARRAY(
        WITH RECURSIVE found (account, n) AS (
            SELECT -2147483648, 0::bigint
            UNION ALL
            SELECT least(
                (SELECT min(o.account) FROM outbox o WHERE o.account > f.account AND o.not_before IS NULL),
                (SELECT min(o.account) FROM outbox o WHERE o.account > f.account AND o.not_before IS NOT NULL),
                (SELECT min(s.account) FROM outbox_signed s WHERE s.account > f.account),
                (SELECT min(p.account) FROM pending_transactions p WHERE p.account > f.account AND p.deadline IS NOT NULL),
                (SELECT min(c.account) FROM cancellations c WHERE c.account > f.account),
                (SELECT min(b.account) FROM bumps b WHERE b.account > f.account)), f.n + 1
            FROM found f WHERE f.account IS NOT NULL AND f.n < p_most
        )
        SELECT f.account FROM found f WHERE f.n > 0 AND f.account IS NOT NULL);
END
$$;

-- Which of these accounts want something (element by element: the epoch that the caller leads them under, and the mark of
-- the facts that it knows; NULL: none, so that other ones say nothing). One question a second for all that a relay leads, in
-- place of a look and a poll for each of them. Writes nothing and decides nothing: it says what to ask for. lost: not led
-- under this epoch any more, as every other function would say by TR001. look: leader_look has something to say: a
-- cancellation, a bump, a deadline that has passed, other facts. ripe: leader_outbox has a row, or one that was signed
-- elsewhere waits: for what, the chain knows. next_ms: the next deadline
-- or not_before, where it comes within p_ahead_ms. An account with none of these is left out. In the order of the question.
CREATE FUNCTION txrelay.leader_due(p_accounts int[], p_epochs bigint[], p_marks bigint[], p_ahead_ms int)
RETURNS TABLE (account int, lost boolean, look boolean, ripe boolean, next_ms bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_ahead timestamptz := v_now + p_ahead_ms * interval '1 ms';
    v_timeline int := timeline();
    v_most int := batch_size('leader_due', cardinality(p_accounts), cardinality(p_epochs), cardinality(p_marks)) / 2 + 10;
    v_busy int[] := accounts_with_work(v_most);
    v_all boolean := cardinality(v_busy) >= v_most; -- where so many have work each is probed, whoever has some
BEGIN
    RETURN QUERY
    SELECT a.account, NOT a.led, a.led AND (a.changed OR coalesce(d.asked OR d.late, false)),
        a.led AND NOT a.paused AND coalesce(d.ripe, false),
        CASE WHEN a.led AND d.next <= v_ahead THEN ceil(extract(epoch FROM d.next - v_now) * 1000) END::bigint
    FROM (SELECT b.account, b.n, coalesce(t.led, false) AS led, t.paused, coalesce(t.mark <> b.mark, false) AS changed,
            v_all OR b.account IN (SELECT unnest(v_busy)) AS busy -- hashed once
        FROM unnest(p_accounts, p_epochs, p_marks) WITH ORDINALITY b (account, epoch, mark, n)
        LEFT JOIN LATERAL (SELECT x.epoch = b.epoch AND x.claimant IS NOT NULL AND x.timeline = v_timeline AS led,
            x.paused, account_mark(x) AS mark FROM accounts x WHERE x.account = b.account OFFSET 0) t ON true
        OFFSET 0) a
    LEFT JOIN LATERAL (SELECT
        EXISTS (SELECT FROM cancellations c WHERE c.account = a.account) OR EXISTS (SELECT FROM bumps m
            WHERE m.account = a.account AND NOT EXISTS (SELECT FROM outbox o WHERE o.id = m.id)) AS asked,
        least(q.deadline, p.deadline) <= v_now AS late,
        EXISTS (SELECT FROM outbox o WHERE o.account = a.account AND o.not_before IS NULL
            AND (o.deadline IS NULL OR o.deadline > v_now)) OR EXISTS (SELECT FROM outbox o WHERE o.account = a.account
            AND o.not_before <= v_now AND (o.deadline IS NULL OR o.deadline > v_now))
            OR EXISTS (SELECT FROM outbox_signed s WHERE s.account = a.account) AS ripe,
        least(CASE WHEN q.deadline > v_now THEN q.deadline END, CASE WHEN p.deadline > v_now THEN p.deadline END,
            (SELECT min(o.not_before) FROM outbox o WHERE o.account = a.account AND o.not_before > v_now)) AS next
        FROM (SELECT min(o.deadline) AS deadline FROM outbox o WHERE o.account = a.account AND o.deadline IS NOT NULL) q,
            (SELECT min(x.deadline) AS deadline FROM pending_transactions x WHERE x.account = a.account
                AND x.deadline IS NOT NULL) p
        WHERE a.busy OFFSET 0) d ON true
    WHERE NOT a.led OR a.changed OR d.asked OR d.late OR (d.ripe AND NOT a.paused) OR d.next <= v_ahead
    ORDER BY a.n;
END
$$;

-- Give nonces: outbox -> pending_transactions and attempts. The nonces go up by one from the account's next nonce (or
-- from above its last pending one while that is not known): no gap and no reuse gets past the database. A row whose
-- deadline has passed since it was read is as good as gone (TR002). So is every row once the chain has another
-- transaction version than the one that was accepted: the calls may mean something else.
CREATE FUNCTION txrelay.leader_admit(p_account int, p_epoch bigint, p_ids bigint[], p_nonces bigint[],
    p_hashes bytea[], p_extrinsics bytea[], p_tips numeric[], p_births bigint[], p_deaths bigint[],
    p_spec_version bigint, p_transaction_version bigint, p_block bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
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
        PERFORM order_error(format('leader_admit: account %s is not reconciled with the chain from block %s on', a.alias,
            a.reconcile_from), 'Commits may be lost. leader_adopt what the chain and the pools hold, then admit.');
    END IF;
    -- Nonces that were never used have no attempts: one look at all of them.
    v_fresh := NOT EXISTS (SELECT FROM attempts t WHERE t.account = p_account
        AND t.nonce BETWEEN p_nonces[1] AND p_nonces[v_count]);
    WITH moved AS (
        DELETE FROM outbox o USING unnest(p_ids, p_nonces, p_hashes, p_extrinsics, p_tips, p_births, p_deaths)
                b (id, nonce, hash, extrinsic, tip, birth, death)
            CROSS JOIN LATERAL (SELECT x.ctid AS at FROM outbox x WHERE x.id = b.id AND x.account = p_account
                AND (x.deadline IS NULL OR x.deadline > clock_timestamp()) OFFSET 0) x
        WHERE o.ctid = x.at
        RETURNING o.*, b.nonce, b.hash, b.extrinsic, b.tip AS pays, b.birth, b.death, CASE WHEN v_fresh THEN 1
            ELSE (SELECT coalesce(max(t.number), 0) + 1 FROM attempts t WHERE t.account = p_account AND t.nonce = b.nonce)
            END AS number
    ), pending AS (
        INSERT INTO pending_transactions (account, nonce, account_id, id, call, hash, attempt, attempts, state, epoch,
            key, creator, priority, deadline, guard, tip, max_tip, deadline_block, retries, created_at)
        SELECT p_account, m.nonce, a.account_id, m.id, m.call, m.hash, m.number, m.attempts + 1, 'signed', p_epoch,
            m.key, m.creator, m.priority, m.deadline, m.guard, m.tip, m.max_tip, m.deadline_block, m.retries, m.created_at
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
        PERFORM batch_changed('leader_admit', 'the outbox', v_found, v_count);
    END IF;
    RETURN p_nonces[1] + v_count;
END
$$;

-- New bytes at the same nonce (new era, tip, runtime). The former attempt ends as replaced, with the reason; its
-- hash may still be the one that gets in. To stop a transaction while its bytes could still be included, sign a filler
-- as such an attempt: p_fillers (the length of its call), p_outcomes and p_stop_reasons (how the transaction ends if the
-- filler gets in); leader_finish tells by the hash which of the two it was. For its own call the elements are NULL (or the
-- arrays); that is not signed under another transaction version than the accepted one. Returns the number of rows.
CREATE FUNCTION txrelay.leader_attempt(p_account int, p_epoch bigint, p_nonces bigint[], p_hashes bytea[],
    p_extrinsics bytea[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_spec_version bigint,
    p_transaction_version bigint, p_block bigint, p_reasons text[], p_fillers int[] DEFAULT NULL,
    p_outcomes text[] DEFAULT NULL, p_stop_reasons text[] DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
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
    -- The outcome of the former one first, while its number can still be read. One that a status has ended keeps that.
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

-- What nodes said. Only the row whose current attempt has the hash changes; of another attempt only its own record
-- (S15). A nonce that has ended is left alone: late events are no error. A hash that was never recorded for a pending
-- nonce is one. Of several elements for one hash the last counts. The state 'unknown' says that nobody knows whether
-- the bytes arrived: the state stays, the row counts as mid-submission until the next status. 'refused': a node refused
-- the bytes with this error; the state stays as well, the error is written down and counted, and the row is blocked until
-- something better is heard of it. Returns the number of rows that changed.
CREATE FUNCTION txrelay.leader_state(p_account int, p_epoch bigint, p_nonces bigint[], p_hashes bytea[],
    p_states text[], p_block_hashes bytea[], p_block_numbers bigint[], p_errors text[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
    v_count int := batch_size('leader_state', cardinality(p_nonces), cardinality(p_hashes), cardinality(p_states),
        cardinality(p_block_hashes), cardinality(p_block_numbers), cardinality(p_errors));
    v_changed bigint;
    v_refused bigint := 0;
    v_wrong boolean;
    v_other boolean;
    v_ends boolean;
    v_twice boolean;
    v_at tid[];
    v_said tx_state[];
    v_bad record;
BEGIN
    -- One walk finds the rows, and tells whether anything but the usual is in the batch: one status each of current attempts
    -- that live.
    SELECT bool_or(u.state IS NULL OR u.state = 'signed' OR u.block_hash IS NULL
            AND u.state IN ('in_block', 'retracted', 'finality_timeout', 'finalized')),
        bool_or(p.hash IS DISTINCT FROM u.hash AND p.hash IS NOT NULL),
        bool_or(p.unknown OR u.state IN ('dropped', 'invalid', 'usurped', 'unknown')
            OR p.state IN ('dropped', 'invalid', 'usurped')),
        count(DISTINCT u.nonce) < count(*),
        array_agg(CASE WHEN p.hash = u.hash AND u.state <> 'refused' THEN p.at END),
        array_agg(CASE WHEN u.state NOT IN ('unknown', 'refused', 'signed') THEN u.state::tx_state END)
        INTO v_wrong, v_other, v_ends, v_twice, v_at, v_said
    FROM unnest(p_nonces, p_hashes, p_states, p_block_hashes) u (nonce, hash, state, block_hash)
        LEFT JOIN LATERAL (SELECT x.ctid AS at, x.hash, x.state, x.unknown FROM pending_transactions x
            WHERE x.account = p_account AND x.nonce = u.nonce OFFSET 0) p ON true;
    IF v_wrong THEN
        SELECT u.* INTO v_bad FROM unnest(p_nonces, p_states, p_block_hashes) u (nonce, state, block_hash)
            WHERE u.state IS NULL OR u.state = 'signed' OR (u.block_hash IS NULL
                AND u.state IN ('in_block', 'retracted', 'finality_timeout', 'finalized')) LIMIT 1;
        IF v_bad.state IS NOT DISTINCT FROM 'signed' THEN
            PERFORM order_error(format('leader_state: nonce %s cannot go back to signed', v_bad.nonce),
                'leader_attempt records new bytes.');
        END IF;
        PERFORM bad_argument('leader_state', 'p_block_hashes', format('is NULL for nonce %s with state %s', v_bad.nonce,
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
            PERFORM order_error(format('leader_state: nonce %s has no attempt 0x%s', v_bad.nonce,
                coalesce(encode(v_bad.hash, 'hex'), 'NULL')), 'Nothing may be sent that was not recorded first.');
        END IF;
    END IF;
    IF v_other OR v_ends THEN
        PERFORM attempts_note(p_account, p_nonces, p_hashes, p_states, p_block_hashes, p_block_numbers, p_errors);
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
    IF NOT p_states && '{refused,unknown}' THEN
        -- The commit does not wait for the disk: what a crash of the server takes along, the chain says again. An answer of a
        -- node, and that there was none, nobody says again.
        PERFORM set_config('synchronous_commit', 'off', true);
    ELSIF 'refused' = ANY (p_states) THEN
        v_refused := refusals_note(p_account, p_epoch, p_nonces, p_hashes, p_states, p_errors);
    END IF;
    RETURN v_changed + v_refused;
END
$$;

-- What a batch of leader_state says of attempts that are not current, and of current ones whose outcome changes by it.
CREATE FUNCTION txrelay.attempts_note(p_account int, p_nonces bigint[], p_hashes bytea[], p_states text[],
    p_block_hashes bytea[], p_block_numbers bigint[], p_errors text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
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
          WHERE u.state <> 'refused'
          ORDER BY u.nonce, u.hash, u.n DESC) b
        CROSS JOIN LATERAL (SELECT y.attempt FROM pending_transactions y WHERE y.account = p_account
            AND y.nonce = b.nonce AND (y.hash <> b.hash OR b.outcome <> 'live' OR y.unknown
                                       OR y.state IN ('dropped', 'invalid', 'usurped')) OFFSET 0) p
        CROSS JOIN LATERAL (SELECT x.ctid AS at FROM attempts x WHERE x.account = p_account AND x.nonce = b.nonce
            AND x.hash = b.hash AND (x.number < p.attempt OR x.outcome <> b.outcome) OFFSET 0) x
    WHERE t.ctid = x.at;
END
$$;

-- The refusals of a batch of leader_state: every one is counted, of whichever attempt. The row itself is blocked where
-- the refusal is the last thing that the batch says of its current attempt.
CREATE FUNCTION txrelay.refusals_note(p_account int, p_epoch bigint, p_nonces bigint[], p_hashes bytea[],
    p_states text[], p_errors text[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_changed bigint;
BEGIN
    INSERT INTO refusals AS r (account, nonce, number, error, count, first_at, last_at)
    SELECT p_account, b.nonce, t.number, b.error, b.count, v_now, v_now
    FROM (SELECT u.nonce, u.hash, left(coalesce(u.error, 'refused'), 500) AS error, count(*) AS count
          FROM unnest(p_nonces, p_hashes, p_states, p_errors) u (nonce, hash, state, error)
          WHERE u.state = 'refused' GROUP BY 1, 2, 3) b
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
          ORDER BY u.nonce, u.hash, u.n DESC) b
        CROSS JOIN LATERAL (SELECT x.ctid AS at FROM pending_transactions x WHERE x.account = p_account
            AND x.nonce = b.nonce AND x.hash = b.hash AND x.state <> 'finalized' OFFSET 0) x
    WHERE p.ctid = x.at AND b.state = 'refused';
    GET DIAGNOSTICS v_changed = ROW_COUNT;
    RETURN v_changed;
END
$$;

-- The end of nonces. ok and dispatch_error name the finalized block and any attempt's hash of the nonce: that one was
-- included. With another outcome the block may be missing (the nonce was lost to a foreign extrinsic, or given back);
-- with one, the included attempt was a filler in the transaction's place: what the hash belongs to decides.
-- The state change is notified before the row leaves. Returns the number of rows.
CREATE FUNCTION txrelay.leader_finish(p_account int, p_epoch bigint, p_nonces bigint[], p_hashes bytea[],
    p_block_hashes bytea[], p_block_numbers bigint[], p_indexes int[], p_outcomes text[], p_errors text[],
    p_fees numeric[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
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
                v_bad.given), 'The own call ends as ok or dispatch_error, a filler never.');
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

-- Notes which nonces finalized blocks have used for good. Of one that somebody else used the number says as of when.
-- In plpgsql, which keeps its plans: this is asked once a batch.
CREATE FUNCTION txrelay.nonces_used(p_account int, p_nonces bigint[], p_block_hashes bytea[], p_block_numbers bigint[],
    p_outcomes text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_nonce bigint;
    v_number bigint;
BEGIN
    SELECT max(b.nonce), max(b.number) INTO v_nonce, v_number
        FROM unnest(p_nonces, p_block_hashes, p_block_numbers, p_outcomes) b (nonce, block_hash, number, outcome)
        WHERE b.block_hash IS NOT NULL OR b.outcome = 'usurped';
    UPDATE accounts t SET used_nonce = greatest(t.used_nonce, v_nonce + 1), used_block = greatest(t.used_block, v_number)
        WHERE t.account = p_account AND (v_nonce >= coalesce(t.used_nonce, 0) OR v_number > coalesce(t.used_block, -1));
END
$$;

-- pending -> finished, in one statement: a row that is on its way out is not written once more. What the block held is
-- any recorded attempt of the row; a row whose end does not fit to it is left where it is, so what comes back are the
-- nonces that ended. If the attempt that was included belongs to a transaction that had ended before (leader_fill while
-- its bytes could still get in), the record of the nonce says so: such an effect must never be without a trace.
-- Followers hear the last change of the state, and that the row is gone. In plpgsql, which keeps its plans: making this
-- one takes longer than ten rows do.
CREATE FUNCTION txrelay.nonces_end(p_account int, p_epoch bigint, p_nonces bigint[], p_hashes bytea[],
    p_block_hashes bytea[], p_block_numbers bigint[], p_indexes int[], p_outcomes text[], p_errors text[], p_fees numeric[])
RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
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
               AND (p.id IS NULL OR (t.filler IS NULL) = (b.outcome IN ('ok', 'dispatch_error'))))
          AND (p.state <> 'finalized' OR (p.hash, p.block_hash) IS NOT DISTINCT FROM (b.hash, b.block))
        RETURNING p.account, p.nonce, p.account_id, p.id, p.hash, p.attempt, p.attempts, p.state, p.block_hash, p.error, p.key,
            p.creator, CASE WHEN b.outcome <> 'ok' AND p.id IS NOT NULL THEN p.call END AS call, p.created_at, p.admitted_at,
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
                           WHEN g.outcome = 'usurped' THEN 'usurped' ELSE 'dropped' END::attempt_outcome
        FROM gone g CROSS JOIN LATERAL (SELECT x.ctid AS at FROM attempts x WHERE x.account = p_account
            AND x.nonce = g.nonce AND (x.outcome IN ('live', 'unknown') OR x.hash = g.last OR x.number = g.attempt)
            OFFSET 0) x
        WHERE t.ctid = x.at
    ), ended AS (
        INSERT INTO finished_transactions (id, account, nonce, hash, block_hash, block_number, extrinsic_index, state,
            outcome, error, fee, attempts, epoch, key, creator, call, created_at, admitted_at, in_block_at, finished_at)
        SELECT g.id, g.account, g.nonce, g.last, g.block, g.number, g.index, g.becomes, g.outcome,
            coalesce((SELECT format('the attempt that was included belongs to transaction %s, which had ended before', t.id)
                      FROM attempts t WHERE g.id IS NULL AND g.block IS NOT NULL AND t.account = p_account
                      AND t.nonce = g.nonce AND t.hash = g.last AND t.id IS NOT NULL LIMIT 1)
                     || coalesce(': ' || g.ended_by, ''), g.ended_by),
            g.fee, g.attempts, p_epoch, g.key, g.creator, g.call,
            g.created_at, g.admitted_at, coalesce(g.in_block_at, CASE WHEN g.block IS NOT NULL THEN v_now END),
            (SELECT clock_timestamp()) -- once (the index of times is written once), and not before the table is locked:
        FROM gone g ORDER BY g.nonce   -- that is what follow_position looks for
    ), told AS (
        SELECT g.nonce, CASE WHEN v_tell AND (g.becomes, g.last, g.block) IS DISTINCT FROM (g.state, g.hash, g.block_hash)
                THEN pg_notify('pending_tx_update', change_text(g.account_id, g.nonce, g.last, g.becomes, g.creator, v_now,
                    g.id, g.block))::text END,
            CASE WHEN v_tell THEN pg_notify('pending_tx_removed', removal_text(g.account_id, g.nonce, g.id, g.outcome))::text
                END
        FROM gone g
    )
    SELECT array_agg(t.nonce) INTO v_ended FROM told t;
    RETURN coalesce(v_ended, '{}');
END
$$;

-- Outbox rows that can never get a nonce: they end with a reason. Returns the number of rows.
CREATE FUNCTION txrelay.leader_reject(p_account int, p_epoch bigint, p_ids bigint[], p_outcomes text[], p_errors text[])
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
    v_count int := batch_size('leader_reject', cardinality(p_ids), cardinality(p_outcomes), cardinality(p_errors));
    v_found bigint;
BEGIN
    IF 'ok' = ANY (p_outcomes) OR 'dispatch_error' = ANY (p_outcomes) THEN
        PERFORM order_error('leader_reject: ok and dispatch_error are outcomes of the chain',
            'A transaction without a nonce ends as expired, cancelled, failed or usurped.');
    END IF;
    v_found := outbox_end(p_account, p_ids, p_outcomes::tx_outcome[], p_errors, p_epoch)
        + signed_end(p_account, p_ids, p_outcomes::tx_outcome[], p_errors, p_epoch);
    IF v_found <> v_count THEN
        PERFORM batch_changed('leader_reject', 'the outbox', v_found, v_count);
    END IF;
    RETURN v_found;
END
$$;

-- The nonce is used up and the transaction did not take effect: it goes back to the outbox with its id, its options, its
-- place and its history, and gets another nonce. usurped: a foreign extrinsic used the nonce. dispatch_error: its own
-- attempt did, which must have the hash; that takes one of its retries. failed: the nonce belongs to a former life of
-- the account. The nonce leaves a record of its own (id NULL, requeued: whose it was). Returns the number of rows.
CREATE FUNCTION txrelay.leader_requeue(p_account int, p_epoch bigint, p_nonces bigint[], p_hashes bytea[],
    p_block_hashes bytea[], p_block_numbers bigint[], p_indexes int[], p_outcomes text[], p_errors text[],
    p_fees numeric[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
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
            state, outcome, error, fee, attempts, epoch, creator, created_at, admitted_at, in_block_at)
        SELECT g.id, g.account, g.nonce, coalesce(g.included, g.hash), g.end_block, g.end_number, g.index,
            CASE g.end_outcome WHEN 'dispatch_error' THEN 'finalized' WHEN 'usurped' THEN 'usurped' ELSE g.state END,
            g.end_outcome, g.end_error, g.fee, g.attempts, p_epoch, g.creator, g.created_at, g.admitted_at,
            coalesce(g.in_block_at, CASE WHEN g.included IS NOT NULL THEN clock_timestamp() END)
        FROM gone g ORDER BY g.nonce
    ), back AS (
        INSERT INTO outbox (id, account, call, key, creator, priority, deadline, guard, tip, max_tip, deadline_block,
            retries, attempts, created_at)
        SELECT g.id, g.account, g.call, g.key, g.creator, g.priority, g.deadline, g.guard, g.tip, g.max_tip,
            g.deadline_block, g.retries - (g.included IS NOT NULL)::int, g.attempts, g.created_at
        FROM gone g
    )
    SELECT count(*), count(CASE WHEN v_tell
            THEN pg_notify('pending_tx_removed', removal_text(g.account_id, g.nonce, g.id, NULL))::text END)
        INTO v_found, v_told FROM gone g;
    IF v_found <> v_count THEN
        PERFORM batch_changed('leader_requeue', 'pending_transactions', v_found, v_count);
    END IF;
    PERFORM nonces_used(p_account, p_nonces, p_block_hashes, p_block_numbers, p_outcomes);
    RETURN v_found;
END
$$;

-- Fillers. What has the nonce now ends with the outcome, a filler (id NULL) takes its place; a nonce without a row gets
-- one. Only for bytes that cannot be included any more (era dead, never sent): a terminal record does not change. While
-- old bytes may still get in, use leader_attempt with the filler's bytes. A fill may continue the nonces, not skip any.
-- Returns the account's next nonce.
CREATE FUNCTION txrelay.leader_fill(p_account int, p_epoch bigint, p_nonces bigint[], p_calls bytea[],
    p_hashes bytea[], p_extrinsics bytea[], p_tips numeric[], p_births bigint[], p_deaths bigint[],
    p_spec_version bigint, p_transaction_version bigint, p_block bigint, p_outcomes text[], p_errors text[])
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
    v_count int := batch_size('leader_fill', cardinality(p_nonces), cardinality(p_calls), cardinality(p_hashes),
        cardinality(p_extrinsics), cardinality(p_tips), cardinality(p_births), cardinality(p_deaths),
        cardinality(p_outcomes), cardinality(p_errors));
    v_next bigint := a.next_nonce;
    v_above bigint[];
    v_bad record;
BEGIN
    PERFORM check_nonces('leader_fill', p_nonces);
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

-- The next nonce as found on the chain. Never at or below a pending one. Lower than before only when asked for (nonces
-- given back), and never below one that is known as used for good: a node that lags would make it be used twice. With
-- p_reborn a new life of a reaped account begins, as an operator ordered: the nonce is what it is, and no record from
-- before says anything about it.
CREATE FUNCTION txrelay.leader_nonce(p_account int, p_epoch bigint, p_next bigint, p_lower boolean DEFAULT false,
    p_reborn boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
    v_last bigint := last_pending(p_account);
BEGIN
    IF p_next IS NULL OR p_next < 0 OR (p_next <= v_last AND p_reborn IS NOT TRUE) THEN
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
        UPDATE accounts t SET next_nonce = p_next, used_nonce = NULL, used_block = NULL, reborn = false,
            life_since = clock_timestamp() WHERE t.account = p_account;
        PERFORM signed_end(p_account, s.ids, array_fill('failed'::tx_outcome, ARRAY[cardinality(s.ids)]),
            array_fill('the account was reaped: it may be of the former life'::text, ARRAY[cardinality(s.ids)]), p_epoch)
            FROM (SELECT array_agg(o.id) AS ids FROM outbox_signed o WHERE o.account = p_account) s WHERE s.ids IS NOT NULL;
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

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA txrelay FROM PUBLIC;
GRANT EXECUTE ON FUNCTION txrelay.leader_account, txrelay.leader_snapshot, txrelay.leader_outbox, txrelay.leader_admit,
    txrelay.leader_attempt, txrelay.leader_state, txrelay.leader_finish, txrelay.leader_reject, txrelay.leader_requeue,
    txrelay.leader_fill, txrelay.leader_nonce, txrelay.leader_look, txrelay.leader_due TO txrelay_relay;
