-- txrelay: leadership: the fence, claims and their renewal, eviction, members.
--
-- The epoch is the fencing token. Every write of a leader locks the row of its subject in
-- leadership and compares the epoch. A claim is an UPDATE of the same row: it waits for a write
-- under the old epoch, and a later write sees the new epoch and fails with TR001. Polls compare
-- without the lock, so that a leader that polls writes nothing. The write that follows compares
-- again.
--
-- Only leaders and claims lock rows of leadership, for one statement. Applications and operators
-- lock rows of accounts, for as long as they like. So a transaction that locks both locks
-- leadership first, and what keeps a leader in office (claim, renewal, release, scan) waits for no
-- row of accounts.

-- Returns the timeline of this server. A promoted standby and a restored server begin another one.
-- Every write calls this. It has no search_path and the volatility of what it calls, so that
-- Postgres inlines it; otherwise each call would parse and plan it.
CREATE OR REPLACE FUNCTION txrelay.timeline() RETURNS int
LANGUAGE sql AS $$
    SELECT pg_catalog.int4(('x' OPERATOR(pg_catalog.||) pg_catalog.left(pg_catalog.pg_walfile_name(
        pg_catalog.pg_current_wal_lsn()), 8))::pg_catalog.bit(32))
$$;

-- Stands for the timeline where the server keeps the WAL functions for itself, as some managed ones
-- do: when it started, as a number below -1. A failover changes it, and so does every restart: then
-- commits may be lost, as far as the database can show.
CREATE OR REPLACE FUNCTION txrelay.start_sign() RETURNS int
LANGUAGE sql STABLE AS $$
    SELECT pg_catalog.int4(-2 OPERATOR(pg_catalog.-)
        pg_catalog.int8(pg_catalog.floor(EXTRACT(epoch FROM
        pg_catalog.pg_postmaster_start_time()) OPERATOR(pg_catalog.*) 1000)) OPERATOR(pg_catalog.%)
        2147483646)
$$;

-- What leadership.timeline may be for a claim that was made on this server, as it is now. A new
-- claim gets the first one. The fence of a write compares without this function, at less cost.
CREATE OR REPLACE FUNCTION txrelay.timelines() RETURNS int[]
LANGUAGE plpgsql AS $$ -- without a search_path, as subject_fence
BEGIN
    RETURN ARRAY[txrelay.timeline(), txrelay.start_sign()];
EXCEPTION WHEN feature_not_supported OR insufficient_privilege OR undefined_function THEN
    RETURN ARRAY[txrelay.start_sign()];
END
$$;

-- False where claims are compared by the start of the server.
CREATE OR REPLACE FUNCTION txrelay.timeline_known() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RETURN cardinality(timelines()) = 2;
END
$$;

-- Names a subject in messages.
CREATE OR REPLACE FUNCTION txrelay.subject_name(l txrelay.leadership) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RETURN l.kind || ' ' || coalesce((SELECT a.alias FROM accounts a WHERE a.account = l.subject),
                                     l.subject::text);
END
$$;

