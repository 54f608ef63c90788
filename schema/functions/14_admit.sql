-- txrelay: from the outbox to a nonce. Each function takes the epoch and begins with the fence.
--
-- Writes are batches: parallel arrays, one element per row, thousands of rows per call. A batch is
-- all or nothing. If a row is no longer there, the batch fails with TR002: read and build it again.
-- If it would break an order, it fails with TR003, which is a bug of the relay. In p_births and
-- p_deaths, NULL and -1 mean immortal.
--
-- A session keeps its plans for hours, and a plan that was made while a table was empty must still
-- fit a million rows (a plain join of array and table took 44 s for 5,000 rows). So the statement
-- fixes the plan: the array is the outer side, LATERAL with OFFSET 0 or LIMIT looks each row up by
-- its key, and the row is then written by its ctid. No other session moves the row in between,
-- because the fence admits one writer. Only bump may, in the outbox; then the row is not found and
-- the batch fails with TR002.

-- Moves outbox rows to pending_transactions and attempts. Nonces go up by one from the account's
-- next nonce, or from above its last pending one while that is unknown, so that the database
-- refuses gaps and reuse. A row whose deadline has passed since it was read counts as gone (TR002).
-- So do a row that an application holds, which the error names (05_locks.sql), and every row if the
-- chain's transaction version is not the accepted one, because the calls may then mean something
-- else.
CREATE OR REPLACE FUNCTION txrelay.leader_admit(p_account int, p_epoch bigint, p_ids bigint[],
    p_nonces bigint[], p_hashes bytea[], p_extrinsics bytea[], p_tips numeric[], p_births bigint[],
    p_deaths bigint[], p_spec_version bigint, p_transaction_version bigint, p_block bigint)
    RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'account');
    v_count int := batch_size('leader_admit', cardinality(p_ids), cardinality(p_nonces),
        cardinality(p_hashes), cardinality(p_extrinsics), cardinality(p_tips),
        cardinality(p_births), cardinality(p_deaths));
    v_fresh boolean;
    v_next bigint;
    v_found bigint;
    v_bad record;
BEGIN
    IF v_count = 0 THEN
        RETURN a.next_nonce;
    END IF;
    SELECT u.nonce, p_nonces[1] + u.n - 1 AS due INTO v_bad
        FROM unnest(p_nonces) WITH ORDINALITY u (nonce, n)
        WHERE u.nonce IS DISTINCT FROM p_nonces[1] + u.n - 1 OR u.nonce < 0 LIMIT 1;
    IF FOUND THEN
        PERFORM order_error(format(
            'leader_admit: nonce %s where %s is due: nonces must go up by one',
            coalesce(v_bad.nonce::text, 'NULL'), coalesce(v_bad.due::text, 'a number')),
            'Build the batch again.');
    END IF;
    v_next := coalesce(a.next_nonce, last_pending(p_account) + 1);
    IF p_nonces[1] <> v_next THEN
        PERFORM order_error(format(
            'leader_admit: first nonce is %s, next nonce of account %s is %s', p_nonces[1],
            a.alias, v_next), 'Read the account again; leader_nonce moves its next nonce.');
    END IF;
    IF (SELECT count(DISTINCT u.id) FROM unnest(p_ids) u (id)) <> v_count THEN
        PERFORM order_error('leader_admit: an id is given more than once or is NULL',
                            'One nonce per transaction.');
    ELSIF a.paused THEN
        PERFORM batch_changed('leader_admit', 'the outbox of a paused account', 0, v_count);
    ELSIF a.transaction_version <> p_transaction_version THEN
        PERFORM other_version('leader_admit', a, p_transaction_version);
    ELSIF a.reconcile_from IS NOT NULL THEN
        PERFORM not_reconciled('leader_admit', a);
    END IF;
    PERFORM check_eras('leader_admit', a, p_births, p_deaths);
    PERFORM wait_briefly();
    -- Nonces that were never used have no attempts; one query finds out for all of them.
    SELECT NOT EXISTS (SELECT FROM attempts t WHERE t.account = p_account
            AND t.nonce BETWEEN p_nonces[1] AND p_nonces[v_count])
        INTO v_fresh;
    WITH moved AS (
        DELETE FROM outbox o USING unnest(p_ids, p_nonces, p_hashes, p_extrinsics, p_tips,
                                          p_births, p_deaths)
                b (id, nonce, hash, extrinsic, tip, birth, death)
            CROSS JOIN LATERAL (SELECT x.ctid AS at FROM outbox x WHERE x.id = b.id
                AND x.account = p_account
                AND (x.deadline IS NULL OR x.deadline > clock_timestamp())
                AND (x.xmax = 0 OR NOT x.xmax = ANY ((SELECT running_xids())::xid[])
                     AND row_free(x.id)) OFFSET 0) x
        WHERE o.ctid = x.at
        RETURNING o.*, b.nonce, b.hash, b.extrinsic, b.tip AS pays, b.birth, b.death, CASE
        WHEN v_fresh THEN 1
            ELSE (SELECT coalesce(max(t.number), 0) + 1 FROM attempts t WHERE t.account = p_account
                  AND t.nonce = b.nonce)
            END AS number
    ), pending AS (
        INSERT INTO pending_transactions (account, nonce, account_id, id, call, hash, attempt,
            attempts, state, epoch, key, creator, role, priority, deadline, guard, tip, max_tip,
            deadline_block, retries, created_at, traceparent)
        SELECT p_account, m.nonce, a.account_id, m.id, m.call, m.hash, m.number, m.attempts + 1,
            'signed', p_epoch, m.key, m.creator, m.role, m.priority, m.deadline, m.guard, m.tip,
            m.max_tip, m.deadline_block, m.retries, m.created_at, m.traceparent
        FROM moved m ORDER BY m.nonce
    ), tried AS (
        INSERT INTO attempts (account, nonce, number, id, hash, extrinsic, tip, era_birth,
            era_death, spec_version, transaction_version, block, epoch)
        SELECT p_account, m.nonce, m.number, m.id, m.hash, m.extrinsic, coalesce(m.pays, 0),
            nullif(m.birth, -1), nullif(m.death, -1), p_spec_version, p_transaction_version,
            p_block, p_epoch
        FROM moved m ORDER BY m.nonce
    ), counted AS (
        UPDATE accounts t SET next_nonce = p_nonces[1] + v_count,
            seen_block = greatest(t.seen_block, p_block),
            transaction_version = coalesce(t.transaction_version, p_transaction_version)
            WHERE t.account = p_account
    )
    SELECT count(*) INTO v_found FROM moved;
    IF v_found <> v_count THEN
        PERFORM batch_changed('leader_admit',
                              'the outbox' || coalesce(', and ' || held_text(p_ids), ''), v_found,
                              v_count);
    END IF;
    RETURN p_nonces[1] + v_count;
