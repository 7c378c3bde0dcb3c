package filetier_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/filetier"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/workdir"
)

// layerwise is LMCache with use_layerwise: four layers of 4 KiB each.
func layerwise(t testing.TB, dir *workdir.Dir, note func(string)) *filetier.Tier {
	cfg := imitating("lmcache-fs", 4096)
	cfg.Dir, cfg.Layerwise, cfg.Note = dir, true, note
	return tiertest.Files(t, cfg)
}

// Each layer of each object is a file. The first layers of all objects are written and read before
// the second layers. Remove deletes all layers.
func TestLayersAreFilesInTheirOrder(t *testing.T) {
	dir := tiertest.Dir(t)
	var calls []string
	tier := layerwise(t, dir, func(call string) { calls = append(calls, call) })
	move := tiertest.Transfer(t, tier.Traits().Chunk, 1)
	objs := []tiers.Object{{Key: "a", Gen: 1, Size: 4 * 4096}, {Key: "b", Gen: 1, Size: 4 * 4096}}

	opened := func() (order []string) { // layers, and which file of a layer
		seen := map[string]string{}
		for _, c := range calls {
			m := regexp.MustCompile(`^open.* .*@0@([0-9a-f]{64})@([0-9]+)\.data`).FindStringSubmatch(c)
			if m == nil {
				continue
			}
			if seen[m[1]] == "" {
				seen[m[1]] = string(rune('a' + len(seen)))
			}
			order = append(order, m[2]+seen[m[1]])
		}
		calls = nil
		return order
	}
	const layerMajor = "0a 0b 1a 1b 2a 2b 3a 3b"
	n, _, err := move.Write(t.Context(), tier, nil, objs...)
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	assert.Equal(t, layerMajor, strings.Join(opened(), " "))
	files, err := os.ReadDir(dir.Path() + "/engine")
	require.NoError(t, err)
	assert.Len(t, files, 2*4, "layers × objects")
	for _, f := range files {
		assert.True(t, workdir.KnowsTree(f.Name()), f.Name())
		assert.True(t, workdir.KnowsTree(f.Name()+".tmp"), f.Name())
		info, err := f.Info()
		require.NoError(t, err)
		assert.EqualValues(t, 4096, info.Size())
	}

	found, err := tier.Lookup(t.Context(), append(objs, tiers.Object{Key: "c", Size: 8})...)
	require.NoError(t, err)
	assert.Equal(t, 2, found)
	calls = nil
	n, tm, err := move.Read(t.Context(), tier, nil, objs...)
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	assert.Equal(t, layerMajor, strings.Join(opened(), " "))
	assert.Len(t, tm.Layers, 4)
	for i := range tm.Layers[1:] {
		assert.LessOrEqual(t, tm.Layers[i], tm.Layers[i+1])
	}
	held, _ := tier.Footprint()
	assert.EqualValues(t, 2*4*4096, held)
	require.NoError(t, tier.Remove(t.Context(), objs...))
	files, err = os.ReadDir(dir.Path() + "/engine")
	require.NoError(t, err)
	assert.Empty(t, files)
	_, _, err = move.Read(t.Context(), tier, nil, objs...)
	require.ErrorIs(t, err, tiers.ErrNotFound)
}

// Layers differ in content, a missing layer is an error, and a failed write leaves no file.
func TestALayerThatIsLost(t *testing.T) {
	dir := tiertest.Dir(t)
	tier := layerwise(t, dir, nil)
	move := tiertest.Transfer(t, tier.Traits().Chunk, 1)
	o := tiers.Object{Key: "k", Gen: 1, Size: 4*4096 - 3} // layers of 4095 and 4096 bytes
	_, _, err := move.Write(t.Context(), tier, nil, o)
	require.NoError(t, err)
	root := dir.Path() + "/engine/"
	files, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Len(t, files, 4)
	kinds := map[string]bool{}
	for _, f := range files {
		b, err := os.ReadFile(root + f.Name())
		require.NoError(t, err)
		kinds[string(b[:64])] = true
	}
	assert.Len(t, kinds, 4, "no two layers have the same bytes")
	require.NoError(t, os.Remove(root+files[2].Name()))
	_, _, err = move.Read(t.Context(), tier, nil, o)
	require.ErrorIs(t, err, tiers.ErrNotFound)

	// A directory in the place of the third layer's next file lets its rename fail.
	p := tiers.Object{Key: "p", Gen: 1, Size: 4 * 4096}
	elsewhere := tiertest.Dir(t)
	_, _, err = move.Write(t.Context(), layerwise(t, elsewhere, nil), nil, p)
	require.NoError(t, err)
	same, err := filepath.Glob(elsewhere.Path() + "/engine/*@2.data")
	require.NoError(t, err)
	require.Len(t, same, 1)
	third := root + filepath.Base(same[0])
	blocked := layerwise(t, dir, nil)
	require.NoError(t, os.Mkdir(third, 0o700))
	before, err := os.ReadDir(root)
	require.NoError(t, err)
	_, _, err = move.Write(t.Context(), blocked, nil, p)
	require.Error(t, err)
	after, err := os.ReadDir(root)
	require.NoError(t, err)
	assert.Len(t, after, len(before), "neither its first layers nor a temporary file")
	require.NoError(t, os.Remove(third))
	_, _, err = move.Write(t.Context(), blocked, nil, p)
	require.NoError(t, err, "it can be written again")
}
