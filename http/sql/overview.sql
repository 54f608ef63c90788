-- What somebody looks at first, in about the same time however much there is: what is wrong, who is
-- there, how much waits (counted up to 10000), and the latest ends that are no success, among the
-- last 500 ends. These are looked for in the last minute first, then in the hour before it, and so
-- on: the index on their time knows ranges only.
SELECT json_build_object(
    'now', clock_timestamp(),
    'blocked_relays',
    coalesce((SELECT json_agg(json_build_object('relay', b.relay, 'since', b.since, 'code', b.code,
            'reason', b.reason) ORDER BY b.relay, b.code) FROM txrelay.blocked_relays b), '[]'),
    'blocked_accounts',
            coalesce((SELECT json_agg(json_build_object('account', b.account, 'since', b.since,
                                                        'code', b.code,
            'reason', b.reason, 'nonce', b.nonce, 'id', b.id) ORDER BY b.since, b.account)
        FROM (SELECT * FROM txrelay.blocked_accounts x ORDER BY x.since, x.account LIMIT 50) b),
            '[]'),
    'accounts', (SELECT count(*) FROM (SELECT FROM txrelay.accounts LIMIT 10000) a),
    'queued', (SELECT count(*) FROM (SELECT FROM txrelay.outbox LIMIT 10000) o)
        + (SELECT count(*) FROM (SELECT FROM txrelay.outbox_presigned LIMIT 10000) s),
    'in_flight', (SELECT count(*) FROM (SELECT FROM txrelay.pending_transactions LIMIT 10000) p),
    'ended_badly',
    coalesce((SELECT json_agg(json_build_object('id', e.id, 'account', a.alias, 'nonce', e.nonce,
            'outcome', e.outcome, 'error', e.error, 'at', e.finished_at)
            ORDER BY e.finished_at DESC, e.id DESC)
        FROM (SELECT l.*
              FROM (SELECT w.* FROM (VALUES (interval '0', interval '1 min'), ('1 min', '1 hour'),
                      ('1 hour', '1 day'),
                      ('1 day', '30 days')) s (until, since),
                  LATERAL (SELECT f.id, f.account, f.nonce, f.outcome, f.error, f.finished_at
                      FROM txrelay.finished_transactions f
                      WHERE f.finished_at > now() - s.since
                      AND (s.until = interval '0' OR f.finished_at <= now() - s.until)
                      ORDER BY f.finished_at DESC LIMIT 500) w LIMIT 500) l
              WHERE l.id IS NOT NULL AND l.outcome <> 'ok' ORDER BY l.finished_at DESC,
                  l.id DESC LIMIT 20) e
        JOIN txrelay.accounts a USING (account)), '[]'))
