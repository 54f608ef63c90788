-- txrelay 0005: what followers hear and may read, records that never change, partitions and retention.
--
-- Statement triggers over transition tables: the leader writes thousands of rows a statement, and one query over them
-- costs a fraction of a trigger call a row. What a follower cannot see is filtered by the query; a statement without a
-- visible change notifies nobody. That a row left is told by the functions that remove it: they know how it ended, the row
-- does not. A payload has bounded parts only (about 1.5 kB at the worst, escaping included): one
-- of 8000 bytes would abort the writer.

CREATE FUNCTION txrelay.pending_new() RETURNS trigger
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
CREATE FUNCTION txrelay.pending_update() RETURNS trigger
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

CREATE TRIGGER pending_new AFTER INSERT ON txrelay.pending_transactions REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION txrelay.pending_new();
CREATE TRIGGER pending_update AFTER UPDATE ON txrelay.pending_transactions REFERENCING OLD TABLE AS old_rows
    NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION txrelay.pending_update();

-- What a follower reads to catch up. Views of their own, because a notification may be missed but a table may not be
-- opened: no call, no key, no signed bytes, no policy is in them. They tell nothing that txrelay.transactions does not,
-- but the fillers and the numbers that put rows in order.
CREATE VIEW txrelay.follow_accounts AS
    SELECT a.account, a.alias, a.account_id, a.address FROM txrelay.accounts a;
CREATE VIEW txrelay.follow_pending AS
    SELECT p.account, p.nonce, p.id, p.hash, p.state, p.block_hash, p.block_number, p.error, p.creator, p.updated_at
    FROM txrelay.pending_transactions p;
-- A nonce that was used up while its transaction lives on is no end.
CREATE VIEW txrelay.follow_finished AS
    SELECT f.account, f.nonce, f.id, f.hash, f.state, f.block_hash, f.block_number, f.outcome, f.error, f.creator,
           f.finished_at
    FROM txrelay.finished_transactions f WHERE f.requeued IS NULL;

-- What retention took: who goes on from an older position is told that it may have missed something.
CREATE TABLE txrelay.retention (
    one            boolean PRIMARY KEY DEFAULT true CHECK (one),
    dropped_before timestamptz NOT NULL
);
CREATE VIEW txrelay.follow_kept AS SELECT r.dropped_before FROM txrelay.retention r;

-- Microseconds since 1970, by the database's clock: whatever ended before is there for who reads from now on. That is
-- now, less what open transactions have ended and not committed: an application may cancel, and commit an hour later
-- what then says that it ended an hour ago. The clock is read first: who begins to write later says a later time. The
-- owner sees when others' transactions began if it has pg_read_all_stats; without, readers have their overlap only.
CREATE FUNCTION txrelay.follow_position() RETURNS bigint
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

-- Rules for whoever connects, the owner's hand included.
CREATE FUNCTION txrelay.refuse_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR003',
        MESSAGE = format('%s on txrelay.%s is refused: %s', TG_OP, TG_TABLE_NAME, TG_ARGV[0]), HINT = TG_ARGV[1];
END
$$;
CREATE TRIGGER pending_final BEFORE UPDATE ON txrelay.pending_transactions
    FOR EACH ROW WHEN (OLD.state = 'finalized' AND (NEW.state, NEW.hash, NEW.block_hash) IS DISTINCT FROM
                       (OLD.state, OLD.hash, OLD.block_hash))
    EXECUTE FUNCTION txrelay.refuse_change('what is finalized stays', 'A relay that saw it change has a fault.');
CREATE TRIGGER accounts_epoch BEFORE UPDATE OF epoch ON txrelay.accounts
    FOR EACH ROW WHEN (NEW.epoch <> OLD.epoch AND NEW.epoch <> OLD.epoch + 1)
    EXECUTE FUNCTION txrelay.refuse_change('an epoch goes up by one', 'Old leaders would pass the fence.');
CREATE TRIGGER accounts_stay BEFORE DELETE ON txrelay.accounts
    FOR EACH ROW EXECUTE FUNCTION txrelay.refuse_change('accounts stay', 'Pause it instead: txrelay.account_pause.');
CREATE TRIGGER finished_stays BEFORE UPDATE OR DELETE ON txrelay.finished_transactions
    FOR EACH ROW EXECUTE FUNCTION txrelay.refuse_change('a terminal record never changes',
        'Old ones leave with their partition: txrelay.drop_partitions.');
