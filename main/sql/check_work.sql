-- Settings of a session through database.work_url. Behind a pooler set_session.sql cannot change
-- them.
SELECT current_setting('transaction_isolation') <> 'read committed',
       current_setting('transaction_isolation'),
       current_setting('statement_timeout') <> '0', current_setting('statement_timeout')
