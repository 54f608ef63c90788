-- 1: there is a schema. Asked first, because a statement that fails would end the transaction.
SELECT (to_regclass('txrelay.schema_version') IS NOT NULL)::int
