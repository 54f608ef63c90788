-- txrelay: feeds: operators create them, and the leader of a feed's account takes its batches.
--
-- A batch is taken by one statement, which moves the cursor and inserts the calls. It is
-- conditional on the cursor, so of any number of racers one wins, whichever relay leads. Each call
-- is an ordinary transaction: its creator is feed/NAME/NUMBER, its role feed/NAME (which has no
-- members, so only operators cancel it), and its key feed/NAME/NUMBER/INDEX.

-- One row per feed: its cursor, its publishers, and how far the account is behind it. waiting: its
-- transactions without a nonce, oldest: since when the first of them has waited.
CREATE OR REPLACE VIEW txrelay.feed_cursors AS
    SELECT f.name, a.alias AS account, f.last_number, f.taken_at, w.waiting, w.oldest,
           (SELECT array_agg('0x' || encode(p.key, 'hex') ORDER BY p.n)
            FROM unnest(f.publishers) WITH ORDINALITY p (key, n))
               AS publishers, f.options, f.paused_reason AS paused, s.address AS leader_address,
               f.created_by, f.created_at
    FROM txrelay.feeds f JOIN txrelay.accounts a USING (account)
        JOIN txrelay.leadership l ON l.subject = f.account
    LEFT JOIN txrelay.feed_servers s ON s.holder = l.holder
    CROSS JOIN LATERAL (SELECT count(*) AS waiting, min(o.created_at) AS oldest
        FROM txrelay.outbox o
        WHERE o.account = f.account AND o.role = 'feed/' || f.name) w;

-- The row of a feed, locked. Refuses a name that is unknown.
CREATE OR REPLACE FUNCTION txrelay.feed_row(p_name text) RETURNS txrelay.feeds
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_feed feeds;
BEGIN
    SELECT * INTO v_feed FROM feeds f WHERE f.name = p_name FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'TR010',
            MESSAGE = format('no such feed: %s', coalesce('"' || left(p_name, 80) || '"', 'NULL')),
            HINT = coalesce('There are: ' || (SELECT string_agg(f.name, ', ' ORDER BY f.name)
                FROM (SELECT t.name FROM feeds t
                ORDER BY t.name LIMIT 10) f) || '.', 'feed_create creates one.');
    END IF;
    RETURN v_feed;
END
$$;

-- Checks the public keys of a feed's publishers.
CREATE OR REPLACE FUNCTION txrelay.check_publishers(p_function text, p_publishers bytea[])
    RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_bad bytea := (SELECT u.key FROM unnest(p_publishers) u (key)
                    WHERE octet_length(u.key) <> 32 LIMIT 1);
BEGIN
    IF (cardinality(p_publishers) BETWEEN 1 AND 32) IS NOT TRUE THEN
        PERFORM bad_argument(p_function, 'publishers',
            format('has %s elements; it must have 1 to 32',
            coalesce(cardinality(p_publishers), 0)),
            'One ed25519 public key for each copy of the producer.');
    ELSIF v_bad IS NOT NULL OR array_position(p_publishers, NULL) IS NOT NULL THEN
        PERFORM bad_argument(p_function, 'publishers',
            format('has an element of %s bytes; a key has 32',
            coalesce(octet_length(v_bad), 0)), 'Pass the 32 bytes of an ed25519 public key.');
    ELSIF (SELECT count(DISTINCT u.key)
           FROM unnest(p_publishers) u (key)) <> cardinality(p_publishers) THEN
        PERFORM bad_argument(p_function, 'publishers', 'has the same key twice',
                             'Each copy of the producer has a key of its own.');
    END IF;
END
$$;

