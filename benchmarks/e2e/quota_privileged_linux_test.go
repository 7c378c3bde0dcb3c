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

// In a container the run takes as many processors as the quota has whole cores, not four more than
// the machine has, and the result names the file that says so.
func TestGOMAXPROCSNeverPassesTheQuota(t *testing.T) {
	for quota, want := range map[int]int{100000: 1, 150000: 1, 50000: 1, 200000: 2} {
		dir := quotaGroup(t, quota)
		b := newBench(t)
		b.command = []string{"/bin/sh", "-c", "echo $$ > '" + dir + "/cgroup.procs' && exec \"$@\"",
			"sh", binary(t), "-test.run=^$"}
		o := b.ok(b.few(b.places()...)...)
		r := theResult(t, b.results)
		assert.Equal(t, want, r.Environment.GOMAXPROCS, "quota %d", quota)
		if quota < 200000 { // two cores are what this machine may have anyway
			assert.Equal(t, filepath.Join(dir, "cpu.cfs_quota_us"),
				withoutLinks(t, r.Limits.CoresSource))
			assert.InDelta(t, float64(quota)/100000, r.Limits.Cores, 1e-9)
			assert.NotRegexp(t, `BenchmarkSynthetic-\d`, o.stdout, "one processor has no suffix")
		}
		// Who says how many has as many.
		b = newBench(t)
		b.command = []string{"/bin/sh", "-c", "echo $$ > '" + dir + "/cgroup.procs' && exec \"$@\"",
			"sh", binary(t), "-test.run=^$"}
		b.ok(b.few(append(b.places(), "-test.cpu=2")...)...)
		assert.Equal(t, 2, theResult(t, b.results).Environment.GOMAXPROCS)
	}
}

// withoutLinks resolves the directory of a hierarchy, which may be cpu -> cpu,cpuacct.
func withoutLinks(t *testing.T, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks("/sys/fs/cgroup/cpu")
	require.NoError(t, err)
	return strings.Replace(path, real, "/sys/fs/cgroup/cpu", 1)
}
