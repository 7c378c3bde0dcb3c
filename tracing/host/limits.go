package host

import (
	"runtime"
)

// Limits is what this process may use of the machine: the tightest of the machine itself, its CPU affinity and all
// cgroups above it. Each value names where it comes from, so that a surprised reader knows what to raise. Zero means
// unknown.
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
	l := machine{affinity: allowedCPUs}.limits()
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

// machine is the /proc and /sys that are asked. Tests put a fabricated tree below root.
type machine struct {
	root     string
	affinity func() int // CPUs this process may run on, 0 when the system does not tell
}

func (m machine) limits() Limits {
	l := Limits{Cores: float64(runtime.NumCPU()), CoresSource: "number of CPUs", GOMAXPROCS: runtime.GOMAXPROCS(0)}
	if n := m.affinity(); n > 0 {
		l.Cores, l.CoresSource = float64(n), "sched_getaffinity"
	}
	const meminfo = "/proc/meminfo"
	text, _ := m.read(meminfo)
	l.tightenMemory(kibField(text, "MemTotal:"), meminfo+" MemTotal")
	l.tightenAvailable(kibField(text, "MemAvailable:"), meminfo+" MemAvailable")

	groups := m.cgroups()
	for _, dir := range groups.cpu {
		if cores, file := m.cpuQuota(dir); cores > 0 && cores < l.Cores {
			l.Cores, l.CoresSource = cores, file
		}
	}
	for _, dir := range groups.memory {
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
