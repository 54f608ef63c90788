-- txrelay: the end of a nonce. 14_admit.sql explains batches and plans.

-- Ends nonces. ok and dispatch_error name the finalized block and the hash of the attempt that it
-- contains; so does unknown where only the result of that attempt cannot be read. Other outcomes
-- may lack a block: a foreign extrinsic used the nonce, no endpoint can show what did (unknown), or
-- the nonce was given back. Only the last one has no block number either, and is refused before the
-- account is reconciled. If they have a block, the included attempt was a filler: the hash decides.
-- The change of state is notified before the row leaves. Returns the number of rows.
CREATE OR REPLACE FUNCTION txrelay.leader_finish(p_account int, p_epoch bigint, p_nonces bigint[],
    p_hashes bytea[], p_block_hashes bytea[], p_block_numbers bigint[], p_indexes int[],
    p_outcomes text[], p_errors text[], p_fees numeric[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'account');
    v_count int := batch_size('leader_finish', cardinality(p_nonces), cardinality(p_hashes),
        cardinality(p_block_hashes), cardinality(p_block_numbers), cardinality(p_indexes),
        cardinality(p_outcomes), cardinality(p_errors), cardinality(p_fees));
    v_ended bigint[];
    v_bad record;
BEGIN
    PERFORM check_nonces('leader_finish', p_nonces);
    SELECT u.* INTO v_bad FROM unnest(p_nonces, p_block_hashes, p_outcomes) u (nonce, block_hash,
        outcome)
        WHERE u.outcome IS NULL OR (u.block_hash IS NULL AND u.outcome IN ('ok', 'dispatch_error'))
        LIMIT 1;
    IF FOUND THEN
        PERFORM bad_argument('leader_finish', CASE WHEN v_bad.outcome IS NULL THEN 'p_outcomes'
                             ELSE 'p_block_hashes'
            END, format('is NULL for nonce %s', v_bad.nonce),
                'ok and dispatch_error name the finalized block.');
    ELSIF a.reconcile_from IS NOT NULL
            AND EXISTS (SELECT FROM unnest(p_block_hashes, p_block_numbers) u (hash, number)
            WHERE u.hash IS NULL AND u.number IS NULL) THEN
        PERFORM not_reconciled('leader_finish', a);
    END IF;
    v_ended := nonces_end(p_account, p_epoch, p_nonces, p_hashes, p_block_hashes, p_block_numbers,
        p_indexes, p_outcomes, p_errors, p_fees);
    IF cardinality(v_ended) <> v_count THEN
        SELECT u.*, p.state, f.outcome, t.number, t.filler INTO v_bad
                FROM unnest(p_nonces, p_hashes, p_outcomes)
                u (nonce, hash, given)
            LEFT JOIN LATERAL (SELECT x.state, x.id FROM pending_transactions x
                WHERE x.account = p_account
                AND x.nonce = u.nonce LIMIT 1) p ON true
            LEFT JOIN LATERAL (SELECT x.number, x.filler FROM attempts x WHERE x.account = p_account
                AND x.nonce = u.nonce AND x.hash = u.hash AND (p.id IS NULL OR x.id = p.id)
                AND x.outcome <> 'included'
                ORDER BY x.number DESC LIMIT 1) t ON true
            LEFT JOIN LATERAL (SELECT x.outcome FROM finished_transactions x
                WHERE x.account = p_account
                AND x.nonce = u.nonce AND (a.life_since IS NULL OR x.finished_at > a.life_since)
                ORDER BY x.finished_at DESC LIMIT 1) f ON true
            WHERE u.nonce <> ALL (v_ended) AND (p.state IS NOT NULL OR f.outcome IS NOT NULL)
                LIMIT 1;
        IF v_bad.state = 'finalized' THEN
            PERFORM order_error(format(
                'leader_finish: nonce %s is finalized and cannot end as %s with 0x%s', v_bad.nonce,
                v_bad.given, coalesce(encode(v_bad.hash, 'hex'), 'NULL')),
                'What is finalized stays.');
        ELSIF v_bad.state IS NOT NULL AND v_bad.number IS NOT NULL THEN
            PERFORM order_error(format(
                'leader_finish: attempt %s at nonce %s has %s and cannot end as %s', v_bad.number,
                v_bad.nonce, CASE WHEN v_bad.filler IS NULL THEN 'the transaction''s own call'
                ELSE 'a filler''s call' END,
                v_bad.given),
                'The own call ends as ok, dispatch_error or unknown, a filler never.');
        ELSIF v_bad.state IS NOT NULL THEN
            PERFORM order_error(format('leader_finish: nonce %s has no attempt 0x%s', v_bad.nonce,
                coalesce(encode(v_bad.hash, 'hex'), 'NULL')),
                'Nothing may be sent that was not recorded first.');
        ELSIF v_bad.outcome IS NOT NULL THEN
            PERFORM order_error(format('leader_finish: nonce %s has ended before, as %s',
                                       v_bad.nonce, v_bad.outcome),
                'A terminal record never changes.');
        END IF;
        PERFORM batch_changed('leader_finish', 'pending_transactions', cardinality(v_ended),
                              v_count);
    END IF;
    PERFORM nonces_used(p_account, p_nonces, p_block_hashes, p_block_numbers, p_outcomes);
    RETURN v_count;
END
$$;

-- Notes which nonces finalized blocks have used. Without a block (usurped, unknown) the block
-- number says as of when. In plpgsql, which keeps its plans, because every batch calls it.
CREATE OR REPLACE FUNCTION txrelay.nonces_used(p_account int, p_nonces bigint[],
    p_block_hashes bytea[], p_block_numbers bigint[], p_outcomes text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_nonce bigint;
    v_number bigint;
BEGIN
    SELECT max(b.nonce), max(b.number) INTO v_nonce, v_number
        FROM unnest(p_nonces, p_block_hashes, p_block_numbers, p_outcomes) b (nonce, block_hash,
            number, outcome)
        WHERE b.block_hash IS NOT NULL OR b.outcome IN ('usurped', 'unknown');
    UPDATE accounts t SET used_nonce = greatest(t.used_nonce, v_nonce + 1),
        used_block = greatest(t.used_block, v_number)
        WHERE t.account = p_account
        AND (v_nonce >= coalesce(t.used_nonce, 0) OR v_number > coalesce(t.used_block, -1));
END
$$;

-- Moves rows from pending to finished in one statement, so that a row is not updated on its way
-- out. The block may contain any recorded attempt of the row (leader_snapshot says which are its
-- own). A row whose end contradicts that stays; the result lists the nonces that ended. If the
-- attempt that a filler's end names belongs to a transaction that had ended before (leader_fill
-- while its bytes could still be included), the nonce's record says so, because no effect may be
-- without a trace. Readers are notified of the last change of
-- state and of the removal. In plpgsql, which keeps its plans: planning this takes longer than ten
-- rows do.
CREATE OR REPLACE FUNCTION txrelay.nonces_end(p_account int, p_epoch bigint, p_nonces bigint[],
    p_hashes bytea[], p_block_hashes bytea[], p_block_numbers bigint[], p_indexes int[],
    p_outcomes text[], p_errors text[], p_fees numeric[])
RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_tell boolean := queue_has_room();
    v_ended bigint[];
BEGIN
    WITH gone AS (
        DELETE FROM pending_transactions p
        USING unnest(p_nonces, p_hashes, p_block_hashes, p_block_numbers, p_indexes, p_outcomes,
                     p_errors, p_fees)
                b (nonce, hash, block, number, index, outcome, error, fee)
            CROSS JOIN LATERAL (SELECT x.ctid AS at, x.id FROM pending_transactions x
                WHERE x.account = p_account
                AND x.nonce = b.nonce OFFSET 0) x
            LEFT JOIN LATERAL (SELECT t.number, t.filler FROM attempts t WHERE t.account = p_account
                AND t.nonce = b.nonce AND t.hash = b.hash AND b.block IS NOT NULL
                AND (x.id IS NULL OR t.id = x.id)
                AND t.outcome <> 'included' ORDER BY t.number DESC LIMIT 1) t ON true
        WHERE p.ctid = x.at
          AND (b.block IS NULL OR t.number IS NOT NULL
               AND (p.id IS NULL
                    OR (t.filler IS NULL) = (b.outcome IN ('ok', 'dispatch_error', 'unknown'))))
          AND (p.state <> 'finalized' OR (p.hash, p.block_hash) IS NOT DISTINCT FROM (b.hash,
              b.block))
        RETURNING p.account, p.nonce, p.account_id, p.id, p.hash, p.attempt, p.attempts, p.state,
            p.block_hash, p.error, p.key,
            p.creator, p.role, CASE WHEN b.outcome <> 'ok' AND p.id IS NOT NULL THEN p.call END
            AS call,
            CASE WHEN b.outcome <> 'ok'
            AND p.id IS NOT NULL THEN finished_options(p.priority, NULL, p.deadline, p.guard, p.tip,
                p.max_tip, p.deadline_block, p.retries, p.signed) END AS options, p.traceparent,
                p.created_at, p.admitted_at,
            p.in_block_at, b.block, CASE WHEN b.block IS NOT NULL THEN b.number END AS number,
                b.index,
            b.outcome::tx_outcome AS outcome, b.error AS ended_by, b.fee,
            CASE WHEN b.block IS NOT NULL THEN b.hash ELSE p.hash END AS last,
            CASE WHEN b.block IS NOT NULL THEN 'finalized'
            WHEN b.outcome = 'usurped' THEN 'usurped' ELSE p.state END
                AS becomes
    ), tried AS (
        UPDATE attempts t SET ended_at = coalesce(t.ended_at, v_now),
            state = CASE WHEN t.hash = g.last THEN g.becomes WHEN t.number = g.attempt THEN g.state
            ELSE t.state END,
            block_hash = CASE WHEN t.hash = g.last THEN g.block ELSE t.block_hash END,
            block_number = CASE WHEN t.hash = g.last THEN g.number ELSE t.block_number END,
            error = coalesce(CASE WHEN g.block IS NULL THEN NULL WHEN t.hash <> g.last
                             AND t.number = g.attempt THEN g.error
                                  WHEN t.hash = g.last AND t.filler IS NULL THEN g.ended_by END,
                                  t.error),
            outcome = CASE WHEN g.block IS NOT NULL AND t.hash = g.last THEN 'included'
                           WHEN t.outcome NOT IN ('live', 'unknown') THEN t.outcome
                           WHEN g.block IS NOT NULL THEN 'superseded'
                           WHEN g.outcome = 'usurped' THEN 'usurped'
                           WHEN g.outcome = 'unknown' THEN 'unknown'
                           ELSE 'dropped' END::attempt_outcome
        FROM gone g CROSS JOIN LATERAL (SELECT x.ctid AS at FROM attempts x
            WHERE x.account = p_account
            AND x.nonce = g.nonce AND (x.outcome IN ('live', 'unknown') OR x.hash = g.last
                                       OR x.number = g.attempt)
            OFFSET 0) x
        WHERE t.ctid = x.at
    ), retracted AS ( -- as in retractions_note
        INSERT INTO refusals AS r (account, nonce, number, error, count, first_at, last_at)
        SELECT g.account, g.nonce, g.attempt,
        format('block 0x%s was retracted', encode(g.block_hash, 'hex')), 1, v_now, v_now
        FROM gone g WHERE g.state IN ('in_block', 'finality_timeout') AND g.block_hash <> g.block
        ON CONFLICT (account, nonce, number, error) DO UPDATE SET count = r.count + 1,
        last_at = excluded.last_at
    ), ended AS (
        INSERT INTO finished_transactions (id, account, nonce, hash, block_hash, block_number,
            extrinsic_index, state, outcome, error, fee, attempts, epoch, key, creator, role,
            options, call, traceparent, created_at, admitted_at, in_block_at, finished_at)
        SELECT g.id, g.account, g.nonce, g.last, g.block, g.number, g.index, g.becomes, g.outcome,
            coalesce((SELECT format(
                'the attempt that was included belongs to transaction %s, which had ended before',
                      t.id)
                      FROM attempts t WHERE g.id IS NULL AND g.block IS NOT NULL
                      AND t.account = p_account
                      AND t.nonce = g.nonce AND t.hash = g.last AND t.id IS NOT NULL LIMIT 1)
                     || coalesce(': ' || g.ended_by, ''), g.ended_by),
            g.fee, g.attempts, p_epoch, g.key, g.creator, g.role, g.options, g.call,
            g.traceparent, g.created_at, g.admitted_at,
            coalesce(g.in_block_at, CASE WHEN g.block IS NOT NULL THEN v_now END),
            -- one time for all rows, so one entry in the index; read after the table is locked,
            (SELECT steady_clock())
        FROM gone g ORDER BY g.nonce   -- because follow_position looks for that lock
    ), told AS (
        SELECT g.nonce, CASE WHEN v_tell
                AND (g.becomes, g.last, g.block) IS DISTINCT FROM (g.state, g.hash, g.block_hash)
                THEN pg_notify('pending_tx_update',
                    change_text(g.account_id, g.nonce, g.last, g.becomes, g.creator, v_now,
                    g.id, g.block, g.traceparent))::text END,
            CASE WHEN v_tell THEN pg_notify('pending_tx_removed',
                removal_text(g.account_id, g.nonce, g.id, g.outcome, g.traceparent))::text
                END,
            CASE WHEN v_tell AND g.id IS NOT NULL THEN pg_notify('tx_ended_' || g.id,
                g.outcome::text)::text END
        FROM gone g
    )
    SELECT array_agg(t.nonce ORDER BY t.nonce) INTO v_ended FROM told t;
    RETURN coalesce(v_ended, '{}');
END
$$;

-- Sends a transaction whose nonce was used without its effect back to the outbox, with its id,
-- options, place and history; it gets another nonce. usurped: a foreign extrinsic used the nonce.
-- dispatch_error: its own attempt with this hash did, which takes one of its retries. failed: the
-- nonce belongs to a former life of the account. All of them may come before the account is
-- reconciled: in the outbox leader_adopt finds the transaction by its call. The nonce leaves a
-- record of its own (id NULL, requeued: whose it was). Returns the number of rows.
CREATE OR REPLACE FUNCTION txrelay.leader_requeue(p_account int, p_epoch bigint, p_nonces bigint[],
    p_hashes bytea[], p_block_hashes bytea[], p_block_numbers bigint[], p_indexes int[],
    p_outcomes text[], p_errors text[], p_fees numeric[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'account');
    v_count int := batch_size('leader_requeue', cardinality(p_nonces), cardinality(p_hashes),
        cardinality(p_block_hashes), cardinality(p_block_numbers), cardinality(p_indexes),
        cardinality(p_outcomes), cardinality(p_errors), cardinality(p_fees));
    v_tell boolean := queue_has_room();
    v_found bigint;
    v_told bigint;
    v_bad record;
BEGIN
    PERFORM check_nonces('leader_requeue', p_nonces);
    SELECT u.* INTO v_bad FROM unnest(p_nonces, p_block_hashes, p_outcomes) u (nonce, block_hash,
        outcome)
        WHERE u.outcome IS NULL OR u.outcome NOT IN ('usurped', 'dispatch_error', 'failed')
           OR u.outcome = 'dispatch_error' AND u.block_hash IS NULL
           OR u.outcome = 'failed' AND u.block_hash IS NOT NULL LIMIT 1;
    IF FOUND AND v_bad.outcome IN ('dispatch_error', 'failed') THEN
        PERFORM bad_argument('leader_requeue', 'p_block_hashes',
            format('is %s for nonce %s with outcome %s',
            CASE WHEN v_bad.block_hash IS NULL THEN 'NULL' ELSE 'given' END, v_bad.nonce,
            v_bad.outcome),
            'dispatch_error names the finalized block; failed has none: no block of this life '
            'used the nonce.');
    ELSIF FOUND THEN
        PERFORM order_error(format('leader_requeue: nonce %s cannot be used up as %s', v_bad.nonce,
            coalesce(v_bad.outcome, 'NULL')),
            'usurped, dispatch_error or failed; other ends are leader_finish''s.');
    END IF;
    SELECT u.nonce, u.outcome, p.state, p.retries, p.signed, t.number, t.filler INTO v_bad
        FROM unnest(p_nonces, p_hashes, p_outcomes) u (nonce, hash, outcome)
        CROSS JOIN LATERAL (SELECT x.id, x.state, x.retries, x.signed FROM pending_transactions x
            WHERE x.account = p_account
            -- in a form that the index of ids does not fit
            AND x.nonce = u.nonce AND coalesce(x.id, 0) <> 0 OFFSET 0) p
        LEFT JOIN LATERAL (SELECT x.number, x.filler FROM attempts x WHERE x.account = p_account
            AND x.nonce = u.nonce
            AND x.hash = u.hash AND x.id = p.id AND x.outcome <> 'included'
            ORDER BY x.number DESC LIMIT 1) t ON true
        WHERE p.signed OR CASE WHEN u.outcome = 'dispatch_error' THEN p.retries = 0
            OR t.number IS NULL OR t.filler IS NOT NULL
            ELSE p.state = 'finalized' END LIMIT 1;
    IF FOUND THEN
        PERFORM order_error(format('leader_requeue: nonce %s (%s) %s', v_bad.nonce, v_bad.state,
            CASE
            WHEN v_bad.signed THEN 'was signed elsewhere, for this nonce'
            WHEN v_bad.outcome <> 'dispatch_error' THEN 'is in a finalized block'
            WHEN v_bad.number IS NULL THEN 'has no attempt with this hash'
            WHEN v_bad.filler IS NOT NULL THEN format('has a filler''s call in attempt %s',
                                                      v_bad.number)
            ELSE 'has no retries left' END),
            'leader_finish ends it.');
    END IF;
    WITH gone AS (
        DELETE FROM pending_transactions p
                USING unnest(p_nonces, p_hashes, p_block_hashes, p_block_numbers, p_indexes,
                p_outcomes, p_errors, p_fees) b (nonce, hash, block_hash, block_number, index,
                outcome, error, fee)
            CROSS JOIN LATERAL (SELECT x.ctid AS at FROM pending_transactions x
                WHERE x.account = p_account
                AND x.nonce = b.nonce AND coalesce(x.id, 0) <> 0 OFFSET 0) x
        WHERE p.ctid = x.at
        RETURNING p.*, b.index, b.fee, b.block_hash AS end_block,
            CASE WHEN b.block_hash IS NOT NULL THEN b.block_number END AS end_number,
            b.error AS end_error,
            b.outcome::tx_outcome AS end_outcome, CASE
            WHEN b.outcome = 'dispatch_error' THEN b.hash END AS included
    ), tried AS (
        UPDATE attempts t SET ended_at = coalesce(t.ended_at, clock_timestamp()),
            state = CASE WHEN t.hash = g.included THEN 'finalized'
            WHEN t.number = g.attempt THEN g.state
                         ELSE t.state END,
            block_hash = CASE WHEN t.hash = g.included THEN g.end_block ELSE t.block_hash END,
            block_number = CASE WHEN t.hash = g.included THEN g.end_number ELSE t.block_number END,
            error = coalesce(CASE WHEN t.hash = g.included THEN g.end_error
                             WHEN t.number = g.attempt THEN g.error END,
                             t.error),
            reason = CASE WHEN t.hash = g.included THEN t.reason
                ELSE coalesce(t.reason, g.end_error) END,
            outcome = CASE WHEN t.hash = g.included THEN 'included'
                           WHEN t.outcome NOT IN ('live', 'unknown') THEN t.outcome
                           WHEN g.end_outcome = 'dispatch_error' THEN 'superseded'
                           WHEN g.end_outcome = 'usurped' THEN 'usurped'
                           ELSE 'dropped' END::attempt_outcome
        FROM gone g CROSS JOIN LATERAL (SELECT x.ctid AS at FROM attempts x
            WHERE x.account = p_account
            AND x.nonce = g.nonce AND (x.outcome IN ('live', 'unknown') OR x.hash = g.included
                                       OR x.number = g.attempt)
            OFFSET 0) x
        WHERE t.ctid = x.at
    ), record AS (
        INSERT INTO finished_transactions (requeued, account, nonce, hash, block_hash,
            block_number, extrinsic_index, state, outcome, error, fee, attempts, epoch, creator,
            created_at, admitted_at, in_block_at, finished_at)
        SELECT g.id, g.account, g.nonce, coalesce(g.included, g.hash), g.end_block, g.end_number,
            g.index,
            CASE g.end_outcome WHEN 'dispatch_error' THEN 'finalized' WHEN 'usurped' THEN 'usurped'
            ELSE g.state END,
            g.end_outcome, g.end_error, g.fee, g.attempts, p_epoch, g.creator, g.created_at,
            g.admitted_at, coalesce(g.in_block_at, CASE WHEN g.included IS NOT NULL
                                    THEN clock_timestamp() END), (SELECT steady_clock())
        FROM gone g ORDER BY g.nonce
    ), back AS (
        INSERT INTO outbox (id, account, call, key, creator, role, priority, deadline, guard, tip,
            max_tip, deadline_block, retries, attempts, created_at, traceparent)
        SELECT g.id, g.account, g.call, g.key, g.creator, g.role, g.priority, g.deadline, g.guard,
            g.tip, g.max_tip, g.deadline_block, g.retries - (g.included IS NOT NULL)::int,
            g.attempts, g.created_at, g.traceparent
        FROM gone g
    )
    SELECT count(*), count(CASE WHEN v_tell
            THEN pg_notify('pending_tx_removed',
                           removal_text(g.account_id, g.nonce, g.id, NULL, g.traceparent))::text
                           END)
        INTO v_found, v_told FROM gone g;
    IF v_found <> v_count THEN
        PERFORM batch_changed('leader_requeue', 'pending_transactions', v_found, v_count);
    END IF;
    PERFORM nonces_used(p_account, p_nonces, p_block_hashes, p_block_numbers, p_outcomes);
    RETURN v_found;
END
$$;
