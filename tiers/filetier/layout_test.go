package filetier_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/content"
	"kvbench/tiers/faults"
	"kvbench/tiers/filetier"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/tiertest"
)

// block is the size of most entries of these tests: four fit into a chunk, with or without padding.
const block = 16 << 10

const chunk = tiertest.Chunk

// everyLayout runs a test on each layout that puts several objects into a file.
func everyLayout(t *testing.T, run func(t *testing.T, tier *filetier.Tier, dir string)) {
	for name, l := range map[string]tiers.Layout{
		"slots":  {Kind: tiers.LayoutSlots, Bytes: block},
		"packed": {Kind: tiers.LayoutPacked, Places: 6},
	} {
		for _, direct := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/direct=%t", name, direct), func(t *testing.T) {
				dir := tiertest.Dir(t)
				cfg := filetier.Config{Dir: dir, Direct: direct, Layout: l, Capacity: 64 * block}
				run(t, tiertest.Files(t, cfg), dir.Path())
			})
		}
	}
}

// counted returns a ChunkFunc and the sum of the bytes that it receives.
func counted() (func(tiers.Chunk), *[tiers.NumOps]atomic.Int64) {
	var sums [tiers.NumOps]atomic.Int64
	return func(c tiers.Chunk) { sums[c.Op].Add(c.Bytes) }, &sums
}

// request makes one request with its own buffer.
func request(t testing.TB, r tiers.Submitter, off, n int64) ([]byte, error) {
	t.Helper()
	whole := int(tiers.AlignUp(n, 4096))
	p := buffer.Aligned(make([]byte, whole+4096), whole, 4096)[:n]
	done := make(chan error, 1)
	r.Submit(&tiers.IO{
		Buf: tiers.Buffer{B: p}, Off: off, N: int(n), Done: func(io *tiers.IO) { done <- io.Err },
	})
	return p, <-done
}

func blocks(prefix string, sizes ...int64) (list []tiers.Object) {
	for i, n := range sizes {
		list = append(list, tiers.Object{Key: fmt.Sprintf("blk/%s/%d", prefix, i),
			Gen: uint64(i + 1), Size: n})
	}
	return list
}

// writeRuns writes all objects in runs and returns the lengths of the runs.
func writeRuns(t testing.TB, x *tiertest.Mover, tier tiers.Files, list []tiers.Object) []int {
	t.Helper()
	return runs(t, x.Write, tier, list)
}

// readRuns reads and verifies all objects in runs and returns the lengths of the runs.
func readRuns(t testing.TB, x *tiertest.Mover, tier tiers.Files, list []tiers.Object) []int {
	t.Helper()
	return runs(t, x.Read, tier, list)
}

// runs moves all objects, and compares the reported bytes with the objects' sizes, without padding.
func runs(t testing.TB, move func(context.Context, tiers.Files, func(tiers.Chunk), ...tiers.Object) (int,
	tiers.Timing, error), tier tiers.Files, list []tiers.Object) (lengths []int) {
	t.Helper()
	for len(list) > 0 {
		var sum, want int64 // chunks are reported one at a time
		n, _, err := move(t.Context(), tier, func(c tiers.Chunk) { sum += c.Bytes }, list...)
		require.NoError(t, err)
		for _, o := range list[:n] {
			want += o.Size
		}
		assert.Equal(t, want, sum)
		lengths, list = append(lengths, n), list[n:]
	}
	return lengths
}

