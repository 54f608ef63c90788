-- $1 account, $2 block or NULL.
SELECT format('%s: the chain is searched for lost commits from block %s on; nothing gets a nonce '
              'before', l.alias, b.block)
FROM txrelay.account_reconcile($1, $2::bigint) b (block) CROSS JOIN txrelay.leaders l
    WHERE l.account = txrelay.account_of($1)
