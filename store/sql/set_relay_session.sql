-- What the two sessions of a relay's store set beyond set_session.sql. A row that somebody keeps locked (an operator's
-- open transaction) must not stop the accounts whose statements come behind: it is tried again later. Plans are made once:
-- for batches of fewer than ten rows Postgres would make each anew, at half of the price of the call. Functions for which
-- that is right say so themselves.
SELECT pg_catalog.set_config('lock_timeout', '500', false), pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', false)
