// Package workloads defines loads: the requests to the cache and their times. It has the types that
// loads and the engine share.
//
//	request.go   Request: a user's request for entries; Entry, Kind, Class, QoS; keys of entries
//	source.go    Source: a load, request by request; Scalable; TraceReport: rows read
//	plan.go      Planner: a request becomes operations on a cache, whatever its content
//	digest.go    Digest: whether two loads had the same requests and the same hits
//
// The packages below are model (bytes per token), compute (time to compute tokens), users (synthetic
// users, their behaviour, draws), formats (recorded traffic, row by row), traces (recorded requests,
// and sessions of agents), iotrace (recorded operations) and checkpoint (files of checkpoints).
//
// These packages use no clock, goroutine, cache file or flag. Callers pass times, which count from the
// load's origin, so that the same code runs with a wall clock and with virtual time. The backlog of an
// overloaded run takes the memory of one arrival per request of a user, or of a bounded number of rows
// of a trace.
package workloads
