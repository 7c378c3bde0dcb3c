package ranks_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/filetier"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/ranks"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/workdir"
)

// bytes are those of the largest object.
const bytes = 1 << 20

// apart are the layouts in which each tensor-parallel rank has an object of its own.
func apart() (list []tiers.LayoutSpec) {
	for _, l := range tiers.EngineLayouts {
		if l.Ranks == tiers.RanksApart || l.Ranks == tiers.RanksEach {
			list = append(list, l)
		}
	}
	return list
}

// open makes the tier of n ranks.
func open(t testing.TB, l tiers.LayoutSpec, n int, dir *workdir.Dir, engine ioengine.Engine,
) *ranks.Tier {
	cfg := ranks.Config{Bytes: bytes, Depth: l.Depth}
	for i := range n {
		cfg.Ranks = append(cfg.Ranks, tiertest.Files(t, filetier.Config{Dir: dir, Engine: engine,
			Layout: tiers.Layout{Kind: l.Name, Bytes: tiers.AlignUp(int64(bytes/n), 4096)},
			Direct: l.Direct, Imitation: filetier.Imitation{Depth: l.Depth, Tensor: i, World: n}}))
	}
	tier := ranks.New(cfg)
	t.Cleanup(func() { assert.NoError(t, tier.Close()) })
	return tier
}

func object(key string) tiers.Object { return tiers.Object{Key: key, Gen: 1, Size: bytes} }

// store writes an object, load reads and compares it.
func store(t testing.TB, tier tiers.Tier, o tiers.Object) {
	_, _, err := tiertest.Transfer(t, bytes, 1).Write(t.Context(), tier, nil, o)
	require.NoError(t, err)
}

func load(t testing.TB, tier tiers.Tier, o tiers.Object) {
	_, _, err := tiertest.Transfer(t, bytes, 1).Read(t.Context(), tier, nil, o)
	require.NoError(t, err)
}

// filesOf are the names below the engine's directory that match.
func filesOf(t testing.TB, dir *workdir.Dir, pattern string) []string {
	files, err := filepath.Glob(dir.Path() + "/engine/" + pattern)
	require.NoError(t, err)
	return files
}

// The tier keeps its contract if the number of ranks divides an object, and if it does not.
func TestContract(t *testing.T) {
	for _, l := range apart() {
		t.Run(l.Name, func(t *testing.T) {
			for _, n := range []int{3, 4} {
				if n == 4 && testing.Short() {
					break // all other tests divide evenly
				}
				tiertest.Run(t, func(t testing.TB) tiers.Tier {
					return open(t, l, n, tiertest.Dir(t), tiertest.Psync(t))
				})
			}
		})
	}
}

// An object consists of one object per rank. All of them are in flight concurrently, and the last one
// to complete ends the operation.
func TestTheSlowestRankCounts(t *testing.T) {
	const n = 4
	for _, l := range apart() {
		engine := tiertest.NewEngine(tiertest.Psync(t))
		dir := tiertest.Dir(t)
		tier := open(t, l, n, dir, engine)
		o := object("k")
		store(t, tier, o)
		load(t, tier, o)

		// The names differ by rank.
		var names []string
		for _, f := range filesOf(t, dir, "*") {
			name := filepath.Base(f)
			assert.True(t, workdir.KnowsTree(name), name)
			names = append(names, regexp.MustCompile(`[0-9a-f]{64}`).ReplaceAllString(name, "HASH"))
		}
		slices.Sort(names)
		assert.Equal(t, map[string]string{
			"vllm-slots": "slots.rank_0 slots.rank_1 slots.rank_2 slots.rank_3",
			"lmcache-fs": "m@0x04000400@0@HASH.data m@0x04010401@0@HASH.data " +
				"m@0x04020402@0@HASH.data m@0x04030403@0@HASH.data",
			"hicache-file": "HASH_m_0_4.bin HASH_m_1_4.bin HASH_m_2_4.bin HASH_m_3_4.bin",
			"kvbm-slots":   "", // without names
		}[l.Name], strings.Join(names, " "), l.Name)

		for slow := range n {
			r, err := tier.Open(t.Context(), o)
			require.NoError(t, err)
			seen := 0
			engine.Hold(func(op *ioengine.Op) bool {
				seen++
				assert.EqualValues(t, o.Size/n, op.N, "a part of the bytes")
				return seen-1 == slow
			})
			done := make(chan error, 1)
			b := buffer.Aligned(make([]byte, bytes+4096), bytes, 4096)
			r.Submit(&tiers.IO{Buf: tiers.Buffer{B: b}, N: bytes,
				Done: func(io *tiers.IO) { done <- io.Err }})
			assert.Equal(t, 1, engine.Held(), l.Name)
			assert.Equal(t, n, seen, "%s: all at the same moment", l.Name)
			select {
			case <-done:
				t.Errorf("%s: over without rank %d", l.Name, slow)
			default:
			}
			engine.Release()
			require.NoError(t, <-done)
			require.NoError(t, tiertest.Content.Check(b[:bytes], o, 0))
			require.NoError(t, r.Close())
		}
	}
}

// An object that one rank does not have, or cannot write, does not exist.
func TestARankThatFails(t *testing.T) {
	i := slices.IndexFunc(apart(), func(l tiers.LayoutSpec) bool {
		return l.Name == "hicache-file"
	})
	dir := tiertest.Dir(t)
	tier := open(t, apart()[i], 2, dir, tiertest.Psync(t))
	o := object("k")
	store(t, tier, o)
	n, err := tier.Lookup(t.Context(), o, object("none"))
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	files := filesOf(t, dir, "*_1_2.bin")
	require.Len(t, files, 1)
	require.NoError(t, os.Remove(files[0]))
	_, err = tier.Open(t.Context(), o)
	require.ErrorIs(t, err, tiers.ErrNotFound)

	// A directory in the place of the second rank's next file lets its rename fail.
	p := object("p")
	w, err := tier.Create(t.Context(), p)
	require.NoError(t, err)
	require.Len(t, filesOf(t, dir, ".*.tmp"), 2)
	name := fmt.Sprintf("%s/%x_m_1_2.bin", filepath.Dir(files[0]),
		sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", p.Key, p.Gen)))
	require.NoError(t, os.Mkdir(name, 0o700))
	require.Error(t, w.Commit(t.Context()))
	_, err = tier.Open(t.Context(), p)
	require.ErrorIs(t, err, tiers.ErrNotFound)
	assert.Len(t, filesOf(t, dir, "*_m_0_2.bin"), 1, "the other object's alone")
	assert.Empty(t, filesOf(t, dir, ".*.tmp"))
	held, _ := tier.Footprint()
	assert.EqualValues(t, bytes, held)
	require.NoError(t, os.Remove(name))
}
