-- A dead client is noticed by the server in about 5 + 3 * 2 seconds when idle and in 10 when it does not acknowledge
-- (TCP only; a Unix socket ignores it): without this a dead host keeps its locks for two hours. No transaction of ours
-- is ever open between statements, and none of them is worth a JIT compilation. A row that somebody keeps locked (an
-- operator's open transaction) must not stop the accounts whose statements come behind: it is tried again later. Plans are
-- made once: for batches of fewer than ten rows Postgres would make each anew, at half of the price of the call. Functions
-- for which that is right say so themselves. An administrator may have turned synchronous_commit off for the database or
-- the role: what a relay submits must not be lost when the server crashes. Our statements name their schema, and what they
-- do not name is Postgres's own, whatever path the role has.
SELECT pg_catalog.set_config('search_path', 'pg_catalog', false),
       set_config('tcp_keepalives_idle', '5', false),
       set_config('tcp_keepalives_interval', '2', false),
       set_config('tcp_keepalives_count', '3', false),
       set_config('tcp_user_timeout', '10000', false),
       set_config('idle_in_transaction_session_timeout', '10000', false),
       set_config('lock_timeout', '500', false),
       set_config('jit', 'off', false),
       set_config('plan_cache_mode', 'force_generic_plan', false),
       set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), false)
