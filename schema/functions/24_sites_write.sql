-- txrelay: sites: what the leader of an account that has sites writes. 14_admit.sql explains
-- batches and plans.
--
-- One call stores the effects of one step of the core (site/core), so they are one transaction. The
-- rules that hold for any writer are checked here: S-I3 and S-I5 (docs/design.md, section 10), the
-- bound of eras, the wait after lost commits.

-- Gives transactions bytes: those of the outbox become site_transactions; those that have bytes
-- keep their place and get newer ones. One element per transaction. Returns how many it found.
CREATE OR REPLACE FUNCTION txrelay.site_move(a txrelay.accounts, p_epoch bigint,
                                             p_rows txrelay.site_write[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    v_block bigint := (SELECT s.final FROM site_accounts s WHERE s.account = a.account);
    v_found bigint;
BEGIN
    UPDATE attempts t SET outcome = CASE WHEN t.outcome IN ('live', 'unknown') THEN 'replaced'
        ELSE t.outcome END,
        reason = coalesce(t.reason, 'newer bytes were granted'), state = p.state,
        block_hash = p.block_hash, block_number = p.block_number, error = p.error,
        ended_at = coalesce(t.ended_at, clock_timestamp())
    FROM unnest(p_rows) b
        CROSS JOIN LATERAL (SELECT * FROM site_transactions y WHERE y.id = b.id
                            AND y.account = a.account OFFSET 0) p
        CROSS JOIN LATERAL (SELECT x.ctid AS at FROM attempts x WHERE x.account = a.account
            AND x.nonce = p.nonce
            AND x.number = p.attempt OFFSET 0) x
    WHERE t.ctid = x.at;
    WITH given AS MATERIALIZED (
        SELECT b.*, (SELECT coalesce(max(t.number), 0) FROM attempts t WHERE t.account = a.account
                     AND t.nonce = b.nonce)
            + row_number() OVER (PARTITION BY b.nonce ORDER BY b.n) AS nth
        FROM unnest(p_rows) b
    ), again AS (
        UPDATE site_transactions p SET nonce = b.nonce, site_key = b.site_key, hash = b.hash,
            attempt = b.nth, dies = greatest(p.dies, b.death), coordinator = b.member,
            attempts = p.attempts + 1, state = 'signed', block_hash = NULL, block_number = NULL,
            error = NULL, epoch = p_epoch, updated_at = clock_timestamp()
        FROM given b CROSS JOIN LATERAL (SELECT x.ctid AS at FROM site_transactions x
            WHERE x.id = b.id AND x.account = a.account
            OFFSET 0) x
        WHERE p.ctid = x.at RETURNING b.n
    ), moved AS (
        DELETE FROM outbox o USING given b CROSS
            JOIN LATERAL (SELECT x.ctid AS at FROM outbox x WHERE x.id = b.id
            AND x.account = a.account OFFSET 0) x
        WHERE o.ctid = x.at RETURNING o.*, b.n, b.nonce, b.site_key, b.hash, b.nth, b.death,
            b.member
    ), granted AS (
        INSERT INTO site_transactions (id, account, account_id, nonce, site_key, hash, attempt,
            dies, coordinator, attempts, state, epoch, call, key, creator, role, priority,
            deadline, guard, tip, max_tip, deadline_block, retries, traceparent, created_at)
        SELECT m.id, a.account, a.account_id, m.nonce, m.site_key, m.hash, m.nth, m.death,
            m.member, m.attempts + 1, 'signed', p_epoch, m.call, m.key, m.creator, m.role,
            m.priority, m.deadline, m.guard, m.tip, m.max_tip, m.deadline_block, m.retries,
            m.traceparent, m.created_at
        FROM moved m ORDER BY m.n
    ), tried AS (
        INSERT INTO attempts (account, nonce, number, id, hash, extrinsic, tip, era_birth,
            era_death, spec_version, transaction_version, block, epoch, site_key, coordinator)
        SELECT a.account, b.nonce, b.nth, b.id, b.hash, b.extrinsic, coalesce(b.tip, 0),
            nullif(b.birth, -1), b.death, coalesce(b.spec_version, 0),
            coalesce(b.transaction_version, 0), v_block, p_epoch, b.site_key, b.member
        FROM given b WHERE b.n IN (SELECT g.n FROM again g UNION ALL SELECT m.n FROM moved m)
    )
    SELECT (SELECT count(*) FROM again) + count(*) INTO v_found FROM moved;
    RETURN v_found;
END
$$;

-- The grants of a batch. Bytes that are on record are left as they are: the same grant twice is
-- one.
CREATE OR REPLACE FUNCTION txrelay.site_grant(a txrelay.accounts, p_epoch bigint,
                                              p_rows txrelay.site_write[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    v_rows site_write[];
    v_turn site_write[];
    v_found bigint;
    b record;
BEGIN
    IF a.reconcile_from IS NOT NULL THEN
        PERFORM not_reconciled('leader_site_store', a);
    END IF;
    SELECT g.id, g.death, s.final + s.era_blocks AS bound INTO b FROM unnest(p_rows) g
        CROSS JOIN site_accounts s LEFT JOIN site_peers k ON k.account = a.account
        AND k.member = g.site_key
        WHERE s.account = a.account
        AND ((g.death > s.final AND g.death <= s.final + s.era_blocks AND g.nonce >= k.next_nonce
            AND octet_length(g.hash) = 32 AND octet_length(g.extrinsic) > 0
            AND g.member >= 0) IS NOT TRUE) LIMIT 1;
    IF FOUND THEN
        PERFORM order_error(format(
            'leader_site_store: bytes of transaction %s that die with block %s cannot be granted',
                b.id, b.death),
            format('Bytes that are dead, or alive beyond block %s, or not complete, are refused.',
                   b.bound));
    END IF;
    v_rows := ARRAY(SELECT g FROM unnest(p_rows) g
        WHERE NOT EXISTS (SELECT FROM attempts t WHERE t.account = a.account
        AND t.nonce = g.nonce AND t.hash = g.hash AND t.id = g.id) ORDER BY g.n);
    -- nearly always once: a transaction seldom gets bytes twice in a step
    WHILE cardinality(v_rows) > 0 LOOP
        v_turn := ARRAY(SELECT DISTINCT ON (x.id) x FROM unnest(v_rows) x ORDER BY x.id, x.n);
        SELECT t.id, t.nonce, g.nonce AS other INTO b FROM unnest(v_turn) g
            CROSS JOIN LATERAL (SELECT * FROM site_transactions x WHERE x.id = g.id OFFSET 0) t
            WHERE (t.nonce, t.site_key) <> (g.nonce, g.site_key) LIMIT 1;
        IF FOUND THEN
            PERFORM order_error(format('leader_site_store: transaction %s has bytes at nonce %s '
                                       'that can still be included, and is '
                'granted others at %s', b.id, b.nonce, b.other),
                    'Others at another nonce or key are granted when these are dead.');
        END IF;
        v_found := site_move(a, p_epoch, v_turn);
        IF v_found <> cardinality(v_turn) THEN
            PERFORM batch_changed('leader_site_store', 'the outbox', v_found, cardinality(v_turn));
        END IF;
        v_rows := ARRAY(SELECT g FROM unnest(v_rows) g
                        WHERE NOT EXISTS (SELECT FROM unnest(v_turn) x WHERE x.n = g.n)
                        ORDER BY g.n);
    END LOOP;
END
$$;

-- Takes transactions from site_transactions. With a block: one of their attempts is in it, so they
-- end, or go back to the outbox with one retry less. Without: all their bytes are dead, and they go
-- back; the nonce leaves a record, as in leader_requeue. Readers are notified as of other ends.
-- Returns how many it took.
CREATE OR REPLACE FUNCTION txrelay.site_take(a txrelay.accounts, p_epoch bigint,
                                             p_rows txrelay.site_write[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_tell boolean := queue_has_room();
    v_taken bigint;
    v_told bigint;
BEGIN
    WITH gone AS (
        DELETE FROM site_transactions p USING unnest(p_rows) b
            CROSS JOIN LATERAL (SELECT x.ctid AS at FROM site_transactions x WHERE x.id = b.id
                                AND x.account = a.account OFFSET 0) x
            LEFT JOIN LATERAL (SELECT t.number, t.nonce, t.coordinator FROM attempts t
                WHERE b.block_hash IS NOT NULL
                AND t.hash = b.hash AND t.id = b.id LIMIT 1) t ON true
        WHERE p.ctid = x.at AND (b.block_hash IS NULL OR t.number IS NOT NULL)
        RETURNING p.*, b.block_hash AS in_block, CASE WHEN b.block_hash IS NOT NULL THEN b.number
        END AS in_number, b.index,
            b.outcome::tx_outcome AS end_outcome, b.error AS ended_by, b.fee,
            CASE WHEN b.block_hash IS NOT NULL THEN b.hash ELSE p.hash END AS last,
            coalesce(t.nonce, p.nonce) AS at_nonce,
            CASE WHEN b.block_hash IS NOT NULL THEN 'finalized'
            WHEN b.outcome = 'usurped' THEN 'usurped' ELSE p.state::text END::tx_state AS becomes,
            b.block_hash IS NULL OR b.outcome = 'dispatch_error' AND p.retries > 0 AS back,
            site_name(p.account, coalesce(t.coordinator, p.coordinator)) AS by_site
    ), tried AS (
        UPDATE attempts t SET ended_at = coalesce(t.ended_at, v_now),
            state = CASE WHEN t.hash = g.last THEN g.becomes ELSE t.state END,
            block_hash = CASE WHEN t.hash = g.last THEN g.in_block ELSE t.block_hash END,
            block_number = CASE WHEN t.hash = g.last THEN g.in_number ELSE t.block_number END,
            error = coalesce(CASE WHEN t.hash = g.last THEN g.ended_by END, t.error),
            outcome = CASE WHEN g.in_block IS NOT NULL AND t.hash = g.last THEN 'included'
                           WHEN t.outcome NOT IN ('live', 'unknown') THEN t.outcome
                           WHEN g.in_block IS NOT NULL THEN 'superseded'
                           WHEN g.end_outcome = 'usurped' THEN 'usurped'
                           ELSE 'dropped' END::attempt_outcome
        FROM gone g CROSS JOIN LATERAL (SELECT x.ctid AS at FROM attempts x
            WHERE x.account = a.account AND x.nonce = g.nonce
            AND x.id = g.id AND (x.outcome IN ('live', 'unknown') OR x.hash = g.last) OFFSET 0) x
        WHERE t.ctid = x.at
    ), record AS (
        INSERT INTO finished_transactions (id, requeued, account, nonce, hash, block_hash,
            block_number, extrinsic_index, state, outcome, error, fee, attempts, epoch, key,
            creator, role, options, call, traceparent, created_at, admitted_at, in_block_at,
            finished_at, coordinator)
        SELECT CASE WHEN NOT g.back THEN g.id END, CASE WHEN g.back THEN g.id END, a.account,
            g.at_nonce, g.last, g.in_block, g.in_number, g.index, g.becomes, g.end_outcome,
            g.ended_by, g.fee, g.attempts, p_epoch, CASE WHEN NOT g.back THEN g.key END,
            g.creator, CASE WHEN NOT g.back THEN g.role END,
            CASE WHEN NOT g.back AND g.end_outcome <> 'ok' THEN finished_options(g.priority, NULL,
                g.deadline, g.guard, g.tip, g.max_tip, g.deadline_block, g.retries, false) END,
            CASE WHEN NOT g.back AND g.end_outcome <> 'ok' THEN g.call END, CASE
                WHEN NOT g.back THEN g.traceparent END,
            g.created_at, g.admitted_at,
                coalesce(g.in_block_at, CASE WHEN g.in_block IS NOT NULL THEN v_now END),
            (SELECT steady_clock()), g.by_site
        FROM gone g ORDER BY g.id
    ), queued AS (
        INSERT INTO outbox (id, account, call, key, creator, role, priority, deadline, guard, tip,
            max_tip, deadline_block, retries, attempts, created_at, traceparent)
        SELECT g.id, g.account, g.call, g.key, g.creator, g.role, g.priority, g.deadline, g.guard,
            g.tip, g.max_tip, g.deadline_block, g.retries - (g.in_block IS NOT NULL)::int,
            g.attempts, g.created_at, g.traceparent
        FROM gone g WHERE g.back
    ), asked AS (
        DELETE FROM cancellations c USING gone g WHERE c.id = g.id AND NOT g.back
    ), told AS (
        SELECT CASE WHEN v_tell AND NOT g.back
                AND (g.becomes, g.last, g.in_block) IS DISTINCT FROM (g.state, g.hash, g.block_hash)
                THEN pg_notify('pending_tx_update',
                    change_text(g.account_id, g.at_nonce, g.last, g.becomes, g.creator, v_now, g.id,
                    g.in_block, g.traceparent))::text END,
            CASE WHEN v_tell THEN pg_notify('pending_tx_removed',
                removal_text(g.account_id, g.at_nonce, g.id, CASE
                             WHEN NOT g.back THEN g.end_outcome END, g.traceparent))::text END,
            CASE WHEN v_tell AND NOT g.back THEN pg_notify('tx_ended_' || g.id,
                g.end_outcome::text)::text END, g.back
        FROM gone g
    )
    SELECT count(*), count(*) FILTER (WHERE t.back) INTO v_taken, v_told FROM told t;
    RETURN v_taken;
END
$$;

-- The next finalized block is read: its number, and the nonce of each key after it. Transactions
-- whose bytes are all dead by then go back to the outbox, and the wait after lost commits may be
-- over.
CREATE OR REPLACE FUNCTION txrelay.site_final(a txrelay.accounts, p_block bigint, p_next bigint[])
    RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    s site_accounts;
BEGIN
    SELECT * INTO s FROM site_accounts x WHERE x.account = a.account;
    IF p_block IS DISTINCT FROM s.final + 1 OR coalesce(cardinality(p_next), 0)
            <> (SELECT count(*) FROM site_peers k WHERE k.account = a.account)
            OR EXISTS (SELECT FROM unnest(p_next) u (next) WHERE (u.next >= 0) IS NOT TRUE) THEN
        PERFORM order_error(format('leader_site_store: final block %s after %s, with %s nonces',
            coalesce(p_block::text, 'NULL'), s.final,
            coalesce(cardinality(p_next), 0)),
            'Every finalized block is read, and gives a nonce for each key.');
    END IF;
    UPDATE site_accounts x SET final = p_block WHERE x.account = a.account;
    UPDATE site_peers k SET next_nonce = u.next FROM unnest(p_next) WITH ORDINALITY u (next, n)
        WHERE k.account = a.account AND k.member = u.n - 1 AND k.next_nonce <> u.next;
    IF a.lost_heard IS NOT NULL AND p_block >= s.wait_until THEN
        UPDATE accounts t SET reconcile_from = NULL, lost_since = NULL, lost_heard = NULL
            WHERE t.account = a.account;
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION txrelay.site_dead(a txrelay.accounts, p_epoch bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
DECLARE
    v_dead site_write[] := ARRAY(SELECT ROW(NULL, NULL,
            t.id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
            CASE WHEN t.nonce < k.next_nonce THEN 'usurped' ELSE 'expired' END,
            CASE WHEN t.nonce < k.next_nonce
            THEN format('other bytes used nonce %s; it is delegated again', t.nonce)
                ELSE format('its bytes died with block %s; it is delegated again', t.dies) END,
            NULL, NULL, NULL, NULL, NULL)::site_write
        FROM site_transactions t JOIN site_peers k ON k.account = t.account
            AND k.member = t.site_key
            JOIN site_accounts s ON s.account = t.account
        WHERE t.account = a.account AND (t.nonce < k.next_nonce OR t.dies <= s.final));
BEGIN
    IF cardinality(v_dead) > 0 THEN
        PERFORM site_take(a, p_epoch, v_dead);
    END IF;
END
$$;

-- Transactions of which a finalized block has bytes. One that is still in the outbox was sent by
-- commits that are lost: it gets the bytes of the block first.
CREATE OR REPLACE FUNCTION txrelay.site_included(a txrelay.accounts, p_epoch bigint,
                                                 p_rows txrelay.site_write[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    v_lost site_write[] := ARRAY(SELECT g FROM unnest(p_rows) g WHERE octet_length(g.extrinsic) > 0
        AND NOT EXISTS (SELECT FROM attempts t WHERE t.hash = g.hash AND t.id = g.id) ORDER BY g.n);
    v_bad record;
    v_taken bigint;
BEGIN
    SELECT g.* INTO v_bad FROM unnest(p_rows) g
        WHERE (g.outcome IN ('ok', 'dispatch_error', 'unknown') AND octet_length(g.hash) = 32
            AND octet_length(g.block_hash) = 32
            AND g.number >= 0) IS NOT TRUE LIMIT 1;
    IF FOUND THEN
        PERFORM bad_argument('leader_site_store', 'p_outcomes',
            format('is %s for transaction %s in a block', coalesce(v_bad.outcome, 'NULL'),
            v_bad.id), 'ok, dispatch_error or unknown, with the hash of the bytes, and hash and '
                       'number of the block.');
    END IF;
    IF cardinality(v_lost) > 0 THEN
        PERFORM must_be_free('leader_site_store', ARRAY(SELECT g.id FROM unnest(v_lost) g));
        PERFORM site_move(a, p_epoch, v_lost);
    END IF;
    v_taken := site_take(a, p_epoch, p_rows);
    IF v_taken <> cardinality(p_rows) THEN
        PERFORM batch_changed('leader_site_store', 'site_transactions with the bytes of the block',
                              v_taken, cardinality(p_rows));
    END IF;
END
$$;

-- Transactions that are stopped: in the outbox, so none of their bytes can be included.
CREATE OR REPLACE FUNCTION txrelay.site_stopped(a txrelay.accounts, p_epoch bigint,
                                                p_rows txrelay.site_write[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    v_ids bigint[] := ARRAY(SELECT g.id FROM unnest(p_rows) g ORDER BY g.n);
    v_bad record;
    v_ended bigint;
BEGIN
    IF a.reconcile_from IS NOT NULL THEN
        PERFORM not_reconciled('leader_site_store', a);
    END IF;
    SELECT g.id, g.outcome, t.nonce INTO v_bad FROM unnest(p_rows) g
        LEFT JOIN LATERAL (SELECT x.nonce FROM site_transactions x WHERE x.id = g.id OFFSET 0) t
        ON true
        WHERE t.nonce IS NOT NULL OR (g.outcome IN ('cancelled', 'expired', 'failed')) IS NOT TRUE
        LIMIT 1;
    IF FOUND THEN
        PERFORM order_error(format('leader_site_store: transaction %s%s cannot end as %s', v_bad.id,
            coalesce(', whose bytes at nonce ' || v_bad.nonce || ' can still be included,', ''),
            coalesce(v_bad.outcome, 'NULL')),
            'Without a block it ends as cancelled, expired or failed, and only when all its bytes '
            'are dead.');
    END IF;
    v_ended := outbox_end(a.account, v_ids,
        ARRAY(SELECT g.outcome::tx_outcome FROM unnest(p_rows) g ORDER BY g.n),
        ARRAY(SELECT g.error FROM unnest(p_rows) g ORDER BY g.n), p_epoch);
    IF v_ended <> cardinality(v_ids) THEN
        PERFORM batch_changed('leader_site_store',
                              'the outbox' || coalesce(', and ' || held_text(v_ids), ''), v_ended,
                              cardinality(v_ids));
    END IF;
    DELETE FROM cancellations c WHERE c.id = ANY (v_ids);
END
$$;

-- The coordinator's dispatches: the point of no return. A transaction of this site was granted
-- before.
CREATE OR REPLACE FUNCTION txrelay.site_dispatch(a txrelay.accounts, p_epoch bigint,
                                                 p_rows txrelay.site_write[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    v_bad record;
BEGIN
    SELECT g.id INTO v_bad FROM unnest(p_rows) g JOIN site_accounts s ON s.account = a.account
        WHERE (octet_length(g.hash) = 32 AND g.nonce >= 0 AND g.death >= 0 AND g.site_key >= 0
            AND g.member >= 0 AND CASE
            WHEN g.member = s.self AND g.id >= 0 THEN EXISTS (SELECT FROM attempts t
                WHERE t.account = a.account AND t.nonce = g.nonce
                AND t.hash = g.hash AND t.id = g.id)
            ELSE octet_length(g.extrinsic) > 0 END) IS NOT TRUE LIMIT 1;
    IF FOUND THEN
        PERFORM order_error(format('leader_site_store: transaction %s is dispatched without its '
                                   'bytes, or before they are granted',
            v_bad.id), 'Nothing may be sent that was not recorded first.');
    END IF;
    INSERT INTO site_dispatches AS d (account, hash, sender, id, site_key, nonce, era_death,
                                      extrinsic, epoch)
        SELECT a.account, g.hash, g.member, g.id, g.site_key, g.nonce, g.death,
            CASE WHEN g.member <> s.self OR g.id < 0 THEN g.extrinsic END, p_epoch
        FROM unnest(p_rows) g JOIN site_accounts s ON s.account = a.account ORDER BY g.n
        ON CONFLICT (account, hash) DO NOTHING;
END
$$;

-- What is known of granted bytes: a coordinator has dispatched them, this site itself if it
-- coordinates, or this site's node reported them. The blocks that they leave are kept, as in
-- retractions_note; and what nodes answered, as in refusals_note.
CREATE OR REPLACE FUNCTION txrelay.site_reported(a txrelay.accounts, p_epoch bigint,
                                                 p_rows txrelay.site_write[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
BEGIN
    IF EXISTS (SELECT FROM unnest(p_rows) g WHERE g.kind = 'state'
            AND (g.outcome IS NULL OR g.outcome = 'signed'
            OR g.outcome = 'refused' AND g.error IS NULL
            OR g.block_hash IS NULL AND g.outcome IN ('in_block', 'retracted', 'finality_timeout',
                                                      'finalized'))) THEN
        PERFORM bad_argument('leader_site_store', 'p_outcomes',
            'is NULL, signed, a refusal without its error, or a state without its block',
            'in_block, retracted, finality_timeout and finalized name their block.');
    END IF;
    -- The account is compared outside: inside, the planner reads every attempt of the account for
    -- each hash.
    UPDATE attempts t SET noted_at = clock_timestamp()
    FROM unnest(p_rows) g CROSS JOIN LATERAL (SELECT x.ctid AS at, x.account FROM attempts x
        WHERE x.hash = g.hash AND x.id = g.id
        AND x.noted_at IS NULL OFFSET 0) x
    WHERE t.ctid = x.at AND x.account = a.account AND g.kind <> 'state';
    INSERT INTO refusals AS r (account, nonce, number, error, count, first_at, last_at)
    SELECT a.account, b.nonce, b.attempt,
    format('block 0x%s was retracted', encode(b.block_hash, 'hex')), 1, clock_timestamp(),
        clock_timestamp()
    FROM (SELECT DISTINCT x.nonce, x.attempt, x.block_hash FROM unnest(p_rows) g CROSS
            JOIN LATERAL (SELECT * FROM site_transactions y
            WHERE y.id = g.id AND y.account = a.account AND y.hash = g.hash
            AND y.state = 'in_block' OFFSET 0) x
          WHERE g.kind = 'state' AND (g.outcome = 'retracted' OR x.block_hash <> g.block_hash)) b
    ON CONFLICT (account, nonce, number, error) DO UPDATE SET count = r.count + 1,
        last_at = excluded.last_at;
    INSERT INTO refusals AS r (account, nonce, number, error, count, first_at, last_at)
    SELECT a.account, t.nonce, t.number, left(g.error, 500), count(*), clock_timestamp(),
        clock_timestamp()
    FROM unnest(p_rows) g CROSS JOIN LATERAL (SELECT x.account, x.nonce, x.number FROM attempts x
        WHERE x.hash = g.hash AND x.id = g.id OFFSET 0) t
        CROSS JOIN LATERAL (SELECT FROM site_transactions y WHERE y.id = g.id OFFSET 0) p
    WHERE t.account = a.account AND g.kind = 'state' AND g.outcome = 'refused' GROUP BY 2, 3, 4
    ON CONFLICT (account, nonce, number, error) DO UPDATE SET count = r.count + excluded.count,
        last_at = excluded.last_at;
    UPDATE attempts t SET error = g.error, error_at = clock_timestamp()
    FROM (SELECT DISTINCT ON (u.id, u.hash) u.id, u.hash, u.error FROM unnest(p_rows) u
          WHERE u.kind = 'state' AND u.outcome = 'refused' ORDER BY u.id, u.hash, u.n DESC) g
        CROSS JOIN LATERAL (SELECT FROM site_transactions y WHERE y.id = g.id OFFSET 0) p
        CROSS JOIN LATERAL (SELECT x.ctid AS at, x.account FROM attempts x
        WHERE x.hash = g.hash AND x.id = g.id OFFSET 0) x
    WHERE t.ctid = x.at AND x.account = a.account;
    UPDATE site_transactions p SET state = g.said, block_hash = g.block_hash,
        block_number = g.number, error = g.error, epoch = p_epoch, updated_at = clock_timestamp(),
        in_block_at = coalesce(p.in_block_at, CASE WHEN g.said IN ('in_block', 'finalized')
                               THEN clock_timestamp() END)
    FROM (SELECT DISTINCT ON (u.id) u.id, u.hash, u.block_hash, u.number, u.error, u.kind,
            CASE WHEN u.kind = 'state' THEN u.outcome ELSE 'broadcast' END::tx_state AS said
          FROM unnest(p_rows) u WHERE u.outcome IS DISTINCT FROM 'refused'
          ORDER BY u.id, u.n DESC) g
        CROSS JOIN LATERAL (SELECT x.ctid AS at FROM site_transactions x WHERE x.id = g.id
            AND x.account = a.account
            AND x.hash = g.hash AND (g.kind = 'state' OR x.state = 'signed') OFFSET 0) x
    WHERE p.ctid = x.at AND (p.state, p.block_hash, p.block_number, p.error)
        IS DISTINCT FROM (g.said, g.block_hash, g.number, g.error);
END
$$;

-- Nothing is granted or stopped before this block was read. A later call only moves it on.
CREATE OR REPLACE FUNCTION txrelay.site_wait(a txrelay.accounts, p_block bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF (p_block >= 0) IS NOT TRUE THEN
        PERFORM bad_argument('leader_site_store', 'p_numbers',
            format('is %s for a wait', coalesce(p_block::text, 'NULL')),
            'The highest block that any site has heard of, and the longest era.');
    END IF;
    UPDATE site_accounts s SET wait_until = greatest(s.wait_until, p_block)
        WHERE s.account = a.account;
    UPDATE accounts t SET lost_heard = greatest(p_block - t.era_longest, t.lost_heard, 0)
        WHERE t.account = a.account AND t.reconcile_from IS NOT NULL;
END
$$;

-- Stores the effects of one step: one element per effect, in their order. kind: grant, dispatch,
-- noted, drop, state, end, final or wait; what each of them needs is in store/sites.h. p_next: with
-- a final, the nonce of each key after it. -1 and NULL: none.
CREATE OR REPLACE FUNCTION txrelay.leader_site_store(p_account int, p_epoch bigint, p_kinds text[],
    p_members int[], p_ids bigint[], p_hashes bytea[], p_keys int[], p_nonces bigint[],
    p_births bigint[], p_deaths bigint[], p_extrinsics bytea[], p_tips numeric[],
    p_spec_versions bigint[], p_transaction_versions bigint[], p_outcomes text[], p_errors text[],
    p_block_hashes bytea[], p_numbers bigint[], p_indexes int[], p_fees numeric[], p_next bigint[])
    RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    a accounts := site_fence('leader_site_store', p_account, p_epoch, 'any update');
    v_count int := batch_size('leader_site_store', cardinality(p_kinds), cardinality(p_members),
        cardinality(p_ids), cardinality(p_hashes), cardinality(p_keys), cardinality(p_nonces),
        cardinality(p_births), cardinality(p_deaths), cardinality(p_extrinsics),
        cardinality(p_tips), cardinality(p_spec_versions), cardinality(p_transaction_versions),
        cardinality(p_outcomes), cardinality(p_errors), cardinality(p_block_hashes),
        cardinality(p_numbers), cardinality(p_indexes), cardinality(p_fees));
    v_rows site_write[] := ARRAY(SELECT ROW(u.*)::site_write
        FROM unnest(p_kinds, p_members, p_ids, p_hashes, p_keys, p_nonces, p_births,
        p_deaths, p_extrinsics, p_tips, p_spec_versions, p_transaction_versions, p_outcomes,
        p_errors, p_block_hashes, p_numbers, p_indexes, p_fees) WITH ORDINALITY u
        ORDER BY u.ordinality);
    v_part site_write[];
    v_bad text := (SELECT coalesce(u.kind, 'NULL') FROM unnest(p_kinds) u (kind)
        WHERE (u.kind IN ('grant', 'dispatch', 'noted', 'drop', 'state', 'end', 'final', 'wait'))
        IS NOT TRUE LIMIT 1);
BEGIN
    IF v_bad IS NOT NULL THEN
        PERFORM bad_argument('leader_site_store', 'p_kinds', format('has "%s"', left(v_bad, 80)),
            'The kinds are grant, dispatch, noted, drop, state, end, final and wait.');
    END IF;
    PERFORM wait_briefly();
    PERFORM site_final(a, g.number, p_next) FROM unnest(v_rows) g WHERE g.kind = 'final'
        ORDER BY g.n;
    -- Ends that a block shows come before what the block has killed, and that comes before what
    -- needs it dead.
    v_part := ARRAY(SELECT g FROM unnest(v_rows) g WHERE g.kind = 'end'
                    AND g.block_hash IS NOT NULL ORDER BY g.n);
    IF cardinality(v_part) > 0 THEN
        PERFORM site_included(a, p_epoch, v_part);
    END IF;
    IF 'final' = ANY (p_kinds) THEN
        PERFORM site_dead(a, p_epoch);
        SELECT * INTO a FROM accounts t WHERE t.account = p_account; -- the wait may be over
    END IF;
    v_part := ARRAY(SELECT g FROM unnest(v_rows) g WHERE g.kind = 'end' AND g.block_hash IS NULL
                    ORDER BY g.n);
    IF cardinality(v_part) > 0 THEN
        PERFORM site_stopped(a, p_epoch, v_part);
    END IF;
    v_part := ARRAY(SELECT g FROM unnest(v_rows) g WHERE g.kind = 'grant' ORDER BY g.n);
    IF cardinality(v_part) > 0 THEN
        PERFORM site_grant(a, p_epoch, v_part);
    END IF;
    v_part := ARRAY(SELECT g FROM unnest(v_rows) g WHERE g.kind = 'dispatch' ORDER BY g.n);
    IF cardinality(v_part) > 0 THEN
        PERFORM site_dispatch(a, p_epoch, v_part);
    END IF;
    v_part := ARRAY(SELECT g FROM unnest(v_rows) g JOIN site_accounts s ON s.account = p_account
        WHERE g.kind IN ('noted', 'state') OR g.kind = 'dispatch' AND g.member = s.self
        AND g.id >= 0 ORDER BY g.n);
    IF cardinality(v_part) > 0 THEN
        PERFORM site_reported(a, p_epoch, v_part);
    END IF;
    DELETE FROM site_dispatches d USING unnest(v_rows) g WHERE g.kind = 'drop'
        AND d.account = p_account AND d.hash = g.hash;
    PERFORM site_wait(a, g.number) FROM unnest(v_rows) g WHERE g.kind = 'wait' ORDER BY g.n;
END
$$;
