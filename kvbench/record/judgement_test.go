package record

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
)

func TestVerdict(t *testing.T) {
	base := verdictInput{window: 10 * time.Second, idle: 2e9, busy: 98e9, cpu: 5e9, cores: 2,
		waits: 10e9}
	change := func(f func(*verdictInput)) result.Verdict { in := base; f(&in); return judge(in) }
	v := judge(base)
	assert.Equal(t, result.StorageLimited, v.Kind)
	assert.InDelta(t, 0.02, *v.IdleShare, 1e-9)
	assert.InDelta(t, 0.25, *v.CPUShare, 1e-9)
	assert.InDelta(t, 10.0/98, *v.HostWaitShare, 1e-9)

	v = change(func(in *verdictInput) { in.idle, in.busy = 21e9, 79e9; in.cpu = 20e9 })
	assert.Equal(t, result.LoadLimited, v.Kind, "idle workers come first")
	assert.Contains(t, v.Reason, "21 %")
	v = change(func(in *verdictInput) { in.cpu = 17e9 })
	assert.Equal(t, result.HarnessLimited, v.Kind)
	assert.Contains(t, v.Reason, "85 % of the 2 cores")
	v = change(func(in *verdictInput) { in.waits = 30e9 })
	assert.Equal(t, result.HarnessLimited, v.Kind)
	assert.Equal(t, result.StorageLimited,
		change(func(in *verdictInput) { in.idle, in.busy = 20e9, 80e9 }).Kind,
		"20 % is not more than 20 %")
	unmeasured := judge(verdictInput{window: time.Second})
	assert.Equal(t, result.StorageLimited, unmeasured.Kind)
	assert.Nil(t, unmeasured.IdleShare)
	assert.Equal(t, result.NoVerdict, judge(verdictInput{}).Kind)
}
