package requests

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/cache"
	"kvbench/tiers/content"
	"kvbench/tiers/faults"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
	"kvbench/workloads/users"
)

// usage runs a trial and returns the cache's usage when nothing runs any more: it has to be the sum
// of the entries.
func usage(ctx context.Context, t *testing.T, cfg runConfig) (*result.Result, []cache.Gauge,
	error) {
	t.Helper()
	l := New(cfg.Config)
	res, err := kvbench.Run(ctx, cfg.engine, l)
	return res, l.env.Cache.Gauges(nil), err
}

// faulty is a run of users on a null tier whose calls go through the hook.
func faulty(hook faults.Hook, requests int64) (runConfig, *faults.Files) {
	tier := faults.Wrap(tiertest.NewNull(), hook)
	// The account at the end goes through what has arrived until then: no more than is needed.
	src := population(20, func(u *users.Config) { u.Rate, u.MaxRequests = 1e4, requests })
	// too little room for all: entries are evicted, too
	return testConfig(storage(tier, 30000*unit), src, 8).finite(), tier
}

// checkUsage checks that nothing is reserved or lost after a run.
func checkUsage(t *testing.T, tier *faults.Files, gauges []cache.Gauge) {
	t.Helper()
	w, r := tier.InUse()
	assert.Zero(t, w+r, "writers and readers left open")
	require.Len(t, gauges, 1)
	assert.Equal(t, gauges[0].Used, gauges[0].Bytes, "reservations are left")
	assert.LessOrEqual(t, gauges[0].Used, gauges[0].Capacity)
}

func TestErrorsOfTheDirectoryEndTheTrial(t *testing.T) {
	noLeaks(t)
	for _, c := range []struct {
		call  faults.Call
		err   error
		errno string
		op    string
		once  []string // in the message
	}{
		{faults.Commit, syscall.EIO, "EIO", "write", []string{"kernel log"}},
		{faults.Create, syscall.ENOSPC, "ENOSPC", "write", []string{"-storage-capacity-gb",
			"iB and ", " inodes left, so it is the directory that is full"}},
		{faults.Commit, syscall.ENOSPC, "ENOSPC", "write", []string{"-storage-capacity-gb",
			"iB and ", " inodes left"}},
		{faults.Create, syscall.EDQUOT, "EDQUOT", "write",
			[]string{"-storage-capacity-gb", "raise the quota"}},
		{faults.Create, syscall.EROFS, "EROFS", "write", []string{"remount"}},
		{faults.Open, syscall.EIO, "EIO", "read", []string{"kernel log"}},
		{faults.Remove, syscall.EIO, "EIO", "delete", []string{"kernel log"}},
		{faults.Open, &content.MismatchError{Key: "k", Offset: 77}, "mismatch", "read",
			[]string{"at offset 77"}},
	} {
		t.Run(fmt.Sprintf("%s/%v", c.call, c.errno), func(t *testing.T) {
			cfg, tier := faulty(faults.On(c.call, 20, &tiers.OpError{Op: string(c.call),
				Path: t.TempDir() + "/f", Err: c.err}), 1000)
			var published *result.Result
			cfg.Publish = func(r *result.Result) error { published = r; return nil }
			r, gauges, err := usage(t.Context(), t, cfg)
			require.ErrorIs(t, err, c.err)
			assert.ErrorContains(t, err, "storage tier")
			for _, text := range c.once {
				assert.Equal(t, 1, strings.Count(err.Error(), text), "%s: %v", text, err)
			}
			assert.Same(t, r, published)
			assert.Equal(t, result.StatusFailed, r.Status)
			assert.Equal(t, result.EndedByError, r.EndedBy)
			require.NotEmpty(t, r.Errors)
			assert.Equal(t, result.ErrorCount{Tier: "storage", Operation: c.op, Errno: c.errno,
				Count: 1}, r.Errors[0])
			require.Len(t, r.ErrorSamples, 1)
			assert.True(t, r.ErrorSamples[0].Fatal)
			assert.NotEmpty(t, r.ErrorSamples[0].Key)
			assert.Contains(t, r.Error, r.ErrorSamples[0].Key)
			if c.errno == "mismatch" {
				assert.EqualValues(t, 77, *r.ErrorSamples[0].Offset)
			}
			checkLoad(t, r)
			checkUsage(t, tier, gauges)
		})
	}
}

func TestAPanicBecomesTheRunsError(t *testing.T) {
	noLeaks(t)
	for _, call := range []faults.Call{faults.Commit, faults.Open} { // a write, and a read
		t.Run(string(call), func(t *testing.T) {
			cfg, _ := faulty(func(_ context.Context, e faults.Event) error {
				if e.Call == call && e.N == 20 {
					panic("on purpose")
				}
				return nil
			}, 1000)
			r, err := runLoad(t.Context(), cfg)
			require.ErrorContains(t, err, "on purpose")
			assert.ErrorContains(t, err, "goroutine", "with its stack")
			assert.Equal(t, result.StatusFailed, r.Status)
			assert.Equal(t, result.EndedByError, r.EndedBy)
			assert.Contains(t, r.Error, "on purpose")
			checkLoad(t, r)
		})
	}
	t.Run("worker", func(t *testing.T) {
		cfg, tier := faulty(nil, 1000)
		n := 0
		cfg.OnDispatch = func(*workloads.Request, []workloads.Op) {
			if n++; n == 100 {
				panic("on purpose")
			}
		}
		r, gauges, err := usage(t.Context(), t, cfg)
		require.ErrorContains(t, err, "on purpose")
		assert.Equal(t, result.StatusFailed, r.Status)
		checkLoad(t, r)
		checkUsage(t, tier, gauges)
	})
}

func TestAResultThatCannotBePublishedIsAnError(t *testing.T) {
	cfg := testConfig(plenty(), newScript(singles(3, 1)...), 1).finite()
	cfg.Publish = func(*result.Result) error { return syscall.ENOSPC }
	r, err := runLoad(t.Context(), cfg)
	require.ErrorIs(t, err, syscall.ENOSPC)
	assert.ErrorContains(t, err, "writing the result")
	assert.Equal(t, result.StatusComplete, r.Status)
}

func TestWhatCannotWorkIsReportedAtOnce(t *testing.T) {
	cfg := testConfig(plenty(), newScript(), 1).finite()
	cfg.Storage = kvbench.StorageConfig{Use: buffer.Use{Chunk: 1000}}
	r, err := runLoad(t.Context(), cfg)
	assert.Nil(t, r)
	assert.ErrorContains(t, err, "buffers of 1000 bytes: there must be at least one, and the size a multiple of 4096")
}
