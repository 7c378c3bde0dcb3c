package filetier_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/filetier"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
	"kvbench/tiers/workdir"
)

// recycler is a tier whose files are overwritten.
type recycler struct {
	*filetier.Tier
	t   testing.TB
	dir string
	by  *transfer.Transfer
	gen uint64
}

func newRecycler(t testing.TB, capacity int64, direct bool) *recycler {
	dir := tiertest.Dir(t)
	return &recycler{t: t, dir: dir.Path(), by: tiertest.Transfer(t, tiertest.Chunk, 2),
		Tier: tiertest.Files(t, filetier.Config{Dir: dir, Direct: direct, Capacity: capacity,
			Layout: tiers.Layout{Recycle: true}})}
}

// put writes a new object and reads it.
func (r *recycler) put(size int64) tiers.Object {
	r.gen++
	o := tiers.Object{Key: fmt.Sprint(r.gen % 5), Gen: r.gen, Size: size}
	_, _, err := r.by.Write(r.t.Context(), r, nil, o)
	require.NoError(r.t, err)
	r.read(o)
	return o
}

func (r *recycler) read(o tiers.Object) {
	_, _, err := r.by.Read(r.t.Context(), r, nil, o)
	require.NoError(r.t, err)
}

func (r *recycler) remove(objs ...tiers.Object) {
	require.NoError(r.t, r.Remove(r.t.Context(), objs...))
}

// files are the sizes of those on the disk, by inode. None has more blocks than its size, but for
// the one in which some filesystems keep where the others are.
func (r *recycler) files() map[uint64]int64 {
	names, err := filepath.Glob(r.dir + "/*/*")
	require.NoError(r.t, err)
	sizes := map[uint64]int64{}
	for _, name := range names {
		info, err := os.Stat(name)
		require.NoError(r.t, err)
		s := info.Sys().(*syscall.Stat_t)
		sizes[s.Ino] = s.Size
		assert.LessOrEqual(r.t, s.Blocks*512, tiers.AlignUp(s.Size, 4096)+4096)
	}
	return sizes
}

func total(files map[uint64]int64) (sum int64) {
	for _, size := range files {
		sum += size
	}
	return sum
}

func TestFilesAreOverwritten(t *testing.T) {
	const page = 4096
	r := newRecycler(t, 74*page, true)
	small, large := r.put(25*page), r.put(49*page-1)
	first := r.files()
	require.Len(t, first, 2)
	r.remove(small, large)
	assert.Equal(t, first, r.files(), "nothing is unlinked")
	large, small = r.put(48*page+1), r.put(25*page)
	assert.Equal(t, first, r.files(), "nothing is made or cut: as many pages are as long")

	inode := func(pages int64) uint64 {
		for i, size := range r.files() {
			if size == pages*page {
				return i
			}
		}
		return 0
	}
	short, long := inode(25), inode(49)
	r.remove(small, large)
	middle := r.put(37 * page)
	assert.Equal(t, map[uint64]int64{short: 25 * page, long: 37 * page}, r.files(),
		"the smallest that is large enough is cut")
	another := r.put(30 * page)
	assert.Equal(t, map[uint64]int64{short: 30 * page, long: 37 * page}, r.files(),
		"else the largest grows")
	held, waste := r.Footprint()
	assert.EqualValues(t, []int64{67 * page, 0}, []int64{held, waste})
	r.remove(middle, another)
	held, waste = r.Footprint()
	assert.EqualValues(t, []int64{0, 67 * page}, []int64{held, waste})
	all := r.put(74 * page)
	assert.Equal(t, map[uint64]int64{long: 74 * page}, r.files(),
		"what then exceeds the capacity goes")
	r.remove(all)
	small = r.put(page)
	assert.Equal(t, map[uint64]int64{long: page}, r.files())
	large = r.put(73 * page)
	assert.Len(t, r.files(), 2)
	r.read(small)
	r.read(large)
}

// A reader has its object until it closes, whoever has removed it: nobody gets its file before.
func TestNobodyOverwritesWhatIsBeingRead(t *testing.T) {
	for _, direct := range []bool{true, false} {
		r := newRecycler(t, 8<<20, direct)
		const size = 100_000
		old := r.put(size)
		before := r.files()
		reader, err := r.Open(t.Context(), old)
		require.NoError(t, err)
		r.remove(old)
		r.put(size)
		assert.Len(t, r.files(), 2)
		bufs, err := r.by.Pool.Get(t.Context(), 1, nil)
		require.NoError(t, err)
		done := make(chan error, 1)
		reader.Submit(&tiers.IO{Buf: bufs[0], N: tiertest.Chunk,
			Done: func(io *tiers.IO) { done <- io.Err }})
		require.NoError(t, <-done)
		want := make([]byte, tiertest.Chunk)
		r.by.Content.Fill(want, old, 0)
		assert.Equal(t, want, bufs[0].B[:tiertest.Chunk])
		r.by.Pool.Put(bufs...)
		require.NoError(t, reader.Close())
		after := r.files()
		r.put(size)
		assert.Equal(t, after, r.files(), "now it is overwritten")
		for inode := range before {
			assert.Contains(t, after, inode)
		}
	}
}

