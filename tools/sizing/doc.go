// Package sizing computes the memory and disk that a run needs, and the device model of a drive for
// simulations.
//
//	datasize.go  Question and Answer: the parameters of a run, its needs, this machine's resources;
//	             Need: the needs of the population that the run would draw
//	device.go    Device: plain I/O runs on one drive → the device model as text or JSON
//	derive.go    the rules that derive the device model
//
// The needs are computed for the users that the run's seed draws. Open-loop users do not wait, so their
// load does not depend on the storage.
//
// The rules invert the device model. A run keeps n requests of c bytes in flight (workers × depth) and
// moves X bytes/s.
//
//   - The bandwidth of a direction is the largest X of its runs.
//   - By Little's law a request took n·c ÷ X, of which the transfer took c ÷ bandwidth. The rest is
//     latency and queueing. The smallest rest of all runs is the latency.
//   - If the run with the most requests/s has clearly fewer than bandwidth and latency allow, its
//     requests/s are the IOPS. Then a request occupies the medium for at least 1 ÷ IOPS.
//   - If single requests are mostly faster than their share of the bandwidth, a limiter grants
//     bandwidth in time slices. A slice is the time from one wait to the next.
//   - Reads and writes share one medium or have two, whichever is nearer to the rate of
//     StorageCeiling/op=mixed.
//
// The model leaves out what these runs do not show: parallelism, garbage collection and flushes.
//
// Of several trials of one kind, the trial with the median bytes/s counts. Trials that searched the
// number of requests in flight are one kind. Latency and bandwidth come from different runs.
package sizing
