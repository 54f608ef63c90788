-- txrelay: what keeps accounts from going on.

-- Leaders write what they see, of many accounts at once, element by element: the epoch under which
-- each is led, the code and the text, and for how long (ms) it has lasted. Code NULL: nothing does
-- any more. Accounts that are not led under that epoch are left out. Returns how many were written.
CREATE OR REPLACE FUNCTION txrelay.leader_obstacles(p_accounts int[], p_epochs bigint[],
    p_codes text[], p_details text[], p_lasted_ms bigint[]) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_timelines int[] := timelines();
    v_count int := batch_size('leader_obstacles', cardinality(p_accounts), cardinality(p_epochs),
        cardinality(p_codes), cardinality(p_details), cardinality(p_lasted_ms));
BEGIN
    WITH led AS (
        SELECT DISTINCT ON (b.account) b.account, b.epoch, left(b.code, 40) AS code,
            coalesce(left(b.detail, 500), '') AS detail,
            v_now - least(greatest(b.lasted_ms, 0), 86400000) * interval '1 ms' AS since
        FROM unnest(p_accounts, p_epochs, p_codes, p_details, p_lasted_ms)
            WITH ORDINALITY b (account, epoch, code, detail, lasted_ms, n)
        JOIN leadership l ON l.subject = b.account AND l.epoch = b.epoch AND l.holder IS NOT NULL
            AND l.timeline = ANY (v_timelines)
        ORDER BY b.account, b.n DESC
    ), gone AS (
        DELETE FROM obstacles o USING led WHERE o.account = led.account AND led.code IS NULL
            RETURNING o.account
    ), kept AS (
        INSERT INTO obstacles AS o (account, epoch, code, detail, since)
        SELECT led.account, led.epoch, led.code, led.detail, led.since FROM led
        WHERE led.code IS NOT NULL
        ON CONFLICT (account) DO UPDATE SET epoch = excluded.epoch, code = excluded.code,
        detail = excluded.detail,
            since = excluded.since
        WHERE o.epoch <= excluded.epoch
        RETURNING o.account
    )
    SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM kept) INTO v_count;
    RETURN v_count;
END
$$;

-- A relay writes what keeps itself, rather than one of its accounts, from its work, and for how
-- long (ms) it has lasted. Code NULL: nothing does any more. A relay without a heartbeat is left
-- out.
CREATE OR REPLACE FUNCTION txrelay.relay_obstacle(p_holder text, p_code text, p_detail text,
                                                  p_lasted_ms bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
BEGIN
    UPDATE members m SET obstacle = left(p_code, 40), obstacle_text = left(p_detail, 500),
        obstacle_since = clock_timestamp() - least(greatest(p_lasted_ms, 0), 86400000)
        * interval '1 ms'
    WHERE m.holder = p_holder AND (m.obstacle, m.obstacle_text) IS DISTINCT FROM (left(p_code, 40),
        left(p_detail, 500));
END
$$;