// What a writer that gave up has left in a file nobody knows: it goes.
func TestAFileThatNobodyFinishedIsNotUsedAgain(t *testing.T) {
	r := newRecycler(t, 8<<20, true)
	r.remove(r.put(100_000))
	w, err := r.Create(t.Context(), tiers.Object{Key: "k", Gen: 99, Size: 100_000})
	require.NoError(t, err)
	assert.Len(t, r.files(), 1)
	require.NoError(t, w.Abort())
	assert.Empty(t, r.files())
	held, waste := r.Footprint()
	assert.Zero(t, held)
	assert.Zero(t, waste)

	// Nor is one that somebody has removed: its bytes are not counted for ever.
	r.remove(r.put(100_000))
	names, err := filepath.Glob(r.dir + "/*/*")
	require.NoError(t, err)
	require.Len(t, names, 1)
	require.NoError(t, os.Remove(names[0]))
	_, err = r.Create(t.Context(), tiers.Object{Key: "k", Gen: 100, Size: 100_000})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, waste = r.Footprint()
	assert.Zero(t, waste)
	r.put(100_000)
}

// Whatever sizes come and go, as long as the objects fit so do all files together, after each step,
// and every object is what was written.
func TestRecycledFilesFitTheCapacity(t *testing.T) {
	for _, direct := range []bool{true, false} {
		const capacity = 4 << 20
		r := newRecycler(t, capacity, direct)
		draw := rand.New(rand.NewPCG(1, 2))
		var there []tiers.Object
		held := int64(0)
		pages := func(o tiers.Object) int64 { return tiers.AlignUp(o.Size, 4096) }
		for range 60 {
			o := tiers.Object{Size: 1 + draw.Int64N(1<<20)}
			for held+pages(o) > capacity {
				i := draw.IntN(len(there))
				r.remove(there[i])
				held -= pages(there[i])
				there = slices.Delete(there, i, i+1)
			}
			o = r.put(o.Size)
			held += pages(o)
			there = append(there, o)
			assert.LessOrEqual(t, total(r.files()), int64(capacity))
			sum, waste := r.Footprint()
			assert.LessOrEqual(t, sum+waste, int64(capacity))
		}
		for _, o := range there {
			r.read(o)
		}
	}
}

// Likewise of several who write, read and remove at a time, with every byte compared.
func TestRecycledFilesOfSeveralWriters(t *testing.T) {
	const capacity, workers = 4 << 20, 6
	r := newRecycler(t, capacity, true)
	var mine [workers][]tiers.Object
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			draw := rand.New(rand.NewPCG(3, uint64(w)))
			held := int64(0)
			for i := range 30 {
				o := tiers.Object{Key: fmt.Sprint(w), Gen: uint64(i),
					Size: 4096 * (1 + draw.Int64N(capacity/workers/4096))}
				for held+o.Size > capacity/workers {
					k := draw.IntN(len(mine[w]))
					if !assert.NoError(t, r.Remove(context.Background(), mine[w][k])) {
						return
					}
					held -= mine[w][k].Size
					mine[w] = slices.Delete(mine[w], k, k+1)
				}
				_, _, err := r.by.Write(context.Background(), r, nil, o)
				if !assert.NoError(t, err) {
					return
				}
				held, mine[w] = held+o.Size, append(mine[w], o)
				_, _, err = r.by.Read(context.Background(), r, nil,
					mine[w][draw.IntN(len(mine[w]))])
				if !assert.NoError(t, err) {
					return
				}
			}
		})
	}
	all.Wait()
	held, waste := r.Footprint()
	files := total(r.files())
	assert.Equal(t, held+waste, files, "what is counted is there")
	assert.LessOrEqual(t, files, int64(capacity))
	for _, objs := range mine {
		for _, o := range objs {
			r.read(o)
		}
		r.remove(objs...)
	}
	held, waste = r.Footprint()
	assert.Equal(t, []int64{0, files}, []int64{held, waste})
}

// What a run leaves that was killed the next one takes back, files without an object among it.
func TestRecycledFilesAreReclaimed(t *testing.T) {
	at := t.TempDir()
	dir, err := workdir.Open(t.Context(), workdir.Options{CacheDir: at, Nonce: "a", Keep: true})
	require.NoError(t, err)
	r := &recycler{t: t, by: tiertest.Transfer(t, tiertest.Chunk, 1), Tier: tiertest.Files(t,
		filetier.Config{Dir: dir, Layout: tiers.Layout{Recycle: true}})}
	a, b := r.put(50_000), r.put(60_000)
	r.put(70_000)
	r.remove(a, b)
	require.NoError(t, r.Close())
	require.NoError(t, dir.Close())
	dir, err = workdir.Open(t.Context(), workdir.Options{CacheDir: at, Nonce: "b"})
	require.NoError(t, err)
	assert.EqualValues(t, 3, dir.Reclaimed().Files)
	require.NoError(t, dir.Close())
}
