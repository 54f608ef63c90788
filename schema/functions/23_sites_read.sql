-- txrelay: sites: what the leader of an account that has sites reads.

-- The tip that its next bytes pay: its own, or the policy's, or what it was raised to, within its
-- bound and the policy's.
CREATE OR REPLACE FUNCTION txrelay.site_tip(a txrelay.accounts, p_id bigint, p_tip numeric,
                                            p_max_tip numeric) RETURNS numeric
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
BEGIN
    RETURN least(greatest(coalesce(p_tip, (a.policy ->> 'tip_start')::numeric, 0),
                          (SELECT b.tip FROM bumps b WHERE b.id = p_id)),
        p_max_tip, (a.policy ->> 'tip_cap')::numeric);
END
$$;

-- Everything that the core is rebuilt from at a promotion; kind says what a row is:
--
--   key       next nonce of member's key after block final
--   tx        a transaction with granted bytes; stop: it is to be stopped
--   grant     its bytes, behind it: all that were granted and can be included, as of block final
--   dispatch  what this site dispatched for a transaction of member
--
-- Each row has the heights: final; wait_until (0: no wait is on record); lost: commits may be lost,
-- and no wait is on record; highest: the highest block that a relay of this site has heard of. It
-- waits for the subject's writers before it reads, as leader_snapshot does.
CREATE OR REPLACE FUNCTION txrelay.leader_site_load(p_account int, p_epoch bigint)
RETURNS TABLE (final bigint, wait_until bigint, lost boolean, lost_since_ms bigint, highest bigint,
    kind text, member int, id bigint, hash bytea, site_key int, nonce bigint, era_death bigint,
    extrinsic bytea, call bytea, guard bigint, tip numeric, max_tip numeric, deadline_block bigint,
    traceparent text, stop boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    waited CONSTANT accounts := fence_wait(p_account, p_epoch, 'any update');
    a accounts := site_fence('leader_site_load', p_account, p_epoch, 'any read');
    v_now timestamptz := clock_timestamp();
    v_highest bigint := greatest((SELECT max(m.best) FROM members m), a.seen_block, a.used_block,
        a.lost_heard, 0, (SELECT c.seen_block FROM leadership l, claim_times(l) c
                          WHERE l.subject = p_account));
    s site_accounts;
BEGIN
    SELECT * INTO s FROM site_accounts x WHERE x.account = p_account;
    RETURN QUERY
    WITH tx AS (
        SELECT t.*, t.deadline <= v_now OR EXISTS (SELECT FROM cancellations c WHERE c.id = t.id
                                                   AND c.asked_by <> '') AS stop
        FROM site_transactions t WHERE t.account = p_account
    ), found AS (
        SELECT 1 AS part, 'key' AS kind, k.member, NULL::bigint AS id, NULL::bytea AS hash,
            k.member AS site_key, k.next_nonce AS nonce, NULL::bigint AS era_death, NULL::bytea
            AS extrinsic, NULL::bytea AS call, NULL::bigint AS guard,
            NULL::numeric AS tip, NULL::numeric AS max_tip, NULL::bigint
            AS deadline_block, NULL::text AS traceparent, false AS stop,
            0 AS number
        FROM site_peers k WHERE k.account = p_account
        UNION ALL
        SELECT 2, 'tx', s.self, x.id, NULL, NULL, NULL, NULL, NULL, x.call, x.guard,
        site_tip(a, x.id, x.tip, x.max_tip), x.max_tip, x.deadline_block,
            x.traceparent, coalesce(x.stop, false), 0 FROM tx x
        UNION ALL
        SELECT 2, 'grant', t.coordinator, x.id, t.hash, t.site_key, t.nonce, t.era_death,
        t.extrinsic, NULL, NULL, NULL, NULL, NULL,
            NULL, false, t.number
        FROM tx x CROSS JOIN LATERAL (SELECT * FROM attempts y WHERE y.account = p_account
            AND y.nonce = x.nonce
            AND y.id = x.id AND y.site_key = x.site_key AND y.era_death > s.final OFFSET 0) t
        UNION ALL
        SELECT 3, 'dispatch', d.sender, d.id, d.hash, d.site_key, d.nonce, d.era_death,
            coalesce(d.extrinsic, (SELECT t.extrinsic FROM attempts t WHERE t.account = p_account
                AND t.nonce = d.nonce
                AND t.hash = d.hash LIMIT 1)), NULL, NULL, NULL, NULL, NULL, NULL, false, 0
        FROM site_dispatches d WHERE d.account = p_account
    )
    SELECT s.final, s.wait_until, a.reconcile_from IS NOT NULL AND a.lost_heard IS NULL,
        coalesce(floor(extract(epoch FROM a.lost_since) * 1000)::bigint, 0), v_highest, f.kind,
        f.member, f.id, f.hash, f.site_key, f.nonce, f.era_death, f.extrinsic, f.call, f.guard,
        f.tip, f.max_tip, f.deadline_block, f.traceparent, f.stop
    FROM found f ORDER BY f.part, CASE WHEN f.part = 1 THEN f.member END, f.id, f.number;
END
$$;

-- The poll. kind row: a transaction without granted bytes that is not among p_known, in the order
-- of leader_outbox and with its bounds; none while the account is paused. Also those of p_known
-- that were bumped, granted or not: their next bytes pay more. kind stop: one that is to be
-- stopped, known or not, with the outcome and the error to record. One row at least; each has the
-- ms until the next deadline or not_before (NULL: none), and paused.
CREATE OR REPLACE FUNCTION txrelay.leader_site_rows(p_account int, p_epoch bigint, p_limit int,
                                                    p_known bigint[])
RETURNS TABLE (kind text, id bigint, call bytea, guard bigint, tip numeric, max_tip numeric,
    deadline_block bigint, traceparent text, outcome text, error text, next_ms bigint,
    paused boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    a accounts := site_fence('leader_site_rows', p_account, p_epoch, 'any read');
    v_now timestamptz := clock_timestamp();
    -- those that are known come first
    v_most int := coalesce(p_limit, 0) + coalesce(cardinality(p_known), 0);
    v_next timestamptz;
    v_ended bigint[];
BEGIN
    SELECT least(
        (SELECT min(o.deadline) FROM outbox o WHERE o.account = p_account AND o.deadline > v_now),
        (SELECT min(o.not_before) FROM outbox o WHERE o.account = p_account
         AND o.not_before > v_now),
        (SELECT min(t.deadline) FROM site_transactions t WHERE t.account = p_account
         AND t.deadline > v_now)) INTO v_next;
    v_ended := ARRAY(SELECT c.id FROM cancellations c WHERE c.account = p_account
        AND (SELECT x.id FROM outbox x WHERE x.id = c.id LIMIT 1) IS NULL
        AND (SELECT x.id FROM site_transactions x WHERE x.id = c.id LIMIT 1) IS NULL);
    IF cardinality(v_ended) > 0 THEN
        PERFORM fence(p_account, p_epoch, 'any update');
        DELETE FROM cancellations c WHERE c.id = ANY (v_ended);
    END IF;
    v_ended := ARRAY(SELECT b.id FROM bumps b WHERE b.account = p_account
        AND (SELECT x.id FROM outbox x WHERE x.id = b.id LIMIT 1) IS NULL
        AND (SELECT x.id FROM site_transactions x WHERE x.id = b.id LIMIT 1) IS NULL);
    IF cardinality(v_ended) > 0 THEN
        PERFORM fence(p_account, p_epoch, 'any update');
        DELETE FROM bumps b USING (SELECT x.id FROM bumps x WHERE x.id = ANY (v_ended)
                                   FOR UPDATE OF x SKIP LOCKED) d WHERE b.id = d.id;
    END IF;
    RETURN QUERY
    WITH due AS MATERIALIZED (
        (SELECT o.* FROM outbox o WHERE o.account = p_account AND o.not_before IS NULL
            AND (o.deadline IS NULL OR o.deadline > v_now)
            ORDER BY o.account, o.priority DESC, o.id LIMIT v_most)
        UNION ALL
        (SELECT o.* FROM outbox o WHERE o.account = p_account AND o.not_before <= v_now
            AND (o.deadline IS NULL OR o.deadline > v_now)
            ORDER BY o.priority DESC, o.id LIMIT v_most)
    ), new AS (
        SELECT d.*, row_number() OVER w AS place,
            sum(octet_length(d.call)) OVER w - octet_length(d.call) AS before
        FROM due d WHERE NOT a.paused AND NOT EXISTS (SELECT FROM unnest(p_known) k (id)
                                                      WHERE k.id = d.id)
        WINDOW w AS (ORDER BY d.priority DESC, d.id)
    ), held AS (
        SELECT o.id, o.deadline FROM outbox o WHERE o.account = p_account AND o.deadline <= v_now
        UNION ALL
        SELECT t.id, t.deadline FROM site_transactions t WHERE t.account = p_account
        AND t.deadline <= v_now
    ), found AS (
        SELECT 1 AS part, 'row' AS kind, n.id, n.call, n.guard, site_tip(a, n.id, n.tip, n.max_tip)
            AS tip, n.max_tip, n.deadline_block, n.traceparent, NULL::text AS outcome,
            NULL::text AS error, n.place
        FROM new n WHERE n.before < 16777216 AND n.place <= p_limit
        UNION ALL
        SELECT 1, 'row', x.id, x.call, x.guard, site_tip(a, x.id, x.tip, x.max_tip), x.max_tip,
        x.deadline_block, x.traceparent, NULL, NULL, 0
        FROM bumps b CROSS JOIN LATERAL (
            SELECT o.id, o.call, o.guard, o.tip, o.max_tip, o.deadline_block, o.traceparent
                FROM outbox o WHERE o.id = b.id
            UNION ALL
            SELECT t.id, t.call, t.guard, t.tip, t.max_tip, t.deadline_block, t.traceparent
            FROM site_transactions t WHERE t.id = b.id
            OFFSET 0) x
        WHERE b.account = p_account
            AND EXISTS (SELECT FROM unnest(p_known) k (id) WHERE k.id = b.id)
        UNION ALL
        SELECT 2, 'stop', c.id, NULL, NULL, NULL, NULL, NULL, NULL, 'cancelled',
        'cancelled by ' || c.asked_by, c.id
        FROM cancellations c WHERE c.account = p_account AND c.asked_by <> ''
        UNION ALL
        SELECT 2, 'stop', h.id, NULL, NULL, NULL, NULL, NULL, NULL, 'expired',
        format('the deadline %s passed before it was included',
            h.deadline), h.id
        FROM held h WHERE NOT EXISTS (SELECT FROM cancellations c WHERE c.id = h.id)
    )
    SELECT f.kind, f.id, f.call, f.guard, f.tip, f.max_tip, f.deadline_block, f.traceparent,
    f.outcome, f.error, left_ms(v_next), a.paused
    FROM (SELECT) one LEFT JOIN found f ON true ORDER BY f.part, f.place;
END
$$;

-- After lost commits: whose call each extrinsic of a finalized block carries. id: the first
-- transaction that has this call, has not ended and was there when the block was made (clocks may
-- differ by a minute; at_ms NULL: not known); 0: none. equals: how many there are. One row per
-- call, in their order.
CREATE OR REPLACE FUNCTION txrelay.leader_site_match(p_account int, p_epoch bigint,
                                                     p_calls bytea[], p_times bigint[])
RETURNS TABLE (id bigint, equals bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    a accounts := site_fence('leader_site_match', p_account, p_epoch, 'any read');
    v_count int := batch_size('leader_site_match', cardinality(p_calls), cardinality(p_times));
BEGIN
    RETURN QUERY
    WITH held AS MATERIALIZED (
        SELECT o.id, o.call, o.priority, o.created_at FROM outbox o WHERE o.account = a.account
            AND o.call = ANY (p_calls)
        UNION ALL
        SELECT t.id, t.call, t.priority, t.created_at FROM site_transactions t
        WHERE t.account = a.account AND t.call = ANY (p_calls)
    )
    SELECT coalesce(m.ids[1], 0), coalesce(cardinality(m.ids), 0)::bigint
    FROM unnest(p_calls, p_times) WITH ORDINALITY u (call, at, n)
    LEFT JOIN LATERAL (SELECT array_agg(h.id ORDER BY h.priority DESC, h.id) AS ids FROM held h
        WHERE h.call = u.call
        AND (coalesce(u.at, -1) < 0
             OR h.created_at <= to_timestamp(u.at / 1000.0) + interval '1 min')) m ON v_count > 0
    ORDER BY u.n;
END
$$;
