-- txrelay: records that never change, their partitions, and retention.

-- Refuses a change by any role, including the owner.
CREATE OR REPLACE FUNCTION txrelay.refuse_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR003',
        MESSAGE = format('%s on txrelay.%s is refused: %s', TG_OP, TG_TABLE_NAME, TG_ARGV[0]),
        HINT = TG_ARGV[1];
END
$$;

-- Makes monthly partitions (UTC) of finished_transactions, from this month to p_ahead months later,
-- and moves rows of these months from the default partition. Returns how many it made. It gives up
-- after waiting 2 s for a lock; the next call tries again, and the default partition loses nothing
-- meanwhile.
CREATE OR REPLACE FUNCTION txrelay.ensure_partitions(p_ahead int DEFAULT 2,
                                                     p_now timestamptz DEFAULT NULL) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET lock_timeout = '2s'
SET timezone = 'UTC' AS $$
DECLARE
    v_from timestamptz;
    v_name text;
    v_made int := 0;
BEGIN
    p_now := clock_of('ensure_partitions', p_now);
    IF p_ahead IS NULL OR p_ahead NOT BETWEEN 0 AND 24 THEN
        PERFORM bad_argument('ensure_partitions', 'p_ahead', format('is %s; it must be 0 to 24',
            coalesce(p_ahead::text, 'NULL')), 'Many partitions make planning slow.');
    END IF;
    FOR v_from IN SELECT generate_series(date_trunc('month', p_now),
                                         date_trunc('month', p_now) + p_ahead * interval '1 month',
                                         interval '1 month')
    LOOP
        v_name := 'finished_transactions_' || to_char(v_from, 'YYYY"m"MM');
        CONTINUE WHEN to_regclass('txrelay.' || v_name) IS NOT NULL;
        -- Two callers make one partition. The second check is a query, which sees what the wait was
        -- for; a name cache may not.
        PERFORM pg_advisory_xact_lock(9002, 0);
        CONTINUE WHEN EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'txrelay'::regnamespace
                              AND c.relname = v_name);
        EXECUTE format('CREATE TABLE txrelay.%I (LIKE txrelay.finished_transactions INCLUDING '
                       'DEFAULTS '
                       'INCLUDING CONSTRAINTS)', v_name);
        -- ATTACH looks for such rows in the default partition, so they must have left before.
        LOCK TABLE txrelay.finished_transactions_default IN ACCESS EXCLUSIVE MODE;
        IF EXISTS (SELECT FROM finished_transactions_default d
                   WHERE d.finished_at >= v_from AND d.finished_at < v_from + interval '1 month')
                   THEN
            ALTER TABLE txrelay.finished_transactions_default DISABLE TRIGGER finished_stays;
            EXECUTE format('WITH gone AS (DELETE FROM txrelay.finished_transactions_default WHERE '
                           'finished_at >= $1 '
                           'AND finished_at < $2 RETURNING *) INSERT INTO txrelay.%I SELECT * '
                           'FROM gone', v_name)
                USING v_from, v_from + interval '1 month';
            ALTER TABLE txrelay.finished_transactions_default ENABLE TRIGGER finished_stays;
        END IF;
        EXECUTE format('ALTER TABLE txrelay.%I REPLICA IDENTITY FULL', v_name); -- 0007_moves.sql
        EXECUTE format('ALTER TABLE txrelay.finished_transactions ATTACH PARTITION txrelay.%I FOR '
                       'VALUES FROM (%L) '
                       'TO (%L)', v_name, v_from, v_from + interval '1 month');
        v_made := v_made + 1;
    END LOOP;
    RETURN v_made;
END
$$;

-- Drops the partitions of finished_transactions in which every row is older than p_age, and what
-- http_cleanup removes after 400 days, or p_age if that is longer. If another
-- call is doing so, it returns at once. It waits for a lock only briefly, because leaders' writes
-- queue behind that wait, and a long reader such as a dump would cause it at every try.
CREATE OR REPLACE FUNCTION txrelay.drop_partitions(p_age interval, p_now timestamptz DEFAULT NULL)
    RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET lock_timeout = '300ms'
SET timezone = 'UTC' AS $$
DECLARE
    v_name text;
    v_dropped int := 0;
