package params

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/units"
	"kvbench/tracing/host"
)

// TestSharesOfDirectories: all of them take what the smallest can, with room for a hash's deviations,
// and those on one filesystem share its room.
func TestSharesOfDirectories(t *testing.T) {
	disk := func(free int64) host.Filesystem {
		return host.Filesystem{Type: "xfs", Total: 2000 * units.GiB, Free: free * units.GiB}
	}
	dirs := []string{"/a", "/b"}
	on := []host.Filesystem{disk(1000), disk(400)}
	bytes, shares, err := ChooseShares(dirs, on, []int{1, 1}, 0, true)
	require.NoError(t, err)
	assert.EqualValues(t, 540*units.GiB, bytes, "0.9 × 2 × (400 − 5 %% of 2000)")
	assert.EqualValues(t, 300*units.GiB, shares[1].Room)
	assert.EqualValues(t, 900*units.GiB, shares[0].Room)
	assert.EqualValues(t, 90*units.GiB, shares[0].Floor)

	bytes, shares, err = ChooseShares(dirs, on, []int{2, 2}, 100*units.GiB, false)
	require.NoError(t, err)
	assert.EqualValues(t, 100*units.GiB, bytes, "as it was given")
	assert.Equal(t, []Share{{Room: 500 * units.GiB}, {Room: 200 * units.GiB}}, shares)

	_, shares, err = ChooseShares(dirs, []host.Filesystem{disk(400), disk(400)}, []int{2, 2},
		100*units.GiB, false)
	require.NoError(t, err)
	assert.EqualValues(t, 200*units.GiB, shares[0].Room, "half of one filesystem")

	_, _, err = ChooseShares(dirs, on, []int{1, 1}, 900*units.GiB, false)
	assert.ErrorContains(t, err, "-storage-capacity-gb: must be at most 400 (the xfs filesystem "+
		"of /b has 400 GiB free for 1 rank), given 450: each of 2 directories takes an "+
		"equal part")
	bytes, _, err = ChooseShares(dirs, []host.Filesystem{disk(1), disk(400)}, []int{1, 1},
		4*units.GiB, true)
	require.NoError(t, err)
	assert.EqualValues(t, units.GiB, bytes, "a default shrinks")
}
