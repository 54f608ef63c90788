-- txrelay: ids and times that hold after the data moved to another server: restored, copied, failed
-- over.

-- The highest id that was given, by the records. An id is in one of these tables until retention
-- removes its record; high_water remembers those.
CREATE OR REPLACE FUNCTION txrelay.highest_id() RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
BEGIN
    RETURN greatest((SELECT h.highest_id FROM high_water h WHERE h.one),
        (SELECT max(o.id) FROM outbox o), (SELECT max(s.id) FROM outbox_presigned s),
        (SELECT max(p.id) FROM pending_transactions p), (SELECT max(t.id) FROM site_transactions t),
        (SELECT max(f.id) FROM finished_transactions f), 0);
END
$$;

-- Each sequence of this schema, the highest number that the records show of it, and how far it is
-- behind. margin: what a repair leaves out, because others may draw numbers meanwhile; none of
-- subjects, which few register. A test compares the list with the catalog, which each claim would
-- have to read otherwise.
CREATE OR REPLACE FUNCTION txrelay.sequences()
    RETURNS TABLE (sequence regclass, given bigint, behind bigint, margin int)
LANGUAGE plpgsql SECURITY DEFINER ROWS 5 SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY SELECT s.sequence, s.given,
        greatest(0, s.given - coalesce(pg_sequence_last_value(s.sequence), 0)), s.margin
        FROM (VALUES ('txrelay.transaction_id'::regclass, highest_id(), 1024),
            ('txrelay.leadership_subject_seq', (SELECT max(l.subject) FROM leadership l), 0),
            ('txrelay.leadership_history_id_seq', (SELECT max(h.id) FROM leadership_history h),
             1024),
            ('txrelay.operations_id_seq', (SELECT max(o.id) FROM operations o), 1024),
            ('txrelay.webhook_deliveries_number_seq',
             (SELECT max(d.number) FROM webhook_deliveries d), 1024)) s (sequence, given, margin);
END
$$;

-- How many numbers the sequences would give again: ids of transactions, and the numbers of
-- accounts, claims, operations and deliveries. 0: none.
CREATE OR REPLACE FUNCTION txrelay.ids_behind() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RETURN (SELECT sum(s.behind)::bigint FROM sequences() s);
END
$$;

-- Moves the sequences beyond what was given. A logical copy leaves them at 1. Returns how many
-- numbers would have been given again. Each relay does this when it starts and when it claims, and
-- so do txrelay migrate and what operators order.
CREATE OR REPLACE FUNCTION txrelay.repair_ids() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_behind bigint := ids_behind();
BEGIN
    IF v_behind > 0 THEN
        PERFORM setval(s.sequence, s.given + s.margin) FROM sequences() s WHERE s.behind > 0;
    END IF;
    RETURN v_behind;
END
$$;

-- Refuses an id that was given before.
CREATE OR REPLACE FUNCTION txrelay.id_given_again(p_function text, p_id bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'TR014',
        MESSAGE = format('%s: id %s was given before: the sequence of ids is behind the records '
                         '(%s), as after a copy without '
            'its sequences', p_function, p_id, highest_id()),
        HINT = 'Run txrelay migrate, or start a relay: both move it on. Then call again.';
END
$$;

-- Draws an id. The snapshot of its statement is older than the id, so no id that others draw
-- meanwhile makes this one an old one.
CREATE OR REPLACE FUNCTION txrelay.new_id(p_function text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_id bigint;
    v_given bigint;
BEGIN
    SELECT nextval('txrelay.transaction_id'), (SELECT h.highest_id FROM high_water h WHERE h.one)
        INTO v_id, v_given;
    IF v_id <= v_given THEN
        PERFORM id_given_again(p_function, v_id);
    END IF;
    RETURN v_id;
END
$$;

-- Notes which ids were given and which time it is. p_clock: the server's; only tests give it.
-- However many relays call this, an offset shrinks by a tenth of the time that passes, so the
-- steady clock goes on.
CREATE OR REPLACE FUNCTION txrelay.note_high_water(p_clock timestamptz DEFAULT clock_timestamp())
    RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_given bigint := pg_sequence_last_value('txrelay.transaction_id');
BEGIN
    UPDATE high_water h SET reached = greatest(h.reached, p_clock + h.clock_offset),
        clock_offset = CASE WHEN p_clock + h.clock_offset < h.reached THEN h.reached - p_clock
        ELSE greatest('0',
            h.clock_offset - 0.1 * least(p_clock + h.clock_offset - h.reached, interval '1 s')) END,
        highest_id = greatest(h.highest_id, v_given)
    FROM (SELECT x.one FROM high_water x WHERE x.one FOR UPDATE SKIP LOCKED) o WHERE h.one
        AND o.one;
END
$$;

-- Seconds by which the steady clock is ahead of the server's.
CREATE OR REPLACE FUNCTION txrelay.clock_behind() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RETURN ceil(extract(epoch FROM steady_clock() - clock_timestamp()));
END
$$;
