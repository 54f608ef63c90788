-- txrelay: the rights. Our three roles get exactly these, whatever they had before. Rights of other
-- roles stay as they are. Only the owner writes to a table.

REVOKE ALL ON SCHEMA txrelay FROM PUBLIC, txrelay_follower, txrelay_app, txrelay_relay;
REVOKE ALL ON ALL TABLES IN SCHEMA txrelay FROM PUBLIC, txrelay_follower, txrelay_app,
    txrelay_relay;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA txrelay FROM PUBLIC, txrelay_follower, txrelay_app,
    txrelay_relay;
REVOKE ALL ON ALL ROUTINES IN SCHEMA txrelay FROM PUBLIC, txrelay_follower, txrelay_app,
    txrelay_relay;

-- All three roles read which schema this is, where a transaction is, and who leads. A follower may
-- do no more.
GRANT USAGE ON SCHEMA txrelay TO txrelay_follower, txrelay_app, txrelay_relay;
GRANT SELECT ON txrelay.schema_version, txrelay.schema_functions, txrelay.transactions,
    txrelay.leaders, txrelay.blocked_accounts, txrelay.blocked_relays, txrelay.follow_accounts,
    txrelay.follow_pending, txrelay.follow_finished, txrelay.follow_kept,
    txrelay.follow_sources, txrelay.feed_cursors, txrelay.sites, txrelay.site_members
    TO txrelay_follower, txrelay_app, txrelay_relay;
GRANT EXECUTE ON FUNCTION txrelay.status, txrelay.history, txrelay.counts, txrelay.follow_position,
    txrelay.row_holder, txrelay.session_text, txrelay.account_waits, txrelay.turn_waits,
    txrelay.account_blocks, txrelay.account_of
    TO txrelay_follower, txrelay_app, txrelay_relay;

-- Applications.
GRANT EXECUTE ON FUNCTION txrelay.enqueue, txrelay.enqueue_many, txrelay.enqueue_signed,
    txrelay.cancel, txrelay.bump, txrelay.retry
    TO txrelay_app, txrelay_relay;

-- Relays, and the operators who act through them.
GRANT SELECT ON txrelay.leadership, txrelay.relay_leases, txrelay.accounts, txrelay.members,
    txrelay.obstacles, txrelay.outbox, txrelay.outbox_presigned,
    txrelay.pending_transactions, txrelay.attempts, txrelay.refusals, txrelay.cancellations,
    txrelay.bumps, txrelay.finished_transactions, txrelay.feeds, txrelay.feed_batches,
    txrelay.feed_servers TO txrelay_relay;
GRANT EXECUTE ON FUNCTION txrelay.relay_register, txrelay.member_heartbeat, txrelay.leader_claim,
    txrelay.leader_renew, txrelay.leader_release, txrelay.leader_evict, txrelay.lock_holder,
    txrelay.leader_scan, txrelay.leader_obstacles, txrelay.relay_obstacle,
    txrelay.timeline_known, txrelay.ids_behind, txrelay.repair_ids,
    txrelay.clock_behind TO txrelay_relay;
GRANT EXECUTE ON FUNCTION txrelay.leader_account, txrelay.leader_snapshot, txrelay.leader_outbox,
    txrelay.leader_presigned, txrelay.leader_poll_requests, txrelay.leader_due,
    txrelay.queue_measure TO txrelay_relay;
GRANT EXECUTE ON FUNCTION txrelay.leader_admit, txrelay.leader_admit_presigned,
    txrelay.leader_note, txrelay.leader_reject, txrelay.leader_attempt,
    txrelay.leader_record_status, txrelay.leader_fill, txrelay.leader_finish,
    txrelay.leader_requeue, txrelay.leader_nonce, txrelay.leader_heard, txrelay.leader_adopt,
    txrelay.leader_pause TO txrelay_relay;
GRANT EXECUTE ON FUNCTION txrelay.account_pause, txrelay.account_resume, txrelay.account_policy,
    txrelay.account_reconcile, txrelay.account_rewind,
    txrelay.account_grant, txrelay.account_revoke TO txrelay_relay;
GRANT EXECUTE ON FUNCTION txrelay.leader_cleanup, txrelay.ensure_partitions,
    txrelay.drop_partitions TO txrelay_relay;
GRANT EXECUTE ON FUNCTION txrelay.feed_create, txrelay.feed_publishers, txrelay.feed_pause,
    txrelay.feed_resume, txrelay.feed_remove, txrelay.leader_feeds,
    txrelay.leader_feed_take TO txrelay_relay;
GRANT SELECT ON txrelay.tokens, txrelay.operations, txrelay.leadership_history, txrelay.webhooks,
    txrelay.webhook_deliveries TO txrelay_relay;
GRANT EXECUTE ON FUNCTION txrelay.token_create, txrelay.token_revoke, txrelay.token_use,
    txrelay.operate, txrelay.operate_many, txrelay.relay_drained, txrelay.relay_sent,
    txrelay.http_cleanup, txrelay.http_time, txrelay.http_span TO txrelay_relay;
GRANT EXECUTE ON FUNCTION txrelay.webhook_row, txrelay.webhook_create, txrelay.webhook_remove,
    txrelay.webhook_pause, txrelay.webhook_resume, txrelay.webhook_rotate, txrelay.webhook_again,
    txrelay.leader_webhooks, txrelay.leader_webhooks_done TO txrelay_relay;
GRANT SELECT ON txrelay.site_accounts, txrelay.site_peers, txrelay.site_transactions,
    txrelay.site_dispatches TO txrelay_relay;
GRANT EXECUTE ON FUNCTION txrelay.leader_site_setup, txrelay.leader_site_load,
    txrelay.leader_site_rows, txrelay.leader_site_match, txrelay.leader_site_store,
    txrelay.leader_site_note, txrelay.account_unsite TO txrelay_relay;
