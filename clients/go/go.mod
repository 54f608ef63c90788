module txrelay

go 1.19
