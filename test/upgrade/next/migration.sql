-- txrelay: the migration of a made-up next version (test/upgrade).

-- What a usual migration does: a column without a rewrite, a table of its own, a constraint that
-- holds for new rows.
ALTER TABLE txrelay.outbox ADD COLUMN next_note text;
ALTER TABLE txrelay.pending_transactions ADD COLUMN next_note text;
ALTER TABLE txrelay.finished_transactions ADD COLUMN next_note text;
ALTER TABLE txrelay.outbox ADD CONSTRAINT outbox_next_note CHECK
    (octet_length(next_note) <= 200) NOT VALID;
CREATE TABLE txrelay.next_notes (
    id   bigint PRIMARY KEY,
    note text NOT NULL
);
