-- txrelay: `txrelay audit` asks which records name a range of blocks.

-- A BRIN index: records are written in the order of their blocks, and it costs a few bytes per thousand rows.
CREATE INDEX finished_transactions_block ON txrelay.finished_transactions USING brin (block_number);
