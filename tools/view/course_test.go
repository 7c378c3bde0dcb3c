package view

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
)

// Plain I/O has operations only: the same times again, as end-to-end times of requests, would
// describe a load that did not run.
func TestPlainIOHasNoRequestsOverTime(t *testing.T) {
	records, _, err := load.All([]string{"../../kvbench/record/testdata/result.json"}, load.Options{})
	require.NoError(t, err)
	titles := func() (list []string) {
		for _, f := range followCounted(records[0], 60) {
			list = append(list, f.title)
		}
		return list
	}
	assert.Contains(t, titles(), "Latency of requests, end to end")
	records[0].Result.CompletionUnit = result.UnitOperation
	assert.NotContains(t, titles(), "Latency of requests, end to end")
	assert.Contains(t, titles(), "Latency of an entry on the storage tier, read")
}
