-- The relays that live or lived a minute ago, what keeps them or the database from their work, and
-- how many accounts each leads.
SELECT json_build_object(
    'members',
            coalesce((SELECT json_agg(json_build_object('relay', m.holder, 'address', m.address,
                                                        'best', m.best,
            'heartbeat', m.heartbeat, 'heartbeat_age_s',
                extract(epoch FROM clock_timestamp() - m.heartbeat)::bigint,
            'leads', (SELECT count(*) FROM txrelay.leadership l WHERE l.holder = m.holder))
                ORDER BY m.holder)
        FROM txrelay.members m WHERE m.heartbeat > clock_timestamp() - interval '1 min'), '[]'),
    'blocked',
        coalesce((SELECT json_agg(json_build_object('relay', b.relay, 'since', b.since, 'code',
                                                    b.code, 'reason', b.reason)
        ORDER BY b.relay, b.code) FROM txrelay.blocked_relays b), '[]'),
    'schema_version', (SELECT max(v.version) FROM txrelay.schema_version v))
