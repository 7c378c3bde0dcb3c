package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/kvbench/params"
	"kvbench/tiers/privtest"
)

// noUser is a user without any right.
const noUser = 65534

// TestEveryBenchmarkWithoutRootOrArguments runs the quick division as it comes,
// but for the window: as an unprivileged user where this test is root.
func TestEveryBenchmarkWithoutRootOrArguments(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.inMemory()
	uid := b.unprivileged()
	o := b.ok("-test.bench=.", "-test.benchtime=1x")
	t.Logf("all benchmarks in %v", o.took)
	checkLogs(t, o.stdout)
	results, _ := parse(t, o.stdout)
	seen := make(map[string]bool)
	for _, r := range results {
		seen[string(r.Name.Base())] = true
	}
	_, skips, _ := strings.Cut(o.stderr, "\nskipped benchmarks\n")
	for _, p := range params.Benchmarks() {
		if p.Needs == "" {
			assert.True(t, seen[p.Name], p.Name)
			continue
		}
		assert.False(t, seen[p.Name], p.Name)
		assert.Contains(t, skips, "Benchmark"+p.Name+": needs -"+p.Needs+"\n")
	}
	left, err := os.ReadDir(filepath.Join(b.work, "memory/tmp"))
	require.NoError(t, err)
	assert.Empty(t, left, "the temporary cache directory is gone")
	for _, f := range resultFiles(t, filepath.Join(b.work, "kvbench-results")) {
		var s syscall.Stat_t
		require.NoError(t, syscall.Stat(f, &s))
		assert.EqualValues(t, uid, s.Uid)
	}
}

func TestAllBenchmarksPrintWhatBenchfmtReads(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.inMemory()
	// Knee takes as long as all others together; TestEveryBenchmarkWithoutRootOrArguments runs it.
	o := b.ok(append(everything(b), "-test.bench=.", "-test.skip=Knee", "-test.count=2",
		"-test.benchtime=4x")...)
	checkResults(t, o.stdout, 2)
	checkLogs(t, o.stdout)
	file := filepath.Join(b.work, "all.txt")
	require.NoError(t, os.WriteFile(file, []byte(o.stdout), 0o644))
	assert.NotRegexp(t, `(?m)^\S*all\.txt:\d+:`, comparison(t, file), "what benchstat complains of")
	assert.NotContains(t, o.stderr, "skipped")
	assert.False(t, exists(b.cache), "nothing is left behind")
	t.Logf("%d bytes of output in %v", len(o.stdout), o.took)
}

// unprivileged makes b run without any right where this test is root, and returns its user.
func (b *bench) unprivileged() int {
	uid := os.Getuid()
	if uid != 0 {
		return uid
	}
	b.attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: noUser, Gid: noUser}}
	require.NoError(b.t, os.Chmod(filepath.Dir(b.work), 0o755)) // t.TempDir's own
	for _, dir := range []string{"", "tmp", "memory/tmp"} {
		if err := os.Chown(filepath.Join(b.work, dir), noUser, noUser); !os.IsNotExist(err) {
			require.NoError(b.t, err)
		}
	}
	return noUser
}

// TestWhatEndsARunIsFoundByItsPlan: directories in which this user cannot work, and an I/O engine that a seccomp filter
// forbids. A run is refused, too, before it makes anything.
func TestWhatEndsARunIsFoundByItsPlan(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	uid := b.unprivileged()
	closed := filepath.Join(b.work, "closed")
	require.NoError(t, os.MkdirAll(filepath.Join(closed, "made/rank_0"), 0o700))
	for _, dir := range []string{"made/rank_0", "made", "."} {
		require.NoError(t, os.Chmod(filepath.Join(closed, dir), 0o555))
	}
	for dir, at := range map[string]string{closed + "/new/kv": closed, closed + "/made": closed + "/made/rank_0"} {
		for _, more := range [][]string{{"-dry-run"}, nil} {
			text := b.refused(append(b.few("-cache-dir="+dir, "-results-dir="+b.results), more...)...)
			assert.Contains(t, text, "-cache-dir: make files in "+at+": permission denied; this user may not do that there, "+
				"choose a -cache-dir that it owns", "user %d", uid)
		}
	}
	b.attr = nil
	withoutRings(t, func() {
		text := b.refused(b.few(append(b.places(), "-io-engine=uring", "-dry-run")...)...)
		assert.Contains(t, text, "-io-engine uring: io_uring_setup: operation not permitted")
		b.ok(b.few(append(b.places(), "-dry-run")...)...)
	})
}

// withoutRings calls f in a thread, and with children, for which io_uring_setup returns EPERM.
func withoutRings(t *testing.T, f func()) {
	t.Helper()
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_IO_URING_SETUP, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}
	done := make(chan struct{})
	go func() { // the thread ends with it
		defer close(done)
		runtime.LockOSThread()
		program := &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
		if assert.NoError(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) &&
			assert.NoError(t, unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(program)), 0, 0)) {
			f()
		}
	}()
	<-done
}

