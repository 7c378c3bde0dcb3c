package host

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// SectorSize is the unit of the sector columns in /sys/block/*/stat: 512 bytes on every device, whatever its
// logical block size.
const SectorSize = 512

// BlockStat is one reading of /sys/block/<device>/stat: counters since the device appeared. The difference of two
// readings (Sub) is what the device did between them. Times are summed over requests, with the kernel's resolution of
// a millisecond, so they may exceed the time that passed.
type BlockStat struct {
	ReadIOs    int64         // completed read requests
	ReadBytes  int64         // bytes of completed reads
	ReadTicks  time.Duration // Σ time of reads, from queueing to completion
	WriteIOs   int64         // completed write requests, flush parents included
	WriteBytes int64
	WriteTicks time.Duration
	InFlight   int64         // requests at the device at the moment of reading: a gauge, not a counter
	IOTicks    time.Duration // time during which at least one request was in flight
	// TimeInQueue is IOTicks weighted by the number of requests in flight.
	TimeInQueue  time.Duration
	DiscardIOs   int64 // since Linux 4.18, 0 before
	DiscardBytes int64
	DiscardTicks time.Duration
	FlushIOs     int64 // since Linux 5.5, 0 before
	FlushTicks   time.Duration
}

// The columns of the file as kernels wrote them over time. Later kernels may append; what is unknown is ignored.
const (
	columnsBase    = 11
	columnsDiscard = 15
	columnsFlush   = 17
)

// ParseBlockStat reads the text of a block device's stat file: 11 columns, 15 since Linux 4.18 (discards), 17 since
// 5.5 (flushes).
func ParseBlockStat(text string) (BlockStat, error) {
	fields := strings.Fields(text)
	if len(fields) < columnsBase {
		return BlockStat{}, fmt.Errorf("block device statistics have %d columns, at least %d are needed: %q",
			len(fields), columnsBase, clip(text))
	}
	p := columnParser{fields: fields}
	s := BlockStat{
		ReadIOs: p.count(0), ReadBytes: p.sectors(2), ReadTicks: p.ticks(3),
		WriteIOs: p.count(4), WriteBytes: p.sectors(6), WriteTicks: p.ticks(7),
		InFlight: p.count(8), IOTicks: p.ticks(9), TimeInQueue: p.ticks(10),
	}
	if len(fields) >= columnsDiscard {
		s.DiscardIOs, s.DiscardBytes, s.DiscardTicks = p.count(11), p.sectors(13), p.ticks(14)
	}
	if len(fields) >= columnsFlush {
		s.FlushIOs, s.FlushTicks = p.count(15), p.ticks(16)
	}
	if p.err != nil {
		return BlockStat{}, p.err
	}
	return s, nil
}

// columnParser keeps the first error, so that the table above reads as a table.
type columnParser struct {
	fields []string
	err    error
}

func (p *columnParser) number(i int, limit uint64) int64 {
	if p.err != nil {
		return 0
	}
	v, err := strconv.ParseUint(p.fields[i], 10, 64)
	if err == nil && v > limit {
		err = fmt.Errorf("%d is more than the %d that can be counted", v, limit)
	}
	if err != nil {
		p.err = fmt.Errorf("block device statistics, column %d (%q): %w", i+1, clip(p.fields[i]), err)
		return 0
	}
	return int64(v)
}

func (p *columnParser) count(i int) int64 { return p.number(i, math.MaxInt64) }

func (p *columnParser) sectors(i int) int64 {
	return p.number(i, math.MaxInt64/SectorSize) * SectorSize
}

func (p *columnParser) ticks(i int) time.Duration {
	return time.Duration(p.number(i, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond
}

// tickWrap is where the kernel's millisecond columns start again at zero: it prints them as 32-bit numbers, and 50 days
// of summed request time pass within weeks on a busy array.
const tickWrap = (1 << 32) * time.Millisecond

// Sub returns what the device did between the reading before and this one. InFlight stays that of the later reading.
func (s BlockStat) Sub(before BlockStat) BlockStat {
	return BlockStat{
		ReadIOs: s.ReadIOs - before.ReadIOs, ReadBytes: s.ReadBytes - before.ReadBytes,
		ReadTicks: subTicks(s.ReadTicks, before.ReadTicks),
		WriteIOs:  s.WriteIOs - before.WriteIOs, WriteBytes: s.WriteBytes - before.WriteBytes,
		WriteTicks: subTicks(s.WriteTicks, before.WriteTicks),
		InFlight:   s.InFlight,
		IOTicks:    subTicks(s.IOTicks, before.IOTicks), TimeInQueue: subTicks(s.TimeInQueue, before.TimeInQueue),
		DiscardIOs: s.DiscardIOs - before.DiscardIOs, DiscardBytes: s.DiscardBytes - before.DiscardBytes,
		DiscardTicks: subTicks(s.DiscardTicks, before.DiscardTicks),
		FlushIOs:     s.FlushIOs - before.FlushIOs, FlushTicks: subTicks(s.FlushTicks, before.FlushTicks),
	}
}

func subTicks(later, before time.Duration) time.Duration {
	if later < before {
		return later + tickWrap - before
	}
	return later - before
}

// Add sums two readings of different devices; only paths of one multipath device are ever summed, because an I/O takes
// exactly one of them. Stacked devices are not: the same byte would count in each layer.
func (s BlockStat) Add(o BlockStat) BlockStat {
	return BlockStat{
		ReadIOs: s.ReadIOs + o.ReadIOs, ReadBytes: s.ReadBytes + o.ReadBytes, ReadTicks: s.ReadTicks + o.ReadTicks,
		WriteIOs: s.WriteIOs + o.WriteIOs, WriteBytes: s.WriteBytes + o.WriteBytes, WriteTicks: s.WriteTicks + o.WriteTicks,
		InFlight: s.InFlight + o.InFlight, IOTicks: max(s.IOTicks, o.IOTicks), TimeInQueue: s.TimeInQueue + o.TimeInQueue,
		DiscardIOs: s.DiscardIOs + o.DiscardIOs, DiscardBytes: s.DiscardBytes + o.DiscardBytes,
		DiscardTicks: s.DiscardTicks + o.DiscardTicks,
		FlushIOs:     s.FlushIOs + o.FlushIOs, FlushTicks: s.FlushTicks + o.FlushTicks,
	}
}

// clip keeps an error message to one line of sensible length, whatever the file held.
func clip(s string) string {
	const longest = 80
	if len(s) > longest {
		return s[:longest] + "…"
	}
	return s
}
