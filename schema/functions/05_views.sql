-- txrelay: the views. They come before the functions that return their rows.

-- What keeps an account from going on, as its leader sees it. Under a later epoch, and once the
-- claim has expired, it means nothing any more. Of suspensions and of lost commits the account's
-- own row knows more, and sooner when they are over.
CREATE OR REPLACE VIEW txrelay.leader_obstacle AS
    SELECT o.account, o.code, o.detail, o.since FROM txrelay.obstacles o
    JOIN txrelay.leadership l ON l.subject = o.account AND l.epoch = o.epoch
    AND l.holder IS NOT NULL
    LEFT JOIN txrelay.relay_leases r ON l.leased AND r.holder = l.holder
    WHERE coalesce(r.expiry_2, l.expiry_2)
        -- steady_clock
        > (SELECT greatest(clock_timestamp() + h.clock_offset, h.reached) FROM txrelay.high_water h
           WHERE h.one)
        AND o.code NOT IN ('suspended', 'lost_commits');

-- Accounts that no relay has led for five seconds, or since they exist.
CREATE OR REPLACE VIEW txrelay.unled_accounts AS
    SELECT a.account, coalesce(r.expiry_2, l.expiry_2, a.created_at) AS since,
        'no relay that has this account runs and reaches this database'
        || coalesce('; the last leader was ' || l.holder, '') AS reason
    FROM txrelay.accounts a JOIN txrelay.leadership l ON l.subject = a.account
    LEFT JOIN txrelay.relay_leases r ON l.leased AND r.holder = l.holder
    WHERE coalesce(r.expiry_2, l.expiry_2, a.created_at)
        -- steady_clock
        < (SELECT greatest(clock_timestamp() + h.clock_offset, h.reached) FROM txrelay.high_water h
           WHERE h.one) - interval '5 s';

-- Why the transactions of an account are not done yet; NULL: nothing keeps it from going on. What
-- only blocked_accounts knows (rows in other hands) is not asked here.
CREATE OR REPLACE FUNCTION txrelay.account_waits(p_account int) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN (SELECT CASE WHEN a.paused THEN format('%s: %s', coalesce(a.suspension, 'paused'),
                                                  a.paused_reason)
            WHEN u.reason IS NOT NULL
                THEN coalesce((SELECT 'foreign_lock: nobody leads it: its lock is held by ' ||
                               session_text(x.pid)
                FROM leadership l JOIN lock_holders x ON x.lock_key = l.lock_key
                    WHERE l.subject = a.account LIMIT 1),
                'no_leader: ' || u.reason)
            WHEN a.reconcile_from IS NOT NULL
                THEN 'lost_commits: what lost commits have sent may still be included'
            ELSE (SELECT format('%s: %s', o.code, o.detail) FROM leader_obstacle o
                  WHERE o.account = a.account) END
        FROM accounts a LEFT JOIN unled_accounts u ON u.account = a.account
            WHERE a.account = p_account);
END
$$;

-- What a transaction without a nonce waits for when nothing keeps its account from going on: those
-- before it. Counts no further than a thousand. id: of the row; the time of not_before has come, or
-- there is none.
CREATE OR REPLACE FUNCTION txrelay.turn_waits(p_account int, p_id bigint) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_most CONSTANT int := 1000;
    v_priority CONSTANT int := (SELECT x.priority FROM outbox x WHERE x.id = p_id);
    v_before bigint;
    v_pending bigint;
BEGIN
    IF (SELECT a.sited FROM accounts a WHERE a.account = p_account) THEN
        RETURN (SELECT CASE WHEN m.name IS NULL THEN 'site: no site coordinates the account now'
                ELSE format('site: %s coordinates the account since block %s, and has not '
                            'proposed bytes for it yet', m.name, s.since_height) END
            FROM site_accounts s LEFT JOIN site_peers m ON m.account = s.account
                AND m.member = s.coordinator WHERE s.account = p_account);
    END IF;
    SELECT count(*) INTO v_before FROM ( -- each of the two is a range of outbox_order
        (SELECT FROM outbox o WHERE o.account = p_account AND o.not_before IS NULL
         AND o.priority > v_priority LIMIT v_most)
        UNION ALL
        (SELECT FROM outbox o WHERE o.account = p_account AND o.not_before IS NULL
            AND o.priority = v_priority AND o.id < p_id
            LIMIT v_most) LIMIT v_most) b;
    SELECT count(*) INTO v_pending
        FROM (SELECT FROM pending_transactions p WHERE p.account = p_account LIMIT v_most) n;
    RETURN format('turn: %s%s of its account come before it, and %s%s have a nonce and are not '
                  'done; the leader takes the next ones '
        'as its window has room%s', v_before, CASE WHEN v_before = v_most THEN ' or more' END,
            v_pending,
        CASE WHEN v_pending = v_most THEN ' or more' END,
        CASE WHEN (SELECT l.holder FROM leadership l WHERE l.subject = p_account) IS NULL
        THEN '; no relay leads the account now' END);
