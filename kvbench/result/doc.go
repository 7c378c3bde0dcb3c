// Package result is the outcome of one trial and the only schema of it: JSON files, summaries,
// benchmark lines, pages and workbooks are views of [Result].
//
//	result.go     Result from the top, statuses, divisions; reading and writing the file
//	sections.go   what every trial has: load, lookups, tiers, latencies, device counters
//	timeline.go   what happened in each interval of the window
//	requests.go   how many requests, and where their time went
//	harness.go    what measuring cost, where the workers' time went, and the verdict
//	prompt.go     what of the prompts was found, and the time to the first token
//	objects.go    requests to an object store, and its endpoints
//	modes.go      what only some have: autoscaler, blocks, replay, validation, simulation
//	checkpoint.go checkpoints: each of them, what they say together, the pipeline, the rules
//	host.go       where it ran and how: the machine, the I/O, each of several directories
//	python.go     the export: the result in the keys of the Python benchmark, see package python
//	schema2.go    reading results of schema 2
//	histogram.go  distributions, and the form in which those of several trials can be merged
//	derive.go     its ratios and costs, from its counts
//	distribute.go the distributions of a result from its histograms, by their names
//	metrics.go    the values of the benchmark line
//
// This package is large because it is the one schema: what a result may say stands nowhere else.
//
// It imports no package that makes results: readers of a result link neither the engine nor a
// tracer. What the kernel's trace says is carried as JSON; what grows over time has the shape of
// package tracing, in a run as in a trace. Results are plain data without locks; a Histogram may be
// used by one goroutine at a time.
package result
