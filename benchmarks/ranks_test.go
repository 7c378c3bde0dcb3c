package benchmarks

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/group"
	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
)

// TestShare: the free space is divided by the directories that share it, and by all where the
// filesystem is unknown.
func TestShare(t *testing.T) {
	c := &clients{gathered: group.Gathering{Sharing: []group.Sharing{
		{Filesystem: 1, Filesystems: 3, Directories: 2},
		{Filesystem: 3, Filesystems: 3, Directories: 5}}}}
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

// TestBeatsDoNotWaitForResults: rank 0 is lost when it sends nothing for seconds, and a thousand
// results take longer than that to be written.
func TestBeatsDoNotWaitForResults(t *testing.T) {
	c := &clients{leader: group.NewLeader(group.LeaderConfig{Hello: group.Hello{Ranks: 1}})}
	doc, err := (&result.Result{SchemaVersion: result.SchemaVersion}).Encode()
	require.NoError(t, err)
	var saved []string
	c.trial = &collection{paths: map[int]string{}, save: func(whose string, _ *result.Result) (string, error) {
		saved = append(saved, whose)
		free := c.mu.TryLock() // lastShown takes it
		assert.True(t, free)
		if free {
			c.mu.Unlock()
		}
		return "", nil
	}}
	c.keep(0, doc, 0)
	assert.Equal(t, []string{"rank_0"}, saved)
	assert.Empty(t, c.trial.failed)
}
