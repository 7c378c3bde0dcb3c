// Package workloads says what is asked of the storage, and when: the nouns that loads and the
// engine share. Their packages lie below it.
//
//	request.go   Request: who asks for which entries; Entry, Kind, Class, QoS; keys of entries
//	source.go    Source: a load, request by request; Scalable, Corpus; TraceReport: what was read
//	plan.go      Planner: a request becomes operations on a cache, whatever is in that
//	digest.go    Digest: whether two loads asked the same, and found the same
//
// Below: model (bytes per token), compute (what computing them takes), profile (how users behave,
// draws), users (synthetic users), formats (recorded traffic, row by row), sessions (of agents,
// side by side), traces (recorded requests), iotrace (recorded operations), checkpoint (files of
// checkpoints).
//
// Nothing here knows a clock, a goroutine, a file of the cache or a flag. Times are handed in and
// counted from the load's origin, so that the same code runs under a wall clock and under virtual
// time. The backlog of an overloaded run is never a list of requests: a cursor per user, or a
// second reader of the trace, is enough to count it.
package workloads
