package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	testGiB = int64(1) << 30
	// 16 and 8 GiB
	meminfo  = "MemTotal:       16777216 kB\nMemFree: 1 kB\nMemAvailable:   8388608 kB\n"
	v2Mounts = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"
	v1Mounts = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n35 " +
		"31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	noLimitV1   = "9223372036854771712\n"
	systemGroup = "/sys/fs/cgroup/system.slice"
	runGroup    = systemGroup + "/run.scope"
)

func TestLimits(t *testing.T) {
	type want struct {
		cores     float64
		coresFrom string
		memory    int64
		memFrom   string
		available int64
		availFrom string
	}
	bare := want{
		8,
		"sched_getaffinity",
		16 * testGiB,
		"/proc/meminfo MemTotal",
		8 * testGiB,
		"/proc/meminfo MemAvailable",
	}
	with := func(change func(*want)) want { w := bare; change(&w); return w }

	for _, c := range []struct {
		name  string
		files map[string]string
		want  want
	}{
		{"no cgroups: the machine and the affinity", map[string]string{}, bare},
		{"v2 without limits", map[string]string{
			"/proc/self/mountinfo": v2Mounts, "/proc/self/cgroup": "0::/system.slice/run.scope\n",
			runGroup + "/cpu.max": "max 100000\n", runGroup + "/memory.max": "max\n",
			runGroup + "/memory.high": "max\n",
		}, bare},
		{"v2 limits of the own group", map[string]string{
			"/proc/self/mountinfo": v2Mounts, "/proc/self/cgroup": "0::/system.slice/run.scope\n",
			runGroup + "/cpu.max": "150000 100000\n", runGroup + "/memory.max": "4294967296\n",
			runGroup + "/memory.current": "3221225472\n",
			runGroup + "/memory.stat":    "anon 1\ninactive_file 2147483648\nactive_file 7\n",
		}, want{1.5, runGroup + "/cpu.max", 4 * testGiB,
			runGroup + "/memory.max", 3 * testGiB, runGroup + "/memory.max"}},
		{"v2: a group further up is tighter", map[string]string{
			"/proc/self/mountinfo": v2Mounts, "/proc/self/cgroup": "0::/system.slice/run.scope\n",
			runGroup + "/cpu.max": "400000 100000\n", systemGroup + "/cpu.max": "50000 100000\n",
			runGroup + "/memory.max": "8589934592\n", systemGroup + "/memory.max": "2147483648\n",
			systemGroup + "/memory.current": "1073741824\n",
		}, want{0.5, systemGroup + "/cpu.max", 2 * testGiB,
			systemGroup + "/memory.max", testGiB, systemGroup + "/memory.max"}},
		{"v2 memory.high throttles and counts as a limit", map[string]string{
			"/proc/self/mountinfo": v2Mounts, "/proc/self/cgroup": "0::/system.slice\n",
			systemGroup + "/memory.max":  "8589934592\n",
			systemGroup + "/memory.high": "1073741824\n",
		}, with(func(w *want) {
			w.memory, w.memFrom, w.available, w.availFrom = testGiB, systemGroup+"/memory.high",
				testGiB, systemGroup+"/memory.high"
		})},
		{"a limit looser than the machine does not count", map[string]string{
			"/proc/self/mountinfo": v2Mounts, "/proc/self/cgroup": "0::/\n",
			"/sys/fs/cgroup/cpu.max":    "6400000 100000\n",
			"/sys/fs/cgroup/memory.max": "1099511627776\n",
		}, bare},
		{"v1 limits, and the hybrid's empty unified hierarchy", map[string]string{
			"/proc/self/mountinfo": v1Mounts + "41 31 0:38 / " +
				"/sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			"/proc/self/cgroup": "9:name=systemd:/\n4:memory:/jobs/7\n1:cpu,cpuacct:/jobs\n0::/\n",
			"/sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_quota_us":  "250000\n",
			"/sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_period_us": "100000\n",
			"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":       "-1\n",
			"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us":      "100000\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes":       noLimitV1,
			"/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes":  "3221225472\n",
			"/sys/fs/cgroup/memory/jobs/memory.usage_in_bytes":  "2147483648\n",
			"/sys/fs/cgroup/memory/jobs/memory.stat": "inactive_file " +
				"5\ntotal_inactive_file 1073741824\n",
			"/sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes": noLimitV1,
			"/sys/fs/cgroup/memory/jobs/7/memory.usage_in_bytes": "1\n",
			"/sys/fs/cgroup/unified/cgroup.controllers":          "",
			// not this process's group
			"/sys/fs/cgroup/unified/jobs/memory.max":                 "1\n",
			"/sys/fs/cgroup/memory/other/memory.limit_in_bytes":      "1\n",
			"/sys/fs/cgroup/cpu,cpuacct/jobs/other/cpu.cfs_quota_us": "1\n",
		}, want{2.5, "/sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_quota_us", 3 * testGiB,
			"/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes",
			2 * testGiB, "/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes"}},
		{"a container that sees the host's path but only its own group", map[string]string{
			"/proc/self/mountinfo": "35 31 0:32 /docker/abc " +
				"/sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			"/proc/self/cgroup":                           "4:memory:/docker/abc\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n",
		}, with(func(w *want) {
			w.memory, w.memFrom = testGiB, "/sys/fs/cgroup/memory/memory.limit_in_bytes"
			w.available, w.availFrom = testGiB, "/sys/fs/cgroup/memory/memory.limit_in_bytes"
		})},
		{"a group outside the namespace's root falls back to the mount point", map[string]string{
			"/proc/self/mountinfo": v2Mounts, "/proc/self/cgroup": "0::/../../elsewhere\n",
			"/sys/fs/cgroup/cpu.max": "100000 100000\n",
		}, with(func(w *want) { w.cores, w.coresFrom = 1, "/sys/fs/cgroup/cpu.max" })},
		{"a group over its limit has a byte left, not a negative number", map[string]string{
			"/proc/self/mountinfo": v2Mounts, "/proc/self/cgroup": "0::/\n",
			"/sys/fs/cgroup/memory.max":     "1073741824\n",
			"/sys/fs/cgroup/memory.current": "1073745920\n",
		}, with(func(w *want) {
			w.memory, w.memFrom = testGiB, "/sys/fs/cgroup/memory.max"
			w.available, w.availFrom = 1, "/sys/fs/cgroup/memory.max"
		})},
		{"nonsense limits nothing", map[string]string{
			"/proc/self/mountinfo": v2Mounts + "garbage\n", "/proc/self/cgroup": "x\n0::/\n",
			"/sys/fs/cgroup/cpu.max": "a b\n", "/sys/fs/cgroup/memory.max": "-5\n",
		}, bare},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{"/proc/meminfo": meminfo}
			for k, v := range c.files {
				files[k] = v
			}
			l := machineOf(t, 8, files).limits()
			assert.Equal(
				t,
				c.want,
				want{
					l.Cores,
					l.CoresSource,
					l.MemoryLimit,
					l.MemoryLimitSource,
					l.MemoryAvailable,
					l.MemoryAvailableSource,
				},
			)
			assert.Positive(t, l.GOMAXPROCS)
		})
	}
}

