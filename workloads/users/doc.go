// Package users is synthetic users: who they are, what each asks next and when, and the documents
// that some of them retrieve.
//
//	population.go  User, Population: who there is, also as CPython's random draws it
//	users.go       Config, Users: the Source; New, the times between requests, SetUsers
//	source.go      Take, Written, Done: whose turn it is, and what its request is; Account: what
//	               has arrived, without a list of it
//	heap.go        users by time
//	sessions.go    Sessions: made-up sessions of assistants, whose prompts grow
//	rag.go         Corpus: documents; WithRAG: turns that retrieve, queries besides
//
// Begin with New. A user's n-th request is a function of (seed, user, n), so that all it has still
// to ask is a cursor. Users has no clock and no goroutine and is not safe for concurrent use: the
// engine holds one lock around it. A Corpus is.
package users
