package host

import (
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Limits is what this process may use of the machine: the minimum of the machine itself, the CPU
// affinity and the limits of all its cgroups. Each value has a source, which names the limit. 0 is
// unknown.
type Limits struct {
	Cores       float64 `json:"cores" merge:"same"` // a quota of 150 ms per 100 ms is 1.5
	CoresSource string  `json:"cores_source" merge:"same"`
	// Of Go's runtime. While a trial moves bytes it is 4 above the cores, as far as a quota allows,
	// because a goroutine in a system call keeps its processor for a while.
	GOMAXPROCS int `json:"gomaxprocs" merge:"same"`

	MemoryLimit       int64  `json:"memory_limit_bytes" merge:"same"` // in total
	MemoryLimitSource string `json:"memory_limit_source" merge:"same"`
	// MemoryAvailable is how much may still be used now, including page cache that can be dropped.
	MemoryAvailable       int64  `json:"memory_available_bytes" merge:"min"`
	MemoryAvailableSource string `json:"memory_available_source" merge:"same"`
}

// ReadLimits reads the current limits. It never fails: a limit that cannot be read is ignored.
func ReadLimits() Limits {
	l := thisMachine().limits()
	if _, _, memory := SystemFacts(); l.MemoryLimit == 0 && memory > 0 {
		l.MemoryLimit, l.MemoryLimitSource = memory, "hw.memsize"
	}
	return l
}

// Available returns how many bytes this process may still use, and the file with that limit; 0 is unknown.
func (l Limits) Available() (bytes int64, source string) {
	bytes, source = l.MemoryAvailable, l.MemoryAvailableSource
	if l.MemoryLimit > 0 && (bytes == 0 || l.MemoryLimit < bytes) {
		bytes, source = l.MemoryLimit, l.MemoryLimitSource
	}
	return bytes, source
}

// limits reads the files. Cores may be fractional: half a core more or less decides whether the suite
// itself is the limit.
func (m machine) limits() Limits {
	l := Limits{
		Cores: float64(runtime.NumCPU()), CoresSource: "number of CPUs",
		GOMAXPROCS: runtime.GOMAXPROCS(0),
	}
	if n := m.affinity(); n > 0 {
		l.Cores, l.CoresSource = float64(n), "sched_getaffinity"
	}
	memory := func(limit, available int64, limitSource, availableSource string) {
		tighten(&l.MemoryLimit, &l.MemoryLimitSource, limit, limitSource)
		tighten(&l.MemoryAvailable, &l.MemoryAvailableSource, available, availableSource)
	}
	const info = "/proc/meminfo"
	memory(m.KiB("MemTotal", info), m.KiB("MemAvailable", info), info+" MemTotal",
		info+" MemAvailable")
	cores, file := m.quota()
	tighten(&l.Cores, &l.CoresSource, cores, file)
	for _, dir := range m.cgroups("memory") {
		if limit, file := m.memoryLimit(dir); limit > 0 {
			memory(limit, max(1, limit-m.memoryHeld(dir)), file, file)
		}
	}
	if limit := m.rlimit("Max address space"); limit > 0 { // also of memory that is reserved and not used
		const source = "RLIMIT_AS (ulimit -v)"
		memory(limit, max(1, limit-m.KiB("VmSize", "/proc/self/status")), source, source)
	}
	return l
}

// rlimit returns a limit of this process by its name in /proc/self/limits; 0 for none.
func (m machine) rlimit(name string) (n int64) {
	_, _ = fmt.Sscan(m.Field(name, "/proc/self/limits"), &n) // no number for "unlimited"
	return n
}

// Threads returns how many more threads this process may start, and what limits them; 0 is unknown.
func Threads() (n int64, source string) { return thisMachine().threads() }

func (m machine) threads() (n int64, source string) {
	for _, dir := range m.cgroups("pids") {
		if limit := m.bytes(dir, "pids.max"); limit > 0 {
			tighten(&n, &source, max(1, limit-m.bytes(dir, "pids.current")), path.Join(dir, "pids.max"))
		}
	}
	// The kernel compares this limit with all threads of the user. It does not limit root.
	uid := m.Field("Uid:", "/proc/self/status")
	if limit := m.rlimit("Max processes"); limit > 0 && !strings.HasPrefix(uid, "0") {
		all, _ := filepath.Glob(m.Path("/proc/[0-9]*"))
		for _, process := range all {
			if name := filepath.Base(process); m.Field("Uid:", "/proc", name, "status") == uid {
				threads, _ := strconv.ParseInt(m.Field("Threads:", "/proc", name, "status"), 10, 64)
				limit -= threads
			}
		}
		tighten(&n, &source, max(1, limit), "RLIMIT_NPROC (ulimit -u)")
	}
	return n, source
}

// OnlineCPUs returns how many processors of the machine are online, also those that this process may not
// use; 0 is unknown.
func (r Root) OnlineCPUs() int {
	return strings.Count(r.Text("/proc/stat"), "\ncpu") // a line for each, after the line of all
}

// Procs returns how many of want threads may run concurrently within the CPU quota of this process's
// cgroups, at least one, and the file with the quota, empty without one. It rounds down, where the Go
// runtime rounds up and to at least 2: more threads than the quota only use it up sooner, and all of them
// stop until its period ends, inside the window.
func Procs(want int) (n int, file string) { return thisMachine().procs(want) }

func (m machine) procs(want int) (n int, file string) {
	cores, file := m.quota()
	if file == "" {
		return want, ""
	}
	return max(1, min(want, int(cores))), file
}

// quota returns the tightest CPU bandwidth limit of the cgroups up to the root, in cores, and its file; 0
// and "" without one.
func (m machine) quota() (cores float64, file string) {
	for _, dir := range m.cgroups("cpu") {
		limit, from := m.cpuQuota(dir)
		tighten(&cores, &file, limit, from)
	}
	return cores, file
}

// tighten keeps the smaller positive value and its source.
func tighten[N int64 | float64](to *N, source *string, value N, from string) {
	if value > 0 && (*to == 0 || value < *to) {
		*to, *source = value, from
	}
}

// cgroups lists the directories whose files limit this process with a controller, innermost first. The
// limit of every group up to the root applies. /proc/self/cgroup names the group in each hierarchy, the
// mount table has the place of the hierarchy; a hybrid system has both versions.
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
		if !unified && !slices.Contains(strings.Split(part[1], ","), controller) {
			continue
		}
		at := slices.IndexFunc(mounts, func(m Mount) bool {
			return unified && m.Type == "cgroup2" ||
				!unified && m.Type == "cgroup" && slices.Contains(m.SuperOptions, controller)
		})
		if at >= 0 {
			dirs = append(dirs, groupPath(mounts[at], part[2])...)
		}
	}
	return dirs
}

