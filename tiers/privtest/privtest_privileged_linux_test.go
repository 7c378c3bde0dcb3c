package privtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestFaultsHappen: a test that relies on a fault of these would pass without it.
func TestFaultsHappen(t *testing.T) {
	const request, discard = 10 * time.Millisecond, 50 * time.Millisecond
	t.Run("in the test", func(t *testing.T) {
		l := LoopFS(t, 16, LoopOptions{DirectIO: true, Discard: true,
			Times: Times{request, 2 * request, discard}})
		base, file := filepath.Dir(l.Dir), filepath.Join(l.Dir, "file")
		t.Cleanup(func() { assert.DirExists(t, base) }) // runs before the cleanup of LoopFS
		dd := func(prefix string, args ...string) time.Duration {
			start := time.Now()
			out, err := exec.Command("sh", "-c", prefix+`exec dd "$@" bs=256k count=4`, "sh",
				args[0], args[1], args[2]).CombinedOutput()
			require.NoError(t, err, "%s", out)
			return time.Since(start)
		}
		assert.Greater(t, dd("", "if=/dev/urandom", "of="+file, "oflag=direct"), 4*2*request)
		assert.Greater(t, dd("", "if="+file, "of=/dev/null", "iflag=direct"), 4*request)
		th := ThrottleLoop(t, l, Rates{Read: 4 << 20})
		// The kernel lets a slice of 100 ms pass at once.
		assert.Greater(t, dd(th.AddSelf()+" && ", "if="+file, "of=/dev/null", "iflag=direct"),
			140*time.Millisecond, "1 MiB at 4 MiB/s")

		discards := func() (n, ms int64) {
			columns := strings.Fields(readLine("/sys/block/" + l.Name + "/stat"))
			n, _ = strconv.ParseInt(columns[11], 10, 64)
			ms, _ = strconv.ParseInt(columns[14], 10, 64)
			return n, ms
		}
		from, at := discards()
		require.NoError(t, os.Remove(file))
		_, err := output("sync", "--file-system", l.Dir)
		require.NoError(t, err)
		var to, until int64
		require.Eventually(t, func() bool { to, until = discards(); return to > from },
			20*time.Second, time.Millisecond)
		assert.GreaterOrEqual(t, until-at, (to-from)*discard.Milliseconds())
		waits(t, func() func() { l.Server.Hang(t); return func() { l.Server.Answer(t) } },
			func() error { return os.WriteFile(filepath.Join(l.Dir, "x"), nil, 0o600) },
			func() error { unix.Sync(); return nil })
		waits(t, func() func() { return l.Freeze(t) }, nil,
			func() error { return os.WriteFile(filepath.Join(l.Dir, "y"), nil, 0o600) })
	})
	t.Run("directory", func(t *testing.T) {
		dir, server := FuseDir(t)
		f, err := os.OpenFile(filepath.Join(dir, "f"), os.O_CREATE|os.O_RDWR|unix.O_DIRECT, 0o600)
		require.NoError(t, err)
		defer f.Close()
		page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_ANON|unix.MAP_PRIVATE)
		require.NoError(t, err)
		write := func() error { _, err := f.WriteAt(page, 0); return err }
		waits(t, func() func() { server.Hang(t); return func() { server.Answer(t) } }, nil, write)
		second := filepath.Join(dir, "second")
		for operation, call := range map[string]func() error{
			Create:    func() error { return os.WriteFile(second, nil, 0o600) },
			Fallocate: func() error { return unix.Fallocate(int(f.Fd()), 0, 0, 1<<20) },
		} {
			waits(t, func() func() {
				server.HangOn(t, operation)
				return func() { server.AnswerAll(t) }
			}, write, call)
		}
		server.Hang(t)
		server.Abort(t)
		assert.ErrorIs(t, write(), unix.ENOTCONN)
	})
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	assert.NotContains(t, string(mounts), ownPrefix(), "nothing is left")
}

// waits checks that a call waits for the end of a fault, and that another one does not.
func waits(t *testing.T, begin func() (end func()), other, call func() error) {
	t.Helper()
	end := begin()
	if other != nil {
		require.NoError(t, other())
	}
	returned := make(chan error, 1)
	go func() { returned <- call() }()
	select {
	case err := <-returned:
		assert.Fail(t, "it does not wait", "%v", err)
	case <-time.After(50 * time.Millisecond):
		end()
		require.NoError(t, <-returned)
	}
	end()
}
