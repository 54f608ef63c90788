-- txrelay: how an account is treated: its policy, the operator's pause and the leader's suspension.

-- Checks one key of a policy and its value. Returns the value in its stored form: amounts become
-- strings, because many JSON readers keep only 53 bits of a number.
CREATE OR REPLACE FUNCTION txrelay.policy_value(p_key text, p_value jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_text text := p_value #>> '{}';
    v_number numeric := CASE WHEN jsonb_typeof(p_value) = 'number'
        OR (jsonb_typeof(p_value) = 'string'
        AND v_text ~ '^[0-9]{1,50}$') THEN v_text::numeric END;
    v_most numeric := CASE WHEN p_key IN ('tip_start', 'tip_step', 'tip_cap', 'low_balance')
            THEN 340282366920938463463374607431768211455
        WHEN p_key = 'tip_step_percent' THEN 1000
        WHEN p_key = 'tip_after_blocks' THEN 100000
        WHEN p_key = 'skip_after_blocks' THEN 1000000
        WHEN p_key = 'priority_max' THEN 1000
        WHEN p_key = 'outbox_max' THEN 1000000 END;
BEGIN
    IF p_key = 'order' THEN
        IF p_value NOT IN ('"any"', '"strict"') THEN
            PERFORM bad_argument('account_policy', 'order',
                format('is %s; it must be "any" or "strict"',
                left(p_value::text, 80)),
                'strict: nonces follow the order of commits, and writers wait for one another.');
        END IF;
        RETURN p_value;
    ELSIF p_key = 'usurped' THEN
        IF p_value NOT IN ('"fail"', '"requeue"') THEN
            PERFORM bad_argument('account_policy', 'usurped',
                format('is %s; it must be "fail" or "requeue"',
                left(p_value::text, 80)),
                'What becomes of a transaction whose nonce somebody else used.');
        END IF;
        RETURN p_value;
    ELSIF p_key = 'retry_refusals' THEN
        IF jsonb_typeof(p_value) <> 'string' OR length(v_text) > 120
           OR v_text !~
           '^(ExhaustsResources|Custom(:[0-9]{1,3})?)(,(ExhaustsResources|Custom(:[0-9]{1,3})?))*$'
           THEN
            PERFORM bad_argument('account_policy', 'retry_refusals',
                format('is %s; it must be a list like '
                '"ExhaustsResources,Custom:6" of at most 120 characters', left(p_value::text, 80)),
                'A transaction that the chain refuses so is submitted again; Custom alone means '
                'every number.');
        END IF;
        RETURN p_value;
    ELSIF v_most IS NULL THEN
        PERFORM bad_argument('account_policy', format('"%s"', left(p_key, 80)),
            'is not a key of a policy',
            'The keys are tip_start, tip_step, tip_step_percent, tip_cap, tip_after_blocks, '
            'skip_after_blocks, low_balance, '
            'usurped, order, retry_refusals, priority_max and outbox_max.');
    ELSIF v_number IS NULL OR v_number NOT BETWEEN 0 AND v_most OR v_number <> trunc(v_number)
          OR (jsonb_typeof(p_value) = 'string' AND p_key LIKE '%blocks')
          OR (jsonb_typeof(p_value) = 'string'
          AND p_key = 'tip_step_percent') THEN
        PERFORM bad_argument('account_policy', p_key,
            format('is %s; it must be a whole number from 0 to %s%s',
            left(p_value::text, 80), v_most, CASE
            WHEN v_most > 1000000 THEN ', or a string of its digits' ELSE '' END),
            CASE WHEN v_most > 1000000 THEN 'In the chain''s smallest unit. '
            ELSE '' END || 'JSON null removes the key.');
    END IF;
    RETURN CASE WHEN v_most > 1000000 THEN to_jsonb(trunc(v_number)::text)
        ELSE to_jsonb(v_number::int) END;
END
$$;

-- Reads or changes the policy of an account (README.md). policy NULL: returns it. Otherwise sets
-- the given keys, removes those that are given as JSON null, notifies the leader, and returns the
-- result.
CREATE OR REPLACE FUNCTION txrelay.account_policy(account text, policy jsonb DEFAULT NULL)
    RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_account int := account_of(account_policy.account);
    v_before jsonb := operation_before('policy', NULL, v_account, NULL);
    v_policy jsonb;
    v_given jsonb;
    v_sited boolean;
BEGIN
    IF account_policy.policy IS NULL THEN
        RETURN (SELECT t.policy FROM accounts t WHERE t.account = v_account);
    ELSIF jsonb_typeof(account_policy.policy) <> 'object' THEN
        PERFORM bad_argument('account_policy', 'policy', format('is %s; it must be a JSON object',
            left(account_policy.policy::text, 80)),
            'For example {"tip_start": 0, "tip_cap": "1000000000"}.');
    END IF;
    SELECT jsonb_object_agg(g.key, CASE WHEN g.value <> 'null' THEN policy_value(g.key, g.value)
                            ELSE g.value END)
        INTO v_given FROM jsonb_each(account_policy.policy) g;
    -- Only a key that exists can be removed.
    PERFORM policy_value(g.key, CASE g.key WHEN 'usurped' THEN '"fail"' WHEN 'order' THEN '"any"'
        WHEN 'retry_refusals' THEN '"Custom"' ELSE '0' END::jsonb)
        FROM jsonb_each(account_policy.policy) g WHERE g.value = 'null';
    SELECT t.policy, t.sited INTO v_policy, v_sited FROM accounts t
        WHERE t.account = v_account FOR NO KEY UPDATE;
    v_policy := jsonb_strip_nulls(v_policy || coalesce(v_given, '{}'));
    IF (v_policy -> 'tip_after_blocks')::int > 0 AND v_policy -> 'tip_cap' IS NULL THEN
        PERFORM bad_argument('account_policy', 'tip_after_blocks',
            format('is %s, and there is no tip_cap',
            v_policy -> 'tip_after_blocks'),
            'Tips that rise by themselves need a bound: set tip_cap, or tip_after_blocks '
            'to 0.');
    ELSIF (v_policy ->> 'tip_start')::numeric > (v_policy ->> 'tip_cap')::numeric THEN
        PERFORM bad_argument('account_policy', 'tip_start',
            format('is %s; it must not be above tip_cap (%s)',
            v_policy ->> 'tip_start', v_policy ->> 'tip_cap'), 'Lower the one or raise the other.');
    ELSIF v_sited THEN
        PERFORM check_site_policy('account_policy', account_policy.account, v_policy);
    END IF;
    UPDATE accounts t SET policy = v_policy WHERE t.account = v_account;
    PERFORM note_careful(v_account);
    IF v_policy ->> 'order' = 'strict' THEN
        INSERT INTO strict_turns (account) VALUES (v_account) ON CONFLICT DO NOTHING;
    END IF;
    IF queue_has_room() THEN
        PERFORM pg_notify('outbox_wake', v_account::text);
    END IF;
    PERFORM operation_note('policy', NULL, v_account, NULL, account_policy.policy, v_before,
                           v_policy::text);
    RETURN v_policy;
END
$$;

-- Stops admission for the account until account_resume. Transactions that have a nonce go on. A
-- suspension by the leader stays beside it.
CREATE OR REPLACE FUNCTION txrelay.account_pause(p_account text, p_reason text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_account int := account_of(p_account);
    v_before jsonb := operation_before('pause', NULL, v_account, NULL);
BEGIN
    UPDATE accounts t SET paused = true, paused_by = 'operator',
        paused_reason = coalesce(p_reason, 'by ' || session_user),
        paused_since = coalesce(t.paused_since, clock_timestamp())
        WHERE t.account = v_account;
    PERFORM operation_note('pause', NULL, v_account, NULL, jsonb_build_object('reason', p_reason),
                           v_before, 'paused');
END
$$;

-- Ends the pause and the suspension. It is also the order that a suspension waits for: a reaped
-- account begins another life, and calls may be signed under the chain's present transaction
-- version. It always notifies, because a leader that saw nothing during the pause may be asleep.
CREATE OR REPLACE FUNCTION txrelay.account_resume(p_account text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_account int := account_of(p_account);
    v_before jsonb := operation_before('resume', NULL, v_account, NULL);
BEGIN
    UPDATE accounts t SET paused = false, paused_by = NULL, paused_reason = NULL,
        paused_since = NULL, suspension = NULL,
        reborn = t.reborn OR t.suspension IS NOT DISTINCT FROM 'reaped',
        transaction_version = CASE WHEN t.suspension IS DISTINCT FROM 'transaction_version'
        THEN t.transaction_version END
        WHERE t.account = v_account;
    IF queue_has_room() THEN
        PERFORM pg_notify('outbox_wake', v_account::text);
    END IF;
    PERFORM operation_note('resume', NULL, v_account, NULL, '{}', v_before, 'resumed');
END
$$;

-- Orders the leader to go back to the chain's nonce, where a node lied or the table was changed by
-- hand: the order of a reaped account, without the suspension. What is pending ends once its bytes
-- are dead, as finalized blocks say, and nothing is signed before that. So bytes without an era are
-- refused: they never die. What is on record as used is forgotten, because it may be the lie. The
-- epoch rises, so that no write that the leader decided on before comes after the order.
CREATE OR REPLACE FUNCTION txrelay.account_rewind(p_account text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
DECLARE
    v_account int := keyed_account('account_rewind', p_account);
    v_before jsonb := operation_before('rewind', NULL, v_account, NULL);
    a accounts;
    v_nonce bigint;
BEGIN
    UPDATE leadership t SET epoch = t.epoch + 1 WHERE t.subject = v_account;
    SELECT * INTO a FROM accounts t WHERE t.account = v_account FOR NO KEY UPDATE;
    IF a.sited THEN
        PERFORM bad_argument('account_rewind', 'account',
            format('is "%s", which has sites', a.alias),
            'Its sites read the nonces from finalized blocks; there is nothing to go back to.');
    ELSIF a.reconcile_from IS NOT NULL THEN
        PERFORM bad_argument('account_rewind', 'account',
            format('is "%s", whose lost commits are looked for from block %s on',
            a.alias, a.reconcile_from),
            'Wait until blocked_accounts does not show it any more. If that block is wrong: '
            'account_reconcile(account, block).');
    END IF;
    SELECT p.nonce INTO v_nonce FROM pending_transactions p WHERE p.account = v_account
        AND EXISTS (SELECT FROM attempts t WHERE t.account = v_account AND t.nonce = p.nonce
            AND t.number <= p.attempt
            AND t.era_death IS NULL AND (NOT p.signed OR t.id = p.id)) ORDER BY p.account,
            p.nonce LIMIT 1;
    IF FOUND THEN
        PERFORM bad_argument('account_rewind', 'account',
            format('is "%s", whose pending nonce %s was signed without an era',
            a.alias, v_nonce), 'Its bytes can be included until the chain has used that nonce. '
                               'Use the nonces up to it '
            'elsewhere, or use another account.');
    END IF;
    UPDATE accounts t SET reborn = true, used_nonce = NULL, used_block = NULL, suspension = NULL,
        paused = t.paused_by IS NOT DISTINCT FROM 'operator',
        paused_by = CASE WHEN t.paused_by = 'operator' THEN t.paused_by END,
        paused_reason = CASE WHEN t.paused_by = 'operator' THEN t.paused_reason END,
        paused_since = CASE WHEN t.paused_by = 'operator' THEN t.paused_since END
        WHERE t.account = v_account;
    IF queue_has_room() THEN
        PERFORM pg_notify('outbox_wake', v_account::text);
    END IF;
    PERFORM operation_note('rewind', NULL, v_account, NULL, '{}', v_before, 'rewound');
END
$$;

-- Suspends the account for the reason p_suspension; NULL ends the suspension. If an operator has
-- paused the account, the pause and its text stay, and only the reason is noted beside them:
-- account_resume ends both. A suspension as reaped needs an order that is newer than itself.
CREATE OR REPLACE FUNCTION txrelay.leader_pause(p_account int, p_epoch bigint, p_suspension text,
                                                p_reason text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'any account');
BEGIN
    IF p_suspension NOT IN ('payment', 'reaped', 'signing', 'transaction_version') THEN
        PERFORM bad_argument('leader_pause', 'p_suspension',
            format('is "%s"; it must be payment, reaped, signing, '
            'transaction_version or NULL', p_suspension), 'NULL ends the leader''s own pause.');
    ELSIF a.paused_by = 'operator' THEN
        UPDATE accounts t SET suspension = p_suspension, reborn = t.reborn
            AND p_suspension IS DISTINCT FROM 'reaped'
            WHERE t.account = p_account;
    ELSIF p_suspension IS NULL THEN
        UPDATE accounts t SET suspension = NULL, paused = false, paused_by = NULL,
            paused_reason = NULL, paused_since = NULL
            WHERE t.account = p_account;
    ELSE
        UPDATE accounts t SET suspension = p_suspension, reborn = t.reborn
            AND p_suspension <> 'reaped', paused = true,
            paused_by = 'leader', paused_reason = coalesce(p_reason, p_suspension),
            paused_since = CASE WHEN t.suspension = p_suspension THEN t.paused_since
            ELSE clock_timestamp() END
            WHERE t.account = p_account;
    END IF;
END
$$;

-- Orders the writers of an account whose policy is order: strict. Each holds the account's row of
-- strict_turns, before it takes an id, until its commit, so that ids and nonces follow the order of
-- commits. Only these functions can lock that row; an advisory lock would be open to any login.
-- Options that would give a row another place are refused. A relay that enqueues for an application
-- does not wait, because its other statements need the session.
CREATE OR REPLACE FUNCTION txrelay.strict_turn(p_function text, a txrelay.accounts,
                                               p_priority bigint, p_not_before timestamptz)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
BEGIN
    IF p_priority <> 0 THEN
        PERFORM bad_argument(p_function, 'priority',
            format('is %s, and account %s keeps the order of commits (policy order: '
            'strict)', p_priority, a.alias),
            'Leave it out, or use another account for what may overtake.');
    ELSIF p_not_before IS NOT NULL THEN
        PERFORM bad_argument(p_function, 'not_before',
            format('is %s, and account %s keeps the order of commits (policy order: '
            'strict)', p_not_before, a.alias),
            'Leave it out: those behind it would overtake it, or wait as long.');
    END IF;
    IF NOT pg_has_role(session_user, 'txrelay_relay', 'MEMBER')
        OR pg_has_role(session_user, current_user, 'MEMBER') THEN
        PERFORM FROM strict_turns t WHERE t.account = a.account FOR UPDATE;
    ELSE
        PERFORM FROM strict_turns t WHERE t.account = a.account FOR UPDATE NOWAIT;
    END IF;
    IF NOT FOUND THEN
        PERFORM bad_argument(p_function, 'account',
            format('is "%s", which keeps the order of commits and has no row in strict_turns',
            a.alias), 'Set the policy again: account_policy(account, ''{"order": "strict"}'').');
    END IF;
EXCEPTION WHEN lock_not_available THEN
    RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
        MESSAGE = format('%s: account %s keeps the order of commits, and '
        'another transaction that enqueued for it is still open', p_function, a.alias),
        HINT = 'Try again when it has ended.';
END
$$;
