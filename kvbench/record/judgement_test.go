package record

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
	"kvbench/tiers"
)

func TestVerdict(t *testing.T) {
	base := result.Harness{WorkerIdleNS: 2e9, WorkerBusyNS: 98e9, CPUNS: 5e9, HostNS: 4e9,
		BufferWaitNS: 6e9}
	change := func(f func(*result.Harness)) result.Verdict {
		h := base
		f(&h)
		return judge(&h, 10*time.Second, 2)
	}
	v := change(func(*result.Harness) {})
	assert.Equal(t, result.StorageLimited, v.Kind)
	assert.InDelta(t, 0.02, *v.IdleShare, 1e-9)
	assert.InDelta(t, 0.25, *v.CPUShare, 1e-9)
	assert.InDelta(t, 10.0/98, *v.HostWaitShare, 1e-9)

	v = change(func(h *result.Harness) {
		h.WorkerIdleNS, h.WorkerBusyNS, h.CPUNS = 21e9, 79e9, 20e9
	})
	assert.Equal(t, result.LoadLimited, v.Kind, "idle workers come first")
	assert.Contains(t, v.Reason, "21 %")
	v = change(func(h *result.Harness) { h.CPUNS = 17e9 })
	assert.Equal(t, result.HarnessLimited, v.Kind)
	assert.Contains(t, v.Reason, "85 % of the 2 cores")
	v = change(func(h *result.Harness) { h.BufferWaitNS = 26e9 })
	assert.Equal(t, result.HarnessLimited, v.Kind)
	v = change(func(h *result.Harness) { h.WorkerIdleNS, h.WorkerBusyNS = 20e9, 80e9 })
	assert.Equal(t, result.StorageLimited, v.Kind, "20 % is not more than 20 %")
	unmeasured := judge(&result.Harness{}, time.Second, 0)
	assert.Equal(t, result.StorageLimited, unmeasured.Kind)
	assert.Nil(t, unmeasured.IdleShare)
	assert.Nil(t, unmeasured.CPUShare)
	assert.Equal(t, result.NoVerdict, judge(&result.Harness{}, 0, 0).Kind)
}

// warningsOf are those of a trial of 12 s with these completed requests.
func warningsOf(completed int, in result.Result) string {
	rec := openRecorder(1, 12*time.Second)
	for range completed {
		rec.Request(RequestSample{})
	}
	rec.Chunk(0, tiers.Storage, tiers.Decode, tiers.Chunk{Op: tiers.Read, Bytes: 100 << 20})
	return strings.Join(Build(infoOf(in), rec).Warnings, "\n")
}

func TestAWindowThatIsTooShortIsSaidSo(t *testing.T) {
	end := func(by string, inFlight int64) result.Result {
		return result.Result{EndedBy: by,
			Load: map[string]result.ClassOutcome{"batch": {InFlight: inFlight}}}
	}
	assert.Contains(t, warningsOf(8, end(result.EndedByDeadline, 200)),
		"the window of 12 s is too short for this load: 8 requests completed in it and 200 were "+
			"under way at its end; one takes about 5m0s at this rate")
	for _, c := range []struct {
		completed int
		in        result.Result
	}{{200, end(result.EndedByDeadline, 200)}, {8, end(result.EndedBySignal, 200)},
		{8, end(result.EndedByDeadline, 8)}} {
		assert.NotContains(t, warningsOf(c.completed, c.in), "too short")
	}
}

func TestADeviceThatSomebodyElseReadIsSaidSo(t *testing.T) {
	for share, want := range map[int64]string{90: "served from a cache", 96: "", 104: "",
		145: "the device read 145 MiB where the application read 100 MiB (ratio 1.45): somebody else"} {
		got := warningsOf(1, result.Result{DeviceWitness: result.Witness{Device: "vda",
			ReadBytes: new(share << 20), WriteBytes: new(int64(0))}})
		if want == "" {
			assert.NotContains(t, got, "the device read")
		} else {
			assert.Contains(t, got, want)
		}
	}
}
