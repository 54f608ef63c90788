-- txrelay: the triggers. 00_begin.sql has dropped the former ones.

CREATE TRIGGER accounts_check BEFORE INSERT OR UPDATE OF alias, account_id, scheme, genesis,
    address, paused, paused_by, suspension ON txrelay.accounts
    FOR EACH ROW EXECUTE FUNCTION txrelay.accounts_check();

-- What followers are notified of.
CREATE TRIGGER pending_new AFTER INSERT ON txrelay.pending_transactions REFERENCING NEW TABLE
    AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION txrelay.pending_new();
CREATE TRIGGER pending_update AFTER UPDATE ON txrelay.pending_transactions REFERENCING OLD TABLE
    AS old_rows
    NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION txrelay.pending_update();

CREATE TRIGGER site_new AFTER INSERT ON txrelay.site_transactions REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION txrelay.pending_new();
CREATE TRIGGER site_update AFTER UPDATE ON txrelay.site_transactions REFERENCING OLD TABLE
    AS old_rows
    NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION txrelay.site_update();

-- Rules that hold for every role, the owner included.
CREATE TRIGGER pending_final BEFORE UPDATE ON txrelay.pending_transactions
    FOR EACH ROW WHEN (OLD.state = 'finalized'
                       AND (NEW.state IS DISTINCT FROM OLD.state
                            OR NEW.hash IS DISTINCT FROM OLD.hash
                       -- a dump prints rows otherwise (the digest)
                       OR NEW.block_hash IS DISTINCT FROM OLD.block_hash))
    EXECUTE FUNCTION txrelay.refuse_change('what is finalized stays',
                                           'A relay that saw it change has a fault.');
CREATE TRIGGER leadership_epoch BEFORE UPDATE OF epoch ON txrelay.leadership
    FOR EACH ROW WHEN (NEW.epoch <> OLD.epoch AND NEW.epoch <> OLD.epoch + 1)
    EXECUTE FUNCTION txrelay.refuse_change('an epoch goes up by one',
                                           'Old leaders would pass the fence.');
CREATE TRIGGER leadership_stay BEFORE DELETE ON txrelay.leadership
    FOR EACH ROW EXECUTE FUNCTION txrelay.refuse_change('subjects stay',
                                                        'Release the claim: a subject without a '
                                                            'leader is idle.');
CREATE TRIGGER accounts_stay BEFORE DELETE ON txrelay.accounts
    FOR EACH ROW EXECUTE FUNCTION txrelay.refuse_change('accounts stay',
                                                        'Pause it instead: txrelay.account_pause.');
CREATE TRIGGER finished_stays BEFORE UPDATE OR DELETE ON txrelay.finished_transactions
    FOR EACH ROW EXECUTE FUNCTION txrelay.refuse_change('a terminal record never changes',
        'Old ones leave with their partition: txrelay.drop_partitions.');
CREATE TRIGGER finished_kept BEFORE TRUNCATE ON txrelay.finished_transactions
    EXECUTE FUNCTION txrelay.refuse_change('a terminal record never changes',
        'Old ones leave with their partition: txrelay.drop_partitions.');

-- The first partitions. Relays make the later ones.
DO $now$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_inherits i
            WHERE i.inhparent = 'txrelay.finished_transactions'::pg_catalog.regclass
            AND i.inhrelid <> 'txrelay.finished_transactions_default'::pg_catalog.regclass) THEN
        PERFORM txrelay.ensure_partitions();
    END IF;
END
$now$;