CREATE TRIGGER finished_kept BEFORE TRUNCATE ON txrelay.finished_transactions
    EXECUTE FUNCTION txrelay.refuse_change('a terminal record never changes',
        'Old ones leave with their partition: txrelay.drop_partitions.');

-- Monthly partitions (UTC) of finished_transactions, from this month to p_ahead months later; what the default
-- partition caught for such a month moves along. Returns how many were made. Short locks, given up after 2 s: the next
-- call tries again, the default partition loses nothing.
CREATE FUNCTION txrelay.ensure_partitions(p_ahead int DEFAULT 2, p_now timestamptz DEFAULT clock_timestamp()) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET lock_timeout = '2s'
SET timezone = 'UTC' AS $$
DECLARE
    v_from timestamptz;
    v_name text;
    v_made int := 0;
BEGIN
    IF p_ahead IS NULL OR p_ahead NOT BETWEEN 0 AND 24 THEN
        PERFORM bad_argument('ensure_partitions', 'p_ahead', format('is %s; it must be 0 to 24',
            coalesce(p_ahead::text, 'NULL')), 'Many partitions make planning slow.');
    END IF;
    FOR v_from IN SELECT generate_series(date_trunc('month', p_now),
                                         date_trunc('month', p_now) + p_ahead * interval '1 month', interval '1 month')
    LOOP
        v_name := 'finished_transactions_' || to_char(v_from, 'YYYY"m"MM');
        CONTINUE WHEN to_regclass('txrelay.' || v_name) IS NOT NULL;
        -- Two callers make one partition. Asked again by a query: it sees what the wait was for, a name cache may not.
        PERFORM pg_advisory_xact_lock(9002, 0);
        CONTINUE WHEN EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'txrelay'::regnamespace
                              AND c.relname = v_name);
        EXECUTE format('CREATE TABLE txrelay.%I (LIKE txrelay.finished_transactions INCLUDING DEFAULTS '
                       'INCLUDING CONSTRAINTS)', v_name);
        -- Attaching looks for such rows in the default partition under its lock; they must have left by then.
        LOCK TABLE txrelay.finished_transactions_default IN ACCESS EXCLUSIVE MODE;
        IF EXISTS (SELECT FROM finished_transactions_default d
                   WHERE d.finished_at >= v_from AND d.finished_at < v_from + interval '1 month') THEN
            ALTER TABLE txrelay.finished_transactions_default DISABLE TRIGGER finished_stays;
            EXECUTE format('WITH gone AS (DELETE FROM txrelay.finished_transactions_default WHERE finished_at >= $1 '
                           'AND finished_at < $2 RETURNING *) INSERT INTO txrelay.%I SELECT * FROM gone', v_name)
                USING v_from, v_from + interval '1 month';
            ALTER TABLE txrelay.finished_transactions_default ENABLE TRIGGER finished_stays;
        END IF;
        EXECUTE format('ALTER TABLE txrelay.finished_transactions ATTACH PARTITION txrelay.%I FOR VALUES FROM (%L) '
                       'TO (%L)', v_name, v_from, v_from + interval '1 month');
        v_made := v_made + 1;
    END LOOP;
    RETURN v_made;
END
$$;

-- Retention of finished transactions: drops the partitions whose every row is older than p_keep. Who comes while another
-- is at it does nothing. A lock is waited for so short because leaders' writes wait behind it, which a long reader (a
-- dump) would make them do at every try.
CREATE FUNCTION txrelay.drop_partitions(p_keep interval, p_now timestamptz DEFAULT clock_timestamp()) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET lock_timeout = '300ms'
SET timezone = 'UTC' AS $$
DECLARE
    v_name text;
    v_dropped int := 0;
BEGIN
    IF p_keep IS NULL OR p_keep < interval '1 day' THEN
        PERFORM bad_argument('drop_partitions', 'p_keep', format('is %s; at least 1 day', coalesce(p_keep::text,
            'NULL')), 'It is how long records of finished transactions are kept.');
    END IF;
    IF NOT pg_try_advisory_xact_lock(9002, 0) THEN
        RETURN 0;
    END IF;
    FOR v_name IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'txrelay.finished_transactions'::regclass AND c.relname ~ '_[0-9]{4}m[0-9]{2}$'
          AND to_timestamp(right(c.relname, 7), 'YYYY"m"MM') + interval '1 month' <= p_now - p_keep
    LOOP
        EXECUTE format('DROP TABLE txrelay.%I', v_name);
        v_dropped := v_dropped + 1;
        INSERT INTO retention AS r (dropped_before)
            VALUES (to_timestamp(right(v_name, 7), 'YYYY"m"MM') + interval '1 month')
            ON CONFLICT (one) DO UPDATE SET dropped_before = greatest(r.dropped_before, excluded.dropped_before);
    END LOOP;
    RETURN v_dropped;
