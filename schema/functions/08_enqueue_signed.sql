-- txrelay: enqueue_signed: presigned transactions.
--
-- These functions check what is certain without the chain's metadata: form, length, signer. The
-- leader decodes the rest. A presigned transaction has its nonce, tip and era already. The leader
-- submits it unchanged while it is valid and never signs it again. It admits the transaction when
-- the turn of its nonce comes, at a free nonce below the next one, or at a nonce that the chain has
-- used: then its own bytes may have used the nonce, and finalized blocks decide.

-- Returns the offset of the extrinsic's body, behind the length prefix; 0 if the prefix does not
-- match the length.
CREATE OR REPLACE FUNCTION txrelay.extrinsic_body(p_extrinsic bytea) RETURNS int
LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_mode int := get_byte(p_extrinsic, 0) & 3;
    v_prefix int := 1 << v_mode;
    v_length bigint := 0;
BEGIN
    IF v_mode = 3 OR octet_length(p_extrinsic) < v_prefix THEN
        RETURN 0;
    END IF;
    FOR i IN 0..v_prefix - 1 LOOP
        v_length := v_length | (get_byte(p_extrinsic, i)::bigint << (8 * i));
    END LOOP;
    RETURN CASE WHEN v_length >> 2 = octet_length(p_extrinsic) - v_prefix THEN v_prefix ELSE 0 END;
END
$$;

-- Returns the registered account that signed the extrinsic. The signer is MultiAddress::Id with 32
-- bytes, or a bare account id on chains without MultiAddress. p_name is the expected account; it is
-- needed if one key is registered for several chains.
CREATE OR REPLACE FUNCTION txrelay.signer_of(p_extrinsic bytea, p_body int, p_name text) RETURNS int
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp AS $$
DECLARE
    v_found int[];
    v_id bytea := substr(p_extrinsic, p_body + 3, 32);
    v_expected int := CASE WHEN p_name IS NOT NULL THEN account_of(p_name) END;
BEGIN
    SELECT array_agg(a.account ORDER BY a.account) INTO v_found FROM accounts a
        WHERE get_byte(p_extrinsic, p_body + 1) = 0 AND a.account_id = v_id
           OR a.account_id IN (substr(p_extrinsic, p_body + 2, 32),
                               substr(p_extrinsic, p_body + 2, 20));
    IF v_expected = ANY (v_found) OR v_expected IS NULL AND cardinality(v_found) = 1 THEN
        RETURN coalesce(v_expected, v_found[1]);
    ELSIF v_expected IS NOT NULL THEN
        PERFORM bad_argument('enqueue_signed', 'account',
            format('is "%s", and the extrinsic is signed by 0x%s',
            left(p_name, 80), encode(v_id, 'hex')),
            'Leave the account out, or name the one that signed.');
    ELSIF v_found IS NOT NULL THEN
        PERFORM bad_argument('enqueue_signed', 'extrinsic',
            'is signed by a key that is registered for several chains: '
            || (SELECT string_agg(a.alias, ', ' ORDER BY a.alias) FROM accounts a
                WHERE a.account = ANY (v_found)),
            'Name the account: account => alias.');
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'TR010',
            MESSAGE = format('no such account: the extrinsic is signed by 0x%s',
            encode(v_id, 'hex')),
        HINT = 'List it in the relays'' configuration, with its address and without a key_file '
               'where they have no key.';
END
$$;

-- As enqueue, for a presigned extrinsic. The same bytes are one transaction, with or without a key.
CREATE OR REPLACE FUNCTION txrelay.enqueue_signed(extrinsic bytea, key text DEFAULT NULL,
    creator text DEFAULT NULL, account text DEFAULT NULL, traceparent text DEFAULT NULL)
    RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, txrelay, pg_temp
    SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    v_body int;
    v_account int;
    v_sha bytea := sha256(extrinsic);
    v_new bigint;
    v_id bigint;
    v_full text;
    v_hint text;
