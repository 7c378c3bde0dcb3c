package record

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
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
