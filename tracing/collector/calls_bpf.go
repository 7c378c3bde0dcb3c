//go:build linux && (amd64 || arm64)

package collector

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"kvbench/tracing"
	"kvbench/tracing/bpf"
)

// callMaps are the maps that only calls on files need.
var callMaps = []string{bpf.TraceMapCalling, bpf.TraceMapCallCounts, bpf.TraceMapRecents,
	bpf.TraceMapSubmitted}

// fileWays are the ways of attaching to calls on files, the best first, with the prefixes of their
// programs' names.
var fileWays = []struct{ way, programs string }{
	{byFexit, "fexit_"}, {byTracepoint, "kv_sys_"}, {byNothing, ""},
}

// uringPrograms trace requests of io_uring, which no call shows. Completions are attached first, so
// that every request that is followed has a visible end.
var uringPrograms = []string{bpf.TraceProgKvUringComplete, bpf.TraceProgKvUringSubmit}

// attachFiles attaches the programs of the block layer, and those of calls on files in the best way that
// the kernel allows, or only in the forced way. Each way includes io_uring's events. It includes libaio's
// calls if other processes than this one are watched, because this process makes none. If every way fails,
// requests are traced without calls.
func (k *kernelPrograms) attachFiles(spec *ebpf.CollectionSpec, block []string, forced string, uring,
	others bool, capture *tracing.Capture) (err error) {
	var events []string
	if uring {
		events = uringPrograms
	} else {
		capture.NotBetter = append(capture.NotBetter, "io_uring: this kernel's events do not name the "+
			"request (Linux 6.4 does)")
	}
	for _, w := range fileWays {
		programs, names := spec.Copy(), block
		if w.way != byNothing {
			if forced != "" && forced != w.way {
				continue
			}
			names = slices.Concat(block, events, namesOf(spec, w.programs))
		}
		if w.way == byFexit && others {
			// Libaio is traced in its system calls with both ways: some kernels (6.1) have several
			// types of one of its functions, and programs cannot be attached to such a function.
			names = append(names, bpf.TraceProgKvSysExit, bpf.TraceProgKvSysEnter)
			if err := programs.Variables[bpf.TraceVarCallKind].Set(aioTable); err != nil {
				return fmt.Errorf("set %s: %w", bpf.TraceVarCallKind, err)
			}
		}
		if k.coll, k.links, err = attachAll(programs, names); err == nil {
			capture.FileAttach = w.way
			return nil
		}
		capture.NotBetter = append(capture.NotBetter, fmt.Sprintf("calls by %s: %s", w.way, brief(err)))
	}
	return err
}

// namesOf lists the programs with a prefix. The ends of calls (out, exit) come before their
// beginnings (in, enter), so that the programs see the end of every call that they follow.
func namesOf(spec *ebpf.CollectionSpec, prefix string) []string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(spec.Programs)),
		func(name string) bool { return !strings.HasPrefix(name, prefix) })
	slices.Reverse(names)
	return names
}

// callTable is call_kind of bpf/syscalls.h: for the number of each system call its kind + 1, and 0 for
// calls that are not followed. The two architectures have different numbers.
var callTable = [512]uint8{
	unix.SYS_READ: callRead + 1, unix.SYS_PREAD64: callRead + 1, unix.SYS_READV: callRead + 1,
	unix.SYS_PREADV: callRead + 1, unix.SYS_PREADV2: callRead + 1,
	unix.SYS_WRITE: callWrite + 1, unix.SYS_PWRITE64: callWrite + 1, unix.SYS_WRITEV: callWrite + 1,
	unix.SYS_PWRITEV: callWrite + 1, unix.SYS_PWRITEV2: callWrite + 1,
	unix.SYS_FSYNC: callFsync + 1, unix.SYS_FDATASYNC: callFsync + 1,
	unix.SYS_FADVISE64: callKinds + 1, unix.SYS_IO_SUBMIT: aioSubmit + 1,
	unix.SYS_IO_GETEVENTS: aioReap + 1, unix.SYS_IO_PGETEVENTS: aioReap + 1,
}

// aioTable has only libaio's calls.
var aioTable = [512]uint8{unix.SYS_IO_SUBMIT: aioSubmit + 1, unix.SYS_IO_GETEVENTS: aioReap + 1,
	unix.SYS_IO_PGETEVENTS: aioReap + 1}

// The kinds of libaio's calls, which are followed but not counted.
const aioSubmit, aioReap = callKinds + 1, callKinds + 2
