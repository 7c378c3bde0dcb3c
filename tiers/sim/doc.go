// Package sim is tiers without bytes, which take the time of something that one does not have.
//
//	link.go    Link: a GPU's memory behind its link, two queues of a bandwidth
//	device.go  Device: a drive by tiers.DeviceModel, a queueing model
//
// A Link serves any goroutine and runs on any clock. A Device belongs to the one thread of
// a virtual clock.
package sim
