package host

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"kvbench/tracing"
)

// SectorSize is the unit of the sector columns in /sys/block/*/stat: 512 bytes on every device,
// whatever its logical block size.
const SectorSize = 512

// BlockStat is one reading of /sys/block/<device>/stat: counters since the device appeared. The
// difference of two readings (Sub) is what the device did between them. Times are summed over
// requests, with the kernel's resolution of a millisecond, so they may exceed the time that passed.
type BlockStat struct {
	tracing.DeviceStat
	InFlight int64 // requests at the device now: a gauge, not a counter
}

// tick is the unit of times. The kernel prints them as 32-bit numbers, which start again at zero at
// tickWrap: 50 days of summed request time pass within weeks on a busy array.
const (
	tick     = int64(time.Millisecond)
	tickWrap = tick << 32
)

// column is a number of the file: which, what one of it counts, and where it is kept.
type column struct {
	at   int
	unit int64
	to   *int64
}

// columns are those of interest. Discards are counted since Linux 4.18, flushes since 5.5; before,
// their columns are missing and they stay 0.
func (s *BlockStat) columns() []column {
	return []column{
		{0, 1, &s.ReadIOs}, {2, SectorSize, &s.ReadBytes}, {3, tick, (*int64)(&s.ReadTicks)},
		{4, 1, &s.WriteIOs}, {6, SectorSize, &s.WriteBytes}, {7, tick, (*int64)(&s.WriteTicks)},
		{8, 1, &s.InFlight}, {9, tick, (*int64)(&s.IOTicks)}, {10, tick, (*int64)(&s.TimeInQueue)},
		{11, 1, &s.DiscardIOs}, {13, SectorSize, &s.DiscardBytes},
		{14, tick, (*int64)(&s.DiscardTicks)},
		{15, 1, &s.FlushIOs}, {16, tick, (*int64)(&s.FlushTicks)},
	}
}

// ParseBlockStat reads the text of a block device's stat file: 11 columns, 15 since Linux 4.18
// (discards), 17 since 5.5 (flushes). Later kernels may append; what is unknown is ignored.
func ParseBlockStat(text string) (s BlockStat, err error) {
	const least = 11
	fields := strings.Fields(text)
	if len(fields) < least {
		return s, fmt.Errorf("block device statistics have %d columns, "+
			"at least %d are needed: %q", len(fields), least, clip(text))
	}
	switch n := len(fields); { // half a group says nothing
	case n < 15:
		fields = fields[:11]
	case n < 17:
		fields = fields[:15]
	}
	for _, c := range s.columns() {
		if c.at >= len(fields) {
			break
		}
		v, err := strconv.ParseUint(fields[c.at], 10, 64)
		if limit := math.MaxInt64 / uint64(c.unit); err == nil && v > limit {
			err = fmt.Errorf("%d is more than the %d that can be counted", v, limit)
		}
		if err != nil {
			return BlockStat{}, fmt.Errorf("block device statistics, column %d (%q): %w", c.at+1,
				clip(fields[c.at]), err)
		}
		*c.to = int64(v) * c.unit
	}
	return s, nil
}

// Sub returns what the device did between the reading before and this one. InFlight stays that of
// the later reading.
func (s BlockStat) Sub(before BlockStat) BlockStat {
	before.InFlight = 0
	old := before.columns()
	for i, c := range s.columns() {
		if *c.to -= *old[i].to; *c.to < 0 && c.unit == tick { // one wrap: nobody waits for two
			*c.to += tickWrap
		}
	}
	return s
}

// Add sums two readings of different devices; only paths of one multipath device are ever summed,
// because an I/O takes exactly one of them. Stacked devices are not: the same byte would count in
// each layer.
func (s BlockStat) Add(o BlockStat) BlockStat {
	o.IOTicks = max(o.IOTicks-s.IOTicks, 0) // they were busy at the same time
	more := o.columns()
	for i, c := range s.columns() {
		*c.to += *more[i].to
	}
	return s
}
