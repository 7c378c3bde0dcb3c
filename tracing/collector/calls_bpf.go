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

// callMaps are needed for calls on files only.
var callMaps = []string{bpf.TraceMapCalling, bpf.TraceMapCallCounts, bpf.TraceMapRecents,
	bpf.TraceMapSubmitted}

// fileWays are the ways of attaching to calls on files, the best first, with the beginnings of the
// names of their programs. Kprobes come last: with 300 threads blocked in reads of a pipe they lost
// all of 1000 other reads, because there are some ten kretprobes for calls in progress, and each
// call takes longer in them (the package's documentation has the numbers).
var fileWays = []struct{ way, programs string }{
	{byFexit, "fexit_"}, {byTracepoint, "kv_sys_"}, {byKprobe, "kprobe_"},
}

// uringPrograms are for what no call does; its end before its beginning, as for all.
var uringPrograms = []string{bpf.TraceProgKvUringComplete, bpf.TraceProgKvUringSubmit}

// attachFiles tries the ways of attaching to calls on files in turn, or the one that is forced, and
// io_uring's events with each; libaio's calls where others than this process are watched, which
// makes none. None of them is no reason to do without requests.
func (k *kernelPrograms) attachFiles(forced string, uring, others bool, spec *ebpf.CollectionSpec,
	about *tracing.Capture) {
	about.FileAttach = byNothing
	// All but the constants, which differ.
	shared := maps.Clone(k.coll.Maps)
	delete(shared, spec.Variables[bpf.TraceVarCallKind].SectionName)
	var besides []string
	if uring {
		besides = uringPrograms
	} else {
		about.NotBetter = append(about.NotBetter, "io_uring: this kernel's events do not name the "+
			"request (Linux 6.4 does)")
	}
	for _, w := range fileWays {
		if forced != "" && forced != w.way {
			continue
		}
		names, of := slices.Concat(besides, namesOf(spec, w.programs)), spec.Copy()
		if w.way != byTracepoint && others {
			// What libaio does is met in its system calls whatever the way: some kernels have
			// functions of several types for them (6.1), which cannot be attached to.
			names = append(names, bpf.TraceProgKvSysExit, bpf.TraceProgKvSysEnter)
			if err := of.Variables[bpf.TraceVarCallKind].Set(aioTable); err != nil {
				about.NotBetter = append(about.NotBetter, "libaio: "+err.Error())
			}
		}
		coll, links, err := attachAll(of, names, shared)
		if err == nil {
			k.files, k.links = coll, append(k.links, links...)
			about.FileAttach = w.way
			return
		}
		about.NotBetter = append(about.NotBetter, fmt.Sprintf("calls by %s: %s", w.way, brief(err)))
	}
}

// namesOf lists the programs whose names begin so: the ends of calls (out, exit) before their
// beginnings (in, enter), so that no call is followed whose end is not seen.
func namesOf(spec *ebpf.CollectionSpec, prefix string) []string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(spec.Programs)),
		func(name string) bool { return !strings.HasPrefix(name, prefix) })
	slices.Reverse(names)
	return names
}

// callTable is call_kind of bpf/syscalls.h: of each system call by its number, which the two
// architectures give differently, the kind + 1; 0 is not followed.
var callTable = [512]uint8{
	unix.SYS_READ: callRead + 1, unix.SYS_PREAD64: callRead + 1, unix.SYS_READV: callRead + 1,
	unix.SYS_PREADV: callRead + 1, unix.SYS_PREADV2: callRead + 1,
	unix.SYS_WRITE: callWrite + 1, unix.SYS_PWRITE64: callWrite + 1, unix.SYS_WRITEV: callWrite + 1,
	unix.SYS_PWRITEV: callWrite + 1, unix.SYS_PWRITEV2: callWrite + 1,
	unix.SYS_FSYNC: callFsync + 1, unix.SYS_FDATASYNC: callFsync + 1,
	unix.SYS_FADVISE64: callKinds + 1, unix.SYS_IO_SUBMIT: aioSubmit + 1,
	unix.SYS_IO_GETEVENTS: aioReap + 1, unix.SYS_IO_PGETEVENTS: aioReap + 1,
}

// aioTable has those of libaio alone.
var aioTable = [512]uint8{unix.SYS_IO_SUBMIT: aioSubmit + 1, unix.SYS_IO_GETEVENTS: aioReap + 1,
	unix.SYS_IO_PGETEVENTS: aioReap + 1}

// The kinds of libaio's own calls, which are followed and not counted.
const aioSubmit, aioReap = callKinds + 1, callKinds + 2
