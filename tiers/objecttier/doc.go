// Package objecttier is a bucket of an object store as a tier: an object per entry, PUT and GET as
// streams, below one prefix that belongs to the run.
//
//	names.go   Names: the keys of objects, the suite's own and those of engines
//	tier.go    Config, Tier: which objects exist, and who reads them
//	open.go    Open, Clear: the begin and the end of a run in a bucket
//	check.go   the check of a store before it is measured
//	folder.go  manifest.json, and objects that a later run reads
//	stream.go  Put and Get: whole objects, parts and ranges
//	turns.go   turns, parallel: how many requests are in flight, of all entries and of one
//	remove.go  Remove
//
// Below it: endpoint is the addresses of a store, and store is the requests, with attempts and
// counts. s3test is a store for tests.
//
// # Rules
//
// A run writes below PREFIX/rank_<N>/<RUN>/, or PREFIX/<folder>/<RUN>/, where RUN is random. It
// removes everything below that at its end, and nothing else: so runs need no locks. What killed
// runs have left below PREFIX/rank_<N>/ it lists in a warning, with the command that removes it. A
// run that keeps its objects describes them in <RUN>/manifest.json.
//
// A Tier is safe for concurrent use. Put and Get run on their caller's goroutine, and on as many
// more as parts or ranges of an object are in flight; those end before they return. The errors of
// the tier never ask for another attempt: package store has made all of them.
package objecttier
