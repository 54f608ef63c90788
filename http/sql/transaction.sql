-- $1 id: where it is, why it is not done yet, and each attempt and error. No row: nothing is known of it.
SELECT json_build_object('id', r.id, 'account', r.account, 'account_id', r.account_id,
    'stage', r.stage, 'state', r.state, 'outcome', r.outcome, 'nonce', r.nonce, 'attempts', r.attempts, 'hash', r.hash,
    'block_number', r.block_number, 'block_hash', r.block_hash, 'tip', r.tip::text, 'fee', r.fee::text, 'error', r.error,
    'key', r.key, 'creator', r.creator, 'created_at', r.created_at, 'updated_at', r.updated_at,
    'retry_of', r.retry_of, 'retried_as', r.retried_as, 'traceparent', r.traceparent, 'waits', r.waits,
    'history', coalesce((SELECT json_agg(json_build_object('nonce', h.nonce, 'attempt', h.attempt, 'hash', h.hash,
        'tip', h.tip::text, 'filler', h.filler, 'outcome', h.outcome, 'state', h.state, 'reason', h.reason, 'error', h.error,
        'error_count', h.error_count, 'spec_version', h.spec_version, 'era_death', h.era_death, 'created_at', h.created_at,
        'ended_at', h.ended_at)) FROM txrelay.history(r.id) h), '[]'))
FROM txrelay.status($1::bigint) r
