package tiertest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/content"
	"kvbench/tiers/faults"
	"kvbench/tiers/filetier"
	"kvbench/tiers/transfer"
)

// block is the size of most entries of these tests: four fit into a chunk, with or without padding.
const block = 16 << 10

// everyRunTier runs a test on each tier that lays entries side by side, and says where its files are.
func everyRunTier(t *testing.T, run func(t *testing.T, tier tiers.RunTier, dir string)) {
	for name, l := range map[string]tiers.Layout{
		"slots":   {Kind: tiers.LayoutSlots, Bytes: block},
		"packed":  {Kind: tiers.LayoutPacked, Places: 6},
		"grouped": {Kind: tiers.LayoutGrouped, Places: 4},
	} {
		for _, direct := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/direct=%t", name, direct), func(t *testing.T) {
				dir := ownedDir(t)
				tier, file, err := filetier.NewStorageTier(dir, filetier.FileOptions{Direct: direct}, l, 64*block)
				skipWithoutHoles(t, err)
				require.NoError(t, err)
				require.Equal(t, direct, file.Direct(), file.Warnings())
				t.Cleanup(func() { assert.NoError(t, tier.Close()) })
				run(t, tier.(tiers.RunTier), dir.Path())
			})
		}
	}
}

func blocks(prefix string, sizes ...int64) (list []tiers.Object) {
	for i, n := range sizes {
		list = append(list, tiers.Object{Key: fmt.Sprintf("blk/%s/%d", prefix, i), Gen: uint64(i + 1), Size: n})
	}
	return list
}

// writeRuns writes all objects in runs and returns how long these were.
func writeRuns(t testing.TB, x *transfer.Transfer, tier tiers.RunTier, list []tiers.Object) (runs []int) {
	t.Helper()
	for at := 0; at < len(list); {
		done, sums := counted()
		n, _, err := x.WriteRun(t.Context(), tier, list[at:], at, done)
		require.NoError(t, err)
		var want int64
		for _, o := range list[at : at+n] {
			want += o.Size
		}
		assert.Equal(t, want, sums[tiers.Write].Load(), "bytes of the entries, not of what lies between")
		runs = append(runs, n)
		at += n
	}
	return runs
}

// readRuns reads all objects in runs, verified, and returns how long these were.
func readRuns(t testing.TB, x *transfer.Transfer, tier tiers.RunTier, list []tiers.Object) (runs []int) {
	t.Helper()
	for at := 0; at < len(list); {
		done, sums := counted()
		n, _, err := x.ReadRun(t.Context(), tier, list[at:], done)
		require.NoError(t, err)
		var want int64
		for _, o := range list[at : at+n] {
			want += o.Size
		}
		assert.Equal(t, want, sums[tiers.Read].Load())
		runs = append(runs, n)
		at += n
	}
	return runs
}

