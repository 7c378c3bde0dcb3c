// Package endpoint is the addresses of a store: what people write, where it comes from, and which
// of several the next request goes to.
//
//	grammar.go  Parse: URLs by comma, with ranges; ReadFile: one a line
//	source.go   Find: the first source that says anything, and those that are ignored for it
//	balance.go  Set, Endpoint: whose turn it is, who rests, what each has carried
//
// It opens no connection: whoever makes requests tells a Set how they went. A Set is safe for
// concurrent use; the rest is functions.
package endpoint
