-- $1 an account, or NULL: its number, or 0. An unknown one raises TR010.
SELECT CASE WHEN $1::text IS NULL THEN 0 ELSE txrelay.account_of($1) END
