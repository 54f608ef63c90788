-- $1, $2 the first and the last block, $3 accounts: every record that names one of these blocks
SELECT account, coalesce(id, 0), coalesce(requeued, 0), nonce, encode(hash, 'hex'),
       encode(block_hash, 'hex'), block_number, extrinsic_index, outcome, fee, creator
FROM txrelay.finished_transactions
WHERE block_number BETWEEN $1::bigint AND $2::bigint AND account = ANY($3::int[])
AND block_hash IS NOT NULL
ORDER BY block_number
