// Package result defines the result of one trial and its only schema. JSON files, summaries,
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
//	machine.go    ReadEnvironment: the machine, the mount of a directory, the block devices behind it
//	version.go    Version: the revision from the linker, from the Go command, or of the checkout
//	python.go     the export: the result with the keys of the Python benchmark
//	schema2.go    reading results of schema 2
//	histogram.go  distributions, and the form in which those of several trials can be merged
//	derive.go     its ratios and costs from its counts, its distributions from its histograms
//	metrics.go    the values of the benchmark line
//
// The package imports no package that produces results, so readers of a result link neither the
// engine nor a tracer. The kernel's trace is raw JSON in a result. Times in the timeline have types
// of package tracing. Results are plain data without locks. A Histogram may be used by one
// goroutine at a time.
package result
