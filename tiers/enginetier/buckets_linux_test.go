package enginetier_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/enginetier"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/tiertest"
)

// Buckets live in memory that no collector knows: what is given up or closed returns it.
func TestBucketsReturnTheirMemory(t *testing.T) {
	size := func() (kib int64) {
		text, err := os.ReadFile("/proc/self/status")
		require.NoError(t, err)
		_, rest, _ := strings.Cut(string(text), "VmSize:")
		_, err = fmt.Sscan(rest, &kib)
		require.NoError(t, err)
		return kib
	}
	const bucket = tiers.BucketBytes >> 10 // of 256 objects
	tier := open(t, "mooncake-bucket", tiertest.Dir(t))
	before := size()
	begin := func(n, of int) (list []tiers.Writer) {
		for i := range of {
			w, err := tier.Create(t.Context(),
				tiers.Object{Key: fmt.Sprint(n, " ", i), Gen: 1, Size: 1 << 20})
			require.NoError(t, err)
			list = append(list, w)
		}
		return list
	}
	for n := range 8 {
		for _, w := range begin(n, 256) {
			require.NoError(t, w.Abort())
		}
	}
	assert.Less(t, size()-before, int64(bucket*5/2), "two are kept")
	for _, w := range begin(8, 1) {
		require.NoError(t, w.Commit(t.Context()))
	}
	require.NoError(t, tier.Close())
	assert.Less(t, size()-before, int64(bucket/2))
}

// never is an engine whose writes end when they are told to.
type never struct {
	ioengine.Engine
	came chan *ioengine.Op
}

func (n never) Submit(ops ...*ioengine.Op) {
	for _, op := range ops {
		n.came <- op
	}
}

// While a bucket is written and another one is full no third one is begun.
func TestFullBucketsAreWaitedFor(t *testing.T) {
	dir := tiertest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		n := never{came: make(chan *ioengine.Op, 1)}
		tier, err := enginetier.New(t.Context(), enginetier.Config{Dir: dir,
			Layout: "mooncake-bucket", Engine: n, Model: "m", Bytes: tiers.BucketBytes})
		require.NoError(t, err)
		create := func(ctx context.Context, key string) (tiers.Writer, error) {
			return tier.Create(ctx, tiers.Object{Key: key, Gen: 1, Size: 4096})
		}
		var wait sync.WaitGroup
		for _, key := range []string{"a", "b"} { // each fills a bucket: there may be larger ones
			w, err := create(t.Context(), key)
			require.NoError(t, err)
			wait.Go(func() { assert.NoError(t, w.Commit(t.Context())) })
		}
		synctest.Wait() // one is at the device, one waits for it
		gone, leave := context.WithCancel(t.Context())
		leave()
		_, err = create(gone, "c")
		require.ErrorIs(t, err, context.Canceled)
		wait.Go(func() {
			w, err := create(t.Context(), "c")
			if assert.NoError(t, err) {
				assert.NoError(t, w.Abort())
			}
		})
		synctest.Wait()
		for range 2 {
			op := <-n.came
			op.Moved = op.N
			op.Done(op)
		}
		wait.Wait()
		require.NoError(t, tier.Close())
	})
}
