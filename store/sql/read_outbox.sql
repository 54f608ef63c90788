-- $1 account, $2 epoch, $3 limit. In the order of admission.
SELECT id, call, priority, (extract(epoch FROM deadline) * 1000)::bigint, creator, guard, tip::text, max_tip::text,
       deadline_block, retries
FROM txrelay.leader_outbox($1, $2, $3)
