-- txrelay: sites: what the sites of an account are, and what operators see of them. docs/design.md,
-- section 10, has the rules.
--
-- The functions of sites begin with site_fence. An account that has sites is refused by those of
-- managers (fence), and an account without sites by these: its transactions are written by one of
-- the two.

CREATE OR REPLACE FUNCTION txrelay.site_fence(p_function text, p_account int, p_epoch bigint,
                                              p_lock text) RETURNS txrelay.accounts
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, p_lock);
BEGIN
    IF NOT a.sited THEN
        PERFORM order_error(format('%s: account %s has no sites', p_function, a.alias),
            'leader_site_setup records them, before anything else.');
    END IF;
    RETURN a;
END
$$;

CREATE OR REPLACE FUNCTION txrelay.site_name(p_account int, p_member int) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
BEGIN
    RETURN (SELECT m.name FROM site_peers m WHERE m.account = p_account AND m.member = p_member);
END
$$;

-- Refuses keys of a policy that have no effect where an account has sites, so that none is silently
-- ignored. Those that are not named here hold at every site; test/schema/test_sites_options.py
-- sorts all keys into the two kinds.
CREATE OR REPLACE FUNCTION txrelay.check_site_policy(p_function text, p_alias text, p_policy jsonb)
    RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_bad record;
BEGIN
    SELECT r.key, p_policy -> r.key AS value, r.instead INTO v_bad FROM (VALUES
        ('tip_after_blocks', '0',
         'Bytes that were granted keep their tip; bump raises that of the next ones.'),
        ('skip_after_blocks', '0', 'Give transactions a deadline or deadline_block instead.'),
        ('low_balance', NULL, 'Set an alert on the metric txrelay_balance_planck instead.'),
        ('usurped', '"requeue"',
         'Sites always requeue, because another site may have used the nonce.'),
        ('order', '"any"', 'Each site commits by itself, so there is no order of all commits.'),
        ('retry_refusals', NULL, 'Sites submit bytes again after every refusal, until these die.'))
        r (key, holds, instead)
        WHERE p_policy -> r.key <> coalesce(r.holds, 'null')::jsonb LIMIT 1;
    IF FOUND THEN
        PERFORM bad_argument(p_function, v_bad.key,
            format('is %s in the policy of account %s, and has no effect on an account that '
            'has sites', v_bad.value, p_alias), format('%s Remove the key: txrelay policy %s %s=',
            v_bad.instead, p_alias, v_bad.key));
    END IF;
END
$$;