END
$$;

-- The places where a transaction can be, a view of each: to plan one of them takes a small part of
-- what it takes to plan all (status).
CREATE OR REPLACE VIEW txrelay.place_outbox (id, account, account_id, stage, state, nonce, hash,
    block_hash, block_number, outcome, error, attempts, creator, key, created_at, updated_at, tip,
    waits, fee, retry_of, retried_as, traceparent, coordinator) AS
    SELECT o.id, a.alias AS account, '0x' || encode(a.account_id, 'hex') AS account_id,
    'outbox' AS stage,
           'queued' AS state, NULL::bigint AS nonce, NULL::text AS hash, NULL::text AS block_hash,
           NULL::bigint AS block_number, NULL::text AS outcome,
           CASE WHEN o.xmax <> 0 THEN (SELECT h.who FROM txrelay.row_holder(o.xmax) h) END
           AS error, o.attempts, o.creator, o.key,
           o.created_at, o.created_at AS updated_at, o.tip::numeric AS tip,
           coalesce(CASE WHEN o.xmax <> 0 THEN 'row_held: ' || (SELECT h.who
               FROM txrelay.row_holder(o.xmax) h) END,
               CASE WHEN o.not_before > clock_timestamp()
               THEN 'not_before: it is not sent before ' || o.not_before
                   ELSE coalesce(txrelay.account_waits(o.account),
                                 txrelay.turn_waits(o.account, o.id)) END) AS waits, NULL::numeric
                                 AS fee,
           (SELECT r.id FROM txrelay.retries r WHERE r.new_id = o.id) AS retry_of, NULL::bigint
               AS retried_as, o.traceparent,
           NULL::text AS coordinator
    FROM txrelay.outbox o JOIN txrelay.accounts a USING (account);

CREATE OR REPLACE VIEW txrelay.place_presigned (id, account, account_id, stage, state, nonce, hash,
    block_hash, block_number, outcome, error, attempts, creator, key, created_at, updated_at, tip,
    waits, fee, retry_of, retried_as, traceparent, coordinator) AS
    SELECT s.id, a.alias, '0x' || encode(a.account_id, 'hex'), 'outbox', 'queued', s.nonce,
    '0x' || encode(s.hash, 'hex'),
           NULL::text, NULL::bigint, NULL::text,
           coalesce(CASE WHEN s.xmax <> 0 THEN (SELECT h.who FROM txrelay.row_holder(s.xmax) h)
                    END, s.waits),
           0, s.creator, s.key, s.created_at, coalesce(s.waits_since, s.created_at), NULL::numeric,
           coalesce(CASE WHEN s.xmax <> 0 THEN 'row_held: ' || (SELECT h.who
               FROM txrelay.row_holder(s.xmax) h) END,
               'presigned: ' || s.waits, txrelay.account_waits(s.account),
               'turn: it was signed elsewhere, and the leader compares its nonce with the '
               'account''s next'), NULL::numeric, NULL::bigint, NULL::bigint,
           s.traceparent, NULL::text
    FROM txrelay.outbox_presigned s JOIN txrelay.accounts a USING (account);

CREATE OR REPLACE VIEW txrelay.place_pending (id, account, account_id, stage, state, nonce, hash,
    block_hash, block_number, outcome, error, attempts, creator, key, created_at, updated_at, tip,
    waits, fee, retry_of, retried_as, traceparent, coordinator) AS
    SELECT p.id, a.alias, '0x' || encode(a.account_id, 'hex'), 'pending', p.state::text, p.nonce,
           '0x' || encode(p.hash, 'hex'), '0x' || encode(p.block_hash, 'hex'),
           p.block_number, NULL::text, p.error, p.attempts, p.creator, p.key, p.created_at,
           p.updated_at, (SELECT t.tip::numeric FROM txrelay.attempts t WHERE t.account = p.account
            AND t.nonce = p.nonce
            AND t.number = p.attempt),
           coalesce(txrelay.account_waits(p.account), CASE
               WHEN p.blocked_since IS NOT NULL THEN 'refused: ' || p.error END,
               CASE p.state
               WHEN 'signed'
               THEN 'sent: no endpoint has said yet that its pool took it; lower nonces go first'
                   WHEN 'future' THEN 'sent: a pool holds it, and waits for a lower nonce'
                   WHEN 'in_block' THEN 'final: it is in block ' || coalesce(p.block_number::text,
                       '0x' || encode(p.block_hash, 'hex'),
                       '(unknown)') || ', which is not final yet'
                   WHEN 'ready' THEN 'block: a pool holds it, and no block has taken it yet'
                   WHEN 'broadcast' THEN 'block: a pool holds it, and no block has taken it yet'
                   WHEN 'finalized'
                   THEN 'final: a final block holds it, and its end is being stored'
                   ELSE format('search: a node said %s; the leader asks where it is, and submits '
                               'it again if it is nowhere', p.state)
               END), NULL::numeric,
           (SELECT r.id FROM txrelay.retries r WHERE r.new_id = p.id), NULL::bigint,
               p.traceparent, NULL::text
    FROM txrelay.pending_transactions p JOIN txrelay.accounts a USING (account);

