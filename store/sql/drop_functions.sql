-- All functions and views of the schema, and the triggers that call them, so that they can be made
-- anew. Functions whose rows are those of a view go before the views, the others after them,
-- because views call them. An object that depends on one of them and is not ours ends this with an
-- error that names it.
DO $all$
DECLARE
    v_drop text;
BEGIN
    FOR v_drop IN SELECT pg_catalog.format('DROP TRIGGER %I ON %s', t.tgname,
                                           t.tgrelid::pg_catalog.regclass)
            FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
            JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
            WHERE p.pronamespace = 'txrelay'::pg_catalog.regnamespace AND NOT t.tgisinternal
            AND NOT c.relispartition LOOP
        EXECUTE v_drop;
    END LOOP;
    -- any order
    SELECT 'DROP ROUTINE ' || pg_catalog.string_agg(p.oid::pg_catalog.regprocedure::text, ', ')
        INTO v_drop
        FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_type t ON t.oid = p.prorettype
        JOIN pg_catalog.pg_class c ON c.oid = t.typrelid AND c.relkind = 'v'
        WHERE p.pronamespace = 'txrelay'::pg_catalog.regnamespace;
    IF v_drop IS NOT NULL THEN
        EXECUTE v_drop;
    END IF;
    -- any order
    SELECT 'DROP VIEW ' || pg_catalog.string_agg(c.oid::pg_catalog.regclass::text, ', ') INTO v_drop
        FROM pg_catalog.pg_class c WHERE c.relnamespace = 'txrelay'::pg_catalog.regnamespace
        AND c.relkind = 'v';
    IF v_drop IS NOT NULL THEN
        EXECUTE v_drop;
    END IF;
    -- any order
    SELECT 'DROP ROUTINE ' || pg_catalog.string_agg(p.oid::pg_catalog.regprocedure::text, ', ')
        INTO v_drop
        FROM pg_catalog.pg_proc p WHERE p.pronamespace = 'txrelay'::pg_catalog.regnamespace;
    IF v_drop IS NOT NULL THEN
        EXECUTE v_drop;
    END IF;
END
$all$;
