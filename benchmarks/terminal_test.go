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
	"kvbench/kvbench/params"
	"kvbench/kvbench/record"
	"kvbench/tiers"
	"kvbench/tiers/cache"
)

func TestTheLiveLineShowsRatesSinceTheLastOne(t *testing.T) {
	show := new(liveLine).text
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
	assert.Equal(t, "running 2s/30s, read 2.00 GiB/s, write 0.50 GiB/s, 12 req, queue "+
		"7, cpu 25%, storage 75%, free 100.0 GiB", show(s),
		"the first line of a stage counts from its beginning")

	s.Elapsed, s.Live, s.Free, s.Total = 3*time.Second, bytes(5*gibibyte, 4*gibibyte), -1, 0
	s.Live.Failures = 2
	assert.Equal(t, "running 3s, 2 FAILED, read 1.00 GiB/s, write 3.00 GiB/s, 0 req, "+
		"queue 7, cpu 25%, storage 75%", show(s))

	assert.Contains(t, show(s), "read –, write –", "no time has passed: no rate")
	assert.NotContains(t, show(s), "NaN")
}

// The line begins with what is left of the run, and a long name leaves room for stage and rates.
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
	assert.Equal(t, "2h0m left, 1/2 Tier/tie…read/size=16MiB trial 1/2: ", first(80))
	assert.Equal(t, "2h0m left, 1/2 Tier/tier=storage/op=read/size=16MiB trial 2/2: ", second(160))
	assert.Equal(t, "2h0m left, 1/2 Tier/t…ad/size=16MiB trial 1/2: ", first(40))
	assert.Equal(t, "1h0m left, 2/2 DecodeOnly: ", last(80))
	s.groups = [][]*line{{one}}
	one.estimate.time = time.Minute
	assert.Equal(t, "DecodeOnly: ", s.headOf(one.trials[0])(80), "stage and window show the progress of one trial")
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
