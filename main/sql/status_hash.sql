SELECT * FROM txrelay.status(hash => $1)
