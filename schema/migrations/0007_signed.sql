-- txrelay 0007: extrinsics that were signed elsewhere.
--
-- What is checked here is what is certain without the chain's metadata: form, length, signer. The leader decodes the
-- rest. Such a row has its nonce, tip and era already; it is sent as it is for as long as it is valid and never signed
-- again. It is admitted when its nonce's turn comes, also at a nonce that is free below the next one, and also at one that
-- the chain has used: then its own bytes may have been what used it, and finalized blocks tell.

-- Where the body of an extrinsic begins: behind the length in front of it. 0: that does not say its length.
CREATE FUNCTION txrelay.extrinsic_body(p_extrinsic bytea) RETURNS int
LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_mode int := get_byte(p_extrinsic, 0) & 3;
    v_prefix int := 1 << v_mode;
    v_length bigint := 0;
BEGIN
    IF v_mode = 3 OR octet_length(p_extrinsic) < v_prefix THEN
        RETURN 0;
    END IF;
    FOR i IN 0..v_prefix - 1 LOOP
        v_length := v_length | (get_byte(p_extrinsic, i)::bigint << (8 * i));
    END LOOP;
    RETURN CASE WHEN v_length >> 2 = octet_length(p_extrinsic) - v_prefix THEN v_prefix ELSE 0 END;
END
$$;

-- The registered account that signed it: MultiAddress::Id and 32 bytes, or an account id alone where the chain has no
-- MultiAddress. p_name: the one that is expected, needed where the same key is registered for several chains.
CREATE FUNCTION txrelay.signer_of(p_extrinsic bytea, p_body int, p_name text) RETURNS int
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_found int[];
    v_id bytea := substr(p_extrinsic, p_body + 3, 32);
    v_expected int := CASE WHEN p_name IS NOT NULL THEN account_of(p_name) END;
BEGIN
    SELECT array_agg(a.account) INTO v_found FROM accounts a
        WHERE get_byte(p_extrinsic, p_body + 1) = 0 AND a.account_id = v_id
           OR a.account_id IN (substr(p_extrinsic, p_body + 2, 32), substr(p_extrinsic, p_body + 2, 20));
    IF v_expected = ANY (v_found) OR v_expected IS NULL AND cardinality(v_found) = 1 THEN
        RETURN coalesce(v_expected, v_found[1]);
    ELSIF v_expected IS NOT NULL THEN
        PERFORM bad_argument('enqueue_signed', 'account', format('is "%s", and the extrinsic is signed by 0x%s',
            left(p_name, 80), encode(v_id, 'hex')), 'Leave the account out, or name the one that signed.');
    ELSIF v_found IS NOT NULL THEN
        PERFORM bad_argument('enqueue_signed', 'extrinsic', 'is signed by a key that is registered for several chains: '
            || (SELECT string_agg(a.alias, ', ' ORDER BY a.alias) FROM accounts a WHERE a.account = ANY (v_found)),
            'Name the account: account => alias.');
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'TR010', MESSAGE = format('no such account: the extrinsic is signed by 0x%s',
            encode(v_id, 'hex')),
        HINT = 'List it in the relays'' configuration, with its address and without a key_file where they have no key.';
END
$$;

