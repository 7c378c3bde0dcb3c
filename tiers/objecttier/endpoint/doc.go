// Package endpoint is the addresses of a store: their grammar, their source, and which of several
// the next request goes to.
//
//	grammar.go  Parse: URLs by comma or in the lines of a file, with ranges; Find: the first source with
//	            a value, and the ignored ones
//	balance.go  Set, Endpoint: which is next, which back off, and their counts
//
// It opens no connection: the client of the store reports to a Set how attempts ended.
package endpoint
