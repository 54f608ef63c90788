-- txrelay: which rows of the catalog the digest of the functions is of.

-- NULL: of none. While the catalog has these rows, nobody needs to compute the digest again
-- (store/sql/check_schema.sql).
ALTER TABLE txrelay.schema_functions ADD COLUMN catalog text;
