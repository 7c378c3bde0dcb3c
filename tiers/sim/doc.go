// Package sim is tiers without bytes, which take the time of something that one does not have.
//
//	null.go    Null: no time either, the harness alone; table: which objects a tier holds
//	link.go    Link: a GPU's memory behind its link, two queues of a bandwidth
//	device.go  Device: a drive by tiers.DeviceModel, a queueing model
//
// Null and Link serve any goroutine and run on any clock. A Device belongs to the one thread of
// a virtual clock.
package sim
