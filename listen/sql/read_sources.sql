-- The backends whose notifications are believed, and the clock.
SELECT f.pid, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    FROM txrelay.follow_sources f
