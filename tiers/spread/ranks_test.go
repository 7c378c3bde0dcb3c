package spread_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/filetier"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/spread"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
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
) tiers.Tier {
	var list []tiers.Tier
	settings := tiertest.Transfer(t, bytes, max(1, l.Depth)).Settings
	for i := range n {
		files := tiertest.Files(t, filetier.Config{Dir: dir, Engine: engine,
			Layout: tiers.Layout{Kind: l.Name, Bytes: tiers.AlignUp(int64(bytes/n), 4096)},
			Direct: l.Direct, Imitation: filetier.Imitation{Depth: l.Depth, Tensor: i, World: n}})
		list = append(list, transfer.New(files, settings))
	}
	tier := spread.NewRanks(list, bytes, l.Depth)
	t.Cleanup(func() { assert.NoError(t, tier.Close()) })
	return tier
}

func object(key string) tiers.Object { return tiers.Object{Key: key, Gen: 1, Size: bytes} }

// store writes an object, load reads and compares it.
func store(t testing.TB, tier tiers.Tier, o tiers.Object) {
	t.Helper()
	require.NoError(t, putRanks(t, tier, o))
}

func putRanks(t testing.TB, tier tiers.Tier, o tiers.Object) error {
	return tier.Put(t.Context(), &tiers.Call{}, []tiers.Object{o}, tiertest.Content.Source())
}

func load(t testing.TB, tier tiers.Tier, o tiers.Object) {
	t.Helper()
	require.NoError(t, get(t, tier, o))
}

func get(t testing.TB, tier tiers.Tier, o tiers.Object) error {
	return tier.Get(t.Context(), &tiers.Call{}, []tiers.Object{o}, tiertest.Verified)
}

// filesOf are the names below the engine's directory that match.
func filesOf(t testing.TB, dir *workdir.Dir, pattern string) []string {
	files, err := filepath.Glob(dir.Path() + "/engine/" + pattern)
	require.NoError(t, err)
	return files
}

// The tier keeps its contract if the number of ranks divides an object, and if it does not.
func TestRanksKeepTheContract(t *testing.T) {
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
			var mu sync.Mutex
			seen := 0
			engine.Hold(func(op *ioengine.Op) bool {
				mu.Lock()
				defer mu.Unlock()
				seen++
				assert.EqualValues(t, o.Size/n, op.N, "a part of the bytes")
				return seen-1 == slow
			})
			done := make(chan error, 1)
			go func() { done <- get(t, tier, o) }()
			require.Eventually(t, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return seen == n && engine.Held() == 1
			}, time.Minute, time.Millisecond, "%s: all concurrently", l.Name)
			select {
			case <-done:
				t.Errorf("%s: over without rank %d", l.Name, slow)
			default:
			}
			engine.Release()
			require.NoError(t, <-done)
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
	require.ErrorIs(t, get(t, tier, o), tiers.ErrNotFound)

	// A directory in the place of the second rank's next file lets its rename fail.
	p := object("p")
	name := fmt.Sprintf("%s/%x_m_1_2.bin", filepath.Dir(files[0]),
		sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", p.Key, p.Gen)))
	require.NoError(t, os.Mkdir(name, 0o700))
	require.Error(t, putRanks(t, tier, p))
	require.ErrorIs(t, get(t, tier, p), tiers.ErrNotFound)
	assert.Len(t, filesOf(t, dir, "*_m_0_2.bin"), 1, "the other object's alone")
	assert.Empty(t, filesOf(t, dir, ".*.tmp"))
	require.NoError(t, os.Remove(name))
}
