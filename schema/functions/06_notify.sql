-- txrelay: notifications: the server's queue, the doorbell, what readers are notified of.
--
-- Statement triggers read transition tables: the leader writes thousands of rows per statement, and
-- one query over them costs a fraction of a row trigger. The query drops changes that a reader
-- cannot see, so a statement without a visible change sends no notification. The functions that
-- remove a row also notify of its removal, because only they know how the transaction ended. All
-- parts of a payload are bounded (1.5 kB at most, escaping included), because a payload of 8000
-- bytes would abort the writer.

-- False while the notification queue is too full (queue_measure). Looked up by primary key: with
-- enable_seqscan = off, the cost of a sequential scan would trigger JIT compilation.
CREATE OR REPLACE FUNCTION txrelay.queue_has_room() RETURNS boolean
-- called with every notification, so it sets no search_path and no rights: it has its callers'
LANGUAGE plpgsql AS $$
BEGIN
    RETURN NOT EXISTS (SELECT FROM txrelay.notify_queue q WHERE q.one AND q.shut);
END
$$;

-- Returns how full the queue is (0 to 1) and stores whether functions may notify. Each relay's
-- listener calls it every ten seconds.
CREATE OR REPLACE FUNCTION txrelay.queue_measure() RETURNS float8
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_usage float8 := pg_notification_queue_usage();
BEGIN
    UPDATE notify_queue q SET shut = NOT q.shut, since = clock_timestamp() WHERE q.one
        AND q.shut <> (v_usage >= 0.25);
    RETURN v_usage;
END
$$;

