-- All later reads see what ended before this (microseconds since 1970); and the retention horizon
-- (0: nothing was removed).
SELECT txrelay.follow_position(),
    coalesce((SELECT (extract(epoch FROM k.dropped_before) * 1000000)::bigint
              FROM txrelay.follow_kept k), 0)
