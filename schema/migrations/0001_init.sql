-- txrelay 0001: the schema, the roles, types, tables, indexes.
--
-- txrelay migrate runs this file once, inside one transaction; psql runs it as it is. Functions, views, triggers and rights are in
-- schema/functions, and are applied again at each version.

CREATE SCHEMA txrelay;

-- Roles belong to the cluster, not to the database: another database's migration may create them at this very
-- moment, so "exists already" is success in both of its shapes (seen before the insert, or lost the race for the
-- unique index). An installer without CREATEROLE can go on when an administrator created the roles before.
DO $roles$
DECLARE
    v_role text;
BEGIN
    FOREACH v_role IN ARRAY ARRAY['txrelay_app', 'txrelay_relay', 'txrelay_follower'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = v_role);
        BEGIN
            EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', v_role);
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN NULL;
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION USING
                    ERRCODE = 'insufficient_privilege',
                    MESSAGE = pg_catalog.format('role %s does not exist and user %s may not create roles',
                                                v_role, current_user),
                    HINT = pg_catalog.format('Let an administrator run: CREATE ROLE txrelay_app NOLOGIN; '
                        'CREATE ROLE txrelay_relay NOLOGIN; CREATE ROLE txrelay_follower NOLOGIN; or: ALTER ROLE %I '
                        'CREATEROLE; then migrate again.',
                        current_user);
        END;
    END LOOP;
END
$roles$;

