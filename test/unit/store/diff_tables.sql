-- All tables as lines of text, as diff_tables.c writes those of the memory database. Columns that
-- hold times count for whether they are set. ends: in the order of their places, for their times
-- never are the same.
SELECT concat_ws(E'\n',
(SELECT string_agg('account ' || array_to_string(ARRAY[a.account::text, a.alias,
        a.watch_only::int::text, l.holder, l.holder_address, l.lock_held::int::text, l.epoch::text,
        a.next_nonce::text, a.used_nonce::text, a.used_block::text,
        greatest(a.seen_block, l.seen_block, r.seen_block)::text, a.reconcile_from::text,
        (a.lost_since IS NOT NULL)::int::text, a.lost_heard::text, a.era_longest::text,
        a.era_immortal::int::text, (a.life_since IS NOT NULL)::int::text, a.reborn::int::text,
        a.transaction_version::text, a.paused::int::text,
        (a.paused_by IS NOT DISTINCT FROM 'operator')::int::text, coalesce(a.suspension, ''),
        coalesce(a.policy ->> 'tip_start', '0'), coalesce(a.policy ->> 'tip_step', '0'),
        a.policy ->> 'tip_cap',
        coalesce(a.policy ->> 'tip_step_percent', '0')], '|', 'NULL'), E'\n' ORDER BY a.account)
 FROM txrelay.accounts a JOIN txrelay.leadership l ON l.subject = a.account
 LEFT JOIN txrelay.relay_leases r ON l.leased AND r.holder = l.holder),
(SELECT string_agg('outbox ' || array_to_string(ARRAY[o.id::text, o.account::text,
        encode(o.call, 'hex'), o.key, o.creator, o.priority::text,
        (o.not_before IS NOT NULL)::int::text, (o.deadline IS NOT NULL)::int::text,
        coalesce(o.guard, 0)::text, o.tip::text, o.max_tip::text, o.deadline_block::text,
        o.retries::text,
        o.attempts::text], '|', 'NULL'), E'\n' ORDER BY o.id)
 FROM txrelay.outbox o),
(SELECT string_agg('signed ' || array_to_string(ARRAY[s.id::text, s.account::text,
        encode(s.extrinsic, 'hex'),
        s.key, s.creator, s.nonce::text, encode(s.hash, 'hex'), s.era_death::text,
        s.wait_block::text, s.waits],
        '|', 'NULL'), E'\n' ORDER BY s.id)
 FROM txrelay.outbox_presigned s),
(SELECT string_agg('pending ' || array_to_string(ARRAY[p.account::text, p.nonce::text,
        coalesce(p.id, 0)::text,
        encode(p.call, 'hex'), encode(p.hash, 'hex'), p.attempt::text, p.attempts::text,
        p.state::text,
        p.unknown::int::text, encode(p.block_hash, 'hex'), p.block_number::text, p.error,
        p.epoch::text, p.key, p.creator, p.priority::text, (p.deadline IS NOT NULL)::int::text,
        coalesce(p.guard, 0)::text, p.tip::text, p.max_tip::text, p.deadline_block::text,
        p.retries::text, p.stop_outcome::text, p.stop_reason, p.signed::int::text,
        (p.blocked_since IS NOT NULL)::int::text,
        (p.in_block_at IS NOT NULL)::int::text], '|', 'NULL'), E'\n' ORDER BY p.account, p.nonce)
 FROM txrelay.pending_transactions p),
(SELECT string_agg('attempt ' || array_to_string(ARRAY[t.account::text, t.nonce::text,
        t.number::text,
        coalesce(t.id, 0)::text, encode(t.hash, 'hex'), encode(t.extrinsic, 'hex'), t.tip::text,
        t.era_birth::text, t.era_death::text, t.spec_version::text, t.transaction_version::text,
        t.block::text,
        coalesce(t.filler, 0)::text, t.epoch::text, t.outcome::text, t.state::text,
        encode(t.block_hash, 'hex'),
        t.block_number::text, t.reason, t.error], '|', 'NULL'), E'\n' ORDER BY t.account, t.nonce,
        t.number)
 FROM txrelay.attempts t),
(SELECT string_agg('refusal ' || array_to_string(ARRAY[r.account::text, r.nonce::text,
        r.number::text, r.error,
        r.count::text], '|', 'NULL'), E'\n' ORDER BY r.account, r.nonce, r.number, r.error)
 FROM txrelay.refusals r),
(SELECT string_agg('finished ' || array_to_string(ARRAY[coalesce(f.id, 0)::text,
        coalesce(f.requeued, 0)::text,
        f.account::text, f.nonce::text, encode(f.hash, 'hex'), encode(f.block_hash, 'hex'),
        f.block_number::text, f.extrinsic_index::text, f.state::text, f.outcome::text,
        CASE WHEN f.error LIKE 'cancelled by%' THEN 'cancelled'
        WHEN f.error LIKE 'the deadline%' THEN 'deadline'
            ELSE f.error END, f.fee::text, f.attempts::text, f.epoch::text, f.key, f.creator,
        encode(f.call, 'hex'),
            (SELECT concat_ws('/', coalesce(x ->> 'priority', '0'), (x ? 'not_before')::int,
            (x ? 'deadline')::int, coalesce(x ->> 'spec_version', '0'), coalesce(x ->> 'tip', '-'),
            coalesce(x ->> 'max_tip', '-'), coalesce(x ->> 'deadline_block', '0'),
            coalesce(x ->> 'retries', '0'),
            (x ? 'signed')::int) FROM (VALUES (coalesce(f.options, '{}'))) v (x)),
        coalesce((SELECT t.new_id FROM txrelay.retries t WHERE t.id = f.id), 0)::text,
        (f.in_block_at IS NOT NULL)::int::text], '|', 'NULL'), E'\n'
        ORDER BY f.account, coalesce(f.nonce, -1), coalesce(f.id, 0), coalesce(f.requeued, 0),
        f.attempts, f.hash, coalesce(f.block_number, -1), coalesce(f.extrinsic_index, -9),
        f.outcome)
 FROM txrelay.finished_transactions f),
(SELECT string_agg('key ' || array_to_string(ARRAY[k.account::text, k.key, k.id::text], '|',
                                             'NULL'), E'\n'
        ORDER BY k.account, k.key)
 FROM txrelay.idempotency_keys k),
(SELECT string_agg('cancellation ' || array_to_string(ARRAY[c.id, c.account], '|', 'NULL'), E'\n'
                   ORDER BY c.id)
 FROM txrelay.cancellations c),
(SELECT string_agg('bump ' || array_to_string(ARRAY[b.id::text, b.account::text, b.tip::text], '|',
                                              'NULL'), E'\n'
        ORDER BY b.id)
 FROM txrelay.bumps b),
(SELECT string_agg('member ' || array_to_string(ARRAY[m.holder, m.serves::text, m.best::text,
        (m.pid IS NOT NULL)::int::text, coalesce(m.obstacle, ''), coalesce(m.obstacle_text, '')],
        '|', 'NULL'), E'\n' ORDER BY m.holder COLLATE "C")
 FROM txrelay.members m),
(SELECT string_agg('obstacle ' || concat_ws('|', o.account, o.epoch, o.code, o.detail), E'\n'
                   ORDER BY o.account)
 FROM txrelay.obstacles o))
