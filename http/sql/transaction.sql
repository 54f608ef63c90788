-- $1 id: where it is, why it is not done yet, what it calls, and each attempt and error. No row:
-- nothing is known of it. The bytes of its call are kept unless it ended well; then its extrinsic
-- has them. Neither is given if it is long.
WITH call AS (
    SELECT c.call, c.account, c.nonce, c.hash FROM (
        SELECT o.call, o.account, NULL::bigint AS nonce, NULL::bytea AS hash FROM txrelay.outbox o
            WHERE o.id = $1::bigint
        UNION ALL
        SELECT p.call, p.account, p.nonce, p.hash FROM txrelay.pending_transactions p
        WHERE p.id = $1::bigint
        UNION ALL
        SELECT t.call, t.account, t.nonce, t.hash FROM txrelay.site_transactions t
        WHERE t.id = $1::bigint
        UNION ALL
        SELECT f.call, f.account, f.nonce, f.hash FROM txrelay.finished_transactions f
        WHERE f.id = $1::bigint) c LIMIT 1),
bytes AS (
    SELECT c.call, CASE WHEN c.call IS NULL THEN (SELECT t.extrinsic FROM txrelay.attempts t
        WHERE t.account = c.account AND t.nonce = c.nonce AND t.hash = c.hash LIMIT 1) END
        AS extrinsic FROM call c
    UNION ALL
    SELECT NULL, s.extrinsic FROM txrelay.outbox_presigned s WHERE s.id = $1::bigint)
SELECT json_build_object('id', r.id, 'account', r.account, 'account_id', r.account_id,
    'stage', r.stage, 'state', r.state, 'outcome', r.outcome, 'nonce', r.nonce, 'attempts',
    r.attempts, 'hash', r.hash,
    'block_number', r.block_number, 'block_hash', r.block_hash, 'tip', r.tip::text, 'fee',
    r.fee::text, 'error', r.error,
    'key', r.key, 'creator', r.creator, 'created_at', r.created_at, 'updated_at', r.updated_at,
    'retry_of', r.retry_of, 'retried_as', r.retried_as, 'traceparent', r.traceparent, 'waits',
    r.waits,
    'call', (SELECT '0x' || encode(b.call, 'hex') FROM bytes b
             WHERE octet_length(b.call) <= 65536), 'decoded', NULL,
    'extrinsic',
        (SELECT encode(b.extrinsic, 'hex') FROM bytes b WHERE octet_length(b.extrinsic) <= 65536),
    'history',
        coalesce((SELECT json_agg(json_build_object('nonce', h.nonce, 'attempt', h.attempt, 'hash',
                                                    h.hash,
        'tip', h.tip::text, 'filler', h.filler, 'outcome', h.outcome, 'state', h.state, 'reason',
            h.reason, 'error', h.error,
        'error_count', h.error_count, 'spec_version', h.spec_version, 'era_death', h.era_death,
            'created_at', h.created_at,
        'ended_at', h.ended_at) ORDER BY h.ordinality)
            FROM txrelay.history(r.id) WITH ORDINALITY h), '[]'))
FROM txrelay.status($1::bigint) r
