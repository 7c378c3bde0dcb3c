package collector

import (
	"errors"
	"fmt"

	"kvbench/tracing"
	"kvbench/tracing/host"
)

// Options of Start. The zero value traces every device of the machine and counts the calling process's
// requests separately.
type Options struct {
	// Device is the device behind the directory of interest (BackingDevice). The zero Device is all
	// devices. A device with a Reason and no members cannot be filtered for: only requests of the
	// watched processes are traced then, on any device.
	Device host.Device
	Level  tracing.Level  // "" is LevelBlock
	Filter tracing.Filter // "" is FilterDevice
	// PID, Comm and Cgroup choose the watched processes: one process and its children, all processes of
	// a name and their children, or the processes of a cgroup (version 2) and of the cgroups below it,
	// by its directory. Without any of them it is the calling process, or no process with ByOwner.
	PID    int
	Comm   string
	Cgroup string
	// ByOwner also counts the requests of each process of the machine (Capture.Owners). With
	// FilterProcess the histograms have the watched processes, otherwise all processes.
	ByOwner bool

	fileAttach string // for tests: the only way of attaching to calls on files, "" tries all ways
}

// Validate returns every violation.
func (o Options) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	errs = append(errs, o.Level.Validate())
	check(o.Filter == tracing.FilterDevice || o.Filter == tracing.FilterProcess,
		"unknown filter %q", o.Filter)
	check(o.PID >= 0, "process id %d must not be negative", o.PID)
	named := 0
	for _, given := range []bool{o.PID != 0, o.Comm != "", o.Cgroup != ""} {
		if given {
			named++
		}
	}
	check(named <= 1, "only one of a process id, a name and a cgroup can be watched")
	check(named > 0 || !o.ByOwner || o.Filter != tracing.FilterProcess,
		"requests of watched processes are asked for, and none is named")
	check(len(o.Comm) < commLength, "process name %q is longer than the %d characters that the "+
		"kernel keeps", o.Comm, commLength-1)
	return errors.Join(errs...)
}

// The ways of attaching programs to the kernel. Requests are traced at typed tracepoints only: raw
// tracepoints need the same type information, and perf tracepoints mix requests up. Calls on files are
// traced by fexit in the kernel's functions for reading, writing and flushing, else at every system call of
// the machine.
const (
	byTracepoint = "tp_btf"
	byFexit      = "fexit"
	byNothing    = "none"
)

// commLength is the kernel's TASK_COMM_LEN, with the terminating zero.
const commLength = 16

// UnavailableError says why the kernel was not traced and what is missing. The text is one sentence for
// users.
type UnavailableError struct {
	Reason string
	Need   string // CAP_BPF and CAP_PERFMON (…), a kernel with …
	Err    error  // the kernel's error; may be nil
}

func (e *UnavailableError) Error() string {
	return "no tracing: " + e.Reason + "; needed: " + e.Need
}

// Unwrap returns the kernel's error.
func (e *UnavailableError) Unwrap() error { return e.Err }
