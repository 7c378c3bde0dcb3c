// Package endpoint reads the addresses of a store, and chooses the endpoint of each request.
//
//	grammar.go  Parse: URLs separated by commas or in the lines of a file, with ranges; Find: the first
//	            source with a value, and the ignored sources
//	balance.go  Set, Endpoint: the next endpoint, pauses after failures, and counts
//
// It opens no connections. The client of the store reports the ends of attempts to a Set.
package endpoint
