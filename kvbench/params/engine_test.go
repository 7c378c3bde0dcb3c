package params

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

// Engines says in its sweep what there is.
func TestEveryEngineIsRanked(t *testing.T) {
	b, is := Benchmark(result.BenchmarkEngines)
	require.True(t, is)
	want := "engine=" + strings.Join(engineNames()[1:], ",")
	assert.Equal(t, want, b.settings(Open)["sweep"])
	assert.Equal(t, want, b.settings(Quick)["sweep"])
}
