package filetier_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/tiertest"
)

// Depth objects of a request move concurrently, and each remains an object of its own: a transfer
// moves the bytes of all of them. A missing object, or one of another size, ends the group.
func TestConcurrentObjects(t *testing.T) {
	const size, depth = 5000, 3 // no whole pages
	for _, l := range tiers.EngineLayouts {
		cfg := imitating(l.Name, size)
		cfg.Depth = depth
		tier := tiertest.Files(t, cfg)
		assert.EqualValues(t, depth*size, tier.Traits().Extent, l.Name)
		move := tiertest.Transfer(t, tier.Traits().Chunk, depth)
		var objs []tiers.Object
		for i := range 7 {
			objs = append(objs, tiers.Object{Key: fmt.Sprint(i), Gen: 1, Size: size})
		}
		objs[6].Size = 100
		write := func(objs ...tiers.Object) int {
			n, _, err := move.Write(t.Context(), tier, nil, objs...)
			require.NoError(t, err, l.Name)
			return n
		}
		read := func(objs ...tiers.Object) int {
			n, _, err := move.Read(t.Context(), tier, nil, objs...)
			require.NoError(t, err, l.Name)
			return n
		}
		assert.Equal(t, depth, write(objs...))
		assert.Equal(t, depth, read(objs...), "%s: the fourth does not exist", l.Name)
		assert.Equal(t, 1, read(objs[2:]...), "the fourth does not join the third's group")
		assert.Equal(t, 3, write(objs[3:6]...))
		assert.Equal(t, 1, write(objs[6]))
		assert.Equal(t, 2, read(objs[4:]...), "%s: the last one has another size", l.Name)
		assert.Equal(t, 1, read(objs[6]))

		// After Abort no object exists, and each can be written again.
		more := []tiers.Object{{Key: "x", Gen: 1, Size: size}, {Key: "y", Gen: 1, Size: size}}
		w, err := tier.Create(t.Context(), more...)
		require.NoError(t, err)
		assert.Equal(t, 2, w.Len())
		require.NoError(t, w.Abort())
		_, err = tier.Open(t.Context(), more[1])
		require.ErrorIs(t, err, tiers.ErrNotFound)
		assert.Equal(t, 2, write(more...))
		held, _ := tier.Footprint()
		assert.EqualValues(t, 8*size+100, held)
		require.NoError(t, tier.Remove(t.Context(), append(objs, more...)...))
		require.NoError(t, tier.Close())
	}
}

// A request that waits for the engine's only thread has the end of its wait in Passed: the wait is
// neither service time of the device nor work of this process.
func TestTheEnginesThreads(t *testing.T) {
	const size = 4096
	engine := tiertest.NewEngine(tiertest.Psync(t))
	cfg := imitating("vllm-slots", size)
	cfg.Engine, cfg.Direct, cfg.Depth = engine, false, 2
	tier := tiertest.Files(t, cfg)
	objs := []tiers.Object{{Key: "a", Gen: 1, Size: size}, {Key: "b", Gen: 1, Size: size}}
	for _, o := range objs {
		require.NoError(t, store(t, tier, o))
	}
	r, err := tier.Open(t.Context(), objs...)
	require.NoError(t, err)
	require.Equal(t, 2, r.Len())
	done := make(chan error, 1)
	request := func(off int64) *tiers.IO {
		return &tiers.IO{Buf: tiers.Buffer{B: buffer.Aligned(make([]byte, 2*size), size, size)},
			Off: off, N: size, Done: func(io *tiers.IO) { done <- io.Err }}
	}
	first, second := request(0), request(r.Start(1))
	engine.Hold(func(*ioengine.Op) bool { return true })
	r.Submit(first)
	r.Submit(second)
	assert.Equal(t, 1, engine.Held(), "one thread loads")
	engine.Release()
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	assert.Zero(t, first.Passed)
	assert.Equal(t, first.Ended, second.Passed)
	assert.GreaterOrEqual(t, second.Begun, second.Passed)
	r.Submit(second)
	require.NoError(t, <-done)
	assert.Zero(t, second.Passed, "nothing was in flight")
	require.NoError(t, r.Close())
}
