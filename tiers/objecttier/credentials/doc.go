// Package credentials is the keys of a store: where they come from, and that nobody ever sees them.
//
//	secret.go  Secret: a text that masks itself however it is printed; Filter: takes it out of
//	           texts that others make
//	find.go    Find: variables, then a profile of the AWS files; no flags, no metadata service
//
// A Secret is read by Reveal alone, which whoever signs requests calls. Everything else that could
// carry one, the errors and logs of the library below, goes through a Filter. All of it is safe for
// concurrent use.
package credentials
