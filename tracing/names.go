package tracing

import (
	"fmt"
	"strings"
)

// Level is how much is traced.
type Level int

// The levels. LevelFile adds programs that run at the calls on files of every process of the
// machine, or where the kernel does not allow that at each system call of any (some 100 ns), so it
// must be asked for.
const (
	LevelBlock Level = iota // requests at the device
	// and the calls on files that lead to them: read, write, fsync and their kin
	LevelFile
)

func (l Level) String() string { return pick(l, "block", "file") }

// ParseLevel reads "block" or "file".
func ParseLevel(s string) (Level, error) { return parse[Level](s, "level", "block", "file") }

// Filter is whose requests the histograms hold.
type Filter int

// The filters. A device's requests are known exactly; the process of a request is known when it was
// queued by the process itself, which holds for direct I/O and reads, but not for writes that the
// page cache wrote back later.
const (
	FilterDevice  Filter = iota // everybody's on the device; other processes' are counted
	FilterProcess               // those of the watched processes
)

func (f Filter) String() string { return pick(f, "device", "process") }

// ParseFilter reads "device" or "process".
func ParseFilter(s string) (Filter, error) {
	return parse[Filter](s, "filter", "device",
		"process")
}

func pick[T ~int](v T, names ...string) string {
	if v >= 0 && int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%T(%d)", v, int(v))
}

func parse[T ~int](s, what string, names ...string) (T, error) {
	for i, n := range names {
		if s == n {
			return T(i), nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q: must be %s", what, s, strings.Join(names, " or "))
}
