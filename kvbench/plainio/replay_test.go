package plainio

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
			CacheDir: dir, StorageBytes: capacity,
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

func TestReplayDoesWhatTheRowsSay(t *testing.T) {
	path := traceFile(t,
		"1.0,Write,100000,Tier-2,a,Prefill",
		"1.0,Read,100000,Tier-2,a,Decode",
		"1.0,Read,100000,Tier-2,never,Decode", // never written
		"1.0,Write,100000,Tier-0,gpu,Prefill", // another tier
		"1.0,Write,100000,Tier-2,b,Evict",
		"1.0,Read,100000,Tier-2,a,Decode",   // refreshes a
		"1.0,Write,100000,Tier-2,c,Prefill", // deletes b
		"1.0,Read,100000,Tier-2,b,Decode",   // evicted
		"1.0,Write,100000,Tier-2,a,Prefill", // again
		"1.0,Read,100000,Tier-2,a,Decode",
		"1.0,Delete,100000,Tier-2,a,Evict",
		"1.0,Delete,100000,Tier-2,a,Evict",    // not there
		"1.0,Read,100000,Tier-2,a,Decode",     // evicted
		"1.0,Write,999999,Tier-2,big,Prefill", // larger than the tier
		"nonsense")
	r := &Replay{Path: path, Cycles: 1, Allow: true}
	res, err := runPlain(t.Context(), replayConfig(t, 250000), r)
	require.NoError(t, err)
	assert.Equal(t, result.EndedByInput, res.EndedBy)
	got := *res.Replay
	got.LateNS = 0
	assert.Equal(t, result.Replay{
		Rows: 14, Skipped: 1, Reads: 3, Writes: 4, Deletes: 1, EvictedReads: 2, UnwrittenReads: 1,
		UnknownDeletes: 1, Overwrites: 1, TooLarge: 1, Evictions: 1,
	}, got)
	assert.EqualValues(t, 15, res.Input.Rows)
	assert.EqualValues(t, 1, res.Input.Malformed)
	assert.Equal(t, result.UnitOperation, res.CompletionUnit)
	assert.EqualValues(t, 7, res.Requests.Operations)
	require.Len(t, res.Tiers, 1)
	assert.EqualValues(t, 300000, res.Tiers[0].Read.Bytes)
	assert.EqualValues(t, 400000, res.Tiers[0].Write.Bytes)
}

func TestReplaySelectsTiersAndPhases(t *testing.T) {
	path := traceFile(t, "1,Write,1000,Tier-0,a,Prefill", "1,Read,1000,Tier-0,a,Evict",
		"1,Write,1000,Tier-2,a,Evict", "1,Read,1000,Tier-2,a,Decode", "1,Read,1000,Tier-0,a,Decode")
	for name, c := range map[string]struct {
		tiers         []int
		phases        []string
		reads, writes int64
	}{
		"storage":     {nil, nil, 1, 1},
		"all tiers":   {[]int{0, 1, 2}, nil, 3, 2},
		"gpu":         {[]int{0}, nil, 2, 1},
		"no eviction": {[]int{0, 2}, []string{"Prefill", "Decode"}, 1, 1},
	} {
		r := &Replay{Path: path, Cycles: 1, Tiers: c.tiers, Phases: c.phases}
		res, err := runPlain(t.Context(), replayConfig(t, 1<<20), r)
		require.NoError(t, err, name)
		assert.Equal(t, c.reads, res.Replay.Reads, name)
		assert.Equal(t, c.writes, res.Replay.Writes, name)
	}
}

