package tiertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
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
	"kvbench/tiers/transfer"
	"kvbench/tiers/workdir"
)

// Layouts has one layout of each kind, by name. A slot holds the largest object of any test.
var Layouts = map[string]tiers.Layout{
	"files":  {},
	"slots":  {Kind: tiers.LayoutSlots, Bytes: 1 << 20},
	"packed": {Kind: tiers.LayoutPacked, Places: 3},
	"named":  {Kind: tiers.LayoutNamed},
}

// Every runs a test on each kind of tier: memory, every file layout with direct and with buffered
// I/O on each I/O engine, and tiers without bytes.
func Every(t *testing.T, run func(t *testing.T, open func(testing.TB) tiers.Files)) {
	without(t, run)
	for name, l := range Layouts {
		for _, direct := range []bool{true, false} {
			cfg := filetier.Config{Layout: l, Direct: direct}
			name := name + map[bool]string{true: ", direct", false: ", buffered"}[direct]
			files(t, name, cfg, run)
			t.Run(name+", io_uring", func(t *testing.T) {
				run(t, func(t testing.TB) tiers.Files {
					cfg := cfg
					cfg.Engine = URing(t)
					return Files(t, cfg)
				})
			})
		}
	}
}

// Some is a shorter Every, for tests of code that uses tiers. It has no two tiers that differ only in
// how they move bytes.
func Some(t *testing.T, run func(t *testing.T, open func(testing.TB) tiers.Files)) {
	without(t, run)
	files(t, "files, direct", filetier.Config{Direct: true}, run)
	files(t, "packed, buffered", filetier.Config{Layout: Layouts["packed"]}, run)
	files(t, "slots, direct", filetier.Config{Layout: Layouts["slots"], Direct: true}, run)
}

func files(t *testing.T, name string, cfg filetier.Config,
	run func(*testing.T, func(testing.TB) tiers.Files)) {
	t.Run(name, func(t *testing.T) {
		run(t, func(t testing.TB) tiers.Files { return Files(t, cfg) })
	})
}

// without runs a test on the tiers without files.
func without(t *testing.T, run func(t *testing.T, open func(testing.TB) tiers.Files)) {
	t.Run("memory", func(t *testing.T) {
		run(t, func(t testing.TB) tiers.Files { return Memory(t, 32<<20) })
	})
	t.Run("null", func(t *testing.T) {
		run(t, func(testing.TB) tiers.Files { return NewNull() })
	})
}

// Dir returns a work directory on the test's disk. Tiers in it close before it, because cleanups run in
// reverse order.
func Dir(t testing.TB) *workdir.Dir {
	t.Helper()
	d, err := workdir.Open(t.Context(), workdir.Options{CacheDir: t.TempDir(), Nonce: "test"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

// Files returns a file tier. Missing fields of the configuration get defaults.
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
		cfg.Capacity = 16 << 20
	}
	if spec, _ := cfg.Layout.Spec(); spec.Tokens > 0 {
		cfg.Layout.Bytes = cmp.Or(cfg.Layout.Bytes, 1<<20)
		cfg.Layers, cfg.Model = cmp.Or(cfg.Layers, 4), cmp.Or(cfg.Model, "m")
		cfg.Threads = cmp.Or(cfg.Threads, filetier.Threads{Loads: spec.Loads, Stores: spec.Stores})
	}
	tier, err := filetier.New(t.Context(), cfg)
	// Skip only on macOS, which cannot punch holes. Elsewhere a skip would hide a failure.
	if _, ok := errors.AsType[*tiers.UnsupportedError](err); ok && runtime.GOOS == "darwin" {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, tier.Close()) })
	if warnings := fmt.Sprint(tier.Warnings()); strings.Contains(warnings, "buffered I/O instead") {
		privtest.Need(t, fmt.Errorf("no direct I/O here: %s", warnings))
	}
	return tier
}

// Psync returns the psync engine, which works on every system, with a clock of its own.
func Psync(t testing.TB) ioengine.Engine {
	t.Helper()
	e := ioengine.NewPsync(clock.NewWall().Now)
	t.Cleanup(func() { assert.NoError(t, e.Close(context.Background()), "nothing is in flight") })
	return e
}

// URing returns the io_uring engine, with a clock of its own. It skips the test if the system has no
// io_uring.
func URing(t testing.TB) ioengine.Engine {
	t.Helper()
	e, _, err := ioengine.NewURing(clock.NewWall().Now, 1, false)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no io_uring here: ", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Close(context.Background()), "nothing is in flight") })
	return e
}

// Memory returns a memory tier of that many bytes. It is the fastest tier that holds bytes, for tests
// that need no files.
func Memory(t testing.TB, capacity int64) *memtier.Tier {
	t.Helper()
	m, err := memtier.New(capacity)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	return m
}

// Wall returns a clock of real time, or of the bubble's time in a synctest bubble, for code that needs
// a clock and does not wait on it.
func Wall() clock.Clock { return clock.NewWall() }

// Chunk is a usual size of chunks in tests.
const Chunk = 64 << 10

// Mover moves objects through any files by package transfer.
type Mover struct {
	*transfer.Settings
	content.Verifier
}

// Transfer returns a Mover for tests. Its pool fails the test if a buffer is missing at the end.
func Transfer(t testing.TB, chunk, depth int) *Mover {
	t.Helper()
	pool, err := buffer.NewPool(16, chunk)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, pool.Close(), "every buffer is back") })
	return &Mover{&transfer.Settings{Pool: pool, Chunk: chunk, Depth: depth,
		Clock: clock.NewWall()}, content.Verifier{Content: Content, Verify: content.VerifyFull}}
}

// Write writes the first of the objects in one Put and returns how many the files accepted.
func (m *Mover) Write(ctx context.Context, to tiers.Files, done func(tiers.Chunk),
	objs ...tiers.Object) (int, tiers.Timing, error) {
	c := tiers.Call{Observe: done}
	err := transfer.New(to, m.Settings).Put(ctx, &c, objs, m.Content.Source())
	return c.Done, c.Timing, err
}

// Read reads and verifies the first of the objects in one Get and returns how many it read.
func (m *Mover) Read(ctx context.Context, from tiers.Files, done func(tiers.Chunk),
	objs ...tiers.Object) (int, tiers.Timing, error) {
	c := tiers.Call{Observe: done}
	err := transfer.New(from, m.Settings).Get(ctx, &c, objs, &m.Verifier)
	return c.Done, c.Timing, err
}

// Crowd runs a benchmark with 1, 2, 4 … 64 goroutines. It sets GOMAXPROCS so that each goroutine has
// its own processor, or, if there are fewer, each processor has the same number of goroutines. It calls
// setup once per number of goroutines. setup returns the function of a goroutine, a loop over pb.Next.
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

// OneThread skips a test with one goroutine, such as a test in virtual time, under the race detector,
// which finds nothing there and takes ten times as long. make test-all also runs these packages without
// the detector.
func OneThread(t testing.TB) {
	t.Helper()
	if buffer.RaceEnabled {
		t.Skip("one thread: tested without the race detector")
	}
}