CREATE TABLE txrelay.schema_version (
    version    int PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL, -- SHA-256 of the file
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What txrelay migrate applied last of schema/functions (one row): the checksum of the files, and the digest of what they made
-- (store/sql/schema_digest.sql). A relay leads only where both are as it expects them.
CREATE TABLE txrelay.schema_functions (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    checksum   text NOT NULL,
    digest     text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Substrate's own names for what a node says about an extrinsic; 'signed' is ours: the bytes are stored and no
-- node has said anything about them yet.
CREATE TYPE txrelay.tx_state AS ENUM ('signed', 'future', 'ready', 'broadcast', 'in_block', 'retracted',
    'finality_timeout', 'finalized', 'usurped', 'dropped', 'invalid');

-- How a transaction ended.
CREATE TYPE txrelay.tx_outcome AS ENUM ('ok', 'dispatch_error', 'expired', 'cancelled', 'failed', 'usurped');

-- What became of one signed extrinsic. unknown: it may have been sent, nobody knows. superseded: another attempt
-- at the same nonce was included.
CREATE TYPE txrelay.attempt_outcome AS ENUM ('live', 'unknown', 'included', 'replaced', 'dropped', 'invalid',
    'usurped', 'superseded');

-- What leader_snapshot returns of the other attempts at a nonce.
CREATE TYPE txrelay.earlier_attempts AS (hashes bytea[], own int, death bigint);

-- One row a signing account: the unit of order, nonces and leadership. Rows are never deleted, which is why no other table
-- needs a foreign key to it: the key's FOR KEY SHARE on this one hot row would be paid by every enqueue.
CREATE TABLE txrelay.accounts (
    account          int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    alias            text NOT NULL UNIQUE,
    account_id       bytea NOT NULL,
    scheme           text NOT NULL,
    genesis          bytea NOT NULL,
    address          text NOT NULL,
    lock_key         bigint NOT NULL UNIQUE,
    watch_only       boolean NOT NULL DEFAULT false, -- its relays have no key: only what is signed elsewhere goes out
    claimant         text,
    claimant_address text,
    lock_held        boolean NOT NULL DEFAULT false, -- the claim was made by the session that holds the lock
    lock_pid         int,                            -- that session's backend, for leader_evict
    epoch            bigint NOT NULL DEFAULT 0,
    expiry_1         timestamptz, -- these three are the claim's; claim_times adds the lease
    expiry_2         timestamptz,
    heartbeat        timestamptz,
    leased           boolean NOT NULL DEFAULT false, -- the claim goes on with the lease of its holder
    next_nonce       bigint, -- NULL: not known yet
    -- What finalized blocks used for good, by the records: every nonce below the one, up to the other. Kept here and
    -- not asked from the records: those of a former life lie among them, and leave with their partitions.
    used_nonce       bigint,
    used_block       bigint,
    -- The finalized block that the leader knew at its last admission, or an earlier one at its last renewal (the lease has
    -- that of the present one). Commits that a failover loses come after the last one that it kept, so what they sent is in
    -- later blocks: reconcile_from, until a leader has looked there.
    timeline         int,         -- of the database at the claim: another one says that commits may be lost
    seen_block       bigint,
    reconcile_from   bigint,
    life_since       timestamptz, -- NULL: its first life; else nothing from before says anything about its nonces
    reborn           boolean NOT NULL DEFAULT false, -- an operator ordered a reaped account to go on
    transaction_version bigint,   -- the one that calls may be signed under; NULL: that of the next admission
    paused           boolean NOT NULL DEFAULT false,
    paused_by        text,
    paused_reason    text,
    paused_since     timestamptz,
    hold             text, -- why the leader wants a pause
    policy           jsonb NOT NULL DEFAULT '{}',
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK (next_nonce >= 0),      -- and what accounts_check says
    UNIQUE (account_id, genesis)  -- in this order also for who names an account by its id
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX accounts_address ON txrelay.accounts (address);
CREATE INDEX accounts_claimant ON txrelay.accounts (claimant) WHERE claimant IS NOT NULL; -- what a relay leads

-- One row a relay that leads: what its renewals write, for all of its accounts at once. Accounts that it was given since its
-- last renewal, and ones that it gave up without being able to say so, are not leased: they have their own times.
CREATE TABLE txrelay.leases (
    holder     text PRIMARY KEY CHECK (octet_length(holder) BETWEEN 1 AND 500),
    heartbeat  timestamptz NOT NULL,
    expiry_1   timestamptz NOT NULL,
    expiry_2   timestamptz NOT NULL CHECK (expiry_2 >= expiry_1),
    seen_block bigint -- as in accounts
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);

-- One id a transaction, from enqueue to its end. CACHE stays 1: with a cache, an enqueue that begins after
-- another one's commit could draw the lower id and overtake it.
CREATE SEQUENCE txrelay.transaction_id AS bigint CACHE 1;

-- Transactions without a nonce. Written once, deleted once; only bump changes one in between.
CREATE TABLE txrelay.outbox (
    id         bigint PRIMARY KEY DEFAULT nextval('txrelay.transaction_id'),
    account    int NOT NULL,
    call       bytea NOT NULL,
    key        text,
    creator    text,
    priority   int NOT NULL DEFAULT 0,
    not_before timestamptz,
    deadline   timestamptz,
    guard      bigint, -- the only runtime spec version under which the call may be signed
    tip        numeric(39, 0), -- in the chain's smallest unit, as are all amounts; NULL: the account's policy
    max_tip    numeric(39, 0),
    deadline_block bigint,     -- the last block that may hold it
    retries    int NOT NULL DEFAULT 0, -- dispatch errors after which it is tried again
    attempts   int NOT NULL DEFAULT 0, -- made before it came back here from a nonce that was lost
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0.05,
        autovacuum_vacuum_cost_delay = 0);
-- Two narrow orders: rows that wait for their time must not stand in the way of those that do not.
CREATE INDEX outbox_order ON txrelay.outbox (account, priority DESC, id) WHERE not_before IS NULL;
CREATE INDEX outbox_later ON txrelay.outbox (account, not_before) WHERE not_before IS NOT NULL;
CREATE INDEX outbox_deadline ON txrelay.outbox (account, deadline) WHERE deadline IS NOT NULL;

-- Whole extrinsics that were signed elsewhere (enqueue_signed). A table of its own: their nonces are given, and what waits for its
-- turn must not stand in the way of calls. nonce, hash, era_death: as a leader read them, NULL before. A row that was read
-- is looked at again when its nonce's turn has come, its era is over, or wait_block is final.
CREATE TABLE txrelay.outbox_signed (
    id         bigint PRIMARY KEY DEFAULT nextval('txrelay.transaction_id'),
    account    int NOT NULL,
    extrinsic  bytea NOT NULL CHECK (octet_length(extrinsic) > 0),
    key        text CHECK (octet_length(key) BETWEEN 1 AND 200),
    creator    text CHECK (octet_length(creator) <= 200),
    nonce      bigint CHECK (nonce >= 0),
    hash       bytea CHECK (octet_length(hash) = 32),
    era_death  bigint,
    wait_block bigint,
    waits      text,        -- for what, for people
    waits_since timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX outbox_signed_nonce ON txrelay.outbox_signed (account, nonce, id);

-- Own table, because a finished transaction moves between partitions and a unique key there must hold their key.
CREATE TABLE txrelay.idempotency_keys (
    account        int NOT NULL,
    key            text NOT NULL,
    id             bigint NOT NULL,
    payload_sha256 bytea NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (account, key)
);

-- A nonce in use. Only the leader's functions write here. No index on state, on purpose: it would make every status
-- update a non-HOT one (measured: 0 of 1,000 HOT with it, 1,000 of 1,000 without). The fillfactor leaves room for one
-- new version of every row: statuses come for a whole window at a time.
CREATE TABLE txrelay.pending_transactions (
    account      int NOT NULL,
    nonce        bigint NOT NULL CHECK (nonce >= 0),
    account_id   bytea NOT NULL,        -- copied, so that the triggers look nothing up
    id           bigint,                -- NULL: a filler, no application asked for it
    call         bytea NOT NULL,
    hash         bytea NOT NULL CHECK (octet_length(hash) = 32), -- of the current attempt
    attempt      int NOT NULL,          -- number of the current attempt at this nonce
    attempts     int NOT NULL,          -- attempts made for this transaction, at whatever nonce
    state        txrelay.tx_state NOT NULL,
    unknown      boolean NOT NULL DEFAULT false, -- whether the node has the current attempt is not known
    block_hash   bytea CHECK (octet_length(block_hash) = 32),
    block_number bigint,
    error        text,
    epoch        bigint NOT NULL,       -- of the last writer
    key          text,
    creator      text,
    priority     int NOT NULL DEFAULT 0,
    deadline     timestamptz,
    guard        bigint,
    tip          numeric(39, 0),        -- asked for; what an attempt pays is in attempts
    max_tip      numeric(39, 0),
    deadline_block bigint,
    retries      int NOT NULL DEFAULT 0,
    stop_outcome txrelay.tx_outcome,    -- how it ends if one of its filler attempts gets in
    stop_reason  text,
    signed       boolean NOT NULL DEFAULT false, -- elsewhere: the relay signs nothing of its own call
    blocked_since timestamptz,          -- refused by a node since then, and nothing better was heard
    created_at   timestamptz NOT NULL,  -- enqueued
    admitted_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    in_block_at  timestamptz,           -- first time
    updated_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (account, nonce)
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX pending_transactions_id ON txrelay.pending_transactions (id);
-- A deadline never changes, so this index keeps status updates HOT.
CREATE INDEX pending_transactions_deadline ON txrelay.pending_transactions (account, deadline)
    WHERE deadline IS NOT NULL;

-- Who asked to cancel a transaction that has a nonce. A table of its own: an application that wrote to the pending row
-- would wait for its leader, and move the row away under the leader's batch. leader_look reads it and removes what has
-- ended.
CREATE TABLE txrelay.cancellations (
    id         bigint PRIMARY KEY,
    account    int NOT NULL,
    asked_by   text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX cancellations_account ON txrelay.cancellations (account);

-- Who asked for a higher tip. The same, and also for transactions that still wait in the outbox: an admission that is
-- under way may have read them with the lower one. leader_look removes what is paid or has ended.
CREATE TABLE txrelay.bumps (
    id         bigint PRIMARY KEY,
    account    int NOT NULL,
    tip        numeric(39, 0) NOT NULL,
    asked_by   text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX bumps_account ON txrelay.bumps (account);

-- Every signed extrinsic that was ever allowed to leave. state, block and error are what was last heard of it once
-- it is no longer the current one; the current one's are in pending_transactions.
CREATE TABLE txrelay.attempts (
    account             int NOT NULL,
    nonce               bigint NOT NULL,
    number              int NOT NULL,
    id                  bigint,
    hash                bytea NOT NULL CHECK (octet_length(hash) = 32),
    extrinsic           bytea NOT NULL CHECK (octet_length(extrinsic) > 0),
    tip                 numeric(39, 0) NOT NULL CHECK (tip >= 0),
    era_birth           bigint, -- both NULL: immortal
    era_death           bigint,
    spec_version        bigint NOT NULL,
    transaction_version bigint NOT NULL,
    block               bigint NOT NULL, -- finalized height when it was signed
    filler              int CHECK (filler > 0), -- it ends with a filler's call of so many bytes, not with the row's own
    epoch               bigint NOT NULL,
    outcome             txrelay.attempt_outcome NOT NULL DEFAULT 'live',
    state               txrelay.tx_state,
    block_hash          bytea,
    block_number        bigint,
    reason              text,
    error               text,
    error_at            timestamptz,
    created_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at            timestamptz,
    PRIMARY KEY (account, nonce, number)
) WITH (fillfactor = 50, -- each row is written once more, at its end: on its page, without its index
         autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- What nodes had against an attempt: one row a text, however often it was said.
CREATE TABLE txrelay.refusals (
    account  int NOT NULL,
    nonce    bigint NOT NULL,
    number   int NOT NULL,
    error    text NOT NULL CHECK (length(error) <= 500), -- fits an index entry in any script
    count    int NOT NULL,
    first_at timestamptz NOT NULL,
    last_at  timestamptz NOT NULL,
    PRIMARY KEY (account, nonce, number, error)
) WITH (fillfactor = 70);

-- The ends. Rows never change (trigger finished_stays); they leave only with their whole partition. One end for one id
-- follows from where they come from: a row of outbox or pending_transactions that is deleted in the same statement.
CREATE TABLE txrelay.finished_transactions (
    id              bigint,  -- NULL: filler, or the record of a nonce whose transaction got another one
    requeued        bigint,  -- that transaction
    account         int NOT NULL,
    nonce           bigint,  -- NULL: ended without one
    hash            bytea,   -- of the attempt that was included, or of the last one
    block_hash      bytea,
    block_number    bigint,
    extrinsic_index int,
    state           txrelay.tx_state, -- last known; finalized where the chain decided
    outcome         txrelay.tx_outcome NOT NULL,
    error           text,
    fee             numeric(39, 0),
    attempts        int NOT NULL DEFAULT 0,
    epoch           bigint,
    key             text,
    creator         text,
    call            bytea,   -- kept where it did not end well, so that it can be enqueued again
    created_at      timestamptz NOT NULL,
    admitted_at     timestamptz,
    in_block_at     timestamptz,
    finished_at     timestamptz NOT NULL DEFAULT clock_timestamp()
) PARTITION BY RANGE (finished_at);
CREATE INDEX finished_transactions_id ON txrelay.finished_transactions (id);
-- Readers that come back ask what ended since they were away.
CREATE INDEX finished_transactions_time ON txrelay.finished_transactions USING brin (finished_at);
CREATE INDEX finished_transactions_nonce ON txrelay.finished_transactions (account, nonce);
CREATE INDEX finished_transactions_requeued ON txrelay.finished_transactions (requeued) WHERE requeued IS NOT NULL;
-- Catches what no partition covers; ensure_partitions() moves it out again.
CREATE TABLE txrelay.finished_transactions_default PARTITION OF txrelay.finished_transactions DEFAULT;

-- The server has one notification queue, of 8 GiB, for all databases, and keeps what the slowest listener has not read:
-- one that sits in a transaction fills it for everybody, and a commit that notifies fails when it is full. Whatever is
-- told here is found without as well, by polls and scans. So from a quarter on nobody is told anything; the rest is the
-- room for transactions that stay open. Relays look (queue_look) and leave what they saw here: to ask for the usage may
-- mean to remove the files that were read at last, which is not a writer's to wait for.
CREATE TABLE txrelay.notify_queue (
    one  boolean PRIMARY KEY DEFAULT true CHECK (one),
    shut boolean NOT NULL DEFAULT false
) WITH (fillfactor = 10);
INSERT INTO txrelay.notify_queue DEFAULT VALUES;

-- The relays that live, and how far they see: nothing that must hold depends on this table alone. serves: a digest of the
-- accounts that the relay leads or follows; relays that serve others are no members to each other.
CREATE TABLE txrelay.members (
    holder    text PRIMARY KEY CHECK (octet_length(holder) BETWEEN 1 AND 500),
    address   text CHECK (octet_length(address) <= 300),
    serves    bigint NOT NULL,
    pid       int, -- of its lock session, which ends with it
    best      bigint, -- the highest block that it heard of, final or not: a node that is behind it knows less than others
    heartbeat timestamptz NOT NULL
);

-- What retention took: who goes on from an older position is told that it may have missed something.
CREATE TABLE txrelay.retention (
    one            boolean PRIMARY KEY DEFAULT true CHECK (one),
    dropped_before timestamptz NOT NULL
);
-- Of an expression that nobody else asks for: who looks for a key must not find it as good as the key's own.
CREATE INDEX idempotency_keys_age ON txrelay.idempotency_keys ((account::bigint), created_at);
