//go:build linux && (amd64 || arm64)

package collector

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/privtest"
	"kvbench/tracing"
	"kvbench/tracing/host"
)

// copied copies a program under a new name, so that no other process of the machine has its name.
func copied(t *testing.T, program, name string) string {
	t.Helper()
	from, err := exec.LookPath(program)
	privtest.Need(t, err)
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, text, 0o755))
	return path
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(t, err, "%s %q: %s", name, args, out)
}

// TestWhatThePageCacheWritesBack writes through the page cache. The kernel queues some of these writes
// after the writer has ended, but all of them count for the writer.
func TestWhatThePageCacheWritesBack(t *testing.T) {
	privtest.Root(t)
	d, file := loopFile(t, 32)
	dd, other := copied(t, "dd", "kv-writer"), copied(t, "dd", "kv-other")
	dir := filepath.Dir(file)
	const bytes = 4 << 20
	tr := traced(t, Options{Device: d, Filter: tracing.FilterProcess, Comm: "kv-writer"}, func() {
		for _, program := range []string{dd, other} {
			command(t, program, "if=/dev/zero", "of="+filepath.Join(dir, filepath.Base(program)),
				"bs=1M", "count=4")
		}
		command(t, "sync", "-f", dir)
	})
	p := &tr.Capture
	// A block of metadata may count for the process that changed the block last.
	assert.InDelta(t, bytes, p.Write.WrittenBackBytes, 1<<20)
	assert.Equal(t, p.Write.Requests, tr.SizeWrite.Count)
	assert.GreaterOrEqual(t, p.Write.ForeignBytes, int64(bytes), "the other one's")
	assert.GreaterOrEqual(t, p.Write.KernelBytes, int64(bytes), "queued by the kernel")
	assert.Contains(t, strings.Join(p.Warnings, "\n"), "on behalf of no process")
}

// TestEachProcessHasItsRequests traces all processes on a device. Their requests add up to those that
// the device counted.
func TestEachProcessHasItsRequests(t *testing.T) {
	privtest.Root(t)
	d, file := loopFile(t, 32)
	dd, reader := copied(t, "dd", "kv-writer"), copied(t, "dd", "kv-reader")
	dir := filepath.Dir(file)
	tr := traced(t, Options{Device: d, ByOwner: true}, func() {
		command(t, dd, "if=/dev/zero", "of="+filepath.Join(dir, "new"), "bs=1M", "count=8")
		command(t, reader, "if="+file, "of=/dev/null", "bs=64k", "count=128", "iflag=direct")
		command(t, "sync", "-f", dir)
	})
	p := &tr.Capture
	owner := func(name string) (o tracing.Owner) {
		if i := slices.IndexFunc(p.Owners,
			func(o tracing.Owner) bool { return o.Name == name }); i >= 0 {
			return p.Owners[i]
		}
		return o
	}
	read, written := owner("kv-reader"), owner("kv-writer")
	assert.EqualValues(t, 128, read.Reads, "%+v", p.Owners)
	assert.EqualValues(t, 128*64<<10, read.ReadBytes)
	assert.Zero(t, read.Writes)
	assert.InDelta(t, 8<<20, written.WriteBytes, 1<<20)
	assert.Equal(t, written.WriteBytes, written.WrittenBackBytes)
	var sum tracing.Owner
	for _, o := range p.Owners {
		sum.Reads, sum.Writes = sum.Reads+o.Reads, sum.Writes+o.Writes
	}
	assert.Equal(t, p.Read.Requests, sum.Reads)
	assert.Equal(t, p.Write.Requests, sum.Writes)
	assert.Empty(t, p.Watched)
	assert.Zero(t, p.Read.ForeignRequests)
}

// TestEndedProcessesAreForgotten counts the running processes of a family that has ended.
func TestEndedProcessesAreForgotten(t *testing.T) {
	privtest.Root(t)
	sh := copied(t, "sh", "kv-family")
	c := startFor(t, Options{Filter: tracing.FilterProcess, Comm: "kv-family"})
	for range 3 {
		command(t, sh, "-c", "true; (true); /bin/true; exit 0")
	}
	met, running := c.Watched()
	assert.GreaterOrEqual(t, met, 3)
	assert.Zero(t, running)
}

