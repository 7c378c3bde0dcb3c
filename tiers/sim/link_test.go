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
		g := sim.NewLink(1e9, wall)
		x := transfer.New(g, &transfer.Settings{Chunk: 1 << 20, Depth: 1, Clock: wall})
		var tm tiers.Timing
		write := func(ctx context.Context, o tiers.Object) error {
			var c tiers.Call
			err := x.Put(ctx, &c, []tiers.Object{o}, nil)
			tm = c.Timing
			return err
		}
		o := tiers.Object{Key: "a", Size: 1e9}
		require.NoError(t, write(t.Context(), o))
		assert.Equal(t, time.Second, tm.Device)

		ends := make(chan time.Duration, 3)
		for _, size := range []int64{1e9, 2e9} {
			go func() {
				assert.NoError(t, x.Put(t.Context(), &tiers.Call{},
					[]tiers.Object{{Key: "b", Gen: uint64(size), Size: size}}, nil))
				ends <- wall.Now()
			}()
			synctest.Wait()
		}
		var c tiers.Call
		require.NoError(t, x.Get(t.Context(), &c, []tiers.Object{o}, nil))
		assert.Equal(t, time.Second, c.Timing.Device, "the other direction is free")
		assert.Equal(t, 2*time.Second, <-ends)
		assert.Equal(t, 4*time.Second, <-ends, "queued behind the first")

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, cancel)
		assert.ErrorIs(t, write(ctx, tiers.Object{Key: "c", Size: 9e9}), context.Canceled)
		assert.ErrorIs(t, g.Remove(t.Context(), tiers.Object{Key: "c"}), tiers.ErrNotFound)
	})
}