BEGIN
    BEGIN
        v_new := new_id('enqueue_signed');
        IF octet_length(key) NOT BETWEEN 1 AND 200 THEN
            PERFORM bad_argument('enqueue_signed', 'key',
                format('has %s bytes; it must have 1 to 200', octet_length(key)),
                'Leave it out (NULL): the bytes are their own key; or use a hash of a longer one.');
        ELSIF octet_length(creator) > 200 THEN
            PERFORM bad_argument('enqueue_signed', 'creator',
                format('has %s bytes; at most 200', octet_length(creator)),
                'It names who asked; leave it out for the session''s user.');
        ELSIF size_fits(extrinsic) IS NOT TRUE THEN
            PERFORM bad_size('enqueue_signed', 'extrinsic', extrinsic,
                             'Pass the whole signed extrinsic.');
        ELSIF substr(extrinsic, 2, 1) = 'x' THEN
            PERFORM check_hex_text('enqueue_signed', 'extrinsic', extrinsic);
        END IF;
        PERFORM check_trace('enqueue_signed', traceparent);
        IF getdatabaseencoding() = 'SQL_ASCII' THEN
            PERFORM check_text('enqueue_signed', 'creator', creator),
                check_text('enqueue_signed', 'key', key);
        END IF;
        v_body := extrinsic_body(extrinsic);
        IF v_body = 0 THEN
            PERFORM bad_argument('enqueue_signed', 'extrinsic',
                format('does not begin with its length (%s bytes in all)',
                octet_length(extrinsic)),
                'Pass the whole signed extrinsic with the compact length in front, as '
                'author_submitExtrinsic takes it; a call goes to enqueue.');
        ELSIF octet_length(extrinsic) < v_body + 90 OR get_byte(extrinsic, v_body) <> 132 THEN
            PERFORM bad_argument('enqueue_signed', 'extrinsic', CASE
                WHEN get_byte(extrinsic, v_body) & 128 = 0
                THEN 'is not signed'
                ELSE format('is of form 0x%s, or too short', to_hex(get_byte(extrinsic, v_body)))
                END,
                'Signed extrinsics of format v4 are taken (0x84 behind the length).');
        END IF;
        v_account := signer_of(extrinsic, v_body, enqueue_signed.account);
        -- A used nonce is looked up in past blocks, where it may belong to the former life.
        IF EXISTS (SELECT FROM accounts a WHERE a.account = v_account AND a.life_since IS NOT NULL)
            THEN
            PERFORM bad_argument('enqueue_signed', 'extrinsic',
                format('is signed by 0x%s, an account that was reaped or rewound once',
                encode((SELECT a.account_id FROM accounts a WHERE a.account = v_account), 'hex')),
                'Blocks of its former life would be taken for this one''s. Use enqueue, or '
                'another account.');
        END IF;
        IF EXISTS (SELECT FROM accounts a WHERE a.account = v_account AND a.sited) THEN
            PERFORM bad_argument('enqueue_signed', 'account',
                format('is %s, which has sites: the one that coordinates gives the nonces',
                (SELECT a.alias FROM accounts a WHERE a.account = v_account)), 'Use enqueue.');
        END IF;
        PERFORM check_use('enqueue_signed', v_account);
    EXCEPTION WHEN SQLSTATE 'TR000' OR insufficient_privilege OR lock_not_available THEN
        GET STACKED DIAGNOSTICS v_hint = PG_EXCEPTION_HINT;
        RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = SQLERRM, HINT = v_hint;
    END;
    -- The bytes are a key too. It is stored first, so that the caller's key stands for the first
    -- transaction with these bytes.
    v_id := id_of_key(v_account, '', 'signed 0x' || encode(v_sha, 'hex'), v_new, v_sha);
    IF enqueue_signed.key IS NOT NULL THEN
        v_id := id_of_key(v_account, key_role(), enqueue_signed.key, v_id, v_sha);
        IF v_id < 0 THEN
            RAISE EXCEPTION USING ERRCODE = 'TR012',
                MESSAGE = key_reused_text(enqueue_signed.key, -v_id), HINT = key_reused_hint();
        END IF;
    END IF;
    IF v_id = v_new THEN
        INSERT INTO outbox_presigned (id, account, extrinsic, key, creator, role, traceparent)
            VALUES (v_id, v_account,
            enqueue_signed.extrinsic, enqueue_signed.key,
            coalesce(enqueue_signed.creator, session_user), stored_role(enqueue_signed.creator),
            enqueue_signed.traceparent);
        v_full := take_room('enqueue_signed', v_account,
            coalesce(stored_role(enqueue_signed.creator), enqueue_signed.creator,
            session_user), v_id, v_id, NOT is_operator());
        IF v_full IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'TR013', MESSAGE = v_full, HINT = full_hint();
        END IF;
        PERFORM ring(v_account);
    END IF;
    RETURN v_id;
END
$$;
