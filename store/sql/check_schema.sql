-- Which schema is installed, and which database of which cluster this session is in.
SELECT coalesce((SELECT max(version) FROM txrelay.schema_version), 0),
       (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
       (SELECT system_identifier FROM pg_control_system())
