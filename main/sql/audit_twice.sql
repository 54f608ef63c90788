-- $1, $2 the first and the last block, $3 accounts: transactions with several results
SELECT account, id, count(*) FROM txrelay.finished_transactions
WHERE id IS NOT NULL AND block_number BETWEEN $1::bigint AND $2::bigint AND account = ANY($3::int[])
GROUP BY account, id HAVING count(*) > 1 ORDER BY 1, 2
