-- txrelay: cancel, bump and retry, and the end of transactions that have no nonce.

-- What a record keeps of the options that a transaction was enqueued with, so that it can be
-- enqueued again: those that were given, and what is left of its retries. signed: it was signed
-- elsewhere. NULL: nothing.
CREATE OR REPLACE FUNCTION txrelay.finished_options(p_priority int, p_not_before timestamptz,
    p_deadline timestamptz, p_guard bigint, p_tip numeric, p_max_tip numeric,
    p_deadline_block bigint, p_retries int, p_signed boolean) RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RETURN nullif(jsonb_strip_nulls(jsonb_build_object('priority', nullif(p_priority, 0),
        'not_before', p_not_before,
        'deadline', p_deadline, 'spec_version', p_guard, 'tip', p_tip, 'max_tip', p_max_tip,
        'deadline_block', p_deadline_block, 'retries', nullif(p_retries, 0), 'signed',
        nullif(p_signed, false))), '{}');
END
$$;

-- Ends transactions that have no nonce, in whichever of the two outboxes they wait. p_account NULL:
-- of any account, for an application, which waits for rows that another one holds; a leader passes
-- them over. Readers are notified as of any other end, without a nonce. The leader reads from
-- cancellations (nobody asked for these) what it did not end itself (leader_poll_requests). Returns
-- how many of the ids it ended.
CREATE OR REPLACE FUNCTION txrelay.outbox_end(p_account int, p_ids bigint[],
    p_outcomes txrelay.tx_outcome[], p_errors text[], p_epoch bigint) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
    WITH given AS (
        SELECT u.id, u.outcome, u.error FROM unnest(p_ids, p_outcomes, p_errors) u (id, outcome,
            error)
    -- OFFSET 0: each row by its key, whatever the planner believes of the number of ids
    ), unsigned AS (
        DELETE FROM outbox o USING given b
            CROSS JOIN LATERAL (SELECT x.ctid AS at FROM outbox x WHERE x.id = b.id
                AND (p_account IS NULL OR x.account = p_account
                     AND (x.xmax = 0 OR NOT x.xmax = ANY ((SELECT running_xids())::xid[])
                          AND row_free(x.id))) OFFSET 0) x
        WHERE o.ctid = x.at
        RETURNING o.id, o.account, b.outcome, b.error, o.attempts, o.key, o.creator, o.role,
        o.call, o.traceparent, o.created_at,
            finished_options(o.priority, o.not_before, o.deadline, o.guard, o.tip, o.max_tip,
                             o.deadline_block, o.retries, false)
                AS options
    ), signed AS (
        DELETE FROM outbox_presigned o USING given b
            CROSS JOIN LATERAL (SELECT x.ctid AS at FROM outbox_presigned x WHERE x.id = b.id
                AND (p_account IS NULL OR x.account = p_account
                     AND (x.xmax = 0 OR NOT x.xmax = ANY ((SELECT running_xids())::xid[])
                          AND row_free(x.id))) OFFSET 0) x
        WHERE o.ctid = x.at
        RETURNING o.id, o.account, b.outcome, b.error, 0 AS attempts, o.key, o.creator, o.role,
        o.extrinsic AS call, o.traceparent,
            o.created_at,
            jsonb '{"signed": true}' AS options
    ), gone AS (
        SELECT * FROM unsigned UNION ALL SELECT * FROM signed
    ), ended AS (
        INSERT INTO finished_transactions (id, account, outcome, error, attempts, epoch, key,
            creator, role, options, call, traceparent, created_at, finished_at)
        SELECT g.id, g.account, g.outcome, g.error, g.attempts, p_epoch, g.key, g.creator, g.role,
            g.options, g.call, g.traceparent, g.created_at, (SELECT steady_clock())
        FROM gone g RETURNING 1
    ), noted AS (
        INSERT INTO cancellations (id, account, asked_by) SELECT g.id, g.account, '' FROM gone g
            WHERE p_account IS NULL
            ON CONFLICT (id) DO UPDATE SET asked_by = ''
    ), told AS (
        SELECT CASE WHEN (SELECT queue_has_room()) THEN pg_notify('pending_tx_removed',
            concat('{"account_id":"0x',
            (SELECT encode(a.account_id, 'hex') FROM accounts a WHERE a.account = g.account),
            '","nonce":null,"id":', g.id, ',"outcome":"', g.outcome, '"',
            ',"traceparent":"' || g.traceparent || '"', '}')) END,
            CASE WHEN (SELECT queue_has_room()) THEN pg_notify('tx_ended_' || g.id,
                g.outcome::text) END
        FROM gone g
    )
    SELECT count(*) FROM told
