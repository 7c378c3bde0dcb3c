package plainio

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/requests"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
	"kvbench/tiers/faults"
	"kvbench/tiers/sim"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
	"kvbench/workloads"
	"kvbench/workloads/iotrace"
	"kvbench/workloads/model"
	"kvbench/workloads/users"
)

// replayConfig replays on a real directory with full verification.
func replayConfig(t *testing.T, capacity int64) plainRun {
	t.Helper()
	dir := t.TempDir()
	return plainRun{trialConfig{
		Info: record.Info{Result: result.Result{Benchmark: "IOTraceReplay",
			Division: result.DivisionOpen, Count: 1, Ranks: 1}},
		Storage: kvbench.StorageConfig{
			Roots: []kvbench.Root{{Dir: dir}}, StorageBytes: capacity,
			Use:    buffer.Use{Chunk: 64 << 10, Depth: 1, Workers: 4},
			Verify: content.VerifyFull, Nonce: [16]byte{1},
		},
	}, Config{Workers: 4, Phase: kvbench.Phase{Window: time.Minute}}}
}

func traceFile(t *testing.T, rows ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.csv")
	require.NoError(t, os.WriteFile(path, []byte(iotrace.Header+"\n"+strings.Join(rows, "\n")+"\n"),
		0o666))
	return path
}

// TestReplays runs the script testdata/replays: each command replays the rows of its input on a
// directory in the time of a bubble, where files take no time, or on a link of that many bytes/s.
// Rewrite it with -rewrite.
func TestReplays(t *testing.T) {
	datadriven.RunTest(t, "testdata/replays", func(t *testing.T, d *datadriven.TestData) (out string) {
		require.Equal(t, "replay", d.Cmd)
		synctest.Test(t, func(t *testing.T) { out = replayed(t, d) })
		return out
	})
}

func replayed(t *testing.T, d *datadriven.TestData) string {
	r := &Replay{Path: traceFile(t, strings.Split(d.Input, "\n")...), Cycles: 1, Allow: true}
	cfg, capacity, link := replayConfig(t, 0), int64(1<<30), 0.0
	for name, to := range map[string]any{"capacity": &capacity, "link": &link, "cycles": &r.Cycles,
		"speed": &r.Speed, "tiers": &r.Tiers, "phases": &r.Phases, "window": &cfg.Window,
		"workers": &cfg.Workers} {
		d.MaybeScanArgs(t, name, to)
	}
	cfg.Storage.StorageBytes = capacity
	if link > 0 {
		cfg.Clock = clock.NewWall()
		cfg.Storage.Levels = onTier(sim.NewLink(link, cfg.Clock), capacity)
	}
	res, err := runPlain(t.Context(), cfg, r)
	require.NoError(t, err)
	require.Equal(t, result.UnitOperation, res.CompletionUnit)
	out := fmt.Sprintf("%v, ended by %s, %d operations in the window, %d bytes read, %d written\n",
		time.Duration(res.WindowNS), res.EndedBy, res.Requests.Operations, res.Tiers[0].Read.Bytes,
		res.Tiers[0].Write.Bytes)
	out += fmt.Sprintf("input: %d rows, %d malformed, %d cycles\n", res.Input.Rows,
		res.Input.Malformed, res.Input.Cycles)
	if link > 0 {
		out += fmt.Sprintf("%s, busy %v\n", res.Harness.Verdict.Kind,
			time.Duration(res.Harness.WorkerBusyNS))
	}
	for field, n := range reflect.ValueOf(*res.Replay).Fields() {
		if n.Int() != 0 && field.Name != "LateNS" {
			out += fmt.Sprintf("%s %d\n", field.Name, n.Int())
		}
	}
	return out
}