// What is written together is read with one request as far as the layout and a chunk reach.
func TestRunsAreMovedByOneRequest(t *testing.T) {
	list := blocks("a", block, block, block, block, block, block, block, block, block, 5000)
	wants := map[string][]int{"slots": {4, 4, 2}, "packed": {4, 2, 4}, "grouped": {4, 4, 2}} // packed: files of six
	everyRunTier(t, func(t *testing.T, tier tiers.RunTier, _ string) {
		want := wants[filepath.Base(filepath.Dir(t.Name()))]
		f := faults.Wrap(tier, nil)
		x := mover(t, chunk, 2)
		assert.Equal(t, want, writeRuns(t, x, f, list))
		assert.EqualValues(t, len(want), f.Count(faults.WriteAt))
		assert.Equal(t, want, readRuns(t, x, f, list))
		assert.EqualValues(t, len(want), f.Count(faults.ReadAt))
		w, r := f.InUse()
		assert.Zero(t, w+r)
		scattered := []tiers.Object{list[0], list[2], list[1], list[2], list[3], list[9], {Key: "nobody's", Size: block}}
		assert.Equal(t, []int{1, 1, 3, 1}, readRuns(t, x, f, scattered[:6]), "only neighbours, in their order")
		n, _, err := x.ReadRun(t.Context(), f, scattered[5:], nil)
		require.NoError(t, err, "an absent neighbour is not ours to miss")
		assert.Equal(t, 1, n)
		_, _, err = x.ReadRun(t.Context(), f, scattered[6:], nil)
		require.ErrorIs(t, err, tiers.ErrNotFound)
		_, _, err = x.WriteRun(t.Context(), f, list[3:5], 0, nil)
		require.Error(t, err, "the same generation twice")
		for at, o := range list { // and one by one
			_, err := x.Read(t.Context(), tier, o, nil)
			require.NoError(t, err, "entry %d", at)
		}
		small := mover(t, block+4096, 1)
		assert.Equal(t, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, readRuns(t, small, f, list), "no more than a chunk")
		large := mover(t, 4096, 2)
		assert.Len(t, readRuns(t, large, f, list), len(list), "entries larger than a chunk are read in several")
	})
}

// LMCache's chunks begin and end where the place in the request says so, whatever was cached before.
func TestGroupsEndAtTheirPlaceInTheRequest(t *testing.T) {
	dir := ownedDir(t)
	tier, err := filetier.NewPackTier(dir, filetier.FileOptions{Direct: true}, filetier.PackOptions{Places: 4, Grouped: true})
	skipWithoutHoles(t, err)
	require.NoError(t, err)
	x := mover(t, 1<<20, 1)
	list := blocks("g", block, block, block, block, block, block, block, block, block, block)
	var runs []int
	for at := 3; at < len(list); { // the first three were found
		n, _, err := x.WriteRun(t.Context(), tier, list[at:], at, nil)
		require.NoError(t, err)
		runs = append(runs, n)
		at += n
	}
	assert.Equal(t, []int{1, 4, 2}, runs)
	assert.Len(t, theFiles(t, dir.Path()), 3)
	for range 2 { // the open end is no open file: the next request begins another
		n, _, err := x.WriteRun(t.Context(), tier, blocks(fmt.Sprint(t.Name(), len(theFiles(t, dir.Path()))), block, block), 2, nil)
		require.NoError(t, err)
		assert.Equal(t, 2, n)
	}
	assert.Len(t, theFiles(t, dir.Path()), 5)
}

// A mismatch names the block, not the run.
func TestVerificationTellsWhichBlockOfARun(t *testing.T) {
	everyRunTier(t, func(t *testing.T, tier tiers.RunTier, dir string) {
		x := mover(t, chunk, 1)
		list := blocks("v", block, block, block)
		writeRuns(t, x, tier, list)
		files := theFiles(t, dir)
		require.Len(t, files, 1)
		flip(t, files[0], 2*block+77)
		n, _, err := x.ReadRun(t.Context(), tier, list, nil)
		assert.Equal(t, 3, n)
		var mismatch *content.MismatchError
		require.ErrorAs(t, err, &mismatch)
		assert.Equal(t, list[2].Key, mismatch.Key)
		assert.EqualValues(t, 77, mismatch.Offset)
	})
}

