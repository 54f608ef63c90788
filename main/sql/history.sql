SELECT nonce, attempt, hash, tip, filler, outcome, state, reason, error, error_count, spec_version,
       era_death, created_at, ended_at
FROM txrelay.history($1::bigint)
