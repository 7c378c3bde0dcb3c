package tracing

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// device is the trace of one at which 1000 reads of 1 MiB took 10 ms each, in a second.
func device() *Trace {
	return &Trace{Capture: Capture{
		Status: StatusTraced, Filter: FilterDevice, Device: "nvme0n1", WindowNS: 1e9,
		IdleKnown: true,
		Read:      Direction{Requests: 1000, Bytes: 1000 << 20, D2CNS: 1000 * 10e6, MeanDepth: 10},
	}}
}

func TestDiagnosis(t *testing.T) {
	with := func(change func(*Capture)) *Trace { tr := device(); change(&tr.Capture); return tr }
	assert.Contains(t, device().Diagnosis(Application{}),
		"device-bound: 10.0 requests were in flight on average, and something was for 100% of "+
			"the window, each 10 ms at the device")
	assert.Contains(t, device().Diagnosis(Application{ReadBytes: 10 << 30}),
		"cache-served: the device read 10%")
	calls := device()
	calls.VFSReadSize = NewHistogram("kb", 4000*1024,
		[]Bucket{{Range: [2]float64{1024, 1088}, Count: 4000}})
	assert.Contains(t, calls.Diagnosis(Application{}), "cache-served: the device read 25%",
		"a program that is only watched counts nothing itself")
	idle := with(func(c *Capture) { c.IdleNS = 4e8 })
	assert.Contains(t, idle.Diagnosis(Application{}),
		"host-bound: the device had nothing to do for 40%")
	unseen := with(func(c *Capture) { c.IdleKnown = false })
	assert.Equal(t, "device-bound: 10.0 requests were in flight on average, each 10 ms at the "+
		"device", unseen.Diagnosis(Application{}))
	unseen.Capture.Read.D2CNS, unseen.Capture.Read.MeanDepth = 5e8, 0.5
	assert.Contains(t, unseen.Diagnosis(Application{}),
		"host-bound: the device had nothing to do for at least 50% of the window")
	others := with(func(c *Capture) { c.Read.ForeignBytes = c.Read.Bytes / 2 })
	own := Application{ReadBytes: others.Capture.Read.Bytes}
	assert.Contains(t, others.Diagnosis(own), "cache-served: the device read 50%",
		"reads of other processes do not count")
	others.Capture.Members = []string{"sda", "sdb"}
	assert.Contains(t, others.Diagnosis(own), "device-bound", "the kernel queues for its members")
	queued := with(func(c *Capture) { c.Read.Q2DNS = 3 * c.Read.D2CNS })
	assert.Contains(t, queued.Diagnosis(Application{}), "scheduler-bound: requests waited 30 ms")
	assert.Contains(t, device().Diagnosis(Application{Remote: true, ReadBytes: 10 << 30}),
		"unknown: the storage is no block device of this host")
	bucket := with(func(c *Capture) { c.Device = "" })
	assert.Contains(t, bucket.Diagnosis(Application{ReadBytes: 10 << 30}),
		"unknown: the storage is no block device")
	none := with(func(c *Capture) { c.Read = Direction{} })
	assert.Contains(t, none.Diagnosis(Application{}), "idle")
	assert.Contains(t, none.Diagnosis(Application{ReadBytes: 1}), "cache-served: no request")
}
