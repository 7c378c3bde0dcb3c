// Package sim has tiers without bytes, which simulate the time of hardware that the machine does not
// have: a drive, by the queueing model tiers.DeviceModel, and a GPU's memory behind its link. Any
// goroutine may use a link, on any clock. A drive belongs to the thread of a virtual clock.
package sim
