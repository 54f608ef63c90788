-- txrelay: who may use the HTTP interface, what operators did, and who led when.

-- A token is 256 random bits that its bearer shows; its SHA-256 is kept, so that a reader of this
-- table cannot use it.
CREATE TABLE txrelay.tokens (
    name       text PRIMARY KEY CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$'),
    hash       bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    scopes     text[] NOT NULL CHECK (scopes <@ ARRAY['read', 'enqueue', 'operate']
                                      AND cardinality(scopes) > 0),
    accounts   int[], -- that the scope enqueue is good for; NULL: all
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz, -- NULL: never
    revoked_by text,
    revoked_at timestamptz
);

-- What operators did, over HTTP, with a command or with SQL: one row each, written in the
-- transaction that did it.
CREATE TABLE txrelay.operations (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    who         text NOT NULL, -- the token, or else the login
    login       text NOT NULL, -- of the session
    via         text NOT NULL, -- its application_name
    action      text NOT NULL,
    transaction bigint,        -- the subject: one of these three
    account     int,
    subject     text,          -- the name of a feed, token, webhook or relay
    arguments   jsonb NOT NULL,
    before      jsonb,
    after       jsonb,
    answer      text
);
CREATE INDEX operations_at ON txrelay.operations (at);

-- Who led which subject, from when: a row for each claim. A claim removes the row of 64 epochs
-- before.
CREATE TABLE txrelay.leadership_history (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subject int NOT NULL,
    epoch   bigint NOT NULL,
    holder  text NOT NULL,
    address text,
    at      timestamptz NOT NULL
);
CREATE INDEX leadership_history_subject ON txrelay.leadership_history (subject, epoch);

-- What people look for among ends: a key, and what did not go well.
CREATE INDEX finished_transactions_key ON txrelay.finished_transactions (key) WHERE key IS NOT NULL;
CREATE INDEX finished_transactions_bad ON txrelay.finished_transactions (id) WHERE outcome <> 'ok';

-- Up to which id a role may go on at an account before what waits there is counted again. most: the
-- bound that the count compared with; id: the transaction with which it was made. The table
-- outbox_full said who must stop, and a role that rolled its row back went on. It stays, because a
-- call that is under way may still read it.
CREATE TABLE txrelay.outbox_room (
    account int NOT NULL,
    role    text NOT NULL,
    most    bigint NOT NULL,
    until   bigint NOT NULL,
    id      bigint NOT NULL,
    PRIMARY KEY (account, role, most, until, id)
);

-- Accounts whose transactions nodes refuse are found without a look at the others (05_blocked.sql).
-- The cast keeps this index out of lookups by account.
CREATE INDEX pending_transactions_blocked ON txrelay.pending_transactions ((account::bigint))
    WHERE blocked_since IS NOT NULL;

-- The row that a writer of an account with order: strict holds until its commit. It was an advisory
-- lock, which any login can take. The lock of outbox_full waits for all calls that may still hold
-- such a one.
LOCK TABLE txrelay.outbox_full IN ACCESS EXCLUSIVE MODE;
CREATE TABLE txrelay.strict_turns (account int PRIMARY KEY);
INSERT INTO txrelay.strict_turns (account) SELECT a.account FROM txrelay.accounts a
    WHERE a.policy ->> 'order' = 'strict';
