-- $1 version, $2 file name, $3 checksum of its text
INSERT INTO txrelay.schema_version (version, name, checksum) VALUES ($1, $2, $3)
