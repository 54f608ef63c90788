-- txrelay: webhooks: the ends of transactions, posted to URLs.

-- One row per webhook. Its secret is not here: relays derive it from their key file, the name and
-- the salt. salt_before: the one that a rotation replaced, whose signature is sent too for a day.
CREATE TABLE txrelay.webhooks (
    name        text PRIMARY KEY CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    url         text NOT NULL CHECK (octet_length(url) <= 2000),
    accounts    int[],              -- NULL: all
    outcomes    text[],             -- NULL: all
    salt        bytea NOT NULL CHECK (octet_length(salt) = 16),
    salt_before bytea CHECK (octet_length(salt_before) = 16),
    rotated_at  timestamptz,
    paused      boolean NOT NULL DEFAULT false,
    created_by  text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- How far ends were looked at (one row): every one before this time has its deliveries. A session
-- that looks locks the row.
CREATE TABLE txrelay.webhook_position (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    read_to  timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 10);
INSERT INTO txrelay.webhook_position DEFAULT VALUES;

-- What is to be delivered: a row for each webhook that wants an end. It leaves when a receiver has
-- taken it. The numbers of an account ascend in the order in which its transactions ended.
CREATE TABLE txrelay.webhook_deliveries (
    number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook    text NOT NULL REFERENCES txrelay.webhooks ON DELETE CASCADE,
    account    int NOT NULL,
    id         bigint NOT NULL,
    body       text NOT NULL,       -- the same at each attempt
    attempts   int NOT NULL DEFAULT 0,
    due_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    dead_at    timestamptz,         -- given up; NULL: not
    error      text,                -- of the last attempt
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX webhook_deliveries_live ON txrelay.webhook_deliveries (webhook, account, number)
    WHERE dead_at IS NULL;
CREATE INDEX webhook_deliveries_dead ON txrelay.webhook_deliveries (webhook, number)
    WHERE dead_at IS NOT NULL;
