-- txrelay: the wait after a failover that lost commits (functions/17_reconcile.sql).

ALTER TABLE txrelay.accounts
    -- The longest era, in blocks, that a relay of this account may sign, and whether one may sign
    -- without an era. Relays say so when they register the account, before they sign anything.
    ADD COLUMN era_longest int NOT NULL DEFAULT 0,
    ADD COLUMN era_immortal boolean NOT NULL DEFAULT false,
    -- The claim that found the other timeline; set together with reconcile_from.
    ADD COLUMN lost_since timestamptz,
    -- A block that is not lower than any that was known when commits were lost. No era that was
    -- signed in them is longer than era_longest blocks from there. NULL: not known yet.
    ADD COLUMN lost_heard bigint;
