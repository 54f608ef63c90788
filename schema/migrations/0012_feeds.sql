-- txrelay: feeds: numbered batches of calls that redundant publishers stream, each taken exactly once.

-- One row per feed. last_number is the cursor: the number of the last batch that was taken, -1 before the
-- first one. Only the statement of leader_feed_take moves it, from N - 1 to N. publishers: ed25519 public
-- keys; a publisher is known by its place in the array. paused_reason: NULL while batches are taken.
CREATE TABLE txrelay.feeds (
    name          text PRIMARY KEY,
    account       int NOT NULL,
    last_number   bigint NOT NULL DEFAULT -1 CHECK (last_number >= -1),
    publishers    bytea[] NOT NULL,
    options       jsonb NOT NULL DEFAULT '{}',
    paused_reason text,
    taken_at      timestamptz, -- the last batch
    created_by    text NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX feeds_account ON txrelay.feeds (account);

-- What was taken, and of whom. Rows leave by leader_cleanup.
CREATE TABLE txrelay.feed_batches (
    feed      text NOT NULL,
    number    bigint NOT NULL,
    publisher bytea NOT NULL,
    digest    bytea NOT NULL, -- SHA-256 over the items
    calls     int NOT NULL,
    first_id  bigint, -- of its transactions; NULL: it has no calls, or all of them were enqueued before
    last_id   bigint,
    taken_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (feed, number)
);

-- Where each relay takes feeds, so that a relay that does not lead an account can name the one that does.
CREATE TABLE txrelay.feed_servers (
    holder  text PRIMARY KEY, -- as in leadership
    address text NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
