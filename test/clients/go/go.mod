module clients

go 1.19

require (
	github.com/lib/pq v1.10.7
	txrelay v0.0.0
)

replace (
	github.com/lib/pq => /usr/share/gocode/src/github.com/lib/pq
	txrelay => ../../../clients/go
)