-- As enqueue, for an extrinsic that is signed. The same bytes are one transaction, with a key or without.
CREATE FUNCTION txrelay.enqueue_signed(extrinsic bytea, key text DEFAULT NULL, creator text DEFAULT NULL,
    account text DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    v_body int;
    v_account int;
    v_sha bytea := sha256(extrinsic);
    v_id bigint := nextval('txrelay.transaction_id');
    v_new bigint := v_id;
    v_first record;
    v_key text;
BEGIN
    IF octet_length(key) NOT BETWEEN 1 AND 200 THEN
        PERFORM bad_argument('enqueue_signed', 'key', format('has %s bytes; it must have 1 to 200', octet_length(key)),
            'Leave it out (NULL): the bytes are their own key; or use a hash of a longer one.');
    ELSIF octet_length(creator) > 200 THEN
        PERFORM bad_argument('enqueue_signed', 'creator', format('has %s bytes; at most 200', octet_length(creator)),
            'It names who asked; leave it out for the session''s user.');
    ELSIF extrinsic IS NULL OR octet_length(extrinsic) NOT BETWEEN 1 AND 1048576 THEN
        PERFORM bad_argument('enqueue_signed', 'extrinsic', CASE WHEN extrinsic IS NULL THEN 'is NULL'
            ELSE format('has %s bytes', octet_length(extrinsic)) END || '; it must have 1 to 1048576 bytes',
            'Pass the whole signed extrinsic.');
    END IF;
    v_body := extrinsic_body(extrinsic);
    IF v_body = 0 THEN
        PERFORM bad_argument('enqueue_signed', 'extrinsic', format('does not begin with its length (%s bytes in all)',
            octet_length(extrinsic)), 'Pass the whole signed extrinsic with the compact length in front, as '
            'author_submitExtrinsic takes it; a call goes to enqueue.');
    ELSIF octet_length(extrinsic) < v_body + 90 OR get_byte(extrinsic, v_body) <> 132 THEN
        PERFORM bad_argument('enqueue_signed', 'extrinsic', CASE WHEN get_byte(extrinsic, v_body) & 128 = 0
            THEN 'is not signed' ELSE format('is of form 0x%s, or too short', to_hex(get_byte(extrinsic, v_body))) END,
            'Signed extrinsics of format v4 are taken (0x84 behind the length).');
    END IF;
    v_account := signer_of(extrinsic, v_body, enqueue_signed.account);
    -- A nonce that a block used is looked for in blocks of the past: there it may have been one of the former life.
    IF EXISTS (SELECT FROM accounts a WHERE a.account = v_account AND a.life_since IS NOT NULL) THEN
        PERFORM bad_argument('enqueue_signed', 'extrinsic', format('is signed by 0x%s, an account that was reaped once',
            encode((SELECT a.account_id FROM accounts a WHERE a.account = v_account), 'hex')),
            'Blocks of its former life would be taken for this one''s. Use enqueue, or another account.');
    END IF;
    -- A concurrent call with the same bytes or key waits here for the first one's end, as in enqueue. The first round's
    -- key is the bytes' own.
    FOREACH v_key IN ARRAY array_remove(ARRAY['signed 0x' || encode(v_sha, 'hex'), enqueue_signed.key], NULL) LOOP
        LOOP
            INSERT INTO idempotency_keys (account, key, id, payload_sha256) VALUES (v_account, v_key, v_id, v_sha)
                ON CONFLICT (account, key) DO NOTHING;
            EXIT WHEN FOUND;
            SELECT k.id, k.payload_sha256 = v_sha AS same INTO v_first FROM idempotency_keys k
                WHERE k.account = v_account AND k.key = v_key ORDER BY k.account, k.key LIMIT 1;
            CONTINUE WHEN NOT FOUND; -- deleted by the retention between the two statements
            IF NOT v_first.same THEN
                PERFORM key_reused(v_key, v_first.id);
            END IF;
            v_id := v_first.id;
            EXIT;
        END LOOP;
    END LOOP;
    IF v_id = v_new THEN
        INSERT INTO outbox_signed (id, account, extrinsic, key, creator) VALUES (v_id, v_account,
            enqueue_signed.extrinsic, enqueue_signed.key, coalesce(enqueue_signed.creator, session_user));
        PERFORM ring(v_account);
    END IF;
    RETURN v_id;
END
$$;

-- End transactions that still wait here, as outbox_end does for calls. Returns how many of the ids were there.
CREATE FUNCTION txrelay.signed_end(p_account int, p_ids bigint[], p_outcomes txrelay.tx_outcome[], p_errors text[],
    p_epoch bigint) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
    WITH gone AS (
        DELETE FROM outbox_signed o USING unnest(p_ids, p_outcomes, p_errors) b (id, outcome, error)
            CROSS JOIN LATERAL (SELECT x.ctid AS at FROM outbox_signed x WHERE x.id = b.id
                AND (p_account IS NULL OR x.account = p_account) ORDER BY x.id LIMIT 1) x
        WHERE o.ctid = x.at RETURNING o.*, b.outcome, b.error
    ), ended AS (
        INSERT INTO finished_transactions (id, account, hash, outcome, error, epoch, key, creator, call, created_at)
        SELECT g.id, g.account, NULL, g.outcome, g.error, p_epoch, g.key, g.creator, g.extrinsic, g.created_at
        FROM gone g RETURNING 1
    ), told AS (
        SELECT CASE WHEN (SELECT queue_has_room()) THEN pg_notify('pending_tx_removed', json_build_object('account_id',
            (SELECT '0x' || encode(a.account_id, 'hex') FROM accounts a WHERE a.account = g.account),
            'nonce', NULL, 'id', g.id, 'outcome', g.outcome)::text) END
        FROM gone g
    )
    SELECT count(*) FROM told
$$;

-- What cancel and bump may not promise.
CREATE FUNCTION txrelay.cancel_check(p_id bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_nonce bigint;
BEGIN
    SELECT p.nonce INTO v_nonce FROM pending_of(p_id) p
        CROSS JOIN LATERAL (SELECT x.watch_only FROM accounts x WHERE x.account = p.account OFFSET 0) a
        WHERE p.signed AND a.watch_only;
    IF FOUND THEN
        PERFORM bad_argument('cancel', 'id', format('is %s, which was signed elsewhere and may be in a pool; no relay has a key '
            'to take its nonce with', p_id), format('Sign another extrinsic with nonce %s and a higher tip and send it to a '
            'node, or wait for the end of its era.', v_nonce));
    END IF;
END
$$;

CREATE FUNCTION txrelay.bump_check(p_id bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
BEGIN
    IF (SELECT s.id FROM outbox_signed s WHERE s.id = p_id ORDER BY s.id LIMIT 1) IS NOT NULL OR (pending_of(p_id)).signed THEN
        PERFORM bad_argument('bump', 'id', format('is %s, which was signed elsewhere: its tip is signed with it', p_id),
            'Sign another extrinsic with the same nonce and a higher tip and send it to a node.');
    END IF;
END
$$;

-- Rows to look at: new ones; those whose nonce is below the next one (p_next), or whose turn has come (a row of nonces
-- without a gap from it on); those whose era is over, or that waited for a block (waited), at the finalized block p_block. None while the account is paused.
CREATE FUNCTION txrelay.leader_signed(p_account int, p_epoch bigint, p_limit int, p_next bigint, p_block bigint)
RETURNS TABLE (id bigint, extrinsic bytea, creator text, created_at timestamptz, waited boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
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
        FROM (SELECT x.id, x.nonce FROM outbox_signed x WHERE x.account = p_account AND x.nonce >= p_next
                AND (x.wait_block IS NULL OR x.wait_block <= p_block) ORDER BY x.account, x.nonce, x.id LIMIT p_limit) s
    ), row_of AS (
        (SELECT s.id FROM outbox_signed s WHERE s.account = p_account AND s.nonce IS NULL
            AND (s.wait_block IS NULL OR s.wait_block <= p_block) ORDER BY s.id LIMIT p_limit)
        UNION
        (SELECT s.id FROM outbox_signed s WHERE s.account = p_account AND s.nonce < p_next
            AND (s.wait_block IS NULL OR s.wait_block <= p_block) ORDER BY s.account, s.nonce, s.id LIMIT p_limit)
        UNION
        SELECT d.id FROM due d WHERE d.turn
        UNION
        (SELECT s.id FROM outbox_signed s WHERE s.account = p_account AND coalesce(s.wait_block, s.era_death) <= p_block LIMIT p_limit)
    )
    SELECT s.id, s.extrinsic, s.creator, s.created_at, s.wait_block IS NOT NULL FROM row_of r
        CROSS JOIN LATERAL (SELECT * FROM outbox_signed x WHERE x.id = r.id ORDER BY x.id LIMIT 1) s
        ORDER BY s.nonce NULLS LAST, s.id LIMIT p_limit;
END
$$;

-- What was read of rows that wait; nonce NULL: it does not decode. p_wait_blocks: not to be looked at before this block is final; NULL: their nonce's
-- turn or the end of their era is waited for. A row that was cancelled meanwhile is no error. Returns how many are there.
CREATE FUNCTION txrelay.leader_note(p_account int, p_epoch bigint, p_ids bigint[], p_nonces bigint[], p_hashes bytea[],
    p_deaths bigint[], p_wait_blocks bigint[], p_texts text[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
    v_count int := batch_size('leader_note', cardinality(p_ids), cardinality(p_nonces), cardinality(p_hashes),
        cardinality(p_deaths), cardinality(p_wait_blocks), cardinality(p_texts));
    v_found bigint;
BEGIN
    UPDATE outbox_signed s SET nonce = nullif(b.nonce, -1), hash = b.hash, era_death = nullif(b.death, -1),
        wait_block = nullif(b.wait_block, -1), waits = b.text, waits_since = coalesce(s.waits_since, clock_timestamp())
    FROM unnest(p_ids, p_nonces, p_hashes, p_deaths, p_wait_blocks, p_texts) b (id, nonce, hash, death, wait_block, text)
        CROSS JOIN LATERAL (SELECT x.ctid AS at FROM outbox_signed x WHERE x.id = b.id ORDER BY x.id LIMIT 1) x
    WHERE s.ctid = x.at AND (s.account = p_account) IS TRUE; -- in a form that no index fits
    GET DIAGNOSTICS v_found = ROW_COUNT;
    RETURN v_found;
END
$$;

-- One row from here to pending_transactions and attempts.
CREATE FUNCTION txrelay.signed_pend(a txrelay.accounts, s txrelay.outbox_signed, p_nonce bigint, p_hash bytea,
    p_call_length int, p_tip numeric, p_birth bigint, p_death bigint, p_spec_version bigint, p_transaction_version bigint,
    p_block bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
DECLARE
    v_number int := (SELECT coalesce(max(t.number), 0) + 1 FROM attempts t WHERE t.account = a.account AND t.nonce = p_nonce);
BEGIN
    INSERT INTO pending_transactions (account, nonce, account_id, id, call, hash, attempt, attempts, state, epoch, key,
        creator, signed, created_at)
        VALUES (a.account, p_nonce, a.account_id, s.id, substr(s.extrinsic, octet_length(s.extrinsic) - p_call_length + 1),
        p_hash, v_number, 1, 'signed', a.epoch, s.key, s.creator, true, s.created_at);
    INSERT INTO attempts (account, nonce, number, id, hash, extrinsic, tip, era_birth, era_death, spec_version,
        transaction_version, block, epoch)
        VALUES (a.account, p_nonce, v_number, s.id, p_hash, s.extrinsic, p_tip, nullif(p_birth, -1), nullif(p_death, -1),
        p_spec_version, p_transaction_version, p_block, a.epoch);
END
$$;

-- As leader_admit, for rows with a nonce of their own: from the next nonce on without a gap, or below it where nothing is
-- pending. p_blocks: no block up to this one holds the row's bytes. p_next: the next nonce before it. Returns the account's next nonce.
CREATE FUNCTION txrelay.leader_admit_signed(p_account int, p_epoch bigint, p_ids bigint[], p_nonces bigint[],
    p_hashes bytea[], p_call_lengths int[], p_tips numeric[], p_births bigint[], p_deaths bigint[], p_blocks bigint[],
    p_spec_version bigint, p_transaction_version bigint, p_next bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
    v_count int := batch_size('leader_admit_signed', cardinality(p_ids), cardinality(p_nonces), cardinality(p_hashes),
        cardinality(p_call_lengths), cardinality(p_tips), cardinality(p_births), cardinality(p_deaths),
        cardinality(p_blocks));
    v_next bigint := coalesce(a.next_nonce, last_pending(p_account) + 1, p_next);
    v_found int := 0;
    b record;
    s outbox_signed;
BEGIN
    PERFORM check_nonces('leader_admit_signed', p_nonces);
    IF v_next IS DISTINCT FROM p_next THEN
        PERFORM order_error(format('leader_admit_signed: the next nonce is given as %s, and in account %s it is %s',
            coalesce(p_next::text, 'NULL'), a.alias, v_next), 'Read the account again; leader_nonce moves its next nonce.');
    ELSIF a.paused THEN
        PERFORM batch_changed('leader_admit_signed', 'the outbox of a paused account', 0, v_count);
    ELSIF a.transaction_version <> p_transaction_version THEN
        PERFORM other_version('leader_admit_signed', a, p_transaction_version);
    ELSIF a.reconcile_from IS NOT NULL THEN
        PERFORM order_error(format('leader_admit_signed: account %s is not reconciled with the chain from block %s on',
            a.alias, a.reconcile_from), 'Commits may be lost. leader_adopt what the chain and the pools hold, then admit.');
    END IF;
    FOR b IN SELECT u.* FROM unnest(p_ids, p_nonces, p_hashes, p_call_lengths, p_tips, p_births, p_deaths, p_blocks)
            u (id, nonce, hash, call_length, tip, birth, death, block) ORDER BY u.nonce LOOP
        IF b.nonce > v_next THEN
            PERFORM order_error(format('leader_admit_signed: nonce %s where %s is next in account %s', b.nonce, v_next,
                a.alias), 'A row waits until its nonce''s turn has come.');
        ELSIF EXISTS (SELECT FROM pending_transactions p WHERE p.account = p_account AND p.nonce = b.nonce) THEN
            PERFORM batch_changed('leader_admit_signed', 'need of a nonce that is free', v_found, v_count);
        END IF;
        DELETE FROM outbox_signed x WHERE x.id = b.id AND (x.account = p_account) IS TRUE RETURNING x.* INTO s;
        CONTINUE WHEN NOT FOUND;
        PERFORM signed_pend(a, s, b.nonce, b.hash, b.call_length, b.tip, b.birth, b.death, p_spec_version,
            p_transaction_version, b.block);
        v_found := v_found + 1;
        v_next := greatest(v_next, b.nonce + 1);
    END LOOP;
    IF v_found <> v_count THEN
        PERFORM batch_changed('leader_admit_signed', 'the outbox', v_found, v_count);
    END IF;
    UPDATE accounts t SET next_nonce = v_next,
        transaction_version = coalesce(t.transaction_version, p_transaction_version) WHERE t.account = p_account;
    RETURN v_next;
END
$$;

REVOKE ALL ON FUNCTION txrelay.extrinsic_body, txrelay.signer_of, txrelay.enqueue_signed, txrelay.signed_end,
    txrelay.cancel_check, txrelay.bump_check, txrelay.leader_signed, txrelay.leader_note, txrelay.signed_pend,
    txrelay.leader_admit_signed FROM PUBLIC;
GRANT EXECUTE ON FUNCTION txrelay.enqueue_signed TO txrelay_app, txrelay_relay;
GRANT EXECUTE ON FUNCTION txrelay.leader_signed, txrelay.leader_note, txrelay.leader_admit_signed TO txrelay_relay;
