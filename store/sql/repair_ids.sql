-- Moves the sequences of ids beyond what was given (schema/functions/19_moves.sql). Returns how
-- many ids would have been given again; NULL: the schema has no such function.
DO $$
BEGIN
    IF to_regprocedure('txrelay.repair_ids()') IS NOT NULL THEN
        PERFORM set_config('txrelay.ids_behind', txrelay.repair_ids()::text, true);
    END IF;
END $$;
SELECT current_setting('txrelay.ids_behind', true)
