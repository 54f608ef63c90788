-- txrelay: what keeps accounts from going on, as their leaders see it.

-- One row at most per account, written under the epoch of the leader that sees it: it means nothing
-- under a later one. code: relay/core/tx/obstacle.h, explained in docs/obstacles.md.
CREATE TABLE txrelay.obstacles (
    account int PRIMARY KEY,
    epoch   bigint NOT NULL,
    code    text NOT NULL,
    detail  text NOT NULL,
    since   timestamptz NOT NULL
);
