// Package sizing answers two questions before a run: how much memory and disk it needs, and how to
// describe a drive for a run in virtual time.
//
//	datasize.go  Question and Answer: a run's parameters, its needs, what this machine has
//	estimate.go  Need: reckoning with the population that the run would draw
//	device.go    Device: plain runs on one drive, which are refused, and its text and JSON
//	derive.go    the rules by which the parameters follow
//
// Needs are computed from the users that the seed would draw, so they are the run's own and not an
// average. Open-loop users do not wait: their offer does not depend on the storage.
//
// The rules for a drive are those of the device model read backwards. A run keeps n requests of c
// bytes outstanding (workers × depth) and moves X bytes/s.
//
//   - Bandwidth of a direction is the largest X of any run in it.
//   - By Little's law each request of a run took n·c ÷ X, of which c ÷ bandwidth passed on the
//     medium. The rest is latency and waiting for others; the least rest of all is the latency.
//   - If the run with the most requests/s did clearly fewer than bandwidth and latency allow, then
//     those are the IOPS, and a request passes the medium in 1 ÷ IOPS at least.
//   - Single requests that mostly take less time than their share of the bandwidth come from a
//     limiter that hands it out in slices. The slice is the time from one wait to the next.
//   - Reads and writes share the medium or do not, whichever comes nearer to what
//     StorageCeiling/op=mixed moved.
//
// The model leaves out what these runs cannot tell (parallelism, garbage collection, flushes).
//
// Of several runs of one kind the median by its bytes counts, with its own rates and times. Runs
// whose number in flight was searched for are one kind, whatever number was found. Latency and
// bandwidth come from different runs.
package sizing
