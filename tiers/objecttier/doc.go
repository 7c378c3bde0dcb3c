// Package objecttier keeps entries in a bucket of an object store. Each entry is one object below the
// run's own prefix. PUT and GET are streams.
//
//	tier.go    Config, Tier: the existing objects and their readers; Names: the keys of objects, in the
//	           suite's own format or those of engines
//	open.go    Open: the begin of a run in a bucket; the check of the store before the measurement
//	folder.go  manifest.json, and objects that a later run reads
//	stream.go  Put and Get: whole objects, parts and ranges; turns, parallel: limits for the requests in
//	           flight, of all entries and of one
//	remove.go  Remove; Clear: the end of a run
//
// Package store below it makes the requests, with attempts and counts. Package s3test is a store for
// tests.
//
// # Rules
//
// A run writes below PREFIX/rank_<N>/<RUN>/ or PREFIX/<folder>/<RUN>/, where RUN is random. At its end
// it removes everything below this prefix and nothing else, so runs need no locks. If killed runs have
// left objects below PREFIX/rank_<N>/, the run prints a warning with the command that removes them. A
// run that keeps its objects describes them in <RUN>/manifest.json.
//
// A Tier is safe for concurrent use. Put and Get run on their caller's goroutine, and use one more
// goroutine for each part or range of an object in flight. These end before Put or Get returns. Errors
// of the tier are final: package store has already made all attempts.
package objecttier
