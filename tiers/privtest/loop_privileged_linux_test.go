package privtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestLoopFSIsMountedAndCleanedUp(t *testing.T) {
	outer := t
	var l *Loop
	t.Run("in the test", func(t *testing.T) {
		l = LoopFS(t, 16, LoopOptions{DirectIO: true})
		var st unix.Stat_t
		require.NoError(t, unix.Stat(l.Dir, &st))
		assert.Equal(t, [2]uint32{l.Major, l.Minor},
			[2]uint32{unix.Major(st.Dev), unix.Minor(st.Dev)})
		assert.Equal(t, l.BackingFile, readLine("/sys/block/"+l.Name+"/loop/backing_file"))

		file := filepath.Join(l.Dir, "file")
		require.NoError(t, os.WriteFile(file, make([]byte, 1<<20), 0o644))
		err := os.WriteFile(filepath.Join(l.Dir, "big"), make([]byte, 32<<20), 0o644)
		require.ErrorIs(t, err, unix.ENOSPC, "it has the size asked for")

		l.Remount(t, true)
		require.ErrorIs(t, os.WriteFile(file, nil, 0o644), unix.EROFS)
		l.Remount(t, false)
		require.NoError(t, os.WriteFile(file, nil, 0o644))

		// A file that stays open beyond the test, which is a mistake of the test and no reason to
		// leave a mount.
		left, err := os.Open(file)
		require.NoError(t, err)
		outer.Cleanup(func() { left.Close() })
	})
	if l == nil {
		t.Skip("see the subtest")
	}
	assert.NoDirExists(t, l.Dir)
	assert.NoDirExists(t, filepath.Dir(l.BackingFile))
	assert.Empty(t, loopsIn(filepath.Dir(filepath.Dir(l.BackingFile))))
}

func TestLoopFSOfAKilledTestIsReclaimed(t *testing.T) {
	Root(t)
	// A process that has ended gives an id that nobody has for a while.
	gone := exec.Command("true")
	require.NoError(t, gone.Run())
	base := filepath.Join(os.TempDir(), fmt.Sprintf("%s%d-left", prefix, gone.Process.Pid))
	require.NoError(t, os.Mkdir(base, 0o755))
	t.Cleanup(func() { _ = dismantle(base) })
	l, err := build(base, 8, LoopOptions{})
	Need(t, err)
	held, err := os.Create(filepath.Join(l.Dir, "held")) // in use, as by a survivor
	require.NoError(t, err)
	defer held.Close()

	reclaim()
	assert.NoDirExists(t, base)
}

func TestThrottleLoop(t *testing.T) {
	l := LoopFS(t, 16, LoopOptions{DirectIO: true})
	const size, rate = 8 << 20, 32 << 20
	file := filepath.Join(l.Dir, "file")
	f, err := os.Create(file)
	require.NoError(t, err)
	_, err = f.Write(make([]byte, size))
	require.NoError(t, errors.Join(err, f.Sync(), f.Close()))
	th := ThrottleLoop(t, l, rate, 0)

	start := time.Now()
	out, err := exec.Command("sh", "-c",
		th.AddSelf()+" && exec dd if="+file+" of=/dev/null bs=1M iflag=direct").CombinedOutput()
	require.NoError(t, err, "%s", out)
	// The kernel lets a slice of 100 ms pass at once.
	assert.Greater(t, time.Since(start), 140*time.Millisecond, "8 MiB at 32 MiB/s")

	file, counted := "blkio.throttle.io_service_bytes", "Read %d\n"
	if th.unified {
		file, counted = "io.stat", "rbytes=%d "
	}
	bytes, err := os.ReadFile(filepath.Join(th.group, file))
	require.NoError(t, err)
	assert.Contains(t, string(bytes), fmt.Sprintf("%d:%d "+counted, l.Major, l.Minor, size),
		"all of it went through the group")
}
