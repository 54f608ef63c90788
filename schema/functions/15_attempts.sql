-- txrelay: attempts at a nonce: new bytes, reports of nodes, fillers. 14_admit.sql explains batches
-- and plans.

-- Records new bytes at the same nonce (new era, tip or runtime). The former attempt ends as
-- replaced, with the reason; its hash may still be the one that is included. To stop a transaction
-- whose bytes can still be included, sign a filler as such an attempt: p_fillers is the length of
-- its call, p_outcomes and p_stop_reasons say how the transaction ends if the filler is included.
-- leader_finish decides by the hash. For the transaction's own call these elements, or the arrays,
-- are NULL; it is not signed under another transaction version than the accepted one. Returns the
-- number of rows.
CREATE OR REPLACE FUNCTION txrelay.leader_attempt(p_account int, p_epoch bigint, p_nonces bigint[],
    p_hashes bytea[], p_extrinsics bytea[], p_tips numeric[], p_births bigint[], p_deaths bigint[],
    p_spec_version bigint, p_transaction_version bigint, p_block bigint, p_reasons text[],
    p_fillers int[] DEFAULT NULL, p_outcomes text[] DEFAULT NULL,
    p_stop_reasons text[] DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
    v_count int := batch_size('leader_attempt', cardinality(p_nonces), cardinality(p_hashes),
        cardinality(p_extrinsics), cardinality(p_tips), cardinality(p_births),
        cardinality(p_deaths), cardinality(p_reasons),
        coalesce(cardinality(p_fillers), cardinality(p_nonces)),
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
        CROSS JOIN LATERAL (SELECT t.number FROM attempts t WHERE t.account = p_account
            AND t.nonce = u.nonce
            AND t.hash = u.hash LIMIT 1) t LIMIT 1;
    IF FOUND THEN
        PERFORM order_error(format(
            'leader_attempt: nonce %s has these bytes already, as attempt %s', v_bad.nonce,
            v_bad.number), 'Sending the same bytes again is no new attempt.');
    END IF;
    SELECT u.* INTO v_bad FROM unnest(p_nonces, p_extrinsics, p_fillers, p_outcomes)
            u (nonce, extrinsic, filler, outcome)
        WHERE u.filler IS NOT NULL AND (u.filler NOT BETWEEN 1 AND octet_length(u.extrinsic)
            OR u.outcome IS NULL
            OR u.outcome NOT IN ('cancelled', 'expired', 'failed')) OR u.filler IS NULL
            AND u.outcome IS NOT NULL LIMIT 1;
    IF FOUND THEN
        PERFORM order_error(format(
            'leader_attempt: nonce %s with a filler of %s bytes (in %s) cannot end as %s',
            v_bad.nonce, coalesce(v_bad.filler::text, 'no'), octet_length(v_bad.extrinsic),
            coalesce(v_bad.outcome, 'NULL')),
            'A filler fits its extrinsic and stops a transaction as cancelled, expired or '
            'failed; its own call names no outcome.');
    END IF;
    SELECT p.nonce, p.id INTO v_bad FROM unnest(p_nonces, p_fillers) u (nonce, filler)
        CROSS JOIN LATERAL (SELECT x.nonce, x.id FROM pending_transactions x
            WHERE x.account = p_account
            AND x.nonce = u.nonce AND x.signed OFFSET 0) p
        WHERE u.filler IS NULL LIMIT 1;
    IF FOUND THEN
        PERFORM order_error(format(
            'leader_attempt: transaction %s at nonce %s was signed elsewhere', v_bad.id,
                v_bad.nonce),
            'Its bytes are sent again as they are, or not at all.');
    END IF;
    IF a.transaction_version <> p_transaction_version AND EXISTS (
            SELECT FROM unnest(p_nonces, p_fillers) u (nonce, filler)
            CROSS JOIN LATERAL (SELECT x.id FROM pending_transactions x WHERE x.account = p_account
                AND x.nonce = u.nonce
                OFFSET 0) p
            WHERE u.filler IS NULL AND p.id IS NOT NULL) THEN
        PERFORM other_version('leader_attempt', a, p_transaction_version);
    END IF;
    -- End the former attempt first, while its number can still be read. An outcome from a status
    -- stays.
    UPDATE attempts t SET outcome = CASE WHEN t.outcome IN ('live', 'unknown') THEN 'replaced'
        ELSE t.outcome END,
        reason = b.reason, state = p.state, block_hash = p.block_hash,
        block_number = p.block_number, error = coalesce(p.error, t.error),
        ended_at = coalesce(t.ended_at, clock_timestamp())
    FROM unnest(p_nonces, p_reasons) b (nonce, reason)
        CROSS JOIN LATERAL (SELECT * FROM pending_transactions y WHERE y.account = p_account
            AND y.nonce = b.nonce
            OFFSET 0) p
        CROSS JOIN LATERAL (SELECT x.ctid AS at FROM attempts x WHERE x.account = p_account
            AND x.nonce = b.nonce
            AND x.number = p.attempt OFFSET 0) x
    WHERE t.ctid = x.at;
    WITH again AS (
        UPDATE pending_transactions p SET hash = b.hash, attempts = p.attempts + 1,
            state = 'signed', unknown = false, attempt = p.attempt + 1, block_hash = NULL,
            block_number = NULL, error = NULL, epoch = p_epoch, stop_outcome = CASE
            WHEN b.filler IS NULL THEN p.stop_outcome ELSE b.outcome::tx_outcome END,
            stop_reason = CASE WHEN b.filler IS NULL THEN p.stop_reason ELSE b.stop_reason END,
            updated_at = clock_timestamp()
        FROM unnest(p_nonces, p_hashes, p_extrinsics, p_tips, p_births, p_deaths, p_fillers,
                    p_outcomes, p_stop_reasons)
                b (nonce, hash, extrinsic, tip, birth, death, filler, outcome, stop_reason)
            CROSS JOIN LATERAL (SELECT x.ctid AS at FROM pending_transactions x
                WHERE x.account = p_account
                AND x.nonce = b.nonce OFFSET 0) x
        WHERE p.ctid = x.at
        RETURNING p.nonce, p.attempt, p.id, b.hash, b.extrinsic, b.tip, b.birth, b.death, b.filler
    ), tried AS (
        INSERT INTO attempts (account, nonce, number, id, hash, extrinsic, tip, era_birth,
            era_death, spec_version, transaction_version, block, filler, epoch)
        SELECT p_account, g.nonce, g.attempt, g.id, g.hash, g.extrinsic, coalesce(g.tip, 0),
            nullif(g.birth, -1), nullif(g.death, -1), p_spec_version, p_transaction_version,
            p_block, g.filler, p_epoch
        FROM again g RETURNING 1
    )
    SELECT count(*) INTO v_found FROM again;
    IF v_found <> v_count THEN
        PERFORM batch_changed('leader_attempt', 'pending_transactions', v_found, v_count);
    END IF;
    RETURN v_found;
END
$$;

-- Records what nodes reported. A row changes only if the hash is that of its current attempt; a
-- report about another attempt changes that attempt's record alone. Late reports about a nonce that
-- has ended are ignored. A hash that was never recorded for a pending nonce is an error. If one
-- hash appears several times, the last element counts. A block that a row leaves without having
-- been final goes into its history (retractions_note). Returns the number of changed rows. Three
-- states are not Substrate's:
--
--   unknown  it is not known whether the node received the bytes: the state stays, and the row
--            counts
--            as mid-submission until the next status
--   refused  a node refused the bytes with this error: the state stays, the error is counted, and
--            the row is blocked until a better report
--   tried    a submission had this answer, or none: the state stays, and the error is counted
CREATE OR REPLACE FUNCTION txrelay.leader_record_status(p_account int, p_epoch bigint,
    p_nonces bigint[], p_hashes bytea[], p_states text[], p_block_hashes bytea[],
    p_block_numbers bigint[], p_errors text[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
    v_count int := batch_size('leader_record_status', cardinality(p_nonces), cardinality(p_hashes),
        cardinality(p_states), cardinality(p_block_hashes), cardinality(p_block_numbers),
        cardinality(p_errors));
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
        array_agg(CASE WHEN p.hash = u.hash AND u.state NOT IN ('refused', 'tried') THEN p.at END
                  ORDER BY u.n),
        array_agg(CASE WHEN u.state NOT IN ('unknown', 'refused', 'tried', 'signed')
                  THEN u.state::tx_state END ORDER BY u.n)
        INTO v_wrong, v_other, v_ends, v_twice, v_leaves, v_at, v_said
    FROM unnest(p_nonces, p_hashes, p_states, p_block_hashes) WITH ORDINALITY u (nonce, hash,
        state, block_hash, n)
        LEFT JOIN LATERAL (SELECT x.ctid AS at, x.hash, x.state, x.unknown, x.block_hash
            FROM pending_transactions x
            WHERE x.account = p_account AND x.nonce = u.nonce OFFSET 0) p ON true;
    IF v_wrong THEN
        SELECT u.* INTO v_bad FROM unnest(p_nonces, p_states, p_block_hashes) u (nonce, state,
            block_hash)
            WHERE u.state IS NULL OR u.state = 'signed' OR (u.block_hash IS NULL
                AND u.state IN ('in_block', 'retracted', 'finality_timeout', 'finalized')) LIMIT 1;
        IF v_bad.state IS NOT DISTINCT FROM 'signed' THEN
            PERFORM order_error(format('leader_record_status: nonce %s cannot go back to signed',
                                       v_bad.nonce),
                'leader_attempt records new bytes.');
        END IF;
        PERFORM bad_argument('leader_record_status', 'p_block_hashes',
            format('is NULL for nonce %s with state %s', v_bad.nonce,
            coalesce(v_bad.state, 'NULL')),
            'in_block, retracted, finality_timeout and finalized name their block.');
    END IF;
    IF v_other THEN
        SELECT u.* INTO v_bad FROM unnest(p_nonces, p_hashes) u (nonce, hash)
            CROSS JOIN LATERAL (SELECT FROM pending_transactions p WHERE p.account = p_account
                AND p.nonce = u.nonce
                AND p.hash IS DISTINCT FROM u.hash OFFSET 0) p
            LEFT JOIN LATERAL (SELECT t.number FROM attempts t WHERE t.account = p_account
                AND t.nonce = u.nonce
                AND t.hash = u.hash LIMIT 1) t ON true
            WHERE t.number IS NULL LIMIT 1;
        IF FOUND THEN
            PERFORM order_error(format('leader_record_status: nonce %s has no attempt 0x%s',
                v_bad.nonce,
                coalesce(encode(v_bad.hash, 'hex'), 'NULL')),
                'Nothing may be sent that was not recorded first.');
        END IF;
    END IF;
    IF v_other OR v_ends THEN
        PERFORM attempts_note(p_account, p_nonces, p_hashes, p_states, p_block_hashes,
                              p_block_numbers, p_errors);
    END IF;
    IF v_leaves THEN
        PERFORM retractions_note(p_account, p_nonces, p_hashes, p_states, p_block_hashes);
    END IF;
    IF v_twice THEN
        v_at := ARRAY(SELECT CASE WHEN row_number() OVER (PARTITION BY u.at ORDER BY u.n DESC) = 1
            THEN u.at END
            FROM unnest(v_at) WITH ORDINALITY u (at, n) ORDER BY u.n);
    END IF;
    UPDATE pending_transactions p SET
        state = coalesce(b.said, p.state), unknown = b.said IS NULL,
        block_hash = CASE WHEN b.said IS NULL THEN p.block_hash ELSE b.block_hash END,
        block_number = CASE WHEN b.said IS NULL THEN p.block_number ELSE b.block_number END,
        error = b.error, epoch = p_epoch, updated_at = clock_timestamp(),
        blocked_since = CASE WHEN b.said IN ('ready', 'broadcast', 'in_block', 'finalized')
        THEN NULL
                             ELSE p.blocked_since END,
        in_block_at = coalesce(p.in_block_at, CASE WHEN b.said IN ('in_block', 'finalized')
                               THEN clock_timestamp() END)
    FROM unnest(v_at, v_said, p_nonces, p_hashes, p_block_hashes, p_block_numbers, p_errors)
        b (at, said, nonce, hash, block_hash, block_number, error)
    -- in a form that no index fits
    WHERE p.ctid = b.at AND (p.nonce, p.hash) IS NOT DISTINCT FROM (b.nonce, b.hash)
      AND (p.unknown <> (b.said IS NULL) OR p.error IS DISTINCT FROM b.error OR b.said IS NOT NULL
           AND
           (p.state, p.block_hash, p.block_number) IS DISTINCT FROM (b.said, b.block_hash,
               b.block_number));
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

-- Records the part of a leaders batch about attempts that are not current, and about current
-- ones whose outcome changes.
CREATE OR REPLACE FUNCTION txrelay.attempts_note(p_account int, p_nonces bigint[],
    p_hashes bytea[], p_states text[], p_block_hashes bytea[], p_block_numbers bigint[],
    p_errors text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
BEGIN
    UPDATE attempts t SET state = CASE WHEN b.state = 'unknown' THEN t.state
        ELSE b.state::tx_state END,
        block_hash = b.block_hash, block_number = b.block_number,
        error = coalesce(b.error, t.error), error_at = CASE
        WHEN b.error IS NOT NULL THEN clock_timestamp() ELSE t.error_at END,
        outcome = CASE WHEN t.number < p.attempt THEN t.outcome ELSE b.outcome END,
        ended_at = CASE WHEN t.number < p.attempt THEN t.ended_at
                        WHEN b.outcome NOT IN ('live', 'unknown') THEN clock_timestamp() END
    FROM (SELECT DISTINCT ON (u.nonce, u.hash) u.*, CASE
              WHEN u.state IN ('dropped', 'invalid', 'usurped', 'unknown')
              THEN u.state ELSE 'live' END::attempt_outcome AS outcome
          FROM unnest(p_nonces, p_hashes, p_states, p_block_hashes, p_block_numbers, p_errors)
              WITH ORDINALITY
              u (nonce, hash, state, block_hash, block_number, error, n)
          WHERE u.state NOT IN ('refused', 'tried')
          ORDER BY u.nonce, u.hash, u.n DESC) b
        CROSS JOIN LATERAL (SELECT y.attempt FROM pending_transactions y WHERE y.account = p_account
            AND y.nonce = b.nonce AND (y.hash <> b.hash OR b.outcome <> 'live' OR y.unknown
                                       OR y.state IN ('dropped', 'invalid', 'usurped')) OFFSET 0) p
        CROSS JOIN LATERAL (SELECT x.ctid AS at FROM attempts x WHERE x.account = p_account
            AND x.nonce = b.nonce
            AND x.hash = b.hash AND (x.number < p.attempt OR x.outcome <> b.outcome) OFFSET 0) x
    WHERE t.ctid = x.at;
END
$$;

-- Keeps the blocks that current attempts leave, because they were retracted or because another one
-- holds the attempt: of a block that is not final the row itself shows only the last.
CREATE OR REPLACE FUNCTION txrelay.retractions_note(p_account int, p_nonces bigint[],
    p_hashes bytea[], p_states text[], p_block_hashes bytea[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
BEGIN
    INSERT INTO refusals AS r (account, nonce, number, error, count, first_at, last_at)
    SELECT p_account, b.nonce, b.attempt,
    format('block 0x%s was retracted', encode(b.block, 'hex')), 1, clock_timestamp(),
        clock_timestamp()
    FROM (SELECT DISTINCT u.nonce, p.attempt, CASE WHEN u.state = 'retracted' THEN u.block_hash
          ELSE p.block_hash END AS block
          FROM unnest(p_nonces, p_hashes, p_states, p_block_hashes) u (nonce, hash, state,
              block_hash)
              CROSS JOIN LATERAL (SELECT x.attempt, x.state, x.block_hash
                  FROM pending_transactions x
                  WHERE x.account = p_account AND x.nonce = u.nonce AND x.hash = u.hash OFFSET 0) p
          WHERE CASE WHEN u.state = 'retracted' THEN p.state <> 'retracted'
                     OR p.block_hash <> u.block_hash
                     ELSE u.state IN ('in_block', 'finalized', 'finality_timeout')
                         AND p.state IN ('in_block', 'finality_timeout')
                         AND p.block_hash <> u.block_hash END) b
    ON CONFLICT (account, nonce, number, error) DO UPDATE SET count = r.count + 1,
        last_at = excluded.last_at;
END
$$;

-- Counts every refusal, and every try without one, in a leaders batch, of whichever attempt. A row
-- is blocked if a refusal is the batch's last report about its current attempt.
CREATE OR REPLACE FUNCTION txrelay.refusals_note(p_account int, p_epoch bigint, p_nonces bigint[],
    p_hashes bytea[], p_states text[], p_errors text[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_changed bigint;
BEGIN
    INSERT INTO refusals AS r (account, nonce, number, error, count, first_at, last_at)
    SELECT p_account, b.nonce, t.number, b.error, b.count, v_now, v_now
    FROM (SELECT u.nonce, u.hash, left(coalesce(u.error, 'refused'), 500) AS error,
          count(*) AS count
          FROM unnest(p_nonces, p_hashes, p_states, p_errors) u (nonce, hash, state, error)
          WHERE u.state IN ('refused', 'tried') GROUP BY 1, 2, 3) b
        CROSS JOIN LATERAL (SELECT FROM pending_transactions y WHERE y.account = p_account
            AND y.nonce = b.nonce
            OFFSET 0) p
        CROSS JOIN LATERAL (SELECT x.number FROM attempts x WHERE x.account = p_account
            AND x.nonce = b.nonce
            AND x.hash = b.hash ORDER BY x.number DESC LIMIT 1) t
    ON CONFLICT (account, nonce, number, error) DO UPDATE SET count = r.count + excluded.count,
        last_at = excluded.last_at;
    UPDATE attempts t SET error = b.error, error_at = v_now
    FROM (SELECT DISTINCT ON (u.nonce, u.hash) u.nonce, u.hash,
          coalesce(u.error, 'refused') AS error
          FROM unnest(p_nonces, p_hashes, p_states, p_errors) WITH ORDINALITY u (nonce, hash,
              state, error, n)
          WHERE u.state = 'refused' ORDER BY u.nonce, u.hash, u.n DESC) b
        CROSS JOIN LATERAL (SELECT FROM pending_transactions y WHERE y.account = p_account
            AND y.nonce = b.nonce
            OFFSET 0) p
        CROSS JOIN LATERAL (SELECT x.ctid AS at FROM attempts x WHERE x.account = p_account
            AND x.nonce = b.nonce
            AND x.hash = b.hash ORDER BY x.number DESC LIMIT 1) x
    WHERE t.ctid = x.at;
    UPDATE pending_transactions p SET error = b.error,
        blocked_since = coalesce(p.blocked_since, v_now), epoch = p_epoch, updated_at = v_now
    FROM (SELECT DISTINCT ON (u.nonce, u.hash) u.nonce, u.hash, u.state,
          coalesce(u.error, 'refused') AS error
          FROM unnest(p_nonces, p_hashes, p_states, p_errors) WITH ORDINALITY u (nonce, hash,
              state, error, n)
          WHERE u.state <> 'tried' ORDER BY u.nonce, u.hash, u.n DESC) b
        CROSS JOIN LATERAL (SELECT x.ctid AS at FROM pending_transactions x
            WHERE x.account = p_account
            AND x.nonce = b.nonce AND x.hash = b.hash AND x.state <> 'finalized' OFFSET 0) x
    WHERE p.ctid = x.at AND b.state = 'refused';
    GET DIAGNOSTICS v_changed = ROW_COUNT;
    RETURN v_changed;
END
$$;

-- Puts fillers (id NULL) at nonces. The transaction that has the nonce ends with the given outcome;
-- a nonce without a row gets one. Use it only for bytes that can no longer be included (era over,
-- or never sent), because a final outcome does not change. While old bytes may still be included,
-- use leader_attempt with the filler's bytes. A batch may extend the nonces but not skip any.
-- Returns the account's next nonce.
CREATE OR REPLACE FUNCTION txrelay.leader_fill(p_account int, p_epoch bigint, p_nonces bigint[],
    p_calls bytea[], p_hashes bytea[], p_extrinsics bytea[], p_tips numeric[], p_births bigint[],
    p_deaths bigint[], p_spec_version bigint, p_transaction_version bigint, p_block bigint,
    p_outcomes text[], p_errors text[])
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'account');
    v_count int := batch_size('leader_fill', cardinality(p_nonces), cardinality(p_calls),
        cardinality(p_hashes), cardinality(p_extrinsics), cardinality(p_tips),
        cardinality(p_births), cardinality(p_deaths), cardinality(p_outcomes),
        cardinality(p_errors));
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
    v_above := ARRAY(SELECT u.nonce FROM unnest(p_nonces) u (nonce) WHERE u.nonce >= v_next
                     ORDER BY u.nonce);
    IF cardinality(v_above) > 0 THEN
        IF v_above[1] <> v_next OR v_above[cardinality(v_above)] <> v_next + cardinality(v_above)
            - 1 THEN
            PERFORM order_error(format(
                'leader_fill: nonces %s leave a gap above the next nonce %s of account %s',
                v_above[1:5], v_next, a.alias), 'Read the account again.');
        END IF;
        v_next := v_next + cardinality(v_above);
    ELSIF v_next IS NULL THEN
        SELECT max(u.nonce) + 1 INTO v_next FROM unnest(p_nonces) u (nonce);
    END IF;
    SELECT b.nonce, p.state, b.outcome INTO v_bad
        FROM unnest(p_nonces, p_outcomes) b (nonce, outcome)
        CROSS JOIN LATERAL (SELECT x.state FROM pending_transactions x WHERE x.account = p_account
            AND x.nonce = b.nonce OFFSET 0) p
        WHERE b.outcome IS NULL OR b.outcome IN ('ok', 'dispatch_error')
            OR p.state = 'finalized' LIMIT 1;
    IF FOUND THEN
        PERFORM order_error(format('leader_fill: nonce %s (%s) cannot end as %s', v_bad.nonce,
            v_bad.state,
            coalesce(v_bad.outcome, 'NULL')),
            'Give expired, cancelled, failed or usurped; what is finalized stays.');
    END IF;
    UPDATE attempts t SET reason = coalesce(t.reason, 'a filler took the nonce: ' || b.outcome),
        state = p.state, ended_at = coalesce(t.ended_at, clock_timestamp()),
        outcome = CASE WHEN t.outcome IN ('live', 'unknown') THEN 'replaced' ELSE t.outcome END
    FROM unnest(p_nonces, p_outcomes) b (nonce, outcome)
        CROSS JOIN LATERAL (SELECT * FROM pending_transactions y WHERE y.account = p_account
            AND y.nonce = b.nonce
            OFFSET 0) p
        CROSS JOIN LATERAL (SELECT x.ctid AS at FROM attempts x WHERE x.account = p_account
            AND x.nonce = b.nonce
            AND x.number = p.attempt OFFSET 0) x
    WHERE t.ctid = x.at;
    PERFORM nonces_end(p_account, p_epoch, p_nonces, array_fill(NULL::bytea, ARRAY[v_count]),
        array_fill(NULL::bytea, ARRAY[v_count]), array_fill(NULL::bigint, ARRAY[v_count]),
        array_fill(NULL::int, ARRAY[v_count]), p_outcomes, p_errors,
        array_fill(NULL::numeric, ARRAY[v_count]));
    WITH batch AS MATERIALIZED (
        SELECT u.*, coalesce((SELECT max(t.number) FROM attempts t
                              WHERE t.account = p_account AND t.nonce = u.nonce), 0) + 1 AS number
        FROM unnest(p_nonces, p_calls, p_hashes, p_extrinsics, p_tips, p_births, p_deaths)
            u (nonce, call, hash, extrinsic, tip, birth, death)
    ), filler AS (
        INSERT INTO pending_transactions (account, nonce, account_id, call, hash, attempt,
            attempts, state, epoch, created_at)
        SELECT p_account, b.nonce, a.account_id, b.call, b.hash, b.number, 1, 'signed', p_epoch,
            clock_timestamp()
        FROM batch b ORDER BY b.nonce
    )
    INSERT INTO attempts (account, nonce, number, hash, extrinsic, tip, era_birth, era_death,
        spec_version, transaction_version, block, epoch)
    SELECT p_account, b.nonce, b.number, b.hash, b.extrinsic, coalesce(b.tip, 0),
        nullif(b.birth, -1), nullif(b.death, -1), p_spec_version, p_transaction_version, p_block,
        p_epoch
    FROM batch b ORDER BY b.nonce;
    UPDATE accounts t SET next_nonce = v_next WHERE t.account = p_account
        AND t.next_nonce IS DISTINCT FROM v_next;
    RETURN v_next;
END
$$;
