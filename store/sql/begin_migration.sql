-- Read committed whatever the database's default is: what another run did while we waited for the
-- lock must be seen. Locks of the two-integer space: 9001 are the doorbells, 9002 is this.
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL statement_timeout = 0;
SET LOCAL lock_timeout = 0;
SET LOCAL client_min_messages = warning;
SET LOCAL search_path = pg_catalog;
-- Another migration is waited for, a session that only keeps the lock is named.
DO $$
BEGIN
    PERFORM set_config('lock_timeout',
                       coalesce(nullif(current_setting('txrelay.migration_wait', true), ''),
                                '60s'), true);
    PERFORM pg_advisory_xact_lock(9002, 0);
EXCEPTION WHEN lock_not_available THEN
    RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
        MESSAGE = format('migrate: another session has kept the lock of migrations (9002, 0) for '
                         'too long: %s. If it is no migration, end it with '
            'pg_terminate_backend and run this again.', coalesce(
            (SELECT string_agg(format('backend %s (user %s, application %s)', l.pid, s.usename,
                coalesce(nullif(left(regexp_replace(s.application_name, '[^ -~]', '?', 'g'), 60),
                                ''), 'without a name')), ', ' ORDER BY l.pid)
            FROM pg_locks l LEFT JOIN pg_stat_activity s ON s.pid = l.pid
            WHERE l.locktype = 'advisory' AND l.classid = 9002 AND l.objid = 0 AND l.objsubid = 2
            AND l.granted
                AND l.database = (SELECT d.oid FROM pg_database d
                                  WHERE d.datname = current_database())), 'gone by now'));
END $$;
-- Statements of relays and applications queue behind a lock that this waits for. An autovacuum
-- worker gives way once the server has looked for a deadlock, so the wait has to be longer than
-- that. The client tries again for as many ms as the last column says.
SELECT set_config('lock_timeout',
                  (extract(epoch FROM current_setting('deadlock_timeout')::interval) * 1000
                   + 500)::bigint::text, true),
       (extract(epoch FROM coalesce(nullif(current_setting('txrelay.migration_wait', true), ''),
                                    '60s')::interval) * 1000)::bigint
