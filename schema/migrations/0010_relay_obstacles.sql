-- txrelay: what keeps a relay, rather than an account, from its work.

-- One reason at a time, the one that the others follow from; NULL: none that lasts. obstacle:
-- relay/core/tx/obstacle.h, explained in docs/obstacles.md.
ALTER TABLE txrelay.members ADD COLUMN obstacle text, ADD COLUMN obstacle_text text, ADD COLUMN obstacle_since timestamptz;

-- Since when functions do not notify, or notify again.
ALTER TABLE txrelay.notify_queue ADD COLUMN since timestamptz;
