package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/privtest"
)

// quotaGroup makes a cgroup v1 of a CPU quota per 100 ms, which is removed with the test, and
// returns its directory.
func quotaGroup(t *testing.T, quota int) string {
	t.Helper()
	privtest.Root(t)
	const cpu = "/sys/fs/cgroup/cpu"
	_, err := os.Stat(cpu + "/cpu.cfs_quota_us")
	if errors.Is(err, fs.ErrNotExist) { // the root of v1 has the file, that of v2 never
		_, err = os.Stat(cpu + "/cpu.cfs_period_us")
	}
	privtest.Need(t, err)
	dir := filepath.Join(cpu, fmt.Sprintf("kvbench-test-%d-%d", os.Getpid(), quota))
	privtest.Need(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() {
		err := os.Remove(dir)
		for errors.Is(err, syscall.EBUSY) { // a process that has just ended is still counted
			<-time.After(10 * time.Millisecond)
			err = os.Remove(dir)
		}
		assert.NoError(t, err)
	})
	for name, n := range map[string]int{"cpu.cfs_period_us": 100000, "cpu.cfs_quota_us": quota} {
		privtest.Need(t, os.WriteFile(filepath.Join(dir, name), fmt.Append(nil, n), 0o644))
	}
	return dir
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