-- Checks the options of a feed.
CREATE OR REPLACE FUNCTION txrelay.check_feed_options(p_options jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    o record;
    v_least bigint;
    v_most bigint;
BEGIN
    IF jsonb_typeof(p_options) IS DISTINCT FROM 'object' THEN
        PERFORM bad_argument('feed_create', 'options', format('is %s; it must be a JSON object',
            coalesce(left(p_options::text, 80), 'NULL')),
            'For example {"stale_winner_ms": 60000}.');
    END IF;
    FOR o IN SELECT * FROM jsonb_each(p_options) LOOP
        v_least := CASE WHEN o.key IN ('duplicate_skip_window', 'behind_stays_open') THEN 0
            WHEN o.key IN ('batch_calls_max', 'batch_bytes_max') THEN 1 ELSE 100 END;
        v_most := CASE o.key WHEN 'persistence_ack_ms' THEN 3600000
            WHEN 'stale_winner_ms' THEN 3600000
            WHEN 'resend_ms' THEN 3600000 WHEN 'duplicate_skip_window' THEN 10
            WHEN 'behind_stays_open' THEN 1
            WHEN 'batch_calls_max' THEN 10000 WHEN 'batch_bytes_max' THEN 67108864 END;
        IF v_most IS NULL THEN
            PERFORM bad_argument('feed_create', format('"%s"', left(o.key, 80)),
                'is not an option of a feed',
                'The options are persistence_ack_ms, stale_winner_ms, resend_ms, '
                'duplicate_skip_window, behind_stays_open, '
                'batch_calls_max and batch_bytes_max.');
        ELSIF jsonb_typeof(o.value) <> 'number' OR (o.value #>> '{}')::numeric NOT BETWEEN v_least
              AND v_most
              OR (o.value #>> '{}')::numeric <> trunc((o.value #>> '{}')::numeric) THEN
            PERFORM bad_argument('feed_create', o.key,
                format('is %s; it must be a whole number from %s to %s',
                left(o.value::text, 80), v_least, v_most), 'Leave it out for the default.');
        END IF;
    END LOOP;
END
$$;

-- Creates a feed of an account. last: the number before the first one that is to be taken.
CREATE OR REPLACE FUNCTION txrelay.feed_create(name text, account text, publishers bytea[],
    options jsonb DEFAULT '{}', last bigint DEFAULT -1) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_account int := keyed_account('feed_create', feed_create.account);
BEGIN
    IF (feed_create.name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$') IS NOT TRUE THEN
        PERFORM bad_argument('feed_create', 'name',
            format('is %s; it must have 1 to 64 letters, digits, dots, dashes and '
            'underscores', coalesce('"' || left(feed_create.name, 80) || '"', 'NULL')),
            'For example prices-eth.');
    ELSIF (last BETWEEN -1 AND 9007199254740991) IS NOT TRUE THEN
        PERFORM bad_argument('feed_create', 'last',
            format('is %s; it must be -1 to 9007199254740991', coalesce(last::text, 'NULL')),
            'The first batch that is taken has the number after it; -1: number 0.');
    END IF;
    PERFORM check_publishers('feed_create', publishers), check_feed_options(options);
    INSERT INTO feeds (name, account, last_number, publishers, options, created_by)
        VALUES (feed_create.name, v_account, last, publishers, options, session_user)
        ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        PERFORM bad_argument('feed_create', 'name',
            format('is "%s", and there is a feed of that name', feed_create.name),
            'feed_publishers changes its keys; feed_remove removes it.');
    END IF;
    PERFORM operation_note('feed_create', NULL, NULL, feed_create.name,
                           jsonb_build_object('last', last), NULL, 'created');
END
$$;

-- Sets the keys of a feed's publishers. Relays read them within seconds.
CREATE OR REPLACE FUNCTION txrelay.feed_publishers(name text, publishers bytea[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_feed feeds := feed_row(feed_publishers.name);
    v_before jsonb := operation_before('feed_publishers', NULL, NULL, v_feed.name);
BEGIN
    PERFORM check_publishers('feed_publishers', feed_publishers.publishers);
    UPDATE feeds f SET publishers = feed_publishers.publishers WHERE f.name = v_feed.name;
    PERFORM operation_note('feed_publishers', NULL, NULL, v_feed.name, '{}', v_before, 'set');
END
$$;

-- Takes no more batches until feed_resume. What was taken goes on.
CREATE OR REPLACE FUNCTION txrelay.feed_pause(name text, reason text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_feed feeds := feed_row(feed_pause.name);
    v_before jsonb := operation_before('feed_pause', NULL, NULL, v_feed.name);
BEGIN
    UPDATE feeds f SET paused_reason = coalesce(left(reason, 200), 'by ' || session_user)
        WHERE f.name = v_feed.name;
    PERFORM operation_note('feed_pause', NULL, NULL, v_feed.name,
                           jsonb_build_object('reason', reason), v_before, 'paused');
END
$$;

CREATE OR REPLACE FUNCTION txrelay.feed_resume(name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_feed feeds := feed_row(feed_resume.name);
    v_before jsonb := operation_before('feed_resume', NULL, NULL, v_feed.name);
BEGIN
    UPDATE feeds f SET paused_reason = NULL WHERE f.name = v_feed.name;
    PERFORM operation_note('feed_resume', NULL, NULL, v_feed.name, '{}', v_before, 'resumed');
END
$$;

-- Removes a feed and the record of its batches. Their transactions stay. Returns its last number: a
-- feed that is created again under the name has to begin there, because the keys of its calls are
-- still known.
CREATE OR REPLACE FUNCTION txrelay.feed_remove(name text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_feed feeds := feed_row(feed_remove.name);
    v_before jsonb := operation_before('feed_remove', NULL, NULL, v_feed.name);
BEGIN
    DELETE FROM feeds f WHERE f.name = v_feed.name;
    DELETE FROM feed_batches b WHERE b.feed = v_feed.name;
    PERFORM operation_note('feed_remove', NULL, NULL, v_feed.name, '{}', v_before,
                           v_feed.last_number::text);
    RETURN v_feed.last_number;
END
$$;

-- The feeds of these accounts, for a relay that takes feeds at p_address, which it notes. leader:
-- where the leader of the feed's account takes them; NULL: it is not known.
CREATE OR REPLACE FUNCTION txrelay.leader_feeds(p_accounts int[], p_holder text, p_address text)
RETURNS TABLE (name text, account int, last_number bigint, publishers bytea, options jsonb,
               paused text, leader text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF (octet_length(p_holder) BETWEEN 1 AND 500 AND octet_length(p_address) BETWEEN 1
        AND 300) IS NOT TRUE THEN
        PERFORM bad_argument('leader_feeds', 'p_holder or p_address', 'is empty or too long',
                             'At most 500 and 300 bytes.');
    ELSIF NOT EXISTS (SELECT FROM feed_servers s WHERE s.holder = p_holder AND s.address = p_address
            AND s.seen_at > clock_timestamp() - interval '10 min') THEN
        DELETE FROM feed_servers s WHERE s.seen_at < clock_timestamp() - interval '1 hour';
        INSERT INTO feed_servers (holder, address) VALUES (p_holder, p_address)
            ON CONFLICT (holder) DO UPDATE SET address = excluded.address,
            seen_at = clock_timestamp();
    END IF;
    RETURN QUERY SELECT f.name, f.account, f.last_number,
            (SELECT string_agg(p.key, '' ORDER BY p.n)
             FROM unnest(f.publishers) WITH ORDINALITY p (key, n)), f.options,
            f.paused_reason, s.address
        FROM feeds f JOIN leadership l ON l.subject = f.account LEFT
            JOIN feed_servers s ON s.holder = l.holder
        WHERE f.account = ANY (p_accounts) ORDER BY f.name;
END
$$;

-- Refuses the first call of a batch whose size or options are not allowed. Publishers may do what
-- applications may: the account's policy bounds priorities and tips. A deadline that has passed is
-- allowed, because a batch that came late has to be taken; its call ends as expired.
CREATE OR REPLACE FUNCTION txrelay.check_batch(a txrelay.accounts, p_calls bytea[],
    p_priorities bigint[], p_not_before bigint[], p_deadlines bigint[], p_guards bigint[],
    p_tips numeric[], p_max_tips numeric[], p_deadline_blocks bigint[], p_retries bigint[])
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    c_last CONSTANT bigint := 253402300799999; -- of the year 9999, in ms
    c_amount CONSTANT numeric := 340282366920938463463374607431768211455;
    v_most int := coalesce((a.policy ->> 'priority_max')::int, 100);
    b record;
    v_name text;
BEGIN
    PERFORM check_hex_text(format('call %s of the batch', u.n - 1), 'its bytes', u.call)
        FROM unnest(p_calls) WITH ORDINALITY u (call, n) WHERE substr(u.call, 2, 1) = 'x'
        ORDER BY u.n;
    SELECT u.* INTO b FROM unnest(p_calls, p_priorities, p_not_before, p_deadlines, p_guards,
            p_tips, p_max_tips, p_deadline_blocks, p_retries) WITH ORDINALITY
            u (call, priority, not_before, deadline, guard, tip, max_tip, deadline_block, retries,
               n)
        WHERE (size_fits(u.call) AND u.priority BETWEEN -1000 AND v_most AND u.retries BETWEEN 0
            AND 100
            AND (u.guard BETWEEN 0 AND 4294967295) IS NOT FALSE
            AND (u.deadline_block > 0) IS NOT FALSE
            AND (u.not_before BETWEEN 0 AND c_last) IS NOT FALSE
            AND (u.deadline BETWEEN 0 AND c_last) IS NOT FALSE
            AND (num_nonnulls(u.tip, u.max_tip) = 0 OR a.policy -> 'tip_cap' IS NOT NULL
                AND coalesce(u.tip, 0) BETWEEN 0 AND coalesce(u.max_tip, c_amount)
                AND coalesce(u.tip, 0) = trunc(coalesce(u.tip, 0))
                AND (u.max_tip BETWEEN 0 AND c_amount
                     AND u.max_tip = trunc(u.max_tip)) IS NOT FALSE)) IS NOT TRUE
        ORDER BY u.n LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    v_name := format('call %s of the batch', b.n - 1);
    IF size_fits(b.call) IS NOT TRUE THEN
        PERFORM bad_size(v_name, 'its bytes', b.call, 'Publish the SCALE-encoded call.');
    END IF;
    PERFORM check_options(v_name, b.priority, NULL, NULL, NULL, b.guard, b.tip, b.max_tip,
                          b.deadline_block, b.retries);
    IF b.priority > v_most THEN
        PERFORM bad_argument(v_name, 'priority',
            format('is %s; for feeds account %s allows at most %s', b.priority, a.alias, v_most),
            'Leave it out, or let an operator raise the policy''s priority_max.');
    ELSIF num_nonnulls(b.tip, b.max_tip) > 0 AND a.policy -> 'tip_cap' IS NULL THEN
        PERFORM bad_argument(v_name, 'tip or max_tip',
            format('is given, and account %s has no tip_cap', a.alias),
            'Leave it out, or let an operator set the policy''s tip_cap: it bounds what '
            'publishers may pay.');
    END IF;
    PERFORM bad_argument(v_name, 'not_before or deadline',
                         'is not between the years 1970 and 9999', 'Milliseconds since 1970.');
END
$$;

-- Takes the batch p_number of a feed, if the cursor is at p_number - 1. Options may be NULL, but
-- for priorities and retries. Times are milliseconds since 1970. outcome: taken; elsewhere
-- (last_number says where the cursor is); paused; removed. TR013: too many transactions of the feed
-- wait. It rings no doorbell: its caller leads the account, and looks at the outbox when it has the
-- answer.
CREATE OR REPLACE FUNCTION txrelay.leader_feed_take(p_account int, p_epoch bigint, p_feed text,
    p_number bigint, p_publisher bytea, p_digest bytea, p_calls bytea[], p_priorities bigint[],
    p_not_before bigint[], p_deadlines bigint[], p_guards bigint[],
    p_tips numeric[], p_max_tips numeric[], p_deadline_blocks bigint[], p_retries bigint[])
RETURNS TABLE (outcome text, last_number bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    a accounts := fence(p_account, p_epoch, 'any update');
    v_count int := batch_size('leader_feed_take', cardinality(p_calls), cardinality(p_priorities),
        cardinality(p_not_before), cardinality(p_deadlines), cardinality(p_guards),
        cardinality(p_tips), cardinality(p_max_tips), cardinality(p_deadline_blocks),
        cardinality(p_retries));
    f feeds;
    v_role text := 'feed/' || p_feed;
    v_creator text := format('feed/%s/%s', p_feed, p_number);
    v_full text;
    v_unusual boolean;
    v_moved bigint;
    v_stored bigint;
    v_first bigint;
    v_last bigint;
    -- of a snapshot older than the ids: a heartbeat may note them before this function ends
    v_given bigint;
BEGIN
    PERFORM wait_briefly();
    -- Whether anything unusual is asked for; NULL if the batch is not the next one. To enter
    -- check_batch costs more than this.
    SELECT v_count <> (SELECT count(*) FROM unnest(p_calls, p_priorities, p_not_before,
                p_deadlines, p_guards, p_tips, p_max_tips, p_deadline_blocks, p_retries) u (call,
                priority, not_before, deadline, guard, tip, max_tip, deadline_block, retries)
            WHERE size_fits(u.call) AND substr(u.call, 2, 1) <> 'x' AND u.priority = 0
                AND u.retries = 0
                AND num_nonnulls(u.not_before, u.deadline, u.guard, u.tip, u.max_tip,
                                 u.deadline_block) = 0)
        INTO v_unusual FROM feeds t WHERE t.name = p_feed AND t.account = p_account
            AND t.last_number = p_number - 1
            AND t.paused_reason IS NULL;
    IF v_unusual THEN
        PERFORM check_batch(a, p_calls, p_priorities, p_not_before, p_deadlines, p_guards, p_tips,
            p_max_tips, p_deadline_blocks, p_retries);
    END IF;
    IF v_unusual IS NOT NULL AND a.policy ->> 'order' = 'strict' THEN
        PERFORM strict_turn('leader_feed_take', a,
            coalesce((SELECT u FROM unnest(p_priorities) u WHERE u <> 0 LIMIT 1), 0),
            (SELECT to_timestamp(u / 1000.0) FROM unnest(p_not_before) u
             WHERE u IS NOT NULL LIMIT 1));
    END IF;
    -- The order of the calls is that of their ids, and nonces follow it. The relay may know the
    -- keys of two seconds ago.
    WITH moved AS (
        UPDATE feeds t SET last_number = p_number, taken_at = clock_timestamp()
            WHERE t.name = p_feed AND t.account = p_account AND t.last_number = p_number - 1
            AND t.paused_reason IS NULL
                AND p_publisher = ANY (t.publishers)
            RETURNING t.name
    ), rows AS MATERIALIZED (
        SELECT nextval('txrelay.transaction_id') AS id, v_creator || '/' || (u.n - 1) AS key, u.*
        FROM moved, unnest(p_calls, p_priorities, p_not_before, p_deadlines, p_guards, p_tips,
            p_max_tips, p_deadline_blocks, p_retries) WITH ORDINALITY u (call, priority,
            not_before, deadline, guard, tip, max_tip, deadline_block, retries, n)
    ), keys AS (
        INSERT INTO idempotency_keys (account, role, key, id, payload_sha256)
            SELECT p_account, 'txrelay_relay', r.key, r.id, sha256(r.call) FROM rows r
            ON CONFLICT (account, role, key) DO NOTHING RETURNING id
    ), queued AS (
        INSERT INTO outbox (id, account, call, key, creator, priority, not_before, deadline, guard,
                tip, max_tip, deadline_block, retries, role)
            SELECT r.id, p_account, r.call, r.key, v_creator, r.priority,
                to_timestamp(r.not_before / 1000.0), to_timestamp(r.deadline / 1000.0), r.guard,
                r.tip, r.max_tip, r.deadline_block, r.retries, v_role
            FROM rows r JOIN keys k ON k.id = r.id ORDER BY r.id RETURNING id
    ), noted AS (
        INSERT INTO feed_batches (feed, number, publisher, digest, calls, first_id, last_id)
            SELECT m.name, p_number, p_publisher, p_digest, v_count,
            (SELECT min(q.id) FROM queued q), (SELECT max(q.id) FROM queued q)
            FROM moved m
    )
    SELECT (SELECT count(*) FROM moved), count(*), min(q.id), max(q.id),
    (SELECT h.highest_id FROM high_water h WHERE h.one)
        INTO v_moved, v_stored, v_first, v_last, v_given FROM queued q;
    IF v_moved = 0 THEN
        SELECT * INTO f FROM feeds t WHERE t.name = p_feed AND t.account = p_account;
        IF f.last_number = p_number - 1 AND (p_publisher = ANY (f.publishers)) IS NOT TRUE THEN
            PERFORM bad_argument('leader_feed_take', 'publisher',
                format('is %s, which is none of the publishers of feed %s',
                coalesce('0x' || encode(p_publisher, 'hex'), 'NULL'), p_feed),
                'feed_publishers sets their keys.');
        END IF;
        RETURN QUERY SELECT CASE WHEN f.name IS NULL THEN 'removed'
            WHEN f.last_number = p_number - 1 THEN 'paused'
            ELSE 'elsewhere' END, f.last_number;
        RETURN;
    ELSIF v_stored < v_count THEN -- a feed of this name was there before: its calls stand for these
        PERFORM ids_of_keys(p_account, 'txrelay_relay', p_calls,
            ARRAY(SELECT v_creator || '/' || i FROM generate_series(0, v_count - 1) i ORDER BY i),
            array_fill(0::bigint, ARRAY[v_count]));
    END IF;
    IF v_stored > 0 THEN
        IF v_first <= v_given THEN
            PERFORM id_given_again('leader_feed_take', v_first);
        END IF;
        v_full := take_room('leader_feed_take', p_account, v_role, v_first, v_last, true,
                            v_stored - 1);
        IF v_full IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'TR013', MESSAGE = v_full,
                HINT = 'The batch is taken when some have been sent, or when an operator raises '
                       'the policy''s outbox_max.';
        END IF;
    END IF;
    RETURN QUERY SELECT 'taken', p_number;
END
$$;
