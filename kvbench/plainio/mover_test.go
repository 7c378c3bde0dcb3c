package plainio

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/tiers/filetier"
	"kvbench/tiers/spread"
	"kvbench/tiers/tiertest"
)

// Sixteen files in several directories lie in all of them alike, whatever a hash says.
func TestFilesLieInAllDirectoriesAlike(t *testing.T) {
	for _, of := range []int{1, 2, 3, 4, 8} {
		var parts []spread.Part
		for range of {
			parts = append(parts, spread.Part{Files: tiertest.Files(t, filetier.Config{}),
				Room: 1 << 30})
		}
		tier := spread.New(spread.Config{Parts: parts})
		has, keys := make([]int, of), map[string]bool{}
		for n := range int64(48) {
			key := evenly(tier, "field/", n)
			at, _ := tier.Home(key)
			has[at]++
			keys[key] = true
		}
		assert.Len(t, keys, 48)
		assert.Equal(t, 48/of, slices.Min(has))
	}
	assert.Equal(t, "field/7", evenly(tiertest.NewNull(), "field/", 7))
}
