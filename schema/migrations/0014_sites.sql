-- txrelay: sites: one account that several databases send through (docs/design.md, section 10).

-- sited: the account has sites. Then the functions of 22 to 24 write its transactions, and those of
-- managers refuse.
ALTER TABLE txrelay.accounts ADD COLUMN sited boolean NOT NULL DEFAULT false;

-- One row per account that has sites. final: the finalized block whose outcomes are on record.
-- wait_until: after lost commits nothing is granted before this block was read; 0: never. state to
-- noted_epoch: what the leader sees.
CREATE TABLE txrelay.site_accounts (
    account         int PRIMARY KEY,
    self            int NOT NULL,
    own_keys        boolean NOT NULL,
    sticky          boolean NOT NULL,
    silence_is_down boolean NOT NULL,
    range_blocks    int NOT NULL,
    era_blocks      int NOT NULL,
    approvals       int NOT NULL,
    final           bigint NOT NULL,
    wait_until      bigint NOT NULL DEFAULT 0,
    state           text,
    coordinator     int,    -- NULL: nobody
    since_height    bigint,
    reason          text,
    noted_at        timestamptz,
    noted_epoch     bigint
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);

-- The sites of an account, in the order that all of them have. next_nonce: of the member's key
-- after block final.
CREATE TABLE txrelay.site_peers (
    account    int NOT NULL,
    member     int NOT NULL,
    name       text NOT NULL,
    address    text NOT NULL,
    key        bytea NOT NULL,
    next_nonce bigint NOT NULL,
    down       boolean NOT NULL DEFAULT false, -- the leader considers it away
    PRIMARY KEY (account, member)
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);

-- Transactions of this site whose bytes were granted and may still be included. All bytes of a
-- transaction share one place (site_key, nonce), but two transactions may have bytes at one: two
-- coordinators propose what they see, and the chain takes one. So this is a table beside
-- pending_transactions, whose key is the nonce. The bytes are in attempts. A row whose bytes are
-- all dead goes back to the outbox.
CREATE TABLE txrelay.site_transactions (
    id           bigint PRIMARY KEY,
    account      int NOT NULL,
    account_id   bytea NOT NULL,  -- copied, so that triggers need no lookup
    nonce        bigint NOT NULL CHECK (nonce >= 0),
    site_key     int NOT NULL,    -- the member whose key signed
    hash         bytea NOT NULL CHECK (octet_length(hash) = 32), -- of the newest bytes
    attempt      int NOT NULL,    -- their number
    dies         bigint NOT NULL, -- the last block that can include any of its bytes
    coordinator  int NOT NULL,    -- who proposed the newest bytes
    attempts     int NOT NULL,
    state        txrelay.tx_state NOT NULL,
    block_hash   bytea CHECK (octet_length(block_hash) = 32),
    block_number bigint,
    error        text,
    epoch        bigint NOT NULL,
    call         bytea NOT NULL,
    key          text,
    creator      text,
    role         text,
    priority     int NOT NULL,
    deadline     timestamptz,
    guard        bigint,
    tip          numeric(39, 0),
    max_tip      numeric(39, 0),
    deadline_block bigint,
    retries      int NOT NULL,
    traceparent  text,
    created_at   timestamptz NOT NULL,
    admitted_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    in_block_at  timestamptz,
    updated_at   timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX site_transactions_nonce ON txrelay.site_transactions (account, nonce);

-- Grants are attempts: the member whose key signed (NULL: no grant), who proposed them, and when
-- that site said that it has dispatched them.
ALTER TABLE txrelay.attempts ADD COLUMN site_key int, ADD COLUMN coordinator int,
    ADD COLUMN noted_at timestamptz;

-- What this site dispatched as the coordinator, of any sender's, until it is used or dead. id below
-- 0: a filler. Those of this site's own transactions are grants too, and have their bytes in
-- attempts.
CREATE TABLE txrelay.site_dispatches (
    account       int NOT NULL,
    hash          bytea NOT NULL CHECK (octet_length(hash) = 32),
    sender        int NOT NULL,
    id            bigint NOT NULL,
    site_key      int NOT NULL,
    nonce         bigint NOT NULL CHECK (nonce >= 0),
    era_death     bigint NOT NULL,
    extrinsic     bytea,
    epoch         bigint NOT NULL,
    dispatched_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (account, hash)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);

-- The name of the site that coordinated it; NULL: the account had no sites.
ALTER TABLE txrelay.finished_transactions ADD COLUMN coordinator text;

-- One effect of the core of sites, as leader_site_store takes them.
CREATE TYPE txrelay.site_write AS (kind text, member int, id bigint, hash bytea, site_key int,
    nonce bigint, birth bigint, death bigint, extrinsic bytea, tip numeric, spec_version bigint,
    transaction_version bigint, outcome text, error text, block_hash bytea, number bigint,
    index int, fee numeric, n bigint);
