-- txrelay: what a transaction that ended without effect was enqueued with, so that it can be enqueued again.

-- role: as in pending_transactions. options: those that were given (finished_options in
-- functions/10_cancel.sql says which); NULL where none were, or where the transaction took effect.
ALTER TABLE txrelay.finished_transactions ADD COLUMN role text, ADD COLUMN options jsonb;

-- One row for each transaction that was retried: the record of its end never changes, so a table of its
-- own names the transaction that was enqueued in its place. Rows leave with the records.
CREATE TABLE txrelay.retries (
    id         bigint PRIMARY KEY, -- what ended
    new_id     bigint,
    asked_by   text NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX retries_new_id ON txrelay.retries (new_id);
