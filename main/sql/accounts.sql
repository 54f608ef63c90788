SELECT * FROM txrelay.leaders ORDER BY 1
