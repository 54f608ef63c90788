-- txrelay: the trace context that an application gives with a transaction (W3C traceparent), for its own tracing: it
-- stands in events and in the relay's log, and nothing decides by it. NULL where none was given, which takes no room.
ALTER TABLE txrelay.outbox ADD COLUMN traceparent text;
ALTER TABLE txrelay.outbox_presigned ADD COLUMN traceparent text;
ALTER TABLE txrelay.pending_transactions ADD COLUMN traceparent text;
ALTER TABLE txrelay.finished_transactions ADD COLUMN traceparent text;
