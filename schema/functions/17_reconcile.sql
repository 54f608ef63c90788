-- txrelay: after a failover that lost commits.
--
-- A promoted standby may lack the last commits of the old server: admissions of rows that are still
-- in its outbox, although their extrinsics are on the chain or in a pool. Admitting them again
-- would execute them twice. So a claim on another timeline notes from which block on the chain
-- knows more than the database (leader_claim), nothing is admitted, signed or ended until a leader
-- has read these blocks, and leader_adopt records what it finds there.
--
-- What lost commits have sent may be in no block and no pool yet. It cannot be included any more
-- once its era is over. So the leader waits: it finds a block that is not lower than any that was
-- known when the commits were lost (leader_heard), and reads all finalized blocks up to the longest
-- era beyond it. The wait is in the account's row, for its successors: reconcile_from, lost_since,
-- lost_heard. While reconcile_from is not NULL, all functions of leaders that give a nonce, sign or
-- end refuse with TR003. An end that a finalized block shows is stored, and one whose nonce is used
-- as of such a block: it is true whatever was lost. leader_adopt can give a nonce only when it is
-- free, so such ends come before it.

-- Refuses what may not be before the account is reconciled.
CREATE OR REPLACE FUNCTION txrelay.not_reconciled(p_function text, a txrelay.accounts) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    PERFORM order_error(format(
            '%s: account %s is not reconciled with the chain from block %s on%s', p_function,
                a.alias,
            a.reconcile_from, coalesce(', up to block ' || (a.lost_heard + a.era_longest)::text,
                                       '')),
        'Commits may be lost, and what they sent may still be included. leader_adopt what the '
        'chain and the pools hold '
        'once all finalized blocks of the wait are read.');
END
$$;

-- Refuses bytes that could outlive the wait after lost commits.
CREATE OR REPLACE FUNCTION txrelay.check_eras(p_function text, a txrelay.accounts,
                                              p_births bigint[], p_deaths bigint[])
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM unnest(p_births, p_deaths) u (birth, death)
            WHERE CASE
            WHEN u.death >= 0 THEN (u.death - nullif(u.birth, -1) <= a.era_longest) IS NOT TRUE
                ELSE NOT a.era_immortal END) THEN
        PERFORM order_error(format(
            '%s: an era is longer than %s blocks%s, which is the longest of account %s', p_function,
            a.era_longest, CASE WHEN a.era_immortal THEN '' ELSE ', or there is none' END, a.alias),
            'relay_register with the longest era, before anything is signed with it.');
    END IF;
END
$$;

-- The wait's first step. p_block is not lower than any block that was known when the commits were
-- lost. The first call decides, so that a successor goes on with the same wait. Returns the block
-- at which the wait ends: that one and all before it are to be read.
CREATE OR REPLACE FUNCTION txrelay.leader_heard(p_account int, p_epoch bigint, p_block bigint)
    RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'account');
BEGIN
    IF p_block IS NULL OR p_block < 0 THEN
        PERFORM bad_argument('leader_heard', 'p_block',
            format('is %s; it must be 0 or more', coalesce(p_block::text, 'NULL')),
            'The highest block that this or another relay has heard of.');
    ELSIF a.reconcile_from IS NULL THEN
        PERFORM order_error(format('leader_heard: account %s is reconciled', a.alias),
                            'Read the account again.');
    END IF;
    UPDATE accounts t SET lost_heard = coalesce(t.lost_heard, p_block) WHERE t.account = p_account
        RETURNING t.* INTO a;
    RETURN a.lost_heard + a.era_longest;
END
$$;