CREATE OR REPLACE VIEW txrelay.place_site (id, account, account_id, stage, state, nonce, hash,
    block_hash, block_number, outcome, error, attempts, creator, key, created_at, updated_at, tip,
    waits, fee, retry_of, retried_as, traceparent, coordinator) AS
    SELECT t.id, a.alias, '0x' || encode(a.account_id, 'hex'), 'pending', t.state::text, t.nonce,
    '0x' || encode(t.hash, 'hex'),
           '0x' || encode(t.block_hash, 'hex'), t.block_number, NULL::text, t.error, t.attempts,
           t.creator, t.key, t.created_at, t.updated_at, (SELECT x.tip::numeric
               FROM txrelay.attempts x WHERE x.account = t.account AND x.nonce = t.nonce
               AND x.number = t.attempt),
           coalesce(txrelay.account_waits(t.account), CASE t.state
               WHEN 'signed' THEN 'site: its bytes are stored, and the coordinator has not said '
                                  'yet that it has dispatched them'
               WHEN 'in_block' THEN 'final: it is in block ' || coalesce(t.block_number::text,
                   '0x' || encode(t.block_hash, 'hex'))
                   || ', which is not final yet'
               ELSE 'block: its coordinator has dispatched it, and no final block of this site '
                    'has it yet' END), NULL::numeric,
           (SELECT r.id FROM txrelay.retries r WHERE r.new_id = t.id), NULL::bigint, t.traceparent,
               m.name
    FROM txrelay.site_transactions t JOIN txrelay.accounts a USING (account)
    LEFT JOIN txrelay.site_peers m ON m.account = t.account AND m.member = t.coordinator;

CREATE OR REPLACE VIEW txrelay.place_finished (id, account, account_id, stage, state, nonce, hash,
    block_hash, block_number, outcome, error, attempts, creator, key, created_at, updated_at, tip,
    waits, fee, retry_of, retried_as, traceparent, coordinator) AS
    SELECT f.id, a.alias, '0x' || encode(a.account_id, 'hex'), 'finished', f.state::text, f.nonce,
           '0x' || encode(f.hash, 'hex'), '0x' || encode(f.block_hash, 'hex'), f.block_number,
           f.outcome::text, f.error, f.attempts, f.creator, f.key, f.created_at, f.finished_at,
           (SELECT t.tip::numeric FROM txrelay.attempts t WHERE t.account = f.account
            AND t.nonce = f.nonce AND t.hash = f.hash
            ORDER BY t.number DESC LIMIT 1), NULL::text, f.fee::numeric,
            (SELECT r.id FROM txrelay.retries r WHERE r.new_id = f.id),
           (SELECT r.new_id FROM txrelay.retries r WHERE r.id = f.id), f.traceparent, f.coordinator
    FROM txrelay.finished_transactions f JOIN txrelay.accounts a USING (account);

-- One row per transaction, wherever it is now, so that one query by id finds it. Fillers have no
-- id, and neither has the record of a nonce whose transaction was requeued. tip: the requested tip
-- while the transaction waits, then what the attempt with this hash pays. waits: why it is not done
-- yet; NULL: it is done. Only a reader who selects these two pays for looking them up. fee: what
-- the chain took for the extrinsic of its record. retry_of, retried_as: the transaction that it was
-- enqueued in the place of, and the one in its own place. coordinator: the site that proposed its
-- bytes, where the account has sites.
CREATE OR REPLACE VIEW txrelay.transactions AS
    SELECT * FROM txrelay.place_outbox
    UNION ALL
    SELECT * FROM txrelay.place_presigned
    UNION ALL
    SELECT * FROM txrelay.place_pending
    UNION ALL
    SELECT * FROM txrelay.place_site
    UNION ALL
    SELECT * FROM txrelay.place_finished;

