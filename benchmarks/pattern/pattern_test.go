package pattern

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestArrangePatternsOfSweeps(t *testing.T) {
	sweep := []string{"io-depth", "chunk-size"}
	for pattern, want := range map[string]string{
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
		assert.Equal(t, want, Arrange(pattern, sweep), pattern)
	}
}
