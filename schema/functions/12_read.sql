-- txrelay: what a leader reads: its account, its pending transactions, and what may be admitted.
-- Each function begins with the fence.

-- The account's facts, for a load. suspension_text: why a leader suspended it. This and
-- leader_snapshot wait for the subject's writers before they read: a write of a session that is
-- gone may still commit, and would otherwise come after the read.
CREATE OR REPLACE FUNCTION txrelay.leader_account(p_account int, p_epoch bigint)
RETURNS TABLE (next_nonce bigint, used_nonce bigint, used_block bigint, seen_block bigint,
    reconcile_from bigint, lost_since_ms bigint, lost_until bigint, era_immortal boolean,
    suspension_text text, paused boolean, suspension text, reborn boolean,
    transaction_version bigint, tip_start numeric, tip_step numeric, tip_cap numeric,
    tip_step_percent int, tip_after_blocks int, skip_after_blocks int, requeue_usurped boolean,
    low_balance numeric, retry_refusals text)
LANGUAGE plpgsql SECURITY DEFINER ROWS 1 SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    a accounts := fence_wait(p_account, p_epoch, 'update');
BEGIN
    RETURN QUERY SELECT a.next_nonce, a.used_nonce, a.used_block,
        greatest(c.seen_block, a.seen_block, a.used_block), a.reconcile_from,
        floor(extract(epoch FROM a.lost_since) * 1000)::bigint, a.lost_heard + a.era_longest,
        a.era_immortal,
        CASE WHEN a.paused_by = 'leader' THEN a.paused_reason END, f.*
        FROM account_facts(a) f, leadership l, claim_times(l) c WHERE l.subject = p_account;
END
$$;

-- Pending rows above p_after_nonce (-1: all), in the order of nonces, with the bytes of the current
-- attempt. earlier: hashes of the row's other attempts, which may still be included: first the
-- earlier_own ones with the transaction's own call, then fillers that were to stop it.
-- earlier_death: the last end of their eras, -1 if one is immortal. The attempts at a nonce are not
-- all the row's: the account may have used the nonce before, in a former life, and a block of that
-- life may be read again. So a transaction has the attempts that name it, a filler those of
-- whatever had the nonce before it, and neither has one that a block on record holds.
CREATE OR REPLACE FUNCTION txrelay.leader_snapshot(p_account int, p_epoch bigint,
                                                   p_after_nonce bigint, p_limit int)
