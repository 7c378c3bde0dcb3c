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

	assert.Equal(t, "pausing 0s/1m30s",
		show(kvbench.Snapshot{Stage: "pausing", Total: 90 * time.Second, Free: -1}))
	assert.Equal(t, "preconditioning 5s, 2.0 GiB of 8.0 GiB",
		show(kvbench.Snapshot{Stage: "preconditioning", Elapsed: 5 * time.Second,
			Done: 2 * gibibyte, DoneTotal: 8 * gibibyte, Free: -1}))

	assert.Equal(t, "waiting for I/O in flight 5s, 3 requests UNANSWERED for 7s",
		show(kvbench.Snapshot{Stage: "waiting for I/O in flight", Elapsed: 5 * time.Second,
			Stuck: 3, StuckFor: 7 * time.Second, Free: -1}))

	s := kvbench.Snapshot{
		Stage: "running", Elapsed: 2 * time.Second, Total: 30 * time.Second,
		Live:   bytes(4*gibibyte, gibibyte),
		Queued: 7, Tiers: gauges, Free: 100 * gibibyte,
	}
	s.Live.Requests = 12
	assert.Equal(t, "running 2s/30s, read 2.00, write 0.50 GiB/s, queue 7, 12 req, "+
		"cpu 25%, storage 75%, free 100.0 GiB", show(s),
		"the first line of a stage counts from its beginning")

	s.Elapsed, s.Live, s.Free, s.Total = 3*time.Second, bytes(5*gibibyte, 4*gibibyte), -1, 0
	s.Live.Failures = 2
	assert.Equal(t, "running 3s, 2 FAILED, read 1.00, write 3.00 GiB/s, queue 7, 0 req, "+
		"cpu 25%, storage 75%", show(s))

	assert.Contains(t, show(s), "read –, write – GiB/s", "no time has passed: no rate")
	assert.NotContains(t, show(s), "NaN")
}

// The line begins with what is left of the run, and a long name is cut in the middle.
func TestTheHeadOfTheLiveLine(t *testing.T) {
	s := &session{plan: newPlan()}
	l := &line{v: &params.Values{}, estimate: estimate{time: time.Hour}}
	one := &line{v: &params.Values{}}
	s.groups = [][]*line{{l}, {one}}
	for range 2 {
		l.trials = append(l.trials, &trial{line: l, name: "Tier/tier=storage/op=read/size=16MiB"})
	}
	one.trials = []*trial{{line: one, name: "DecodeOnly"}}
	first, second := s.headOf(l.trials[0]), s.headOf(l.trials[1])
	l.ran, l.took = 1, time.Hour
	last := s.headOf(one.trials[0])
	assert.Equal(t, "2h0m left, 1/2 Tier/tie…read/size=16MiB trial 1/2: ", first(51))
	assert.Equal(t, "2h0m left, 1/2 Tier/tier=storage/op=read/size=16MiB trial 2/2: ", second(63))
	assert.Equal(t, "2h0m left, 1/2 Ti…16MiB trial 1/2: ", first(30))
	assert.Equal(t, "1h0m left, 2/2 DecodeOnly: ", last(80))
	s.groups = [][]*line{{one}}
	one.estimate.time = time.Minute
	assert.Equal(t, "DecodeOnly: ", s.headOf(one.trials[0])(80), "stage and window show the progress of one trial")
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
	now.Stage = "ending"
	show(now)
	require.NoError(t, w.Close())
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Equal(t, "\r\x1b[K2h0m left, 1/2 Storag…ling/op=mixed trial 1/2: running 12s/30s, read 2.00 GiB/s"+
		"\r\x1b[K2h0m left, 1/2 Sto…mixed trial 1/2: ending 12s/30s, read 2.00, write 1.00 GiB/s", string(text))
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
	assert.Equal(t, "\r\x1b[Krunning 0s, again Ctrl-C leaves the files\r\x1b[Krunning 0s",
		string(text))
}
