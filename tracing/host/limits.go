package host

import (
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Limits is what this process may use of the machine: the tightest of the machine itself, its CPU
// affinity and all cgroups above it. Each value names where it comes from, so that a surprised
// reader knows what to raise. Zero means unknown.
type Limits struct {
	Cores       float64 `json:"cores"` // may be a fraction: a quota of 150 ms per 100 ms is 1.5
	CoresSource string  `json:"cores_source"`
	GOMAXPROCS  int     `json:"gomaxprocs"`

	MemoryLimit       int64  `json:"memory_limit_bytes"` // what may be used in total
	MemoryLimitSource string `json:"memory_limit_source"`
	// MemoryAvailable is what may still be used now, page cache that can be dropped included.
	MemoryAvailable       int64  `json:"memory_available_bytes"`
	MemoryAvailableSource string `json:"memory_available_source"`
}

// ReadLimits reads them now. It never fails: what cannot be read does not limit.
func ReadLimits() Limits {
	l := thisMachine().limits()
	if l.MemoryLimit == 0 {
		l.MemoryLimit, l.MemoryLimitSource = physicalMemory()
	}
	return l
}

// Available is what this process may still use, and who says so; 0 when nobody does.
func (l Limits) Available() (bytes int64, source string) {
	bytes, source = l.MemoryAvailable, l.MemoryAvailableSource
	if l.MemoryLimit > 0 && (bytes == 0 || l.MemoryLimit < bytes) {
		bytes, source = l.MemoryLimit, l.MemoryLimitSource
	}
	return bytes, source
}

// limits reads what the files say. Cores may come out as a fraction, and are compared as one: half
// a core more or less decides whether the harness is the limit.
func (m machine) limits() Limits {
	l := Limits{
		Cores: float64(runtime.NumCPU()), CoresSource: "number of CPUs",
		GOMAXPROCS: runtime.GOMAXPROCS(0),
	}
	if n := m.affinity(); n > 0 {
		l.Cores, l.CoresSource = float64(n), "sched_getaffinity"
	}
	const meminfo = "/proc/meminfo"
	l.tightenMemory(m.kib(meminfo, "MemTotal:"), meminfo+" MemTotal")
	l.tightenAvailable(m.kib(meminfo, "MemAvailable:"), meminfo+" MemAvailable")

	for _, dir := range m.cgroups("cpu") {
		if cores, file := m.cpuQuota(dir); cores > 0 && cores < l.Cores {
			l.Cores, l.CoresSource = cores, file
		}
	}
	for _, dir := range m.cgroups("memory") {
		limit, file := m.memoryLimit(dir)
		l.tightenMemory(limit, file)
		if limit > 0 {
			l.tightenAvailable(max(1, limit-m.memoryHeld(dir)), file)
		}
	}
	return l
}

// tightenMemory and tightenAvailable keep the smaller positive value and its source.
func (l *Limits) tightenMemory(bytes int64, source string) {
	if bytes > 0 && (l.MemoryLimit == 0 || bytes < l.MemoryLimit) {
		l.MemoryLimit, l.MemoryLimitSource = bytes, source
	}
}

func (l *Limits) tightenAvailable(bytes int64, source string) {
	if bytes > 0 && (l.MemoryAvailable == 0 || bytes < l.MemoryAvailable) {
		l.MemoryAvailable, l.MemoryAvailableSource = bytes, source
	}
}

// cgroups lists the directories whose files bound this process by a controller, innermost first. A
// limit anywhere on the way to the root binds, whatever the inner ones say. /proc/self/cgroup names
// the group in each hierarchy, the mount table where that hierarchy is; a hybrid system has both
// kinds.
func (m machine) cgroups(controller string) (dirs []string) {
	mounts, err := m.mounts()
	if err != nil {
		return nil // no /proc, no cgroups
	}
	for line := range strings.Lines(m.Text("/proc/self/cgroup")) {
		// "4:memory:/path", "2:cpu,cpuacct:/path", "0::/path" for the unified hierarchy
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		unified := part[0] == "0" && part[1] == ""
		if unified || slices.Contains(strings.Split(part[1], ","), controller) {
			dirs = append(dirs, groupPath(mounts, unified, controller, part[2])...)
		}
	}
	return dirs
}

// groupPath lists the directories of a group and its ancestors up to the mount point of its
// hierarchy.
func groupPath(mounts []Mount, unified bool, controller, group string) []string {
	at := slices.IndexFunc(mounts, func(m Mount) bool {
		if unified {
			return m.Type == "cgroup2"
		}
		return m.Type == "cgroup" && slices.Contains(m.SuperOptions, controller)
	})
	if at < 0 {
		return nil
	}
	m := mounts[at]
	// A container without its own cgroup namespace sees the host's path (/docker/<id>) but has only
	// that group mounted: what is mounted (Root) is cut from the front. Any other mismatch leaves
	// the mount point.
	inside := "/"
	if m.Root == "/" {
		inside = group
	} else if rest, ok := strings.CutPrefix(group, m.Root); ok && (rest == "" || rest[0] == '/') {
		inside = rest
	}
	// A group outside the namespace's root reads /../x; cleaning keeps the path inside the mount.
	inside = path.Clean("/" + inside)
	for dirs := []string(nil); ; inside = path.Dir(inside) {
		dirs = append(dirs, path.Join(m.Point, inside))
		if inside == "/" {
			return dirs
		}
	}
}

// cpuQuota returns the cores that a group's bandwidth limit amounts to and the file that says so, 0
// for none.
func (m machine) cpuQuota(dir string) (cores float64, file string) {
	file = path.Join(dir, "cpu.max")
	if text := m.Text(file); text != "" { // v2: "150000 100000", "max 100000"
		quota, period, _ := strings.Cut(text, " ")
		return quotient(quota, period), file
	}
	file = path.Join(dir, "cpu.cfs_quota_us") // v1: -1 for none
	return quotient(m.Text(file), m.Text(dir, "cpu.cfs_period_us")), file
}

// quotient is 0 for what is no limit: "max", -1, an empty file, a period of nothing.
func quotient(quota, period string) float64 {
	q, errQ := strconv.ParseInt(quota, 10, 64)
	p, errP := strconv.ParseInt(period, 10, 64)
	if errQ != nil || errP != nil || q <= 0 || p <= 0 {
		return 0
	}
	return float64(q) / float64(p)
}

// memoryLimit returns a group's limit in bytes and the file that says so, 0 for none. memory.high
// counts as a limit: above it every allocation is throttled, and what is measured then is the
// reclaim.
func (m machine) memoryLimit(dir string) (bytes int64, file string) {
	for _, name := range []string{"memory.max", "memory.high", "memory.limit_in_bytes"} {
		if n := m.bytes(dir, name); n > 0 && (bytes == 0 || n < bytes) {
			bytes, file = n, path.Join(dir, name)
		}
	}
	return bytes, file
}

// memoryHeld is what the group uses and cannot drop: its inactive page cache goes first and is no
// obstacle.
func (m machine) memoryHeld(dir string) int64 {
	used, cache := m.bytes(dir, "memory.current"), "inactive_file "
	if used == 0 {
		used, cache = m.bytes(dir, "memory.usage_in_bytes"), "total_inactive_file "
	}
	for line := range strings.Lines(m.Text(dir, "memory.stat")) {
		if rest, ok := strings.CutPrefix(line, cache); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64); err == nil {
				return max(0, used-n)
			}
		}
	}
	return used
}

// unlimited is what v1 calls no limit, less some slack: it prints the largest multiple of the page
// size.
const unlimited = int64(1) << 62

// bytes reads a file with one positive number, 0 for "max", -1, no limit and no file.
func (m machine) bytes(dir, name string) int64 {
	n := m.Integer(dir, name)
	if n == nil || *n < 0 || *n >= unlimited {
		return 0
	}
	return *n
}
