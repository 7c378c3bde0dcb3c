package clients

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/group/coordinate"
	"kvbench/kvbench/group/wire"
	"kvbench/kvbench/result"
)

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
