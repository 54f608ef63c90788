-- The settings of a relay's two sessions, in addition to set_session.sql. A row that another
-- session keeps locked (an operator's open transaction) must not block the accounts whose
-- statements follow: the relay tries it again later. Postgres plans each statement once. For
-- batches of fewer than ten rows it would plan anew each time, which takes half of the time of the
-- call. Functions that need a new plan each time set this themselves.
SELECT pg_catalog.set_config('lock_timeout', '500', false),
    pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', false)
