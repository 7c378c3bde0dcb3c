package params

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryClauseNamesBenchmarksAndParameters(t *testing.T) {
	known := slices.Collect(maps.Keys(groups))
	for _, b := range Benchmarks() {
		known = append(known, b.Name)
	}
	for _, p := range slices.Concat(table, keys) {
		for _, c := range p.applies {
			assert.Subset(t, known, c.benchmarks, p.name)
			assert.True(t, slices.ContainsFunc(Benchmarks(), c.covers), p.name)
			for _, condition := range c.conditions {
				name, value, valued := strings.Cut(condition, "=")
				of := find(name)
				require.NotNil(t, of, "%s of %s", condition, p.name)
				if valued {
					value = strings.Replace(value, "*", "bucket", 1)
					assert.NoError(t, of.set(newValues("/"), "/", value), condition)
				}
			}
		}
	}
}

// A sweep without a value that can be is refused once, and leaves values to go on with.
func TestASweepWithoutAValue(t *testing.T) {
	v, err := typed(t, "-sweep=num-users=1-4").Resolve(Inputs{Bench: bench(t, "Synthetic"),
		Base: "/base"})
	require.Error(t, err)
	require.Len(t, v.Points, 1)
	bad, notes := Unused(v.Points)
	assert.Empty(t, bad)
	assert.Empty(t, notes)
}
