package spread_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/filetier"
	"kvbench/tiers/spread"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
	"kvbench/tiers/workdir"
)

// notes are the system calls so far, without those of the start.
type notes struct {
	mu    sync.Mutex
	calls []string
}

func (n *notes) add(call string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, call)
}

// take returns those calls by name and group of layers.
func (n *notes) take(names ...string) (list []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, call := range n.calls {
		for _, name := range names {
			if _, behind, of := strings.Cut(call, "_g"); of && strings.HasPrefix(call, name) {
				list = append(list, name+" g"+behind[:1])
			}
		}
	}
	n.calls = nil
	return list
}

// tails are three groups: of all tokens, of the last two objects, and of the last one.
var tails = tiers.Tails{0, 2, 1}

// groupsOf makes the tier of vLLM's files with three groups of a third of the bytes.
func groupsOf(t testing.TB, dir *workdir.Dir, direct bool, n *notes) (
	*spread.Ranks, *filetier.Tier) {
	const part = (bytes/3 + 4095) / 4096 * 4096
	files := tiertest.Files(t, filetier.Config{Dir: dir, Direct: direct,
		Layout:    tiers.Layout{Kind: "vllm-fs", Bytes: part},
		Imitation: filetier.Imitation{Note: n.add}})
	tier := spread.NewGroups(transfer.New(files, tiertest.Transfer(t, bytes, 1).Settings), part,
		tails)
	t.Cleanup(func() { assert.NoError(t, tier.Close()) })
	return tier, files
}

func TestGroupsKeepTheContract(t *testing.T) {
	for _, direct := range []bool{false, true} {
		tiertest.Run(t, func(t testing.TB) tiers.Tier {
			tier, _ := groupsOf(t, tiertest.Dir(t), direct, new(notes))
			return tier
		})
	}
}

// An object has one file per group. Groups that a prompt does not need are neither looked up nor opened
// nor read.
func TestGroupsAreReadAsFarAsNeeded(t *testing.T) {
	dir, n := tiertest.Dir(t), new(notes)
	tier, files := groupsOf(t, dir, true, n)
	assert.Contains(t, tier.Traits().Description, "a file for each of 3 groups of layers")
	var objs []tiers.Object
	for _, key := range []string{"a", "b", "c"} {
		objs = append(objs, object(key))
		store(t, tier, object(key))
	}
	for _, group := range []string{"g0", "g1", "g2"} {
		names, err := filepath.Glob(dir.Path() + "/engine/*/*/*_" + group + "/*.bin")
		require.NoError(t, err)
		assert.Len(t, names, 3, group)
	}
	held, _ := files.Footprint()
	assert.EqualValues(t, 3*bytes, held, "once, and not of each group")

	// The first of three objects is read from the first group alone, the last one from all groups.
	n.take()
	for i, o := range objs {
		o.Size = tails.Of(o.Size, len(objs)-i)
		load(t, tier, o)
		want := []string{"openat g0", "openat g1", "openat g2"}[:i+1]
		assert.Equal(t, want, n.take("openat"))
	}
	found, err := tier.Lookup(t.Context(), append(objs, object("none"))...)
	require.NoError(t, err)
	assert.Equal(t, 3, found)
	const all = "faccessat g0"
	assert.Equal(t, []string{all, all, all, all, "faccessat g1", "faccessat g1", "faccessat g2"},
		n.take("faccessat"), "of the others those of the last objects that there are")

	require.NoError(t, tier.Remove(t.Context(), objs[0]))
	require.ErrorIs(t, get(t, tier, objs[0]), tiers.ErrNotFound)
	held, _ = files.Footprint()
	assert.EqualValues(t, 2*bytes, held)

	err = putRanks(t, tier, tiers.Object{Key: "large", Gen: 1, Size: 2 * bytes})
	assert.ErrorContains(t, err, "2097152 bytes are more than 3 parts of 352256")
}
