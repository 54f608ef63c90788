-- $1 holder, $2 accounts, $3 epochs, $4 lock keys (NULL: no locks are used), $5 and $6 expiries in
-- ms,
-- $7 finalized block (NULL: not known).
-- Only accounts whose lock this very session still holds are renewed: what a lost or changed
-- session held is gone.
WITH asked AS (
    SELECT n, account, epoch, lock_key
    FROM unnest($2::int[], $3::bigint[], coalesce($4::bigint[], ARRAY[]::bigint[]))
         WITH ORDINALITY AS u (account, epoch, lock_key, n)
), mine AS MATERIALIZED (
    SELECT l.classid::bigint << 32 | l.objid::bigint AS lock_key
    FROM pg_locks l
    WHERE l.pid = pg_backend_pid() AND l.locktype = 'advisory' AND l.objsubid = 1
      AND l.mode = 'ExclusiveLock' AND l.granted
), kept AS (
    SELECT array_agg(account ORDER BY n) AS accounts, array_agg(epoch ORDER BY n) AS epochs
    FROM asked
    WHERE $4::bigint[] IS NULL OR lock_key IN (SELECT lock_key FROM mine)
)
SELECT a.account IN (SELECT f.subject -- hashed
                     FROM kept, txrelay.leader_renew($1, kept.accounts, kept.epochs, $5, $6,
                                                     p_block => $7) f
                     WHERE kept.accounts IS NOT NULL AND f.renewed)
FROM asked a
ORDER BY a.n