// TestSequentialDiffersFromRandom reads a file in order, by four streams in turn, and at random.
func TestSequentialDiffersFromRandom(t *testing.T) {
	privtest.Root(t)
	d, file := rawLoop(t, 64)
	read := func(args ...string) float64 {
		tr := traced(t, Options{Device: d}, func() { runFio(t, file, args...) })
		r := tr.Capture.Read
		return float64(r.Sequential) / float64(r.Requests)
	}
	assert.Greater(t, read("--rw=read", "--bs=16k", "--size=16M"), 0.99)
	assert.Greater(t, read("--rw=read", "--bs=16k", "--size=16M", "--numjobs=4",
		"--offset_increment=16M", "--group_reporting"), 0.98)
	assert.Less(t, read("--rw=randread", "--bs=4k", "--size=64M", "--io_size=8M"), 0.05)
}

// TestACgroup traces the processes of a cgroup and of the cgroups below it.
func TestACgroup(t *testing.T) {
	privtest.Root(t)
	parent, err := host.FindCgroup("/")
	privtest.Need(t, err)
	group := filepath.Join(parent, fmt.Sprintf("kvtest-%d", os.Getpid()))
	below := filepath.Join(group, "below")
	require.NoError(t, os.MkdirAll(below, 0o755))
	t.Cleanup(func() { _, _ = os.Remove(below), os.Remove(group) })
	d, file := rawLoop(t, 32)
	in := func(dir string, args ...string) {
		at, err := os.Open(dir)
		require.NoError(t, err)
		defer at.Close()
		c := exec.Command("fio", append([]string{"--name=t", "--filename=" + file, "--direct=1",
			"--rw=randread", "--output=/dev/null"}, args...)...)
		c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(at.Fd())}
		out, err := c.CombinedOutput()
		privtest.Need(t, err)
		require.NoError(t, err, "%s", out)
	}
	tr := traced(t, Options{Device: d, Filter: tracing.FilterProcess, Cgroup: group}, func() {
		in(below, "--bs=64k", "--size=8M")
		in(parent, "--bs=16k", "--size=8M")
	})
	r := tr.Capture.Read
	assert.EqualValues(t, 128, r.Requests+r.Stale)
	assert.EqualValues(t, 512, r.ForeignRequests)
	assert.Equal(t, "the cgroup "+group, tr.Capture.Watched)
}

// TestOtherPIDNamespace watches a process from inside its PID namespace, where the process has another
// id than the kernel's own.
func TestOtherPIDNamespace(t *testing.T) {
	if file := os.Getenv("KVTEST_NAMESPACE_FILE"); file != "" {
		d, err := host.NamedDevice(os.Getenv("KVTEST_NAMESPACE_DEVICE"))
		require.NoError(t, err)
		sh := exec.Command("sh", "-c", "read go; fio --name=t --filename="+file+
			" --direct=1 --rw=randread --bs=64k --size=8M --output=/dev/null")
		in, err := sh.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, sh.Start())
		tr := traced(t, Options{Device: d, Filter: tracing.FilterProcess, PID: sh.Process.Pid},
			func() {
				fmt.Fprintln(in)
				require.NoError(t, sh.Wait())
			})
		r := tr.Capture.Read
		assert.Less(t, sh.Process.Pid, 1000, "ids begin anew")
		assert.EqualValues(t, 128, r.Requests+r.Stale)
		return
	}
	privtest.Root(t)
	d, file := rawLoop(t, 32)
	unshare, err := exec.LookPath("unshare")
	privtest.Need(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command(unshare, "--pid", "--fork", "--mount-proc", self,
		"-test.run=^TestOtherPIDNamespace$")
	c.Env = append(os.Environ(), "KVTEST_NAMESPACE_FILE="+file, "KVTEST_NAMESPACE_DEVICE="+d.Name)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.NotContains(t, string(out), "SKIP")
}
