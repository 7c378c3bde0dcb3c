// Package sizing is kvreport device: the -simulate-device text of a drive from what StorageCeiling
// and Tier measured on it.
//
// The rules are those of kvbench.DeviceModel read backwards. A run keeps n requests of c bytes
// outstanding (workers × depth) and moves X bytes/s.
//
//   - Bandwidth of a direction is the largest X of any run in it.
//   - By Little's law each request of a run took n·c ÷ X, of which c ÷ bandwidth passed on the medium. The rest is latency and
//     waiting for others; the least rest of all runs is the latency.
//   - If the run with the most requests/s did clearly fewer than bandwidth and latency allow, then those are the IOPS, and a
//     request passes the medium in 1 ÷ IOPS at least.
//   - Single requests that mostly take less time than their share of the bandwidth come from a limiter that hands it out in
//     slices. The slice is the time from one wait to the next.
//   - Reads and writes share the medium or do not, whichever comes nearer to what StorageCeiling/op=mixed moved.
//
// Several runs of one kind count with their median.
package sizing