-- Adopts extrinsics from finalized blocks (p_times: time of the block in ms) or from a pool
-- (p_times NULL) that the database does not have as attempts, in the order of nonces. (The time of
-- a block is the chain's, plus what the caller knows this server's clock to be ahead.) If the nonce
-- is pending with the same call, the extrinsic becomes its newest attempt. If the call waits in the
-- outbox, the extrinsic takes the first such row that was there when the block was made (clocks may
-- differ by a minute); a later row is another request. A nonce may be given several times, and
-- below what is on record as used: the lost commits may have begun a new life of an account that
-- was reaped. So an attempt is on record if its hash is. Anything else was signed for what the
-- commits lost, or by another program, and is left alone. A row that an application holds is not
-- passed over, because it would be sent a second time if that rolls back: the call fails with
-- 55P03, and the account waits. p_block: no block up to this one contains any of them (nor does one
-- up to the birth of its era contain an extrinsic of a call; blocks below may be of a former life).
-- p_done: the account is reconciled if nothing was left to be adopted. What was adopted may have
-- failed in its block, so that it goes back to the outbox, and another one of these may be its next
-- try. p_read: all finalized blocks up to this one were read; NULL: an operator's option cuts the
-- wait short. Returns how many were adopted.
CREATE OR REPLACE FUNCTION txrelay.leader_adopt(p_account int, p_epoch bigint, p_nonces bigint[],
    p_hashes bytea[], p_extrinsics bytea[], p_call_lengths int[], p_tips numeric[],
    p_births bigint[], p_deaths bigint[], p_times bigint[], p_spec_version bigint,
    p_transaction_version bigint, p_block bigint, p_done boolean, p_read bigint) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'account');
    v_count int := batch_size('leader_adopt', cardinality(p_nonces), cardinality(p_hashes),
        cardinality(p_extrinsics), cardinality(p_call_lengths), cardinality(p_tips),
        cardinality(p_births), cardinality(p_deaths), cardinality(p_times));
    v_adopted int := 0;
    b record;
    p pending_transactions;
    o outbox;
    s outbox_presigned;
    v_number int;
    -- Rows that a server made whose clock was ahead: the steady clock shows by how much.
    v_differ interval := interval '1 min' + greatest(steady_clock() - clock_timestamp(), '0');
BEGIN
    PERFORM check_nonces('leader_adopt',
                         ARRAY(SELECT DISTINCT u.nonce FROM unnest(p_nonces) u (nonce)));
    IF a.reconcile_from IS NOT NULL
        AND (p_done IS NOT TRUE OR p_read < coalesce(a.lost_heard + a.era_longest, p_read + 1)) THEN
        PERFORM not_reconciled('leader_adopt', a);
    ELSIF p_done THEN
        UPDATE accounts t SET reconcile_from = NULL, lost_since = NULL, lost_heard = NULL
            WHERE t.account = p_account;
    END IF;
    PERFORM wait_briefly();
    FOR b IN SELECT u.*, substr(u.extrinsic, octet_length(u.extrinsic) - u.call_length + 1) AS call
            FROM unnest(p_nonces, p_hashes, p_extrinsics, p_call_lengths, p_tips, p_births,
                        p_deaths, p_times)
                u (nonce, hash, extrinsic, call_length, tip, birth, death, at) ORDER BY u.nonce,
                    u.at, u.hash LOOP
        CONTINUE WHEN EXISTS (SELECT FROM attempts t WHERE t.account = p_account
                              AND t.nonce = b.nonce AND t.hash = b.hash);
        SELECT * INTO p FROM pending_transactions x WHERE x.account = p_account
            AND x.nonce = b.nonce;
        IF FOUND THEN
            -- a presigned transaction is never signed again
            CONTINUE WHEN p.call <> b.call OR p.signed;
            -- Such eras are signed by this key.
            UPDATE accounts t SET era_longest = greatest(t.era_longest,
                b.death - nullif(b.birth, -1)), era_immortal = t.era_immortal
                OR coalesce(b.death, -1) < 0 WHERE t.account = p_account;
            PERFORM leader_attempt(p_account, p_epoch, ARRAY[b.nonce], ARRAY[b.hash],
                ARRAY[b.extrinsic], ARRAY[b.tip], ARRAY[b.birth], ARRAY[b.death], p_spec_version,
                coalesce(a.transaction_version, p_transaction_version), p_block,
                ARRAY['a later attempt was found, which the database had lost']);
            v_adopted := v_adopted + 1;
            CONTINUE;
        END IF;
        PERFORM must_be_free('leader_adopt',
            ARRAY(SELECT x.id FROM outbox_presigned x WHERE x.account = p_account
            AND x.extrinsic = b.extrinsic));
        DELETE FROM outbox_presigned x WHERE x.account = p_account AND x.extrinsic = b.extrinsic
            RETURNING x.* INTO s;
        IF FOUND THEN
            -- Its signer may have sent it long before, so the search starts at its era, or 1024
            -- blocks back if it has none.
            PERFORM signed_pend(a, p_epoch, s, b.nonce, b.hash, b.call_length, b.tip, b.birth,
                b.death, p_spec_version, coalesce(a.transaction_version, p_transaction_version),
                least(p_block, coalesce(nullif(b.birth, -1), greatest(p_block - 1024, 0))));
            UPDATE accounts t SET next_nonce = greatest(t.next_nonce, b.nonce + 1)
                WHERE t.account = p_account;
            v_adopted := v_adopted + 1;
            CONTINUE;
        END IF;
        SELECT * INTO o FROM outbox y WHERE y.account = p_account AND y.call = b.call
                AND (b.at IS NULL OR y.created_at <= to_timestamp(b.at / 1000.0) + v_differ)
            ORDER BY y.priority DESC, y.id LIMIT 1;
        CONTINUE WHEN NOT FOUND;
        PERFORM must_be_free('leader_adopt', ARRAY[o.id]);
        DELETE FROM outbox x WHERE x.id = o.id RETURNING x.* INTO o;
        CONTINUE WHEN NOT FOUND;
        SELECT coalesce(max(t.number), 0) + 1 INTO v_number FROM attempts t
            WHERE t.account = p_account AND t.nonce = b.nonce;
        INSERT INTO pending_transactions (account, nonce, account_id, id, call, hash, attempt,
            attempts, state, epoch, key, creator, role, priority, deadline, guard, tip, max_tip,
            deadline_block, retries, created_at, traceparent)
            VALUES (p_account, b.nonce, a.account_id, o.id, o.call, b.hash, v_number,
                    o.attempts + 1, 'signed', p_epoch,
            o.key, o.creator, o.role, o.priority, o.deadline, o.guard, o.tip, o.max_tip,
                o.deadline_block, o.retries, o.created_at,
            o.traceparent);
        INSERT INTO attempts (account, nonce, number, id, hash, extrinsic, tip, era_birth,
            era_death, spec_version, transaction_version, block, epoch)
            VALUES (p_account, b.nonce, v_number, o.id, b.hash, b.extrinsic, b.tip,
                    nullif(b.birth, -1),
            nullif(b.death, -1), p_spec_version, p_transaction_version,
                greatest(p_block, nullif(b.birth, -1)), p_epoch);
        UPDATE accounts t SET next_nonce = greatest(t.next_nonce, b.nonce + 1),
            transaction_version = coalesce(t.transaction_version, p_transaction_version)
            WHERE t.account = p_account;
        v_adopted := v_adopted + 1;
    END LOOP;
    IF v_adopted > 0 THEN
        UPDATE accounts t SET reconcile_from = a.reconcile_from, lost_since = a.lost_since,
            lost_heard = a.lost_heard
            WHERE t.account = p_account AND a.reconcile_from IS NOT NULL;
    END IF;
    RETURN v_adopted;
