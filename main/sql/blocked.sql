SELECT * FROM txrelay.blocked_accounts ORDER BY since, account