$$;

-- The nonce of a transaction that has one and that no relay can take from it, because none has the
-- key.
CREATE OR REPLACE FUNCTION txrelay.uncancellable_nonce(p_id bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RETURN (SELECT p.nonce FROM pending_of(p_id) p
        CROSS JOIN LATERAL (SELECT x.watch_only FROM accounts x
                            WHERE x.account = p.account OFFSET 0) a
        WHERE p.signed AND a.watch_only);
END
$$;

-- The account of a transaction that waits in the outbox, if lost commits may have sent it: the
-- account is not reconciled, or not claimed yet since the failover; with a minus if it was signed
-- elsewhere. Also that of one whose account has sites: its leader knows what was granted. NULL: it
-- may end at once.
CREATE OR REPLACE FUNCTION txrelay.cancel_waits(p_id bigint) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
BEGIN
    RETURN (SELECT CASE WHEN w.signed THEN -w.account ELSE w.account END FROM (
            (SELECT o.account, false AS signed FROM outbox o WHERE o.id = p_id
             ORDER BY o.id LIMIT 1) UNION ALL
            (SELECT s.account, true FROM outbox_presigned s WHERE s.id = p_id
             ORDER BY s.id LIMIT 1) UNION ALL
            (SELECT t.account, false FROM site_transactions t WHERE t.id = p_id
             ORDER BY t.id LIMIT 1)) w
        CROSS JOIN LATERAL (SELECT x.reconcile_from, x.sited, l.timeline FROM accounts x
            JOIN leadership l ON l.subject = x.account
            WHERE x.account = w.account OFFSET 0) a
        WHERE a.reconcile_from IS NOT NULL OR a.sited OR NOT a.timeline = ANY (timelines()));
END
$$;

-- Returns cancelled (it was in the outbox and has ended), requested (it has a nonce, or lost
-- commits may have given it one) or finished (it had ended before). After requested, the leader
-- signs nothing new for it, puts a filler in its place once its bytes can no longer be included,
-- and records cancelled. If its bytes are included first, the record says what the chain says.
CREATE OR REPLACE FUNCTION txrelay.cancel(id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
DECLARE
    v_before jsonb := operation_before('cancel', cancel.id, NULL, NULL);
    v_account int;
    v_nonce bigint;
    v_refused text := other_owner('cancel', cancel.id);
BEGIN
    IF v_refused IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = v_refused,
            HINT = other_owner_hint();
    END IF;
    -- Twice: the transaction may return to the outbox between the two reads.
    FOR v_turn IN 1..2 LOOP
        v_account := cancel_waits(cancel.id);
        -- An admission and this DELETE meet at the row's lock: one of them gets the row, the other
        -- finds it gone.
        IF v_account < 0 THEN
            RAISE EXCEPTION USING ERRCODE = 'TR011',
                MESSAGE = format('cancel: id is %s, which was signed elsewhere, and which '
                'commits that a failover lost may have sent', cancel.id),
                HINT = 'Ask again when blocked_accounts does not name its account any more.';
        ELSIF v_account IS NOT NULL THEN
            INSERT INTO cancellations (id, account, asked_by) VALUES (cancel.id, v_account, asker())
                ON CONFLICT DO NOTHING;
            -- Without sites the leader can do nothing about it before it is reconciled, and polls
            -- then.
            PERFORM tell_outbox(x.account) FROM accounts x WHERE x.account = v_account AND x.sited;
            PERFORM operation_note('cancel', cancel.id, NULL, NULL, '{}', v_before, 'requested');
            RETURN 'requested';
        ELSIF outbox_end(NULL, ARRAY[cancel.id], ARRAY['cancelled']::tx_outcome[],
                         ARRAY['cancelled by '
                      || asker()], NULL) = 1 THEN
            PERFORM operation_note('cancel', cancel.id, NULL, NULL, '{}', v_before, 'cancelled');
            RETURN 'cancelled';
        END IF;
        v_account := (pending_of(cancel.id)).account;
        IF v_account IS NOT NULL THEN
            v_nonce := uncancellable_nonce(cancel.id);
            IF v_nonce IS NOT NULL THEN
                RAISE EXCEPTION USING ERRCODE = 'TR011',
                    MESSAGE = format('cancel: id is %s, which was signed elsewhere and may '
                    'be in a pool; no relay has a key to take its nonce with', cancel.id),
                    HINT = format('Sign another '
                    'extrinsic with nonce %s and a higher tip and send it to a node, or wait for '
                    'the end of its era.', v_nonce);
            END IF;
            INSERT INTO cancellations (id, account, asked_by) VALUES (cancel.id, v_account, asker())
                ON CONFLICT DO NOTHING;
            -- Notify even a leader that is awake: it would otherwise notice at its next poll only.
            PERFORM tell_outbox(v_account);
            PERFORM operation_note('cancel', cancel.id, NULL, NULL, '{}', v_before, 'requested');
            RETURN 'requested';
        ELSIF EXISTS (SELECT FROM finished_transactions f WHERE f.id = cancel.id) THEN
            PERFORM operation_note('cancel', cancel.id, NULL, NULL, '{}', v_before, 'finished');
            RETURN 'finished';
        END IF;
    END LOOP;
    RAISE EXCEPTION USING ERRCODE = 'TR011',
            MESSAGE = format('cancel: id is %s; there is no such transaction',
            coalesce(cancel.id::text, 'NULL')),
        HINT = 'Pass an id that enqueue returned; a record is kept for the retention time only.';
END
$$;

-- Returns the tip that a bump leads to, after all checks. p_current: the tip that the transaction
-- pays or would pay now.
CREATE OR REPLACE FUNCTION txrelay.bumped_tip(p_tip numeric, p_current numeric, p_max_tip numeric,
                                              p_policy jsonb) RETURNS numeric
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_policy_cap numeric := p_policy ->> 'tip_cap';
    v_cap numeric := least(p_max_tip, v_policy_cap);
    v_step numeric := greatest(coalesce(nullif((p_policy ->> 'tip_step')::numeric, 0), 1),
        div(p_current * coalesce((p_policy ->> 'tip_step_percent')::numeric, 0), 100));
    v_tip numeric := coalesce(p_tip, p_current + v_step);
BEGIN
    PERFORM check_amount('bump', 'tip', p_tip,
                         'In the chain''s smallest unit; leave it out for the policy''s next '
                         'step.');
    IF p_tip <= p_current THEN
        PERFORM bad_argument('bump', 'tip', format('is %s; it must be above the current one (%s)',
                                                   p_tip, p_current),
            'A pool only takes another extrinsic at the nonce for a higher tip. Leave it out for '
            'the policy''s next step.');
    ELSIF p_tip IS NULL AND p_current < v_cap THEN
        RETURN least(v_tip, v_cap);
    ELSIF v_tip > v_cap THEN
        PERFORM bad_argument('bump', 'tip',
            format('%s %s, above %s (%s)', CASE WHEN p_tip IS NULL THEN 'would be' ELSE 'is' END,
                   v_tip,
            CASE WHEN v_policy_cap <= p_max_tip OR p_max_tip IS NULL THEN 'the account''s tip_cap'
                ELSE 'the transaction''s max_tip' END, v_cap),
            CASE WHEN v_policy_cap <= p_max_tip
                OR p_max_tip IS NULL THEN 'account_policy raises it, for all of the '
                'account''s transactions.'
                ELSE 'It was given with enqueue and stays. Cancel it and enqueue it anew.' END);
    END IF;
    PERFORM check_amount('bump', 'tip', v_tip, 'A chain cannot hold more.');
    RETURN v_tip;
END
$$;

-- Stores the request. The highest requested tip stays.
CREATE OR REPLACE FUNCTION txrelay.bump_ask(p_id bigint, p_account int, p_tip numeric) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
    INSERT INTO bumps AS b (id, account, tip, asked_by) VALUES (p_id, p_account, p_tip, asker())
        ON CONFLICT (id) DO UPDATE SET tip = excluded.tip, asked_by = excluded.asked_by,
            created_at = excluded.created_at WHERE b.tip < excluded.tip
$$;

-- True for one that waits or has a nonce, and was signed elsewhere.
CREATE OR REPLACE FUNCTION txrelay.signed_elsewhere(p_id bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
BEGIN
    RETURN (SELECT s.id FROM outbox_presigned s WHERE s.id = p_id ORDER BY s.id LIMIT 1) IS NOT NULL
        OR coalesce((pending_of(p_id)).signed, false);
END
$$;

-- Raises the tip. Returns queued (it waits in the outbox and pays the tip from its first attempt),
-- requested (it has a nonce; the leader signs it again there unless its bytes are included first)
-- or finished (it had ended before). tip NULL: the next step of the account's policy, limited by
-- the caps.
CREATE OR REPLACE FUNCTION txrelay.bump(id bigint, tip numeric DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    v_before jsonb := operation_before('bump', bump.id, NULL, NULL);
    v_row record;
    v_tip numeric;
    v_hint text;
    v_refused text := other_owner('bump', bump.id);
BEGIN
    IF v_refused IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = v_refused,
            HINT = other_owner_hint();
    ELSIF signed_elsewhere(bump.id) THEN
        RAISE EXCEPTION USING ERRCODE = 'TR011',
            MESSAGE = format('bump: id is %s, which was signed elsewhere: its tip is signed '
            'with it', bump.id),
            HINT = 'Sign another extrinsic with the same nonce and a higher tip and send it to a '
                   'node.';
    END IF;
    FOR v_turn IN 1..2 LOOP -- as in cancel
        -- Where the account has sites, its leader reads the tip from bumps: the next bytes pay it.
        -- No row is locked, because a grant must not wait for an application.
        SELECT 'queued' AS answer, true AS sited, x.account, a.alias,
                greatest(coalesce(x.tip, (a.policy ->> 'tip_start')::numeric, 0),
                (SELECT b.tip FROM bumps b WHERE b.id = bump.id)) AS tip, x.max_tip,
                a.policy INTO v_row
            FROM (SELECT o.account, o.tip, o.max_tip FROM outbox o WHERE o.id = bump.id UNION ALL
                  SELECT t.account, t.tip, t.max_tip FROM site_transactions t
                  WHERE t.id = bump.id) x
            JOIN accounts a ON a.account = x.account AND a.sited;
        -- Otherwise this waits for an admission that is under way. A later admission finds a newer
        -- version of the row than it read and still assigns the lower tip, which is why the row in
        -- bumps outlives it.
        IF NOT FOUND THEN
            SELECT 'queued' AS answer, false AS sited, o.account, a.alias,
                    least(coalesce(o.tip, (a.policy ->> 'tip_start')::numeric, 0),
                    o.max_tip, (a.policy ->> 'tip_cap')::numeric) AS tip, o.max_tip, a.policy
                INTO v_row FROM outbox o JOIN accounts a ON a.account = o.account
                    WHERE o.id = bump.id FOR UPDATE OF o;
        END IF;
        IF NOT FOUND THEN
            SELECT 'requested' AS answer, false AS sited, p.account, a.alias, t.tip, p.max_tip,
                a.policy INTO v_row FROM pending_of(bump.id) p
                CROSS JOIN LATERAL (SELECT x.alias, x.policy FROM accounts x
                                    WHERE x.account = p.account OFFSET 0) a
                CROSS JOIN LATERAL (SELECT x.tip FROM attempts x WHERE x.account = p.account
                    AND x.nonce = p.nonce
                    AND x.number = p.attempt OFFSET 0) t;
        END IF;
        IF FOUND THEN
            BEGIN
                PERFORM check_bounds('bump', v_row.alias, 0, coalesce(bump.tip, 1));
                v_tip := bumped_tip(bump.tip, v_row.tip, v_row.max_tip, v_row.policy);
            EXCEPTION WHEN SQLSTATE 'TR000' THEN
                GET STACKED DIAGNOSTICS v_hint = PG_EXCEPTION_HINT;
                RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = SQLERRM, HINT = v_hint;
            END;
            PERFORM bump_ask(bump.id, v_row.account, v_tip);
            IF v_row.answer = 'queued' AND NOT v_row.sited THEN
                UPDATE outbox o SET tip = v_tip WHERE o.id = bump.id;
            ELSE
                PERFORM tell_outbox(v_row.account);
            END IF;
            PERFORM operation_note('bump', bump.id, NULL, NULL,
                                   jsonb_build_object('tip', bump.tip::text), v_before,
                                   v_row.answer);
            RETURN v_row.answer;
        ELSIF EXISTS (SELECT FROM finished_transactions f WHERE f.id = bump.id) THEN
            PERFORM operation_note('bump', bump.id, NULL, NULL,
                                   jsonb_build_object('tip', bump.tip::text), v_before, 'finished');
            RETURN 'finished';
        END IF;
    END LOOP;
    RAISE EXCEPTION USING ERRCODE = 'TR011',
            MESSAGE = format('bump: id is %s; there is no such transaction',
            coalesce(bump.id::text, 'NULL')),
        HINT = 'Pass an id that enqueue returned; a record is kept for the retention time only.';
END
$$;

-- Refuses to enqueue again what took effect or may have, and what the relay cannot sign.
CREATE OR REPLACE FUNCTION txrelay.retry_check(f txrelay.finished_transactions) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF NOT is_operator() AND NOT has_role(coalesce(f.role, f.creator)) THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('retry: transaction %s belongs to %s, and user %s is no member of it',
                f.id, coalesce(f.role, f.creator), session_user),
            HINT = other_owner_hint();
    ELSIF f.outcome = 'ok' THEN
        PERFORM bad_argument('retry', 'id', format('is %s, which took effect', f.id),
                             'To send its call once more, enqueue it.');
    ELSIF f.outcome = 'unknown' THEN
        PERFORM bad_argument('retry', 'id',
            format('is %s, and nobody can tell whether it took effect', f.id),
            'Find out on the chain. If it did not, enqueue its call anew.');
    ELSIF f.options ? 'signed' THEN
        PERFORM bad_argument('retry', 'id', format('is %s, which was signed elsewhere', f.id),
            'Sign another extrinsic and pass it to enqueue_signed.');
    END IF;
END
$$;

-- Enqueues the call of a transaction that ended without effect once more, with the options that it
-- had, and returns the new id. A second retry of the same transaction returns the same id. The
-- record of the end stays; the views name the one transaction in the row of the other. deadline,
-- deadline_block: in place of its own; infinity and 0: none. One of its own that has passed must be
-- replaced.
CREATE OR REPLACE FUNCTION txrelay.retry(id bigint, deadline timestamptz DEFAULT NULL,
                                         deadline_block bigint DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    v_before jsonb := operation_before('retry', retry.id, NULL, NULL);
    f finished_transactions;
    a record;
    v_new bigint;
    v_priority bigint;
    v_tip numeric;
    v_not_before timestamptz;
    v_deadline timestamptz;
    v_block bigint;
    v_full text;
    v_hint text;
BEGIN
    SELECT * INTO f FROM finished_transactions x WHERE x.id = retry.id ORDER BY x.id LIMIT 1;
    IF f.id IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'TR011', MESSAGE = 'retry: id ' || CASE
                WHEN EXISTS (SELECT FROM status(retry.id))
                THEN format('is %s, which has not ended', retry.id)
                ELSE format('is %s; there is no such transaction',
                            coalesce(retry.id::text, 'NULL')) END,
            HINT = 'Pass the id of a transaction that ended without effect; a record is kept for '
                   'the retention time only.';
    END IF;
    BEGIN
        PERFORM retry_check(f);
    EXCEPTION WHEN SQLSTATE 'TR000' OR insufficient_privilege OR lock_not_available THEN
        GET STACKED DIAGNOSTICS v_hint = PG_EXCEPTION_HINT;
        RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = SQLERRM, HINT = v_hint;
    END;
    -- A concurrent retry of the same transaction waits here.
    INSERT INTO retries (id, asked_by, created_at) VALUES (f.id, asker(), steady_clock())
        ON CONFLICT (id) DO NOTHING;
    IF NOT FOUND THEN
        v_new := (SELECT r.new_id FROM retries r WHERE r.id = f.id);
        PERFORM operation_note('retry', retry.id, NULL, NULL,
            jsonb_build_object('deadline', retry.deadline, 'deadline_block', retry.deadline_block),
            v_before, v_new::text);
        RETURN v_new;
    END IF;
    SELECT x.alias, greatest(x.seen_block, l.seen_block, c.seen_block) AS block INTO a
        FROM accounts x JOIN leadership l ON l.subject = x.account
        LEFT JOIN relay_leases c ON l.leased AND c.holder = l.holder WHERE x.account = f.account;
    v_priority := coalesce((f.options ->> 'priority')::bigint, 0);
    v_tip := (f.options ->> 'tip')::numeric;
    v_not_before := CASE WHEN (f.options ->> 'not_before')::timestamptz > clock_timestamp()
        THEN (f.options ->> 'not_before')::timestamptz END;
    v_deadline := nullif(coalesce(retry.deadline, (f.options ->> 'deadline')::timestamptz),
                         'infinity');
    v_block := nullif(coalesce(retry.deadline_block, (f.options ->> 'deadline_block')::bigint), 0);
    IF retry.deadline IS NULL AND v_deadline <= clock_timestamp() THEN
        RAISE EXCEPTION USING ERRCODE = 'TR011',
            MESSAGE = format('retry: deadline of transaction %s was %s', f.id, v_deadline),
            HINT = 'Pass deadline => a later time, or ''infinity'' for none.';
    ELSIF retry.deadline_block IS NULL AND v_block <= a.block THEN
        RAISE EXCEPTION USING ERRCODE = 'TR011',
            MESSAGE = format('retry: deadline_block of transaction %s was %s, and block %s is '
            'final', f.id, v_block, a.block),
            HINT = 'Pass deadline_block => a later block, or 0 for none.';
    END IF;
    -- What enqueue would refuse in its own name.
    BEGIN
        PERFORM check_options('retry', v_priority, f.creator, v_not_before, v_deadline, NULL,
                              v_tip, NULL, v_block, 0);
        PERFORM check_bounds('retry', a.alias, v_priority, v_tip);
        PERFORM enqueue_account('retry', a.alias, v_priority, v_not_before);
        v_new := new_id('retry');
    EXCEPTION WHEN SQLSTATE 'TR000' OR insufficient_privilege OR lock_not_available THEN
        GET STACKED DIAGNOSTICS v_hint = PG_EXCEPTION_HINT;
        RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = SQLERRM, HINT = v_hint;
    END;
    v_new := enqueue_searching(f.account, v_new, f.call, NULL, v_priority, v_not_before,
        v_deadline, f.creator,
        (f.options ->> 'spec_version')::bigint, v_tip, (f.options ->> 'max_tip')::numeric, v_block,
        coalesce((f.options ->> 'retries')::bigint, 0), f.traceparent);
    UPDATE outbox o SET role = f.role WHERE o.id = v_new AND o.role IS DISTINCT FROM f.role;
    v_full := take_room('retry', f.account, coalesce(f.role, f.creator), v_new,
                        v_new, NOT is_operator());
    IF v_full IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'TR013', MESSAGE = v_full, HINT = full_hint();
    END IF;
    UPDATE retries r SET new_id = v_new WHERE r.id = f.id;
    PERFORM operation_note('retry', retry.id, NULL, NULL,
        jsonb_build_object('deadline', retry.deadline, 'deadline_block', retry.deadline_block),
        v_before, v_new::text);
    RETURN v_new;
END
$$;
