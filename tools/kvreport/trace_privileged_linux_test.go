package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/privtest"
	"kvbench/tools/load"
	"kvbench/tracing/host"
)

// loopFile is a filesystem on a loop device with a written file on it.
type loopFile struct{ dir, file string }

func newLoad(t *testing.T) loopFile {
	t.Helper()
	privtest.Root(t)
	_, err := exec.LookPath("fio")
	privtest.Need(t, err)
	l := privtest.LoopFS(t, 160, privtest.LoopOptions{NoJournal: true, DirectIO: true})
	at := loopFile{l.Dir, filepath.Join(l.Dir, "data")}
	out, err := exec.Command("fio", "--name=layout", "--filename="+at.file, "--rw=write", "--bs=1M",
		"--size=128M", "--direct=1").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return at
}

// start runs a command on the load's file until the test ends. fio has to run its jobs as threads:
// its processes have sessions of their own, and the test could not end them.
func start(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(name, args...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, c.Start())
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }() // at once, or it stays as a zombie
	t.Cleanup(func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL); <-ended })
	return c
}

func (l loopFile) fio(args ...string) []string {
	return append([]string{"--name=t", "--filename=" + l.file, "--direct=1", "--time_based",
		"--norandommap", "--output=/dev/null"}, args...)
}

// traced runs kvreport trace with a command line. The call prints into the buffers. counting is called when
// the requests are counted.
func traced(t testing.TB, ctx context.Context, counting func(), args ...string,
) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	c := &Call{FlagSet: flag.NewFlagSet("trace", flag.ContinueOnError), stdout: &out, stderr: &errs}
	opt := newTraceOptions(c)
	require.NoError(t, c.Parse(args))
	require.NoError(t, opt.check(c.Args()))
	opt.counting = counting
	err := c.trace(ctx, opt)
	if e, ok := errors.AsType[*exit](err); ok && e.code == No {
		privtest.Need(t, err) // the kernel cannot
	}
	require.NoError(t, err)
	return out.String(), errs.String()
}

