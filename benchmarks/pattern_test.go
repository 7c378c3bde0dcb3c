package benchmarks

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// typedPattern is a pattern as it would be typed.
func typedPattern(p pattern) string {
	var alternatives []string
	for _, a := range p {
		var elements []string
		for _, e := range a.elements {
			elements = append(elements, e.String())
		}
		alternatives = append(alternatives, strings.Join(elements, "/"))
	}
	return strings.Join(alternatives, "|")
}

func TestArrangePatternsOfSweeps(t *testing.T) {
	sweep := []string{"io-depth", "chunk-size"}
	for typed, want := range map[string]string{
		"StorageCeiling":                                     "StorageCeiling",
		"StorageCeiling/op=read":                             "StorageCeiling/././op=read",
		"StorageCeiling/op=read/io-depth=1":                  "StorageCeiling/io-depth=1/./op=read",
		"StorageCeiling/chunk-size=1MiB":                     "StorageCeiling/./chunk-size=1MiB",
		"StorageCeiling/io-depth=1":                          "StorageCeiling/io-depth=1",
		"StorageCeiling/io-depth=(1|2)$/chunk-size=1/op=x":   "StorageCeiling/io-depth=(1|2)$/chunk-size=1/op=x",
		"^Tier$/^tier=cpu$/op=read|Synthetic":                "^Tier$/././^tier=cpu$/op=read|Synthetic",
		"StorageCeiling/.*/.*/op=read":                       "StorageCeiling/.*/.*/op=read",
		"StorageCeiling/io-depth=1/io-depth=2":               "StorageCeiling/io-depth=1/io-depth=2",
		"(StorageCeiling|Tier)/op=read|(a/b|c)/chunk-size=2": "(StorageCeiling|Tier)/././op=read|(a/b|c)/./chunk-size=2",
	} {
		p, err := readPattern("-bench", typed)
		require.NoError(t, err)
		assert.Equal(t, want, typedPattern(p.swept(sweep)), typed)
		assert.Equal(t, typed, typedPattern(p), "which it leaves as it was")
	}
}
