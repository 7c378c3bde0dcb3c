// Package users has synthetic users: their behaviour, the population, each user's requests and their
// times, and the documents that some requests retrieve.
//
//	profile.go     Profile, Template, Sessions: all that a configuration file can say; Default: MLPerf's
//	draws.go       Stream: stateless draws from (seed, user, purpose, n)
//	population.go  User, Population: the users, also as drawn by CPython's random
//	users.go       Config, Users: the Source; New, the times between requests, SetUsers; Heap: items in
//	               order
//	source.go      Take, Written, Done: the next request; Account: arrivals
//	rag.go         Corpus: documents; turns that retrieve, and additional queries
//
// Begin with Default and New. A user's n-th request is a function of (seed, user, n), so a cursor
// represents all its future requests. Users has no clock and no goroutines and is not safe for
// concurrent use: the engine holds one lock around it. Profiles and streams are plain data. A Corpus is
// safe for concurrent use.
package users
