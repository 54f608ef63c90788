-- $1 account, $2 epoch, $3 limit, $4 ids that the caller knows
SELECT s.kind, s.id, s.call, s.guard, s.tip::text, s.max_tip::text, s.deadline_block,
    s.traceparent, s.outcome, s.error, s.next_ms, s.paused
FROM txrelay.leader_site_rows($1, $2, $3, $4) s
