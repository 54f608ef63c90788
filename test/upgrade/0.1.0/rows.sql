-- Rows in every state, for the schema of txrelay 0.1.0: of two accounts that no relay leads. The setting upgrade.rows says how
-- many final outcomes; the other tables get a share of that. Run as the owner of the schema.
DO $rows$
DECLARE
    v_rows bigint := current_setting('upgrade.rows')::bigint;
    v_live bigint := greatest(100, v_rows / 20);
    v_past int;
    v_held int;
    v_first bigint;
BEGIN
    v_past := txrelay.relay_register('past', sha256('past'), 'sr25519', sha256('another chain'), '5past', 7001);
    v_held := txrelay.relay_register('held', sha256('held'), 'ed25519', sha256('another chain'), '5held', 7002, true);
    PERFORM txrelay.account_policy('past', '{"tip_start": "5", "tip_cap": "1000", "retry_refusals": "Custom:6"}');
    PERFORM txrelay.account_policy('held', '{"order": "strict"}');
    PERFORM txrelay.account_pause('held', 'before an upgrade');
    PERFORM txrelay.ensure_partitions(2);

    -- By the functions that applications use: every option, keys, cancellations and bumps of what waits.
    PERFORM txrelay.enqueue('past', decode('0001', 'hex') || int8send(n), key => 'key ' || n, priority => n % 5,
        not_before => CASE n % 3 WHEN 0 THEN now() + interval '1 year' END,
        deadline => CASE n % 4 WHEN 0 THEN now() + interval '2 years' END, creator => CASE n % 2 WHEN 0 THEN 'shop' END,
        spec_version => CASE n % 7 WHEN 0 THEN 100 END, tip => CASE n % 6 WHEN 0 THEN 7 END, max_tip => CASE n % 6 WHEN 0 THEN 900 END,
        deadline_block => CASE n % 9 WHEN 0 THEN 4000000 END, retries => n % 3)
        FROM generate_series(1, v_live) n;
    PERFORM txrelay.bump(o.id, 50) FROM txrelay.outbox o WHERE o.account = v_past AND o.id % 10 = 0;
    PERFORM txrelay.cancel(o.id) FROM txrelay.outbox o WHERE o.account = v_past AND o.id % 11 = 0;
    INSERT INTO txrelay.outbox_presigned (account, extrinsic, key, creator, nonce, hash, era_death, wait_block, waits, waits_since)
        SELECT v_held, '\x84' || int8send(n), 'signed ' || n, 'shop', n, sha256(int8send(n)), 90000, CASE n % 2 WHEN 0 THEN 77 END,
            CASE n % 2 WHEN 0 THEN 'a nonce before it' END, now() FROM generate_series(1, v_live) n;

    UPDATE txrelay.outbox SET traceparent = '00-' || repeat('ab', 16) || '-' || repeat('cd', 8) || '-01' WHERE id % 5 = 0;

    -- What has a nonce: each state, replaced attempts, fillers, refusals, requests to cancel and to pay more.
    SELECT coalesce(max(h.highest_id), 0) + 10000000 INTO v_first FROM txrelay.high_water h;
    INSERT INTO txrelay.pending_transactions (account, nonce, account_id, id, call, hash, attempt, attempts, state, unknown, block_hash,
            block_number, error, epoch, key, creator, priority, deadline, tip, max_tip, retries, stop_outcome, stop_reason, signed,
            blocked_since, created_at, in_block_at, role)
        SELECT v_past, n, sha256('past'), CASE WHEN n % 13 <> 0 THEN v_first + n END, int8send(n), sha256(int8send(n)), 2, 2, s.state,
            n % 5 = 0, CASE WHEN s.block THEN sha256('block') END, CASE WHEN s.block THEN 700 END,
            CASE n % 8 WHEN 0 THEN 'Invalid Transaction: Custom error: 6' END, 1, 'pending ' || n, 'shop', n % 3,
            CASE n % 4 WHEN 0 THEN now() + interval '1 year' END, n % 9, 900, n % 2, CASE n % 10 WHEN 0 THEN 'cancelled'::txrelay.tx_outcome END,
            CASE n % 10 WHEN 0 THEN 'an application asked' END, n % 17 = 0, CASE n % 8 WHEN 0 THEN now() END, now(),
            CASE WHEN s.block THEN now() END, CASE n % 2 WHEN 0 THEN 'shop' END
        FROM generate_series(1, v_live) n JOIN (
            SELECT e.state, e.at - 1 AS at, e.state IN ('in_block', 'finalized', 'finality_timeout') AS block
            FROM unnest(enum_range(NULL::txrelay.tx_state)) WITH ORDINALITY e (state, at)) s ON s.at = n % 11;
    INSERT INTO txrelay.attempts (account, nonce, number, id, hash, extrinsic, tip, era_birth, era_death, spec_version, transaction_version,
            block, filler, epoch, outcome, state, reason, error, error_at, ended_at)
        SELECT p.account, p.nonce, a.number, p.id, CASE a.number WHEN 2 THEN p.hash ELSE sha256(p.hash) END, '\x84' || p.call, a.number,
            64, 128, 100, 1, 600, CASE WHEN p.id IS NULL THEN 2 END, 1, CASE a.number WHEN 2 THEN 'live' ELSE 'replaced' END::txrelay.attempt_outcome,
            CASE a.number WHEN 1 THEN 'dropped'::txrelay.tx_state END, CASE a.number WHEN 1 THEN 'era' END,
            CASE a.number WHEN 1 THEN 'pool is full' END, CASE a.number WHEN 1 THEN now() END, CASE a.number WHEN 1 THEN now() END
        FROM txrelay.pending_transactions p CROSS JOIN generate_series(1, 2) a (number) WHERE p.account = v_past;
    INSERT INTO txrelay.refusals (account, nonce, number, error, count, first_at, last_at)
        SELECT p.account, p.nonce, 2, p.error, 3, now(), now() FROM txrelay.pending_transactions p
        WHERE p.account = v_past AND p.error IS NOT NULL;
    INSERT INTO txrelay.cancellations (id, account, asked_by)
        SELECT p.id, p.account, 'shop' FROM txrelay.pending_transactions p WHERE p.account = v_past AND p.stop_outcome IS NOT NULL AND p.id IS NOT NULL;
    INSERT INTO txrelay.bumps (id, account, tip, asked_by)
        SELECT p.id, p.account, 100, 'shop' FROM txrelay.pending_transactions p WHERE p.account = v_past AND p.id % 6 = 1;

    -- Final outcomes: each one, fillers, used-up nonces of what was tried again, three months.
    INSERT INTO txrelay.finished_transactions (id, requeued, account, nonce, hash, block_hash, block_number, extrinsic_index, state, outcome,
            error, fee, attempts, epoch, key, creator, call, created_at, admitted_at, in_block_at, finished_at, role, options)
        SELECT CASE WHEN n % 50 > 1 THEN 20000000 + n END, CASE n % 50 WHEN 1 THEN 20000000 + n + 1 END, v_past, 10000000 + n,
            sha256(int8send(n)), sha256(int8send(n / 10)), n / 10, n % 10, 'finalized', o.outcome,
            CASE WHEN o.outcome <> 'ok' THEN 'Balances.InsufficientBalance' END, n % 1000, 1 + n % 3, 1, 'ended ' || n, 'shop',
            CASE WHEN o.outcome <> 'ok' THEN int8send(n) END, t.at - interval '1 minute', t.at - interval '30 s', t.at - interval '20 s', t.at,
            CASE n % 2 WHEN 0 THEN 'shop' END, CASE WHEN o.outcome <> 'ok' THEN '{"priority": 1}'::jsonb END
        FROM generate_series(1, v_rows) n
        JOIN (SELECT e.outcome, e.at - 1 AS at FROM unnest(enum_range(NULL::txrelay.tx_outcome)) WITH ORDINALITY e (outcome, at)) o
            ON o.at = CASE WHEN n % 10 < 7 THEN n % 10 ELSE 0 END
        CROSS JOIN LATERAL (SELECT now() - interval '60 days' + n * interval '60 days' / v_rows AS at) t;
    INSERT INTO txrelay.attempts (account, nonce, number, id, hash, extrinsic, tip, spec_version, transaction_version, block, epoch, outcome, ended_at)
        SELECT f.account, f.nonce, 1, f.id, f.hash, '\x84', 0, 100, 1, f.block_number, 1, 'included', f.finished_at
        FROM txrelay.finished_transactions f WHERE f.account = v_past AND f.nonce IS NOT NULL;
    INSERT INTO txrelay.idempotency_keys (account, key, id, payload_sha256, role)
        SELECT f.account, f.key, f.id, sha256(f.hash), '' FROM txrelay.finished_transactions f
        WHERE f.account = v_past AND f.nonce IS NOT NULL AND f.id % 4 = 0;
    INSERT INTO txrelay.retries (id, new_id, asked_by, created_at)
        SELECT f.id, f.id + 100000000, 'shop', f.finished_at FROM txrelay.finished_transactions f
        WHERE f.account = v_past AND f.outcome = 'failed' AND f.id % 100 = 4;
    INSERT INTO txrelay.outbox_full (account, role) VALUES (v_past, 'shop');
    INSERT INTO txrelay.obstacles (account, epoch, code, detail, since) VALUES (v_past, 0, 'nonce_gap', 'nonce 1 is missing', now());
    INSERT INTO txrelay.feeds (name, account, last_number, publishers, paused_reason, created_by)
        SELECT 'feed ' || n, v_past, n, ARRAY[sha256('publisher')], CASE n % 2 WHEN 0 THEN 'an operator paused it' END, 'operator'
        FROM generate_series(1, 20) n;
    INSERT INTO txrelay.feed_batches (feed, number, publisher, digest, calls, first_id, last_id)
        SELECT 'feed 1', n, sha256('publisher'), sha256(int8send(n)), n % 4, n, n + 3 FROM generate_series(1, v_live) n;
    PERFORM setval('txrelay.transaction_id', 200000000);
END
$rows$;
