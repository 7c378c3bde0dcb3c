package sim_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/sim"
	"kvbench/tiers/transfer"
)

func TestSimulatedLinkIsSharedInTurnAndEachWayIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := clock.NewWall()
		g, err := sim.NewLink(1e9, wall)
		require.NoError(t, err)
		x := &transfer.Transfer{Chunk: 1 << 20, Depth: 1, Clock: wall}
		o := tiers.Object{Key: "a", Size: 1e9}
		_, tm, err := x.Write(t.Context(), g, nil, o)
		require.NoError(t, err)
		assert.Equal(t, time.Second, tm.Device)

		ends := make(chan time.Duration, 3)
		for _, size := range []int64{1e9, 2e9} {
			go func() {
				_, _, err := x.Write(t.Context(), g, nil,
					tiers.Object{Key: "b", Gen: uint64(size), Size: size})
				assert.NoError(t, err)
				ends <- wall.Now()
			}()
			synctest.Wait()
		}
		_, tm, err = x.Read(t.Context(), g, nil, o)
		require.NoError(t, err)
		assert.Equal(t, time.Second, tm.Device, "the other direction is free")
		assert.Equal(t, 2*time.Second, <-ends)
		assert.Equal(t, 4*time.Second, <-ends, "queued behind the first")

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, cancel)
		_, _, err = x.Write(ctx, g, nil, tiers.Object{Key: "c", Size: 9e9})
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, g.Remove(t.Context(), tiers.Object{Key: "c"}), tiers.ErrNotFound)
	})
}

func TestALinkNeedsABandwidth(t *testing.T) {
	_, err := sim.NewLink(0, nil)
	assert.ErrorContains(t, err, "-gpu-bandwidth-gbps")
}