END
$$;

-- An operator who restored the database from a copy (of the disk, or a dump) says from which block
-- on the chain may know more; NULL: from the last block that a leader saw. Call it before relays
-- lead again: otherwise what was sent after the copy was made is sent again from the outbox. Every
-- leader must claim again. A block that is named is also the last one before which pending
-- transactions may have been signed: a node that invented higher ones would be waited for. Returns
-- the block.
CREATE OR REPLACE FUNCTION txrelay.account_reconcile(p_account text, p_block bigint DEFAULT NULL)
    RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_account int := account_of(p_account);
    v_before jsonb := operation_before('reconcile', NULL, v_account, NULL);
    v_seen bigint;
    v_from bigint;
BEGIN
    IF p_block < 0 THEN
        PERFORM bad_argument('account_reconcile', 'p_block',
            format('is %s; it must be 0 or more', p_block),
            'The last block that was final when the copy was made.');
    ELSIF p_block IS NOT NULL AND (SELECT t.sited FROM accounts t WHERE t.account = v_account) THEN
        PERFORM bad_argument('account_reconcile', 'p_block',
            format('is %s, and account %s has sites', p_block, p_account),
            'Leave it out: every block after the last one on record is read.');
    END IF;
    UPDATE leadership t SET timeline = 0 WHERE t.subject = v_account
        RETURNING (SELECT c.seen_block FROM claim_times(t) c) INTO v_seen;
    UPDATE accounts t SET reconcile_from = least(t.reconcile_from,
            coalesce(p_block, greatest(t.seen_block, v_seen, t.used_block), 0)),
            lost_since = clock_timestamp(), lost_heard = NULL
        WHERE t.account = v_account RETURNING t.reconcile_from INTO v_from;
    UPDATE attempts t SET block = v_from FROM pending_transactions p
        WHERE p.account = v_account AND t.account = v_account AND t.nonce = p.nonce
        AND t.number <= p.attempt AND t.block > v_from
        AND p_block IS NOT NULL;
    PERFORM operation_note('reconcile', NULL, v_account, NULL,
                           jsonb_build_object('block', p_block), v_before, v_from::text);
    RETURN v_from;
END
$$;
