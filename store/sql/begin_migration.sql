-- Read committed whatever the database's default is: what another run did while we waited for the lock must be seen.
-- Locks of the two-integer space: 9001 are the doorbells, 9002 is this.
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL statement_timeout = 0;
SET LOCAL lock_timeout = 0;
SET LOCAL client_min_messages = warning;
SET LOCAL search_path = pg_catalog;
SELECT pg_advisory_xact_lock(9002, 0);
-- Statements of relays and applications queue behind a lock that this waits for.
SET LOCAL lock_timeout = '2s';