-- Checks what a relay says about the sites of an account.
CREATE OR REPLACE FUNCTION txrelay.check_sites(a txrelay.accounts, p_names text[], p_keys bytea[],
    p_self int, p_own_keys boolean, p_range_blocks int, p_era_blocks int, p_approvals int,
    p_final bigint, p_next bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_count int := coalesce(cardinality(p_names), 0);
    v_bad text := (SELECT coalesce(u.name, 'NULL') FROM unnest(p_names) u (name)
        WHERE (u.name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$') IS NOT TRUE LIMIT 1);
    v_other int := (SELECT u.n - 1 FROM unnest(p_keys) WITH ORDINALITY u (key, n)
        WHERE CASE WHEN p_own_keys AND u.n - 1 <> p_self THEN octet_length(u.key) IN (20, 32)
            ELSE u.key = a.account_id END IS NOT TRUE ORDER BY u.n LIMIT 1);
BEGIN
    IF v_count NOT BETWEEN 1 AND 32 THEN
        PERFORM bad_argument('leader_site_setup', 'p_names',
            format('has %s elements; it must have 1 to 32', v_count),
            'The names of all sites, in the same order at each.');
    ELSIF v_bad IS NOT NULL THEN
        PERFORM bad_argument('leader_site_setup', 'p_names',
            format('has "%s"; 1 to 64 letters, digits, ".", "_", "-"',
            left(v_bad, 80)), 'For example frankfurt.');
    ELSIF (SELECT count(DISTINCT u.name) FROM unnest(p_names) u (name)) <> v_count THEN
        PERFORM bad_argument('leader_site_setup', 'p_names', 'has a name twice',
                             'Each site has a name of its own.');
    ELSIF (p_self BETWEEN 0 AND v_count - 1) IS NOT TRUE THEN
        PERFORM bad_argument('leader_site_setup', 'p_self',
            format('is %s; it must be 0 to %s', coalesce(p_self::text, 'NULL'),
            v_count - 1), 'The place of this site in the list.');
    ELSIF p_own_keys IS NULL OR v_other IS NOT NULL THEN
        PERFORM bad_argument('leader_site_setup', 'p_keys',
            format('does not fit for site %s of account %s', p_names[v_other + 1],
            a.alias), 'With one key for all sites each has the account''s id; with own keys this '
                      'site has it.');
    ELSIF p_own_keys AND (SELECT count(DISTINCT u.key) FROM unnest(p_keys) u (key)) <> v_count THEN
        PERFORM bad_argument('leader_site_setup', 'p_keys', 'has a key twice',
                             'Own keys are different ones.');
    ELSIF (p_range_blocks BETWEEN 1 AND 1000000) IS NOT TRUE
          OR (p_era_blocks BETWEEN 4 AND 4096) IS NOT TRUE
          OR (p_approvals BETWEEN 0 AND v_count - 1) IS NOT TRUE THEN
        PERFORM bad_argument('leader_site_setup', 'p_range_blocks, p_era_blocks, p_approvals',
            format('are %s, %s and %s',
            coalesce(p_range_blocks::text, 'NULL'), coalesce(p_era_blocks::text, 'NULL'),
            coalesce(p_approvals::text, 'NULL')),
            format('They must be 1 to 1000000, 4 to 4096, and 0 to %s: the other sites.',
                   v_count - 1));
    ELSIF (p_final >= 0) IS NOT TRUE
        OR EXISTS (SELECT FROM unnest(p_next) u (next) WHERE (u.next >= 0) IS NOT TRUE) THEN
        PERFORM bad_argument('leader_site_setup', 'p_final, p_next', 'are not known',
            'The node''s finalized block, and the nonce of each key after it.');
    ELSIF a.watch_only THEN
        PERFORM bad_argument('leader_site_setup', 'p_account',
            format('is %s, whose key no relay has', a.alias),
            'What is signed elsewhere cannot be sent through several sites.');
    END IF;
    PERFORM check_site_policy('leader_site_setup', a.alias, a.policy);
END
$$;

-- Refuses to begin with sites, or to change them, while bytes of another arrangement can be
-- included.
CREATE OR REPLACE FUNCTION txrelay.check_site_change(a txrelay.accounts) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
DECLARE
    v_what text := CASE
        WHEN EXISTS (SELECT FROM pending_transactions p WHERE p.account = a.account)
        THEN 'has pending transactions'
        WHEN EXISTS (SELECT FROM outbox_presigned s WHERE s.account = a.account)
        THEN 'has presigned transactions'
        WHEN EXISTS (SELECT FROM site_transactions t WHERE t.account = a.account)
        THEN 'has granted transactions'
        WHEN EXISTS (SELECT FROM site_dispatches d WHERE d.account = a.account)
        THEN 'has dispatched transactions'
        WHEN a.reconcile_from IS NOT NULL THEN 'waits after lost commits' END;
BEGIN
    IF v_what IS NOT NULL THEN
        PERFORM order_error(format('the sites of account %s cannot change: it %s', a.alias, v_what),
            'account_pause, and wait until these have ended with the former configuration.');
    END IF;
END
$$;

-- Records the configuration of this relay. Names, keys, own_keys, p_self and p_era_blocks, by which
-- bytes are judged dead, change only while nothing is granted or dispatched; then p_final and
-- p_next count as of now. Others may change at any time.
CREATE OR REPLACE FUNCTION txrelay.leader_site_setup(p_account int, p_epoch bigint, p_names text[],
    p_addresses text[], p_keys bytea[], p_self int, p_own_keys boolean, p_sticky boolean,
    p_silence_is_down boolean, p_range_blocks int, p_era_blocks int, p_approvals int,
    p_final bigint, p_next bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    a accounts := fence(p_account, p_epoch, 'any account');
    v_count int := batch_size('leader_site_setup', cardinality(p_names), cardinality(p_addresses),
        cardinality(p_keys), cardinality(p_next));
BEGIN
    PERFORM check_sites(a, p_names, p_keys, p_self, p_own_keys, p_range_blocks, p_era_blocks,
                        p_approvals, p_final, p_next);
    IF NOT a.sited
            OR (SELECT (s.self, s.own_keys, s.era_blocks) IS DISTINCT FROM (p_self, p_own_keys,
                p_era_blocks)
            OR ARRAY(SELECT m.name FROM site_peers m WHERE m.account = p_account
                     ORDER BY m.member) <> p_names
            OR ARRAY(SELECT m.key FROM site_peers m WHERE m.account = p_account
                     ORDER BY m.member) <> p_keys
            FROM site_accounts s WHERE s.account = p_account) THEN
        PERFORM check_site_change(a);
        DELETE FROM site_peers m WHERE m.account = p_account;
        INSERT INTO site_peers (account, member, name, address, key, next_nonce)
            SELECT p_account, u.n - 1, u.name, coalesce(u.address, ''), u.key, u.next
            FROM unnest(p_names, p_addresses, p_keys, p_next) WITH ORDINALITY u (name, address,
                key, next, n);
        DELETE FROM site_accounts s WHERE s.account = p_account;
        INSERT INTO site_accounts (account, self, own_keys, sticky, silence_is_down, range_blocks,
                                   era_blocks, approvals, final)
            VALUES (p_account, p_self, p_own_keys, coalesce(p_sticky, false),
                coalesce(p_silence_is_down, false), p_range_blocks, p_era_blocks, p_approvals,
                p_final);
        UPDATE accounts t SET sited = true WHERE t.account = p_account AND NOT t.sited;
        RETURN;
    END IF;
    UPDATE site_peers m SET address = coalesce(u.address, '')
        FROM unnest(p_addresses) WITH ORDINALITY u (address, n)
        WHERE m.account = p_account AND m.member = u.n - 1 AND m.address <> coalesce(u.address, '');
    UPDATE site_accounts s SET sticky = coalesce(p_sticky, false),
        silence_is_down = coalesce(p_silence_is_down, false), range_blocks = p_range_blocks,
        approvals = p_approvals
        WHERE s.account = p_account AND (s.sticky, s.silence_is_down, s.range_blocks, s.approvals)
            <> (coalesce(p_sticky, false), coalesce(p_silence_is_down, false), p_range_blocks,
                p_approvals);
END
$$;

-- Ends the sites of an account, for an operator: its relays go on without. Change their
-- configuration first, because a relay that has sites in it records them again.
CREATE OR REPLACE FUNCTION txrelay.account_unsite(p_account text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
SET enable_seqscan = off AS $$
DECLARE
    v_account int := account_of(p_account);
    v_before jsonb := operation_before('unsite', NULL, v_account, NULL);
    a accounts;
BEGIN
    -- its leader reads the tables again
    UPDATE leadership t SET epoch = t.epoch + 1 WHERE t.subject = v_account;
    SELECT * INTO a FROM accounts t WHERE t.account = v_account FOR NO KEY UPDATE;
    IF NOT a.sited THEN
        PERFORM bad_argument('account_unsite', 'account',
            format('is "%s", which has no sites', a.alias),
            'The view txrelay.sites lists the accounts that have some.');
    END IF;
    PERFORM check_site_change(a);
    DELETE FROM site_peers m WHERE m.account = v_account;
    DELETE FROM site_accounts s WHERE s.account = v_account;
    -- others used the nonces meanwhile
    UPDATE accounts t SET sited = false, next_nonce = NULL WHERE t.account = v_account;
    PERFORM operation_note('unsite', NULL, v_account, NULL, '{}', v_before, 'removed');
END
$$;

-- What the leader sees: the state of its machine, who coordinates (-1: nobody) since which height,
-- why, and a bit for each member that it considers away.
CREATE OR REPLACE FUNCTION txrelay.leader_site_note(p_account int, p_epoch bigint, p_state text,
    p_coordinator int, p_height bigint, p_reason text, p_down bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
DECLARE
    a accounts := site_fence('leader_site_note', p_account, p_epoch, 'any update');
BEGIN
    UPDATE site_accounts s SET state = left(p_state, 40), coordinator = nullif(p_coordinator, -1),
        since_height = p_height, reason = left(p_reason, 200), noted_at = clock_timestamp(),
        noted_epoch = p_epoch WHERE s.account = p_account;
    UPDATE site_peers m SET down = (p_down >> m.member & 1) = 1
        WHERE m.account = p_account AND m.down <> ((p_down >> m.member & 1) = 1);
END
$$;

-- One row per account that has sites, as this site sees it. state and what follows are the
-- leader's, NULL under another leader. granted: transactions of this site whose bytes may be
-- included; dispatched: what it coordinates, of any site.
CREATE OR REPLACE VIEW txrelay.sites AS
    SELECT a.alias AS account, me.name AS site, CASE WHEN s.sticky THEN 'sticky'
    ELSE 'rotation' END AS policy,
           s.own_keys, s.silence_is_down, s.range_blocks, s.era_blocks, s.approvals, s.final,
           nullif(s.wait_until, 0) AS wait_until, CASE WHEN n.now THEN s.state END AS state, CASE
           WHEN n.now THEN c.name END AS coordinator,
           CASE WHEN n.now THEN s.since_height END AS since_height, CASE
           WHEN n.now THEN s.reason END AS reason,
           CASE WHEN n.now THEN s.noted_at END AS noted_at,
           (SELECT count(*) FROM txrelay.site_transactions t WHERE t.account = s.account)
           AS granted,
           (SELECT count(*) FROM txrelay.site_dispatches d WHERE d.account = s.account)
           AS dispatched
    FROM txrelay.site_accounts s JOIN txrelay.accounts a USING (account)
    JOIN txrelay.leadership l ON l.subject = s.account
    JOIN txrelay.site_peers me ON me.account = s.account AND me.member = s.self
    LEFT JOIN txrelay.site_peers c ON c.account = s.account AND c.member = s.coordinator
    CROSS JOIN LATERAL (SELECT l.holder IS NOT NULL AND l.epoch = s.noted_epoch AS now) n;

-- One row per site of an account. away: as this site's leader sees it.
CREATE OR REPLACE VIEW txrelay.site_members AS
    SELECT a.alias AS account, m.member, m.name AS site, m.member = s.self AS self, m.address,
           '0x' || encode(m.key, 'hex') AS key, m.next_nonce, m.down AS away,
           l.holder IS NOT NULL AND l.epoch = s.noted_epoch
           AND m.member = s.coordinator AS coordinates
    FROM txrelay.site_peers m JOIN txrelay.site_accounts s USING (account) JOIN txrelay.accounts a
        USING (account)
    JOIN txrelay.leadership l ON l.subject = m.account;