END
$$;

-- Writes one presigned row to pending_transactions and attempts.
CREATE OR REPLACE FUNCTION txrelay.signed_pend(a txrelay.accounts, p_epoch bigint,
    s txrelay.outbox_presigned, p_nonce bigint, p_hash bytea, p_call_length int, p_tip numeric,
    p_birth bigint, p_death bigint, p_spec_version bigint, p_transaction_version bigint,
    p_block bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    v_number int := (SELECT coalesce(max(t.number), 0) + 1 FROM attempts t
                     WHERE t.account = a.account AND t.nonce = p_nonce);
BEGIN
    INSERT INTO pending_transactions (account, nonce, account_id, id, call, hash, attempt,
        attempts, state, epoch, key, creator, role, signed, created_at, traceparent)
        VALUES (a.account, p_nonce, a.account_id, s.id,
                substr(s.extrinsic, octet_length(s.extrinsic) - p_call_length + 1),
        p_hash, v_number, 1, 'signed', p_epoch, s.key, s.creator, s.role, true, s.created_at,
            s.traceparent);
    INSERT INTO attempts (account, nonce, number, id, hash, extrinsic, tip, era_birth, era_death,
        spec_version, transaction_version, block, epoch)
        VALUES (a.account, p_nonce, v_number, s.id, p_hash, s.extrinsic, p_tip,
                nullif(p_birth, -1), nullif(p_death, -1),
        p_spec_version, p_transaction_version, p_block, p_epoch);
END
$$;

-- As leader_admit, for presigned rows: without a gap from the next nonce on, or at a lower nonce
-- where nothing is pending. p_blocks: no block up to this one contains the row's bytes. p_next: the
-- next nonce before this batch. Returns the account's next nonce.
CREATE OR REPLACE FUNCTION txrelay.leader_admit_presigned(p_account int, p_epoch bigint,
    p_ids bigint[], p_nonces bigint[], p_hashes bytea[], p_call_lengths int[], p_tips numeric[],
    p_births bigint[], p_deaths bigint[], p_blocks bigint[], p_spec_version bigint,
    p_transaction_version bigint, p_next bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'account');
    v_count int := batch_size('leader_admit_presigned', cardinality(p_ids), cardinality(p_nonces),
        cardinality(p_hashes), cardinality(p_call_lengths), cardinality(p_tips),
        cardinality(p_births), cardinality(p_deaths), cardinality(p_blocks));
    v_next bigint := coalesce(a.next_nonce, last_pending(p_account) + 1, p_next);
    v_found int := 0;
    b record;
    s outbox_presigned;
BEGIN
    PERFORM check_nonces('leader_admit_presigned', p_nonces);
    IF v_next IS DISTINCT FROM p_next THEN
        PERFORM order_error(format(
            'leader_admit_presigned: the next nonce is given as %s, and in account %s it is %s',
            coalesce(p_next::text, 'NULL'), a.alias, v_next),
            'Read the account again; leader_nonce moves its next nonce.');
    ELSIF a.paused THEN
        PERFORM batch_changed('leader_admit_presigned', 'the outbox of a paused account', 0,
                              v_count);
    ELSIF a.transaction_version <> p_transaction_version THEN
        PERFORM other_version('leader_admit_presigned', a, p_transaction_version);
    ELSIF a.reconcile_from IS NOT NULL THEN
        PERFORM not_reconciled('leader_admit_presigned', a);
    END IF;
    PERFORM wait_briefly();
    FOR b IN SELECT u.* FROM unnest(p_ids, p_nonces, p_hashes, p_call_lengths, p_tips, p_births,
                                    p_deaths, p_blocks)
            u (id, nonce, hash, call_length, tip, birth, death, block) ORDER BY u.nonce LOOP
        IF b.nonce > v_next THEN
            PERFORM order_error(format(
                'leader_admit_presigned: nonce %s where %s is next in account %s', b.nonce, v_next,
                a.alias), 'A row waits until its nonce''s turn has come.');
        ELSIF EXISTS (SELECT FROM pending_transactions p WHERE p.account = p_account
                      AND p.nonce = b.nonce) THEN
            PERFORM batch_changed('leader_admit_presigned', 'need of a nonce that is free',
                                  v_found, v_count);
        END IF;
        -- Without a row that was cancelled meanwhile, the nonces behind it are no gap of the
        -- caller's.
        v_next := greatest(v_next, b.nonce + 1);
        DELETE FROM outbox_presigned x WHERE x.id = b.id AND (x.account = p_account) IS TRUE
            AND (x.xmax = 0 OR NOT x.xmax = ANY ((SELECT running_xids())::xid[])
                 AND row_free(x.id)) RETURNING x.* INTO s;
        CONTINUE WHEN NOT FOUND;
        PERFORM signed_pend(a, p_epoch, s, b.nonce, b.hash, b.call_length, b.tip, b.birth, b.death,
            p_spec_version, p_transaction_version, b.block);
        v_found := v_found + 1;
    END LOOP;
    IF v_found <> v_count THEN
        PERFORM batch_changed('leader_admit_presigned',
            'the outbox' || coalesce(', and ' || held_text(p_ids), ''), v_found,
            v_count);
    END IF;
    UPDATE accounts t SET next_nonce = v_next,
        transaction_version = coalesce(t.transaction_version, p_transaction_version)
        WHERE t.account = p_account;
    RETURN v_next;
END
$$;

-- Stores what the leader decoded of presigned rows; nonce NULL: the bytes do not decode.
-- p_wait_blocks: the finalized block at which to decide again; NULL: when the nonce's turn comes or
-- the era ends. A row that was cancelled meanwhile, or that an application holds, is no error.
-- Returns how many rows it found.
CREATE OR REPLACE FUNCTION txrelay.leader_note(p_account int, p_epoch bigint, p_ids bigint[],
    p_nonces bigint[], p_hashes bytea[], p_deaths bigint[], p_wait_blocks bigint[], p_texts text[])
    RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
    v_count int := batch_size('leader_note', cardinality(p_ids), cardinality(p_nonces),
        cardinality(p_hashes), cardinality(p_deaths), cardinality(p_wait_blocks),
        cardinality(p_texts));
    v_found bigint;
BEGIN
    PERFORM wait_briefly();
    UPDATE outbox_presigned s SET nonce = nullif(b.nonce, -1), hash = b.hash,
        era_death = nullif(b.death, -1), wait_block = nullif(b.wait_block, -1), waits = b.text,
        waits_since = coalesce(s.waits_since, clock_timestamp())
    FROM unnest(p_ids, p_nonces, p_hashes, p_deaths, p_wait_blocks, p_texts) b (id, nonce, hash,
        death, wait_block, text)
        CROSS JOIN LATERAL (SELECT x.ctid AS at FROM outbox_presigned x WHERE x.id = b.id
            AND (x.xmax = 0 OR NOT x.xmax = ANY ((SELECT running_xids())::xid[])
                 AND row_free(x.id)) ORDER BY x.id LIMIT 1) x
    WHERE s.ctid = x.at AND (s.account = p_account) IS TRUE; -- in a form that no index fits
    GET DIAGNOSTICS v_found = ROW_COUNT;
    RETURN v_found;
END
$$;

-- Ends outbox rows that can never get a nonce, each with a reason. Returns the number of rows.
CREATE OR REPLACE FUNCTION txrelay.leader_reject(p_account int, p_epoch bigint, p_ids bigint[],
                                                 p_outcomes text[], p_errors text[])
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
    v_count int := batch_size('leader_reject', cardinality(p_ids), cardinality(p_outcomes),
                              cardinality(p_errors));
    v_found bigint;
BEGIN
    IF a.reconcile_from IS NOT NULL THEN
        PERFORM not_reconciled('leader_reject', a);
    ELSIF p_outcomes && ARRAY['ok', 'dispatch_error', 'unknown'] THEN
        PERFORM order_error(
            'leader_reject: ok, dispatch_error and unknown are outcomes of the chain',
            'A transaction without a nonce ends as expired, cancelled, failed or usurped.');
    END IF;
    PERFORM wait_briefly();
    v_found := outbox_end(p_account, p_ids, p_outcomes::tx_outcome[], p_errors, p_epoch);
    IF v_found <> v_count THEN
        PERFORM batch_changed('leader_reject',
                              'the outbox' || coalesce(', and ' || held_text(p_ids), ''), v_found,
                              v_count);
    END IF;
    RETURN v_found;
END
$$;

-- Sets the next nonce to what the chain says. It is always above the pending ones. It goes down
-- only if p_lower is set, because nonces were given back, and never below a nonce that is known as
-- used: the relay would use it twice if a node lags. p_reborn begins a new life of a reaped
-- account, as an operator ordered: then the nonce may be anything, and records from before do not
-- count.
CREATE OR REPLACE FUNCTION txrelay.leader_nonce(p_account int, p_epoch bigint, p_next bigint,
    p_lower boolean DEFAULT false, p_reborn boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'account');
    v_last bigint := last_pending(p_account);
    v_former bigint[]; -- presigned ones, of the former life
BEGIN
    IF a.reconcile_from IS NOT NULL THEN
        PERFORM not_reconciled('leader_nonce', a);
    ELSIF p_next IS NULL OR p_next < 0 OR (p_next <= v_last AND p_reborn IS NOT TRUE) THEN
        PERFORM order_error(format(
            'leader_nonce: next nonce %s for account %s, whose last pending nonce is %s',
            coalesce(p_next::text, 'NULL'), a.alias, coalesce(v_last::text, 'none')),
            'The next nonce is above every pending one.');
    ELSIF p_reborn AND v_last IS NOT NULL THEN
        PERFORM order_error(format(
            'leader_nonce: account %s cannot begin a new life while nonce %s is pending', a.alias,
            v_last), 'leader_requeue or leader_finish for what belongs to the former one.');
    ELSIF p_reborn AND NOT a.reborn THEN
        PERFORM order_error(format(
            'leader_nonce: no operator has ordered a new life of account %s', a.alias),
            'leader_pause with reaped; account_resume is the order.');
    ELSIF p_reborn THEN
        v_former := ARRAY(SELECT o.id FROM outbox_presigned o WHERE o.account = p_account
                          ORDER BY o.id);
        PERFORM must_be_free('leader_nonce', v_former);
        PERFORM wait_briefly();
        UPDATE accounts t SET next_nonce = p_next, used_nonce = NULL, used_block = NULL,
            reborn = false, life_since = steady_clock() WHERE t.account = p_account;
        PERFORM outbox_end(p_account, v_former,
            array_fill('failed'::tx_outcome, ARRAY[cardinality(v_former)]),
            array_fill('the account was reaped or rewound: it may be of the former life'::text,
                       ARRAY[cardinality(v_former)]), p_epoch);
        INSERT INTO cancellations (id, account, asked_by) SELECT x.id, p_account, ''
            FROM unnest(v_former) x (id)
            ON CONFLICT (id) DO UPDATE SET asked_by = '';
        RETURN;
    ELSIF p_next < a.next_nonce AND p_lower IS NOT TRUE THEN
        PERFORM order_error(format('leader_nonce: next nonce %s for account %s is lower than %s',
            p_next, a.alias,
            a.next_nonce), 'A node that lags? p_lower => true where nonces were given back.');
    ELSIF p_next < a.used_nonce THEN
        RAISE EXCEPTION USING ERRCODE = 'TR002',
            MESSAGE = format('leader_nonce: nonce %s of account %s was used in a finalized block, '
                             'by what is on record',
                             a.used_nonce - 1, a.alias),
            HINT = 'The node lags: wait for it. Or the account was reaped: that is for an '
                   'operator to judge.';
    END IF;
    UPDATE accounts t SET next_nonce = p_next WHERE t.account = p_account
        AND t.next_nonce IS DISTINCT FROM p_next;
END
$$;