// A trace of ours against a directory that is too small for it: every read is
// verified, hits and evictions are those of the simulation with that capacity.
func TestReplayOfASimulationHitsWhatItHit(t *testing.T) {
	const capacity, population = 30 << 20, 20
	p := users.Default()
	load, err := requests.New(requests.Config{
		Source: func() (workloads.Source, error) {
			return users.New(users.Config{
				Profile: p, Users: users.Population(p, 42, population, false), Seed: 42,
				MultiTurn: true, PrefixCaching: true,
			}), nil
		},
		Planner: workloads.Planner{Sizer: model.Sizer{BytesPerToken: 64},
			DecodeBatch: p.DecodeBatch, Batched: true},
		Workers: population, Phase: kvbench.Phase{Window: 4 * time.Second},
	})
	require.NoError(t, err)
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

func TestReplayKeepsTheTraceTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := traceFile(t, "100.0,Write,4096,Tier-2,a,Prefill", "100.4,Read,4096,Tier-2,a,Decode")
		for speed, window := range map[float64]time.Duration{1: 400 * time.Millisecond,
			4: 100 * time.Millisecond} {
			res, err := runPlain(t.Context(), replayConfig(t, 1<<20),
				&Replay{Path: path, Cycles: 1, Speed: speed})
			require.NoError(t, err)
			assert.Equal(t, window, time.Duration(res.WindowNS))
		}
		res, err := runPlain(t.Context(), replayConfig(t, 1<<20),
			&Replay{Path: path, Cycles: 3, Speed: 40})
		require.NoError(t, err)
		assert.EqualValues(t, 6, res.Requests.Operations)
		assert.EqualValues(t, 2, res.Replay.Overwrites)
	})
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
		for seed := range uint64(5) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			var rows []string
			for range 3000 {
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
			cfg.Storage.Levels = []cache.Level{{Kind: tiers.Storage, Tier: tier, Capacity: 2000}}
			res, err := runPlain(t.Context(), cfg, &Replay{Path: traceFile(t, rows...), Cycles: 1})
			require.NoError(t, err)
			assert.LessOrEqual(t, most, int64(2000))
			assert.Greater(t, mostAtATime, 1, "different keys overlap")
			assert.Zero(t, parallel)
			c := res.Replay
			assert.EqualValues(t, 3000,
				c.Reads+c.Writes+c.Deletes+c.EvictedReads+c.UnwrittenReads+c.UnknownDeletes)
		}
	})
}

// A replay that its window ends reports its progress in the input.
func TestReplayEndedByItsWindowCountsItsInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := traceFile(t, "100,Write,4096,Tier-2,a,Prefill", "100,Read,4096,Tier-2,a,Decode",
			"900,Read,4096,Tier-2,a,Decode")
		cfg := replayConfig(t, 1<<20)
		cfg.Window = 200 * time.Millisecond
		res, err := runPlain(t.Context(), cfg, &Replay{Path: path, Cycles: 1, Speed: 1})
		require.NoError(t, err)
		assert.Equal(t, result.EndedByDeadline, res.EndedBy)
		assert.EqualValues(t, 3, res.Input.Rows)
		assert.Zero(t, res.Input.Cycles)
		assert.EqualValues(t, 2, res.Replay.Reads+res.Replay.Writes)
	})
}

// Workers that wait for a row's time are idle: a slow trace says nothing about the storage.
func TestAReplayThatWaitsForItsRowsIsLoadLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := traceFile(t, "1.0,Write,100000,Tier-2,a,Prefill", "2.5,Read,100000,Tier-2,a,Decode",
			"4.5,Read,100000,Tier-2,a,Decode")
		wall := clock.NewWall()
		tier, err := sim.NewLink(1e6, wall)
		require.NoError(t, err)
		cfg := replayConfig(t, 1<<20)
		cfg.Clock, cfg.Storage.Levels = wall, onTier(tier, 1<<20)
		res, err := runPlain(t.Context(), cfg, &Replay{Path: path, Cycles: 1, Speed: 1})
		require.NoError(t, err)
		assert.Equal(t, result.LoadLimited, res.Harness.Verdict.Kind, res.Harness.Verdict.Reason)
		assert.Equal(t, int64(300*time.Millisecond), res.Harness.WorkerBusyNS, "three times 0.1 s")
		assert.Equal(t, result.EndedByInput, res.EndedBy)
	})
}

// An operation that a window cut off was not executed.
func TestAReplayCountsWhatItCarriedOut(t *testing.T) {
	rows := make([]string, 0, 1000)
	for i := range 1000 {
		rows = append(rows, fmt.Sprintf("1.0,Write,100000,Tier-2,k%d,Prefill", i))
	}
	cfg := replayConfig(t, 1<<30)
	// One worker: with several, the operations that begin before they notice the end depend on
	// scheduling.
	cfg.Limit, cfg.Workers = 20, 1
	res, err := runPlain(t.Context(), cfg, &Replay{Path: traceFile(t, rows...), Cycles: 1})
	require.NoError(t, err)
	assert.EqualValues(t, 20, res.Requests.Completed)
	assert.InDelta(t, 20, res.Replay.Writes, 1, "and the one that was in flight")
}
