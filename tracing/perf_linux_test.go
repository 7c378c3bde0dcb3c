//go:build linux && (amd64 || arm64)

package tracing

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/internal/privtest"
)

// TestPerfTracepoints runs in a mount namespace of its own, where it may mount tracefs without anybody noticing.
func TestPerfTracepoints(t *testing.T) {
	privtest.Root(t)
	if os.Getenv("KVBENCH_TRACE_WITH_TRACEFS") != "1" {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestPerfTracepoints$", "-test.v")
		cmd.Env = append(os.Environ(), "KVBENCH_TRACE_WITH_TRACEFS=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		t.Logf("%s", out)
		return
	}
	if _, err := os.Stat(tracefs[0] + "/events"); err != nil {
		privtest.Need(t, unix.Mount("tracefs", tracefs[0], "tracefs", 0, ""))
	}
	d, file := rawLoop(t, 64)
	var read, write fioSide
	tr := traced(t, Options{Device: d, Attach: AttachPerf}, func() {
		read, write = runFio(t, file, "--rw=randrw", "--bs=16k", "--iodepth=8", "--ioengine=libaio", "--size=64M", "--io_size=32M")
	})
	assert.Equal(t, "tracepoint", tr.Capture.Attach)
	// Nested runs are lost on one guard for all programs, and only lost on the way: those that were seen are right.
	assert.InEpsilon(t, read.TotalIOs, tr.Capture.Read.Requests, 0.02)
	assert.InEpsilon(t, write.TotalIOs, tr.Capture.Write.Requests, 0.02)
	assert.Equal(t, tr.Capture.Read.Requests*16<<10, tr.Capture.Read.Bytes)
	assert.EqualValues(t, 100, sharePercent(tr.SizeWrite, 16<<10))
	assert.Contains(t, tr.Capture.Warnings[0], "perf tracepoints do not show requests")
}
