-- txrelay: what must hold after the data moved to another server.

-- One row that is carried with the data, whatever carries it. A logical copy has no sequences, and another
-- server has another clock. Relays keep it up to date with their heartbeats (19_moves.sql).
CREATE TABLE txrelay.high_water (
    one          boolean PRIMARY KEY DEFAULT true CHECK (one),
    highest_id   bigint NOT NULL DEFAULT 0,   -- ids up to this one were given
    reached      timestamptz NOT NULL DEFAULT 'epoch', -- the steady clock has shown this time
    clock_offset interval NOT NULL DEFAULT '0' CHECK (clock_offset >= '0')  -- by which it is ahead of the server's
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);
INSERT INTO txrelay.high_water DEFAULT VALUES;

-- Where a publication has all tables, rows of a table without an identity cannot be deleted. Rows of
-- finished_transactions leave its default partition when their month gets a partition.
DO $identity$
DECLARE
    v_table regclass;
BEGIN
    FOR v_table IN SELECT 'txrelay.finished_transactions'::regclass UNION ALL
            SELECT i.inhrelid::regclass FROM pg_catalog.pg_inherits i WHERE i.inhparent = 'txrelay.finished_transactions'::regclass LOOP
        EXECUTE pg_catalog.format('ALTER TABLE %s REPLICA IDENTITY FULL', v_table);
    END LOOP;
END
$identity$;
