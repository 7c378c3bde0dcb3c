package benchmarks

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/record"
	"kvbench/tiers"
	"kvbench/tiers/cache"
)

func TestTheLiveLineShowsRatesSinceTheLastOne(t *testing.T) {
	line := new(liveLine)
	show := func(s kvbench.Snapshot) string {
		must, more := line.text(s)
		return strings.Join(append([]string{must}, more...), ", ")
	}
	const gibibyte = int64(1) << 30
	bytes := func(read, written int64) (live record.Live) {
		live.Bytes[tiers.Storage][tiers.Read] = read
		live.Bytes[tiers.Storage][tiers.Write] = written
		return live
	}
	gauges := []cache.Gauge{{Level: tiers.CPU, Used: gibibyte, Capacity: 4 * gibibyte},
		{Level: tiers.Storage, Used: 3 * gibibyte, Capacity: 4 * gibibyte}}

	assert.Equal(t, "pausing 0 s of 90 s",
		show(kvbench.Snapshot{Stage: "pausing", Total: 90 * time.Second, Free: -1}))
	assert.Equal(t, "preconditioning 5 s, 2.0 GiB of 8.0 GiB",
		show(kvbench.Snapshot{Stage: "preconditioning", Elapsed: 5 * time.Second,
			Done: 2 * gibibyte, DoneTotal: 8 * gibibyte, Free: -1}))

	assert.Equal(t, "waiting for I/O in flight 5 s, 3 requests UNANSWERED for 7 s",
		show(kvbench.Snapshot{Stage: "waiting for I/O in flight", Elapsed: 5 * time.Second,
			Stuck: 3, StuckFor: 7 * time.Second, Free: -1}))

	s := kvbench.Snapshot{
		Stage: "running", Elapsed: 2 * time.Second, Total: 30 * time.Second,
		Live:   bytes(4*gibibyte, gibibyte),
		Queued: 7, Tiers: gauges, Free: 100 * gibibyte,
	}
	s.Live.Requests = 12
	assert.Equal(t, "2 s of 30 s, read 2.00, write 0.50 GiB/s, 7 requests wait, 12 completed, "+
		"cpu tier 25 % full, storage tier 75 % full, 100.0 GiB free", show(s),
		"the first line of a stage counts from its beginning")

	s.Elapsed, s.Live, s.Free, s.Total = 3*time.Second, bytes(5*gibibyte, 4*gibibyte), -1, 0
	s.Live.Failures = 2
	assert.Equal(t, "running 3 s, 2 FAILED, read 1.00, write 3.00 GiB/s, 7 requests wait, 0 completed, "+
		"cpu tier 25 % full, storage tier 75 % full", show(s))

	plain := s
	plain.Elapsed, plain.Live.Failures, plain.Tiers = 4*time.Second, 0, []cache.Gauge{}
	plain.Live = bytes(6*gibibyte, 4*gibibyte)
	assert.Equal(t, "running 4 s, read 1.00, write 0.00 GiB/s", show(plain), "plain I/O has no cache")
	s.Elapsed, s.Live = plain.Elapsed, plain.Live

	assert.Contains(t, show(s), "read –, write – GiB/s", "no time has passed: no rate")
	assert.NotContains(t, show(s), "NaN")
}

// The line begins with the benchmark and ends with the time left.
func TestTheHeadOfTheLiveLine(t *testing.T) {
	s := &session{plan: newPlan()}
	l := &line{v: &params.Values{}, estimate: estimate{time: time.Hour}}
	one := &line{v: &params.Values{}}
	s.groups = [][]*line{{l}, {one}}
	for range 2 {
		l.trials = append(l.trials, &trial{line: l, name: "Tier/tier=storage/op=read/size=16MiB"})
	}
	one.trials = []*trial{{line: one, name: "DecodeOnly"}}
	head := func(t *trial, columns int) string {
		start, end := s.headOf(t)(columns)
		return start + end
	}
	assert.Equal(t, "1/2 Tier/tier=storage/op=read/size=16MiB trial 1/2 · 2h0m left", head(l.trials[0], 80))
	assert.Equal(t, "1/2 Ti…16MiB trial 1/2 · 2h0m left", head(l.trials[0], 30))
	l.ran, l.took = 1, time.Hour
	assert.Equal(t, "2/2 DecodeOnly · 1h0m left", head(one.trials[0], 80))

	// A run of a comparison shows which one it is, and the time left of all.
	one.estimate.time, s.plan.time = time.Minute, 2*time.Minute
	s.groups = [][]*line{{one}}
	assert.Equal(t, "DecodeOnly", head(one.trials[0], 80), "stage and window show the progress of one trial")
	one.v.CacheDirs = []string{"/mnt/a/kv"}
	s.compared = readComparedRun("1 12 0 a")
	assert.Equal(t, "run 1 of 12 (a: /mnt/a/kv): DecodeOnly · 23m left", head(one.trials[0], 80))
	s.compared = readComparedRun("3 12 120000000000 a")
	assert.Equal(t, "run 3 of 12 (a: /mnt/a/kv): DecodeOnly · 10m left", head(one.trials[0], 80))
}

// On a terminal of 80 columns are the time left, the benchmark, the stage and the rates, and no part is cut.
func TestTheLiveLineFits(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	s := &session{ctx: t.Context(), tty: w, plan: newPlan()}
	l := &line{v: &params.Values{}, estimate: estimate{time: time.Hour}}
	for range 2 {
		l.trials = append(l.trials, &trial{line: l, name: "StorageCeiling/op=mixed"})
	}
	s.groups = [][]*line{{l}, {{v: &params.Values{}}}}
	show, _ := s.live(l.trials[0])
	now := kvbench.Snapshot{Stage: "running", Elapsed: 12 * time.Second, Total: 30 * time.Second, Queued: 7,
		Tiers: []cache.Gauge{{Level: tiers.Storage, Used: 1, Capacity: 2}}, Free: 1 << 30}
	now.Live.Bytes[tiers.Storage][tiers.Read] = 24 << 30
	show(now)
	now.Live.Bytes[tiers.Storage][tiers.Write] = 12 << 30
	now.Elapsed = 24 * time.Second
	show(now)
	require.NoError(t, w.Close())
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Equal(t, "\r\x1b[K1/2 Storage…iling/op=mixed trial 1/2, 12 s of 30 s, read 2.00 GiB/s · 2h0m left"+
		"\r\x1b[K1/2 Sto…=mixed trial 1/2, 24 s of 30 s, read 0.00, write 1.00 GiB/s · 2h0m left", string(text))
}

// A second Ctrl-C leaves files behind where there are some, which a simulation has not.
func TestTheLineAfterASignal(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	s := &session{ctx: ctx, tty: w, plan: newPlan()}
	for _, simulated := range []bool{false, true} {
		v := &params.Values{}
		if simulated {
			v.Device = &tiers.DeviceModel{}
		}
		show, _ := s.live(&trial{line: &line{v: v}, name: "Synthetic"})
		show(kvbench.Snapshot{Stage: "running", Free: -1})
	}
	require.NoError(t, w.Close())
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Equal(t, "\r\x1b[Krunning 0 s, Ctrl-C again leaves the files\r\x1b[Krunning 0 s",
		string(text))
}