// watch traces a running load until the file's device has completed that many requests since the
// counting began, however slow the machine is.
func (l loopFile) watch(t *testing.T, requests int64, args ...string) (stdout, stderr string) {
	t.Helper()
	device, err := host.BackingDevice(l.dir)
	require.NoError(t, err)
	served := func() int64 {
		all, err := device.ReadStat()
		assert.NoError(t, err)
		s := all.Sub(nil)
		return s.ReadIOs + s.WriteIOs
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	return traced(t, ctx, func() {
		go func() {
			defer cancel()
			for first := served(); ctx.Err() == nil && served()-first < requests; {
				time.Sleep(10 * time.Millisecond)
			}
		}()
	}, append(args, "-dir", l.dir)...)
}

// TestBesideFio traces a running fio by name and expects its job back.
func TestBesideFio(t *testing.T) {
	l := newLoad(t)
	start(t, "fio", l.fio("--rw=randrw", "--rwmixread=70", "--bssplit=4k/50:16k/30:128k/20,64k/100",
		"--ioengine=libaio", "--iodepth=8", "--runtime=600", "--thread")...)
	job := filepath.Join(t.TempDir(), "job.fio")
	// 20,000: a share's standard deviation is below half a percent.
	stdout, stderr := l.watch(t, 20_000, "-comm", "fio", "-fio", job)
	assert.Empty(t, stderr)
	assert.Contains(t, stdout, "Diagnosis: ")
	assert.Contains(t, stdout, "fio job: "+job+"\n")
	text, err := os.ReadFile(job)
	require.NoError(t, err)
	// Two jobs, or one where the device is so fast that requests come one at a time.
	assert.Regexp(t, regexp.MustCompile(`(?m)^(rw=randwrite|rwmixread=(6[789]|7[0123]))$`),
		string(text))
	assert.Regexp(t, regexp.MustCompile(
		`(?m)^bssplit=4k/(4[789]|5[0123]):16k/(2[789]|3[0123]):128k/(1[789]|2[0123])`),
		string(text))
	assert.Regexp(t, regexp.MustCompile(`(?m)^bssplit=.*64k/100$`), string(text))
	assert.Regexp(t, regexp.MustCompile(`(?m)^iodepth=\d+$`), string(text))
	out, err := exec.Command("fio", "--parse-only", "--filename="+l.file, job).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestAnEndedProcessEndsTheTracing watches a shell whose child, and whose child's child, do the
// I/O.
func TestAnEndedProcessEndsTheTracing(t *testing.T) {
	l := newLoad(t)
	fio := "fio " + strings.Join(l.fio("--rw=randread", "--bs=16k", "--size=128M",
		"--ioengine=psync", "--runtime=2"), " ")
	at := filepath.Join(t.TempDir(), "trace.json")
	pid, stdout, notes := traceShell(t, l.dir, "sh -c '"+fio+"; exit $?'; exit $?", at)
	assert.Contains(t, notes, fmt.Sprintf("process %d has ended, with all its children", pid))
	assert.Contains(t, stdout, "\nrw=randread\nbssplit=16k/100\n")
	document, err := os.ReadFile(at)
	require.NoError(t, err)
	assert.Contains(t, string(document), `"status": "complete"`)
	assert.Contains(t, string(document), `"ended_by": "input"`)

	// The snapshots of every second add up to the counts.
	rec, err := load.Parse("trace.json", document)
	require.NoError(t, err)
	course, sum := rec.Course(), int64(0)
	require.NotNil(t, course)
	for _, rows := range course.Histograms["d2c_read_us"].Counts {
		for _, n := range rows {
			sum += n
		}
	}
	assert.GreaterOrEqual(t, len(course.At), 2)
	for _, h := range rec.Tracing() {
		if h.Key == "d2c_read_us" {
			assert.Equal(t, h.Count, sum)
		}
	}
	assert.Positive(t, sum)
}

// traceShell traces a shell with all its children until it has ended, on the device of a directory.
// The command begins when its requests are counted. The result goes to a file.
func traceShell(t testing.TB, dir, command, document string) (pid int, stdout, notes string) {
	t.Helper()
	sh := exec.Command("sh", "-c", "read go; "+command) // until its standard input is closed
	sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var said strings.Builder
	sh.Stdout, sh.Stderr = &said, &said
	begin, err := sh.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, sh.Start())
	ended := make(chan error, 1)
	go func() { ended <- sh.Wait() }() // at once, or it stays as a zombie
	t.Cleanup(func() { _ = syscall.Kill(-sh.Process.Pid, syscall.SIGKILL) })
	stdout, notes = traced(t, t.Context(), func() { _ = begin.Close() }, "-pid",
		strconv.Itoa(sh.Process.Pid), "-dir", dir, "-duration", "5m", "-json", document, "-fio", "-")
	require.NoError(t, <-ended, "%s: %s", command, said.String())
	return sh.Process.Pid, stdout, notes
}

// TestInterrupted ends the tracing by hand, as Ctrl-C does.
func TestInterrupted(t *testing.T) {
	l := newLoad(t)
	fio := start(t, "fio", l.fio("--rw=randwrite", "--bs=8k", "--size=128M", "--ioengine=psync",
		"--runtime=600", "--thread")...)
	stdout, stderr := l.watch(t, 100, "-pid", strconv.Itoa(fio.Process.Pid), "-duration", "1h",
		"-json", "-")
	assert.Contains(t, stdout, `"status": "incomplete"`)
	assert.Contains(t, stdout, `"ended_by": "signal"`)
	assert.Empty(t, stderr)
	assert.Contains(t, stdout, "writes")
	assert.NotContains(t, stdout, "[global]")
}

func TestNobodyToTrace(t *testing.T) {
	privtest.Root(t)
	code, stdout, stderr := call("", "trace", "-comm", "no-such-program", "-duration", "50ms")
	assert.Empty(t, stdout, "a report about nothing")
	assert.Equal(t, No, code, stderr)
	if !assert.Contains(t, stderr, "no process named no-such-program ran or was started") {
		privtest.Need(t, errors.New(stderr))
	}
	assert.Contains(t, stderr, "waiting for one to start")
}

// TestWithoutPrivilege runs the command as an unprivileged user.
func TestWithoutPrivilege(t *testing.T) {
	if os.Getenv("KVREPORT_TRACE_AS_NOBODY") != "" {
		code, stdout, stderr := call("", "trace", "-pid", strconv.Itoa(os.Getpid()), "-duration", "10ms")
		fmt.Printf("code %d\n%s%s", code, stdout, stderr)
		return
	}
	privtest.Root(t)
	// The test binary lies in a directory that only root may enter.
	text, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "kvreport-trace-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	self := filepath.Join(dir, "trace.test")
	require.NoError(t, os.WriteFile(self, text, 0o755))
	c := exec.Command(self, "-test.run=^TestWithoutPrivilege$")
	c.Env, c.Dir = append(os.Environ(), "KVREPORT_TRACE_AS_NOBODY=1"), "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), fmt.Sprintf("code %d\n", No))
	assert.Contains(t, string(out),
		"kvreport trace: no tracing: this process lacks the privilege (CAP_BPF and CAP_PERFMON); "+
			"needed: CAP_BPF and CAP_PERFMON: run with sudo")
}
