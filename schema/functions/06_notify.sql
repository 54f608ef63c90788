-- txrelay: notifications: the server's queue, the doorbell, what followers are told.
--
-- Statement triggers over transition tables: the leader writes thousands of rows a statement, and one query over them
-- costs a fraction of a trigger call a row. What a follower cannot see is filtered by the query; a statement without a
-- visible change notifies nobody. The functions that remove a row notify of its removal, because they know how the
-- transaction ended. A payload has bounded parts only (about 1.5 kB at the worst, escaping included): one of 8000 bytes
-- would abort the writer.

-- By its key: some who ask have sequential scans off, and a plan with one would be dear enough to be compiled.
CREATE OR REPLACE FUNCTION txrelay.queue_has_room() RETURNS boolean
LANGUAGE plpgsql AS $$ -- asked with every notification: a part of its callers, whose search_path and rights it has
BEGIN
    RETURN NOT EXISTS (SELECT FROM txrelay.notify_queue q WHERE q.one AND q.shut);
END
$$;

-- How full it is, asked by each relay's listener every ten seconds.
CREATE OR REPLACE FUNCTION txrelay.queue_look() RETURNS float8
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_usage float8 := pg_notification_queue_usage();
BEGIN
    UPDATE notify_queue q SET shut = NOT q.shut WHERE q.one AND q.shut <> (v_usage >= 0.25);
    RETURN v_usage;
END
$$;

-- The doorbell (README). The lock says whether the leader is awake: no flag, no snapshot, no race. Shared and until
-- the end of the transaction, so an open transaction keeps its leader awake; taken again by a second enqueue it
-- costs no further lock. Outside of a sleeping leader's first wake-up no commit carries a NOTIFY.
-- A session may order silence (SET txrelay.notify = off): the leader then finds the row at its slow poll, within a second.
-- For what may not carry a NOTIFY, as a transaction that is to be prepared.
CREATE OR REPLACE FUNCTION txrelay.tell_outbox(p_account int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF current_setting('txrelay.notify', true) IS DISTINCT FROM 'off' AND queue_has_room() THEN
        PERFORM pg_notify('outbox_wake', p_account::text);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION txrelay.tell_outbox_of(p_id bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
BEGIN
    PERFORM tell_outbox(o.account) FROM outbox o WHERE o.id = p_id;
END
$$;

CREATE OR REPLACE FUNCTION txrelay.ring(p_account int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock_shared(9001, p_account) THEN
        PERFORM tell_outbox(p_account);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION txrelay.tell_leader(a txrelay.accounts) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF queue_has_room() THEN
        PERFORM pg_notify('leader_change', json_build_object('account', a.account,
            'account_id', '0x' || encode(a.account_id, 'hex'), 'holder', a.claimant, 'address', a.claimant_address,
            'epoch', a.epoch)::text);
    END IF;
END
$$;

-- What followers are told: text by hand, because json_build_object looks up how to write each of its arguments for every
-- row (a third of a status update's time). Without a search_path of their own they are a part of their caller.
CREATE OR REPLACE FUNCTION txrelay.change_text(p_account_id bytea, p_nonce bigint, p_hash bytea, p_state txrelay.tx_state,
    p_creator text, p_at timestamptz, p_id bigint, p_block_hash bytea) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT pg_catalog.concat('{"account_id":"0x', pg_catalog.encode(p_account_id, 'hex'), '","nonce":', p_nonce,
        ',"hash":"0x', pg_catalog.encode(p_hash, 'hex'), '","state":"', p_state, '","creator_id":',
        COALESCE(pg_catalog.to_json(p_creator)::text, 'null'), ',"updated_at":"',
        pg_catalog.to_char(pg_catalog.timezone('UTC', p_at), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '","id":',
        COALESCE(p_id::text, 'null'),
        CASE WHEN p_block_hash IS NOT NULL THEN pg_catalog.concat(',"block_hash":"0x', pg_catalog.encode(p_block_hash, 'hex'),
            '"') END, '}')
$$;

-- p_outcome NULL: it goes on elsewhere.
CREATE OR REPLACE FUNCTION txrelay.removal_text(p_account_id bytea, p_nonce bigint, p_id bigint, p_outcome txrelay.tx_outcome)
RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT pg_catalog.concat('{"account_id":"0x', pg_catalog.encode(p_account_id, 'hex'), '","nonce":', p_nonce, ',"id":',
        COALESCE(p_id::text, 'null'),
        CASE WHEN p_outcome IS NOT NULL THEN pg_catalog.concat(',"outcome":"', p_outcome, '"') END, '}')
$$;

CREATE OR REPLACE FUNCTION txrelay.pending_new() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF queue_has_room() THEN
        PERFORM pg_notify('pending_tx_new', change_text(n.account_id, n.nonce, n.hash, n.state, n.creator, n.updated_at,
            n.id, NULL))
        FROM new_rows n;
    END IF;
    RETURN NULL;
END
$$;

-- Never a nested loop: the plan is kept, and the first statement of a session may have had one row.
CREATE OR REPLACE FUNCTION txrelay.pending_update() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_nestloop = off AS $$
BEGIN
    IF queue_has_room() THEN
        PERFORM pg_notify('pending_tx_update', change_text(n.account_id, n.nonce, n.hash, n.state, n.creator, n.updated_at,
            n.id, n.block_hash))
        FROM new_rows n JOIN old_rows o USING (account, nonce)
        WHERE n.state <> o.state OR n.hash <> o.hash OR n.block_hash IS DISTINCT FROM o.block_hash
           OR n.id IS DISTINCT FROM o.id;
    END IF;
    RETURN NULL;
END
$$;

-- Microseconds since 1970, by the database's clock: whatever ended before is there for who reads from now on. That is
-- now, less what open transactions have ended and not committed: an application may cancel, and commit an hour later
-- what then says that it ended an hour ago. The clock is read first: who begins to write later says a later time. The
-- owner sees when others' transactions began if it has pg_read_all_stats; without, readers have their overlap only.
CREATE OR REPLACE FUNCTION txrelay.follow_position() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_open timestamptz;
BEGIN
    SELECT min(s.xact_start) INTO v_open FROM pg_locks l JOIN pg_stat_activity s ON s.pid = l.pid
        WHERE l.locktype = 'relation' AND l.relation = 'txrelay.finished_transactions'::regclass
          AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
          AND l.mode = 'RowExclusiveLock' AND l.pid <> pg_backend_pid();
    RETURN (extract(epoch FROM least(v_now, v_open)) * 1000000)::bigint;
END
$$;
