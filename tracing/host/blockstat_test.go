package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbench/tracing"
)

func TestBlockStatSub(t *testing.T) {
	const ms = time.Millisecond
	before := BlockStat{InFlight: 1, DeviceStat: tracing.DeviceStat{
		ReadIOs: 10, ReadBytes: 51200, ReadTicks: 4294967290 * ms, // the last before the wrap is …295
		WriteIOs: 20, WriteTicks: 50 * ms, IOTicks: 60 * ms, DiscardIOs: 1, FlushIOs: 3}}
	after := BlockStat{InFlight: 5, DeviceStat: tracing.DeviceStat{
		ReadIOs: 15, ReadBytes: 59392, ReadTicks: 4 * ms,
		WriteIOs: 27, WriteTicks: 90 * ms, IOTicks: 65 * ms, DiscardIOs: 2, FlushIOs: 4}}
	assert.Equal(t, BlockStat{InFlight: 5, DeviceStat: tracing.DeviceStat{
		ReadIOs: 5, ReadBytes: 8192, ReadTicks: 10 * ms,
		WriteIOs: 7, WriteTicks: 40 * ms, IOTicks: 5 * ms, DiscardIOs: 1, FlushIOs: 1}},
		after.Sub(before))
}

func TestReadingOfSeveralDevices(t *testing.T) {
	one := BlockStat{InFlight: 7, DeviceStat: tracing.DeviceStat{ReadIOs: 1, ReadBytes: 1024,
		IOTicks: 8 * time.Millisecond, TimeInQueue: 9 * time.Millisecond}}
	assert.Equal(t, BlockStat{InFlight: 14, DeviceStat: tracing.DeviceStat{ReadIOs: 2,
		ReadBytes: 2048, IOTicks: 8 * time.Millisecond, // both were busy at the same time
		TimeInQueue: 18 * time.Millisecond}}, Reading{one, one}.Sub(nil))
}

// Work between two readings that an earlier reading is advanced by is in no difference to it.
func TestAdvancedReading(t *testing.T) {
	at := func(n int64, busy time.Duration) Reading {
		return Reading{{DeviceStat: tracing.DeviceStat{ReadIOs: n, ReadBytes: n * 4096, IOTicks: busy}}}
	}
	r := at(10, 4294967290*time.Millisecond)
	r.Advance(at(12, 4294967295*time.Millisecond), at(112, 99*time.Millisecond))
	r.Advance(nil, at(500, 0))
	assert.Equal(t, at(15, 13*time.Millisecond)[0], at(125, 107*time.Millisecond).Sub(r))
}