// Objects that were written together are read with one request, up to the limits of the layout and of a
// chunk.
func TestRunsAreMovedByOneRequest(t *testing.T) {
	list := blocks("a", block, block, block, block, block, block, block, block, block, 5000)
	// packed: files of six
	wants := map[string][]int{"slots": {4, 4, 2}, "packed": {4, 2, 4}}
	everyLayout(t, func(t *testing.T, tier *filetier.Tier, _ string) {
		want := wants[filepath.Base(filepath.Dir(t.Name()))]
		f := faults.Wrap(tier, nil)
		x := tiertest.Transfer(t, chunk, 2)
		assert.Equal(t, want, writeRuns(t, x, f, list))
		assert.EqualValues(t, len(want), f.Count(faults.Write))
		assert.Equal(t, want, readRuns(t, x, f, list))
		assert.EqualValues(t, len(want), f.Count(faults.Read))
		w, r := f.InUse()
		assert.Zero(t, w+r)
		scattered := []tiers.Object{list[0], list[2], list[1], list[2], list[3], list[9],
			{Key: "missing", Size: block}}
		assert.Equal(t, []int{1, 1, 3, 1}, readRuns(t, x, f, scattered[:6]),
			"only adjacent objects, in their order")
		n, _, err := x.Read(t.Context(), f, nil, scattered[5:]...)
		require.NoError(t, err, "a missing neighbour is no error")
		assert.Equal(t, 1, n)
		_, _, err = x.Read(t.Context(), f, nil, scattered[6:]...)
		require.ErrorIs(t, err, tiers.ErrNotFound)
		_, _, err = x.Write(t.Context(), f, nil, list[3:5]...)
		require.Error(t, err, "the same generation twice")
		for at, o := range list { // and one by one
			_, _, err := x.Read(t.Context(), tier, nil, o)
			require.NoError(t, err, "entry %d", at)
		}
		small := tiertest.Transfer(t, block+4096, 2)
		assert.Equal(t, want, readRuns(t, small, f, list),
			"in several requests, which cut through blocks")
		for _, o := range list {
			require.NoError(t, tier.Remove(t.Context(), o))
		}
		assert.Equal(t, want, writeRuns(t, small, f, list))
		assert.Equal(t, want, readRuns(t, x, f, list))
	})
}

// A mismatch names the block, not the run.
func TestVerificationTellsWhichBlockOfARun(t *testing.T) {
	everyLayout(t, func(t *testing.T, tier *filetier.Tier, dir string) {
		x := tiertest.Transfer(t, chunk, 1)
		list := blocks("v", block, block, block)
		writeRuns(t, x, tier, list)
		files := theFiles(t, dir)
		require.Len(t, files, 1)
		flip(t, files[0], 2*block+77)
		n, _, err := x.Read(t.Context(), tier, nil, list...)
		assert.Equal(t, 3, n)
		var mismatch *content.MismatchError
		require.ErrorAs(t, err, &mismatch)
		assert.Equal(t, list[2].Key, mismatch.Key)
		assert.EqualValues(t, 77, mismatch.Offset)
	})
}

// A run that fails anywhere, or is cancelled, leaves none of its entries.
func TestAFailedRunLeavesNothing(t *testing.T) {
	everyLayout(t, func(t *testing.T, tier *filetier.Tier, _ string) {
		f := faults.Wrap(tier, nil)
		x := tiertest.Transfer(t, chunk, 1)
		list := blocks("f", block, block, block)
		for _, call := range []faults.Call{faults.Create, faults.Write, faults.Commit} {
			f.SetHook(faults.On(call, 0, unix.ENOSPC))
			done, sums := counted()
			_, _, err := x.Write(t.Context(), f, done, list...)
			require.ErrorIs(t, err, unix.ENOSPC, "%s", call)
			if call != faults.Commit || tier.Traits().CountsAtCommit {
				assert.Zero(t, sums[tiers.Write].Load(), "%s", call)
			} else {
				assert.EqualValues(t, 3*block, sums[tiers.Write].Load(), "they reached the device")
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		f.SetHook(func(_ context.Context, e faults.Event) error { cancel(); return nil })
		_, _, err := x.Write(ctx, f, nil, list...)
		require.ErrorIs(t, err, context.Canceled)
		held, waste := tier.Footprint()
		assert.Zero(t, held+waste)
		f.SetHook(nil)
		writeRuns(t, x, f, list)
		f.SetHook(faults.On(faults.Read, 0, unix.EIO))
		n, _, err := x.Read(t.Context(), f, nil, list...)
		require.ErrorIs(t, err, unix.EIO)
		assert.Equal(t, 3, n)
		f.SetHook(nil)
		assert.Equal(t, []int{3}, readRuns(t, x, f, list))
		w, r := f.InUse()
		assert.Zero(t, w+r)
	})
}

// Many goroutines write, read and delete runs concurrently, and also delete objects under their readers.
func TestRunsFromManyGoroutines(t *testing.T) {
	everyLayout(t, func(t *testing.T, tier *filetier.Tier, dir string) {
		x := tiertest.Transfer(t, chunk, 1)
		var wg sync.WaitGroup
		for g := range 6 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(g), 9))
				for round := range 8 {
					var lengths []int64
					for range 1 + rng.IntN(9) {
						lengths = append(lengths, block-int64(rng.IntN(2)*rng.IntN(block)))
					}
					list := blocks(fmt.Sprint(g, "/", round), lengths...)
					writeRuns(t, x, tier, list)
					readRuns(t, x, tier, list)
					reader, err := tier.Open(t.Context(), list...)
					if !assert.NoError(t, err) {
						return
					}
					rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
					for i, o := range list {
						if i == len(list)/2 {
							assert.NoError(t, reader.Close())
						}
						assert.NoError(t, tier.Remove(t.Context(), o))
					}
				}
			})
		}
		wg.Wait()
		held, waste := tier.Footprint()
		assert.Zero(t, held+waste)
		if !strings.Contains(t.Name(), "slots") {
			assert.Empty(t, theFiles(t, dir))
		}
	})
}

