package stats

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
)

// Of plain I/O an operation is all that there is: the same times once more, as those of requests,
// end to end, would tell of a load that nobody ran.
func TestPlainIOHasNoRequestsOverTime(t *testing.T) {
	records, _, err := load.All([]string{"../../kvbench/record/testdata/result.json"}, load.Options{})
	require.NoError(t, err)
	titles := func() (list []string) {
		for _, f := range FollowCounted(records[0], 60) {
			list = append(list, f.Title)
		}
		return list
	}
	assert.Contains(t, titles(), "Latency of requests, end to end")
	records[0].Result.CompletionUnit = result.UnitOperation
	assert.NotContains(t, titles(), "Latency of requests, end to end")
	assert.Contains(t, titles(), "Latency of an entry on the storage tier, read")
}
