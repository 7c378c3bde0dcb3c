package kvbench

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reportTo names the socket to which TestHelperOfGoCommand, run by a go command of the test below, tells what it sees.
const reportTo = "KVBENCH_TEST_REPORT_TO"

// TestRunOfARealGoCommand starts `go test` in a directory, asks the test binary at its end where the command was typed,
// kills the go command the hard way and expects the binary to notice. Output would go through the dead command, so it
// reports through a socket.
func TestRunOfARealGoCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this test links a test binary")
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("a compiled test binary on a machine without Go: %v", err)
	}
	here, err := os.Getwd()
	require.NoError(t, err)
	if moduleRoot(here) == "" || !isOurModule(moduleRoot(here)) {
		t.Skipf("a compiled test binary: %s is not in the module", here)
	}
	typed := filepath.Join(moduleRoot(here), "tracing") // neither the package's directory nor the module's root

	dir, err := os.MkdirTemp("", "kv") // short: the path of a socket has at most 107 bytes
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s")})
	require.NoError(t, err)
	defer listener.Close()

	command := exec.Command(goCommand, "test", "-count=1", "-run=^TestHelperOfGoCommand$", "../kvbench")
	command.Dir = typed
	command.Env = append(os.Environ(), reportTo+"="+listener.Addr().String())
	var output strings.Builder
	command.Stdout, command.Stderr = &output, &output
	require.NoError(t, command.Start())
	// Wait collects the dead command; it would also wait for the pipes the orphan still holds.
	command.WaitDelay = time.Second

	const patience = 5 * time.Minute // compiling on a loaded machine; the rest takes milliseconds
	require.NoError(t, listener.SetDeadline(time.Now().Add(patience)))
	conn, err := listener.Accept()
	if err != nil {
		_ = command.Process.Kill()
		_ = command.Wait()
		t.Fatalf("the test binary did not report: %v\n%s", err, output.String())
	}
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	report := bufio.NewScanner(conn)

	require.True(t, report.Scan())
	assert.Equal(t, typed, report.Text())
	require.True(t, report.Scan())
	assert.Contains(t, report.Text(), "go command")

	require.NoError(t, command.Process.Kill())
	killed := time.Now()
	_ = command.Wait() // reaps it: the orphan's parent changes when its parent is dead, reaped or not
	require.True(t, report.Scan(), "the orphan did not notice: %v", report.Err())
	assert.Equal(t, ErrParentGone.Error(), report.Text())
	assert.Less(t, time.Since(killed), 2*time.Second+command.WaitDelay)
	assert.False(t, report.Scan(), "the orphan ends")
}

// TestHelperOfGoCommand is the other end of the test above, and does nothing when run by itself.
func TestHelperOfGoCommand(t *testing.T) {
	socket := os.Getenv(reportTo)
	if socket == "" {
		return
	}
	ctx, cancel := WatchParent(context.Background())
	defer cancel()
	conn, err := net.Dial("unix", socket)
	require.NoError(t, err)
	defer conn.Close()
	dir, how := LaunchDir()
	fmt.Fprintf(conn, "%s\n%s\n", dir, how)
	select {
	case <-ctx.Done():
		fmt.Fprintln(conn, context.Cause(ctx))
	case <-time.After(5 * time.Minute):
		fmt.Fprintln(conn, "nothing happened")
	}
}
