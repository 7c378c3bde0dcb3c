// Package sim has tiers without bytes, which simulate the time of hardware that the machine does not
// have: a drive, by the queueing model tiers.DeviceModel, and a GPU's memory behind its link. Device is
// safe for concurrent use on any clock.
package sim
