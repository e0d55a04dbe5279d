module reading

go 1.21
