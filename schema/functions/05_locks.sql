-- txrelay: rows and locks that an application holds.
--
-- An application that cancels or bumps a transaction locks its row in an outbox until it commits,
-- which may take hours. A leader never waits for such a row: it passes it over and reports it, and
-- other rows and accounts go on. A row that was never locked has xmax 0, so only the others cost
-- more than one comparison. Statements of a leader that read or write an outbox use this form:
--
--     x.xmax = 0 OR NOT x.xmax = ANY ((SELECT running_xids())::xid[]) AND row_free(x.id)
--
-- The list spares most held rows a call of row_free. It has no subtransactions, so row_free
-- decides.

-- Transactions that are open now. Also notes, until the end of this transaction, that there were
-- rows to ask for: leader_outbox then looks for a held one to report.
CREATE OR REPLACE FUNCTION txrelay.running_xids() RETURNS xid[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    PERFORM set_config('txrelay.held', '1', true);
    RETURN ARRAY(SELECT s::xid FROM pg_snapshot_xip(pg_current_snapshot()) s);
END
$$;

-- Bounds the waits of a leader's statement until its transaction ends: an application may lock a
-- row after it was found free. Not shorter, because other locks of Postgres count too.
CREATE OR REPLACE FUNCTION txrelay.wait_briefly() RETURNS text
LANGUAGE sql AS $$
    SELECT pg_catalog.set_config('lock_timeout', '50ms', true)
$$;

-- True if no other transaction holds the row of this transaction in an outbox; it is locked for the
-- caller then.
CREATE OR REPLACE FUNCTION txrelay.row_free(p_id bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
BEGIN
    PERFORM FROM outbox x WHERE x.id = p_id FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        PERFORM FROM outbox_presigned x WHERE x.id = p_id
            ORDER BY x.id LIMIT 1 FOR UPDATE SKIP LOCKED;
    END IF;
    RETURN FOUND;
END
$$;

-- Names a session: its backend, user, application, and what it has been doing for how long. Without
-- pg_read_all_stats the owner sees no state.
CREATE OR REPLACE FUNCTION txrelay.session_text(p_pid int) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RETURN coalesce((SELECT format('backend %s (user %s%s%s)', p_pid, s.usename,
            coalesce(', application ' || nullif(left(regexp_replace(s.application_name, '[^ -~]',
                '?', 'g'), 60), ''), ''),
            coalesce(format(', %s for %s s', s.state,
                            extract(epoch FROM clock_timestamp() - s.state_change)::bigint), ''))
        FROM pg_stat_activity s WHERE s.pid = p_pid), 'backend ' || p_pid,
            'a prepared transaction');
END
$$;

-- Who holds a row with this xmax, and since when its transaction is open. No row: none does.
CREATE OR REPLACE FUNCTION txrelay.row_holder(p_xmax xid)
    RETURNS TABLE (since timestamptz, who text)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 1 SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT coalesce(s.xact_start, p.prepared, clock_timestamp()),
        'blocked by ' || CASE WHEN l.pid IS NOT NULL THEN session_text(l.pid)
            ELSE format('the prepared transaction "%s" of user %s', left(p.gid, 80), p.owner) END
        || ', whose open transaction holds its row'
        FROM pg_locks l LEFT JOIN pg_stat_activity s ON s.pid = l.pid LEFT
        JOIN pg_prepared_xacts p ON p.transaction = p_xmax
        WHERE l.locktype = 'transactionid' AND l.transactionid = p_xmax AND l.granted
            AND l.pid IS DISTINCT FROM pg_backend_pid() LIMIT 1;
END
$$;

-- The first of these transactions whose row in an outbox is held, in words; NULL: none.
CREATE OR REPLACE FUNCTION txrelay.held_text(p_ids bigint[]) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
BEGIN
    RETURN (SELECT format('transaction %s is %s', u.id, h.who) FROM unnest(p_ids) u (id)
        CROSS JOIN LATERAL (
            (SELECT x.xmax AS held FROM outbox x WHERE x.id = u.id LIMIT 1)
            UNION ALL
            (SELECT x.xmax FROM outbox_presigned x WHERE x.id = u.id ORDER BY x.id LIMIT 1)) o
        CROSS JOIN LATERAL row_holder(o.held) h WHERE o.held <> 0 LIMIT 1);
END
$$;

-- Refuses to go on without rows that an application holds: for what must not pass them over.
CREATE OR REPLACE FUNCTION txrelay.must_be_free(p_function text, p_ids bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_held text := held_text(p_ids);
BEGIN
    IF v_held IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
            MESSAGE = format('%s: %s', p_function, v_held),
            HINT = 'End that transaction or its session; the leader tries again by itself.';
    END IF;
END
$$;
