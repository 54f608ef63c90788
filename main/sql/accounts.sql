SELECT * FROM txrelay.leader_state ORDER BY 1
