-- Who is in the way of a migration: of the sessions that have a lock of a table or view of the
-- schema, the one with the oldest transaction. No row: none any more.
SELECT format('backend %s (user %s, application %s%s)', s.pid,
    coalesce(s.usename, 'none: ' || s.backend_type),
    coalesce(nullif(left(regexp_replace(s.application_name, '[^ -~]', '?', 'g'), 40), ''),
             'without a name'),
    ', transaction open for ' || extract(epoch FROM clock_timestamp() - s.xact_start)::bigint ||
        ' s')
FROM pg_stat_activity s
WHERE s.pid <> pg_backend_pid() AND s.pid IN (
    SELECT l.pid FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
    WHERE l.locktype = 'relation' AND l.granted AND c.relnamespace = to_regnamespace('txrelay')
    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
ORDER BY s.xact_start, s.pid LIMIT 1
