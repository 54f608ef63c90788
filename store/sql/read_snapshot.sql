-- $1 account, $2 epoch, $3 after this nonce, $4 limit. One row at least: the account's own columns.
-- In nonce order, as leader_snapshot gives them: sorting them once more would copy all of them, so
-- the reader checks it. The hashes of earlier attempts come as one string of bytes, 32 each.
SELECT a.paused, a.suspension, a.reborn, a.transaction_version, a.tip_start::text,
       a.tip_step::text, a.tip_cap::text, a.tip_step_percent, a.tip_after_blocks,
       a.skip_after_blocks, a.requeue_usurped, a.low_balance::text, a.retry_refusals,
       a.next_nonce, a.used_nonce, a.used_block, a.seen_block, a.reconcile_from, a.lost_since_ms,
       a.lost_until, a.era_immortal, a.suspension_text,
       floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint,
       p.nonce, p.id, p.state::text, p.hash, p.attempt, p.extrinsic, p.call, p.block_hash,
       p.block_number, p.era_birth, p.era_death, p.spec_version, p.tip::text, p.block,
       CASE WHEN cardinality(p.earlier) > 0 THEN
           (SELECT string_agg(e.hash, '' ORDER BY e.n)
            FROM unnest(p.earlier) WITH ORDINALITY e (hash, n)) END,
       p.guard, p.max_tip::text, p.deadline_block, p.retries, p.filler, p.stop_outcome,
           p.stop_reason, p.earlier_own,
       p.earlier_death, p.signed,
           (extract(epoch FROM clock_timestamp() - p.created_at) * 1000)::bigint,
       p.traceparent
FROM txrelay.leader_account($1, $2) a LEFT JOIN LATERAL txrelay.leader_snapshot($1, $2, $3, $4) p
    ON true
