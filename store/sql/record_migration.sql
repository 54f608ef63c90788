-- $1 version, $2 file name, $3 its text
INSERT INTO txrelay.schema_version (version, name, checksum)
VALUES ($1, $2, encode(sha256(convert_to($3, 'UTF8')), 'hex'))
