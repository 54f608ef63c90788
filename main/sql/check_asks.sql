-- What a relay asks of the server besides its tables; nothing is written. Returns whether the
-- timeline can be read, how many ids would be given again, and the seconds by which the server's
-- clock went back; at the end whether the schema's owner may end the session of a stranger that
-- keeps a lock, and the owner.
SELECT txrelay.timeline_known(), txrelay.ids_behind(), txrelay.clock_behind(),
       txrelay.follow_position(), (SELECT count(*) FROM txrelay.follow_sources),
       (SELECT count(*) FROM txrelay.leader_scan(ARRAY[]::int[], ARRAY[]::bigint[],
                                                 p_fingerprint => '')),
       (SELECT count(*) FROM txrelay.leader_due(ARRAY[]::int[], ARRAY[]::bigint[],
                                                ARRAY[]::bigint[], 0)),
       (SELECT count(*) FROM txrelay.blocked_accounts), pg_notification_queue_usage(),
           pg_try_advisory_xact_lock_shared(9001, 0),
       (SELECT count(*) FROM pg_listening_channels()),
       o.may_end, o.name
FROM (SELECT pg_get_userbyid(p.proowner) AS name,
          pg_has_role(p.proowner, 'pg_signal_backend', 'MEMBER')
          AND pg_has_role(p.proowner, 'pg_read_all_stats', 'MEMBER') AS may_end
      FROM pg_proc p WHERE p.oid = 'txrelay.leader_evict(bigint)'::regprocedure) o
