-- txrelay: begins the application of schema/functions. All of these files are applied in the order
-- of their names and in one transaction (README.md, "How the schema is applied").

-- The roles of the schema. They belong to the cluster, so a dump that is restored into another one
-- has none, and the migration of another database may create them at the same moment: "exists
-- already" is success in both of its forms, seen before the insert, or after losing the race for
-- the unique index. An installer without CREATEROLE can continue if an administrator created the
-- roles before.
DO $roles$
DECLARE
    v_role text;
BEGIN
    FOREACH v_role IN ARRAY ARRAY['txrelay_app', 'txrelay_relay', 'txrelay_follower'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = v_role);
        BEGIN
            EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', v_role);
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN NULL;
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION USING
                    ERRCODE = 'insufficient_privilege',
                    MESSAGE = pg_catalog.format(
                        'role %s does not exist and user %s may not create roles',
                                                v_role, current_user),
                    HINT = pg_catalog.format(
                        'Let an administrator run: CREATE ROLE txrelay_app NOLOGIN; '
                        'CREATE ROLE txrelay_relay NOLOGIN; CREATE ROLE txrelay_follower NOLOGIN; '
                        'or: ALTER ROLE %I '
                        'CREATEROLE; then migrate again.',
                        current_user);
        END;
    END LOOP;
END
$roles$;

-- Notes which functions and views exist, for 80_drop_others.sql. A version of a catalog row is
-- known by its xmin.
SELECT pg_catalog.set_config('txrelay.before', pg_catalog.concat_ws(' ',
    -- any order
    (SELECT pg_catalog.string_agg(p.oid || ':' || p.xmin, ' ') FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = 'txrelay'::pg_catalog.regnamespace),
    -- any order
    (SELECT pg_catalog.string_agg(r.ev_class || ':' || r.xmin, ' ') FROM pg_catalog.pg_rewrite r
        JOIN pg_catalog.pg_class c ON c.oid = r.ev_class
        WHERE c.relnamespace = 'txrelay'::pg_catalog.regnamespace AND c.relkind = 'v'
        AND r.rulename = '_RETURN')), true);

-- Triggers that call a function of ours are made again by 90_triggers.sql. Those of a user stay.
DO $triggers$
DECLARE
    v_trigger record;
BEGIN
    FOR v_trigger IN SELECT t.tgname, t.tgrelid::pg_catalog.regclass AS on_table
        FROM pg_catalog.pg_trigger t
        JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
        JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
        WHERE p.pronamespace = 'txrelay'::pg_catalog.regnamespace AND NOT t.tgisinternal
        AND NOT c.relispartition
        ORDER BY t.tgrelid, t.tgname LOOP
        EXECUTE pg_catalog.format('DROP TRIGGER %I ON %s', v_trigger.tgname, v_trigger.on_table);
    END LOOP;
END
$triggers$;
