package sim_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/sim"
	"kvbench/tiers/transfer"
)

func TestSimulatedLinkIsSharedInTurnAndEachWayIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		now := func() time.Duration { return time.Since(start) }
		sleep := func(ctx context.Context, d time.Duration) error {
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		g, err := sim.NewLink(1e9, sleep, now)
		require.NoError(t, err)
		x := &transfer.Transfer{Now: now}
		o := tiers.Object{Key: "a", Size: 1e9}
		tm, err := x.Write(t.Context(), g, o, nil)
		require.NoError(t, err)
		assert.Equal(t, time.Second, tm.Device)

		ends := make(chan time.Duration, 3)
		for _, size := range []int64{1e9, 2e9} {
			go func() {
				_, err := x.Write(t.Context(), g, tiers.Object{Key: "b", Gen: uint64(size), Size: size}, nil)
				assert.NoError(t, err)
				ends <- now()
			}()
			synctest.Wait()
		}
		tm, err = x.Read(t.Context(), g, o, nil)
		require.NoError(t, err)
		assert.Equal(t, time.Second, tm.Device, "the other direction is free")
		assert.Equal(t, 2*time.Second, <-ends)
		assert.Equal(t, 4*time.Second, <-ends, "queued behind the first")

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, cancel)
		_, err = x.Write(ctx, g, tiers.Object{Key: "c", Size: 9e9}, nil)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, g.Remove(t.Context(), tiers.Object{Key: "c"}), tiers.ErrNotFound)
	})
}

func TestALinkNeedsABandwidth(t *testing.T) {
	_, err := sim.NewLink(0, nil, nil)
	assert.ErrorContains(t, err, "-gpu-bandwidth-gbps")
}