// GOMAXPROCS must not pass the quota, whatever part of a core is over.
func TestProcsNeverPassTheQuota(t *testing.T) {
	v2 := func(text string) map[string]string {
		return map[string]string{"/proc/self/mountinfo": v2Mounts,
			"/proc/self/cgroup": "0::/system.slice/run.scope\n", runGroup + "/cpu.max": text}
	}
	nested := v2("400000 100000\n")
	nested[systemGroup+"/cpu.max"] = "250000 100000\n"
	v1 := map[string]string{"/proc/self/mountinfo": v1Mounts +
		"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
		"/proc/self/cgroup": "1:cpu,cpuacct:/jobs\n0::/\n",
		"/sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_quota_us":  "100000\n",
		"/sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_period_us": "100000\n"}
	for _, c := range []struct {
		name  string
		files map[string]string
		n     int
		file  string
	}{
		{"no cgroups", nil, 12, ""},
		{"v2 without a limit", v2("max 100000\n"), 12, ""},
		{"v2, one core", v2("100000 100000\n"), 1, runGroup + "/cpu.max"},
		{"v2, one and a half", v2("150000 100000\n"), 1, runGroup + "/cpu.max"},
		{"v2, half a core", v2("50000 100000\n"), 1, runGroup + "/cpu.max"},
		{"v2, 7.99", v2("799000 100000\n"), 7, runGroup + "/cpu.max"},
		{"v2, more than wanted", v2("6400000 100000\n"), 12, runGroup + "/cpu.max"},
		{"v2, a group further up is tighter", nested, 2, systemGroup + "/cpu.max"},
		{"v1 in a hybrid", v1, 1, "/sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_quota_us"},
	} {
		n, file := machineOf(t, 8, c.files).procs(12)
		assert.Equal(t, c.n, n, c.name)
		assert.Equal(t, c.file, file, c.name)
	}
}

func TestLimitsOfASystemThatTellsNothing(t *testing.T) {
	l := machineOf(t, 0, nil).limits()
	assert.Positive(t, l.Cores)
	assert.Equal(t, "number of CPUs", l.CoresSource)
	assert.Zero(t, l.MemoryLimit)
	assert.Zero(t, l.MemoryAvailable)
}

func TestReadLimitsHere(t *testing.T) {
	l := ReadLimits()
	assert.Positive(t, l.Cores)
	assert.Positive(t, l.MemoryLimit)
	assert.NotEmpty(t, l.CoresSource)
	assert.NotEmpty(t, l.MemoryLimitSource)
	assert.LessOrEqual(t, l.MemoryAvailable, l.MemoryLimit)
}

func TestOnlineCPUs(t *testing.T) {
	for text, want := range map[string]int{"0-3": 4, "0": 1, "0-1,4,6-7\n": 5, "": 0, "3-1": 0,
		"x": 0, "0-": 0} {
		root := t.TempDir()
		path := filepath.Join(root, "sys/devices/system/cpu/online")
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		assert.Equal(t, want, Root(root).OnlineCPUs(), text)
	}
}
