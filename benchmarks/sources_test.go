package benchmarks

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/params"
)

// A benchmark of recordings that is added is not read as those of another.
func TestEveryBenchmarkOfRecordingsHasAFormatOfItsOwn(t *testing.T) {
	whose := map[string]string{}
	for _, b := range params.Benchmarks() {
		v := &params.Values{Bench: b, Tokenizer: "chars"}
		v.Profile.ShareGPT.CharsPerToken = 4
		format, err := traceFormat(v)
		if b.Load != params.LoadTrace {
			assert.Error(t, err, b.Name)
			continue
		}
		require.NoError(t, err)
		assert.Empty(t, whose[format.Name], "%s is that of %s too", format.Name, b.Name)
		whose[format.Name] = b.Name
	}
	assert.Len(t, whose, 4)
}