// TestTheMemoryLimitOfTheContainerIsReported puts a run into a cgroup that is too small for it.
func TestTheMemoryLimitOfTheContainerIsReported(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	program := binary(t)
	const limit = 768 << 20
	procs := memoryGroup(t, limit)
	// The check is on what can be used, so the run is in the group from its first byte.
	b.command = []string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, procs, program, "-test.run=^$"}
	text := b.refused(append(b.places(), "-test.bench=Synthetic", "-cpu-mem-gb=4")...)
	m := regexp.MustCompile(
		`(?m)^-cpu-mem-gb: must be at most ([\d.]+) \(the run needs [\d.]+ GiB: 4.00 cpu tier, .* available according to (.*)\), given 4.00$`).FindStringSubmatch(text)
	require.NotNil(t, m, text)
	fits, err := strconv.ParseFloat(m[1], 64)
	require.NoError(t, err)
	assert.Less(t, fits, 0.75)
	assert.Contains(t, m[2], "cgroup")
	// What is said to fit does fit.
	b.ok(append(append(b.micro(), b.places()...), "-test.bench=Synthetic", "-test.benchtime=5x",
		fmt.Sprintf("-cpu-mem-gb=%.2f", fits-0.05))...)
}

// memoryGroup makes a cgroup with a memory limit and returns the file to join it.
func memoryGroup(t *testing.T, limit int) (procs string) {
	t.Helper()
	file, base := "memory.limit_in_bytes", "/sys/fs/cgroup/memory"
	if _, err := os.Stat(filepath.Join(base, file)); err != nil {
		file, base = "memory.max", "/sys/fs/cgroup"
		_, err := os.Stat(filepath.Join(base, "cgroup.controllers"))
		privtest.Need(t, err)
	}
	return filepath.Join(newGroup(t, base, map[string]int{file: limit}), "cgroup.procs")
}

// The threads that a run may need are compared with the limit of a container before anything is made: a run that
// cannot start a thread is killed.
func TestThreadsMustFit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	base := "/sys/fs/cgroup/pids"
	if _, err := os.Stat(base); err != nil {
		base = "/sys/fs/cgroup"
	}
	procs := filepath.Join(newGroup(t, base, map[string]int{"pids.max": 64}), "cgroup.procs")
	b.command = []string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, procs, binary(t), "-test.run=^$"}
	load := append(append(b.micro(), b.places()...), "-test.bench=PrefillOnly", "-division=open",
		"-storage-capacity-gb=0.05", "-num-users=64", "-test.benchtime=300ms")
	text := b.refused(append(load, "-workers=64")...)
	m := regexp.MustCompile(`(?m)^threads: the run needs \d+: \d+ requests in flight, \d+ harness; \d+ for each of 1 rank can ` +
		`start according to .*/pids.max; raise that limit, or give .* for at most (\d+) requests in flight$`).FindStringSubmatch(text)
	require.NotNil(t, m, text)
	fits, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	b.ok(append(load, fmt.Sprintf("-workers=%d", fits/2), "-io-depth=1")...)
}

// newGroup makes a cgroup with these settings, which is removed with the test.
func newGroup(t *testing.T, base string, settings map[string]int) (dir string) {
	t.Helper()
	privtest.Root(t)
	dir, err := os.MkdirTemp(base, "kvbench-e2e-")
	privtest.Need(t, err)
	t.Cleanup(func() {
		err := os.Remove(dir)
		for errors.Is(err, syscall.EBUSY) { // a process that has just ended is still counted
			<-time.After(10 * time.Millisecond)
			err = os.Remove(dir)
		}
		assert.NoError(t, err)
	})
	for name, n := range settings {
		privtest.Need(t, os.WriteFile(filepath.Join(dir, name), fmt.Append(nil, n), 0o644))
	}
	return dir
}

// quotaGroup makes a cgroup v1 of a CPU quota per 100 ms, and returns its directory.
func quotaGroup(t *testing.T, quota int) string {
	t.Helper()
	const cpu = "/sys/fs/cgroup/cpu"
	_, err := os.Stat(cpu + "/cpu.cfs_quota_us")
	if errors.Is(err, fs.ErrNotExist) { // the root of v1 has the file, that of v2 never
		_, err = os.Stat(cpu + "/cpu.cfs_period_us")
	}
	privtest.Need(t, err)
	return newGroup(t, cpu, map[string]int{"cpu.cfs_period_us": 100000, "cpu.cfs_quota_us": quota})
}

// In a container the run takes as many processors as the quota has whole cores, and the result names
// the file with the quota. -cpu replaces that number.
func TestGOMAXPROCSNeverPassesTheQuota(t *testing.T) {
	t.Parallel()
	dir := quotaGroup(t, 150000)
	for want, more := range map[int][]string{1: nil, 2: {"-test.cpu=2"}} {
		b := newBench(t)
		b.command = []string{"/bin/sh", "-c", "echo $$ > '" + dir + "/cgroup.procs' && exec \"$@\"",
			"sh", binary(t), "-test.run=^$"}
		o := b.ok(b.few(append(b.places(), more...)...)...)
		r := theResult(t, b.results)
		assert.Equal(t, want, r.Environment.GOMAXPROCS)
		assert.Equal(t, filepath.Join(dir, "cpu.cfs_quota_us"), withoutLinks(t, r.Limits.CoresSource))
		assert.InDelta(t, 1.5, r.Limits.Cores, 1e-9)
		// One processor has no suffix.
		assert.Equal(t, want > 1, strings.Contains(o.stdout, "BenchmarkSynthetic-2"))
	}
}

// withoutLinks resolves the directory of a hierarchy, which may be cpu -> cpu,cpuacct.
func withoutLinks(t *testing.T, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks("/sys/fs/cgroup/cpu")
	require.NoError(t, err)
	return strings.Replace(path, real, "/sys/fs/cgroup/cpu", 1)
}
