-- txrelay: who may use the HTTP interface, and what operators did through it.

-- A token is 256 random bits that its bearer shows; its SHA-256 is kept, so that a reader of this table cannot use it.
CREATE TABLE txrelay.tokens (
    name       text PRIMARY KEY CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$'),
    hash       bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    scopes     text[] NOT NULL CHECK (scopes <@ ARRAY['read', 'enqueue', 'operate'] AND cardinality(scopes) > 0),
    accounts   int[], -- that the scope enqueue is good for; NULL: all
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz, -- NULL: never
    revoked_by text,
    revoked_at timestamptz
);

-- What operators did: one row each, written in the transaction that did it.
CREATE TABLE txrelay.operations (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    who         text NOT NULL, -- the token
    login       text NOT NULL, -- of the relay that did it
    action      text NOT NULL,
    transaction bigint,
    account     int,
    arguments   jsonb NOT NULL,
    before      jsonb,
    after       jsonb,
    answer      text
);
