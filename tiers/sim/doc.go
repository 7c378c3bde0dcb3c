// Package sim has tiers without bytes, which simulate the time of hardware that the machine does not
// have.
//
//	link.go    Link: a GPU's memory behind its link, one queue with a bandwidth per direction
//	device.go  Device: a drive, by the queueing model tiers.DeviceModel
//
// Any goroutine may use a Link, on any clock. A Device belongs to the thread of a virtual clock.
package sim
