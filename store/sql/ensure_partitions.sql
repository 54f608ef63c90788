SELECT txrelay.ensure_partitions()
