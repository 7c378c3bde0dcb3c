// Package kvbench is the engine: it runs one workload against one cache for one
// window and returns one Result.
//
// Reading order: config.go (what a trial is given), trial.go (its life: prepare,
// load, conclude, clean), dispatch.go and worker.go (how requests become cache
// operations), recorder.go (what counts and when), result.go (the only schema)
// and build.go (how one becomes the other). plain.go runs benchmarks without
// requests through the same window; stack.go joins the tiers; harness.go,
// limits.go and environ.go read what the run itself costs and where it ran.
//
// The package knows no flags and prints nothing: benchmarks and tools do.
package kvbench
