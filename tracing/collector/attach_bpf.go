//go:build linux && (amd64 || arm64)

package collector

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"

	"kvbench/tracing"
	"kvbench/tracing/bpf"
	"kvbench/tracing/host"
)

// attach loads and attaches the programs, and describes them.
func attach(opt Options, targets []host.Disk, about *tracing.Capture,
) (programs, *UnavailableError) {
	_ = rlimit.RemoveMemlock() // needed before Linux 5.11 only; loading fails if it mattered
	kernel, err := thisKernel()
	if err != nil {
		return nil, explain(err)
	}
	k, err := load(opt, targets, kernel, about)
	if err != nil {
		return nil, explain(err)
	}
	return k, nil
}

// kernelFacts are the differences between kernels that the programs take as constants.
type kernelFacts struct {
	haveStart    bool // block_io_start exists: since Linux 6.5
	noMerge      bool // block_rq_merge does not: 5.4 has none, 5.10 has
	oldArguments bool
	uring        bool // io_uring's events name the request: since Linux 6.4
	haveFolios   bool // writeback_dirty_folio, which was writeback_dirty_page before Linux 5.18
}

// thisKernel asks the running kernel's type information.
func thisKernel() (kernelFacts, error) {
	types, err := btf.LoadKernelSpec()
	if err != nil {
		return kernelFacts{}, fmt.Errorf("the kernel's type information: %w", err)
	}
	// The request was the second argument of the queue's events until Linux 5.11, but that change
	// went into older kernels too (5.10.137, distributions), so the version says nothing and the
	// type is asked. The first is the tracepoint's own.
	issue := event(types, "block_rq_issue")
	// Its result lies in the request since 5.19; the event of its completion, whose other arguments
	// changed more often, names the request since then.
	uring := event(types, "io_uring_complete")
	return kernelFacts{
		uring: event(types, "io_uring_submit_req") != nil &&
			uring != nil && len(uring.Params) > 2,
		haveStart:    event(types, "block_io_start") != nil,
		noMerge:      event(types, "block_rq_merge") == nil,
		oldArguments: issue != nil && len(issue.Params) > 2,
		haveFolios:   event(types, "writeback_dirty_folio") != nil,
	}, nil
}

// load puts the programs into the kernel and attaches them.
func load(opt Options, targets []host.Disk, kernel kernelFacts, about *tracing.Capture,
) (*kernelPrograms, error) {
	spec, err := bpf.LoadTrace()
	if err != nil {
		return nil, err
	}
	watch, processes := watched(opt, spec), spec.Programs[bpf.TraceProgProcesses].Copy()
	about.Watched, about.Attach = watch.text, byTracepoint
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
		// The number of the filesystem as its superblock has it, which for btrfs is not that of its
		// files.
		bpf.TraceVarFileDevice: opt.Device.Mount.Major<<20 | opt.Device.Mount.Minor,
	}
	if err := configure(spec, targets, values); err != nil {
		return nil, err
	}
	// What is not used is not loaded: maps take their memory at once, and one event that the kernel
	// lacks would fail all programs.
	for name, used := range map[string]bool{bpf.TraceMapWatched: watch.mode == watchSet,
		bpf.TraceMapDirty: watch.dirty, bpf.TraceMapOwners: opt.ByOwner} {
		if !used {
			spec.Maps[name].MaxEntries = 1
		}
	}
	spec.Maps[bpf.TraceMapLive].MaxEntries = liveRoom(targets)
	if opt.Level != tracing.LevelFile {
		for _, m := range callMaps {
			delete(spec.Maps, m)
		}
	}
	block := spec.Copy()
	k := &kernelPrograms{files: &ebpf.Collection{}, byOwner: opt.ByOwner}
	if k.coll, k.links, err = attachAll(block, blockPrograms(kernel, watch), nil); err != nil {
		return nil, err
	}
	if opt.Level == tracing.LevelFile {
		k.attachFiles(opt.fileAttach, kernel.uring, watch.mode != watchOne, spec, about)
	}
	// Only now: who starts from here on is seen by the programs.
	if err := k.watch(opt, watch, processes); err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

// blockPrograms are those of the block layer in the order of attaching: completions first, so that
// no request is ever followed without its end being seen.
func blockPrograms(kernel kernelFacts, watch watchSpec) (names []string) {
	for _, p := range []struct {
		name string
		used bool
	}{
		// Whose requests they are is known before the first.
		{bpf.TraceProgKvFork, watch.mode == watchSet}, {bpf.TraceProgKvExec, watch.comm[0] != 0},
		{bpf.TraceProgKvExit, watch.mode == watchSet},
		{bpf.TraceProgKvDirtyFolio, watch.dirty && kernel.haveFolios},
		{bpf.TraceProgKvDirtyPage, watch.dirty && !kernel.haveFolios},
		{bpf.TraceProgKvComplete, true}, {bpf.TraceProgKvMerge, !kernel.noMerge},
		{bpf.TraceProgKvRequeue, true}, {bpf.TraceProgKvIssue, true},
		{bpf.TraceProgKvInsert, !kernel.haveStart}, {bpf.TraceProgKvStart, kernel.haveStart},
	} {
		if p.used {
			names = append(names, p.name)
		}
	}
	return names
}

// attachAll loads the named programs of a specification, which it empties of others, and attaches
// them in that order. They share the given maps.
func attachAll(spec *ebpf.CollectionSpec, names []string, shared map[string]*ebpf.Map,
) (coll *ebpf.Collection, links []link.Link, err error) {
	maps.DeleteFunc(spec.Programs, func(name string, _ *ebpf.ProgramSpec) bool {
		return !slices.Contains(names, name)
	})
	coll, err = ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: shared})
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		l, err := attachTo(coll.Programs[name], spec.Programs[name])
		if err != nil {
			err = fmt.Errorf("attach to %s: %w", spec.Programs[name].AttachTo, err)
			return nil, nil, errors.Join(err, detach(links, coll))
		}
		links = append(links, l)
	}
	return coll, links, nil
}

// attachTo attaches a program to what its section names: a probe of a function, else what the
// kernel knows by its type information.
func attachTo(p *ebpf.Program, spec *ebpf.ProgramSpec) (link.Link, error) {
	switch kind, _, _ := strings.Cut(spec.SectionName, "/"); kind {
	case "kprobe":
		return link.Kprobe(spec.AttachTo, p, nil)
	case "kretprobe":
		return link.Kretprobe(spec.AttachTo, p, nil)
	}
	return link.AttachTracing(link.TracingOptions{Program: p})
}

// configure sets what is constant once the programs are loaded: the verifier removes branches that
// cannot be taken.
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

// asFlag: constants of the programs are words.
func asFlag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// event is what the kernel gives to programs at a tracepoint, nil where it has not that one.
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
