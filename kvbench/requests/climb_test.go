package requests

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/plainio"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/workloads"
)

// onPages is a load of the given requests on real files.
func onPages(t *testing.T, capacity int64, requests ...*workloads.Request) runConfig {
	cfg := testConfig(nil, newScript(requests...), 3).finite()
	cfg.Info.Seed = 7
	cfg.Storage = kvbench.StorageConfig{StorageBytes: capacity,
		CacheDir: filepath.Join(t.TempDir(), "cache"),
		Use:      buffer.Use{Chunk: unit, Depth: 2, Workers: 3}}
	return cfg
}

// asked returns the result of such a load, and the parameters of the sweep after it.
func asked(t *testing.T, capacity int64, climb kvbench.Climber, requests ...*workloads.Request) (
	*result.Result, *kvbench.Ladder,
) {
	t.Helper()
	var ask *kvbench.Ladder
	cfg := onPages(t, capacity, requests...)
	cfg.Climb = func(ctx context.Context, e *kvbench.Env, l kvbench.Ladder) ([]result.Rung, error) {
		ask = &l
		for _, o := range l.Objects { // they are there
			r, err := l.Level.Files().Open(ctx, o)
			require.NoError(t, err)
			require.NoError(t, r.Close())
		}
		return climb(ctx, e, l)
	}
	return mustRun(t, cfg), ask
}

func TestTheLadderIsAskedForTheRunsOwnMix(t *testing.T) {
	found := []result.Rung{{InFlight: 3, Write: 1}, {InFlight: 6, Write: 2}}
	climb := func(_ context.Context, _ *kvbench.Env, l kvbench.Ladder) ([]result.Rung, error) {
		l.Climbed()
		return found, nil
	}
	// Twelve entries of four chunks into room for eight.
	r, ask := asked(t, 32*unit, climb, singles(12, 4)...)
	require.NotNil(t, ask)
	got := r.Harness.Ladder
	assert.Equal(t, found, got.Rungs)
	assert.NotNil(t, got.CPUShare)
	assert.Empty(t, got.Reason)
	assert.Equal(t, tiers.Storage, ask.Level.Kind)
	assert.Zero(t, ask.ReadShare, "nothing was read")
	assert.LessOrEqual(t, ask.FileSize, int64(4*unit), "as the entries, or smaller")
	assert.EqualValues(t, 7, ask.Seed)
	assert.Equal(t, 3, ask.Rungs)
	flying := *r.Tiers[0].Read.MeanInFlight + *r.Tiers[0].Write.MeanInFlight
	assert.InDelta(t, max(1, flying), float64(ask.InFlight), 0.5)
	var lie int64
	for _, o := range ask.Objects {
		lie += o.Size
	}
	assert.LessOrEqual(t, lie+ask.Room, int64(32*unit), "never more than the capacity")
	assert.Positive(t, ask.Room, "a full cache evicts entries of the ended run")
	assert.LessOrEqual(t, ask.Bytes, ask.Room/3, "each step has its part")
	assert.EqualValues(t, 4, r.Tiers[0].Evicted.Entries, "what the ladder needed is no eviction")

	_, ask = asked(t, 1<<20, climb, conversation(1, 4, 2, workloads.PrefillOnly)...)
	require.NotNil(t, ask)
	assert.InDelta(t, 12.0/20, ask.ReadShare, 1e-9, "turns read 0, 1, 2 and 3 entries")
	assert.GreaterOrEqual(t, len(ask.Objects), 2, "half of what lay there at least")
}

// Some layouts have slots of one size only, smaller than a chunk.
func TestALadderIsClimbedInLayoutsOfOneSize(t *testing.T) {
	for _, layout := range []string{"slots", "packed=4"} {
		t.Run(layout, func(t *testing.T) {
			r, _ := replayBlocks(t, smallTrace, 4, func(c *runConfig) {
				laidOut(t, layout, 1<<30)(c)
				c.Climb = plainio.Climb
			})
			require.NotNil(t, r.Harness.Ladder)
			assert.Empty(t, r.Harness.Ladder.Reason)
			assert.NotEmpty(t, r.Harness.Ladder.Rungs)
		})
	}
}

// A run without a sweep is complete, and says why there is none.
func TestWhyThereIsNoLadder(t *testing.T) {
	never := func(context.Context, *kvbench.Env, kvbench.Ladder) ([]result.Rung, error) {
		t.Error("climbed")
		return nil, nil
	}
	for want, change := range map[string]func(*runConfig, context.CancelCauseFunc){
		"^no memory for it$": func(c *runConfig, _ context.CancelCauseFunc) {
			c.Climb = func(context.Context, *kvbench.Env, kvbench.Ladder) ([]result.Rung, error) {
				return nil, errors.New("no memory for it")
			}
		},
		`^the window of \d+\w+ is shorter than 24h0m0s$`: func(c *runConfig, _ context.CancelCauseFunc) {
			c.ClimbAfter = 24 * time.Hour
		},
		"^the run has no storage tier on a filesystem$": func(c *runConfig, _ context.CancelCauseFunc) {
			c.Storage = kvbench.StorageConfig{Levels: plenty(), Use: c.Storage.Use}
		},
		"^the run did not end in order$": func(c *runConfig, interrupted context.CancelCauseFunc) {
			src := newScript(singles(3, 1)...)
			src.endless = true
			c.Source = func() (workloads.Source, error) { return src, nil }
			c.OnDispatch = func(*workloads.Request, []workloads.Op) { interrupt(interrupted) }
		},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cfg := onPages(t, 1<<20, singles(3, 1)...)
		cfg.Climb = never
		change(&cfg, cancel)
		r, err := runLoad(ctx, cfg)
		assert.Equal(t, cfg.OnDispatch == nil, err == nil, want)
		assert.Regexp(t, want, r.Harness.Ladder.Reason)
	}
}