// groupPath lists the directories of a group and its ancestors up to the mount point of its
// hierarchy.
func groupPath(m Mount, group string) (dirs []string) {
	// A container without its own cgroup namespace sees the host's path (/docker/<id>) but has only that
	// group mounted: the mounted path (Root) is removed from the front. For any other mismatch the result
	// is the mount point.
	inside, err := filepath.Rel(m.Root, group)
	if err != nil || strings.HasPrefix(inside, "..") {
		inside = ""
	}
	for inside = path.Join("/", inside); ; inside = path.Dir(inside) {
		dirs = append(dirs, path.Join(m.Point, inside))
		if inside == "/" {
			return dirs
		}
	}
}

// cpuQuota returns a group's bandwidth limit in cores and its file; 0 without a limit: "max", -1, no file,
// a period of 0.
func (m machine) cpuQuota(dir string) (cores float64, file string) {
	file = path.Join(dir, "cpu.max")
	text := m.Text(file) // v2: "150000 100000", "max 100000"
	if text == "" {
		file = path.Join(dir, "cpu.cfs_quota_us") // v1: -1 for none
		text = m.Text(file) + " " + m.Text(dir, "cpu.cfs_period_us")
	}
	var quota, period float64
	_, err := fmt.Sscan(text, &quota, &period)
	if err != nil || quota <= 0 || period <= 0 {
		return 0, file
	}
	return quota / period, file
}

// memoryLimit returns a group's limit in bytes and its file; 0 for none. memory.high counts as a limit:
// above it every allocation is throttled, and the run would measure memory reclaim.
func (m machine) memoryLimit(dir string) (bytes int64, file string) {
	for _, name := range []string{"memory.max", "memory.high", "memory.limit_in_bytes"} {
		if n := m.bytes(dir, name); n > 0 && (bytes == 0 || n < bytes) {
			bytes, file = n, path.Join(dir, name)
		}
	}
	return bytes, file
}

// memoryHeld returns how many bytes the group uses and cannot drop: all but its inactive page cache.
func (m machine) memoryHeld(dir string) int64 {
	used, cache := m.bytes(dir, "memory.current"), "inactive_file "
	if used == 0 {
		used, cache = m.bytes(dir, "memory.usage_in_bytes"), "total_inactive_file "
	}
	droppable, _ := strconv.ParseInt(m.Field(cache, dir, "memory.stat"), 10, 64)
	return max(0, used-droppable)
}

// unlimited: larger values mean no limit in v1, which prints the largest multiple of the page size.
const unlimited = int64(1) << 62

// bytes reads a file with one number; 0 for "max", -1, no limit and no file.
func (m machine) bytes(dir, name string) int64 {
	n := m.Integer(dir, name)
	if n == nil || *n < 0 || *n >= unlimited {
		return 0
	}
	return *n
}

// Privileges are the conditions for loading programs into the kernel. They are a forecast: a seccomp filter
// or a user namespace may refuse nevertheless.
type Privileges struct {
	// Missing are the capabilities that tracing needs and this process lacks. CAP_SYS_ADMIN includes
	// both of them, and was the only one before Linux 5.8.
	Missing []string
	// TypeInformation: the kernel was built with CONFIG_DEBUG_INFO_BTF, which the programs need.
	TypeInformation bool
	// Lockdown is none, integrity or confidentiality, which forbids programs that read kernel memory;
	// empty if the kernel has no lockdown.
	Lockdown string
}

// capabilities of linux/capability.h, by their bit.
const (
	capSysAdmin = 21
	capPerfmon  = 38
	capBPF      = 39
)

// Privileges returns the privileges of the process whose /proc/self is below the root. It loads no
// program.
func (r Root) Privileges() Privileges {
	p := Privileges{Lockdown: Chosen(r.Text("/sys/kernel/security/lockdown")),
		TypeInformation: r.Exists("/sys/kernel/btf/vmlinux")}
	// A mask in hexadecimal digits.
	effective, err := strconv.ParseUint(r.Field("CapEff", "/proc/self/status"), 16, 64)
	has := func(capability int) bool { return err != nil || effective>>capability&1 == 1 }
	if !has(capSysAdmin) && !has(capBPF) {
		p.Missing = append(p.Missing, "CAP_BPF")
	}
	if !has(capSysAdmin) && !has(capPerfmon) {
		p.Missing = append(p.Missing, "CAP_PERFMON")
	}
	return p
}
