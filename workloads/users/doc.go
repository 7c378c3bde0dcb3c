// Package users has synthetic users: the population, each user's requests and their times, and the
// documents that some requests retrieve.
//
//	population.go  User, Population: the users, also as drawn by CPython's random
//	users.go       Config, Users: the Source; New, the times between requests, SetUsers
//	source.go      Take, Written, Done: the next request; Account: arrivals, without a list of them
//	heap.go        users ordered by time
//	rag.go         Corpus: documents; WithRAG: turns that retrieve, and additional queries
//
// Begin with New. A user's n-th request is a function of (seed, user, n), so that a cursor represents all
// its future requests. Users has no clock and no goroutines and is not safe for concurrent use: the engine
// holds one lock around it. A Corpus is safe for concurrent use.
package users
