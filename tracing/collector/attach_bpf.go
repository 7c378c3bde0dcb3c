//go:build linux && (amd64 || arm64)

package collector

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"

	"kvbench/tracing"
	"kvbench/tracing/bpf"
	"kvbench/tracing/host"
)

// attach loads and attaches the programs, and describes them.
func attach(opt Options, targets []host.Disk, capture *tracing.Capture,
) (programs, *UnavailableError) {
	_ = rlimit.RemoveMemlock() // only needed before Linux 5.11; a failure shows when loading
	kernel, err := thisKernel()
	if err != nil {
		return nil, explain(err)
	}
	k, err := load(opt, targets, kernel, capture)
	if err != nil {
		return nil, explain(err)
	}
	return k, nil
}

// kernelFacts are differences between kernels. The programs have them as constants.
type kernelFacts struct {
	haveStart    bool // block_io_start exists: since Linux 6.5
	oldArguments bool
	uring        bool // io_uring's events name the request: since Linux 6.4
	haveFolios   bool // writeback_dirty_folio exists; before Linux 5.18 it was writeback_dirty_page
}

// thisKernel reads the facts from the running kernel's type information.
func thisKernel() (kernelFacts, error) {
	types, err := btf.LoadKernelSpec()
	if err != nil {
		return kernelFacts{}, fmt.Errorf("the kernel's type information: %w", err)
	}
	// Before Linux 5.11 the events of the queue have two arguments, and the request is the second
	// one. Older kernels received this change too (5.10.137, distributions), so the type decides and
	// not the version. The tracepoint itself adds one parameter in front.
	issue := event(types, "block_rq_issue")
	// Since Linux 5.19 the result is a part of the request, and the completion event names the
	// request. The event's other arguments changed more often.
	uring := event(types, "io_uring_complete")
	return kernelFacts{
		uring: event(types, "io_uring_submit_req") != nil &&
			uring != nil && len(uring.Params) > 2,
		haveStart:    event(types, "block_io_start") != nil,
		oldArguments: issue != nil && len(issue.Params) > 2,
		haveFolios:   event(types, "writeback_dirty_folio") != nil,
	}, nil
}

// liveRoom is how many requests can be followed at once: as many as 64 hardware queues of an NVMe drive hold.
// The kernel takes some 130 bytes for each.
const liveRoom = 1 << 16

