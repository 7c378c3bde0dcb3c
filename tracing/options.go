package tracing

import (
	"errors"
	"fmt"
	"strings"
)

// Level is how much is traced.
type Level int

// The levels. LevelFile adds programs that run at the calls on files of every process of the machine, or where the kernel
// does not allow that at each system call of any (some 100 ns), so it must be asked for.
const (
	LevelBlock Level = iota // requests at the device
	LevelFile               // and the calls on files that lead to them: read, write, fsync and their kin
)

func (l Level) String() string { return pick(l, "block", "file") }

// ParseLevel reads "block" or "file".
func ParseLevel(s string) (Level, error) { return parse[Level](s, "level", "block", "file") }

// Filter is whose requests the histograms hold.
type Filter int

// The filters. A device's requests are known exactly; the process of a request is known when it was queued by the process
// itself, which holds for direct I/O and reads, but not for writes that the page cache wrote back later.
const (
	FilterDevice  Filter = iota // everybody's on the device; other processes' are counted
	FilterProcess               // those of the watched processes
)

func (f Filter) String() string { return pick(f, "device", "process") }

// ParseFilter reads "device" or "process".
func ParseFilter(s string) (Filter, error) { return parse[Filter](s, "filter", "device", "process") }

// Attach is how the programs meet the kernel's events.
type Attach int

// The ways, in the order in which they are tried. AttachBTF costs least per request (Linux 5.5 and later); raw
// tracepoints are older; both need the kernel's type information (CONFIG_DEBUG_INFO_BTF). Perf tracepoints do not, but need
// tracefs, cannot tell two requests at one sector apart, and take half a second to detach. AttachAuto takes the first
// that works.
//
// For calls on files (LevelFile) AttachBTF and AttachRaw run at every system call of the machine. AttachFexit is tried
// before them and runs only in the kernel's functions for reading, writing and flushing. AttachKprobe is the last: it does
// so too, but a function has only some ten kretprobes, and calls beyond are lost (and counted as such).
const (
	AttachAuto Attach = iota
	AttachBTF
	AttachRaw
	AttachPerf
	AttachFexit
	AttachKprobe
	attachNone
)

func (a Attach) String() string {
	return pick(a, "auto", "tp_btf", "raw_tp", "tracepoint", "fexit", "kprobe", "none")
}

// Options of Start. The zero value traces every device of the machine and tells the calling process from others.
type Options struct {
	// Device is the one behind the directory of interest (BackingDevice). The zero Device is all of them; one with a Reason
	// and no members cannot be filtered for, and only requests of the watched processes are taken, on any device.
	Device Device
	Level  Level
	Filter Filter
	// PID and Comm choose the watched processes: one and its children, or all of that name and their children. Neither is
	// the calling process.
	PID  int
	Comm string
	// Attach forces one way of attaching to requests: AttachBTF, AttachRaw or AttachPerf; 0 tries them all.
	Attach Attach
	// FileAttach forces one way of attaching to calls on files: any but AttachPerf; 0 tries them all. Only for LevelFile.
	FileAttach Attach
}

// Validate returns every violation.
func (o Options) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(o.Level == LevelBlock || o.Level == LevelFile, "unknown level %d", o.Level)
	check(o.Filter == FilterDevice || o.Filter == FilterProcess, "unknown filter %d", o.Filter)
	check(o.Attach >= AttachAuto && o.Attach <= AttachPerf, "unknown way of attaching %d", o.Attach)
	check(o.FileAttach >= AttachAuto && o.FileAttach <= AttachKprobe && o.FileAttach != AttachPerf, "unknown way of attaching to calls on files %d", o.FileAttach)
	check(o.PID >= 0, "process id %d must not be negative", o.PID)
	check(o.PID == 0 || o.Comm == "", "a process id and a name cannot both be watched")
	check(len(o.Comm) < commLength, "process name %q is longer than the %d characters that the kernel keeps", o.Comm, commLength-1)
	return errors.Join(errs...)
}

// commLength is the kernel's TASK_COMM_LEN, with the terminating zero.
const commLength = 16

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

// UnavailableError says why the kernel was not traced and what would be needed. The text is one sentence for users.
type UnavailableError struct {
	Reason string
	Needs  []string // each one thing: CAP_BPF and CAP_PERFMON (…), a kernel with …
	Err    error    // what the kernel answered; may be nil
}

func (e *UnavailableError) Error() string {
	s := "no tracing: " + e.Reason
	if len(e.Needs) > 0 {
		s += "; needed: " + strings.Join(e.Needs, "; ")
	}
	return s
}

// Unwrap returns the kernel's answer.
func (e *UnavailableError) Unwrap() error { return e.Err }
