package collector

import (
	"errors"
	"fmt"

	"kvbench/tracing"
	"kvbench/tracing/host"
)

// Options of Start. The zero value traces every device of the machine and tells the calling process
// from others.
type Options struct {
	// Device is the one behind the directory of interest (BackingDevice). The zero Device is all of
	// them; one with a Reason and no members cannot be filtered for, and only requests of the
	// watched processes are taken, on any device.
	Device host.Device
	Level  tracing.Level  // "" is LevelBlock
	Filter tracing.Filter // "" is FilterDevice
	// PID, Comm and Cgroup choose the watched processes: one and its children, all of that name and
	// their children, or those of a cgroup (version 2) and of those below it, by its directory.
	// None of them is the calling process, or no process with ByOwner.
	PID    int
	Comm   string
	Cgroup string
	// ByOwner counts the requests of each process of the machine besides (Capture.Owners). The
	// histograms are of the watched processes with FilterProcess, else of all.
	ByOwner bool

	fileAttach string // of tests: the one way of attaching to calls on files, "" tries them all
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
	for _, yes := range []bool{o.PID != 0, o.Comm != "", o.Cgroup != ""} {
		if yes {
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

// How programs meet the kernel's events. Requests are met at typed tracepoints, and no other way:
// raw tracepoints need the same type information, perf tracepoints mix up requests. Calls on files
// are met in the kernel's own functions for reading, writing and flushing by fexit, else at every
// system call of the machine, else by kprobes.
const (
	byTracepoint = "tp_btf"
	byFexit      = "fexit"
	byKprobe     = "kprobe"
	byNothing    = "none"
)

// commLength is the kernel's TASK_COMM_LEN, with the terminating zero.
const commLength = 16

// UnavailableError says why the kernel was not traced and what would be needed. The text is one
// sentence for users.
type UnavailableError struct {
	Reason string
	Need   string // CAP_BPF and CAP_PERFMON (…), a kernel with …
	Err    error  // what the kernel answered; may be nil
}

func (e *UnavailableError) Error() string {
	return "no tracing: " + e.Reason + "; needed: " + e.Need
}

// Unwrap returns the kernel's answer.
func (e *UnavailableError) Unwrap() error { return e.Err }
