-- txrelay: the end of a transaction whose result nobody can tell.

-- unknown: its nonce is used, by its own bytes or in a block that no endpoint has, and no endpoint
-- has the events or the block. It may have taken effect, once.
ALTER TYPE txrelay.tx_outcome ADD VALUE 'unknown';
