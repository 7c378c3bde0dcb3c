package benchmarks

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/tiers"
	"kvbench/tiers/cache"
)

func TestTheLiveLineShowsRatesSinceTheLastOne(t *testing.T) {
	show := (&liveLine{name: "Synthetic"}).text
	const gibibyte = int64(1) << 30
	bytes := func(read, written int64) (live record.Live) {
		live.Bytes[tiers.Storage][tiers.Read] = read
		live.Bytes[tiers.Storage][tiers.Write] = written
		return live
	}
	gauges := []cache.Gauge{{Level: tiers.CPU, Used: gibibyte, Capacity: 4 * gibibyte},
		{Level: tiers.Storage, Used: 3 * gibibyte, Capacity: 4 * gibibyte}}

	assert.Equal(t, "Synthetic: pausing 0s/1m30s",
		show(kvbench.Snapshot{Stage: "pausing", Total: 90 * time.Second, Free: -1}))
	assert.Equal(t, "Synthetic: preconditioning 5s, 2.0 GiB of 8.0 GiB",
		show(kvbench.Snapshot{Stage: "preconditioning", Elapsed: 5 * time.Second,
			Done: 2 * gibibyte, DoneTotal: 8 * gibibyte, Free: -1}))

	assert.Equal(t, "Synthetic: waiting for I/O in flight 5s, 3 requests UNANSWERED for 7s",
		show(kvbench.Snapshot{Stage: "waiting for I/O in flight", Elapsed: 5 * time.Second,
			Stuck: 3, StuckFor: 7 * time.Second, Free: -1}))

	s := kvbench.Snapshot{
		Stage: "running", Elapsed: 2 * time.Second, Total: 30 * time.Second,
		Live:   bytes(4*gibibyte, gibibyte),
		Queued: 7, Tiers: gauges, Free: 100 * gibibyte,
	}
	s.Live.Requests = 12
	assert.Equal(t, "Synthetic: running 2s/30s, 12 req, read 2.00 GiB/s, write 0.50 GiB/s, queue "+
		"7, cpu 25%, storage 75%, free 100.0 GiB", show(s),
		"the first line of a stage counts from its beginning")

	s.Elapsed, s.Live, s.Free, s.Total = 3*time.Second, bytes(5*gibibyte, 4*gibibyte), -1, 0
	s.Live.Failures = 2
	assert.Equal(t, "Synthetic: running 3s, 0 req, read 1.00 GiB/s, write 3.00 GiB/s, queue 7, "+
		"cpu 25%, storage 75%, 2 FAILED", show(s))

	assert.Contains(t, show(s), "read –, write –", "no time has passed: no rate")
	assert.NotContains(t, show(s), "NaN")
}

// A second Ctrl-C leaves files behind where there are some, which a simulation has not.
func TestTheLineAfterASignal(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	s := &session{ctx: ctx, tty: w}
	for _, simulated := range []bool{false, true} {
		show, _ := s.live("Synthetic", simulated)
		show(kvbench.Snapshot{Stage: "running", Free: -1})
	}
	require.NoError(t, w.Close())
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Equal(t, "\r\x1b[Krunning 0s, again Ctrl-C leaves the files\r\x1b[Krunning 0s",
		string(text))
}
