package host

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// cgroupDirs are the directories whose files bound this process, innermost first. A limit anywhere on the way to the
// root binds, whatever the inner ones say. On a hybrid system both hierarchies are there.
type cgroupDirs struct{ cpu, memory []string }

// cgroups finds them from /proc/self/cgroup (which group, per hierarchy) and the mount table (where that hierarchy is).
func (m machine) cgroups() cgroupDirs {
	var dirs cgroupDirs
	table, err := os.Open(filepath.Join(m.root, "/proc/self/mountinfo"))
	if err != nil {
		return dirs // no /proc, no cgroups
	}
	defer table.Close()
	mounts, err := ParseMounts(table)
	if err != nil {
		return dirs
	}
	text, _ := m.read("/proc/self/cgroup")
	for line := range strings.Lines(text) {
		// "4:memory:/path", "2:cpu,cpuacct:/path", "0::/path" for the unified hierarchy
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		unified := part[0] == "0" && part[1] == ""
		controllers := strings.Split(part[1], ",")
		if unified || slices.Contains(controllers, "cpu") {
			dirs.cpu = append(dirs.cpu, groupPath(mounts, unified, "cpu", part[2])...)
		}
		if unified || slices.Contains(controllers, "memory") {
			dirs.memory = append(dirs.memory, groupPath(mounts, unified, "memory", part[2])...)
		}
	}
	return dirs
}

// groupPath lists the directories of a group and its ancestors up to the mount point of its hierarchy.
func groupPath(mounts []Mount, unified bool, controller, group string) []string {
	for _, m := range mounts {
		if unified && m.Type != "cgroup2" {
			continue
		}
		if !unified && (m.Type != "cgroup" || !slices.Contains(m.SuperOptions, controller)) {
			continue
		}
		// A container without its own cgroup namespace sees the host's path (/docker/<id>) but has only that
		// group mounted: what is mounted (Root) is cut from the front. Any other mismatch leaves the mount point.
		inside := "/"
		if m.Root == "/" {
			inside = group
		} else if rest, ok := strings.CutPrefix(group, m.Root); ok && (rest == "" || rest[0] == '/') {
			inside = rest
		}
		// A group outside the namespace's root reads /../x; cleaning keeps the path inside the mount.
		inside = path.Clean("/" + inside)
		var out []string
		for {
			out = append(out, path.Join(m.Point, inside))
			if inside == "/" {
				return out
			}
			inside = path.Dir(inside)
		}
	}
	return nil
}

// cpuQuota returns the cores that a group's bandwidth limit amounts to and the file that says so, 0 for none.
func (m machine) cpuQuota(dir string) (cores float64, file string) {
	if text, ok := m.read(path.Join(dir, "cpu.max")); ok { // v2: "150000 100000", "max 100000"
		quota, period, _ := strings.Cut(strings.TrimSpace(text), " ")
		return quotient(quota, period), path.Join(dir, "cpu.max")
	}
	file = path.Join(dir, "cpu.cfs_quota_us") // v1: -1 for none
	quota, _ := m.read(file)
	period, _ := m.read(path.Join(dir, "cpu.cfs_period_us"))
	return quotient(quota, period), file
}

func quotient(quota, period string) float64 {
	q, errQ := strconv.ParseInt(strings.TrimSpace(quota), 10, 64)
	p, errP := strconv.ParseInt(strings.TrimSpace(period), 10, 64)
	if errQ != nil || errP != nil || q <= 0 || p <= 0 {
		return 0
	}
	return float64(q) / float64(p)
}

// memoryLimit returns a group's limit in bytes and the file that says so, 0 for none. memory.high counts as a limit:
// above it every allocation is throttled, and what is measured then is the reclaim.
func (m machine) memoryLimit(dir string) (bytes int64, file string) {
	for _, name := range []string{"memory.max", "memory.high", "memory.limit_in_bytes"} {
		f := path.Join(dir, name)
		if n := m.number(f); n > 0 && (bytes == 0 || n < bytes) {
			bytes, file = n, f
		}
	}
	return bytes, file
}

// memoryHeld is what the group uses and cannot drop: its inactive page cache goes first and is no obstacle.
func (m machine) memoryHeld(dir string) int64 {
	used := m.number(path.Join(dir, "memory.current"))
	cache := "inactive_file "
	if used == 0 {
		used = m.number(path.Join(dir, "memory.usage_in_bytes"))
		cache = "total_inactive_file "
	}
	text, _ := m.read(path.Join(dir, "memory.stat"))
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, cache); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64); err == nil {
				return max(0, used-n)
			}
		}
	}
	return used
}

// unlimited is what v1 calls no limit, less some slack: it prints the largest multiple of the page size.
const unlimited = int64(1) << 62

// number reads a file with one positive number, 0 for "max", -1, no limit and no file.
func (m machine) number(file string) int64 {
	text, _ := m.read(file)
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 || n >= unlimited {
		return 0
	}
	return n
}

func (m machine) read(file string) (string, bool) {
	text, err := os.ReadFile(filepath.Join(m.root, file))
	return string(text), err == nil
}

// kibField finds the line "name:   123 kB" and returns bytes.
func kibField(text, name string) int64 {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 53)
		if err != nil {
			return 0
		}
		return n << 10
	}
	return 0
}
