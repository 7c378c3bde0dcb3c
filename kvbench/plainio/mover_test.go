package plainio

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/clock"
	"kvbench/tiers/filetier"
	"kvbench/tiers/spread"
	"kvbench/tiers/tiertest"
)

// On a filesystem of large blocks small requests are refused, before anything is written.
func TestRequestsSmallerThanABlockOfTheFilesystem(t *testing.T) {
	v := clock.NewVirtual()
	tier := drive(t)(v)
	a := &asking{Tier: tier, traits: tier.Traits()}
	a.traits.Align = 16 << 10
	for size, refused := range map[int64]bool{page: true, 24 << 10: true, 32 << 10: false} {
		cfg := overLevels(onTier(a, 1<<40), 1).lasting(time.Second)
		cfg.trialConfig.Clock, cfg.Storage.Simulated = v, true
		cfg.Storage.Chunk = int(size)
		a.asked = nil
		_, err := runPlain(t.Context(), cfg, &Ceiling{ReadShare: 1, InFlight: 1,
			Footprint: 1 << 20})
		if !refused {
			require.NoError(t, err)
			continue
		}
		assert.ErrorContains(t, err, "direct I/O takes multiples of 16384 bytes here")
		assert.Empty(t, a.asked)
	}
}

// Sixteen files in several directories are spread evenly, unlike by a hash.
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
