package e2e

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers/privtest"
)

// screen is a terminal of which a test is the other end.
type screen struct {
	buffer
	master *os.File
}

// terminal gives the bench's processes a controlling terminal of the given
// width. Their standard output and standard error stay what they are.
func (b *bench) terminal(width uint16) *screen {
	b.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	privtest.Need(b.t, err)
	conn, err := master.SyscallConn() // Fd would make reads block, and Close wait for them
	require.NoError(b.t, err)
	var number int
	var errs [3]error
	require.NoError(b.t, conn.Control(func(fd uintptr) {
		errs[0] = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		number, errs[1] = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		errs[2] = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: width})
	}))
	require.NoError(b.t, errors.Join(errs[:]...))
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number),
		os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	require.NoError(b.t, err)
	b.files = []*os.File{slave}
	b.attr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	s := &screen{master: master}
	var reader sync.WaitGroup
	reader.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			_, _ = s.Write(buf[:n])
			if err != nil {
				return // closed, or no process holds the other end
			}
		}
	})
	b.t.Cleanup(func() {
		_ = slave.Close()
		_ = master.Close()
		reader.Wait()
	})
	return s
}

func TestTheLiveLineGoesToTheTerminalOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.terminal(60)
	p := b.start(append(append(b.micro(), b.places()...), "-test.bench=Synthetic",
		"-test.benchtime=10m", "-settle=10ms")...)
	s.shows(t, `Synthetic, [1-9]\d* s of 10m0s, (read|write) `)
	require.NoError(t, p.Process.Signal(os.Interrupt))
	o := p.end()
	eventually(t, "the line is wiped at the end",
		func() bool { return strings.HasSuffix(s.String(), "\r\x1b[K") })
	shown := s.String()
	lines := strings.Split(shown, "\r\x1b[K")
	assert.Contains(t, shown, "Synthetic, pausing")
	for _, line := range lines {
		assert.Less(t, len([]rune(line)), 60, "a line that wraps cannot be overwritten: %q", line)
		assert.NotContains(t, line, "\n")
	}
	assert.NotContains(t, o.stdout+o.stderr, "\x1b")
	parse(t, o.stdout)

	s = b.terminal(60)
	b.ok(append(append(b.micro(), b.places()...), "-test.bench=Synthetic", "-test.benchtime=1100ms",
		"-progress=none")...)
	assert.Empty(t, s.String())

	// A terminal gets a line for each trial, and nothing of what benchstat reads from files.
	assert.Contains(t, o.stdout, "\nUnit req/s better=higher\n")
	b.command = []string{"sh", "-c", `exec "$0" "$@" >/dev/tty`, binary(t), "-test.run=^$"}
	s = b.terminal(200)
	b.ok(b.few(append(b.places(), "-progress=none")...)...)
	line := regexp.MustCompile(`^Synthetic   .+   (\S+)(, \d+ warnings?)?\r\n$`)
	eventually(t, "the trial's line", func() bool { return line.MatchString(s.String()) })
}

// The result warns that the process was stopped: the time in flight is not the storage's.
func TestAStoppedProcessIsNotTheStorage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.terminal(200)
	p := b.start(append(append(b.micro(), b.places()...), "-test.bench=Synthetic",
		"-test.benchtime=10m")...)
	s.shows(t, " s of 10m0s")
	require.NoError(t, p.Process.Signal(syscall.SIGSTOP))
	stopped := time.Now()
	eventually(t, "time passes", func() bool { return time.Since(stopped) > 2300*time.Millisecond })
	lines := func() int { return strings.Count(s.String(), " of 10m0s") }
	before := lines()
	require.NoError(t, p.Process.Signal(syscall.SIGCONT))
	eventually(t, "the live line goes on", func() bool { return lines() > before+1 })
	require.NoError(t, p.Process.Signal(os.Interrupt))
	require.Equal(t, 130, p.end().code)
	assert.Regexp(t, `this process was paused 1 time \(SIGSTOP, .*: rank 0, from .* on for \d.* in the window`,
		strings.Join(interrupted(t, b).Warnings, "\n"))
}
