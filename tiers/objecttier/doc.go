// Package objecttier keeps entries in a bucket of an object store. Each object of the cache is one object
// of the store, below the run's own prefix. PUT and GET are streams.
//
//	tier.go    Config, Tier: the existing objects and their readers; Names: the keys of objects, in the
//	           suite's own format or those of engines
//	open.go    Open: the start of a run in a bucket; the check of the store before the measurement
//	folder.go  manifest.json; objects that a later run reads
//	stream.go  Put and Get: whole objects, parts and ranges; the limits for the requests in flight: turns
//	           for all objects, parallel for one object
//	remove.go  Remove; Clear: the end of a run
//
// Package store makes the requests: it repeats failed attempts and counts. Package s3test is a store for
// tests.
//
// # Rules
//
// A run writes below PREFIX/rank_<N>/<RUN>/ or PREFIX/<folder>/<RUN>/, where RUN is random. At its end it
// removes everything below this prefix and nothing else, so runs need no locks. If killed runs have left
// objects below PREFIX/rank_<N>/, the run prints a warning with the command that removes these objects. A
// run that keeps its objects describes them in <RUN>/manifest.json.
//
// A Tier is safe for concurrent use. Put and Get run on their caller's goroutine, and use one more
// goroutine for each part or range of an object in flight. These goroutines end before Put or Get returns.
// Callers need not repeat a failed call, because package store has already made all attempts.
package objecttier