END
$$;

-- Retention of the rest, by the leader of the account, at most about p_limit rows of each kind a call: attempts at nonces
-- that are not in use, with what was said against them, and idempotency keys whose transaction has ended. Returns the
-- number of rows that went. Nonces are used in the order of time, so the oldest p_limit attempts are looked at and no
-- more, or every call would read all that is kept; and those above the next nonce, which are of a former life.
CREATE FUNCTION txrelay.leader_cleanup(p_account int, p_epoch bigint, p_keep interval, p_limit int DEFAULT 10000)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'update');
    v_before timestamptz := clock_timestamp() - p_keep; -- once: an index has no use for a clock that runs
    v_attempts bigint;
    v_keys bigint;
BEGIN
    IF p_keep IS NULL OR p_keep < interval '1 day' THEN
        PERFORM bad_argument('leader_cleanup', 'p_keep', format('is %s; at least 1 day', coalesce(p_keep::text,
            'NULL')), 'It is how long attempts and idempotency keys are kept.');
    END IF;
    WITH gone AS (
        DELETE FROM attempts t WHERE t.ctid = ANY (ARRAY(
            SELECT o.at FROM ((SELECT x.ctid AS at, x.nonce, x.ended_at FROM attempts x WHERE x.account = p_account
                               ORDER BY x.account, x.nonce, x.number LIMIT p_limit)
                              UNION
                              (SELECT x.ctid, x.nonce, x.ended_at FROM attempts x
                               WHERE x.account = p_account AND x.nonce >= a.next_nonce
                               ORDER BY x.account, x.nonce, x.number LIMIT p_limit)) o
            WHERE o.ended_at < v_before
              AND NOT EXISTS (SELECT FROM pending_transactions p WHERE p.account = p_account AND p.nonce = o.nonce)))
        RETURNING t.nonce, t.number
    ), said AS (
        DELETE FROM refusals r USING gone g CROSS JOIN LATERAL (SELECT x.ctid AS at FROM refusals x
            WHERE x.account = p_account AND x.nonce = g.nonce AND x.number = g.number OFFSET 0) x
        WHERE r.ctid = x.at
    )
    SELECT count(*) INTO v_attempts FROM gone;
    DELETE FROM idempotency_keys k WHERE k.ctid = ANY (ARRAY(
        SELECT o.ctid FROM idempotency_keys o
        WHERE o.account::bigint = p_account AND o.created_at < v_before
          AND (SELECT b.id FROM outbox b WHERE b.id = o.id LIMIT 1) IS NULL
          AND (SELECT b.id FROM outbox_signed b WHERE b.id = o.id ORDER BY b.id LIMIT 1) IS NULL
          AND (pending_of(o.id)).id IS NULL
        ORDER BY o.created_at LIMIT p_limit));
    GET DIAGNOSTICS v_keys = ROW_COUNT;
    RETURN v_attempts + v_keys;
END
$$;
-- Of an expression that nobody else asks for: who looks for a key must not find it as good as the key's own.
CREATE INDEX idempotency_keys_age ON txrelay.idempotency_keys ((account::bigint), created_at);

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA txrelay FROM PUBLIC;
REVOKE ALL ON txrelay.follow_accounts, txrelay.follow_pending, txrelay.follow_finished, txrelay.follow_kept,
    txrelay.retention FROM PUBLIC;
GRANT EXECUTE ON FUNCTION txrelay.leader_cleanup, txrelay.ensure_partitions, txrelay.drop_partitions
    TO txrelay_relay;
-- A follower reads, and asks for nothing: applications and relays follow too.
GRANT SELECT ON txrelay.follow_accounts, txrelay.follow_pending, txrelay.follow_finished, txrelay.follow_kept
    TO txrelay_follower, txrelay_app, txrelay_relay;
GRANT EXECUTE ON FUNCTION txrelay.follow_position TO txrelay_follower, txrelay_app, txrelay_relay;
GRANT SELECT ON txrelay.transactions, txrelay.leader_state, txrelay.blocked_accounts TO txrelay_follower;
GRANT EXECUTE ON FUNCTION txrelay.status, txrelay.history TO txrelay_follower;

DO $now$ BEGIN PERFORM txrelay.ensure_partitions(); END $now$;