-- Wakes the leader of an account, unless the session has set txrelay.notify = off. Then the leader
-- finds the row at its next slow poll, within a second. Transactions that must not carry a NOTIFY,
-- such as prepared ones, use that.
--
-- The doorbell (README.md): a leader that sleeps holds a lock, so whether it sleeps needs no flag
-- and no snapshot. ring takes the lock in shared mode until the end of the transaction, so an open
-- transaction keeps the leader awake. Only the first enqueue after the leader fell asleep carries a
-- NOTIFY.
CREATE OR REPLACE FUNCTION txrelay.tell_outbox(p_account int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF current_setting('txrelay.notify', true) IS DISTINCT FROM 'off' AND queue_has_room() THEN
        PERFORM pg_notify('outbox_wake', p_account::text);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION txrelay.tell_outbox_of(p_id bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
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

-- Who leads a subject has changed. Only that of an account has an account in the payload: readers
-- of accounts ignore the others.
CREATE OR REPLACE FUNCTION txrelay.tell_leader(l txrelay.leadership) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF NOT queue_has_room() THEN
        RETURN;
    ELSIF l.kind = 'account' THEN
        PERFORM pg_notify('leader_change', json_build_object('account', a.account,
            'account_id', '0x' || encode(a.account_id, 'hex'), 'holder', l.holder, 'address',
            l.holder_address,
            'epoch', l.epoch)::text) FROM accounts a WHERE a.account = l.subject;
    ELSE
        PERFORM pg_notify('leader_change', json_build_object('kind', l.kind, 'subject', l.subject,
            'holder', l.holder,
            'address', l.holder_address, 'epoch', l.epoch)::text);
    END IF;
END
$$;

-- The payload of a change. It is concatenated by hand, because json_build_object looks up the
-- output function of each argument for every row: a third of the time of a status update. Postgres
-- inlines it into its callers.
CREATE OR REPLACE FUNCTION txrelay.change_text(p_account_id bytea, p_nonce bigint, p_hash bytea,
    p_state txrelay.tx_state, p_creator text, p_at timestamptz, p_id bigint, p_block_hash bytea,
    p_traceparent text) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT pg_catalog.concat('{"account_id":"0x', pg_catalog.encode(p_account_id, 'hex'),
        '","nonce":', p_nonce,
        ',"hash":"0x', pg_catalog.encode(p_hash, 'hex'), '","state":"', p_state, '","creator_id":',
        COALESCE(pg_catalog.to_json(p_creator)::text, 'null'), ',"updated_at":"',
        pg_catalog.to_char(pg_catalog.timezone('UTC', p_at), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        '","id":',
        COALESCE(p_id::text, 'null'),
        CASE WHEN p_block_hash IS NOT NULL THEN pg_catalog.concat(',"block_hash":"0x',
            pg_catalog.encode(p_block_hash, 'hex'),
            '"') END,
        CASE WHEN p_traceparent IS NOT NULL THEN pg_catalog.concat(',"traceparent":"',
            p_traceparent, '"') END, '}')
$$;

-- The payload of a removal. p_outcome NULL: the transaction goes back to the outbox.
CREATE OR REPLACE FUNCTION txrelay.removal_text(p_account_id bytea, p_nonce bigint, p_id bigint,
    p_outcome txrelay.tx_outcome, p_traceparent text) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT pg_catalog.concat('{"account_id":"0x', pg_catalog.encode(p_account_id, 'hex'),
        '","nonce":', p_nonce, ',"id":',
        COALESCE(p_id::text, 'null'),
        CASE WHEN p_outcome IS NOT NULL THEN pg_catalog.concat(',"outcome":"', p_outcome, '"') END,
        CASE WHEN p_traceparent IS NOT NULL THEN pg_catalog.concat(',"traceparent":"',
            p_traceparent, '"') END, '}')
$$;

CREATE OR REPLACE FUNCTION txrelay.pending_new() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF queue_has_room() THEN
        PERFORM pg_notify('pending_tx_new', change_text(n.account_id, n.nonce, n.hash, n.state,
            n.creator, n.updated_at, n.id, NULL, n.traceparent))
        FROM new_rows n;
    END IF;
    RETURN NULL;
END
$$;

-- enable_nestloop is off because the plan is kept, and the first statement of a session may have
-- had one row.
CREATE OR REPLACE FUNCTION txrelay.pending_update() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_nestloop = off AS $$
BEGIN
    IF queue_has_room() THEN
        PERFORM pg_notify('pending_tx_update', change_text(n.account_id, n.nonce, n.hash, n.state,
            n.creator, n.updated_at, n.id, n.block_hash, n.traceparent))
        FROM new_rows n JOIN old_rows o USING (account, nonce)
        WHERE n.state <> o.state OR n.hash <> o.hash OR n.block_hash IS DISTINCT FROM o.block_hash
           OR n.id IS DISTINCT FROM o.id;
    END IF;
    RETURN NULL;
END
$$;

-- The same for transactions of an account that has sites: two of them may have one nonce.
CREATE OR REPLACE FUNCTION txrelay.site_update() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_nestloop = off AS $$
BEGIN
    IF queue_has_room() THEN
        PERFORM pg_notify('pending_tx_update', change_text(n.account_id, n.nonce, n.hash, n.state,
            n.creator, n.updated_at, n.id, n.block_hash, n.traceparent))
        FROM new_rows n JOIN old_rows o USING (id)
        WHERE n.state <> o.state OR n.hash <> o.hash OR n.block_hash IS DISTINCT FROM o.block_hash;
    END IF;
    RETURN NULL;
END
$$;

-- Returns a position in microseconds since 1970: everything that ended before it is visible to a
-- reader from now on. That is now, or the start of the oldest open transaction that has ended
-- something: an application may cancel and commit an hour later. The clock is read first, so a
-- transaction that begins to write later has a later time. Without pg_read_all_stats the owner
-- cannot see when other transactions began; readers then rely on their overlap alone.
CREATE OR REPLACE FUNCTION txrelay.follow_position() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_now timestamptz := steady_clock();
    v_open timestamptz;
BEGIN
    SELECT min(s.xact_start) INTO v_open FROM pg_locks l JOIN pg_stat_activity s ON s.pid = l.pid
        WHERE l.locktype = 'relation' AND l.relation = 'txrelay.finished_transactions'::regclass
          AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
          AND l.mode = 'RowExclusiveLock' AND l.pid <> pg_backend_pid();
    RETURN (extract(epoch FROM least(v_now, v_open)) * 1000000)::bigint;
END
$$;
