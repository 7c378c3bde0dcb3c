package tiertest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
	"kvbench/tiers/filetier"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/memtier"
	"kvbench/tiers/privtest"
	"kvbench/tiers/sim"
	"kvbench/tiers/transfer"
	"kvbench/tiers/workdir"
)

// Layouts are one of each kind, by name. Slots take any object of the tests.
var Layouts = map[string]tiers.Layout{
	"files":  {},
	"slots":  {Kind: tiers.LayoutSlots, Bytes: 1 << 20},
	"packed": {Kind: tiers.LayoutPacked, Places: 3},
	"named":  {Kind: tiers.LayoutNamed},
}

// Every runs a test on each kind of tier: memory, every layout of files with direct and with
// buffered I/O, on each engine, and those without bytes.
func Every(t *testing.T, run func(t *testing.T, open func(testing.TB) tiers.Tier)) {
	without(t, run)
	for name, l := range Layouts {
		for _, direct := range []bool{true, false} {
			cfg := filetier.Config{Layout: l, Direct: direct}
			name := name + map[bool]string{true: ", direct", false: ", buffered"}[direct]
			files(t, name, cfg, run)
			t.Run(name+", io_uring", func(t *testing.T) {
				run(t, func(t testing.TB) tiers.Tier {
					cfg := cfg
					cfg.Engine = URing(t)
					return Files(t, cfg)
				})
			})
		}
	}
}

// Some is Every without what moves bytes as another one does: for tests of those who use tiers.
func Some(t *testing.T, run func(t *testing.T, open func(testing.TB) tiers.Tier)) {
	without(t, run)
	files(t, "files, direct", filetier.Config{Direct: true}, run)
	files(t, "packed, buffered", filetier.Config{Layout: Layouts["packed"]}, run)
	files(t, "slots, direct", filetier.Config{Layout: Layouts["slots"], Direct: true}, run)
}

func files(t *testing.T, name string, cfg filetier.Config,
	run func(*testing.T, func(testing.TB) tiers.Tier)) {
	t.Run(name, func(t *testing.T) {
		run(t, func(t testing.TB) tiers.Tier { return Files(t, cfg) })
	})
}

// without runs a test on the tiers that have no files.
func without(t *testing.T, run func(t *testing.T, open func(testing.TB) tiers.Tier)) {
	t.Run("memory", func(t *testing.T) {
		run(t, func(t testing.TB) tiers.Tier { return Memory(t, 32<<20) })
	})
	t.Run("streams", func(t *testing.T) {
		run(t, func(t testing.TB) tiers.Tier { return NewStream(Memory(t, 32<<20)) })
	})
	t.Run("link", func(t *testing.T) {
		run(t, func(t testing.TB) tiers.Tier {
			l, err := sim.NewLink(64e9, clock.NewWall())
			require.NoError(t, err)
			return l
		})
	})
	t.Run("null", func(t *testing.T) {
		run(t, func(testing.TB) tiers.Tier { return NewNull() })
	})
}

// Dir returns a work directory on the test's disk, which is closed after the tiers in it: cleanups
// run last to first.
func Dir(t testing.TB) *workdir.Dir {
	t.Helper()
	d, err := workdir.Open(t.Context(), workdir.Options{CacheDir: t.TempDir(), Nonce: "test"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

// Files returns a tier of files. What the configuration leaves open is filled in.
func Files(t testing.TB, cfg filetier.Config) *filetier.Tier {
	t.Helper()
	if cfg.Dir == nil {
		cfg.Dir = Dir(t)
	}
	if cfg.Engine == nil {
		cfg.Engine = Psync(t)
	}
	if cfg.Extent == 0 {
		cfg.Extent = Chunk
	}
	if cfg.Capacity == 0 {
		cfg.Capacity = 8 << 20
	}
	tier, err := filetier.New(cfg)
	// A skip must not hide what never ran: only where it is known to be missing it may be.
	if runtime.GOOS == "darwin" && errors.Is(err, tiers.ErrNotSupported) {
		t.Skip(err) // no holes there; elsewhere the refusal is a failure
	}
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, tier.Close()) })
	if cfg.Direct && !tier.Direct() {
		privtest.Need(t, fmt.Errorf("no direct I/O here: %v", tier.Warnings()))
	}
	return tier
}

// Psync returns the engine that works everywhere, on a clock of its own.
func Psync(t testing.TB) ioengine.Engine {
	t.Helper()
	e := ioengine.NewPsync(clock.NewWall().Now)
	t.Cleanup(func() { assert.NoError(t, e.Close(context.Background()), "nothing is under way") })
	return e
}

// URing returns the engine of rings, on a clock of its own; where the system has none the test is
// skipped.
func URing(t testing.TB) ioengine.Engine {
	t.Helper()
	e, _, err := ioengine.NewURing(clock.NewWall().Now, 1, false)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no io_uring here: ", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Close(context.Background()), "nothing is under way") })
	return e
}

// Memory returns a tier of that many bytes of memory. It is the quickest one that holds bytes: for
// tests that ask for those and for nothing of files.
func Memory(t testing.TB, capacity int64) *memtier.Tier {
	t.Helper()
	m, err := memtier.New(capacity)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	return m
}

// Wall returns a clock of real time, or of the bubble's where a test runs in one: for what has to
// be given one and is not waited for.
func Wall() clock.Clock { return clock.NewWall() }

// Chunk is a usual size of chunks in tests.
const Chunk = 64 << 10

// Transfer returns settings for tests, with a pool that must be whole again at the end.
func Transfer(t testing.TB, chunk, depth int) *transfer.Transfer {
	t.Helper()
	pool, err := buffer.NewPool(16, chunk)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, pool.Close(), "every buffer is back") })
	return &transfer.Transfer{
		Pool: pool, Content: Content, Chunk: chunk, Depth: depth, Verify: content.VerifyFull,
		Clock: clock.NewWall(),
	}
}

// Crowd runs a benchmark with 1, 2, 4 … 64 goroutines at a time: what an operation costs of which
// every worker does some. Where there are processors enough each goroutine has its own, else each
// processor as many of them. The setup is called once for each number, and returns what one
// goroutine does: a loop over pb.Next.
func Crowd(b *testing.B, setup func(b *testing.B) func(pb *testing.PB)) {
	for goroutines := 1; goroutines <= 64; goroutines *= 2 {
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			procs := min(goroutines, runtime.GOMAXPROCS(0))
			for goroutines%procs != 0 {
				procs--
			}
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			b.SetParallelism(goroutines / procs)
			run := setup(b)
			b.ResetTimer()
			b.RunParallel(run)
			b.StopTimer()
		})
	}
}

// OneThread skips, under the race detector, a test of a single thread.
func OneThread(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("one thread: the race detector has nothing to find, and it would take ten times " +
			"as long")
	}
}