// Places of entries that are being read are neither freed nor used again.
func TestRunsKeepTheirPlacesWhileTheyAreRead(t *testing.T) {
	everyRunTier(t, func(t *testing.T, tier tiers.RunTier, dir string) {
		x := mover(t, chunk, 1)
		list := blocks("r", block, block, block)
		writeRuns(t, x, tier, list)
		r, err := tier.OpenRun(t.Context(), list, chunk)
		require.NoError(t, err)
		require.Equal(t, 3, r.Len())
		for _, o := range list {
			require.NoError(t, tier.Remove(t.Context(), o))
		}
		writeRuns(t, x, tier, blocks("new", block, block, block, block))
		pool, err := buffer.NewPool(1, chunk)
		require.NoError(t, err)
		bufs, err := pool.Get(t.Context(), 1, nil)
		require.NoError(t, err)
		p := bufs[0][:r.Start(2)+block]
		require.NoError(t, r.ReadAt(t.Context(), p, 0))
		for i, o := range list {
			assert.NoError(t, data.Check(p[r.Start(i):r.Start(i)+block], o, 0))
		}
		assert.Error(t, r.ReadAt(t.Context(), p, block), "beyond the last entry")
		pool.Put(bufs...)
		require.NoError(t, pool.Close())
		footprint := tier.(interface{ Footprint() (int64, int64) })
		held, _ := footprint.Footprint()
		assert.EqualValues(t, 7*block, held)
		require.NoError(t, r.Close())
		require.NoError(t, r.Close())
		held, _ = footprint.Footprint()
		assert.EqualValues(t, 4*block, held)
		_, err = tier.OpenRun(t.Context(), list, chunk)
		assert.ErrorIs(t, err, tiers.ErrNotFound)
	})
}

// A run that fails anywhere, or is cancelled, leaves none of its entries.
func TestAFailedRunLeavesNothing(t *testing.T) {
	everyRunTier(t, func(t *testing.T, tier tiers.RunTier, _ string) {
		f := faults.Wrap(tier, nil)
		x := mover(t, chunk, 1)
		list := blocks("f", block, block, block)
		for _, call := range []faults.Call{faults.Create, faults.WriteAt, faults.Commit} {
			f.SetHook(faults.On(call, 0, unix.ENOSPC))
			done, sums := counted()
			_, _, err := x.WriteRun(t.Context(), f, list, 0, done)
			require.ErrorIs(t, err, unix.ENOSPC, "%s", call)
			if call != faults.Commit || tier.Traits().BytesAtCommit {
				assert.Zero(t, sums[tiers.Write].Load(), "%s", call)
			} else {
				assert.EqualValues(t, 3*block, sums[tiers.Write].Load(), "they reached the device")
			}
			ctx, cancel := context.WithCancel(t.Context())
			f.SetHook(func(context.Context, faults.Event) error { cancel(); panic("on purpose") })
			_, _, err = x.WriteRun(ctx, f, list, 0, nil)
			require.Error(t, err)
			cancel()
		}
		ctx, cancel := context.WithCancel(t.Context())
		f.SetHook(func(_ context.Context, e faults.Event) error { cancel(); return nil })
		_, _, err := x.WriteRun(ctx, f, list, 0, nil)
		require.ErrorIs(t, err, context.Canceled)
		held, waste := tier.(interface{ Footprint() (int64, int64) }).Footprint()
		assert.Zero(t, held+waste)
		f.SetHook(nil)
		writeRuns(t, x, f, list)
		f.SetHook(faults.On(faults.ReadAt, 0, unix.EIO))
		n, _, err := x.ReadRun(t.Context(), f, list, nil)
		require.ErrorIs(t, err, unix.EIO)
		assert.Equal(t, 3, n)
		f.SetHook(nil)
		assert.Equal(t, []int{3}, readRuns(t, x, f, list))
		w, r := f.InUse()
		assert.Zero(t, w+r)
	})
}

// Runs are written, read and deleted from many goroutines at once, deletions under readers among them.
func TestRunsFromManyGoroutines(t *testing.T) {
	everyRunTier(t, func(t *testing.T, tier tiers.RunTier, dir string) {
		x := mover(t, chunk, 1)
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
					reader, err := tier.OpenRun(t.Context(), list, chunk)
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
		held, waste := tier.(interface{ Footprint() (int64, int64) }).Footprint()
		assert.Zero(t, held+waste)
		if _, slots := tier.(*filetier.SlotTier); !slots {
			assert.Empty(t, theFiles(t, dir))
		}
	})
}
