-- txrelay: which accounts make no progress, and why.
--
-- What keeps an account from going on is in few rows, however many accounts there are. So the
-- accounts that have such rows are found first, by what is wrong, and only these are looked at one
-- by one. Where nothing is wrong, this reads each row of accounts and of leadership once, and
-- nothing of any queue (test/schema/test_blocked.py).

-- Transactions of other sessions that may hold rows of an outbox, and are open for longer than
-- three seconds. Only the list of locks is asked: who locks a row has a lock on its table that is
-- more than a reader's.
CREATE OR REPLACE FUNCTION txrelay.long_holders() RETURNS xid[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RETURN ARRAY(SELECT t.xid FROM (
            -- any order
            SELECT l.pid,
                unnest(array_agg(l.transactionid) FILTER (WHERE l.locktype = 'transactionid'))
                AS xid
            FROM pg_locks l WHERE l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
                AND (l.locktype = 'transactionid'
                OR l.relation = ANY (ARRAY['outbox'::regclass, 'outbox_presigned'::regclass])
                AND l.mode <> 'AccessShareLock')
            GROUP BY l.virtualtransaction, l.pid HAVING bool_or(l.locktype = 'relation')) t
        LEFT JOIN pg_stat_activity s ON s.pid = t.pid LEFT
            JOIN pg_prepared_xacts p ON p.transaction = t.xid
        WHERE coalesce(s.xact_start, p.prepared, clock_timestamp()) < clock_timestamp()
            - interval '3 s');
END
$$;

-- A row of the account's outbox that one of these transactions holds: one of the first hundred, of
-- twenty whose not_before has come, or of twenty that were signed elsewhere.
CREATE OR REPLACE FUNCTION txrelay.held_row(p_account int, p_holders xid[])
    RETURNS TABLE (id bigint, holder xid)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 1 SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
BEGIN
    IF cardinality(p_holders) = 0 THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT x.id, x.held
        FROM ((SELECT o.id, o.xmax AS held FROM outbox o WHERE o.account = p_account
               AND o.not_before IS NULL
               ORDER BY o.account, o.priority DESC, o.id LIMIT 100)
              UNION ALL
              (SELECT o.id, o.xmax FROM outbox o WHERE o.account = p_account
               AND o.not_before <= statement_timestamp()
               ORDER BY o.account, o.not_before LIMIT 20)
              UNION ALL
              (SELECT o.id, o.xmax FROM outbox_presigned o WHERE o.account = p_account
               ORDER BY o.account, o.nonce, o.id LIMIT 20)) x
        WHERE x.held = ANY (p_holders) LIMIT 1;
END
$$;

-- True if the account has transactions that are not done. One probe each, whatever was known of the
-- tables when this was planned.
CREATE OR REPLACE FUNCTION txrelay.has_work(p_account int) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
BEGIN
    RETURN coalesce((SELECT true FROM pending_transactions p WHERE p.account = p_account
                     ORDER BY p.account, p.nonce LIMIT 1),
        (SELECT true FROM outbox o WHERE o.account = p_account AND o.not_before IS NULL
            ORDER BY o.account, o.priority DESC, o.id LIMIT 1),
        (SELECT true FROM outbox o WHERE o.account = p_account AND o.not_before IS NOT NULL
         ORDER BY o.account, o.not_before LIMIT 1),
        (SELECT true FROM outbox_presigned s WHERE s.account = p_account ORDER BY s.account,
         s.nonce, s.id LIMIT 1), false);
END
$$;

-- Accounts whose claim has expired, or that nobody has claimed yet; once more, with who has its
-- lock, each whose lock somebody has. p_accounts: only of these; NULL: of all.
CREATE OR REPLACE FUNCTION txrelay.unclaimed(p_accounts int[])
    RETURNS TABLE (account int, lock_holder text)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 10 SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    v_now CONSTANT timestamptz := steady_clock();
    v_free int[];
BEGIN
    IF p_accounts IS NULL THEN
        v_free := ARRAY(SELECT l.subject FROM leadership l LEFT JOIN relay_leases r ON l.leased
            AND r.holder = l.holder
            WHERE coalesce(r.expiry_2, l.expiry_2, '-infinity') < v_now ORDER BY l.subject);
    ELSE
        v_free := ARRAY(SELECT l.subject FROM leadership l LEFT JOIN relay_leases r ON l.leased
            AND r.holder = l.holder
            WHERE l.subject = ANY (p_accounts)
            AND coalesce(r.expiry_2, l.expiry_2, '-infinity') < v_now);
    END IF;
    -- as usual nobody asks for the list of locks, which has one of each account
    IF cardinality(v_free) > 0 THEN
        RETURN QUERY SELECT u.free, NULL FROM unnest(v_free) u (free)
            UNION ALL
            SELECT l.subject, 'nobody leads it: its lock is held by ' || session_text(h.pid)
            FROM (SELECT DISTINCT ON (x.lock_key) x.lock_key, x.pid FROM lock_holders x
                  ORDER BY x.lock_key, x.pid) h
            JOIN leadership l ON l.lock_key = h.lock_key LEFT JOIN relay_leases r ON l.leased
                AND r.holder = l.holder
            WHERE (p_accounts IS NULL OR l.subject = ANY (p_accounts))
                AND coalesce(r.expiry_2, l.expiry_2, '-infinity') < v_now;
    END IF;
END
$$;

-- The accounts to look at: all that are blocked, and maybe others. Each ORDER BY is that of the
-- index to use (pending_of).
CREATE OR REPLACE FUNCTION txrelay.maybe_blocked(p_accounts int[], p_holders xid[])
    RETURNS TABLE (account int, lock_holder text)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 10 SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    IF p_accounts IS NOT NULL THEN
        RETURN QUERY SELECT g.account, max(u.lock_holder) FROM unnest(p_accounts) g (account)
            LEFT JOIN unclaimed(p_accounts) u ON u.account = g.account GROUP BY 1;
        RETURN;
    END IF;
    RETURN QUERY
        WITH RECURSIVE presigned AS ( -- of both tables each account with such a row by one probe
            (SELECT s.account FROM outbox_presigned s ORDER BY s.account, s.nonce, s.id LIMIT 1)
            UNION ALL
            SELECT (SELECT s.account FROM outbox_presigned s WHERE s.account > w.account
                    ORDER BY s.account, s.nonce, s.id LIMIT 1)
            FROM presigned w WHERE w.account IS NOT NULL
        ), refused AS (
            (SELECT p.account::bigint FROM pending_transactions p WHERE p.blocked_since IS NOT NULL
             ORDER BY p.account::bigint LIMIT 1)
            UNION ALL
            SELECT (SELECT p.account::bigint FROM pending_transactions p
                WHERE p.blocked_since IS NOT NULL
                AND p.account::bigint > w.account ORDER BY p.account::bigint LIMIT 1)
            FROM refused w WHERE w.account IS NOT NULL)
        SELECT c.account, max(c.lock_holder) FROM (
            (SELECT a.account, NULL AS lock_holder FROM accounts a WHERE a.paused
             OR a.reconcile_from IS NOT NULL ORDER BY a.account)
            UNION ALL
            SELECT r.account::int, NULL FROM refused r
            UNION ALL
            SELECT s.account, NULL FROM presigned s
            UNION ALL
            (SELECT o.account, NULL FROM leader_obstacle o ORDER BY o.account)
            UNION ALL
            SELECT u.account, u.lock_holder FROM unclaimed(NULL) u WHERE u.lock_holder IS NOT NULL
            OR has_work(u.account)
            UNION ALL
            (SELECT a.account, NULL FROM accounts a CROSS
                JOIN LATERAL held_row(a.account, p_holders) h
                WHERE cardinality(p_holders) > 0 ORDER BY a.account)) c
        WHERE c.account IS NOT NULL GROUP BY 1;
END
$$;

-- The blocked ones of these accounts (NULL: of all), as blocked_accounts shows them.
CREATE OR REPLACE FUNCTION txrelay.account_blocks(p_accounts int[])
RETURNS TABLE (account text, account_id text, since timestamptz, nonce bigint, id bigint,
    state text, reason text, paused boolean, paused_by text, suspension text, code text)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 10 SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    v_holders CONSTANT xid[] := long_holders();
BEGIN
    RETURN QUERY
    SELECT a.alias, '0x' || encode(a.account_id, 'hex'),
           least(a.paused_since, a.lost_since, p.blocked_since, s.waits_since, k.since, u.since,
                 h.since, w.since),
           coalesce(p.nonce, s.nonce),
           CASE WHEN p.blocked_since IS NULL THEN coalesce(s.id, h.id, p.id) ELSE p.id END,
           coalesce(p.state::text, 'queued'),
           coalesce(a.paused_reason, k.reason, u.reason, CASE WHEN a.reconcile_from IS NOT NULL THEN
                   'commits may be lost, and what they sent may still be included: nothing is '
                   'admitted, signed or ended before '
                   || CASE WHEN a.lost_heard IS NULL THEN 'it is known how far eras may reach' ELSE
                       (SELECT format('block %s is final and read; %s blocks are left',
                           a.lost_heard + a.era_longest,
                           greatest(a.lost_heard + a.era_longest - greatest(l.seen_block,
                               r.seen_block, a.lost_heard), 0))
                        FROM leadership l LEFT JOIN relay_leases r ON l.leased
                            AND r.holder = l.holder
                        WHERE l.subject = a.account) END END,
               CASE WHEN w.code NOT IN ('head', 'gap') THEN w.detail END,
               CASE WHEN p.blocked_since IS NULL AND s.id IS NULL THEN h.who END, p.error,
               CASE WHEN p.blocked_since IS NULL THEN s.waits END,
               CASE WHEN p.blocked_since IS NOT NULL THEN
                   (SELECT r.error FROM refusals r WHERE r.account = a.account AND r.nonce = p.nonce
                    ORDER BY r.last_at DESC LIMIT 1) END, w.detail), a.paused, a.paused_by,
                    a.suspension,
           CASE WHEN a.paused THEN coalesce(a.suspension, 'paused')
               WHEN k.reason IS NOT NULL THEN 'foreign_lock'
               WHEN u.reason IS NOT NULL THEN 'no_leader'
               WHEN a.reconcile_from IS NOT NULL THEN 'lost_commits'
               WHEN w.code NOT IN ('head', 'gap') THEN w.code
               WHEN p.blocked_since IS NULL AND s.id IS NULL AND h.id IS NOT NULL THEN 'row_held'
               WHEN p.blocked_since IS NOT NULL THEN 'refused'
               WHEN s.id IS NOT NULL THEN 'presigned' ELSE w.code END
    FROM maybe_blocked(p_accounts, v_holders) c JOIN accounts a ON a.account = c.account
    LEFT JOIN LATERAL (SELECT x.nonce, x.id, x.state, x.error, x.blocked_since
        FROM pending_transactions x WHERE x.account = a.account ORDER BY x.account,
        x.nonce LIMIT 1) p ON true
    LEFT JOIN LATERAL (SELECT x.nonce, x.id, x.waits, x.waits_since FROM outbox_presigned x
        WHERE x.account = a.account AND x.nonce > coalesce(a.next_nonce, -1) AND x.waits IS NOT NULL
        ORDER BY x.account, x.nonce, x.id LIMIT 1) s ON true
    LEFT JOIN LATERAL (SELECT coalesce(r.expiry_2, l.expiry_2, a.created_at) AS since,
        c.lock_holder AS reason
        FROM leadership l LEFT JOIN relay_leases r ON l.leased AND r.holder = l.holder
        WHERE l.subject = a.account AND c.lock_holder IS NOT NULL) k ON true
    LEFT JOIN LATERAL (SELECT n.since, 'nobody leads it: ' || n.reason AS reason
        FROM unled_accounts n
        WHERE n.account = a.account AND has_work(a.account)) u ON true
    LEFT JOIN LATERAL (SELECT x.id, o.since, o.who FROM held_row(a.account, v_holders) x CROSS
        JOIN LATERAL row_holder(x.holder) o
        WHERE cardinality(v_holders) > 0) h ON true
    LEFT JOIN leader_obstacle w ON w.account = a.account
    WHERE a.paused OR a.reconcile_from IS NOT NULL OR p.blocked_since IS NOT NULL
    OR s.id IS NOT NULL
        OR k.reason IS NOT NULL OR u.reason IS NOT NULL OR h.id IS NOT NULL OR w.code IS NOT NULL;
END
$$;

-- Accounts that make no progress, since when, and why (code and reason; docs/obstacles.md explains
-- each code). The database sees by itself that an account is paused, that it waits after lost
-- commits, that nodes refuse its first pending transaction, that a presigned transaction waits for
-- lower nonces, that no relay leads it, also because another session keeps its lock, or that an
-- application keeps a row of its outbox locked (held_row). The leader reports all other reasons
-- after they have lasted for 5 s. The blocks that are left of a wait count from the finalized block
-- of the leader's last renewal.
CREATE OR REPLACE VIEW txrelay.blocked_accounts AS SELECT b.* FROM txrelay.account_blocks(NULL) b;
