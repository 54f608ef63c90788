-- txrelay: the record of what operators do. Each function that acts for an operator notes the
-- subject before and after it, in its own transaction; the actions of applications on their own
-- transactions are not recorded.

-- What the record shows of a subject: a transaction, an account, or what the action's name begins
-- with.
CREATE OR REPLACE FUNCTION txrelay.operation_view(p_action text, p_id bigint, p_account int,
                                                  p_subject text) RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF p_id IS NOT NULL THEN
        RETURN (SELECT jsonb_build_object('stage', s.stage, 'state', s.state, 'outcome', s.outcome,
            'nonce', s.nonce,
            'tip', s.tip::text) FROM status(p_id) s);
    ELSIF p_account IS NOT NULL THEN
        RETURN (SELECT jsonb_build_object('paused', a.paused, 'paused_by', a.paused_by,
                'paused_reason', a.paused_reason,
                'suspension', a.suspension, 'policy', a.policy, 'users', a.users, 'sited', a.sited,
                'used_nonce', a.used_nonce,
                'reconcile_from', a.reconcile_from)
            FROM accounts a WHERE a.account = p_account);
    ELSIF p_action LIKE 'feed%' THEN
        RETURN (SELECT jsonb_build_object('account', a.alias, 'last', f.last_number,
                'paused_reason', f.paused_reason,
                'options', f.options, 'publishers',
                (SELECT jsonb_agg(encode(u.key, 'hex') ORDER BY u.n)
                    FROM unnest(f.publishers) WITH ORDINALITY u (key, n)))
            FROM feeds f LEFT JOIN accounts a ON a.account = f.account WHERE f.name = p_subject);
    ELSIF p_action LIKE 'token%' THEN
        RETURN (SELECT jsonb_build_object('scopes', t.scopes, 'accounts', t.accounts, 'expires_at',
            t.expires_at,
            'revoked_at', t.revoked_at) FROM tokens t WHERE t.name = p_subject);
    ELSIF p_action LIKE 'webhook%' THEN
        RETURN (SELECT jsonb_build_object('url', w.url, 'accounts', w.accounts, 'outcomes',
                w.outcomes, 'paused', w.paused,
                'rotated_at', w.rotated_at, 'dead', (SELECT count(*) FROM webhook_deliveries d
                    WHERE d.webhook = w.name AND d.dead_at IS NOT NULL)) FROM webhooks w
                    WHERE w.name = p_subject);
    END IF;
    RETURN NULL;
END
$$;

-- The subject before an action; NULL where no operator acts.
CREATE OR REPLACE FUNCTION txrelay.operation_before(p_action text, p_id bigint, p_account int,
                                                    p_subject text) RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    RETURN CASE WHEN is_operator() THEN operation_view(p_action, p_id, p_account, p_subject) END;
END
$$;

-- Records an action, if it is an operator's: who asked (asker), and the login.
CREATE OR REPLACE FUNCTION txrelay.operation_note(p_action text, p_id bigint, p_account int,
    p_subject text, p_arguments jsonb, p_before jsonb, p_answer text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
BEGIN
    IF is_operator() THEN
        PERFORM repair_ids(); -- the first one to write after a copy may be an operator
        INSERT INTO operations (who, login, via, action, transaction, account, subject, arguments,
                                before, after, answer)
            VALUES (asker(), session_user,
                current_setting('application_name'), p_action, p_id, p_account, p_subject,
                jsonb_strip_nulls(p_arguments), p_before,
                operation_view(p_action, p_id, p_account, p_subject), p_answer);
    END IF;
END
$$;
