package filetier_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/filetier"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/workdir"
)

// imitating is a configuration of an engine's layout for objects of up to bytes, 0 = 1 MiB.
func imitating(layout string, bytes int64) filetier.Config {
	facts, _ := tiers.EngineLayoutOf(layout)
	return filetier.Config{Layout: tiers.Layout{Kind: layout, Bytes: bytes}, Direct: facts.Direct}
}

// store writes an object with one request.
func store(t testing.TB, tier tiers.Files, o tiers.Object) error {
	w, err := tier.Create(t.Context(), o)
	if err != nil {
		return err
	}
	if err := move(t, w, o, true); err != nil {
		return err
	}
	return w.Commit(t.Context())
}

// load reads one and compares it.
func load(t testing.TB, tier tiers.Files, o tiers.Object) error {
	r, err := tier.Open(t.Context(), o)
	if err != nil {
		return err
	}
	if err := move(t, r, o, false); err != nil {
		return err
	}
	return r.Close()
}

// move makes one request for an object.
func move(t testing.TB, to tiers.Submitter, o tiers.Object, write bool) error {
	whole := int(tiers.AlignUp(o.Size, 4096))
	b := buffer.Aligned(make([]byte, whole+4096), whole, 4096)
	if write {
		tiertest.Content.Fill(b[:o.Size], o, 0)
	}
	done := make(chan error, 1)
	to.Submit(&tiers.IO{Buf: tiers.Buffer{B: b}, N: int(o.Size),
		Done: func(io *tiers.IO) { done <- io.Err }})
	err := <-done
	if err == nil && !write {
		require.NoError(t, tiertest.Content.Check(b[:o.Size], o, 0))
	}
	return err
}

func TestContract(t *testing.T) {
	for _, l := range tiers.EngineLayouts {
		t.Run(l.Name, func(t *testing.T) {
			tiertest.RunFiles(t, func(t testing.TB) tiers.Files {
				return tiertest.Files(t, imitating(l.Name, 0))
			})
		})
	}
	t.Run("layer by layer", func(t *testing.T) {
		tiertest.RunFiles(t, func(t testing.TB) tiers.Files {
			cfg := imitating("lmcache-fs", 0)
			cfg.Layerwise = true
			return tiertest.Files(t, cfg)
		})
	})
	t.Run("concurrent objects", func(t *testing.T) {
		tiertest.RunFiles(t, func(t testing.TB) tiers.Files {
			cfg := imitating("kvbm-slots", 0)
			cfg.Depth = 4
			return tiertest.Files(t, cfg)
		})
	})
}

// recorder is an engine that records its calls.
type recorder struct {
	ioengine.Engine
	calls []string
}

func (e *recorder) Call(what, where string, f func() error) error {
	e.calls = append(e.calls, what+" "+where)
	return e.Engine.Call(what, where, f)
}

// Every call that a device may leave unanswered runs through the I/O engine. Otherwise the result
// would not list it as stalled, and -io-timeout would not end it.
func TestEveryCallRunsThroughTheEngine(t *testing.T) {
	for _, l := range tiers.EngineLayouts {
		t.Run(l.Name, func(t *testing.T) {
			dir := tiertest.Dir(t)
			engine, made := &recorder{Engine: tiertest.Psync(t)}, 0
			cfg := imitating(l.Name, tiers.BucketBytes)
			cfg.Dir, cfg.Engine, cfg.Direct, cfg.Capacity = dir, engine, false, tiers.BucketBytes
			cfg.Note = func(call string) {
				if !strings.HasPrefix(call, "fcntl") { // does not reach the device
					made++
				}
			}
			tier := tiertest.Files(t, cfg)
			o := tiers.Object{Key: "a", Gen: 1, Size: 4096}
			require.NoError(t, store(t, tier, o))
			if l.LooksUp {
				_, err := tier.Lookup(t.Context(), o)
				require.NoError(t, err)
			}
			require.NoError(t, load(t, tier, o))
			require.NoError(t, tier.Remove(t.Context(), o))
			require.NoError(t, tier.Close())
			assert.Len(t, engine.calls, made)
			for _, call := range engine.calls {
				assert.Contains(t, call, " "+dir.Path()+"/")
			}
		})
	}
}

