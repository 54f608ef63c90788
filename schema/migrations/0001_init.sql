-- txrelay 0001: the schema, types, tables, indexes.
--
-- txrelay migrate runs this file once, inside one transaction. Functions, views, triggers and
-- rights are in schema/functions and are applied again at each version.

CREATE SCHEMA txrelay;

CREATE TABLE txrelay.schema_version (
    version    int PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL, -- SHA-256 of the file
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What txrelay migrate applied last of schema/functions (one row): the checksum of the files, and a
-- digest of what they made (store/sql/check_schema.sql). A relay compares both before it leads.
CREATE TABLE txrelay.schema_functions (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    checksum   text NOT NULL,
    digest     text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Substrate's names for what a node reports about an extrinsic, and 'signed', which is ours: the
-- bytes are stored and no node has reported anything yet.
CREATE TYPE txrelay.tx_state AS ENUM ('signed', 'future', 'ready', 'broadcast', 'in_block', 'retracted',
    'finality_timeout', 'finalized', 'usurped', 'dropped', 'invalid');

-- How a transaction ended.
CREATE TYPE txrelay.tx_outcome AS ENUM ('ok', 'dispatch_error', 'expired', 'cancelled', 'failed', 'usurped');

-- What became of one attempt. unknown: nobody knows whether it was sent. superseded: another
-- attempt at the same nonce was included.
CREATE TYPE txrelay.attempt_outcome AS ENUM ('live', 'unknown', 'included', 'replaced', 'dropped', 'invalid',
    'usurped', 'superseded');

-- The other attempts at a nonce, as leader_snapshot returns them.
CREATE TYPE txrelay.earlier_attempts AS (hashes bytea[], own int, death bigint);

-- Who leads a subject. A subject is what one relay at a time may act for: a signing account now, a
-- feed or a site later. The functions of leadership read and write this table and need no row of
-- another one. All kinds share one series of numbers, and the number of an account is that of its
-- subject. A transaction that locks both rows locks this one first. Rows are never deleted.
CREATE TABLE txrelay.leadership (
    subject        int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind           text NOT NULL CHECK (octet_length(kind) BETWEEN 1 AND 40), -- 'account'
    lock_key       bigint NOT NULL UNIQUE,
    holder         text, -- the relay that claims it; NULL: nobody
    holder_address text,
    lock_held      boolean NOT NULL DEFAULT false, -- the claim was made by the session that holds the lock
    lock_pid       int,                            -- that session's backend, for leader_evict
    epoch          bigint NOT NULL DEFAULT 0,
    expiry_1       timestamptz, -- these three are the claim's; claim_times adds the lease
    expiry_2       timestamptz,
    heartbeat      timestamptz,
    leased         boolean NOT NULL DEFAULT false, -- the claim goes on with the lease of its holder
    timeline       int, -- of the database at the claim; if it changes, commits may be lost
    -- A finalized block that the holder of a lease knew when the subject left the lease. Until then
    -- the lease has that of the last renewal.
    seen_block     bigint,
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT leadership_claim CHECK (holder IS NULL OR (expiry_2 >= expiry_1 AND heartbeat IS NOT NULL) IS TRUE)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX leadership_holder ON txrelay.leadership (holder) WHERE holder IS NOT NULL; -- finds what a relay leads

-- One row per leading relay. A renewal writes it for all subjects of the relay at once. Subjects
-- that the relay claimed since its last renewal, or gave up without a release, are not leased: they
-- have times of their own.
CREATE TABLE txrelay.relay_leases (
    holder     text PRIMARY KEY CHECK (octet_length(holder) BETWEEN 1 AND 500),
    heartbeat  timestamptz NOT NULL,
    expiry_1   timestamptz NOT NULL,
    expiry_2   timestamptz NOT NULL CHECK (expiry_2 >= expiry_1),
    seen_block bigint -- the highest finalized block that the relay knew at a renewal
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);

-- One row per signing account: the unit of order and nonces, and a subject of leadership. Rows are
-- never deleted, so no table of transactions needs a foreign key to it; every enqueue would pay for
-- its FOR KEY SHARE on this hot row.
CREATE TABLE txrelay.accounts (
    account          int PRIMARY KEY REFERENCES txrelay.leadership, -- its subject's number
    alias            text NOT NULL UNIQUE,
    account_id       bytea NOT NULL,
    scheme           text NOT NULL,
    genesis          bytea NOT NULL,
    address          text NOT NULL,
    watch_only       boolean NOT NULL DEFAULT false, -- its relays have no key and submit presigned transactions only
    next_nonce       bigint, -- NULL: not known yet
    -- The nonces that finalized blocks have used: every nonce below used_nonce, as of block
    -- used_block. Stored here because the records also contain those of a former life, and leave
    -- with their partitions.
    used_nonce       bigint,
    used_block       bigint,
    -- seen_block: a finalized block that the leader knew at its last admission; leadership and
    -- relay_leases have those of renewals. A failover loses commits after the last one that it
    -- keeps, so what they submitted is in later blocks: from reconcile_from on, until a leader has
    -- searched them.
    seen_block       bigint,
    reconcile_from   bigint,
    life_since       timestamptz, -- NULL: its first life; records from before do not count for its nonces
    reborn           boolean NOT NULL DEFAULT false, -- an operator ordered a reaped account to go on
    transaction_version bigint,   -- calls are signed under this one only; NULL: under that of the next admission
    paused           boolean NOT NULL DEFAULT false,
    paused_by        text,
    paused_reason    text,
    paused_since     timestamptz,
    suspension             text, -- reason of the suspension
    policy           jsonb NOT NULL DEFAULT '{}',
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK (next_nonce >= 0),      -- accounts_check checks the rest
    UNIQUE (account_id, genesis)  -- in this order, to find an account by its id too
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX accounts_address ON txrelay.accounts (address);

-- One id per transaction, from enqueue to its end. CACHE stays 1: with a cache, an enqueue that
-- begins after another one's commit could draw a lower id and overtake it.
CREATE SEQUENCE txrelay.transaction_id AS bigint CACHE 1;

-- Transactions without a nonce. A row is written once and deleted once; only bump changes it in
-- between.
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
    retries    int NOT NULL DEFAULT 0, -- how many dispatch errors to retry
    attempts   int NOT NULL DEFAULT 0, -- made before it came back from a lost nonce
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0.05,
        autovacuum_vacuum_cost_delay = 0);
-- Two indexes, so that rows that wait for their time do not stand in the way of the others.
CREATE INDEX outbox_order ON txrelay.outbox (account, priority DESC, id) WHERE not_before IS NULL;
CREATE INDEX outbox_later ON txrelay.outbox (account, not_before) WHERE not_before IS NOT NULL;
CREATE INDEX outbox_deadline ON txrelay.outbox (account, deadline) WHERE deadline IS NOT NULL;

-- Presigned transactions. They have a table of their own because their nonces are given, and those
-- that wait for their turn must not stand in the way of calls. nonce, hash, era_death: as a leader
-- decoded them, NULL before. The leader decides again when the nonce's turn has come, the era is
-- over, or wait_block is final.
CREATE TABLE txrelay.outbox_presigned (
    id         bigint PRIMARY KEY DEFAULT nextval('txrelay.transaction_id'),
    account    int NOT NULL,
    extrinsic  bytea NOT NULL CHECK (octet_length(extrinsic) > 0),
    key        text CHECK (octet_length(key) BETWEEN 1 AND 200),
    creator    text CHECK (octet_length(creator) <= 200),
    nonce      bigint CHECK (nonce >= 0),
    hash       bytea CHECK (octet_length(hash) = 32),
    era_death  bigint,
    wait_block bigint,
    waits      text,        -- what it waits for, in words
    waits_since timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX outbox_signed_nonce ON txrelay.outbox_presigned (account, nonce, id);

-- A table of its own: a unique key on a partitioned table would have to contain the partition key.
CREATE TABLE txrelay.idempotency_keys (
    account        int NOT NULL,
    key            text NOT NULL,
    id             bigint NOT NULL,
    payload_sha256 bytea NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (account, key)
);

-- One row per nonce in use. Only the leader's functions write here. It has no index on state: with
-- one, 0 of 1,000 status updates were HOT, without it 1,000 of 1,000. The fillfactor leaves room
-- for one new version of every row, because statuses come for a whole window at a time.
CREATE TABLE txrelay.pending_transactions (
    account      int NOT NULL,
    nonce        bigint NOT NULL CHECK (nonce >= 0),
    account_id   bytea NOT NULL,        -- copied, so that triggers need no lookup
    id           bigint,                -- NULL: a filler
    call         bytea NOT NULL,
    hash         bytea NOT NULL CHECK (octet_length(hash) = 32), -- of the current attempt
    attempt      int NOT NULL,          -- number of the current attempt at this nonce
    attempts     int NOT NULL,          -- attempts made for this transaction, at whatever nonce
    state        txrelay.tx_state NOT NULL,
    unknown      boolean NOT NULL DEFAULT false, -- nobody knows whether a node has the current attempt
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
    signed       boolean NOT NULL DEFAULT false, -- presigned: the relay never signs its call
    blocked_since timestamptz,          -- a node refused it, and none has reported better since
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

-- Requests to cancel transactions that have a nonce. A table of its own, because an application
-- that wrote to the pending row would wait for the leader and move the row away under the leader's
-- batch. leader_poll_requests reads it and removes what has ended.
CREATE TABLE txrelay.cancellations (
    id         bigint PRIMARY KEY,
    account    int NOT NULL,
    asked_by   text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX cancellations_account ON txrelay.cancellations (account);

-- Requests for a higher tip, for the same reason. They also exist for transactions in the outbox,
-- because an admission that is under way may have read the lower tip. leader_poll_requests removes what is
-- paid or has ended.
CREATE TABLE txrelay.bumps (
    id         bigint PRIMARY KEY,
    account    int NOT NULL,
    tip        numeric(39, 0) NOT NULL,
    asked_by   text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX bumps_account ON txrelay.bumps (account);

-- Every signed extrinsic that may have been submitted. For an attempt that is no longer current,
-- state, block and error are the last report; those of the current one are in pending_transactions.
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
    filler              int CHECK (filler > 0), -- length of the filler's call that it ends with; NULL: the row's own call
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
) WITH (fillfactor = 50, -- the one update of a row, at its end, stays on its page
         autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Refusals by nodes: one row for each attempt and text, with a count.
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

-- Final outcomes. Rows never change (trigger finished_stays) and leave only with their whole
-- partition. An id ends once, because the row comes from a row of an outbox or pending_transactions
-- that the same statement deletes.
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
    call            bytea,   -- kept unless it ended well, so that it can be enqueued again
    created_at      timestamptz NOT NULL,
    admitted_at     timestamptz,
    in_block_at     timestamptz,
    finished_at     timestamptz NOT NULL DEFAULT clock_timestamp()
) PARTITION BY RANGE (finished_at);
CREATE INDEX finished_transactions_id ON txrelay.finished_transactions (id);
-- For readers that catch up on what ended while they were away.
CREATE INDEX finished_transactions_time ON txrelay.finished_transactions USING brin (finished_at);
CREATE INDEX finished_transactions_nonce ON txrelay.finished_transactions (account, nonce);
CREATE INDEX finished_transactions_requeued ON txrelay.finished_transactions (requeued) WHERE requeued IS NOT NULL;
-- Holds rows that no partition covers, until ensure_partitions moves them.
CREATE TABLE txrelay.finished_transactions_default PARTITION OF txrelay.finished_transactions DEFAULT;

-- The server has one notification queue of 8 GiB for all databases. It keeps what the slowest
-- listener has not read, so one listener that stays in a transaction fills it for everybody, and a
-- commit that notifies fails when it is full. Polls and scans find everything without
-- notifications, so at 25 % usage we stop notifying; the rest is room for transactions that stay
-- open. Relays measure the usage (queue_measure) and store the result here, because measuring may
-- block on the removal of old queue files.
CREATE TABLE txrelay.notify_queue (
    one  boolean PRIMARY KEY DEFAULT true CHECK (one),
    shut boolean NOT NULL DEFAULT false
) WITH (fillfactor = 10);
INSERT INTO txrelay.notify_queue DEFAULT VALUES;

-- Live relays, and the highest block that each knows. No guarantee depends on this table alone.
-- serves: a digest of the accounts that the relay leads or follows; relays with different digests
-- are no members to each other.
CREATE TABLE txrelay.members (
    holder    text PRIMARY KEY CHECK (octet_length(holder) BETWEEN 1 AND 500),
    address   text CHECK (octet_length(address) <= 300),
    serves    bigint NOT NULL,
    pid       int, -- of its lock session, which ends with it
    best      bigint, -- the highest block that it knows, final or not; a node that is behind others knows less
    heartbeat timestamptz NOT NULL
);

-- What retention has removed: a reader that continues from an older position gets a gap reported.
CREATE TABLE txrelay.retention (
    one            boolean PRIMARY KEY DEFAULT true CHECK (one),
    dropped_before timestamptz NOT NULL
);
-- The cast keeps this index out of lookups by key: the planner must not find it as good as the
-- primary key.
CREATE INDEX idempotency_keys_age ON txrelay.idempotency_keys ((account::bigint), created_at);
