-- txrelay: who enqueued a transaction, who may use an account, and how much may wait.

-- role: the role that a transaction belongs to, NULL where that is its creator. It is the login, or
-- the role that the session had chosen with SET ROLE; no argument of a function sets it.
ALTER TABLE txrelay.outbox ADD COLUMN role text;
ALTER TABLE txrelay.outbox_presigned ADD COLUMN role text;
ALTER TABLE txrelay.pending_transactions ADD COLUMN role text;

-- users: the roles that may enqueue, NULL: every member of txrelay_app. careful: enqueue has more to
-- check than its one statement does (users, order, outbox_max, keys from before this migration).
ALTER TABLE txrelay.accounts ADD COLUMN users text[], ADD COLUMN careful boolean NOT NULL DEFAULT false;

-- Each role has idempotency keys of its own. Those with an empty role hold for every role: the bytes
-- of presigned transactions, and keys from before this migration.
ALTER TABLE txrelay.idempotency_keys ADD COLUMN role text NOT NULL DEFAULT '';
ALTER TABLE txrelay.idempotency_keys DROP CONSTRAINT idempotency_keys_pkey, ADD PRIMARY KEY (account, role, key);
UPDATE txrelay.accounts a SET careful = true
    WHERE a.policy ->> 'order' = 'strict' OR EXISTS (SELECT FROM txrelay.idempotency_keys k WHERE k.account = a.account);

-- Roles that have more transactions waiting at an account than outbox_max. A row commits together with
-- the transaction that was one too many.
CREATE TABLE txrelay.outbox_full (
    account int NOT NULL,
    role    text NOT NULL,
    PRIMARY KEY (account, role)
);

-- New accounts begin with narrow bounds for applications (04_policy.sql). Those that exist keep what
-- they allowed.
UPDATE txrelay.accounts a SET policy = '{"tip_cap": "340282366920938463463374607431768211455", "priority_max": 1000}' || a.policy;

-- A time that is not finite meant none.
UPDATE txrelay.outbox SET deadline = NULL WHERE NOT isfinite(deadline);
UPDATE txrelay.outbox SET not_before = NULL WHERE NOT isfinite(not_before);
UPDATE txrelay.pending_transactions SET deadline = NULL WHERE NOT isfinite(deadline);
