-- txrelay: drops the functions and views of the schema that no file before this one defines: those
-- of an earlier version, those whose arguments changed, and whatever another user created here. If
-- an object that is not ours depends on one of them, this fails with an error that names it.

DO $others$
DECLARE
    v_before text[] := pg_catalog.string_to_array(pg_catalog.current_setting('txrelay.before'),
                                                  ' ');
    v_drop text;
BEGIN
    -- Functions whose rows are those of a view go before the views, the others after them.
    -- any order
    SELECT 'DROP ROUTINE ' || pg_catalog.string_agg(p.oid::pg_catalog.regprocedure::text, ', ')
        INTO v_drop
        FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_type t ON t.oid = p.prorettype
        JOIN pg_catalog.pg_class c ON c.oid = t.typrelid AND c.relkind = 'v'
        WHERE p.pronamespace = 'txrelay'::pg_catalog.regnamespace
        AND p.oid || ':' || p.xmin = ANY (v_before);
    IF v_drop IS NOT NULL THEN
        EXECUTE v_drop;
    END IF;
    -- any order
    SELECT 'DROP VIEW ' || pg_catalog.string_agg(c.oid::pg_catalog.regclass::text, ', ') INTO v_drop
        FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_class c ON c.oid = r.ev_class
        WHERE c.relnamespace = 'txrelay'::pg_catalog.regnamespace AND c.relkind = 'v'
        AND r.rulename = '_RETURN'
        AND r.ev_class || ':' || r.xmin = ANY (v_before);
    IF v_drop IS NOT NULL THEN
        EXECUTE v_drop;
    END IF;
    -- any order
    SELECT 'DROP ROUTINE ' || pg_catalog.string_agg(p.oid::pg_catalog.regprocedure::text, ', ')
        INTO v_drop
        FROM pg_catalog.pg_proc p WHERE p.pronamespace = 'txrelay'::pg_catalog.regnamespace
        AND p.oid || ':' || p.xmin = ANY (v_before);
    IF v_drop IS NOT NULL THEN
        EXECUTE v_drop;
    END IF;
END
$others$;
