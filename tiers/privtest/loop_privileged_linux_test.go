package privtest

import (
	"bufio"
	"errors"
	"fmt"
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

// killedEnv makes a test the one that is killed.
const killedEnv = "KVTEST_KILLED"

func TestLoopFSOfAKilledTestIsReclaimed(t *testing.T) {
	opt := LoopOptions{DirectIO: true}
	switch os.Getenv(killedEnv) {
	case "slow":
		opt.Times = Times{Read: time.Millisecond, Write: time.Millisecond}
		fallthrough
	case "fast":
		fmt.Println(LoopFS(t, 8, opt).Dir)
		_, _ = os.Stdin.Read(make([]byte, 1)) // until it is killed
		return
	}
	Root(t)
	for _, kind := range []string{"fast", "slow"} {
		cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
		cmd.Env, cmd.Stderr = append(os.Environ(), killedEnv+"="+kind), os.Stderr
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		defer stdin.Close()
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		said, err := bufio.NewReader(stdout).ReadString('\n')
		if err != nil {
			Need(t, fmt.Errorf("a test of its own said %q: %w", said, cmd.Wait()))
		}
		dir := strings.TrimSpace(said)
		base := filepath.Dir(dir)
		held, err := os.Create(filepath.Join(dir, "held")) // in use, as by a survivor
		require.NoError(t, err)
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())

		reclaim()
		assert.NoDirExists(t, base)
		require.NoError(t, held.Close())
		require.Eventually(t, func() bool { return len(loopsIn(base)) == 0 }, 20*time.Second,
			time.Millisecond, "the last user of the mount has left")
	}
}

func TestASlowDiskTakesItsTimes(t *testing.T) {
	const request, discard, size = 10 * time.Millisecond, 50 * time.Millisecond, 1 << 20
	l := LoopFS(t, 16, LoopOptions{DirectIO: true, Discard: true,
		Times: Times{request, 2 * request, discard}})
	file := filepath.Join(l.Dir, "file")
	took := func(args ...string) time.Duration {
		start := time.Now()
		out, err := exec.Command("dd", append(args, "bs=256k", "count=4")...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return time.Since(start)
	}
	assert.Greater(t, took("if=/dev/urandom", "of="+file, "oflag=direct"), 4*2*request)
	assert.Greater(t, took("of=/dev/null", "if="+file, "iflag=direct"), 4*request)

	held := func() int64 { // bytes of memory that the disk holds
		var st unix.Stat_t
		require.NoError(t, unix.Stat(filepath.Join(memory(filepath.Dir(l.Dir)), "disk"), &st))
		return st.Blocks * 512
	}
	discards := func() (n, ms int64) {
		columns := strings.Fields(readLine("/sys/block/" + l.Name + "/stat"))
		n, err := strconv.ParseInt(columns[11], 10, 64)
		require.NoError(t, err)
		ms, err = strconv.ParseInt(columns[14], 10, 64)
		require.NoError(t, err)
		return n, ms
	}
	before := held()
	from, at := discards()
	require.NoError(t, os.Remove(file))
	_, err := output("sync", "--file-system", l.Dir) // whose journal needs a little, too
	require.NoError(t, err)
	require.Eventually(t, func() bool { return held() < before-size/2 }, 20*time.Second,
		time.Millisecond, "what is deleted becomes a hole")
	var to, until int64
	require.Eventually(t, func() bool { to, until = discards(); return to > from }, 20*time.Second,
		time.Millisecond)
	assert.GreaterOrEqual(t, until-at, (to-from)*discard.Milliseconds())
}

func TestThrottleLoop(t *testing.T) {
	l := LoopFS(t, 16, LoopOptions{DirectIO: true})
	const size, rate = 8 << 20, 32 << 20
	file := filepath.Join(l.Dir, "file")
	f, err := os.Create(file)
	require.NoError(t, err)
	_, err = f.Write(make([]byte, size))
	require.NoError(t, errors.Join(err, f.Sync(), f.Close()))
	th := ThrottleLoop(t, l, Rates{Read: rate})

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

func TestAheadIsForTheTest(t *testing.T) {
	niceness := func() (all map[string]bool) {
		out, err := output("ps", "-L", "-o", "nice=", "-p", strconv.Itoa(os.Getpid()))
		require.NoError(t, err)
		all = map[string]bool{}
		for _, nice := range strings.Fields(out) {
			all[nice] = true
		}
		return all
	}
	before := niceness()
	t.Run("in the test", func(t *testing.T) {
		Ahead(t)
		assert.Equal(t, map[string]bool{"-20": true}, niceness(), "all threads")
	})
	assert.Equal(t, before, niceness())
}