// A trace of ours against a directory that is too small for it: every read is
// verified, hits and evictions are those of the simulation with that capacity.
func TestReplayOfASimulationHitsWhatItHit(t *testing.T) {
	const capacity, population = 8 << 20, 20
	p := users.Default()
	load := requests.New(requests.Config{
		Source: func() (workloads.Source, error) {
			return users.New(users.Config{
				Profile: p, Users: users.Population(p, 42, population, false), Seed: 42,
				MultiTurn: true, PrefixCaching: true,
			}), nil
		},
		Planner: workloads.Planner{Sizer: model.Sizer{BytesPerToken: 64},
			DecodeBatch: p.DecodeBatch, Batched: true},
		Workers: population, Phase: kvbench.Phase{Window: 2 * time.Second},
	})
	cfg := trialConfig{Storage: kvbench.StorageConfig{StorageBytes: capacity,
		Use: buffer.Use{Chunk: 1 << 20, Depth: 1, Workers: population}}}
	path := filepath.Join(t.TempDir(), "out.csv.zst")
	w, err := iotrace.Create(path)
	require.NoError(t, err)
	sim, err := kvbench.Simulate(t.Context(), cfg, load, kvbench.SimConfig{Trace: w})
	require.NoError(t, err)
	require.NoError(t, w.Close(true))
	require.Positive(t, sim.Tiers[0].Evicted.Entries)

	res, err := runPlain(t.Context(), replayConfig(t, capacity), &Replay{Path: path, Cycles: 1})
	require.NoError(t, err)
	assert.Zero(t, res.Replay.EvictedReads)
	assert.Zero(t, res.Replay.UnwrittenReads)
	assert.Equal(t, sim.Tiers[0].Evicted.Entries, res.Replay.Evictions)
	assert.Equal(t, sim.Tiers[0].Read.Bytes, res.Tiers[0].Read.Bytes)
	assert.Equal(t, sim.Tiers[0].Write.Bytes, res.Tiers[0].Write.Bytes)
	assert.Zero(t, res.Requests.FailedOperations)

	small, err := runPlain(t.Context(), replayConfig(t, capacity/4), &Replay{Path: path, Cycles: 1})
	require.NoError(t, err)
	assert.Positive(t, small.Replay.EvictedReads)
	assert.Equal(t, res.Replay.Reads, small.Replay.Reads+small.Replay.EvictedReads)
}

// A small file may be read many thousand times in a window.
func TestReplayClosesTheFileOfEachPass(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector would close unused files
	path := traceFile(t, "1.0,Write,4096,Tier-2,a,Prefill")
	res, err := runPlain(t.Context(), replayConfig(t, 1<<20), &Replay{Path: path, Cycles: 20})
	require.NoError(t, err)
	assert.EqualValues(t, 20, res.Input.Cycles)
	open, err := filepath.Glob("/proc/self/fd/*") // empty where there is no such thing
	require.NoError(t, err)
	for _, fd := range open {
		name, _ := os.Readlink(fd)
		assert.NotEqual(t, path, name)
	}
}

func TestReplayOrdersKeysAndKeepsTheCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(3) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			var rows []string
			for range 1000 {
				op := []string{"Read", "Read", "Read", "Write", "Write", "Delete"}[rnd.IntN(6)]
				rows = append(rows, fmt.Sprintf("1,%s,%d,Tier-2,k%d,Decode", op, 1+rnd.IntN(300),
					rnd.IntN(40)))
			}
			var mu sync.Mutex
			held, most := map[string]int64{}, int64(0)
			reading, parallel, mostAtATime := map[string]int{}, 0, 0
			wall := clock.NewWall()
			tier := faults.Wrap(tiertest.NewNull(), func(ctx context.Context, e faults.Event) error {
				mu.Lock()
				defer mu.Unlock()
				key := e.Object.Key
				switch e.Call {
				case faults.Create:
					held[key] = e.Object.Size
					sum := int64(0)
					for _, n := range held {
						sum += n
					}
					most = max(most, sum)
				case faults.Open:
					reading[key]++
					parallel++
					assert.Equal(t, 1, reading[key], "%s is read twice at a time", key)
					mostAtATime = max(mostAtATime, parallel)
				case faults.Read:
					mu.Unlock()
					defer mu.Lock()
					return wall.Sleep(ctx, time.Microsecond)
				case faults.CloseReader:
					reading[key]--
					parallel--
				case faults.Remove:
					assert.Zero(t, reading[key], "%s is deleted while it is read", key)
					delete(held, key)
				}
				return nil
			})
			cfg := replayConfig(t, 0)
			cfg.Workers = 8
			cfg.Storage.Levels = []cache.Level{{Kind: tiers.Storage, Tier: transfer.New(tier, nil), Capacity: 2000}}
			res, err := runPlain(t.Context(), cfg, &Replay{Path: traceFile(t, rows...), Cycles: 1})
			require.NoError(t, err)
			assert.LessOrEqual(t, most, int64(2000))
			assert.Greater(t, mostAtATime, 1, "different keys overlap")
			assert.Zero(t, parallel)
			c := res.Replay
			assert.EqualValues(t, 1000,
				c.Reads+c.Writes+c.Deletes+c.EvictedReads+c.UnwrittenReads+c.UnknownDeletes)
		}
	})
}
