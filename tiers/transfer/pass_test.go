package transfer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/filetier"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
)

func TestAPassIsOneRequestAfterTheOther(t *testing.T) {
	tiertest.Some(t, func(t *testing.T, open func(testing.TB) tiers.Files) {
		tier := open(t)
		x := tiertest.Transfer(t, chunk, 1)
		o := tiers.Object{Key: "k", Gen: 1, Size: 5 * chunk}
		_, _, err := x.Write(t.Context(), tier, nil, o)
		require.NoError(t, err)
		bufs, err := x.Pool.Get(t.Context(), 1, nil)
		require.NoError(t, err)
		defer x.Pool.Put(bufs...)
		r, err := tier.Open(t.Context(), o)
		require.NoError(t, err)
		defer r.Close()
		ctx, cancel := context.WithCancelCause(t.Context())
		var prepared, counted, backs int64
		prepare := func(p []byte) {
			assert.Equal(t, prepared*chunk, counted)
			prepared++
		}
		count := func(c tiers.Chunk) bool { counted += c.Bytes; return true }
		read := func(io *tiers.IO, size int64) error {
			prepared, counted, backs = 0, 0, 0
			defer func() { assert.EqualValues(t, 1, backs) }()
			return transfer.Pass(ctx, x.Clock, io, transfer.Sequence(r, io, size, prepare), count,
				func() { backs++ })
		}
		require.NoError(t, read(&tiers.IO{Buf: bufs[0], N: chunk}, o.Size))
		assert.EqualValues(t, o.Size, counted)
		if tier.Traits().Holds {
			assert.ErrorContains(t, read(&tiers.IO{Buf: bufs[0], N: chunk}, o.Size+1), "beyond")
			assert.EqualValues(t, o.Size, counted, "what came before")
		}
		require.NoError(t, read(&tiers.IO{Buf: bufs[0], Off: chunk, N: chunk}, o.Size-chunk/2))
		assert.EqualValues(t, 3*chunk+chunk/2, counted, "from an offset on, the last one shorter")
		count = func(c tiers.Chunk) bool { counted += c.Bytes; return counted < 3*chunk }
		require.NoError(t, read(&tiers.IO{Buf: bufs[0], N: chunk}, o.Size))
		assert.EqualValues(t, 3*chunk, counted, "no more was wanted")
		stop := errors.New("a signal")
		count = func(c tiers.Chunk) bool {
			if counted += c.Bytes; counted == 2*chunk {
				cancel(stop)
			}
			return true
		}
		require.ErrorIs(t, read(&tiers.IO{Buf: bufs[0], N: chunk}, o.Size), stop)
		assert.EqualValues(t, 2*chunk, counted)
		require.ErrorIs(t, read(&tiers.IO{Buf: bufs[0], N: chunk}, o.Size), stop)
		assert.Zero(t, prepared)
		ctx = t.Context()
		require.NoError(t, read(&tiers.IO{Buf: bufs[0], N: chunk}, 0), "there is nothing")
		assert.Zero(t, prepared)
	})
}

// A pass stops waiting for a request, but the tier owns the buffer until the request completes.
func TestAPassThatGivesUpLendsItsBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := clock.NewWall()
		engine := tiertest.NewEngine(ioengine.NewPsync(wall.Now))
		tier := tiertest.Files(t, filetier.Config{Engine: engine})
		x := tiertest.Transfer(t, chunk, 1)
		x.Clock = wall
		o := tiers.Object{Key: "k", Gen: 1, Size: 9 * chunk}
		_, _, err := x.Write(t.Context(), tier, nil, o)
		require.NoError(t, err)
		bufs, err := x.Pool.Get(t.Context(), 1, nil)
		require.NoError(t, err)
		r, err := tier.Open(t.Context(), o)
		require.NoError(t, err)
		for _, late := range []bool{false, true} {
			engine.Hold(func(op *ioengine.Op) bool { return op.Off >= 3*chunk })
			ctx, cancel := context.WithCancelCause(t.Context())
			stop := errors.New("a signal")
			counted, backs := 0, 0
			ended := make(chan error, 1)
			go func() {
				io := &tiers.IO{Buf: bufs[0], N: chunk}
				ended <- transfer.Pass(ctx, wall, io,
					transfer.Sequence(r, io, o.Size, func([]byte) {}),
					func(tiers.Chunk) bool { counted++; return true }, func() { backs++ })
			}()
			synctest.Wait()
			assert.Equal(t, 3, counted)
			at := wall.Now()
			cancel(stop)
			time.Sleep(tiers.Grace / 2)
			assert.Zero(t, backs)
			if !late {
				engine.Release()
			}
			assert.ErrorIs(t, <-ended, stop)
			if !late {
				assert.Equal(t, 4, counted, "it came back in time")
				assert.Equal(t, 1, backs)
				continue
			}
			assert.Equal(t, tiers.Grace, wall.Now()-at)
			assert.Zero(t, backs, "the device may still write into it")
			engine.Release()
			synctest.Wait()
			assert.Equal(t, 1, backs)
			assert.Equal(t, 3, counted, "no report after the return")
		}
		x.Pool.Put(bufs...)
		require.NoError(t, r.Close())
		require.NoError(t, engine.Close(t.Context()))
	})
}
