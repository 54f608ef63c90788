-- What every session of ours sets before its first statement, whatever an administrator set for the
-- role, the database or the server: relays, retention, readers, commands, migrations. A value that
-- is right already is left alone, and so is a setting that this server does not have. Names are
-- qualified, because the role's path may have functions of other names before ours.
--
-- The reasons, by group:
--   transactions   A serializable relay would make the application's commits fail: each of its
--                  statements reads what
--                  `enqueue` writes. Where synchronous_commit is off, a crash of the server would
--                  lose what was submitted; other values say how much a standby must have, which is
--                  the administrator's choice.
--   read-only      Only where the role alone is set to it: a database or server that was made
--                  read-only stays so, and
--                  conn_setup.c refuses it.
--   names, texts   Statements and answers mean the same everywhere. An SQL_ASCII database gives its
--   bytes as they are,
--                  because it would refuse a whole answer for one text that is no UTF-8
--                  (conn_result.c). Errors and warnings of plpgsql are those of its defaults.
--   triggers       session_replication_role keeps them from firing. Only a superuser may set it;
--                  the refusal says so.
--   time           No statement of ours is ended before its own timeout, and no session while it is
--                  idle. A dead client is
--                  noticed by the server in about 5 + 3 * 2 seconds when idle and in 10 when it
--                  does not acknowledge (TCP only): without this a dead host keeps its locks for
--                  two hours.
--   plans          Functions choose their plans by these switches (schema/functions). No statement
--                  of ours is worth a
--                  compilation.
SELECT pg_catalog.set_config(w.name, w.value, false)
FROM (VALUES
    ('search_path', 'pg_catalog'),
    ('default_transaction_isolation', 'read committed'), ('default_transaction_deferrable', 'off'),
    ('synchronous_commit', CASE pg_catalog.current_setting('synchronous_commit')
     WHEN 'off' THEN 'on'
                           ELSE pg_catalog.current_setting('synchronous_commit') END),
    ('default_transaction_read_only', CASE
        WHEN pg_catalog.current_setting('default_transaction_read_only')
        OPERATOR(pg_catalog.=) 'on' AND (SELECT s.source OPERATOR(pg_catalog.~~) '%user'
                                         FROM pg_catalog.pg_settings s
        WHERE s.name OPERATOR(pg_catalog.=) 'default_transaction_read_only')
        THEN 'off' ELSE pg_catalog.current_setting('default_transaction_read_only') END),
    ('session_replication_role', 'origin'), ('row_security', 'on'),
        ('restrict_nonsystem_relation_kind', ''),
    ('client_encoding', CASE pg_catalog.getdatabaseencoding() WHEN 'SQL_ASCII' THEN 'SQL_ASCII'
     ELSE 'UTF8' END), ('bytea_output', 'hex'), ('DateStyle', 'ISO, MDY'),
     ('IntervalStyle', 'postgres'),
    ('TimeZone', 'UTC'), ('extra_float_digits', '1'), ('standard_conforming_strings', 'on'),
        ('array_nulls', 'on'),
    ('transform_null_equals', 'off'), ('quote_all_identifiers', 'off'),
        ('check_function_bodies', 'on'),
    ('client_min_messages', 'notice'), ('exit_on_error', 'off'),
        ('stats_fetch_consistency', 'cache'),
    ('plpgsql.extra_errors', 'none'), ('plpgsql.extra_warnings', 'none'),
    ('statement_timeout', '0'), ('lock_timeout', '0'), ('transaction_timeout', '0'),
    ('idle_session_timeout', '0'),
    ('idle_in_transaction_session_timeout', '10s'), ('tcp_keepalives_idle', '5'),
    ('tcp_keepalives_interval', '2'),
    ('tcp_keepalives_count', '3'), ('tcp_user_timeout', '10s'),
    ('jit', 'off'), ('plan_cache_mode', 'auto'), ('enable_seqscan', 'on'),
    ('enable_indexscan', 'on'),
    ('enable_indexonlyscan', 'on'), ('enable_bitmapscan', 'on'), ('enable_tidscan', 'on'),
    ('enable_nestloop', 'on'),
    ('enable_hashjoin', 'on'), ('enable_mergejoin', 'on'), ('enable_hashagg', 'on'),
    ('enable_sort', 'on'),
    ('enable_incremental_sort', 'on'), ('enable_material', 'on'), ('enable_memoize', 'on'),
    ('enable_partition_pruning', 'on'), ('constraint_exclusion', 'partition'), ('geqo', 'on'),
    ('geqo_threshold', '12'),
    ('from_collapse_limit', '8'), ('join_collapse_limit', '8'), ('debug_parallel_query', 'off'),
    ('force_parallel_mode', 'off')
) w (name, value)
WHERE pg_catalog.current_setting(w.name, true) OPERATOR(pg_catalog.<>) w.value
