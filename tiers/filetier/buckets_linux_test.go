package filetier_test

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
	"kvbench/tiers/clock"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/tiertest"
)

// The memory of buckets is outside the Go heap: Abort and Close must release it.
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
	tier := tiertest.Files(t, imitating("mooncake-bucket", 0))
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

// While one bucket is written and another one is full no third one begins.
func TestFullBucketsAreWaitedFor(t *testing.T) {
	dir := tiertest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		psync := ioengine.NewPsync(clock.NewWall().Now)
		engine := tiertest.NewEngine(psync)
		engine.Hold(func(*ioengine.Op) bool { return true })
		cfg := imitating("mooncake-bucket", tiers.BucketBytes)
		cfg.Dir, cfg.Engine = dir, engine
		tier := tiertest.Files(t, cfg)
		create := func(ctx context.Context, key string) (tiers.Writer, error) {
			return tier.Create(ctx, tiers.Object{Key: key, Gen: 1, Size: 4096})
		}
		var wait sync.WaitGroup
		for _, key := range []string{"a", "b"} { // each fills a bucket: the next object may be larger
			w, err := create(t.Context(), key)
			require.NoError(t, err)
			wait.Go(func() { assert.NoError(t, w.Commit(t.Context())) })
		}
		synctest.Wait() // one is in flight, one waits for it
		gone, leave := context.WithCancel(t.Context())
		leave()
		_, err := create(gone, "c")
		require.ErrorIs(t, err, context.Canceled)
		wait.Go(func() {
			w, err := create(t.Context(), "c")
			if assert.NoError(t, err) {
				assert.NoError(t, w.Abort())
			}
		})
		synctest.Wait()
		assert.Equal(t, 1, engine.Held())
		engine.Release()
		wait.Wait()
		require.NoError(t, tier.Close())
		require.NoError(t, psync.Close(t.Context()))
	})
}

// A request creates no more buckets than there is memory for: the next one would wait for its commit.
func TestARequestDoesNotWaitForItsOwnBuckets(t *testing.T) {
	cfg := imitating("mooncake-bucket", tiers.BucketBytes)
	cfg.Depth = 4
	tier := tiertest.Files(t, cfg)
	var objs []tiers.Object
	for i := range 4 { // each fills a bucket
		objs = append(objs, tiers.Object{Key: fmt.Sprint(i), Gen: 1, Size: 4096})
	}
	for range 2 {
		w, err := tier.Create(t.Context(), objs...)
		require.NoError(t, err)
		assert.Equal(t, 2, w.Len())
		require.NoError(t, w.Commit(t.Context()))
		objs = objs[2:]
	}
}

// A bucket whose write is abandoned stays open until the write completes: the rest of a short write
// would go to another file that has the descriptor's number by then. Files of the other layouts
// stay open, too.
func TestWhatIsGivenUpStaysOpen(t *testing.T) {
	for _, c := range []struct{ layout, file string }{
		{"mooncake-bucket", ".bucket"}, {"vllm-fs", ".tmp"}, {"lmcache-raw", "raw_block"},
	} {
		t.Run(c.layout, func(t *testing.T) {
			dir := tiertest.Dir(t)
			synctest.Test(t, func(t *testing.T) {
				psync := ioengine.NewPsync(clock.NewWall().Now)
				engine := tiertest.NewEngine(psync)
				cfg := imitating(c.layout, tiers.BucketBytes)
				cfg.Dir, cfg.Engine, cfg.Direct, cfg.Capacity = dir, engine, false, tiers.BucketBytes
				tier := tiertest.Files(t, cfg)
				engine.Hold(func(op *ioengine.Op) bool { return true })
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					w, err := tier.Create(ctx, tiers.Object{Key: "a", Gen: 1, Size: 4096})
					if err == nil && c.layout == "vllm-fs" {
						w.Submit(&tiers.IO{Buf: tiers.Buffer{B: make([]byte, 4096)}, N: 4096,
							Done: func(*tiers.IO) {}})
						err = w.Abort()
					} else if err == nil {
						err = w.Commit(ctx)
					}
					ended <- err
				}()
				synctest.Wait()
				require.Equal(t, 1, engine.Held())
				cancel()
				if err := <-ended; c.layout != "vllm-fs" {
					require.ErrorIs(t, err, context.Canceled)
				}
				require.NoError(t, tier.Close())
				assert.Contains(t, descriptors(t, dir.Path()), c.file)
				engine.Release()
				synctest.Wait()
				assert.NotContains(t, descriptors(t, dir.Path()), c.file)
				require.NoError(t, psync.Close(t.Context()))
			})
		})
	}
}

// descriptors are the files below a directory that the process has open. Other tests leave files open
// until the garbage collector closes them.
func descriptors(t *testing.T, dir string) (all string) {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, e := range entries {
		path, _ := os.Readlink("/proc/self/fd/" + e.Name()) // of which one reads the directory
		if strings.HasPrefix(path, dir) {
			all += path + "\n"
		}
	}
	return all
}
