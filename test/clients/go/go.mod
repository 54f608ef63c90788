module clients

go 1.19

require (
	github.com/lib/pq v1.10.9
	txrelay v0.0.0
)

replace txrelay => ../../../clients/go
