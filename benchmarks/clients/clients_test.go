package clients

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/group/coordinate"
	"kvbench/kvbench/group/wire"
	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
)

// TestShare: the free space is divided by those who share it, and by all where nobody has looked.
func TestShare(t *testing.T) {
	c := &Clients{sharing: wire.Sharing{Filesystem: 1, Filesystems: 2, Ranks: 2}}
	plans := []*params.Values{{Ranks: 4, CacheDirs: []string{"/a"}},
		{Ranks: 4, CacheDirs: []string{"/a"}}, {Ranks: 4, CacheDirs: []string{"/b"}}}
	require.NoError(t, c.Share(plans))
	for i, want := range [][2]int{{2, 2}, {2, 2}, {4, 0}} {
		assert.Equal(t, want, [2]int{plans[i].FilesystemRanks, plans[i].Filesystems})
	}
	require.NoError(t, (*Clients)(nil).Share(plans))
}

// TestBeatsDoNotWaitForResults: rank 0 is lost when it says nothing for seconds, and a thousand
// results take longer than that to be written.
func TestBeatsDoNotWaitForResults(t *testing.T) {
	c := &Clients{leader: coordinate.NewLeader(coordinate.LeaderConfig{
		Hello: wire.Hello{Ranks: 1}})}
	doc, err := (&result.Result{SchemaVersion: result.SchemaVersion}).Encode()
	require.NoError(t, err)
	var saved []string
	c.comeTo(Trial{Name: "X", Save: func(whose string, _ *result.Result) (string, error) {
		saved = append(saved, whose)
		free := c.mu.TryLock() // lastShown takes it
		assert.True(t, free)
		if free {
			c.mu.Unlock()
		}
		return "", nil
	}}, nil)
	c.keep(0, 1, doc)
	assert.Equal(t, []string{"rank_0"}, saved)
	assert.Empty(t, c.trial.failed)
}
