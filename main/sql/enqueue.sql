SELECT txrelay.enqueue($1, $2::bytea, key => $3, priority => coalesce($4::bigint, 0),
    not_before => $5::timestamptz, deadline => $6::timestamptz, creator => $7,
    spec_version => $8::bigint, tip => $9::numeric, max_tip => $10::numeric,
    deadline_block => $11::bigint, retries => coalesce($12::bigint, 0), delay => $13::interval,
    expires_in => $14::interval, traceparent => $15)