// A work directory removes what a layout leaves, and knows each of its names.
func TestWorkDirectoryRemovesTheFiles(t *testing.T) {
	for _, l := range tiers.EngineLayouts {
		t.Run(l.Name, func(t *testing.T) {
			at := t.TempDir()
			dir, err := workdir.Open(t.Context(), workdir.Options{CacheDir: at, Nonce: "test"})
			require.NoError(t, err)
			cfg := imitating(l.Name, 4096)
			cfg.Dir = dir
			tier := tiertest.Files(t, cfg)
			for i := range tiers.BucketKeys { // a bucket is full then
				require.NoError(t, store(t, tier, tiers.Object{Key: fmt.Sprint(i), Gen: 1,
					Size: 4096}))
				if i > 2 && !l.Buckets {
					break
				}
			}
			if l.LooksUp { // a file per object, perhaps of another process
				err := store(t, tiertest.Files(t, cfg), tiers.Object{Key: "0", Gen: 1, Size: 4096})
				require.ErrorIs(t, err, tiers.ErrExists)
			}
			if l.Ranks == tiers.RanksApart || l.Ranks == tiers.RanksEach {
				cfg.Direct, cfg.Tensor, cfg.World = false, 1, 2
				second := tiertest.Files(t, cfg)
				require.NoError(t, store(t, second, tiers.Object{Key: "r", Gen: 1, Size: 4096}))
				require.NoError(t, second.Close())
			}
			w, err := tier.Create(t.Context(), tiers.Object{Key: "half", Gen: 1, Size: 4096})
			require.NoError(t, err)
			_ = w // a file with its temporary name
			root := dir.Path() + "/engine"
			files := 0
			require.NoError(t, filepath.WalkDir(root, func(path string, e os.DirEntry, err error,
			) error {
				if err == nil && !e.IsDir() {
					files++
					rel, _ := filepath.Rel(root, path)
					assert.True(t, workdir.KnowsTree(rel), rel)
				}
				return err
			}))
			if l.Name != "kvbm-slots" { // its file is unlinked
				assert.Positive(t, files)
			}
			users := filepath.Join(root, "mine.bin")
			require.NoError(t, os.WriteFile(users, nil, 0o600))
			require.NoError(t, dir.Close())
			left, err := os.ReadDir(root)
			require.NoError(t, err)
			require.Len(t, left, 1, "only the user's file is left")
			require.NoError(t, os.Remove(users))
			again, err := workdir.Open(t.Context(), workdir.Options{CacheDir: at, Nonce: "test"})
			require.NoError(t, err)
			require.NoError(t, again.Close())
			assert.NoDirExists(t, dir.Path())
		})
	}
}

// In SGLang the names of latents, which are equal on all ranks, have no rank.
func TestLatentsHaveNoRankInHiCachesNames(t *testing.T) {
	for latents, want := range map[bool]string{true: "_org-m.bin", false: "_org-m_3_8.bin"} {
		dir := tiertest.Dir(t)
		cfg := imitating("hicache-file", 4096)
		cfg.Dir, cfg.Model, cfg.Tensor, cfg.World, cfg.Latents = dir, "org/m", 3, 8, latents
		tier := tiertest.Files(t, cfg)
		o := tiers.Object{Key: "k", Gen: 1, Size: 4096}
		require.NoError(t, store(t, tier, o))
		require.NoError(t, load(t, tier, o))
		names, err := os.ReadDir(dir.Path() + "/engine")
		require.NoError(t, err)
		require.Len(t, names, 1)
		const hash = 64
		assert.Equal(t, want, names[0].Name()[hash:])
		assert.True(t, workdir.KnowsTree(names[0].Name()))
		require.NoError(t, tier.Close())
	}
}

