-- $1 account, $2 epoch
SELECT s.final, s.wait_until, s.lost, s.lost_since_ms, s.highest, s.kind, s.member, s.id, s.hash,
       s.site_key, s.nonce, s.era_death, s.extrinsic, s.call, s.guard, s.tip::text,
       s.max_tip::text, s.deadline_block, s.traceparent, s.stop
FROM txrelay.leader_site_load($1, $2) s
