#!/bin/bash
# Run once by the entry point of the image postgres, in a new database.
set -e
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" -q -f /secrets/postgres/logins.sql
