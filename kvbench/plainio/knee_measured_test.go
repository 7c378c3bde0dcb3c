//go:build measure

package plainio

// Whether the knee is that of the whole grid, on devices that are at hand. It takes minutes for
// each: go test -tags measure ./kvbench/plainio -run Measured -timeout 2h -v

import (
	"context"
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
	all    []*pair
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
	bufs, free, err := m.buffers(ctx, KneeFlight/KneeSize)
	if err != nil {
		return err
	}
	r.pool = bufs
	if r.all, err = r.grid(ctx, r.flight, r.rounds); err != nil {
		return err
	}
	return free()
}

// onDirectory is one of them in files.
func onDirectory(t *testing.T, dir string, op tiers.Op, rounds int, flight int64) *searched {
	t.Helper()
	cfg := plainRun{trialConfig{Storage: kvbench.StorageConfig{StorageBytes: 2 << 30,
		CacheDir: dir, Direct: true, IOEngine: "auto", Chained: true,
		Use: buffer.Use{Chunk: 1 << 20, Depth: 1, Workers: 1}}}, Config{Workers: 1}}
	r := &searched{Knee: Knee{Blocks: Blocks{Op: op, Footprint: 512 << 20}}, rounds: rounds,
		flight: flight}
	cfg = cfg.lasting(time.Second)
	res, err := runPlain(t.Context(), cfg, r)
	require.NoError(t, err)
	require.NotNil(t, res.PlainIO.Knee, res.Error)
	return r
}

// says is how fast the grid found what the knee has to be, of its fastest.
func (r *searched) says(grid []*pair) (share float64, text string) {
	best, least := fastest(grid)
	for _, p := range grid {
		if p.size == r.knee.RequestBytes && p.n == r.knee.InFlight {
			share = p.rate() / best
		}
	}
	return share, fmt.Sprintf("%7d × %3d, %9d B in flight; the grid's %9d B; %6.1f MiB/s of %6.1f, "+
		"in the grid %.3f of the fastest; %s, search %.1f s", r.knee.RequestBytes, r.knee.InFlight,
		r.knee.Bytes(), least, r.knee.Rate/(1<<20), best/(1<<20), share, r.knee.EndedBy,
		r.took.Seconds())
}

// TestMeasuredKneeOfThrottledDevices: ten searches against one grid, of which nine have to be
// within 2 % of the fastest.
func TestMeasuredKneeOfThrottledDevices(t *testing.T) {
	for name, rates := range map[string]privtest.Rates{
		"200 MiB/s":                    {Read: 200 << 20, Write: 200 << 20},
		"1 GiB/s and 1,000 requests/s": {Read: 1 << 30, ReadIOPS: 1000, Write: 1 << 30, WriteIOPS: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			fs := privtest.LoopFS(t, 2200, privtest.LoopOptions{DirectIO: true})
			privtest.ThrottleLoop(t, fs, rates).Add(t, os.Getpid())
			first := onDirectory(t, fs.Dir+"/kv", tiers.Read, 3, 64<<20)
			for _, p := range first.all {
				t.Logf("grid %8d × %3d: %.1f MiB/s %.1f", p.size, p.n, p.rate()/(1<<20), p.rates)
			}
			good := 0
			for i := range 10 {
				r := first
				if i > 0 {
					r = onDirectory(t, fs.Dir+"/kv", tiers.Read, 0, 0)
				}
				share, text := r.says(first.all)
				t.Log(text)
				assert.Less(t, r.took, 50*time.Second)
				if share >= kneeWithin {
					good++
				}
			}
			assert.GreaterOrEqual(t, good, 9)
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
			r := onDirectory(t, dir, op, 1, 64<<20)
			share, text := r.says(r.all)
			t.Log(op, text)
			assert.GreaterOrEqual(t, share, 0.9)
			assert.Less(t, r.took, 50*time.Second)
		}
	}
}
