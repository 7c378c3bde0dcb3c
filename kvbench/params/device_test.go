package params

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/units"
	"kvbench/tiers"
)

func TestSimulatedDevice(t *testing.T) {
	v := good(t, Inputs{Bench: bench(t, "MaxStorageStress")}, "-simulate-device",
		"read=14GiB/s,write=7GiB/s,read-latency=80us,write-latency=20us,parallelism=128")
	require.NotNil(t, v.Device)
	d := *v.Device
	assert.Equal(t, tiers.DeviceModel{Read: float64(14 * units.GiB), Write: float64(7 * units.GiB),
		ReadLatency: 80 * time.Microsecond, WriteLatency: 20 * time.Microsecond, Parallelism: 128},
		d)
	assert.True(t, v.Simulated())
	d, err := ParseDevice("write=1000, read=512MiB,duplex=1")
	require.NoError(t, err)
	assert.Equal(t, tiers.DeviceModel{Read: float64(512 * units.MiB), Write: 1000, Parallelism: 128,
		Duplex: true}, d)
	d, err = ParseDevice("read=400MiB/s,write=200MiB/s,read-iops=1000,write-iops=500,slice=100ms,flush=2ms")
	require.NoError(t, err)
	assert.Equal(t, tiers.DeviceModel{Read: float64(400 * units.MiB),
		Write: float64(200 * units.MiB), ReadIOPS: 1000, WriteIOPS: 500, Parallelism: 128,
		Slice: 100 * time.Millisecond, Flush: 2 * time.Millisecond}, d)
	assert.Equal(t,
		"read=400MiB/s,write=200MiB/s,read-latency=0s,write-latency=0s,parallelism=128,read-iops=1000,write-iops=500,slice=100ms,flush=2ms", FormatDevice(d))
	// Data sheets count in powers of ten, and the text reads back to the same.
	d, err = ParseDevice("read=14GB/s,write=6500MB/s")
	require.NoError(t, err)
	assert.Equal(t, tiers.DeviceModel{Read: 14e9, Write: 6.5e9, Parallelism: 128}, d)
	again, err := ParseDevice(FormatDevice(d))
	require.NoError(t, err)
	assert.Equal(t, d, again)
	_, err = ParseDevice("read=14GB,write=1GiB/s")
	assert.ErrorContains(t, err, "did you mean") // a size is binary
	for _, text := range []string{
		"read=1GiB,write=1GiB,read-iops=-1", "read=1GiB,write=1GiB,write-iops=1e3",
		"read=1GiB,write=1GiB,slice=-1s", "read=1GiB,write=1GiB,write-iops=1000000001",
		"fast", "read=1GiB/s", "read=1GiB,write=0", "read=1GB,write=1GiB/s",
		"read=1GiB,read=2GiB,write=1GiB", "read=1GiB,write=1GiB,depth=3",
		"read=1GiB,write=1GiB,parallelism=0", "read=1GiB,write=1GiB,duplex=maybe",
		"read=9PiB,write=1GiB", "read=1GiB,write=1GiB,",
	} {
		_, err := ParseDevice(text)
		assert.Error(t, err, text)
	}
}

func FuzzDevice(f *testing.F) {
	for _, text := range []string{
		"read=14GiB/s,write=7GiB/s,read-latency=80us,write-latency=20us,parallelism=128",
		"read=1,write=2,duplex=t,read-iops=3", "=,=", "read", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDevice(text)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		again, err := ParseDevice(FormatDevice(d))
		require.NoError(t, err, FormatDevice(d))
		require.Equal(t, d, again)
	})
}