RETURNS TABLE (nonce bigint, id bigint, state text, hash bytea, attempt int, extrinsic bytea,
    call bytea, block_hash bytea, block_number bigint, era_birth bigint, era_death bigint,
    spec_version bigint, transaction_version bigint, tip numeric, block bigint, earlier bytea[],
    earlier_own int, earlier_death bigint, unknown boolean,
    priority int, deadline timestamptz, creator text, created_at timestamptz,
    admitted_at timestamptz, guard bigint, max_tip numeric, deadline_block bigint, retries int,
    filler int, stop_outcome text, stop_reason text, signed boolean,
    traceparent text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    PERFORM fence_wait(p_account, p_epoch, 'update');
    RETURN QUERY
    SELECT p.nonce, p.id, p.state::text, p.hash, p.attempt, t.extrinsic, p.call, p.block_hash,
    p.block_number,
           t.era_birth, t.era_death, t.spec_version, t.transaction_version, t.tip, t.block,
           coalesce((p.earlier).hashes, '{}'), coalesce((p.earlier).own, 0),
           coalesce((p.earlier).death, 0), p.unknown, p.priority, p.deadline, p.creator,
           p.created_at, p.admitted_at, p.guard, p.max_tip, p.deadline_block, p.retries, t.filler,
           p.stop_outcome::text, p.stop_reason, p.signed, p.traceparent
    FROM (SELECT x.*, CASE WHEN x.attempt > 1 THEN -- few rows: the others do not pay for them
            (SELECT ROW(array_agg(t.hash ORDER BY t.filler IS NOT NULL, t.number),
                 count(*) FILTER (WHERE t.filler IS NULL), CASE WHEN bool_or(t.era_death IS NULL)
                 THEN -1 ELSE max(t.era_death) END)::earlier_attempts FROM attempts t
             WHERE t.account = p_account AND t.nonce = x.nonce AND t.number < x.attempt
                 AND (x.id IS NULL OR t.id = x.id) AND t.outcome <> 'included') END AS earlier
          FROM pending_transactions x WHERE x.account = p_account AND x.nonce > p_after_nonce
          ORDER BY x.account, x.nonce LIMIT p_limit) p
    CROSS JOIN LATERAL (SELECT * FROM attempts x WHERE x.account = p_account AND x.nonce = p.nonce
        AND x.number = p.attempt OFFSET 0) t
    ORDER BY p.nonce;
END
$$;

-- Rows that may be admitted now, by priority and id. None while the account is paused, and none
-- whose deadline has passed. At most 16 MiB of calls, but always one row: fewer than p_limit does
-- not mean that these were all. Rows that an application holds are passed over (05_locks.sql). If
-- there are any, the last row names the first of them: it has no call, and creator says who holds
-- it.
CREATE OR REPLACE FUNCTION txrelay.leader_outbox(p_account int, p_epoch bigint, p_limit int)
RETURNS TABLE (id bigint, call bytea, priority int, deadline timestamptz, creator text,
    created_at timestamptz, attempts int, guard bigint, tip numeric, max_tip numeric,
    deadline_block bigint, retries int, traceparent text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    a accounts := fence(p_account, p_epoch, 'read');
    v_now timestamptz := clock_timestamp();
BEGIN
    IF a.paused THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH has_rows AS MATERIALIZED (
        (SELECT o.* FROM outbox o WHERE o.account = p_account AND o.not_before IS NULL
            AND (o.deadline IS NULL OR o.deadline > v_now)
            AND (o.xmax = 0 OR NOT o.xmax = ANY ((SELECT running_xids())::xid[])
                 AND row_free(o.id)) ORDER BY o.account, o.priority DESC, o.id LIMIT p_limit)
        UNION ALL
        (SELECT o.* FROM outbox o WHERE o.account = p_account AND o.not_before <= v_now
            AND (o.deadline IS NULL OR o.deadline > v_now)
            AND (o.xmax = 0 OR NOT o.xmax = ANY ((SELECT running_xids())::xid[])
                 AND row_free(o.id)) ORDER BY o.priority DESC, o.id LIMIT p_limit)
    ), row_of AS (
        SELECT r.*, sum(octet_length(r.call)) OVER (ORDER BY r.priority DESC, r.id)
            - octet_length(r.call) AS before
        FROM has_rows r
    )
    SELECT r.id, r.call, r.priority, CASE WHEN time_fits(r.deadline) THEN r.deadline END,
    r.creator, r.created_at, r.attempts, r.guard, r.tip, r.max_tip,
        r.deadline_block, r.retries, r.traceparent FROM row_of r
        WHERE r.before < 16777216 ORDER BY r.priority DESC, r.id LIMIT p_limit;
    IF current_setting('txrelay.held', true) = '1' THEN
        RETURN QUERY SELECT o.id, NULL::bytea, 0, NULL::timestamptz, h.who, o.created_at,
            0, NULL::bigint, NULL::numeric, NULL::numeric, NULL::bigint, 0, NULL::text
        FROM (SELECT x.id, x.created_at, x.xmax AS held FROM outbox x WHERE x.account = p_account
              ORDER BY x.account, x.not_before IS NOT NULL, x.priority DESC,
              x.id LIMIT p_limit + 1000) o
            CROSS JOIN LATERAL row_holder(o.held) h WHERE o.held <> 0 LIMIT 1;
    END IF;
END
$$;

-- Presigned rows that the leader must decide on at the finalized block p_block: new ones; those
-- whose nonce is below the next one (p_next); those whose turn has come, in a gapless run of nonces
-- from the next one; those whose era is over; those that waited for a block (waited). None while
-- the account is paused, and none that an application holds (05_locks.sql). If there are any of
-- these, the last row names the first of them, as in leader_outbox: it has no extrinsic.
CREATE OR REPLACE FUNCTION txrelay.leader_presigned(p_account int, p_epoch bigint, p_limit int,
                                                    p_next bigint, p_block bigint)
RETURNS TABLE (id bigint, extrinsic bytea, creator text, created_at timestamptz, waited boolean,
               traceparent text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    a accounts := fence(p_account, p_epoch, 'read');
BEGIN
    IF a.paused THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH due AS MATERIALIZED (
        SELECT s.id, s.nonce - p_next < dense_rank() OVER (ORDER BY s.nonce) AS turn
        FROM (SELECT x.id, x.nonce FROM outbox_presigned x WHERE x.account = p_account
                AND x.nonce >= p_next
                AND (x.xmax = 0 OR NOT x.xmax = ANY ((SELECT running_xids())::xid[])
                     AND row_free(x.id))
                AND (x.wait_block IS NULL OR x.wait_block <= p_block) ORDER BY x.account, x.nonce,
                    x.id LIMIT p_limit) s
    ), row_of AS (
        (SELECT s.id FROM outbox_presigned s WHERE s.account = p_account AND s.nonce IS NULL
            AND (s.wait_block IS NULL OR s.wait_block <= p_block) ORDER BY s.id LIMIT p_limit)
        UNION
        (SELECT s.id FROM outbox_presigned s WHERE s.account = p_account AND s.nonce < p_next
            AND (s.wait_block IS NULL OR s.wait_block <= p_block) ORDER BY s.account, s.nonce,
            s.id LIMIT p_limit)
        UNION
        SELECT d.id FROM due d WHERE d.turn
        UNION
        (SELECT s.id FROM outbox_presigned s WHERE s.account = p_account
            AND coalesce(s.wait_block, s.era_death) <= p_block
            ORDER BY s.account, s.nonce, s.id LIMIT p_limit)
    )
    SELECT s.id, s.extrinsic, s.creator, s.created_at, s.wait_block IS NOT NULL, s.traceparent
    FROM row_of r
        CROSS JOIN LATERAL (SELECT * FROM outbox_presigned x WHERE x.id = r.id
            AND (x.xmax = 0 OR NOT x.xmax = ANY ((SELECT running_xids())::xid[])
                 AND row_free(x.id)) ORDER BY x.id LIMIT 1) s
        ORDER BY s.nonce NULLS LAST, s.id LIMIT p_limit;
    IF current_setting('txrelay.held', true) = '1' THEN
        RETURN QUERY SELECT o.id, NULL::bytea, h.who, o.created_at, false, NULL::text
        FROM (SELECT x.id, x.created_at, x.xmax AS held FROM outbox_presigned x
              WHERE x.account = p_account
              ORDER BY x.account, x.nonce, x.id LIMIT p_limit + 1000) o
            CROSS JOIN LATERAL row_holder(o.held) h WHERE o.held <> 0 LIMIT 1;
    END IF;
END
$$;
