SELECT (extract(epoch FROM dropped_before) * 1000)::bigint FROM txrelay.retention
