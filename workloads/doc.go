// Package workloads says what is asked of the storage, and when: models and their bytes per token,
// the MLPerf options, synthetic users and recorded traces as Sources of requests, and the plan of
// cache operations that a request becomes.
//
// Reading order: model.go and sizer.go (how large is a token), profile.go and population.go (who
// asks), request.go and source.go (what the engine sees), plan.go (what a request does to a cache),
// users.go (synthetic users), trace.go (recorded requests).
//
// Nothing here knows a clock, a goroutine, a file of the cache or a flag. Times are handed in and
// counted from the load's origin, so that the same code runs under a wall clock and under virtual
// time. Every draw is a pure function of (seed, user, purpose, n): see draws.go. The backlog of an
// overloaded run is never a list of requests; a cursor per user, or a second reader of the trace,
// is enough to count it.
package workloads
