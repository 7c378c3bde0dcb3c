package params

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryHearerIsKnown(t *testing.T) {
	var known []string
	for _, g := range groups {
		known = append(known, g.name)
	}
	for _, b := range Benchmarks() {
		known = append(known, b.Name)
	}
	for _, p := range slices.Concat(rows, newValues("/").keys) {
		for _, h := range p.heard {
			assert.Subset(t, known, h.who, p.name)
			assert.True(t, slices.ContainsFunc(Benchmarks(), h.by), p.name)
			for _, s := range h.switches {
				name, value, valued := strings.Cut(strings.TrimPrefix(s, "!"), "=")
				of := newValues("/").row(name)
				require.NotNil(t, of, "%s of %s", s, p.name)
				if valued {
					value = strings.Replace(value, "*", "bucket", 1)
					assert.NoError(t, of.value.Set(value), s)
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
	bad, notes := Unheard(v.Points)
	assert.Empty(t, bad)
	assert.Empty(t, notes)
}