BEGIN
    p_now := clock_of('drop_partitions', p_now);
    IF p_age IS NULL OR p_age < interval '1 day' THEN
        PERFORM bad_argument('drop_partitions', 'p_age',
            format('is %s; at least 1 day', coalesce(p_age::text,
            'NULL')), 'It is how long records of finished transactions are kept.');
    END IF;
    IF NOT pg_try_advisory_xact_lock(9002, 0) THEN
        RETURN 0;
    END IF;
    FOR v_name IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'txrelay.finished_transactions'::regclass
        AND c.relname ~ '_[0-9]{4}m[0-9]{2}$'
          AND to_timestamp(right(c.relname, 7), 'YYYY"m"MM') + interval '1 month' <= p_now - p_age
    LOOP
        EXECUTE format('DROP TABLE txrelay.%I', v_name);
        v_dropped := v_dropped + 1;
        DELETE FROM retries r WHERE r.created_at < to_timestamp(right(v_name, 7), 'YYYY"m"MM')
            + interval '1 month'
            AND NOT EXISTS (SELECT FROM finished_transactions f WHERE f.id = r.id);
        INSERT INTO retention AS r (dropped_before)
            VALUES (to_timestamp(right(v_name, 7), 'YYYY"m"MM') + interval '1 month')
            ON CONFLICT (one) DO UPDATE SET dropped_before = greatest(r.dropped_before,
                excluded.dropped_before);
    END LOOP;
    PERFORM http_cleanup(greatest(p_age, interval '400 days'));
    RETURN v_dropped;
END
$$;

-- Removes old attempts with their refusals, idempotency keys whose transaction has ended, and
-- records of batches: at most about p_limit rows of each kind per call. Returns the number of rows.
-- Nonces are used in the order of time, so it looks only at the oldest p_limit attempts, and at
-- those above the next nonce, which belong to a former life; otherwise every call would read all
-- that is kept.
CREATE OR REPLACE FUNCTION txrelay.leader_cleanup(p_account int, p_epoch bigint, p_age interval,
                                                  p_limit int DEFAULT 10000)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'any update');
    v_before timestamptz := clock_timestamp() - p_age; -- read once, so that an index can be used
    v_attempts bigint;
    v_keys bigint;
    v_batches bigint;
BEGIN
    IF p_age IS NULL OR p_age < interval '1 day' THEN
        PERFORM bad_argument('leader_cleanup', 'p_age',
            format('is %s; at least 1 day', coalesce(p_age::text,
            'NULL')), 'It is how long attempts and idempotency keys are kept.');
    END IF;
    WITH gone AS (
        DELETE FROM attempts t WHERE t.ctid = ANY (ARRAY(
            SELECT o.at
                FROM ((SELECT x.ctid AS at, x.nonce, x.ended_at FROM attempts x
                       WHERE x.account = p_account
                               ORDER BY x.account, x.nonce, x.number LIMIT p_limit)
                              UNION
                              (SELECT x.ctid, x.nonce, x.ended_at FROM attempts x
                               WHERE x.account = p_account AND x.nonce >= a.next_nonce
                               ORDER BY x.account, x.nonce, x.number LIMIT p_limit)) o
            WHERE o.ended_at < v_before
              AND NOT EXISTS (SELECT FROM pending_transactions p WHERE p.account = p_account
                              AND p.nonce = o.nonce)))
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
          AND (SELECT b.id FROM outbox_presigned b WHERE b.id = o.id ORDER BY b.id LIMIT 1) IS NULL
          AND (pending_of(o.id)).id IS NULL
          AND (SELECT b.id FROM site_transactions b WHERE b.id = o.id LIMIT 1) IS NULL
        ORDER BY o.created_at LIMIT p_limit));
    GET DIAGNOSTICS v_keys = ROW_COUNT;
    DELETE FROM feed_batches b WHERE b.ctid = ANY (ARRAY(
        SELECT o.ctid FROM feeds f CROSS
            JOIN LATERAL (SELECT x.ctid, x.taken_at FROM feed_batches x WHERE x.feed = f.name
            ORDER BY x.feed, x.number LIMIT p_limit) o
        WHERE f.account = p_account AND o.taken_at < v_before LIMIT p_limit));
    GET DIAGNOSTICS v_batches = ROW_COUNT;
    RETURN v_attempts + v_keys + v_batches;
END
$$;