// load loads the programs into the kernel and attaches them.
func load(opt Options, targets []host.Disk, kernel kernelFacts, capture *tracing.Capture,
) (*kernelPrograms, error) {
	spec, err := bpf.LoadTrace()
	if err != nil {
		return nil, err
	}
	watch, processes := watched(opt), spec.Programs[bpf.TraceProgProcesses].Copy()
	if watch.mode == watchOne {
		ids, err := kernelIDs(processes)
		if err != nil {
			return nil, err
		}
		watch.tgid = ids[uint32(os.Getpid())]
	}
	capture.Watched, capture.Attach = watch.text, byTracepoint
	values := map[string]any{
		bpf.TraceVarHaveStart:    asFlag(kernel.haveStart),
		bpf.TraceVarOldArguments: asFlag(kernel.oldArguments),
		bpf.TraceVarOnlyWatched:  asFlag(opt.Filter == tracing.FilterProcess),
		bpf.TraceVarLbaSectors:   zoneSectors(targets),
		bpf.TraceVarWatch:        watch.mode,
		bpf.TraceVarWatchedTgid:  watch.tgid,
		bpf.TraceVarWatchedComm:  watch.comm,
		bpf.TraceVarFollowDirty:  asFlag(watch.dirty),
		bpf.TraceVarByOwner:      asFlag(opt.ByOwner),
		bpf.TraceVarCallKind:     callTable,
		// The number in the filesystem's superblock. The files of btrfs have another number.
		bpf.TraceVarFileDevice: opt.Device.Mount.Major<<20 | opt.Device.Mount.Minor,
	}
	if err := configure(spec, targets, values); err != nil {
		return nil, err
	}
	// Unused maps get one entry, because a map takes its memory at once. Unused programs are not
	// loaded, because one event that the kernel lacks makes the whole load fail.
	for name, used := range map[string]bool{bpf.TraceMapWatched: watch.mode == watchSet,
		bpf.TraceMapDirty: watch.dirty, bpf.TraceMapOwners: opt.ByOwner} {
		if !used {
			spec.Maps[name].MaxEntries = 1
		}
	}
	spec.Maps[bpf.TraceMapLive].MaxEntries = liveRoom
	k, block := &kernelPrograms{byOwner: opt.ByOwner, targets: targets}, blockPrograms(kernel, watch)
	if opt.Level == tracing.LevelFile {
		err = k.attachFiles(spec, block, opt.fileAttach, kernel.uring, watch.mode != watchOne, capture)
	} else {
		for _, m := range callMaps {
			delete(spec.Maps, m)
		}
		k.coll, k.links, err = attachAll(spec, block)
	}
	if err != nil {
		return nil, err
	}
	// Only now, because the attached programs see every process that starts from here on.
	if err := k.watch(opt, watch, processes); err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

// blockPrograms returns the programs of the block layer in the order of attaching. Completions come
// first, so that the programs see the end of every request that they follow.
func blockPrograms(kernel kernelFacts, watch watchSpec) (names []string) {
	for _, p := range []struct {
		name string
		used bool
	}{
		// The owners of requests must be known before the first request.
		{bpf.TraceProgKvFork, watch.mode == watchSet}, {bpf.TraceProgKvExec, watch.comm[0] != 0},
		{bpf.TraceProgKvExit, watch.mode == watchSet},
		{bpf.TraceProgKvDirtyFolio, watch.dirty && kernel.haveFolios},
		{bpf.TraceProgKvDirtyPage, watch.dirty && !kernel.haveFolios},
		{bpf.TraceProgKvComplete, true}, {bpf.TraceProgKvMerge, true},
		{bpf.TraceProgKvRequeue, true}, {bpf.TraceProgKvIssue, true},
		{bpf.TraceProgKvInsert, !kernel.haveStart}, {bpf.TraceProgKvStart, kernel.haveStart},
	} {
		if p.used {
			names = append(names, p.name)
		}
	}
	return names
}

// attachAll loads the named programs of a specification and attaches them in the given order. It
// deletes the other programs from the specification.
func attachAll(spec *ebpf.CollectionSpec, names []string) (coll *ebpf.Collection,
	links []link.Link, err error) {
	maps.DeleteFunc(spec.Programs, func(name string, _ *ebpf.ProgramSpec) bool {
		return !slices.Contains(names, name)
	})
	if coll, err = ebpf.NewCollection(spec); err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		l, err := link.AttachTracing(link.TracingOptions{Program: coll.Programs[name]})
		if err != nil {
			err = fmt.Errorf("attach to %s: %w", spec.Programs[name].AttachTo, err)
			return nil, nil, errors.Join(err, detach(links, coll))
		}
		links = append(links, l)
	}
	return coll, links, nil
}

// configure sets the constants of the programs before loading. The verifier then removes the branches
// that cannot be taken.
func configure(spec *ebpf.CollectionSpec, targets []host.Disk, values map[string]any) error {
	values[bpf.TraceVarDevices] = uint32(len(targets))
	var devices [maxTargets]struct {
		Name        [16]byte
		Number, Pad uint32
	}
	named := false
	for i, t := range targets {
		named = named || t.Hidden
		devices[i].Number = t.Major<<20 | t.Minor
		copy(devices[i].Name[:], t.Name)
	}
	values[bpf.TraceVarDevice], values[bpf.TraceVarByName] = devices, asFlag(named)
	for name, v := range values {
		s := spec.Variables[name]
		if s == nil {
			return fmt.Errorf("the programs have no variable %s", name)
		}
		if err := s.Set(v); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

// asFlag returns 0 or 1, because the constants of the programs are words.
func asFlag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// event returns the parameters of a tracepoint, nil if the kernel lacks the tracepoint.
func event(types *btf.Spec, name string) *btf.FuncProto {
	var t *btf.Typedef
	if types.TypeByName("btf_trace_"+name, &t) != nil {
		return nil
	}
	p, ok := t.Type.(*btf.Pointer)
	if !ok {
		return nil
	}
	f, _ := p.Target.(*btf.FuncProto)
	return f
}