CREATE OR REPLACE FUNCTION txrelay.subject_unknown(p_subject int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR010',
        MESSAGE = format('no such account or other subject: number %s',
                         coalesce(p_subject::text, 'NULL')),
        HINT = 'relay_register returns the number of an account.';
END
$$;

CREATE OR REPLACE FUNCTION txrelay.subject_elsewhere(l txrelay.leadership, p_epoch bigint)
    RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR001',
        MESSAGE = format('stale epoch %s for %s: it was claimed on timeline %s of the database, '
                         'and this is timeline %s', p_epoch,
            subject_name(l), l.timeline, (timelines())[1]),
        HINT = 'A failover came between, and may have lost commits. Claim again, and reconcile.';
END
$$;

-- Lets this transaction wait for the disk, whatever the session's default: a relay behind a pooler
-- cannot set its sessions. What is submitted after a commit that a crash loses would be sent again
-- as something else, and an epoch that is lost is given out again.
CREATE OR REPLACE FUNCTION txrelay.be_durable() RETURNS void
LANGUAGE plpgsql AS $$ -- without a search_path, as subject_fence
BEGIN
    IF pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'off' THEN
        PERFORM pg_catalog.set_config('synchronous_commit', 'on', true);
    END IF;
END
$$;

-- Compares the epoch of any subject. p_lock: 'read' and 'any read' take no lock; anything else
-- locks the row, so that a subject has one writer at a time. Its callers have set the search_path
-- and the owner's rights, so it has none of its own.
CREATE OR REPLACE FUNCTION txrelay.subject_fence(p_subject int, p_epoch bigint, p_lock text)
    RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    l txrelay.leadership;
BEGIN
    IF p_lock IN ('read', 'any read') THEN
        SELECT * INTO l FROM txrelay.leadership t WHERE t.subject = p_subject;
    ELSE
        PERFORM txrelay.be_durable();
        SELECT * INTO l FROM txrelay.leadership t WHERE t.subject = p_subject FOR NO KEY UPDATE;
    END IF;
    IF l.subject IS NULL THEN
        PERFORM txrelay.subject_unknown(p_subject);
    ELSIF l.holder IS NULL OR p_epoch IS NULL OR l.epoch <> p_epoch THEN
        RAISE EXCEPTION USING ERRCODE = 'TR001',
            MESSAGE = format('stale epoch %s for %s: it is at epoch %s, held by %s',
                             coalesce(p_epoch::text, 'NULL'),
                             txrelay.subject_name(l), l.epoch, coalesce(l.holder, 'nobody')),
            HINT = 'Another relay leads, or the claim was released. Stop all work for it.';
    -- no CASE: Postgres checks the right to all that an expression may call
    ELSIF l.timeline <= 0 THEN
        IF l.timeline <> txrelay.start_sign() THEN
            PERFORM txrelay.subject_elsewhere(l, p_epoch);
        END IF;
    ELSIF l.timeline <> txrelay.timeline() THEN
        PERFORM txrelay.subject_elsewhere(l, p_epoch);
    END IF;
END
$$;

-- The fence of an account: compares the epoch and returns the account as of after the wait. p_lock:
-- 'read' and 'update' as in subject_fence; 'account' also locks the account's row, for functions
-- that write it. They wait for an application or operator that holds it, before they lock anything
-- else. It refuses an account that has sites (22_sites.sql), except in the forms 'any read', 'any
-- update' and 'any account'. Without a search_path, as subject_fence.
CREATE OR REPLACE FUNCTION txrelay.fence(p_account int, p_epoch bigint, p_lock text)
    RETURNS txrelay.accounts
LANGUAGE plpgsql AS $$
DECLARE
    a txrelay.accounts;
BEGIN
    PERFORM txrelay.subject_fence(p_account, p_epoch, p_lock);
    IF p_lock IN ('account', 'any account') THEN
        SELECT * INTO a FROM txrelay.accounts t WHERE t.account = p_account FOR NO KEY UPDATE;
    ELSE
        SELECT * INTO a FROM txrelay.accounts t WHERE t.account = p_account;
    END IF;
    IF a.account IS NULL THEN
        PERFORM txrelay.subject_unknown(p_account); -- it is a subject of another kind
    ELSIF a.sited AND p_lock NOT LIKE 'any%' THEN
        PERFORM txrelay.order_error(format(
            'account %s has sites, and this relay has none for it in its configuration', a.alias),
            'Configure the sites of the account at this relay too, or end them with '
            'txrelay.account_unsite.');
    END IF;
    RETURN a;
END
$$;

-- The fence for reads whose answer is long. It waits for the writes of the subject that are under
-- way, and then releases the lock (the block is a subtransaction). A transaction ends only when its
-- client has read nearly all of the answer. A client that hangs would keep the lock, and no relay
-- could lead the subject. Without a search_path, as subject_fence.
CREATE OR REPLACE FUNCTION txrelay.fence_wait(p_account int, p_epoch bigint, p_lock text)
    RETURNS txrelay.accounts
LANGUAGE plpgsql AS $$
DECLARE
    a txrelay.accounts;
BEGIN
    BEGIN
        a := txrelay.fence(p_account, p_epoch, p_lock);
        RAISE EXCEPTION 'the lock is given back';
    EXCEPTION WHEN raise_exception THEN
        NULL; -- an error of the fence itself has a code of its own
    END;
    RETURN a;
END
$$;

-- The expiry of a claim: that of its holder's lease if it is leased, otherwise its own. A lease
-- never ends before a claim that it holds. Postgres inlines it.
CREATE OR REPLACE FUNCTION txrelay.claim_times(l txrelay.leadership)
RETURNS TABLE (expiry_1 timestamptz, expiry_2 timestamptz, seen_block bigint)
LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT coalesce(r.expiry_1, l.expiry_1), coalesce(r.expiry_2, l.expiry_2),
        greatest(l.seen_block, r.seen_block)
    FROM (SELECT) one LEFT JOIN txrelay.relay_leases r ON l.leased
        AND r.holder OPERATOR(pg_catalog.=) l.holder
$$;

-- True if something may have been submitted for an account that no node has answered yet: stored
-- bytes without a status, or a current attempt whose outcome is unknown. Such rows are at the
-- highest nonces, so it starts there. Called only between the two expiries. Subjects of other kinds
-- submit nothing.
CREATE OR REPLACE FUNCTION txrelay.mid_submission(p_subject int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
BEGIN
    PERFORM FROM pending_transactions p WHERE p.account = p_subject
        AND (p.state = 'signed' OR p.unknown)
        ORDER BY p.nonce DESC LIMIT 1;
    RETURN FOUND;
END
$$;

-- True if no session of a relay has the lock. Any other session may have it: without locks that
-- must not keep a subject from being led, and leader_evict may lack the right to end such a
-- session.
CREATE OR REPLACE FUNCTION txrelay.no_relay_has(p_lock_key bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RETURN pg_try_advisory_xact_lock(p_lock_key) OR NOT EXISTS (SELECT FROM lock_holders h
        JOIN pg_stat_activity x ON x.pid = h.pid WHERE h.lock_key = p_lock_key
            AND pg_has_role(x.usesysid, 'txrelay_relay', 'MEMBER'));
END
$$;

-- Claims a subject. One UPDATE decides. Two that overlap are serialized by the row's lock, and the
-- second one loses if the first one changed what it decided by: holder, epoch and whether the claim
-- is leased are in its condition. The first line that fits decides:
--
--   the subject's claim is now | caller has the lock        | caller has no lock
--   ---------------------------+----------------------------+--------------------------------
--   the same holder's          | granted, new epoch         | granted, new epoch
--   free                       | granted                    | granted if no relay has the lock
--   made with the lock         | granted: that session is   | by expiry, and if no relay has
--                              | gone, or it would have it  | the lock
--   made without the lock      | by expiry                  | by expiry, and if no relay has
--                              |                            | the lock
--
--   by expiry: expiry_2 has passed, or expiry_1 has passed and nothing is mid-submission. Never
--   before expiry_1. Relays without locks (use_lock = off) claim in the right column. A relay with
--   locks may ask there to see who holds the claim; leader_evict then has to end a hung session
--   first.
--
-- One lock lookup checks p_have_lock: no other session may have the lock. The session that holds
-- the lock must make the claim; its backend is stored for leader_evict. A lost race is not an
-- error, at any isolation level: the answer is not granted, and names the holder.
--
-- Where time alone decides, the lease is locked before it is read. A renewal that is under way then
-- either comes first and is seen, or comes second and finds the subject taken. leader_renew locks
-- in the same order. Then the subject is locked, so that mid_submission sees a write that is under
-- way: the UPDATE would wait for it too, but it decides before that wait.
--
-- The claim joins the lease of its holder at once, and extends it. So no renewal has to write the
-- row of the subject, which a statement of the leader may keep locked for long.
--
-- A claim on another timeline than the last one notes in the account from which block on the chain
-- may know more than the database, and begins the wait of 17_reconcile.sql (anew, if one was not
-- over). Nothing else of a claim touches accounts.
CREATE OR REPLACE FUNCTION txrelay.leader_claim(p_subject int, p_holder text, p_address text,
    p_have_lock boolean, p_expiry_1_ms int, p_expiry_2_ms int, p_now timestamptz DEFAULT NULL)
RETURNS TABLE (granted boolean, epoch bigint, holder text, holder_address text, lock_held boolean,
    expiry_1_left_ms bigint, expiry_2_left_ms bigint, mid_submission boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    l leadership;
    v_timeline int; -- of the last claim
    v_seen bigint;
    v_expired_1 boolean;
    v_expired_2 boolean;
    -- the statement: its first claim extends the lease, and the others find that done
    v_begun timestamptz;
BEGIN
    p_now := clock_of('leader_claim', p_now);
    v_begun := p_now - (clock_timestamp() - statement_timestamp());
    PERFORM check_expiry('leader_claim', p_expiry_1_ms, p_expiry_2_ms);
    PERFORM check_relay('leader_claim', p_holder, p_address);
    p_have_lock := coalesce(p_have_lock, false);
    SELECT * INTO l FROM leadership t WHERE t.subject = p_subject;
    IF NOT FOUND THEN
        PERFORM subject_unknown(p_subject);
    ELSIF p_have_lock AND NOT pg_try_advisory_xact_lock(l.lock_key) THEN
        PERFORM bad_argument('leader_claim', 'p_have_lock',
            'is true, and another session has the lock of '
            || subject_name(l), 'Claim in the session that holds the advisory lock.');
    END IF;
    v_timeline := l.timeline;
    granted := false;
    PERFORM be_durable();
    PERFORM repair_ids();
    BEGIN
        IF l.holder <> p_holder AND NOT (l.lock_held AND p_have_lock)
            AND (SELECT c.expiry_1 FROM claim_times(l) c) <= p_now THEN
            PERFORM FROM relay_leases r WHERE l.leased AND r.holder = l.holder FOR SHARE;
            PERFORM FROM leadership t WHERE t.subject = p_subject FOR NO KEY UPDATE;
        END IF;
        SELECT c.expiry_1 <= p_now, c.expiry_2 <= p_now, c.seen_block INTO v_expired_1,
            v_expired_2, v_seen
            FROM claim_times(l) c;
        UPDATE leadership t SET holder = p_holder, holder_address = p_address,
            lock_held = p_have_lock, lock_pid = CASE WHEN p_have_lock THEN pg_backend_pid() END,
            epoch = t.epoch + 1, heartbeat = p_now, timeline = (timelines())[1],
            seen_block = greatest(t.seen_block, v_seen), leased = true,
            expiry_1 = p_now + p_expiry_1_ms * interval '1 ms',
            expiry_2 = p_now + p_expiry_2_ms * interval '1 ms'
        WHERE t.subject = p_subject
          AND (t.holder, t.epoch, t.leased) IS NOT DISTINCT FROM (l.holder, l.epoch, l.leased)
          AND CASE
            WHEN t.holder = p_holder OR (t.lock_held AND p_have_lock) THEN true
            WHEN t.holder IS NULL OR v_expired_2 THEN p_have_lock OR no_relay_has(t.lock_key)
            WHEN NOT v_expired_1 OR mid_submission(t.subject) THEN false
            ELSE p_have_lock OR no_relay_has(t.lock_key) END
        RETURNING t.* INTO l;
        granted := FOUND;
        IF granted THEN
            INSERT INTO relay_leases AS r (holder, heartbeat, expiry_1, expiry_2)
                VALUES (p_holder, p_now, l.expiry_1, l.expiry_2)
                ON CONFLICT (holder) DO UPDATE SET expiry_1 = greatest(r.expiry_1,
                    excluded.expiry_1), expiry_2 = greatest(r.expiry_2, excluded.expiry_2),
                    heartbeat = CASE WHEN r.expiry_1 > p_now THEN r.heartbeat ELSE p_now END
                WHERE r.expiry_1 < v_begun + p_expiry_1_ms * interval '1 ms'
                    OR r.expiry_2 < v_begun + p_expiry_2_ms * interval '1 ms';
        END IF;
        IF granted AND v_timeline <> l.timeline THEN
            UPDATE accounts t
                SET reconcile_from = coalesce(t.reconcile_from,
                                              greatest(t.seen_block, l.seen_block, t.used_block),
                                              0),
                    lost_since = clock_timestamp(), lost_heard = NULL
                WHERE t.account = p_subject;
        END IF;
        IF granted THEN
            INSERT INTO leadership_history (subject, epoch, holder, address, at)
                VALUES (p_subject, l.epoch, l.holder, l.holder_address, p_now);
            DELETE FROM leadership_history h WHERE h.subject = p_subject
                AND h.epoch <= l.epoch - 64;
        END IF;
    EXCEPTION WHEN serialization_failure OR lock_not_available OR deadlock_detected THEN
        granted := false; -- another session claimed it, or is about to
    END;
    IF granted THEN
        PERFORM tell_leader(l);
    ELSE
        SELECT * INTO l FROM leadership t WHERE t.subject = p_subject;
    END IF;
    epoch := l.epoch;
    holder := l.holder;
    holder_address := l.holder_address;
    lock_held := l.lock_held;
    SELECT (extract(epoch FROM c.expiry_1 - p_now) * 1000)::bigint,
        (extract(epoch FROM c.expiry_2 - p_now) * 1000)::bigint
        INTO expiry_1_left_ms, expiry_2_left_ms FROM claim_times(l) c;
    mid_submission := NOT granted AND expiry_1_left_ms <= 0 AND mid_submission(p_subject);
    RETURN NEXT;
END
$$;

-- Renews all subjects of one relay: exactly those that it still holds under the epoch that it
-- knows. An expired claim that no other relay took is renewed. A deposed leader renews nothing, and
-- after a failover no relay does. p_block: the highest finalized block that the relay knows, NULL
-- for none. It is planned at each call, because calls are rare and of any size.
--
-- It writes one row, the lease, and then reads leadership, so it and the writers of a subject do
-- not wait for each other, however long these take. It writes the row of a subject only when that
-- leaves the lease, because the holder no longer names it; the row then keeps the times of the
-- lease. (A claim that was made before claims joined the lease at once joins it here.) If a session
-- holds such a row locked, it waits up to lock_timeout and then passes it over.
--
-- A subject that was claimed since the last renewal stays leased even if it is not named: the
-- answer to the claim may have been on its way when the holder asked for this renewal. The next one
-- names it. A claim of another timeline does not stay.
--
-- p_fingerprint not NULL: each row carries a fingerprint of what is renewed now. A caller whose
-- subjects were all renewed may pass it when it asks for the same ones again. If these and no
-- others are still leased to it, no subject is compared, and the answer is one row without a
-- subject, with unchanged set. Otherwise there is one row per subject, in the order of the
-- question.
CREATE OR REPLACE FUNCTION txrelay.leader_renew(p_holder text, p_subjects int[], p_epochs bigint[],
    p_expiry_1_ms int, p_expiry_2_ms int, p_now timestamptz DEFAULT NULL,
    p_block bigint DEFAULT NULL, p_fingerprint text DEFAULT NULL)
RETURNS TABLE (subject int, renewed boolean, unchanged boolean, fingerprint text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET plan_cache_mode = force_custom_plan SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    v_timelines int[] := timelines();
    v_lease relay_leases;
    v_named int[];
    v_turns int[];
    v_mine int[];
    v_fingerprint text;
BEGIN
    p_now := clock_of('leader_renew', p_now);
    PERFORM check_expiry('leader_renew', p_expiry_1_ms, p_expiry_2_ms);
    IF p_subjects IS NULL OR p_epochs IS NULL OR cardinality(p_subjects) <> cardinality(p_epochs)
        THEN
        PERFORM bad_argument('leader_renew', 'p_epochs',
            format('has %s elements and p_subjects has %s',
            coalesce(cardinality(p_epochs), 0), coalesce(cardinality(p_subjects), 0)),
            'Give one epoch per subject.');
    END IF;
    SELECT * INTO v_lease FROM relay_leases r WHERE r.holder = p_holder FOR NO KEY UPDATE;
    IF p_fingerprint <> '' THEN
        v_fingerprint := (SELECT format('%s/%s', count(*),
                                        sum(hashint8extended(t.epoch, t.subject))) FROM leadership t
            WHERE t.holder = p_holder AND t.leased AND t.timeline = ANY (v_timelines));
    END IF;
    INSERT INTO relay_leases AS r (holder, heartbeat, expiry_1, expiry_2, seen_block)
        VALUES (p_holder, p_now, p_now + p_expiry_1_ms * interval '1 ms',
                p_now + p_expiry_2_ms * interval '1 ms', p_block)
        ON CONFLICT (holder) DO UPDATE SET heartbeat = excluded.heartbeat,
            expiry_1 = excluded.expiry_1, expiry_2 = excluded.expiry_2,
            seen_block = greatest(r.seen_block, excluded.seen_block);
    IF v_fingerprint = p_fingerprint THEN
        RETURN QUERY SELECT NULL::int, NULL::boolean, true, v_fingerprint;
        RETURN;
    END IF;
    -- Arrays, and an IN that is no join (IS TRUE): both are hashed. Joins would be planned for a
    -- few rows.
    v_named := ARRAY(SELECT t.subject FROM leadership t WHERE t.holder = p_holder
        AND t.timeline = ANY (v_timelines)
        AND ((t.subject, t.epoch) IN (SELECT b.subject, b.epoch
                                      FROM unnest(p_subjects, p_epochs) b (subject, epoch))) IS
                                      TRUE);
    v_turns := ARRAY(SELECT t.subject FROM leadership t
        WHERE t.holder = p_holder AND t.leased <> (t.subject = ANY (v_named))
            -- Without a lease before none leaves; of another timeline each, or the lease's new
            -- blocks would be taken for blocks that its lost rows had seen.
            AND NOT (t.leased AND t.heartbeat >= v_lease.heartbeat
                     AND t.timeline = ANY (v_timelines)));
    IF cardinality(v_turns) > 0 THEN
        BEGIN
            PERFORM FROM leadership t WHERE t.subject = ANY (v_turns) FOR NO KEY UPDATE;
        EXCEPTION WHEN lock_not_available THEN
            v_turns := ARRAY(SELECT t.subject FROM leadership t WHERE t.subject = ANY (v_turns)
                FOR NO KEY UPDATE SKIP LOCKED);
        END;
        UPDATE leadership t SET leased = NOT t.leased,
                heartbeat = coalesce(v_lease.heartbeat, t.heartbeat),
                expiry_1 = coalesce(v_lease.expiry_1, t.expiry_1),
                expiry_2 = coalesce(v_lease.expiry_2, t.expiry_2),
                seen_block = greatest(t.seen_block, v_lease.seen_block)
            WHERE t.subject = ANY (v_turns) AND t.holder = p_holder
                AND t.leased <> (t.subject = ANY (v_named));
    END IF;
    SELECT array_agg(t.subject ORDER BY t.subject),
        format('%s/%s', count(*), sum(hashint8extended(t.epoch, t.subject))) INTO v_mine,
        v_fingerprint
        FROM leadership t WHERE t.holder = p_holder AND t.leased AND t.timeline = ANY (v_timelines)
        AND t.subject = ANY (v_named);
    DELETE FROM relay_leases r USING (SELECT o.holder FROM relay_leases o WHERE o.expiry_2 <= p_now
            AND o.holder <> p_holder
            AND NOT EXISTS (SELECT FROM leadership t WHERE t.holder = o.holder)
            FOR UPDATE SKIP LOCKED) gone
        WHERE r.holder = gone.holder;
    RETURN QUERY SELECT b.subject, b.subject IN (SELECT unnest(v_mine)), false, CASE
        WHEN p_fingerprint IS NOT NULL THEN v_fingerprint END
        FROM unnest(p_subjects) WITH ORDINALITY b (subject, n) ORDER BY b.n;
END
$$;

CREATE OR REPLACE FUNCTION txrelay.leader_release(p_subject int, p_epoch bigint, p_holder text)
    RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    l leadership;
BEGIN
    UPDATE leadership t SET holder = NULL, holder_address = NULL, lock_held = false,
        lock_pid = NULL, expiry_1 = NULL, expiry_2 = NULL, leased = false,
        seen_block = (SELECT c.seen_block FROM claim_times(t) c)
        WHERE t.subject = p_subject AND t.epoch = p_epoch AND t.holder = p_holder
        RETURNING t.* INTO l;
    IF FOUND THEN
        PERFORM tell_leader(l);
        RETURN true;
    END IF;
    RETURN false;
END
$$;

-- Ends the session that holds the subject's lock, if its claim has expired by the rules of
-- leader_claim. A session that holds the lock, in whichever mode, without the claim is ended at
-- once if its user is no member of txrelay_relay: any login can take an advisory lock. So are those
-- that wait for it, or the next one of them would have it. A relay's (it hung between lock and
-- claim) is ended if it did nothing new for 5 s while no claim is in force; a healthy one claims
-- within milliseconds. Returns true if it ended one; the lock is free a moment later. The schema's
-- owner needs pg_signal_backend and pg_read_all_stats for this, or to be a superuser.
CREATE OR REPLACE FUNCTION txrelay.leader_evict(p_lock_key bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    s leadership;
    c record;
    v_now timestamptz := steady_clock(); -- of leases
    h record;
    v_ended boolean := false;
BEGIN
    SELECT * INTO s FROM leadership t WHERE t.lock_key = p_lock_key;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    SELECT * INTO c FROM claim_times(s);
    IF c.expiry_1 > v_now OR (c.expiry_2 > v_now AND mid_submission(s.subject)) THEN
        RETURN false;
    END IF;
    FOR h IN SELECT l.pid, x.state_change,
            coalesce(pg_has_role(x.usesysid, 'txrelay_relay', 'MEMBER'), false) AS relay,
            s.holder IS NOT NULL AND s.lock_pid IS NOT DISTINCT FROM l.pid AS claimed
            FROM pg_locks l JOIN pg_database d ON d.oid = l.database
            AND d.datname = current_database()
            LEFT JOIN pg_stat_activity x ON x.pid = l.pid
            WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.pid <> pg_backend_pid()
              AND l.classid::bigint = (p_lock_key >> 32) & 4294967295
              AND l.objid::bigint = p_lock_key & 4294967295
            ORDER BY l.granted DESC LOOP
        IF h.relay AND NOT h.claimed AND h.state_change IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
                MESSAGE = 'its activity is hidden';
        ELSIF h.claimed OR NOT h.relay OR h.state_change < clock_timestamp() - interval '5 s' THEN
            v_ended := pg_terminate_backend(h.pid) OR v_ended;
        END IF;
    END LOOP;
    RETURN v_ended;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
        MESSAGE = format('leader_evict: the lock of %s is held by %s, and user %s may not end '
                         'that session', subject_name(s),
            session_text(h.pid), current_user),
        HINT = format('Let an administrator run: GRANT pg_signal_backend, pg_read_all_stats TO '
                      '%I;', current_user);
END
$$;

-- The session that keeps others from leading a subject, in words: it has the lock without a claim
-- that is in force. NULL: none, or the claimant's own.
CREATE OR REPLACE FUNCTION txrelay.lock_holder(p_lock_key bigint) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RETURN (SELECT session_text(h.pid) FROM leadership l
        JOIN lock_holders h ON h.lock_key = l.lock_key
        WHERE l.lock_key = p_lock_key AND h.pid IS DISTINCT FROM l.lock_pid LIMIT 1);
END
$$;

-- A fingerprint of all claims. It changes with every claim, release and expiry, and when a session
-- with locks ends: a claim or release raises the first number, because epochs only rise; the second
-- number names what has expired. It does not show that a session gave up one lock and kept its
-- claim.
CREATE OR REPLACE FUNCTION txrelay.claims_fingerprint(p_now timestamptz) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = on AS $$
BEGIN
    RETURN (SELECT format('%s/%s', sum(g.claims), sum(g.subjects) FILTER (WHERE g.holder IS NOT NULL
            AND (coalesce(r.expiry_1, g.expiry_1) > p_now
                AND (g.lock_pid IS NULL OR EXISTS (SELECT FROM pg_stat_get_activity(g.lock_pid))))
                IS NOT TRUE))
        FROM (SELECT l.holder, l.leased, l.lock_pid, CASE WHEN NOT l.leased THEN l.expiry_1 END
                  AS expiry_1,
                  sum(l.subject) AS subjects, sum(2 * l.epoch + (l.holder IS NULL)::int) AS claims
              FROM leadership l GROUP BY 1, 2, 3, 4) g LEFT JOIN relay_leases r ON g.leased
                  AND r.holder = g.holder);
END
$$;

-- What followers bid by: which locks are taken, which claims are in force. It writes nothing, and
-- one pass over the locks serves all subjects. It leaves out a subject whose claim is in force,
-- with the lock that it was made with, under the epoch that the caller knows (p_epochs, element by
-- element; NULL: unknown). So an idle relay with thousands of subjects reads nothing but its own
-- question. Rows come in the order of the question.
--
-- p_fingerprint not NULL: each row carries the fingerprint of all claims, and there is at least one
-- row, whose subject is NULL if there is nothing to report. A caller that got that row may pass its
-- fingerprint when it repeats the question. Nothing else is read while the fingerprint is the same:
-- reading the locks of thousands of accounts takes 50 ms.
CREATE OR REPLACE FUNCTION txrelay.leader_scan(p_subjects int[], p_epochs bigint[] DEFAULT NULL,
    p_now timestamptz DEFAULT NULL, p_fingerprint text DEFAULT NULL)
RETURNS TABLE (subject int, taken boolean, holder text, holder_address text, epoch bigint,
    lock_held boolean, expiry_1_left_ms bigint, expiry_2_left_ms bigint, fingerprint text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET plan_cache_mode = force_custom_plan SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    v_fingerprint text;
BEGIN
    p_now := clock_of('leader_scan', p_now);
    IF p_subjects IS NULL
        OR (p_epochs IS NOT NULL AND cardinality(p_subjects) <> cardinality(p_epochs)) THEN
        PERFORM bad_argument('leader_scan', 'p_epochs',
            format('has %s elements and p_subjects has %s',
            coalesce(cardinality(p_epochs), 0), coalesce(cardinality(p_subjects), 0)),
            'Give one epoch per subject, or none.');
    END IF;
    IF p_fingerprint IS NOT NULL THEN
        v_fingerprint := claims_fingerprint(p_now);
    END IF;
    fingerprint := v_fingerprint;
    IF v_fingerprint = p_fingerprint THEN
        RETURN NEXT;
        RETURN;
    END IF;
    RETURN QUERY
    WITH locks AS MATERIALIZED (
        SELECT l.classid::bigint << 32 | l.objid::bigint AS lock_key
        FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
        WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
    ), held AS MATERIALIZED ( -- claim_times, for thousands at once
        SELECT r.holder, r.expiry_1, r.expiry_2 FROM relay_leases r
        -- by its key: with sequential scans off, one would be costly enough to be compiled
        ORDER BY r.holder
    ), rows AS (
        SELECT b.n, b.known, t.subject, t.holder, t.holder_address, t.epoch, t.lock_held,
            coalesce(h.expiry_1, t.expiry_1) AS expiry_1,
            coalesce(h.expiry_2, t.expiry_2) AS expiry_2,
            t.lock_key IN (SELECT l.lock_key FROM locks l) AS taken -- hashed once
        FROM unnest(p_subjects, coalesce(p_epochs, '{}')) WITH ORDINALITY b (subject, known, n)
            JOIN leadership t ON t.subject = b.subject LEFT JOIN held h ON t.leased
            AND h.holder = t.holder
    )
    SELECT r.subject, r.taken, r.holder, r.holder_address, r.epoch, r.lock_held,
        (extract(epoch FROM r.expiry_1 - p_now) * 1000)::bigint,
        (extract(epoch FROM r.expiry_2 - p_now) * 1000)::bigint, v_fingerprint
    FROM rows r
    WHERE (r.holder IS NOT NULL AND r.expiry_1 > p_now AND (r.taken OR NOT r.lock_held)
           AND r.epoch = r.known) IS NOT TRUE
    ORDER BY r.n;
    IF NOT FOUND AND p_fingerprint IS NOT NULL THEN
        RETURN NEXT;
    END IF;
END
$$;

-- A heartbeat: this relay is alive (or leaves). Returns the other live relays, by the database's
-- clock, with names in byte order. p_session: the caller's session lives as long as the relay, so a
-- dead relay stops being a member when its session ends; otherwise its time must run out. best: the
-- highest block that any of them has heard of, also one that died or left within the last minute: a
-- relay that starts must not believe a node that is behind what the others had seen. The first
-- caller removes old rows; other callers do not wait for it.
CREATE OR REPLACE FUNCTION txrelay.member_heartbeat(p_holder text, p_address text, p_serves bigint,
    p_ttl_ms int, p_session boolean DEFAULT false, p_leave boolean DEFAULT false,
    p_best bigint DEFAULT NULL, p_now timestamptz DEFAULT NULL)
RETURNS TABLE (holder text, address text, best bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_ttl interval := p_ttl_ms * interval '1 ms';
BEGIN
    IF p_now IS NULL THEN
        PERFORM note_high_water();
    END IF;
    p_now := clock_of('member_heartbeat', p_now);
    PERFORM check_expiry('member_heartbeat', p_ttl_ms, p_ttl_ms);
    PERFORM check_relay('member_heartbeat', p_holder, p_address);
    IF p_serves IS NULL THEN
        PERFORM bad_argument('member_heartbeat', 'p_serves', 'is NULL',
                             'A digest of the accounts of this relay.');
    END IF;
    IF p_leave THEN
        UPDATE members m SET pid = 0 WHERE m.holder = p_holder; -- of no session
    ELSE
        INSERT INTO members AS m (holder, address, serves, pid, best, heartbeat)
            VALUES (p_holder, p_address, p_serves, CASE WHEN p_session THEN pg_backend_pid() END,
                    p_best, p_now)
            ON CONFLICT (holder) DO UPDATE SET address = excluded.address,
                serves = excluded.serves, pid = excluded.pid, best = excluded.best,
                heartbeat = excluded.heartbeat;
    END IF;
    DELETE FROM members m USING (SELECT o.holder FROM members o
        WHERE o.heartbeat <= p_now - greatest(2 * v_ttl, interval '1 minute')
        FOR UPDATE SKIP LOCKED) old WHERE m.holder = old.holder;
    RETURN QUERY SELECT m.holder, m.address,
        (SELECT max(o.best) FROM members o WHERE o.serves = p_serves) FROM members m
        WHERE m.heartbeat > p_now - v_ttl AND m.serves = p_serves
        AND (m.pid IS NULL OR EXISTS (SELECT FROM pg_stat_get_activity(m.pid)))
        ORDER BY m.holder COLLATE "C";
END
$$;
