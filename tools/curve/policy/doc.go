// Package policy reckons what caches find whose order is another than that of least recent use, or
// that have a tier above the storage: no distance tells all capacities of those at once, see
// package reuse.
//
//	sample.go     Sample: requests in memory, of a long trace a part of them
//	simulate.go   Config, Estimate: for each capacity a cache (package cache) without bytes
//
// A cache of each capacity serves the requests, one after the other, by the code that serves them
// in a replay: what it decides is what a replay decides, exactly. A trace that is too long for that
// is made smaller in two steps, and what was done is told:
//
//   - Blocks that are always asked for together, behind each other, are joined, a few at a time:
//     they come, are used and leave together but where the room of a cache ends between them.
//   - Prompts that begin with the same block are taken or left together, by a hash of that block,
//     and caches are smaller by the same share (Waldspurger and others, "Efficient MRC construction
//     with SHARDS", FAST 2015). Sampling blocks one by one, as there, would find tails of prefixes
//     whose beginnings are gone. What the sample gets wrong of least recent use, of which the curve
//     of the whole trace is known, it gets wrong of another policy, too: so the policy's difference
//     from it in the sample is added to the exact curve, a control variate.
//
// Nothing here has a clock or a file. A Sample belongs to one goroutine; Estimate uses all
// processors.
package policy
