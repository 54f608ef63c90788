-- $1 account, $2 epoch, $3 limit, $4 next nonce, $5 finalized height. In the order of admission. A
-- row without a call or an extrinsic is one that an application holds; creator says who does. Or it
-- has waited: then it waits for lower nonces, and creator says for which.
SELECT id, call, priority, (extract(epoch FROM deadline) * 1000)::bigint, creator, guard,
       tip::text, max_tip::text, deadline_block, retries, false,
       (SELECT min(s.nonce) FROM txrelay.outbox_presigned s WHERE s.account = $1 AND s.nonce >= $4
        AND s.wait_block IS NULL),
       false, (extract(epoch FROM clock_timestamp() - created_at) * 1000)::bigint, traceparent
FROM txrelay.leader_outbox($1, $2, $3)
UNION ALL
SELECT id, extrinsic, 0, NULL, creator, NULL, NULL, NULL, NULL, 0, true, NULL, waited,
       (extract(epoch FROM clock_timestamp() - created_at) * 1000)::bigint, traceparent
FROM (SELECT WHERE EXISTS (SELECT FROM txrelay.outbox_presigned s WHERE s.account = $1)) any_signed,
     txrelay.leader_presigned($1, $2, $3, $4, $5)
UNION ALL
(SELECT s.id, NULL, 0, NULL, s.waits, NULL, NULL, NULL, NULL, 0, true, NULL, true, NULL, NULL
 FROM txrelay.outbox_presigned s WHERE s.account = $1 AND s.nonce > $4 AND s.waits IS NOT NULL
 ORDER BY s.account, s.nonce, s.id
 LIMIT 1)
