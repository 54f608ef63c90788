-- 0: there is no schema; 1: it is of a build before the first release; 2: there is one. Asked
-- first, because a statement that fails would end the transaction.
SELECT (to_regclass('txrelay.schema_version') IS NOT NULL)::int
    + (to_regclass('txrelay.schema_functions') IS NOT NULL)::int
