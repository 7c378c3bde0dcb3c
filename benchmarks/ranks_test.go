package benchmarks

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/group"
	"kvbench/kvbench/params"
)

// TestShare: the free space is divided by the directories that share it, and by all where the
// filesystem is unknown.
func TestShare(t *testing.T) {
	c := &clients{gathered: group.Gathering{Filesystems: 3, Shares: []int{2, 5}}}
	plans := []*params.Values{{Ranks: 4, CacheDirs: []string{"/a", "/b"}},
		{Ranks: 4, CacheDirs: []string{"/a", "/b"}}, {Ranks: 4, CacheDirs: []string{"/a", "/c"}}}
	require.NoError(t, c.share(plans, nil))
	for i, want := range []struct {
		shares      []int
		filesystems int
	}{{[]int{2, 5}, 3}, {[]int{2, 5}, 3}, {[]int{8, 8}, 0}} {
		assert.Equal(t, want.shares, plans[i].FilesystemShares)
		assert.Equal(t, want.filesystems, plans[i].Filesystems)
	}
	c.gathered.Local = 2
	checked := 0
	require.NoError(t, c.share(plans, func(*params.Values) params.Violations {
		checked++
		return nil
	}))
	assert.Zero(t, checked, "nothing was a guess")
}
