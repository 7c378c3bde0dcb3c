//go:build measure

package plainio

// Whether the knee is that of the whole grid, on devices that are at hand. It takes minutes for
// each: go test -tags measure ./kvbench/plainio -run Measured -timeout 2h -v

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/privtest"
)

// searched is a search for the knee, with the grid behind it in the same files, if that has rounds.
type searched struct {
	Knee
	rounds int
	flight int64 // of the grid
	took   time.Duration
	all    []*pair // the grid
	other  []*pair // to compare with instead
	share  float64
	times  float64 // bytes in flight ÷ the grid's least
	text   string
}

func (r *searched) Prepare(ctx context.Context, b *Bench) error {
	begun := b.Clock.Now()
	if err := r.Knee.Prepare(ctx, b); err != nil {
		return err
	}
	r.took = b.Clock.Now() - begun
	m, err := newMover(b.Env, r.level, "grid/")
	if err != nil {
		return err
	}
	m.chunk = KneeSize
	if r.pool, err = m.buffers(ctx, KneeFlight/KneeSize); err != nil {
		return err
	}
	if r.all, err = r.grid(ctx, r.flight, r.rounds); err != nil {
		return err
	}
	return errors.Join(r.compare(ctx, r.other), r.pool.free())
}

// onDirectory is one of them in files.
func onDirectory(t *testing.T, dir string, op tiers.Op, rounds int, flight int64,
	grid []*pair) *searched {
	t.Helper()
	cfg := plainRun{trialConfig{Storage: kvbench.StorageConfig{StorageBytes: 2 << 30,
		CacheDir: dir, Direct: true, IOEngine: "auto", Chained: true,
		Use: buffer.Use{Chunk: 1 << 20, Depth: 1, Workers: 1}}}, Config{Workers: 1}}
	r := &searched{Knee: Knee{Blocks: Blocks{Op: op, Footprint: 512 << 20}}, rounds: rounds,
		flight: flight, other: grid}
	cfg = cfg.lasting(time.Second)
	res, err := runPlain(t.Context(), cfg, r)
	require.NoError(t, err)
	require.NotNil(t, res.PlainIO.Knee, res.Error)
	return r
}

// compare says how fast the knee is, of the fastest of a grid: both are measured again in turns,
// because the fastest of many is one that was lucky, too. The grid's is nil: its own.
func (r *searched) compare(ctx context.Context, grid []*pair) error {
	if grid == nil {
		grid = r.all
	}
	best, least := fastest(grid)
	// The search may have found one that has more in flight than the grid.
	mine, top := newPair(r.knee.RequestBytes, r.knee.InFlight), (*pair)(nil)
	for _, p := range grid {
		if p.rate() == best {
			top = newPair(p.size, p.n)
		}
	}
	for range 9 {
		for _, p := range []*pair{top, mine} {
			rate, err := r.measure(ctx, p, time.Second)
			if err != nil {
				return err
			}
			p.rates = append(p.rates, rate)
		}
	}
	r.share, r.times = mine.rate()/top.rate(), float64(mine.inFlight())/float64(least)
	r.text = fmt.Sprintf("%8d × %3d, %8d B in flight (%d in the grid): %.1f MiB/s, %.3f of the "+
		"grid's fastest, %d × %d; %s, search %.1f s", mine.size, mine.n, mine.inFlight(), least,
		mine.rate()/(1<<20), r.share, top.size, top.n, r.knee.EndedBy, r.took.Seconds())
	return nil
}

// TestMeasuredKneeOfThrottledDevices: ten searches against one grid, of which nine have to be
// within 2 % of the fastest, and nine have no more than four times the grid's least in flight.
func TestMeasuredKneeOfThrottledDevices(t *testing.T) {
	for name, rates := range map[string]privtest.Rates{
		"200 MiB/s":                    {Read: 200 << 20},
		"1 GiB/s and 1,000 requests/s": {Read: 1 << 30, ReadIOPS: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			fs := privtest.LoopFS(t, 2200, privtest.LoopOptions{DirectIO: true})
			privtest.ThrottleLoop(t, fs, rates).Add(t, os.Getpid())
			var grid []*pair
			good, few := 0, 0
			for i := range 10 {
				rounds := map[bool]int{true: 3}[i == 0]
				r := onDirectory(t, fs.Dir+"/kv", tiers.Read, rounds, 64<<20, grid)
				if i == 0 {
					grid = r.all
				}
				t.Log(r.text)
				assert.Less(t, r.took, 50*time.Second)
				if r.share >= kneeWithin {
					good++
				}
				if r.times <= 4 {
					few++
				}
			}
			assert.GreaterOrEqual(t, good, 9)
			assert.GreaterOrEqual(t, few, 9, "with at most four times the grid's least in flight")
		})
	}
}

// TestMeasuredKneeOfADirectory (KVTEST_DIR): each search beside a grid of its own, whose fastest it
// has to come to by 10 %.
func TestMeasuredKneeOfADirectory(t *testing.T) {
	dir := os.Getenv("KVTEST_DIR")
	if dir == "" {
		t.Skip("KVTEST_DIR names no directory")
	}
	for _, op := range []tiers.Op{tiers.Read, tiers.Write} {
		for range 3 {
			r := onDirectory(t, dir, op, 1, 64<<20, nil)
			t.Log(op, r.text)
			assert.GreaterOrEqual(t, r.share, 0.9)
			assert.Less(t, r.took, 50*time.Second)
		}
	}
}