CREATE OR REPLACE VIEW txrelay.leaders AS
    SELECT a.alias, '0x' || encode(a.account_id, 'hex') AS account_id, l.epoch, l.holder,
           l.holder_address AS address, l.lock_held,
           coalesce(r.heartbeat, l.heartbeat) AS heartbeat, coalesce(r.expiry_1, l.expiry_1)
           AS expiry_1, coalesce(r.expiry_2, l.expiry_2) AS expiry_2,
           greatest(clock_timestamp() + h.clock_offset, h.reached) - coalesce(r.heartbeat,
               l.heartbeat) AS heartbeat_age, a.next_nonce, a.paused, a.paused_by, a.paused_reason,
           a.account, a.address AS account_address, a.suspension, a.paused_since, a.reborn,
               a.life_since
    FROM txrelay.accounts a JOIN txrelay.leadership l ON l.subject = a.account
    LEFT JOIN txrelay.relay_leases r ON l.leased AND r.holder = l.holder -- claim_times
    JOIN txrelay.high_water h ON h.one; -- steady_clock, which who reads a view may not call

-- Which sessions have the locks of subjects, in whichever mode: a shared one keeps leaders away
-- too.
CREATE OR REPLACE VIEW txrelay.lock_holders AS
    SELECT l.classid::bigint << 32 | l.objid::bigint AS lock_key, l.pid
    FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_database d ON d.oid = l.database
    AND d.datname = current_database()
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted;

-- Relays that do not do their work, and what keeps the whole database from it: relay, since when,
-- code and reason (docs/obstacles.md). A relay writes what it sees itself, when it has lasted for 5
-- s; it counts while the relay lives. relay NULL: it is the database's, and concerns all.
CREATE OR REPLACE VIEW txrelay.blocked_relays AS
    SELECT m.holder AS relay, m.obstacle_since AS since, m.obstacle AS code,
    m.obstacle_text AS reason
    FROM txrelay.members m JOIN txrelay.high_water h ON h.one
    WHERE m.obstacle NOT IN ('queue', 'clock') AND m.pid IS DISTINCT FROM 0
        -- steady_clock
        AND m.heartbeat > greatest(clock_timestamp() + h.clock_offset, h.reached) - interval '10 s'
    UNION ALL
    SELECT NULL, q.since, 'queue',
    'the server''s notification queue is more than a quarter full, because a session that listens '
        'stays in a transaction; nothing is notified, so leaders poll once a second and readers '
        'scan every ten seconds'
    FROM txrelay.notify_queue q WHERE q.shut
    UNION ALL
    SELECT NULL, NULL, 'clock',
    format('the server''s clock is %s s behind the time that it had reached; leases, ends and '
           'positions '
        'go on from that time, and come back to the clock by 0.1 s a second',
        ceil(extract(epoch FROM greatest(clock_timestamp() + h.clock_offset, h.reached)
                     - clock_timestamp())))
    FROM txrelay.high_water h
    WHERE h.one AND greatest(clock_timestamp() + h.clock_offset, h.reached) > clock_timestamp()
    + interval '5 s';

-- What readers scan to catch up after missed notifications. These views hide calls, keys, signed
-- bytes and policies. Beyond txrelay.transactions they show fillers and the numbers that order
-- rows.
CREATE OR REPLACE VIEW txrelay.follow_accounts AS
    SELECT a.account, a.alias, a.account_id, a.address FROM txrelay.accounts a;

CREATE OR REPLACE VIEW txrelay.follow_pending AS
    SELECT p.account, p.nonce, p.id, p.hash, p.state, p.block_hash, p.block_number, p.error,
    p.creator, p.updated_at, p.traceparent
    FROM txrelay.pending_transactions p
    UNION ALL
    SELECT t.account, t.nonce, t.id, t.hash, t.state, t.block_hash, t.block_number, t.error,
    t.creator, t.updated_at, t.traceparent
    FROM txrelay.site_transactions t;

-- A nonce that was used while its transaction went back to the outbox is not an end.
CREATE OR REPLACE VIEW txrelay.follow_finished AS
    SELECT f.account, f.nonce, f.id, f.hash, f.state, f.block_hash, f.block_number, f.outcome,
    f.error, f.creator,
           f.finished_at, f.traceparent
    FROM txrelay.finished_transactions f WHERE f.requeued IS NULL;

-- The sessions whose notifications readers believe: those of relays. Any session may NOTIFY, and
-- the server stamps each notification with the sender's backend. Every login may read these
-- columns.
CREATE OR REPLACE VIEW txrelay.follow_sources AS
    SELECT s.pid FROM pg_catalog.pg_stat_get_activity(NULL) s
    WHERE s.datid = (SELECT d.oid FROM pg_catalog.pg_database d
                     WHERE d.datname = pg_catalog.current_database())
      AND pg_catalog.pg_has_role(s.usesysid, 'txrelay_relay', 'MEMBER');

CREATE OR REPLACE VIEW txrelay.follow_kept AS SELECT r.dropped_before FROM txrelay.retention r;
