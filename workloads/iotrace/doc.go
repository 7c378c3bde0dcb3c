// Package iotrace reads and writes I/O traces: one row per operation on an object of the cache, as the
// Python benchmark's -io-trace-log writes them.
//
//	reader.go    Row, Operation: what a row says, and what each of its columns may hold; Reader:
//	             rows of a file, ours or the Python benchmark's, malformed ones counted
//	writer.go    Writer: rows into a file that is whole or is not there
//
// Begin with Row. The package has no goroutines and no clock. One goroutine at a time uses a Reader or
// a Writer. The caller that opened it closes it.
package iotrace
