-- $1 account. The row is as it was before.
SELECT CASE WHEN NOT l.paused THEN format('%s was not paused', l.alias)
            WHEN l.suspension IS NULL THEN format('%s goes on', l.alias)
            ELSE format('%s goes on: its suspension (%s) has ended by this order', l.alias,
                        l.suspension) END
FROM txrelay.leaders l CROSS JOIN LATERAL txrelay.account_resume($1)
    WHERE l.account = txrelay.account_of($1)