// calls records its calls, and fails one of them after the call.
type calls struct {
	ioengine.Engine
	made []string
	fail string
}

func (c *calls) Call(what, where string, f func() error) error {
	c.made = append(c.made, what)
	err := c.Engine.Call(what, where, f)
	if what == c.fail {
		err = unix.EIO
	}
	return err
}

// Closing a file that was only read may also wait for a server that hangs, so it runs through the
// engine.
func TestTheEngineClosesFiles(t *testing.T) {
	engine := &calls{Engine: tiertest.Psync(t)}
	tier := tiertest.Files(t, filetier.Config{Engine: engine})
	o := tiers.Object{Key: "a", Size: 4096}
	_, _, err := tiertest.Transfer(t, chunk, 1).Write(t.Context(), tier, nil, o)
	require.NoError(t, err)
	engine.made = nil
	r, err := tier.Open(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	assert.Equal(t, []string{"open", "drop from the page cache", "close"}, engine.made)
}

// NFS reports a failed write when the file is closed: the object is removed then.
func TestAFileThatCannotBeClosedIsRemoved(t *testing.T) {
	engine, dir := &calls{Engine: tiertest.Psync(t)}, tiertest.Dir(t)
	tier := tiertest.Files(t, filetier.Config{Engine: engine, Dir: dir})
	o := tiers.Object{Key: "k", Size: 3 * 4096}
	w, err := tier.Create(t.Context(), o)
	require.NoError(t, err)
	engine.fail = "close"
	require.ErrorIs(t, w.Commit(t.Context()), unix.EIO)
	require.NoError(t, w.Abort())
	_, err = tier.Open(t.Context(), o)
	require.ErrorIs(t, err, tiers.ErrNotFound)
	assert.Empty(t, theFiles(t, dir.Path()))
	engine.fail = ""
	w, err = tier.Create(t.Context(), o)
	require.NoError(t, err, "nothing is in the way")
	require.NoError(t, w.Abort())
}

// Commit fails while an abandoned request is in flight. The file stays open until that request
// completes, because a closed descriptor's number may become another file's.
func TestNoFileIsCompleteBeforeAllIsWritten(t *testing.T) {
	engine := tiertest.NewEngine(tiertest.Psync(t))
	tier := tiertest.Files(t, filetier.Config{Engine: engine})
	o := tiers.Object{Key: "a", Size: 4096}
	w, err := tier.Create(t.Context(), o)
	require.NoError(t, err)
	engine.Hold(func(op *ioengine.Op) bool { return op.Kind == ioengine.Write })
	back := make(chan error, 1)
	w.Submit(&tiers.IO{Buf: tiers.Buffer{B: make([]byte, 4096)}, N: 4096,
		Done: func(io *tiers.IO) { back <- io.Err }})
	assert.ErrorContains(t, w.Commit(t.Context()), "1 of its requests are in flight")
	_, err = tier.Open(t.Context(), o)
	assert.ErrorIs(t, err, tiers.ErrNotFound)
	engine.Release()
	assert.NoError(t, <-back, "the file was closed before")
}
