package host

import (
	"time"

	"kvbench/tracing"
)

// SectorSize is the unit of the sector columns in /sys/block/*/stat: 512 bytes on every device,
// whatever its logical block size.
const SectorSize = 512

// BlockStat is one reading of /sys/block/<device>/stat: counters since the device appeared. The
// difference of two readings (Sub) is the device's work between them. Times are sums over requests, with
// the kernel's resolution of a millisecond, so they may exceed the elapsed time.
type BlockStat struct {
	tracing.DeviceStat
	InFlight int64 // requests in service now: a gauge, not a counter
}

// tick is the unit of times. The kernel prints them as 32-bit numbers, which wrap to 0 at tickWrap: a busy
// array reaches 50 days of summed request time within weeks.
const (
	tick     = time.Millisecond
	tickWrap = tick << 32
)

func (s *BlockStat) counts() []*int64 {
	return []*int64{&s.ReadIOs, &s.ReadBytes, &s.WriteIOs, &s.WriteBytes, &s.DiscardIOs,
		&s.DiscardBytes, &s.FlushIOs, &s.InFlight}
}

func (s *BlockStat) times() []*time.Duration {
	return []*time.Duration{&s.ReadTicks, &s.WriteTicks, &s.DiscardTicks, &s.FlushTicks,
		&s.IOTicks, &s.TimeInQueue}
}

// Sub returns the device's work between an earlier reading and this one. InFlight is this reading's.
func (s BlockStat) Sub(before BlockStat) BlockStat {
	before.InFlight = 0
	for i, to := range s.counts() {
		*to -= *before.counts()[i]
	}
	for i, to := range s.times() {
		if *to -= *before.times()[i]; *to < 0 { // one wrap: readings are closer than two wraps
			*to += tickWrap
		}
	}
	return s
}

// Reading is one reading of several devices: of the paths of one multipath device, or of the devices of several
// directories.
type Reading []BlockStat

// Sub returns the work of all devices between an earlier reading and this one, or since they appeared without
// an earlier one. Times are subtracted for each device: the device that was busy longest since boot need not be
// the one that was busy in between.
func (r Reading) Sub(before Reading) (sum BlockStat) {
	for i, s := range r {
		if before != nil {
			s = s.Sub(before[i])
		}
		sum = sum.add(s)
	}
	return sum
}

// Advance adds the work of the same devices between two other readings, so that a difference to r does not
// have it. It does nothing if one of these is missing.
func (r Reading) Advance(from, to Reading) {
	for i := range min(len(r), len(from), len(to)) {
		work := to[i].Sub(from[i])
		for k, n := range r[i].counts() {
			*n += *work.counts()[k]
		}
		for k, d := range r[i].times() {
			*d += *work.times()[k]
		}
	}
}

// add sums the work of two devices in one period. Stacked devices must not be summed, because a byte would
// count in each layer.
func (s BlockStat) add(o BlockStat) BlockStat {
	o.IOTicks = max(o.IOTicks-s.IOTicks, 0) // they were busy at the same time
	for i, to := range s.counts() {
		*to += *o.counts()[i]
	}
	for i, to := range s.times() {
		*to += *o.times()[i]
	}
	return s
}
