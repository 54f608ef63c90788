-- $1 checksum of schema/functions, $2 digest of what they made, $3 the catalog that it is of
-- (check_schema.sql)
INSERT INTO txrelay.schema_functions AS f (checksum, digest, catalog) VALUES ($1, $2, $3)
ON CONFLICT (one) DO UPDATE SET checksum = excluded.checksum, digest = excluded.digest,
catalog = excluded.catalog,
    applied_at = excluded.applied_at
