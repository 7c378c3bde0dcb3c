package host

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// SectorSize is the unit of the sector columns in /sys/block/*/stat: 512 bytes on every device,
// whatever its logical block size.
const SectorSize = 512

// BlockStat is one reading of /sys/block/<device>/stat: counters since the device appeared. The
// difference of two readings (Sub) is what the device did between them. Times are summed over
// requests, with the kernel's resolution of a millisecond, so they may exceed the time that passed.
type BlockStat struct {
	ReadIOs    int64         // completed read requests
	ReadBytes  int64         // bytes of completed reads
	ReadTicks  time.Duration // Σ time of reads, from queueing to completion
	WriteIOs   int64         // completed write requests, flush parents included
	WriteBytes int64
	WriteTicks time.Duration
	InFlight   int64         // requests at the device now: a gauge, not a counter
	IOTicks    time.Duration // time during which at least one request was in flight
	// TimeInQueue is IOTicks weighted by the number of requests in flight.
	TimeInQueue time.Duration
	DiscardIOs  int64 // since Linux 4.18, 0 before
	FlushIOs    int64 // since Linux 5.5, 0 before
}

// ParseBlockStat reads the text of a block device's stat file: 11 columns, 15 since Linux 4.18
// (discards), 17 since 5.5 (flushes). Later kernels may append; what is unknown is ignored.
func ParseBlockStat(text string) (BlockStat, error) {
	const least = 11
	fields := strings.Fields(text)
	if len(fields) < least {
		return BlockStat{}, fmt.Errorf("block device statistics have %d columns, "+
			"at least %d are needed: %q", len(fields), least, clip(text))
	}
	switch n := len(fields); { // half a group says nothing
	case n < 15:
		fields = fields[:11]
	case n < 17:
		fields = fields[:15]
	}
	var wrong error // the first; the table below reads as a table
	column := func(i int, unit int64) int64 {
		if wrong != nil || i >= len(fields) {
			return 0
		}
		v, err := strconv.ParseUint(fields[i], 10, 64)
		if limit := math.MaxInt64 / uint64(unit); err == nil && v > limit {
			err = fmt.Errorf("%d is more than the %d that can be counted", v, limit)
		}
		if err != nil {
			wrong = fmt.Errorf(
				"block device statistics, column %d (%q): %w",
				i+1,
				clip(fields[i]),
				err,
			)
			return 0
		}
		return int64(v) * unit
	}
	count := func(i int) int64 { return column(i, 1) }
	bytes := func(i int) int64 { return column(i, SectorSize) }
	ticks := func(i int) time.Duration { return time.Duration(column(i, int64(time.Millisecond))) }
	s := BlockStat{
		ReadIOs: count(0), ReadBytes: bytes(2), ReadTicks: ticks(3),
		WriteIOs: count(4), WriteBytes: bytes(6), WriteTicks: ticks(7),
		InFlight: count(8), IOTicks: ticks(9), TimeInQueue: ticks(10),
		DiscardIOs: count(11), FlushIOs: count(15),
	}
	if wrong != nil {
		return BlockStat{}, wrong
	}
	return s, nil
}

// readStatFile names the file: a device may be several.
func readStatFile(path string) (BlockStat, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return BlockStat{}, err
	}
	s, err := ParseBlockStat(string(text))
	if err != nil {
		return BlockStat{}, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// tickWrap is where the kernel's millisecond columns start again at zero: it prints them as 32-bit
// numbers, and 50 days of summed request time pass within weeks on a busy array.
const tickWrap = (1 << 32) * time.Millisecond

// Sub returns what the device did between the reading before and this one. InFlight stays that of
// the later reading.
func (s BlockStat) Sub(before BlockStat) BlockStat {
	return BlockStat{
		ReadIOs: s.ReadIOs - before.ReadIOs, ReadBytes: s.ReadBytes - before.ReadBytes,
		ReadTicks: subTicks(s.ReadTicks, before.ReadTicks),
		WriteIOs:  s.WriteIOs - before.WriteIOs, WriteBytes: s.WriteBytes - before.WriteBytes,
		WriteTicks:  subTicks(s.WriteTicks, before.WriteTicks),
		InFlight:    s.InFlight,
		IOTicks:     subTicks(s.IOTicks, before.IOTicks),
		TimeInQueue: subTicks(s.TimeInQueue, before.TimeInQueue),
		DiscardIOs:  s.DiscardIOs - before.DiscardIOs, FlushIOs: s.FlushIOs - before.FlushIOs,
	}
}

// subTicks takes one wrap: nobody waits for two.
func subTicks(later, before time.Duration) time.Duration {
	if later < before {
		return later + tickWrap - before
	}
	return later - before
}

// Add sums two readings of different devices; only paths of one multipath device are ever summed,
// because an I/O takes exactly one of them. Stacked devices are not: the same byte would count in
// each layer.
func (s BlockStat) Add(o BlockStat) BlockStat {
	return BlockStat{
		ReadIOs: s.ReadIOs + o.ReadIOs, ReadBytes: s.ReadBytes + o.ReadBytes,
		ReadTicks: s.ReadTicks + o.ReadTicks,
		WriteIOs:  s.WriteIOs + o.WriteIOs, WriteBytes: s.WriteBytes + o.WriteBytes,
		WriteTicks: s.WriteTicks + o.WriteTicks,
		InFlight:   s.InFlight + o.InFlight, IOTicks: max(s.IOTicks, o.IOTicks),
		TimeInQueue: s.TimeInQueue + o.TimeInQueue,
		DiscardIOs:  s.DiscardIOs + o.DiscardIOs, FlushIOs: s.FlushIOs + o.FlushIOs,
	}
}