// A bucket that cannot be written leaves no file. Its objects stay in memory, and no later bucket has more memory
// than the engine's: the failed one's is unmapped.
func TestABucketThatFailsLeavesNothing(t *testing.T) {
	dir := tiertest.Dir(t)
	engine := tiertest.NewEngine(tiertest.Psync(t))
	engine.See(func(op *ioengine.Op) {
		if op.Kind == ioengine.Write && op.Vec != nil { // a descriptor that cannot be written
			require.NoError(t, unix.Close(op.FD))
			var err error
			op.FD, err = unix.Open("/dev/null", unix.O_RDONLY, 0)
			require.NoError(t, err)
		}
	})
	cfg := imitating("mooncake-bucket", 4096)
	cfg.Dir, cfg.Engine = dir, engine
	tier := tiertest.Files(t, cfg)
	o := func(i int) tiers.Object { return tiers.Object{Key: fmt.Sprint(i), Gen: 1, Size: 4096} }
	for i := range tiers.BucketKeys - 1 {
		require.NoError(t, store(t, tier, o(i)))
	}
	require.ErrorIs(t, store(t, tier, o(tiers.BucketKeys-1)), unix.EBADF)
	names, err := os.ReadDir(dir.Path() + "/engine")
	require.NoError(t, err)
	assert.Empty(t, names)
	require.NoError(t, load(t, tier, o(0)), "from memory")
	for i := range tiers.BucketKeys - 1 {
		require.NoError(t, tier.Remove(t.Context(), o(i)))
	}
	engine.See(func(*ioengine.Op) {})
	for i := range tiers.BucketKeys {
		require.NoError(t, store(t, tier, o(tiers.BucketKeys+i)))
	}
	names, err = os.ReadDir(dir.Path() + "/engine")
	require.NoError(t, err)
	assert.Len(t, names, 2, "the next bucket and its index")
	require.NoError(t, tier.Close())
}

// A bucket is written when it is full, whole, and goes with its last object.
func TestBucketsAreWrittenWhole(t *testing.T) {
	dir := tiertest.Dir(t)
	cfg := imitating("mooncake-bucket", 4096)
	cfg.Dir = dir
	tier := tiertest.Files(t, cfg)
	o := func(i int) tiers.Object { return tiers.Object{Key: fmt.Sprint(i), Gen: 1, Size: 4096} }
	files := func() []string {
		names, err := filepath.Glob(dir.Path() + "/engine/*")
		require.NoError(t, err)
		return names
	}
	x := tiertest.Transfer(t, 4096, 1)
	var disk, memory [tiers.NumOps]int64
	done := func(c tiers.Chunk) {
		disk[c.Op] += c.Bytes
		memory[c.Op] += c.Memory
	}
	var early tiers.Reader // of memory that the second bucket must not reuse
	for i := range 3 * tiers.BucketKeys / 2 {
		_, _, err := x.Write(t.Context(), tier, done, o(i))
		require.NoError(t, err)
		if i == tiers.BucketKeys-2 {
			assert.Empty(t, files(), "it waits for the last one")
			early, err = tier.Open(t.Context(), o(0))
			require.NoError(t, err)
		}
	}
	require.Len(t, files(), 2, "a bucket and its index; the other is half full")
	require.NoError(t, move(t, early, o(0), false))
	require.NoError(t, early.Close())
	for i := range 3 * tiers.BucketKeys / 2 {
		_, _, err := x.Read(t.Context(), tier, done, o(i))
		require.NoError(t, err, "from the disk or from memory")
	}
	const bucket = tiers.BucketKeys * 4096
	assert.Equal(t, [tiers.NumOps]int64{bucket, bucket}, disk)
	assert.Equal(t, [tiers.NumOps]int64{bucket / 2, bucket / 2}, memory)
	for i := range tiers.BucketKeys {
		assert.Len(t, files(), 2)
		require.NoError(t, tier.Remove(t.Context(), o(i)))
	}
	assert.Empty(t, files())
	require.NoError(t, load(t, tier, o(tiers.BucketKeys)))
	require.NoError(t, tier.Close())
}
