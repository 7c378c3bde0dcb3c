package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	uid := b.unprivileged()
	o := b.ok("-test.bench=.", "-test.benchtime=1x")
	t.Logf("all benchmarks in %v", o.took)
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
	left, err := os.ReadDir(filepath.Join(b.work, "tmp"))
	require.NoError(t, err)
	assert.Empty(t, left, "the temporary cache directory is gone")
	for _, f := range resultFiles(t, filepath.Join(b.work, "kvbench-results")) {
		var s syscall.Stat_t
		require.NoError(t, syscall.Stat(f, &s))
		assert.EqualValues(t, uid, s.Uid)
	}
}

// unprivileged makes b run without any right where this test is root, and returns its user.
func (b *bench) unprivileged() int {
	uid := os.Getuid()
	if uid != 0 {
		return uid
	}
	b.attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: noUser, Gid: noUser}}
	require.NoError(b.t, os.Chmod(filepath.Dir(b.work), 0o755)) // t.TempDir's own
	for _, dir := range []string{b.work, filepath.Join(b.work, "tmp")} {
		require.NoError(b.t, os.Chown(dir, noUser, noUser))
	}
	return noUser
}

// TestTheMemoryLimitOfTheContainerIsTold puts a run into a cgroup that is too small for it.
func TestTheMemoryLimitOfTheContainerIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	program := binary(t)
	privtest.Root(t)
	const limit = 768 << 20
	procs := memoryGroup(t, limit)
	// The check is on what can be used, so the run is in the group from its first byte.
	b.command = []string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, procs, program, "-test.run=^$"}
	lines := b.refused(append(b.places(), "-test.bench=Synthetic", "-cpu-mem-gb=4")...)
	require.Len(t, lines, 1)
	m := regexp.MustCompile(
		`^-cpu-mem-gb: must be at most ([\d.]+) \(the run needs [\d.]+ GiB: 4.00 cpu tier, .* available according to (.*)\), given 4.00$`).FindStringSubmatch(lines[0])
	require.NotNil(t, m, lines[0])
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
	group, err := os.MkdirTemp(base, "kvbench-e2e-")
	privtest.Need(t, err)
	t.Cleanup(func() { assert.NoError(t, os.Remove(group)) })
	privtest.Need(t, os.WriteFile(filepath.Join(group, file), []byte(strconv.Itoa(limit)), 0))
	return filepath.Join(group, "cgroup.procs")
}
