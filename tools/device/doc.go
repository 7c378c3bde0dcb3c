// Package device is kvreport device: the -simulate-device text of a drive from what StorageCeiling and Tier measured on it.
//
// The rules are those of kvbench.DeviceModel read backwards. A run keeps n requests of c bytes outstanding (workers × depth)
// and moves X bytes/s.
//
//   - Bandwidth of a direction is the largest X of any run in it.
//   - A run whose X stays below that is limited by requests/s when another with half as many outstanding requests of the same
//     size, or fewer, does nearly the same X: then X ÷ c are the IOPS.
//   - Otherwise it is limited by latency: by Little's law each request took n·c ÷ X, of which c ÷ bandwidth (or 1 ÷ IOPS) passed
//     on the medium. The rest is the latency.
//   - Reads and writes share the medium or do not, whichever comes nearer to what StorageCeiling/op=mixed moved.
//
// Several runs of one kind count with their median.
package device
