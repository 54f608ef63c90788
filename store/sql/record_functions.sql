-- $1 checksum of schema/functions, $2 digest of what they made (check_schema.sql)
INSERT INTO txrelay.schema_functions AS f (checksum, digest) VALUES ($1, $2)
ON CONFLICT (one) DO UPDATE SET checksum = excluded.checksum, digest = excluded.digest, applied_at = excluded.applied_at
