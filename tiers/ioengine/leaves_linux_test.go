package ioengine

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
)

// written writes a MiB through the page cache and returns how many of its pages are dirty then.
func written(t *testing.T, e Engine, out bool) (dirty uint64) {
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	op := &Op{Kind: Write, FD: int(f.Fd()), N: 1 << 20, Leaves: out}
	op.Buf.B = make([]byte, op.N)
	require.NoError(t, submitAndWait(e, op).Err)
	assert.Equal(t, op.N, op.Moved)
	var all unix.CachestatRange
	var stat unix.Cachestat_t
	if err := unix.Cachestat(uint(f.Fd()), &all, &stat, 0); err != nil {
		t.Skip("this kernel does not report dirty pages: ", err)
	}
	require.NotZero(t, stat.Cache, "it was written through the page cache")
	return stat.Dirty
}

// bothEngines runs a test with each engine, and closes it.
func bothEngines(t *testing.T, test func(t *testing.T, e Engine)) {
	for name, open := range map[string]func(*testing.T) Engine{
		Psync: func(*testing.T) Engine { return NewPsync(noTime) },
		URing: func(t *testing.T) Engine { return realRings(t, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t)
			test(t, e)
			require.NoError(t, e.Close(t.Context()))
		})
	}
}

// With Leaves written pages go to the device without a flush, with either engine. Without it they
// stay dirty in the page cache, where the kernel leaves them for half a minute. Write-back skips a
// page that is locked at that moment, so the test tries again.
func TestWhatIsWrittenOutDoesNotStay(t *testing.T) {
	bothEngines(t, func(t *testing.T, e Engine) {
		var stays, goes uint64
		for range 3 {
			if stays = written(t, e, false); stays == 0 {
				t.Skip("the filesystem of the temporary directory writes at once, or never")
			}
			if goes = written(t, e, true); goes == 0 {
				break
			}
		}
		assert.Zero(t, goes, "pages of %d that stay dirty", stays)
	})
}

// With Leaves read pages are no longer in the page cache, with either engine.
func TestWhatIsReadLeaves(t *testing.T) {
	bothEngines(t, func(t *testing.T, e Engine) {
		f, err := os.CreateTemp(t.TempDir(), "")
		require.NoError(t, err)
		defer f.Close()
		fd, b := int(f.Fd()), make([]byte, 1<<20)
		require.NoError(t, submitAndWait(e, &Op{Kind: Write, FD: fd, N: len(b),
			Buf: tiers.Buffer{B: b}}).Err)
		require.NoError(t, submitAndWait(e, &Op{Kind: Sync, FD: fd}).Err)
		var all unix.CachestatRange
		var before, after unix.Cachestat_t
		if err := unix.Cachestat(uint(fd), &all, &before, 0); err != nil {
			t.Skip("this kernel does not report cached pages: ", err)
		}
		var fs unix.Statfs_t
		require.NoError(t, unix.Fstatfs(fd, &fs))
		if before.Cache == 0 || fs.Type == unix.TMPFS_MAGIC {
			t.Skip("the filesystem of the temporary directory has no page cache, or only that")
		}
		// Read the whole file: the kernel does not drop a part of a large folio.
		op := submitAndWait(e, &Op{FD: fd, N: len(b), Leaves: true, Buf: tiers.Buffer{B: b}})
		require.NoError(t, op.Err)
		assert.Equal(t, op.N, op.Moved)
		require.NoError(t, unix.Cachestat(uint(fd), &all, &after, 0))
		assert.Zero(t, after.Cache, "of %d pages", before.Cache)
	})
}

// A write to a pipe succeeds although a pipe has no write-back.
func TestWhatCannotBeWrittenOutIsWritten(t *testing.T) {
	e := NewPsync(noTime)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	op := submitAndWait(e, &Op{Kind: Write, FD: int(write.Fd()), N: 4, AtPosition: true,
		Leaves: true, Buf: tiers.Buffer{B: []byte("text")}})
	require.NoError(t, op.Err)
	assert.Equal(t, 4, op.Moved)
	require.NoError(t, write.Close())
	require.NoError(t, read.Close())
	require.NoError(t, e.Close(t.Context()))
}

func noTime() time.Duration { return 0 }
