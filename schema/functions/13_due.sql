-- txrelay: what the database's clock and the applications ask of a leader.

-- Milliseconds until a time, rounded up, 0 if it has passed; NULL for a time that is not finite.
-- Postgres inlines this and request_times into their callers.
CREATE OR REPLACE FUNCTION txrelay.left_ms(p_time timestamptz) RETURNS bigint
LANGUAGE sql AS $$
    SELECT CASE WHEN txrelay.time_fits(p_time)
        THEN pg_catalog.int8(GREATEST(0, pg_catalog.ceil(EXTRACT(epoch FROM
        p_time OPERATOR(pg_catalog.-) pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 1000)))
        END
$$;

-- asked: a cancellation or a bump is there. has_rows: a row that waited for its not_before may be
-- admitted. next: the next deadline, which may have passed, or not_before, of all transactions.
-- next_outbox: the same of those that wait in the outbox.
CREATE OR REPLACE FUNCTION txrelay.request_times(p_account int, p_now timestamptz)
RETURNS TABLE (asked boolean, has_rows boolean, next timestamptz, next_outbox timestamptz)
LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT EXISTS (SELECT FROM txrelay.cancellations c
                   WHERE c.account OPERATOR(pg_catalog.=) p_account)
            OR EXISTS (SELECT FROM txrelay.bumps b
                       WHERE b.account OPERATOR(pg_catalog.=) p_account),
        EXISTS (SELECT FROM txrelay.outbox o WHERE o.account OPERATOR(pg_catalog.=) p_account
            AND o.not_before OPERATOR(pg_catalog.<=) p_now
            AND (o.deadline IS NULL OR o.deadline OPERATOR(pg_catalog.>) p_now)),
        LEAST(t.next, (SELECT pg_catalog.min(p.deadline) FROM txrelay.pending_transactions p
            WHERE p.account OPERATOR(pg_catalog.=) p_account AND p.deadline IS NOT NULL)), t.next
    FROM (SELECT LEAST((SELECT pg_catalog.min(o.deadline) FROM txrelay.outbox o
            WHERE o.account OPERATOR(pg_catalog.=) p_account AND o.deadline IS NOT NULL),
        (SELECT pg_catalog.min(o.not_before) FROM txrelay.outbox o
            WHERE o.account OPERATOR(pg_catalog.=) p_account
            AND o.not_before OPERATOR(pg_catalog.>) p_now)) AS next) t
$$;

-- Ends outbox rows whose deadline has passed, and cancelled ones that came back from a lost nonce.
-- Before the account is reconciled (17_reconcile.sql) it ends none, and says nothing sooner than
-- in a second. Rows that an application holds are left for a later poll (05_locks.sql). It writes
-- only if there is something to end. Returns
-- - one row for each pending transaction to stop, with the outcome that it ends with if none of its
--   bytes is included,
-- - one row, with outcome NULL, for each that must pay a higher tip, with the least tip of its next
--   attempt,
-- - one row, with nonce NULL, for each transaction that has ended without a nonce: those that this
-- call ended,
--   and those that ended since the last one and that no leader ended, 10,000 of them at most,
-- - at least one row (nonce and id NULL if there is nothing to do).
-- Every row carries: whether a row that waited for its time may be admitted now (has_rows), the ms
-- until the next deadline or not_before (next_ms, NULL: none), the account's facts, and their
-- fingerprint.
CREATE OR REPLACE FUNCTION txrelay.leader_poll_requests(p_account int, p_epoch bigint)
RETURNS TABLE (nonce bigint, id bigint, outcome text, error text, tip numeric, has_rows boolean,
    next_ms bigint, fingerprint bigint, paused boolean, suspension text, reborn boolean,
    transaction_version bigint, tip_start numeric, tip_step numeric,
    tip_cap numeric, tip_step_percent int, tip_after_blocks int, skip_after_blocks int,
    requeue_usurped boolean, low_balance numeric, retry_refusals text, traceparent text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    a accounts := fence(p_account, p_epoch, 'read');
    v_now timestamptz := clock_timestamp();
    v_ids bigint[];
    v_ended bigint[];
    v_outcomes tx_outcome[];
    v_errors text[];
    v_cap numeric := (a.policy ->> 'tip_cap')::numeric;
    v_tips numeric[];
    v_asked boolean;
    v_has_rows boolean;
    v_next timestamptz;
    v_more boolean; -- there may be more that is late than one call ends
BEGIN
    SELECT x.asked, x.has_rows, x.next INTO v_asked, v_has_rows, v_next
        FROM request_times(p_account, v_now) x;
    IF NOT v_asked AND (v_next > v_now) IS NOT FALSE THEN -- nearly always
        RETURN QUERY SELECT NULL::bigint, NULL::bigint, NULL, NULL, NULL::numeric, v_has_rows
            AND NOT a.paused,
            left_ms(v_next), account_fingerprint(a), f.*, NULL::text FROM account_facts(a) f;
        RETURN;
    END IF;
    SELECT array_agg(e.id ORDER BY e.id), array_agg(e.outcome ORDER BY e.id),
        array_agg(e.error ORDER BY e.id)
        INTO v_ids, v_outcomes, v_errors FROM (
        SELECT c.id, 'cancelled'::tx_outcome AS outcome, 'cancelled by ' || c.asked_by AS error
        FROM cancellations c CROSS JOIN LATERAL (SELECT FROM outbox x WHERE x.id = c.id
            AND (x.xmax = 0 OR NOT x.xmax = ANY ((SELECT running_xids())::xid[])
                 AND row_free(x.id)) LIMIT 1) o
        WHERE c.account = p_account
        UNION ALL
        (SELECT o.id, 'expired'::tx_outcome, format('the deadline %s passed before it was sent',
                                                    o.deadline)
        FROM outbox o WHERE o.account = p_account AND o.deadline <= v_now
            AND (o.xmax = 0 OR NOT o.xmax = ANY ((SELECT running_xids())::xid[]) AND row_free(o.id))
            AND NOT EXISTS (SELECT FROM cancellations c WHERE c.id = o.id)
        ORDER BY o.account, o.deadline LIMIT 1000)) e WHERE a.reconcile_from IS NULL;
    v_more := cardinality(v_ids) >= 1000;
    IF v_ids IS NOT NULL THEN
        PERFORM fence(p_account, p_epoch, 'update');
        PERFORM wait_briefly();
        PERFORM outbox_end(p_account, v_ids, v_outcomes, v_errors, p_epoch);
    END IF;
    v_ended := v_ids || ARRAY(SELECT c.id FROM cancellations c WHERE c.account = p_account
                              AND c.asked_by = '' LIMIT 10000);
    v_ids := ARRAY(SELECT c.id FROM cancellations c WHERE c.account = p_account
        AND (c.asked_by <> '' OR c.id = ANY (v_ended))
        AND (pending_of(c.id)).id IS NULL
        AND (SELECT x.id FROM outbox x WHERE x.id = c.id LIMIT 1) IS NULL);
    IF cardinality(v_ids) > 0 THEN
        PERFORM fence(p_account, p_epoch, 'update');
        DELETE FROM cancellations c WHERE c.id = ANY (v_ids);
    END IF;
    -- Remove a bump once it is paid, as far as the caps allow, or once its transaction has ended.
    -- One that was raised since it was read stays.
    SELECT array_agg(b.id ORDER BY b.id), array_agg(b.tip ORDER BY b.id) INTO v_ids, v_tips
        FROM bumps b
        CROSS JOIN LATERAL (SELECT p.max_tip,
            (SELECT t.tip FROM attempts t WHERE t.account = p.account
            AND t.nonce = p.nonce AND t.number = p.attempt) AS tip
            FROM pending_of(b.id) p OFFSET 0) p
        WHERE b.account = p_account AND CASE
            WHEN p.tip IS NOT NULL THEN p.tip >= least(b.tip, p.max_tip, v_cap)
            ELSE (SELECT x.id FROM outbox x WHERE x.id = b.id LIMIT 1) IS NULL END;
    IF v_ids IS NOT NULL THEN
        PERFORM fence(p_account, p_epoch, 'update');
        DELETE FROM bumps b USING (SELECT x.id FROM unnest(v_ids, v_tips) d (id, tip)
            JOIN bumps x ON x.id = d.id
            AND x.tip = d.tip FOR UPDATE OF x SKIP LOCKED) d WHERE b.id = d.id;
    END IF;
    -- What is late and was left counts only if the next poll can end it: a row that an application
    -- holds must not make the caller poll again at once.
    SELECT x.has_rows, least(CASE WHEN v_more OR a.reconcile_from IS NOT NULL THEN x.next_outbox
            ELSE least(
            (SELECT min(o.deadline) FROM outbox o WHERE o.account = p_account
             AND o.deadline > v_now),
            (SELECT min(o.not_before) FROM outbox o WHERE o.account = p_account
             AND o.not_before > v_now)) END,
        (SELECT min(p.deadline) FROM pending_transactions p WHERE p.account = p_account
         AND p.deadline > v_now))
        INTO v_has_rows, v_next FROM request_times(p_account, v_now) x;
    IF a.reconcile_from IS NOT NULL AND v_next < v_now + interval '1 s' THEN
        v_next := v_now + interval '1 s';
    END IF;
    RETURN QUERY
    SELECT s.nonce, s.id, s.outcome, s.error, s.tip, v_has_rows AND NOT a.paused, left_ms(v_next),
    account_fingerprint(a), f.*,
        s.traceparent
    FROM account_facts(a) f LEFT JOIN (
        SELECT p.nonce, p.id, 'cancelled' AS outcome,
            'cancelled by ' || c.asked_by AS error, NULL::numeric AS tip, NULL AS traceparent
        FROM cancellations c CROSS JOIN LATERAL pending_of(c.id) p WHERE c.account = p_account
            AND p.id IS NOT NULL
        UNION ALL
        SELECT p.nonce, p.id, 'expired', format('the deadline %s passed before it was included',
                                                p.deadline), NULL, NULL
        FROM (SELECT x.* FROM pending_transactions x WHERE x.account = p_account
              AND x.deadline <= v_now
              ORDER BY x.account, x.deadline OFFSET 0) p
        WHERE p.id IS NOT NULL
            AND (SELECT c.id FROM cancellations c WHERE c.id = p.id LIMIT 1) IS NULL
        UNION ALL
        SELECT p.nonce, p.id, NULL, NULL, p.least, NULL
        FROM bumps b CROSS
        JOIN LATERAL (SELECT p.nonce, p.id, least(b.tip, p.max_tip, v_cap) AS least,
            (SELECT t.tip FROM attempts t WHERE t.account = p.account AND t.nonce = p.nonce
             AND t.number = p.attempt) AS tip
            FROM pending_of(b.id) p OFFSET 0) p
        WHERE b.account = p_account AND p.tip < p.least
        UNION ALL
        SELECT NULL, e.id, f.outcome::text, f.error, NULL, f.traceparent
        FROM unnest(v_ended) e (id) CROSS JOIN LATERAL (SELECT x.outcome, x.error, x.traceparent
            FROM finished_transactions x
            WHERE x.id = e.id ORDER BY x.id LIMIT 1) f) s ON true
    ORDER BY s.nonce, s.outcome, s.id;
END
$$;

-- The first p_most accounts, by number, for which leader_outbox or leader_poll_requests would find
-- anything. It probes each index once per such account, however many accounts and rows there are.
-- outbox_deadline needs no probe: its rows are in the other two indexes of the outbox as well.
CREATE OR REPLACE FUNCTION txrelay.accounts_with_work(p_most bigint) RETURNS int[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
BEGIN
    RETURN ARRAY(
        WITH RECURSIVE found (account, n) AS (
            SELECT -2147483648, 0::bigint
            UNION ALL
            SELECT least(
                (SELECT min(o.account) FROM outbox o WHERE o.account > f.account
                 AND o.not_before IS NULL),
                (SELECT min(o.account) FROM outbox o WHERE o.account > f.account
                 AND o.not_before IS NOT NULL),
                (SELECT min(s.account) FROM outbox_presigned s WHERE s.account > f.account),
                (SELECT min(p.account) FROM pending_transactions p WHERE p.account > f.account
                 AND p.deadline IS NOT NULL),
                (SELECT min(t.account) FROM site_transactions t WHERE t.account > f.account),
                (SELECT min(c.account) FROM cancellations c WHERE c.account > f.account),
                (SELECT min(b.account) FROM bumps b WHERE b.account > f.account)), f.n + 1
            FROM found f WHERE f.account IS NOT NULL AND f.n < p_most
        )
        SELECT f.account FROM found f WHERE f.n > 0 AND f.account IS NOT NULL);
END
$$;

-- Polls many accounts in one statement, in place of leader_poll_requests and leader_outbox for
-- each. Element by element, the caller passes the epoch under which it leads the account and the
-- fingerprint of the facts that it knows (NULL: none, then changed facts are not reported). It
-- writes nothing. Accounts with none of these are left out; rows come in the order of the question:
--
--   lost          the caller no longer leads the account under this epoch
--   has_requests  leader_poll_requests has something: a cancellation, a bump, a passed deadline,
--                 other facts
--   has_rows      leader_outbox has a row, or a presigned transaction waits (the chain knows for
--                 what)
--   next_ms       ms until the next deadline or not_before, if that is within p_ahead_ms
CREATE OR REPLACE FUNCTION txrelay.leader_due(p_accounts int[], p_epochs bigint[],
                                              p_fingerprints bigint[], p_ahead_ms int)
RETURNS TABLE (account int, lost boolean, has_requests boolean, has_rows boolean, next_ms bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_ahead timestamptz := v_now + p_ahead_ms * interval '1 ms';
    v_timelines int[] := timelines();
    v_most int := batch_size('leader_due', cardinality(p_accounts), cardinality(p_epochs),
                             cardinality(p_fingerprints)) / 2 + 10;
    v_busy int[] := accounts_with_work(v_most);
    v_all boolean := cardinality(v_busy) >= v_most; -- with that many busy accounts, probe all
BEGIN
    RETURN QUERY
    SELECT a.account, NOT a.led, a.led AND (a.changed OR coalesce(d.asked OR d.late, false)),
        a.led AND NOT a.paused AND coalesce(d.has_rows, false),
        CASE WHEN a.led AND d.next <= v_ahead THEN ceil(extract(epoch FROM d.next - v_now) * 1000)
        END::bigint
    FROM (SELECT b.account, b.n, coalesce(t.led, false) AS led, t.paused,
            coalesce(t.fingerprint <> b.fingerprint, false) AS changed,
            v_all OR b.account IN (SELECT unnest(v_busy)) AS busy -- hashed once
        FROM unnest(p_accounts, p_epochs, p_fingerprints) WITH ORDINALITY b (account, epoch,
            fingerprint, n)
        LEFT JOIN LATERAL (SELECT l.epoch = b.epoch AND l.holder IS NOT NULL
            AND l.timeline = ANY (v_timelines) AS led,
            x.paused, account_fingerprint(x) AS fingerprint FROM accounts x
            JOIN leadership l ON l.subject = x.account
            WHERE x.account = b.account OFFSET 0) t ON true
        OFFSET 0) a
    LEFT JOIN LATERAL (SELECT
        EXISTS (SELECT FROM cancellations c WHERE c.account = a.account)
        OR EXISTS (SELECT FROM bumps m
            WHERE m.account = a.account AND NOT EXISTS (SELECT FROM outbox o WHERE o.id = m.id))
            AS asked,
        least(q.deadline, p.deadline) <= v_now AS late,
        EXISTS (SELECT FROM outbox o WHERE o.account = a.account AND o.not_before IS NULL
            AND (o.deadline IS NULL OR o.deadline > v_now))
            OR EXISTS (SELECT FROM outbox o WHERE o.account = a.account
            AND o.not_before <= v_now AND (o.deadline IS NULL OR o.deadline > v_now))
            OR EXISTS (SELECT FROM outbox_presigned s WHERE s.account = a.account) AS has_rows,
        least(CASE WHEN q.deadline > v_now THEN q.deadline END, CASE
            WHEN p.deadline > v_now THEN p.deadline END,
            (SELECT min(o.not_before) FROM outbox o WHERE o.account = a.account
             AND o.not_before > v_now)) AS next
        FROM (SELECT min(o.deadline) AS deadline FROM outbox o WHERE o.account = a.account
              AND o.deadline IS NOT NULL) q,
            (SELECT least((SELECT min(x.deadline) FROM pending_transactions x
                           WHERE x.account = a.account AND x.deadline IS NOT NULL),
                (SELECT min(x.deadline) FROM site_transactions x WHERE x.account = a.account))
                    AS deadline) p
        WHERE a.busy OFFSET 0) d ON true
    WHERE NOT a.led OR a.changed OR d.asked OR d.late OR (d.has_rows AND NOT a.paused)
        OR d.next <= v_ahead
    ORDER BY a.n;
END
$$;
